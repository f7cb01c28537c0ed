/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_progress.c - when a net looks for packets: it polls while they follow each other closely, else it is woken.
 *
 * The sender of a packet to a device that is watched must wake the reader, or at least find out that it is awake: one
 * twentieth of what a packet of 1500 octets costs its sender. So a device is not watched while it is polled. */
#include <errno.h>

#include "stream/inner.h"

enum { LINGER_US = 50, LINGER_VAIN_MAX = 6, LOOK_US = 5, UNWATCHED_SLEEP_MS = 1, LOOK_AGAIN_MS = 10000 };

int rddp_stream_net_fd(struct rddp_stream_net *net)
{
    int error;

    if (!stream_net_check(net))
        return -ENODEV;
    error = stream_net_watch(net);
    net->stays_watched = true;
    return error ? error : net->reactor.epoll_fd;
}

/* Looks for packets and for timers that are due, without sleeping. Returns whether there were any, or never will be. */
static bool net_look(struct rddp_stream_net *net)
{
    static const _Atomic uint32_t no_waiters;
    bool called;

    net->batch = 0;
    if (!stream_net_check(net))
        return true;
    if (!net->is_watched && !net->is_gone)
        stream_net_receive(net);
    called = reactor_run(&net->reactor, &no_waiters) || net->batch;
    if (!called)
        net->empty_us = reactor_now_us();
    if (net->batch > 1 && net->is_watched && !net->stays_watched) {
        reactor_unwatch(&net->reactor, &net->watch);
        net->is_watched = false;
    }
    return called;
}

/* Packets often come soon after the last. But where they do not, looking for them is a waste: after each look in vain
 * there are twice as many sleeps without one. */
static bool net_linger(struct rddp_stream_net *net)
{
    uint64_t now_us = reactor_now_us(), end_us = now_us + LINGER_US;

    if (net->linger_skips) {
        net->linger_skips--;
        return false;
    }
    while (now_us < end_us) {
        now_us = reactor_spin(net->empty_us + LOOK_US);
        if (net_look(net)) {
            net->linger_vain = 0;
            return true;
        }
    }
    if (net->linger_vain < LINGER_VAIN_MAX)
        net->linger_vain++;
    net->linger_skips = (1U << net->linger_vain) - 1;
    return false;
}

/* Returns false after a signal. The program may close descriptors between a look at them and the sleep, which is cut
 * short for that. */
static bool net_sleep(struct rddp_stream_net *net, int timeout_ms)
{
    bool is_long = timeout_ms < 0 || timeout_ms > LOOK_AGAIN_MS;

    if (!stream_net_check(net))
        return true;
    errno = 0;
    return reactor_sleep(&net->reactor, is_long ? LOOK_AGAIN_MS : timeout_ms) || errno != EINTR;
}

static int net_work(struct rddp_stream_net *net, int timeout_ms)
{
    bool looked = timeout_ms && !net->is_watched && reactor_now_us() < net->empty_us + LOOK_US;

    if (!looked && (net_look(net) || !timeout_ms))
        return 0;
    if (!net->is_gone && net_linger(net))
        return 0;
    if (stream_net_watch(net)) /* no memory for it */
        timeout_ms = UNWATCHED_SLEEP_MS;
    if (!net_sleep(net, timeout_ms))
        return -EINTR;
    net_look(net);
    return 0;
}

int rddp_stream_progress(struct rddp_stream_net *net, int timeout_ms)
{
    int error = net_work(net, timeout_ms);

    return net->is_gone ? -ENODEV : error;
}
