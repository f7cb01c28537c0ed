/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* input.c - processes a segment in the order of RFC 9293 3.10.7, with the checks of RFC 7323 and RFC 5961. */
#include <errno.h>

#include "tcp/inner.h"

enum { STAMP_OLD_US = 24 * 86400 };

/* Processes the peer's SYN: what both ends offered may be used from now on. */
static void agree(struct utcp *t, const struct utcp_segment *s, uint64_t now_us)
{
    t->rx.irs = s->seq;
    t->rx.next = 1;
    t->rx.acked = 0;
    if (s->opt.has_mss)
        t->tx.peer_mss = s->opt.mss;
    t->sack = s->opt.sack_permitted && !t->attr.no_sack;
    t->option_on = t->attr.option_kind && s->opt.extra && s->opt.extra_length == 2;
    t->stamps.on = s->opt.has_stamp && !t->attr.no_stamps;
    if (t->stamps.on) {
        t->stamps.recent = s->opt.stamp;
        t->stamps.recent_us = now_us;
    }
    if (s->opt.has_wscale && !t->attr.no_scale)
        t->tx.scale = s->opt.wscale;
    else
        t->rx.scale = 0;
    t->rx.edge = 1 + utcp_min(t->attr.window, UINT16_MAX);
}

static void note_window(struct utcp *t, const struct utcp_segment *s, uint64_t window)
{
    t->tx.window = window;
    t->tx.window_max = utcp_max(t->tx.window_max, window);
    t->tx.wl1 = 1;
    t->tx.wl2 = t->tx.una;
    (void)s;
}

/* RFC 9293 3.10.7.3 */
static void in_syn_sent(struct utcp *t, const struct utcp_segment *s, uint64_t now_us)
{
    if (s->flags & UTCP_ACK && s->ack != t->attr.isn + 1) {
        if (!(s->flags & UTCP_RST)) {
            t->due.reset = true;
            t->due.reset_seq = s->ack;
        }
        return;
    }
    if (s->flags & UTCP_RST) {
        if (s->flags & UTCP_ACK)
            utcp_over(t, -ECONNREFUSED);
        return;
    }
    if (!(s->flags & UTCP_SYN))
        return;
    agree(t, s, now_us);
    if (!(s->flags & UTCP_ACK)) {
        t->state = UTCP_SYN_RECEIVED;
        t->due.syn = true;
        return;
    }
    t->tx.una = 1;
    note_window(t, s, s->window);
    if (t->timer.syns == 1)
        utcp_rtt_sample(&t->rtt, now_us - t->tx.last_us, now_us);
    utcp_established(t, now_us);
    t->due.ack = true;
}

/* RFC 7323 5.3 R1. Returns false for an old duplicate, or if the timestamp is missing that every segment must have. */
static bool stamp_fits(struct utcp *t, const struct utcp_segment *s, uint64_t now_us)
{
    if (!t->stamps.on || s->flags & UTCP_RST)
        return true;
    if (!s->opt.has_stamp) {
        t->count.paws++;
        return false;
    }
    if (!t->stamps.recent_us || now_us - t->stamps.recent_us > STAMP_OLD_US * 1000000ULL ||
        (int32_t)(s->opt.stamp - t->stamps.recent) >= 0)
        return true;
    t->count.paws++;
    utcp_challenge(t, now_us);
    return false;
}

static void note_stamp(struct utcp *t, const struct utcp_segment *s, int64_t seq, uint64_t now_us)
{
    if (!t->stamps.on || !s->opt.has_stamp || seq > (int64_t)t->rx.acked)
        return;
    t->stamps.recent = s->opt.stamp;
    t->stamps.recent_us = now_us;
}

