/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.h - the contexts of this process, and fork(). */
#ifndef RDDP_DRIVE_FORK_H
#define RDDP_DRIVE_FORK_H

#include "endpoint/objects.h"

/* Add a complete context to the list; remove it before it is closed. */
void fork_add(struct rddp_context *context);
void fork_remove(struct rddp_context *context);

/* Calls it with each context of the list, under the lock that fork_lock() takes. */
void fork_each(void (*action)(struct rddp_context *));

/* Between these calls no thread forks, and no other thread gives up or takes over a context of the parent. */
void fork_lock(void);
void fork_unlock(void);

#endif
