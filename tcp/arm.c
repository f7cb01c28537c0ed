/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arm.c - sets the timers, and counts what is allowed per second. */
#include "tcp/inner.h"

enum { SHORT_RTOS = 4, CHALLENGE_SPAN_US = 1000000 }; /* SHORT_RTOS: then the peer is not only unlucky */

/* RFC 8985 7.2. A probe with new octets helps even if the peer delays the acknowledgement of the only segment before
 * it. */
static uint64_t probe_delay_us(const struct utcp *t)
{
    uint64_t delay_us = t->rtt.srtt_us ? 2 * t->rtt.srtt_us : UTCP_HANDSHAKE_PROBE_US;

    if (t->rtt.srtt_us && t->scoreboard.count == 1 && t->tx.end <= t->tx.next)
        delay_us += UTCP_PEER_DELAY_US;
    return utcp_max(delay_us, UTCP_PROBE_MIN_US);
}

/* The document leaves recovery to the reordering timer; we probe then, too. A host that acknowledges a batch of packets
 * at once may report a whole flight in one packet, which may be lost; and so may a retransmission. */
void utcp_arm_probe(struct utcp *t, uint64_t now_us)
{
    t->timer.probe_us = UTCP_NEVER;
    if (t->scoreboard.flight && t->sack && !t->recovery.timed_out && !t->tlp.end && t->tlp.sampled && !t->path.size)
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
    t->timer.rto_us = t->scoreboard.count ? now_us + backed_off_us(t) : UTCP_NEVER;
    utcp_arm_probe(t, now_us);
}

/* RFC 5961 7: at most UTCP_CHALLENGES per second. */
void utcp_challenge(struct utcp *t, uint64_t now_us)
{
    if (now_us - t->due.challenge_us >= CHALLENGE_SPAN_US) {
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