/* Is part of the segment inside the window or at its edges? */
static bool acceptable(struct utcp *t, const struct utcp_segment *s, int64_t seq, uint64_t now_us)
{
    uint32_t length = s->length + !!(s->flags & UTCP_SYN) + !!(s->flags & UTCP_FIN);
    int64_t end = seq + length;

    /* The stream has no octet before its first. */
    if ((seq >= 1 || !s->length) && seq <= (int64_t)t->rx.edge &&
        (length ? end > (int64_t)t->rx.next : end >= (int64_t)t->rx.next))
        return true;
    if (s->flags & UTCP_RST || (s->length && end <= (int64_t)t->rx.adopted))
        return false;
    t->count.out_of_window++;
    if (s->length && end <= (int64_t)t->rx.next && seq >= 1) {
        /* The whole segment is old: the peer must be told so, and what it sent twice (RFC 2883). */
        t->rx.dsack = (struct utcp_block){s->seq, s->seq + s->length};
        t->count.duplicates++;
        t->due.ack = true;
        t->timer.over_us = t->state == UTCP_TIME_WAIT ? now_us + t->attr.time_wait_us : t->timer.over_us;
    } else if (s->flags & UTCP_FIN && end <= (int64_t)t->rx.next) {
        t->due.ack = true;
        t->timer.over_us = t->state == UTCP_TIME_WAIT ? now_us + t->attr.time_wait_us : t->timer.over_us;
    } else {
        utcp_challenge(t, now_us);
    }
    return false;
}

/* RFC 5961 3.2 */
static void on_reset(struct utcp *t, int64_t seq, uint64_t now_us)
{
    if (seq != (int64_t)t->rx.next)
        utcp_challenge(t, now_us);
    else if (t->state == UTCP_SYN_RECEIVED)
        utcp_over(t, -ECONNREFUSED);
    else
        utcp_over(t, t->state == UTCP_TIME_WAIT || t->state == UTCP_LAST_ACK ? 0 : -ECONNRESET);
}

/* Both ends have sent a SYN: does this segment acknowledge ours? Then the connection is established. */
static bool completes(struct utcp *t, const struct utcp_segment *s, uint64_t now_us)
{
    if (s->ack != t->attr.isn + 1) {
        t->due.reset = true;
        t->due.reset_seq = s->ack;
        return false;
    }
    t->tx.una = 1;
    note_window(t, s, s->flags & UTCP_SYN ? s->window : (uint64_t)s->window << t->tx.scale);
    utcp_established(t, now_us);
    return true;
}

static void after_fin(struct utcp *t, uint64_t now_us)
{
    if (!t->tx.finish || t->tx.una != t->tx.end + 1)
        return;
    if (t->state == UTCP_FIN_WAIT_1) {
        t->state = UTCP_FIN_WAIT_2;
    } else if (t->state == UTCP_CLOSING) {
        t->state = UTCP_TIME_WAIT;
        t->timer.over_us = now_us + t->attr.time_wait_us;
    } else if (t->state == UTCP_LAST_ACK) {
        utcp_over(t, 0);
    }
}

void utcp_input(struct utcp *t, const struct utcp_segment *s, uint64_t now_us)
{
    int64_t seq;

    t->count.segments_in++;
    if (t->state == UTCP_CLOSED)
        return;
    if (t->state == UTCP_SYN_SENT) {
        in_syn_sent(t, s, now_us);
        return;
    }
    seq = utcp_number(t->rx.next, t->rx.irs, s->seq);
    if (t->state == UTCP_SYN_RECEIVED && s->flags & UTCP_SYN && seq == 0 && !(s->flags & UTCP_RST)) {
        /* The peer's SYN again, or with the acknowledgement of ours. */
        if (!(s->flags & UTCP_ACK) || completes(t, s, now_us))
            *(s->flags & UTCP_ACK ? &t->due.ack : &t->due.syn) = true;
        return;
    }
    if (!stamp_fits(t, s, now_us) || !acceptable(t, s, seq, now_us))
        return;
    if (s->flags & UTCP_RST) {
        on_reset(t, seq, now_us);
        return;
    }
    if (s->flags & UTCP_SYN) {
        utcp_challenge(t, now_us); /* RFC 5961 4.2 */
        return;
    }
    if (!(s->flags & UTCP_ACK) || (t->state == UTCP_SYN_RECEIVED && !completes(t, s, now_us)))
        return;
    note_stamp(t, s, seq, now_us);
    t->rx.last_us = now_us;
    utcp_touch_keep(t, now_us);
    if (!utcp_ack(t, s, (uint64_t)seq, now_us))
        return;
    after_fin(t, now_us);
    if (t->state != UTCP_CLOSED)
        utcp_data(t, s, seq, now_us);
}
