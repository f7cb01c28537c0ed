/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cancel.c - counts the locks of a thread, and allows cancellation when it holds none. */
#include "net/cancel.h"

#include <pthread.h>

static _Thread_local struct {
    unsigned holds;
    int was;
} mine;

void cancel_hold(void)
{
    if (!mine.holds++)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mine.was);
}

void cancel_release(void)
{
    if (!--mine.holds)
        pthread_setcancelstate(mine.was, NULL);
}
