/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* data.c - processes payload: gives new octets to the user at once, and moves the window with what the user keeps. */
#include <assert.h>

#include "tcp/inner.h"

/* Gives [from, to), which is new, to the user. Returns how much was taken: less if the user refuses the rest, or if it
 * cannot be recorded. */
static uint32_t data_hand_over(struct utcp *t, const struct utcp_segment *s, int64_t seq, uint64_t from, uint64_t to)
{
    struct utcp_arrival a = {
        .position = from - 1,
        .data = s->payload + (int64_t)from - seq,
        .length = (uint32_t)(to - from),
        .segment_position = (uint64_t)seq - 1,
        .segment = s->payload,
        .segment_length = s->length,
        .early = from != t->rx.next,
    };
    struct utcp_verdict v;

    if (t->option_on && s->opt.extra) {
        a.option = s->opt.extra;
        a.option_length = s->opt.extra_length;
        a.option_at = s->opt.extra_at;
    }
    if (a.early && !utcp_ooo_fits(&t->ooo, from, to))
        return 0;
    v = t->user->arrived(t->of, &a);
    assert(v.taken <= a.length && v.kept <= v.taken);
    if (!v.taken)
        return 0;
    t->count.octets_in += v.taken;
    if (a.early) {
        t->count.early_octets += v.taken;
        utcp_ooo_add(&t->ooo, from, from + v.taken, v.kept);
    } else {
        t->rx.kept += v.kept;
        t->rx.next = utcp_ooo_advance(&t->ooo, from + v.taken, &t->rx.kept);
    }
    t->count.kept_max = utcp_max(t->count.kept_max, t->rx.kept + t->ooo.kept);
    return v.taken;
}

/* Records the first part that was received before, for a DSACK (RFC 2883). */
static void note_duplicate(struct utcp *t, uint64_t from, uint64_t to)
{
    if (from < to && t->rx.dsack.from == t->rx.dsack.to)
        t->rx.dsack = (struct utcp_block){t->rx.irs + (uint32_t)from, t->rx.irs + (uint32_t)to};
    t->count.duplicates += from < to;
}

/* Processes every part of the payload that is inside the window and missing. */
static void take_payload(struct utcp *t, const struct utcp_segment *s, int64_t seq)
{
    uint64_t start = (uint64_t)seq, end = start + s->length;
    uint64_t at = utcp_max(start, t->rx.next), to = utcp_min(end, t->rx.edge), from, stop;

    if (t->rx.fin)
        to = utcp_min(to, t->rx.fin - 1);
    if (start < t->rx.next)
        note_duplicate(t, start, utcp_min(end, t->rx.next));
    for (; at < to; at = stop) {
        from = at;
        stop = to;
        if (!utcp_ooo_missing(&t->ooo, &from, &stop)) {
            note_duplicate(t, at, to);
            return;
        }
        if (from > at)
            note_duplicate(t, at, from);
        if (data_hand_over(t, s, seq, from, stop) < stop - from) {
            t->count.refused++;
            return;
        }
        /* Filling this gap may have put octets behind it in order. */
        if (t->rx.next > stop) {
            note_duplicate(t, stop, utcp_min(t->rx.next, to));
            stop = t->rx.next;
        }
    }
}

static void consume_fin(struct utcp *t, uint64_t now_us)
{
    if (!t->rx.fin || t->rx.next != t->rx.fin - 1)
        return;
    t->rx.next = t->rx.fin;
    t->due.ack = true;
    switch (t->state) {
    case UTCP_SYN_RECEIVED:
    case UTCP_ESTABLISHED:
        t->state = UTCP_CLOSE_WAIT;
        break;
    case UTCP_FIN_WAIT_1:
        t->state = UTCP_CLOSING;
        break;
    case UTCP_FIN_WAIT_2:
        t->state = UTCP_TIME_WAIT;
        t->timer.over_us = now_us + t->attr.time_wait_us;
        break;
    default:
        break;
    }
}

/* Acknowledges every second full segment, and every very long one. Acknowledges at once, and for some segments
 * afterwards, if octets arrived out of order: the peer then has a small window and waits. */
static void schedule_ack(struct utcp *t, bool in_order, uint64_t now_us)
{
    bool wrong = !in_order || t->ooo.count || t->rx.dsack.from != t->rx.dsack.to;
    uint64_t enough = utcp_min(2 * (uint64_t)t->rx.segment_max, UTCP_LONG);

    if (wrong)
        t->due.prompt = UTCP_PROMPT_ACKS;
    if (wrong || t->due.prompt || t->rx.next - t->rx.acked >= enough)
        t->due.ack = true;
    else if (t->timer.ack_us == UTCP_NEVER && t->rx.next != t->rx.acked)
        t->timer.ack_us = now_us + UTCP_DELAYED_ACK_US;
    t->due.prompt -= t->due.prompt ? 1 : 0;
}

/* Remembers the largest payload. A device may have joined several segments, so it is limited by the MTU. */
static void note_segment(struct utcp *t, uint32_t length)
{
    uint32_t heads = utcp_heads(&t->remote), most = t->attr.mtu > heads ? t->attr.mtu - heads : length;

    most -= t->stamps.on ? UTCP_STAMPS_LENGTH : 0;
    if (length > most)
        length = most;
    if (length > t->rx.segment_max)
        t->rx.segment_max = length;
}

void utcp_data(struct utcp *t, const struct utcp_segment *s, int64_t seq, uint64_t now_us)
{
    uint64_t before = t->rx.next, fin = (uint64_t)(seq + s->length) + 1;
    bool filled = t->ooo.count;

    if (t->state != UTCP_ESTABLISHED && t->state != UTCP_FIN_WAIT_1 && t->state != UTCP_FIN_WAIT_2)
        return;
    if (s->flags & UTCP_FIN && !t->rx.fin && fin - 1 <= t->rx.edge && fin - 1 >= t->rx.next &&
        (!t->ooo.count || t->ooo.range[t->ooo.first + t->ooo.count - 1].to < fin))
        t->rx.fin = fin;
    if (s->length) {
        t->due.unacked++;
        note_segment(t, s->length);
        take_payload(t, s, seq);
        utcp_window_grow(t, now_us);
        schedule_ack(t, t->rx.next > before && !filled, now_us);
    }
    consume_fin(t, now_us);
}
