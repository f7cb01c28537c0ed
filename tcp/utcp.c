/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* utcp.c - begins and ends a connection, and serves its user. */
#include <assert.h>
#include <errno.h>

#include "tcp/inner.h"

void utcp_attr_default(struct utcp_attr *attr)
{
    *attr = (struct utcp_attr){
        .window = 1 << 20,
        .mtu = 1500,
        .syn_retries = 6,
        .give_up_us = 100000000, /* R2 of RFC 9293 3.8.3 */
        .keep_each_us = 10000000,
        .keep_probes = 6,
        .time_wait_us = 60000000,
    };
}

void utcp_open(struct utcp *t, const struct utcp_attr *attr, const struct utcp_buffers *buffers,
               const struct utcp_user *user, void *of)
{
    *t = (struct utcp){.user = user, .of = of, .attr = *attr, .rx.limit = UINT64_MAX};
    if (t->attr.window > UTCP_WINDOW_MAX)
        t->attr.window = UTCP_WINDOW_MAX;
    if (t->attr.window_max > UTCP_WINDOW_MAX)
        t->attr.window_max = UTCP_WINDOW_MAX;
    t->rx.scale = t->attr.no_scale ? 0 : utcp_scale_for(&t->attr);
    utcp_scoreboard_init(&t->scoreboard, buffers->sent, buffers->sents);
    utcp_ooo_init(&t->ooo, buffers->ooo, buffers->helds);
    utcp_rtt_init(&t->rtt);
    utcp_rack_init(&t->rack);
    t->timer = (struct utcp_timers){UTCP_NEVER, UTCP_NEVER, UTCP_NEVER, UTCP_NEVER, UTCP_NEVER, UTCP_NEVER, UTCP_NEVER,
                                    UTCP_NEVER, 0,          0,          0,          0,          0,          0};
    t->tx.end = 1;
}

static uint32_t default_mss(const struct utcp *t)
{
    return utcp_is_v4(&t->remote) ? UTCP_DEFAULT_MSS_V4 : UTCP_DEFAULT_MSS_V6;
}

void utcp_connect(struct utcp *t, const struct utcp_name *local, const struct utcp_name *remote)
{
    t->local = *local;
    t->remote = *remote;
    t->state = UTCP_SYN_SENT;
    t->tx.peer_mss = default_mss(t);
    t->tx.next = t->tx.max = 1;
    t->due.syn = true;
}

void utcp_established(struct utcp *t, uint64_t now_us)
{
    t->state = UTCP_ESTABLISHED;
    t->tx.mss = utcp_mss_of(t, t->attr.mtu);
    utcp_path_begin(t);
    utcp_cubic_init(&t->cubic, t->tx.mss);
    if (t->timer.syns > 1)
        t->cubic.cwnd = t->tx.mss; /* RFC 6298 5.7, RFC 5681 3.1 */
    t->timer.rto_us = UTCP_NEVER;
    t->timer.rtos = 0;
    t->timer.stalled_us = UTCP_NEVER;
    t->rx.last_us = now_us;
    t->tx.last_us = now_us;
    t->tlp.sampled = true;
    utcp_touch_keep(t, now_us);
}

void utcp_adopt(struct utcp *t, const struct utcp_handshake *h, uint64_t now_us)
{
    t->local = h->local;
    t->remote = h->remote;
    t->attr.isn = h->send_next - 1;
    t->tx.una = t->tx.next = t->tx.max = 1;
    t->tx.window = t->tx.window_max = h->window;
    t->tx.scale = h->scale;
    t->tx.peer_mss = h->mss ? h->mss : default_mss(t);
    t->rx.irs = h->receive_next - 1;
    t->rx.next = t->rx.acked = 1;
    t->rx.edge = 1 + (uint64_t)h->edge;
    t->rx.scale = h->own_scale;
    t->tx.wl1 = 1;
    t->sack = h->sack;
    t->option_on = h->option && t->attr.option_kind;
    t->stamps.on = h->stamps;
    t->marks.on = h->ecn && !t->attr.no_ecn;
    t->stamps.recent = h->stamp_recent;
    t->stamps.recent_us = h->stamp_known ? now_us : 0;
    utcp_established(t, now_us);
}

