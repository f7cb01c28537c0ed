/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* close.c - connections end: what was sent leaves first, and the peer is told. */
#include <errno.h>
#include <unistd.h>

#include "verbs/rsock/rsock_datagram.h"

enum {
    LINGER_MS = 30000,
    LINGER_NONBLOCKING_MS = 1000,
    LINGER_DATAGRAM_MS = 1000
}; /* for a peer that does not take what was sent */

static bool has_place(const struct rsocket *rs)
{
    return rs->out.slots || rs->state != RS_CONNECTED;
}

static bool is_sent(const struct rsocket *rs)
{
    return rs->out.slots == rs->sizes.send_queue || rs->state == RS_FAILED;
}

static bool is_past_acceptance(const struct rsocket *rs)
{
    return rs->state != RS_ACCEPTING;
}

/* When a call that ends a connection gives up its peer. */
static int64_t linger_until(const struct rsocket *rs)
{
    int64_t ms = rs->is_nonblocking ? LINGER_NONBLOCKING_MS : LINGER_MS;

    if (rs->options.linger.l_onoff)
        ms = rs->options.linger.l_linger * 1000LL;
    return rs_now_us() + ms * 1000;
}

static void say_last(struct rsocket *rs, enum rs_control what, int64_t until_us)
{
    if (!rs_wait(rs, has_place, false, rs_ms_until(until_us)) && rs->state == RS_CONNECTED)
        rs_post_message(rs, RS_CONTROL, what);
    if (what == RS_CONTROL_DISCONNECT && rs->state == RS_CONNECTED)
        rs->state = RS_OVER;
}

static void shut_halves(struct rsocket *rs, int how)
{
    if (how != SHUT_WR) {
        rs->read_shut = true;
        rs_consume(rs, rs->in.ready);
    }
    if (how == SHUT_RD && !rs->write_shut)
        return;
    rs->write_shut = true;
    say_last(rs, rs->read_shut || rs->peer_is_done ? RS_CONTROL_DISCONNECT : RS_CONTROL_SHUTDOWN, linger_until(rs));
}

int rshutdown(int socket, int how)
{
    struct rsocket *rs = rs_get(socket);
    int error = 0;

    if (!rs)
        return -1;
    rs_lock(rs);
    if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
        error = EINVAL;
    if (!error) /* what was accepted is connected in a moment */
        error = rs_wait_connected(rs, rs->state != RS_ACCEPTING || rs->is_nonblocking);
    if (error == EAGAIN)
        error = ENOTCONN;
    if (!error) {
        rs_advance(rs);
        if (rs->state == RS_CONNECTED)
            shut_halves(rs, how);
        rs_wake(rs, -1);
    }
    return rs_leave(rs, error);
}

/* The owner's last call. What was accepted is connected in a moment, and its peer learns of an end in order. */
static void end_connection(struct rsocket *rs)
{
    const int64_t until_us = linger_until(rs);

    if (rs->state == RS_DATAGRAM)
        rs_wait(rs, rs_datagram_is_sent, false, LINGER_DATAGRAM_MS);
    if (rs->state == RS_ACCEPTING)
        rs_wait(rs, is_past_acceptance, false, rs_ms_until(until_us));
    if (rs->state == RS_CONNECTED) {
        rs->write_shut = true;
        say_last(rs, RS_CONTROL_DISCONNECT, until_us);
    }
    if (rs->state == RS_OVER) {
        rs_wait(rs, is_sent, false, rs_ms_until(until_us));
        rdma_disconnect(rs->id);
    }
    if (rs->state != RS_OVER)
        rs->state = RS_FAILED;
    rs_wake(rs, -1);
}

int rclose(int socket)
{
    struct rsocket *rs = rs_withdraw(socket);

    if (!rs)
        return -1;
    if (rs->owner == getpid()) { /* in a child the lock may be that of a thread it does not have */
        rs_lock(rs);
        end_connection(rs);
        rs_unlock(rs);
    }
    rs_put(rs);
    return 0;
}

/* A program that ends leaves its sockets to the kernel, which closes them in order; so are these. */
static void end_at_exit(struct rsocket *rs)
{
    if (pthread_mutex_trylock(&rs->lock))
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &rs->cancel_state);
    if (rs->state == RS_CONNECTED && rs->out.slots)
        rs_post_message(rs, RS_CONTROL, RS_CONTROL_DISCONNECT);
    if (rs->state == RS_CONNECTED)
        rdma_disconnect(rs->id);
    rs_unlock(rs);
}

__attribute__((destructor)) static void end_all(void)
{
    rs_each(end_at_exit);
}
