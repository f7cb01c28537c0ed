/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ack.c - processes an acknowledgement: what was delivered, what is lost, and how much may be in flight now. */
#include <assert.h>

#include "tcp/inner.h"

/* The information of one acknowledgement. */
struct utcp_news {
    uint64_t acked, delivered; /* octets acknowledged in order; those and octets in new SACK blocks */
    uint64_t rtt_us;           /* of the latest segment that was sent once; 0: none */
    uint64_t echo_us;          /* when we sent what the peer echoes; 0: unknown */
    bool dsack;
};

/* A timestamp echo refers to the segment that moved the left edge (RFC 7323 4.3). For segments in SACK blocks `echo_us`
 * is 0. */
static void ack_deliver(struct utcp *t, const struct utcp_sent *s, struct utcp_news *n, uint64_t echo_us,
                        uint64_t now_us)
{
    uint64_t rtt_us = utcp_max(now_us - s->at_us, 1);

    n->delivered += s->length;
    if (!(s->flags & UTCP_SENT_RETRANS) && (!n->rtt_us || rtt_us < n->rtt_us))
        n->rtt_us = rtt_us;
    utcp_rack_delivered(&t->rack, s, &t->rtt, echo_us, now_us);
}

static void take_cumulative(struct utcp *t, uint64_t ack, struct utcp_news *n, uint64_t now_us)
{
    while (t->scoreboard.count) {
        struct utcp_sent *s = utcp_scoreboard_at(&t->scoreboard, 0);

        if (s->from + s->length > ack)
            break;
        if (!(s->flags & UTCP_SENT_SACKED))
            ack_deliver(t, s, n, n->echo_us, now_us);
        utcp_scoreboard_remove(&t->scoreboard);
    }
    n->acked = ack - t->tx.una;
    t->tx.una = ack;
    t->tx.next = utcp_max(t->tx.next, ack);
}

static void take_block(struct utcp *t, uint64_t from, uint64_t to, struct utcp_news *n, uint64_t now_us)
{
    for (uint32_t i = utcp_scoreboard_find(&t->scoreboard, from); i < t->scoreboard.count; i++) {
        struct utcp_sent *s = utcp_scoreboard_at(&t->scoreboard, i);

        if (s->from + s->length > to)
            break;
        if (s->from < from || s->flags & UTCP_SENT_SACKED)
            continue;
        ack_deliver(t, s, n, 0, now_us);
        utcp_scoreboard_mark_sacked(&t->scoreboard, s);
    }
}

/* RFC 2883 4: does the first block repeat octets that were acknowledged before, or that are in the second block? */
static bool is_dsack(const struct utcp *t, const struct utcp_segment *s, int64_t from, int64_t to)
{
    return to <= (int64_t)t->tx.una ||
           (s->opt.sacks > 1 && utcp_number(t->tx.una, t->attr.isn, s->opt.sack[1].from) <= from &&
            utcp_number(t->tx.una, t->attr.isn, s->opt.sack[1].to) >= to);
}

/* Did our probe, which repeated old octets, end there? */
static bool is_probe(const struct utcp *t, int64_t end)
{
    return t->tlp.end && t->tlp.is_retrans && (uint64_t)end == t->tlp.end;
}

/* Blocks arrive with the latest first. They are processed in stream order, so that older blocks do not look like
 * reordering on the path. */
static void take_sack(struct utcp *t, const struct utcp_segment *s, struct utcp_news *n, uint64_t now_us)
{
    struct {
        uint64_t from, to;
    } block[UTCP_SACKS];
    uint32_t blocks = 0, at;

    for (uint32_t i = 0; t->sack && i < s->opt.sacks; i++) {
        int64_t from = utcp_number(t->tx.una, t->attr.isn, s->opt.sack[i].from);
        int64_t to = utcp_number(t->tx.una, t->attr.isn, s->opt.sack[i].to);

        if (from < 1 || from >= to || to > (int64_t)t->tx.max)
            continue;
        if (i == 0 && is_dsack(t, s, from, to)) {
            n->dsack = true;
            if (!is_probe(t, to)) /* received twice because of our own probe */
                utcp_rack_dsack(&t->rack, t->tx.una, t->tx.next);
            continue;
        }
        for (at = blocks++; at && block[at - 1].from > (uint64_t)from; at--)
            block[at] = block[at - 1];
        block[at].from = (uint64_t)from;
        block[at].to = (uint64_t)to;
    }
    for (uint32_t i = 0; i < blocks; i++)
        take_block(t, block[i].from, block[i].to, n, now_us);
}

