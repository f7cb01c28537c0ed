/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inherit.h - what a child of fork() does with the contexts of its parent: nothing, until it calls the library. */
#ifndef RDDP_DRIVE_INHERIT_H
#define RDDP_DRIVE_INHERIT_H

#include "endpoint/objects.h"

/* Give up what belongs to the parent; make descriptors and threads. They take fork.c's lock. */
int context_leave_parent(struct rddp_context *context);
int context_make_ours(struct rddp_context *context);

/* The first line of every call that takes a lock. Afterwards what is the parent's was given up, and locks can be taken.
 * Returns 0; -EDEADLK: fork() was called inside the library. */
static inline int context_enter(struct rddp_context *context)
{
    return atomic_load_explicit(&context->home, memory_order_relaxed) == CONTEXT_OURS ? 0
                                                                                      : context_leave_parent(context);
}

/* The first line of every call that waits, connects or needs an event. Afterwards there are also descriptors and
 * threads. Returns 0, -EDEADLK, -ENOMEM, -EMFILE or -EAGAIN; -EBADF: the program has closed the descriptors. */
static inline int context_use(struct rddp_context *context)
{
    return atomic_load_explicit(&context->home, memory_order_relaxed) == CONTEXT_OURS ? 0 : context_make_ours(context);
}

#endif
