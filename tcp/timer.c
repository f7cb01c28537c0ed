/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timer.c - what is done because nothing arrived: time-outs, probes, delayed acknowledgements, keep-alive. */
#include <errno.h>

#include "tcp/inner.h"

enum { SHORT_RTOS = 4 }; /* then the peer is not only unlucky */

/* RFC 8985 7.2. A probe with new octets helps even if the peer delays the acknowledgement of the only segment before
 * it. */
static uint64_t probe_delay_us(const struct utcp *t)
{
    uint64_t delay_us = t->rtt.srtt_us ? 2 * t->rtt.srtt_us : UTCP_HANDSHAKE_PROBE_US;

    if (t->rtt.srtt_us && t->board.count == 1 && t->tx.end <= t->tx.next)
        delay_us += UTCP_PEER_DELAY_US;
    return utcp_max(delay_us, UTCP_PROBE_MIN_US);
}

/* The document leaves recovery to the reordering timer; we probe then, too. A host that acknowledges a batch of packets
 * at once may report a whole flight in one packet, which may be lost; and so may a retransmission. */
void utcp_arm_probe(struct utcp *t, uint64_t now_us)
{
    t->timer.probe_us = UTCP_NEVER;
    if (t->board.flight && t->sack && !t->recovery.timed_out && !t->tlp.end && t->tlp.sampled)
        t->timer.probe_us = utcp_min(now_us + probe_delay_us(t), t->timer.rto_us);
}

/* Each time-out is twice the last (RFC 6298 5.5). */
static uint64_t backed_off_us(const struct utcp *t)
{
    if (!t->timer.base_us || t->timer.rtos >= SHORT_RTOS)
        return utcp_rtt_backed_off(&t->rtt, t->timer.rtos);
    return t->timer.base_us << t->timer.rtos;
}

void utcp_arm(struct utcp *t, uint64_t now_us)
{
    t->timer.rto_us = t->board.count ? now_us + backed_off_us(t) : UTCP_NEVER;
    utcp_arm_probe(t, now_us);
}

/* RFC 5961 7: at most UTCP_CHALLENGES per second. */
void utcp_challenge(struct utcp *t, uint64_t now_us)
{
    if (now_us - t->due.challenge_us >= 1000000) {
        t->due.challenge_us = now_us;
        t->due.challenges = 0;
    }
    if (t->due.challenges >= UTCP_CHALLENGES)
        return;
    t->due.challenges++;
    t->count.challenges++;
    t->due.ack = true;
}

void utcp_touch_keep(struct utcp *t, uint64_t now_us)
{
    t->timer.keeps = 0;
    t->timer.keep_us = t->attr.keep_idle_us ? now_us + t->attr.keep_idle_us : UTCP_NEVER;
}

uint64_t utcp_deadline(const struct utcp *t)
{
    const struct utcp_timers *m = &t->timer;
    uint64_t at_us = utcp_min(utcp_min(m->rto_us, m->probe_us), utcp_min(m->reorder_us, m->persist_us));

    return utcp_min(utcp_min(at_us, m->ack_us), utcp_min(m->keep_us, m->over_us));
}

static bool timer_due(uint64_t *at_us, uint64_t now_us)
{
    if (*at_us > now_us)
        return false;
    *at_us = UTCP_NEVER;
    return true;
}

/* The same for a timer that waits for the peer. If it comes late this process was not running, and what the peer said
 * meanwhile is still to be read: that time does not count against it. */
static bool peer_due(struct utcp_timers *m, uint64_t *at_us, uint64_t now_us)
{
    if (*at_us > now_us)
        return false;
    if (m->stalled_us != UTCP_NEVER)
        m->stalled_us = utcp_min(m->stalled_us + (now_us - *at_us), now_us);
    *at_us = UTCP_NEVER;
    return true;
}

/* RFC 8985 6.3, RFC 6298 5 */
static void on_rto(struct utcp *t, uint64_t now_us)
{
    struct utcp_recovery *r = &t->recovery;
    uint64_t recent_us = t->rack.rtt_us ? t->rack.rtt_us + t->rtt.min_us / 4 : 0;

    t->count.timeouts++;
    if (utcp_board_at(&t->board, 0)->flags & UTCP_SENT_SACKED)
        utcp_board_renege(&t->board);
    for (uint32_t i = 0; i < t->board.count; i++) {
        struct utcp_sent *s = utcp_board_at(&t->board, i);

        if (i == 0 || s->at_us + recent_us <= now_us)
            utcp_board_mark_lost(&t->board, s);
    }
    if (!r->on)
        utcp_undo_keep(t);
    else if (!r->timed_out)
        t->undo.on = false;
    if (!(r->on && r->timed_out))
        utcp_cubic_congested(&t->cubic, t->cubic.cwnd);
    t->cubic.cwnd = t->board.flight + t->tx.mss;
    *r = (struct utcp_recovery){.on = true, .timed_out = true, .first = true, .point = t->tx.next};
    t->tlp = (struct utcp_tlp){0};
    t->timer.reorder_us = t->timer.probe_us = UTCP_NEVER;
    t->timer.rtos++;
    utcp_arm(t, now_us);
}

static void on_syn_rto(struct utcp *t)
{
    if (t->timer.syns > t->attr.syn_retries)
        utcp_over(t, -ETIMEDOUT);
    else
        t->due.syn = true;
}

static void on_persist(struct utcp *t)
{
    t->timer.persists++;
    t->due.probe = true;
}

static void on_keep(struct utcp *t, uint64_t now_us)
{
    if (t->timer.keeps >= t->attr.keep_probes) {
        utcp_abort(t);
        t->error = -ETIMEDOUT;
        return;
    }
    t->timer.keeps++;
    t->timer.keep_us = now_us + t->attr.keep_each_us;
    t->due.keep = true;
}

/* The peer is about to be asked again. Returns whether it has been asked for so long that it must be gone. */
static bool gives_up(struct utcp *t, uint64_t now_us)
{
    if (t->timer.stalled_us == UTCP_NEVER)
        t->timer.stalled_us = now_us;
    if (now_us - t->timer.stalled_us <= t->attr.give_up_us)
        return false;
    utcp_abort(t);
    t->error = -ETIMEDOUT;
    return true;
}

void utcp_timeout(struct utcp *t, uint64_t now_us)
{
    struct utcp_timers *m = &t->timer;

    if (timer_due(&m->over_us, now_us)) {
        utcp_over(t, 0);
        return;
    }
    if (timer_due(&m->ack_us, now_us))
        t->due.ack = true;
    if (timer_due(&m->reorder_us, now_us))
        utcp_detect_losses(t, now_us);
    if (timer_due(&m->probe_us, now_us))
        t->tlp.due = true;
    if (peer_due(m, &m->rto_us, now_us)) {
        if (utcp_synchronized(t) && gives_up(t, now_us))
            return;
        if (!utcp_synchronized(t))
            on_syn_rto(t);
        else if (t->board.count)
            on_rto(t, now_us);
    }
    if (peer_due(m, &m->persist_us, now_us)) {
        if (gives_up(t, now_us))
            return;
        on_persist(t);
    }
    if (timer_due(&m->keep_us, now_us))
        on_keep(t, now_us);
}