/* RFC 8985 7.4.2 */
static void take_probe(struct utcp *t, const struct utcp_news *n, bool duplicate)
{
    struct utcp_tlp *p = &t->tlp;

    if (!p->end || t->tx.una < p->end)
        return;
    if (!p->is_retrans || n->dsack) {
        p->end = 0;
    } else if (t->tx.una > p->end) {
        p->end = 0;
        if (!t->recovery.on) {
            utcp_cubic_congested(&t->cubic, t->cubic.cwnd);
            t->cubic.cwnd = t->cubic.ssthresh;
        }
    } else if (duplicate) {
        p->end = 0;
    }
}

static void enter_recovery(struct utcp *t)
{
    struct utcp_recovery *r = &t->recovery;

    utcp_cubic_congested(&t->cubic, t->cubic.cwnd);
    r->on = r->first = true;
    r->timed_out = false;
    r->point = t->tx.next;
    r->prr = (struct utcp_prr){.flight = t->tx.next - t->tx.una};
    t->tlp.end = 0;
    t->timer.probe_us = UTCP_NEVER;
    utcp_slowed_down(t);
}

void utcp_slowed_down(struct utcp *t)
{
    t->marks.say = t->marks.on;
    t->marks.point = t->tx.next;
}

/* The peer tells of a mark: that is answered like a loss, once a round trip (RFC 3168 6.1.2, RFC 9438 4.6). */
static void take_mark(struct utcp *t)
{
    if (t->recovery.on || t->tx.una < t->marks.point)
        return;
    t->count.marks_answered++;
    utcp_cubic_congested(&t->cubic, t->cubic.cwnd);
    t->cubic.cwnd = t->cubic.ssthresh;
    utcp_slowed_down(t);
}

void utcp_detect_losses(struct utcp *t, uint64_t now_us)
{
    uint64_t later_us = 0;

    /* Without SACK there are no times to compare. */
    if (t->sack)
        later_us = utcp_rack_detect(&t->rack, &t->scoreboard, &t->rtt, t->recovery.on, now_us);
    t->timer.reorder_us = later_us ? now_us + later_us : UTCP_NEVER;
    if (later_us)
        t->timer.probe_us = UTCP_NEVER;
    if (t->scoreboard.lost && !t->recovery.on)
        enter_recovery(t);
}

/* A peer without SACK: three duplicate acknowledgements, then one segment for each partial acknowledgement (RFC
 * 6582) that ends a segment: one octet at a time would have the same segment sent again for each. */
static void without_sack(struct utcp *t, const struct utcp_news *n, bool duplicate)
{
    struct utcp_recovery *r = &t->recovery;

    if (t->sack || !t->scoreboard.count)
        return;
    r->duplicates = n->acked ? 0 : r->duplicates + duplicate;
    if ((!r->on && r->duplicates == UTCP_DUP_THRESHOLD) || (r->on && n->delivered && t->tx.una < r->point))
        utcp_scoreboard_mark_lost(&t->scoreboard, utcp_scoreboard_at(&t->scoreboard, 0));
}

static void leave_recovery(struct utcp *t)
{
    struct utcp_recovery *r = &t->recovery;

    if (!r->on || t->tx.una < r->point)
        return;
    if (!r->timed_out)
        t->cubic.cwnd = t->cubic.ssthresh;
    *r = (struct utcp_recovery){.limited = r->limited};
    utcp_rack_recovered(&t->rack);
}

