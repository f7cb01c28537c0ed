/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cancel.h - pthread_cancel() takes no thread away while it holds what others need: system calls are cancellation
 * points, and a thread that ends in one would never let go. */
#ifndef RDDP_NET_CANCEL_H
#define RDDP_NET_CANCEL_H

/* Each cancel_hold() of a thread wants one cancel_release(); in between the thread is not cancelled. They nest, in any
 * order. */
void cancel_hold(void);
void cancel_release(void);

#endif
