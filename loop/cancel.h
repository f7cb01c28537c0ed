/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cancel.h - delays pthread_cancel() while a thread holds a lock. System calls are cancellation points, and a thread
 * that is cancelled in one would never release its locks. */
#ifndef RDDP_LOOP_CANCEL_H
#define RDDP_LOOP_CANCEL_H

#include <pthread.h>

struct cancel {
    unsigned holds; /* the locks that the thread holds */
    int was;        /* its state before the first of them */
};

/* A poller needs it every microsecond: it lies at a fixed distance from the thread's pointer. */
extern _Thread_local struct cancel cancel_mine __attribute__((tls_model("initial-exec")));

/* Each cancel_hold() needs a cancel_release() by the same thread; between them the thread is not cancelled. Pairs may
 * nest and overlap. */
static inline void cancel_hold(void)
{
    if (!cancel_mine.holds++)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_mine.was);
}

static inline void cancel_release(void)
{
    if (!--cancel_mine.holds)
        pthread_setcancelstate(cancel_mine.was, NULL);
}

#endif
