/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timer.c - what is done because nothing arrived: time-outs, probes, delayed acknowledgements, keep-alive. */
#include <errno.h>

#include "tcp/inner.h"

uint64_t utcp_deadline(const struct utcp *t)
{
    const struct utcp_timers *m = &t->timer;
    uint64_t at_us = utcp_min(utcp_min(m->rto_us, m->probe_us), utcp_min(m->reorder_us, m->persist_us));

    at_us = utcp_min(at_us, utcp_min(m->ack_us, m->path_us));
    return utcp_min(at_us, utcp_min(m->keep_us, m->over_us));
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
    if (utcp_scoreboard_at(&t->scoreboard, 0)->flags & UTCP_SENT_SACKED)
        utcp_scoreboard_renege(&t->scoreboard);
    for (uint32_t i = 0; i < t->scoreboard.count; i++) {
        struct utcp_sent *s = utcp_scoreboard_at(&t->scoreboard, i);

        if (i == 0 || s->at_us + recent_us <= now_us)
            utcp_scoreboard_mark_lost(&t->scoreboard, s);
    }
    if (!r->on)
        utcp_undo_keep(t);
    else if (!r->timed_out)
        t->undo.on = false;
    if (!(r->on && r->timed_out))
        utcp_cubic_congested(&t->cubic, t->cubic.cwnd);
    t->cubic.cwnd = t->scoreboard.flight + t->tx.mss;
    utcp_slowed_down(t);
    *r = (struct utcp_recovery){.on = true, .timed_out = true, .first = true, .point = t->tx.next};
    t->tlp = (struct utcp_tlp){0};
    t->timer.reorder_us = t->timer.probe_us = UTCP_NEVER;
    t->timer.rtos++;
    utcp_arm(t, now_us);
    utcp_path_suspect(t, now_us);
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
    if (timer_due(&m->path_us, now_us) || (t->path.size && m->rto_us <= now_us))
        utcp_path_lost(t, now_us);
    if (peer_due(m, &m->rto_us, now_us)) {
        if (utcp_synchronized(t) && gives_up(t, now_us))
            return;
        if (!utcp_synchronized(t))
            on_syn_rto(t);
        else if (t->scoreboard.count)
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
