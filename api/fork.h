/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.h - the contexts of this process, and the moment in which fork() copies them. */
#ifndef RDDP_API_FORK_H
#define RDDP_API_FORK_H

#include "api/api.h"

/* It is whole; it is about to be closed. */
void fork_add(struct rddp_context *context);
void fork_remove(struct rddp_context *context);

/* No fork() in between, and no other thread of a child at the same. */
void fork_lock(void);
void fork_unlock(void);

#endif
