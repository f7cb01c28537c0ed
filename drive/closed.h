/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closed.h - what becomes of contexts whose descriptors the program has closed. */
#ifndef RDDP_DRIVE_CLOSED_H
#define RDDP_DRIVE_CLOSED_H

#include "endpoint/objects.h"

/* For a new context, and when one was closed. The first ends all contexts whose descriptors were closed before, as does
 * a new net of streams from then on. Returns 0 or -EMFILE. */
int context_take_descriptors(void);
void context_give_descriptors(void);

/* If the descriptors are lost, and unless another thread has done it: the threads of the context are to end, its
 * connections are over, with a line in the log, and no number that it had is used any more. Returns whether that is so
 * now. For a thread that holds no lock. */
bool context_close_down(struct rddp_context *context);

/* The same of a context that a child of fork() has of its parent, and that was left. Under fork.c's lock. */
void context_close_left(struct rddp_context *context);

#endif