static void adjust_window(struct utcp *t, const struct utcp_news *n, bool limited, uint32_t lost, uint64_t now_us)
{
    struct utcp_recovery *r = &t->recovery;

    if (n->rtt_us)
        utcp_cubic_round_trip(&t->cubic, n->rtt_us, t->tx.una, t->tx.next);
    if (r->on && !r->timed_out) {
        if (n->delivered || r->first)
            t->cubic.cwnd = utcp_max(utcp_prr_window(&r->prr, &t->cubic, n->delivered, t->scoreboard.flight,
                                                     n->acked && t->scoreboard.lost <= lost),
                                     t->tx.mss);
    } else if (n->acked && limited) {
        utcp_cubic_acked(&t->cubic, n->acked, t->rtt.srtt_us, now_us);
    }
}

/* RFC 9293 3.10.7.4. Returns whether the peer's window changed. SND.WL2 is not kept: it is never above SND.UNA. */
static bool take_window(struct utcp *t, const struct utcp_segment *s, uint64_t seq, uint64_t ack)
{
    uint64_t before = t->tx.window;

    if (ack < t->tx.una || (int64_t)seq < (int64_t)t->tx.wl1)
        return false;
    t->tx.window = (uint64_t)s->window << t->tx.scale;
    t->tx.window_max = utcp_max(t->tx.window_max, t->tx.window);
    t->tx.wl1 = seq;
    if (t->tx.window != before)
        t->timer.persists = 0; /* while it stays closed, the probes come at ever longer intervals (3.8.6.1) */
    return t->tx.window != before;
}

/* Draws the conclusions from what was delivered. */
static void conclude(struct utcp *t, const struct utcp_news *n, bool duplicate, bool limited, uint64_t now_us)
{
    uint32_t lost = t->scoreboard.lost;

    if (n->rtt_us) {
        utcp_rtt_sample(&t->rtt, n->rtt_us, now_us);
        t->tlp.sampled = true;
    }
    /* Only a timestamp tells about a segment that was sent twice. It is too coarse to measure with, but shows that
     * there was a round trip. */
    t->tlp.sampled |= n->acked && n->echo_us;
    take_probe(t, n, duplicate);
    if (n->acked)
        utcp_undo_judge(t, n->echo_us);
    leave_recovery(t);
    without_sack(t, n, duplicate);
    utcp_detect_losses(t, now_us);
    adjust_window(t, n, limited, lost, now_us);
    if (!n->acked)
        return;
    utcp_path_acked(t, now_us);
    t->timer.rtos = t->timer.persists = 0;
    t->timer.base_us = 0;
    t->timer.stalled_us = t->scoreboard.count ? now_us : UTCP_NEVER;
    utcp_arm(t, now_us);
}

void utcp_ack(struct utcp *t, const struct utcp_segment *s, uint64_t seq, uint64_t now_us)
{
    int64_t ack = utcp_number(t->tx.una, t->attr.isn, s->ack);
    struct utcp_news n = {0};
    bool limited, duplicate, window;

    window = take_window(t, s, seq, (uint64_t)ack);
    if (t->tx.window == 0 || !t->scoreboard.count)
        t->timer.stalled_us = UTCP_NEVER; /* the peer has answered, and may take its time */
    if (ack < (int64_t)t->tx.una)
        return;
    if (t->stamps.on && s->opt.has_stamp)
        n.echo_us = (now_us / UTCP_STAMP_US - (uint32_t)(utcp_stamp_now(t, now_us) - s->opt.echo)) * UTCP_STAMP_US;
    /* Did the window limit sending? Either the acknowledged octets had been held back by it, or in slow start half of
     * it was in flight. */
    limited = t->tx.una <= t->recovery.limited ||
              (t->cubic.cwnd < t->cubic.ssthresh && t->cubic.cwnd < 2 * t->scoreboard.flight);
    duplicate = (uint64_t)ack == t->tx.una && !s->length && !window && t->scoreboard.count && !s->opt.sacks;
    take_cumulative(t, (uint64_t)ack, &n, now_us);
    take_sack(t, s, &n, now_us);
    if (n.acked || n.delivered || duplicate || n.dsack)
        conclude(t, &n, duplicate, limited, now_us);
    if (t->marks.on && s->flags & UTCP_ECE)
        take_mark(t);
}
