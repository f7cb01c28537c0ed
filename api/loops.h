/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loops.h - the loops of a context, and their threads. */
#ifndef RDDP_API_LOOPS_H
#define RDDP_API_LOOPS_H

#include "api/api.h"

/* As many as context->loops says. 0, -ENOMEM, -EMFILE; loops_fini() is called once in either case. */
int loops_init(struct rddp_context *context);
void loops_fini(struct rddp_context *context);

/* A thread each. 0 or -EAGAIN, and then none is left. */
int loops_start(struct rddp_context *context);
void loops_stop(struct rddp_context *context);

#endif
