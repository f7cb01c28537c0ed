/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cancel.c - counts what a thread holds, and lets it be cancelled when that is nothing. */
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
