/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsock_waiters.c - who waits for an rsocket, with the descriptors that each thread has for that, and until when. */
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "verbs/rsock/rsocket.h"

static pthread_once_t waiter_once = PTHREAD_ONCE_INIT;
static pthread_key_t waiter_key; /* its destructor alone is wanted */
static _Thread_local int own_fd = -1, signal_fd = -1;
static _Thread_local pid_t own_pid; /* a child shares the descriptors of its parent, and must not use them */

int64_t rs_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int rs_ms_until(int64_t until_us)
{
    const int64_t us = until_us - rs_now_us();

    if (us > INT_MAX * 1000LL)
        return INT_MAX;
    return us > 0 ? (int)((us + 999) / 1000) : 0;
}

static void waiter_end(void *unused)
{
    (void)unused;
    if (own_fd >= 0)
        close(own_fd);
    if (signal_fd >= 0)
        close(signal_fd);
    own_fd = signal_fd = -1;
}

static void waiter_init(void)
{
    pthread_key_create(&waiter_key, waiter_end);
}

int rs_waiter_fd(void)
{
    if (own_fd >= 0 && own_pid == getpid())
        return own_fd;
    pthread_once(&waiter_once, waiter_init);
    waiter_end(NULL);
    own_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    own_pid = getpid();
    pthread_setspecific(waiter_key, &own_fd);
    return own_fd;
}

int rs_waiter_signal_fd(const sigset_t *signals)
{
    signal_fd = signalfd(signal_fd, signals, SFD_NONBLOCK | SFD_CLOEXEC);
    return signal_fd;
}

void rs_waiter_clear(int fd)
{
    eventfd_t count;

    eventfd_read(fd, &count);
}

void rs_waiter_add(struct rsocket *rs, struct rs_waiter *waiter, int fd)
{
    waiter->fd = fd;
    waiter->next = rs->waiters;
    waiter->at = &rs->waiters;
    if (waiter->next)
        waiter->next->at = &waiter->next;
    rs->waiters = waiter;
}

void rs_waiter_remove(struct rs_waiter *waiter)
{
    *waiter->at = waiter->next;
    if (waiter->next)
        waiter->next->at = waiter->at;
}

void rs_wake(struct rsocket *rs, int except_fd)
{
    for (const struct rs_waiter *waiter = rs->waiters; waiter; waiter = waiter->next)
        if (waiter->fd != except_fd)
            eventfd_write(waiter->fd, 1);
}
