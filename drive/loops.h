/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loops.h - the loops of a context, and their threads. */
#ifndef RDDP_DRIVE_LOOPS_H
#define RDDP_DRIVE_LOOPS_H

#include "endpoint/objects.h"

/* Makes `loops` loops. Returns 0, -ENOMEM or -EMFILE. loops_fini() is for all that were made, after any failure and
 * also if this was never called. */
int loops_init(struct rddp_context *context, uint32_t loops);
void loops_fini(struct rddp_context *context);

/* Starts a thread for each loop. Returns 0; -EAGAIN: no thread was left running. loops_stop() ends and joins them. */
int loops_start(struct rddp_context *context);
void loops_stop(struct rddp_context *context);

#endif
