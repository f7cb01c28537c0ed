/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timer.c - what happens if the peer does not answer (RFC 9260 5.1, 6.3, 8, 9.2). */
#include "sctp/inner.h"

/* Returns false if the peer was tried often enough. */
static bool try_again(struct osctp *o)
{
    o->count.timeouts++;
    if (++o->timer.failures <= OSCTP_RETRIES)
        return true;
    osctp_over(o, OSCTP_LOST);
    return false;
}

static void init_timeout(struct osctp *o, uint64_t now_us)
{
    o->count.timeouts++;
    if (o->timer.inits++ >= o->attr.init_retries) {
        osctp_over(o, OSCTP_LOST);
        return;
    }
    osctp_rtt_back_off(&o->rtt);
    if (o->attr.init_max_us && o->rtt.rto_us > o->attr.init_max_us)
        o->rtt.rto_us = o->attr.init_max_us;
    o->due.init = o->state == OSCTP_COOKIE_WAIT;
    o->due.echo = !o->due.init;
    o->timer.init_us = now_us + o->rtt.rto_us;
}

/* RFC 9260 6.3.3, 7.2.3. */
static void data_timeout(struct osctp *o, uint64_t now_us)
{
    struct osctp_congestion *c = &o->congestion;

    if (!try_again(o))
        return;
    c->threshold = osctp_max(c->window / 2, 4 * o->attr.packet_max);
    c->window = o->attr.packet_max;
    c->partial = 0;
    c->recovering = false;
    c->burst = OSCTP_BURST;
    c->reorder = OSCTP_REORDER;
    osctp_lose_all(o);
    osctp_rtt_back_off(&o->rtt);
    osctp_arm(o, now_us);
}

static void shutdown_timeout(struct osctp *o, uint64_t now_us)
{
    if (!try_again(o))
        return;
    osctp_rtt_back_off(&o->rtt);
    o->due.shutdown = o->state == OSCTP_SHUTDOWN_SENT;
    o->due.shutdown_ack = o->state == OSCTP_SHUTDOWN_ACK_SENT;
    o->timer.shutdown_us = now_us + o->rtt.rto_us;
}

/* The answer clears the failure; DATA in flight asks by itself. */
static void heartbeat_timeout(struct osctp *o, uint64_t now_us)
{
    osctp_set_heartbeat(o, now_us);
    if (osctp_waits(o))
        return;
    if (!try_again(o))
        return;
    o->due.heartbeat = true;
}

uint64_t osctp_deadline(const struct osctp *o)
{
    const struct osctp_timers *t = &o->timer;
    const uint64_t all[] = {t->init_us, t->data_us, t->probe_us, t->sack_us, t->shutdown_us, t->heartbeat_us};
    uint64_t first = OSCTP_NEVER;

    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i] < first)
            first = all[i];
    return first;
}

void osctp_timeout(struct osctp *o, uint64_t now_us)
{
    struct osctp_timers *t = &o->timer;

    if (t->sack_us <= now_us) {
        t->sack_us = OSCTP_NEVER;
        o->rx.due = true;
    }
    if (t->init_us <= now_us)
        init_timeout(o, now_us);
    if (t->data_us <= now_us)
        data_timeout(o, now_us);
    if (t->probe_us <= now_us) {
        t->probe_us = OSCTP_NEVER;
        t->probed = true;
        o->count.probes++;
        osctp_probe(o);
    }
    if (t->shutdown_us <= now_us)
        shutdown_timeout(o, now_us);
    if (t->heartbeat_us <= now_us)
        heartbeat_timeout(o, now_us);
}
