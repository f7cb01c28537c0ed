/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* leave.h - contexts that give up what is another process's. */
#ifndef RDDP_DRIVE_LEAVE_H
#define RDDP_DRIVE_LEAVE_H

#include "endpoint/objects.h"

/* Under fork.c's lock: gives up what belongs to the parent, unless that was done. Returns false if the context is
 * CONTEXT_TORN. */
bool leave_inherited(struct rddp_context *context);

/* The descriptors of the loops, as loop_leave(). */
void leave_descriptors(struct rddp_context *context);

/* Parts of it, under members.lock and by the driver of all loops. */
void leave_devices(struct rddp_context *context);
void leave_listeners(struct rddp_context *context);

#endif
