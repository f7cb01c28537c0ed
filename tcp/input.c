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

static void note_window(struct utcp *t, uint64_t window)
{
    t->tx.window = window;
    t->tx.window_max = utcp_max(t->tx.window_max, window);
    t->tx.wl1 = 1;
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
    note_window(t, s->window);
    if (t->timer.syns == 1)
        utcp_rtt_sample(&t->rtt, now_us - t->tx.last_us, now_us);
    /* Not after a second SYN, which did not offer it (RFC 3168 6.1.1.1). */
    t->marks.on = !t->attr.no_ecn && t->timer.syns == 1 && (s->flags & (UTCP_ECE | UTCP_CWR)) == UTCP_ECE;
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

/* Is part of the segment inside the window or at its edges? */
static bool is_in_window(const struct utcp *t, const struct utcp_segment *s, int64_t seq)
{
    int64_t end = seq + s->length + !!(s->flags & UTCP_FIN);

    /* The stream has no octet before its first. */
    return (seq >= 1 || !s->length) && seq <= (int64_t)t->rx.edge &&
           (end > seq ? end > (int64_t)t->rx.next : end >= (int64_t)t->rx.next);
}

/* RFC 5961 5.2. The peer of an early SYN must acknowledge ours. */
static bool ack_fits(struct utcp *t, const struct utcp_segment *s, uint64_t now_us)
{
    int64_t ack = utcp_number(t->tx.una, t->attr.isn, s->ack);

    if (t->state == UTCP_SYN_RECEIVED) {
        if (ack == 1)
            return true;
        t->due.reset = true;
        t->due.reset_seq = s->ack;
        return false;
    }
    if (ack <= (int64_t)t->tx.max && ack >= (int64_t)t->tx.una - (int64_t)t->tx.window_max)
        return true;
    t->count.bad_acks++;
    utcp_challenge(t, now_us);
    return false;
}

/* A segment outside of the window. One that is old as a whole tells that the peer lacks our acknowledgement: it is told
 * so, and what it sent twice (RFC 2883). */
static void on_outside(struct utcp *t, const struct utcp_segment *s, int64_t seq, uint64_t now_us)
{
    int64_t end = seq + s->length;
    bool old = s->length && end <= (int64_t)t->rx.next && seq >= 1;

    if (s->length && end <= (int64_t)t->rx.adopted)
        return;
    t->count.out_of_window++;
    if (!old && !(s->flags & UTCP_FIN && end < (int64_t)t->rx.next)) {
        utcp_challenge(t, now_us);
        return;
    }
    if (old) {
        t->rx.dsack = (struct utcp_block){s->seq, s->seq + s->length};
        t->count.duplicates++;
    }
    t->due.ack = true;
    if (t->state == UTCP_TIME_WAIT)
        t->timer.over_us = now_us + t->attr.time_wait_us;
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

/* Both ends have sent a SYN, and this segment acknowledges ours. */
static void complete(struct utcp *t, const struct utcp_segment *s, uint64_t now_us)
{
    t->tx.una = 1;
    note_window(t, s->flags & UTCP_SYN ? s->window : (uint64_t)s->window << t->tx.scale);
    utcp_established(t, now_us);
}

/* Everything about the segment was checked: it is the peer's (RFC 7323 4.3). */
static void note_alive(struct utcp *t, const struct utcp_segment *s, int64_t seq, uint64_t now_us)
{
    if (t->stamps.on && s->opt.has_stamp && seq <= (int64_t)t->rx.acked) {
        t->stamps.recent = s->opt.stamp;
        t->stamps.recent_us = now_us;
    }
    t->rx.last_us = now_us;
    utcp_touch_keep(t, now_us);
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

/* RFC 3168 6.1.3 */
static void note_mark(struct utcp *t, const struct utcp_segment *s)
{
    if (s->flags & UTCP_CWR && s->length)
        t->marks.echo = false;
    if (s->ecn != UTCP_CE)
        return;
    t->count.marks_in++;
    t->marks.echo = true;
}

/* A SYN in a synchronized state has no window to be in (RFC 5961 4.2), and needs no timestamp: the peer may have begun
 * again. The only good one repeats that of a peer whose SYN crossed ours. */
static void on_later_syn(struct utcp *t, const struct utcp_segment *s, int64_t seq, uint64_t now_us)
{
    if (t->state != UTCP_SYN_RECEIVED || seq != 0) {
        utcp_challenge(t, now_us);
    } else if (!(s->flags & UTCP_ACK)) {
        t->due.syn = true;
    } else if (ack_fits(t, s, now_us)) {
        complete(t, s, now_us);
        t->due.ack = true;
    }
}

/* All checks come before the first change: what one of them refuses leaves nothing but a count and an answer. */
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
    if ((s->flags & (UTCP_SYN | UTCP_RST)) == UTCP_SYN) {
        on_later_syn(t, s, seq, now_us);
        return;
    }
    if (!stamp_fits(t, s, now_us))
        return;
    if (s->flags & UTCP_RST) {
        if (is_in_window(t, s, seq))
            on_reset(t, seq, now_us);
        return;
    }
    if (!(s->flags & UTCP_ACK))
        return;
    if (!is_in_window(t, s, seq)) {
        if (ack_fits(t, s, now_us))
            on_outside(t, s, seq, now_us);
        return;
    }
    if (!ack_fits(t, s, now_us))
        return;
    if (t->state == UTCP_SYN_RECEIVED)
        complete(t, s, now_us);
    note_alive(t, s, seq, now_us);
    if (t->marks.on)
        note_mark(t, s);
    utcp_ack(t, s, (uint64_t)seq, now_us);
    after_fin(t, now_us);
    if (t->state != UTCP_CLOSED)
        utcp_data(t, s, seq, now_us);
}