void utcp_over(struct utcp *t, int error)
{
    t->state = UTCP_CLOSED;
    t->error = error;
    t->timer.rto_us = t->timer.probe_us = t->timer.reorder_us = t->timer.persist_us = UTCP_NEVER;
    t->timer.ack_us = t->timer.keep_us = t->timer.over_us = t->timer.path_us = UTCP_NEVER;
    t->path.size = 0;
    t->due.ack = t->due.syn = t->due.probe = t->due.keep = t->tlp.due = false;
    utcp_scoreboard_clear(&t->scoreboard);
}

void utcp_send(struct utcp *t, uint64_t position)
{
    assert(!t->tx.finish && position + 1 >= t->tx.end);
    t->tx.end = position + 1;
}

void utcp_finish(struct utcp *t)
{
    t->tx.finish = true;
}

void utcp_abort(struct utcp *t)
{
    bool reset = t->state >= UTCP_SYN_RECEIVED && t->state != UTCP_TIME_WAIT;

    if (t->state == UTCP_CLOSED)
        return;
    utcp_over(t, -ECONNABORTED);
    t->due.reset = reset;
    t->due.reset_seq = t->attr.isn + (uint32_t)t->tx.max;
}

/* The window may have become larger. Tells the peer only when it is worth a packet (RFC 9293 3.8.6.2.2). */
static void offer_window(struct utcp *t)
{
    if (utcp_synchronized(t) && !t->rx.fin && utcp_rx_edge(t) > t->rx.edge &&
        utcp_rx_edge(t) - t->rx.edge >= utcp_min(t->attr.window / 2, 2 * (uint64_t)t->tx.mss) &&
        t->rx.edge - t->rx.next < t->attr.window / 2)
        t->due.ack = true;
}

void utcp_keep(struct utcp *t, uint64_t position, uint64_t octets)
{
    if (position + 1 < t->rx.next)
        t->rx.kept += octets;
    else
        utcp_ooo_keep(&t->ooo, position + 1, octets);
    t->count.kept_max = utcp_max(t->count.kept_max, t->rx.kept + t->ooo.kept);
}

void utcp_release(struct utcp *t, uint64_t octets)
{
    assert(octets <= t->rx.kept);
    t->rx.kept -= octets;
    offer_window(t);
}

void utcp_limit(struct utcp *t, uint64_t position)
{
    t->rx.limit = position == UINT64_MAX ? position : position + 1;
    offer_window(t);
}

uint64_t utcp_acked(const struct utcp *t)
{
    uint64_t number = utcp_min(t->tx.una, t->tx.end);

    return number ? number - 1 : 0;
}

bool utcp_ended(const struct utcp *t)
{
    return t->rx.fin && t->rx.next == t->rx.fin;
}

uint64_t utcp_received(const struct utcp *t)
{
    return t->rx.next ? t->rx.next - 1 - utcp_ended(t) : 0;
}

uint64_t utcp_highest(const struct utcp *t)
{
    return t->ooo.count ? t->ooo.range[t->ooo.first + t->ooo.count - 1].to - 1 : utcp_received(t);
}

uint64_t utcp_unsent(const struct utcp *t)
{
    return t->tx.end > t->tx.next ? t->tx.end - t->tx.next : 0;
}

bool utcp_has(const struct utcp *t, uint64_t from, uint64_t to)
{
    from++; /* the SYN is number 0 */
    to++;
    return !utcp_ooo_missing(&t->ooo, &from, &to);
}

uint32_t utcp_emss(const struct utcp *t, uint32_t option_length)
{
    return t->tx.mss - option_length;
}
