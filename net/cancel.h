/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cancel.h - delays pthread_cancel() while a thread holds a lock. System calls are cancellation points, and a thread
 * that is cancelled in one would never release its locks. */
#ifndef RDDP_NET_CANCEL_H
#define RDDP_NET_CANCEL_H

/* Each cancel_hold() needs a cancel_release() by the same thread; between them the thread is not cancelled. Pairs may
 * nest and overlap. */
void cancel_hold(void);
void cancel_release(void);

#endif
