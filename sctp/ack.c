/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ack.c - what the peer acknowledges (RFC 9260 6.2.1, 7.2): round trips, losses, and the congestion window.
 *
 * Every transmission of a packet has a number of its own, and a packet is lost if one with a number that is higher by
 * `reorder`, or any that was sent a good round trip ago, was acknowledged. So a packet that was sent again can be found
 * lost again. */
#include "base/bytes.h"
#include "sctp/inner.h"

/* What a SACK newly acknowledges. */
struct progress_of_ack {
    uint32_t octets;             /* by its cumulative TSN */
    uint64_t newest;             /* the highest number */
    uint64_t sample_us, sampled; /* round trip of the packet with the number `sampled` */
    uint32_t flight;             /* in flight before */
    bool moved;                  /* the cumulative TSN, which may stand in the middle of a packet */
};

static uint32_t last_tsn(const struct osctp_sent *sent)
{
    return sent->tsn + sent->chunks - 1;
}

static void arrived(struct osctp *o, struct osctp_sent *sent, struct progress_of_ack *ack, uint64_t now_us)
{
    uint64_t since_us = now_us - sent->sent_us;

    if (sent->flying)
        o->congestion.flight -= sent->payload;
    else if (!sent->gap_acked)
        o->tx.lost--;
    if (sent->gap_acked)
        return;
    /* After so short a time it was an earlier transmission that arrived. */
    if (sent->again && since_us < o->rtt.min_us)
        return;
    if (sent->number > ack->newest)
        ack->newest = sent->number;
    if (!sent->again && sent->number > ack->sampled) {
        ack->sampled = sent->number;
        ack->sample_us = since_us;
    }
}

/* Removes what the cumulative TSN acknowledges. */
static void acknowledge_all_to(struct osctp *o, uint32_t cum, struct progress_of_ack *ack, uint64_t now_us)
{
    struct osctp_tx *tx = &o->tx;

    for (; tx->first != tx->unsent; tx->first++) {
        struct osctp_sent *sent = osctp_sent_at(o, tx->first);

        if (tsn_before(cum, last_tsn(sent)))
            break;
        arrived(o, sent, ack, now_us);
        ack->octets += sent->payload;
        tx->queued -= sent->octets;
        o->user->put_back(o->of, sent->packet);
        sent->packet = NULL;
    }
    ack->moved = cum != tx->cum;
    tx->cum = cum;
    if (tsn_before(tx->lost_from, tx->first))
        tx->lost_from = tx->first;
}

/* Marks the packets that lie within the gap blocks. Blocks that are not in order, or reach beyond what was sent, end
 * it. */
static void acknowledge_blocks(struct osctp *o, const uint8_t *block, uint32_t blocks, uint32_t highest,
                               struct progress_of_ack *ack, uint64_t now_us)
{
    uint32_t place = o->tx.first, before = 1; /* the TSN behind the cumulative one is missing */

    for (; blocks; blocks--, block += 4) {
        uint32_t from = get16(block), to = get16(block + 2);

        if (from <= before || to < from || to > highest - o->tx.cum)
            return;
        before = to;
        for (; place != o->tx.unsent; place++) {
            struct osctp_sent *sent = osctp_sent_at(o, place);

            if (tsn_before(o->tx.cum + to, last_tsn(sent)))
                break;
            if (tsn_before(sent->tsn, o->tx.cum + from) || sent->gap_acked)
                continue;
            arrived(o, sent, ack, now_us);
            sent->flying = false;
            sent->gap_acked = true;
        }
    }
}

/* The highest TSN that was sent; everything before tx.first is acknowledged. */
static uint32_t highest_sent(const struct osctp *o)
{
    return o->tx.first == o->tx.unsent ? o->tx.cum : last_tsn(osctp_sent_at(o, o->tx.unsent - 1));
}

/* --- losses -------------------------------------------------------------------------------------------------- */

static void reduce(struct osctp *o)
{
    struct osctp_congestion *c = &o->congestion;

    if (c->recovering)
        return;
    c->threshold = osctp_max(c->window / 2, 4 * o->attr.packet_max);
    c->window = c->threshold;
    c->partial = 0;
    c->recovering = true;
    c->point = highest_sent(o);
}

/* Looks for packets that others have overtaken. */
static void find_lost(struct osctp *o, uint64_t now_us)
{
    uint64_t late_us = o->rtt.srtt_us + o->rtt.srtt_us / 8 + 1000;
    uint64_t newest = o->tx.newest;

    for (uint32_t place = o->tx.first; place != o->tx.unsent; place++) {
        struct osctp_sent *sent = osctp_sent_at(o, place);

        if (!sent->flying || sent->number >= newest)
            continue;
        if (newest - sent->number < o->congestion.reorder && now_us - sent->sent_us < late_us)
            continue;
        osctp_lose(o, sent, place);
        reduce(o);
    }
}

/* The peer received some twice: what was sent again was not lost, but late. */
static void learn_reordering(struct osctp *o, const uint8_t *copy, uint32_t copies)
{
    struct osctp_congestion *c = &o->congestion;

    if (copies && o->count.sent_again && tsn_before(get32(copy), o->tx.next))
        c->reorder = osctp_min(2 * c->reorder, OSCTP_REORDER_MAX);
}

/* --- the window ---------------------------------------------------------------------------------------------- */

/* RFC 9260 7.2.1, 7.2.2. A SACK for a batch counts as one for each of its packets. */
static void ack_enlarge(struct osctp *o, const struct progress_of_ack *ack)
{
    struct osctp_congestion *c = &o->congestion;
    uint32_t packet = o->attr.packet_max;

    if (!ack->octets || c->recovering || ack->flight + packet <= c->window)
        return;
    if (c->window <= c->threshold) {
        c->window += o->batches ? ack->octets : osctp_min(ack->octets, packet);
    } else {
        c->partial += ack->octets;
        if (c->partial >= c->window) {
            c->partial -= c->window;
            c->window += packet;
        }
    }
    c->window = osctp_min(c->window, OSCTP_WINDOW_MAX);
}

/* What has left the path, and a burst. SACKs that come before we send count together, a few of them. */
static void allow_burst(struct osctp *o, uint32_t packets)
{
    struct osctp_congestion *c = &o->congestion;
    uint32_t base = o->batches ? OSCTP_BURST_BATCHES : OSCTP_BURST;

    c->burst = (c->adds ? osctp_min(c->burst, OSCTP_BURSTS * base) : 0) + packets + base;
    c->adds = true;
}

static void ack_conclude(struct osctp *o, const struct progress_of_ack *ack, bool gaps, uint64_t now_us)
{
    struct osctp_congestion *c = &o->congestion;

    if (ack->sampled)
        osctp_rtt_sample(&o->rtt, ack->sample_us);
    else if (ack->octets)
        osctp_rtt_restore(&o->rtt);
    if (ack->newest > o->tx.newest)
        o->tx.newest = ack->newest;
    if (c->recovering && !tsn_before(o->tx.cum, c->point))
        c->recovering = false;
    ack_enlarge(o, ack);
    if (gaps)
        find_lost(o, now_us);
    allow_burst(o, ack->octets / o->attr.packet_max);
    /* A peer that answers while its window is closed is not gone. */
    if (ack->moved || ack->newest || o->tx.window < o->attr.packet_max)
        o->timer.failures = 0;
    if (ack->moved || !osctp_waits(o))
        osctp_arm(o, now_us);
    if (osctp_is_drained(o))
        osctp_drained(o, now_us);
}

void osctp_sack(struct osctp *o, const struct osctp_chunk *chunk, uint64_t now_us)
{
    struct progress_of_ack ack = {.flight = o->congestion.flight};
    const uint8_t *p = chunk->at;
    uint32_t cum, blocks, copies, highest = highest_sent(o);

    if (chunk->octets < CHUNK_SACK_HEAD)
        return;
    cum = get32(p + 4);
    blocks = get16(p + 12);
    copies = get16(p + 14);
    if (tsn_before(cum, o->tx.cum) || tsn_before(highest, cum) ||
        4 * (blocks + copies) > chunk->octets - CHUNK_SACK_HEAD)
        return;
    o->tx.window = get32(p + 8);
    acknowledge_all_to(o, cum, &ack, now_us);
    acknowledge_blocks(o, p + CHUNK_SACK_HEAD, blocks, highest, &ack, now_us);
    learn_reordering(o, p + CHUNK_SACK_HEAD + 4 * blocks, copies);
    ack_conclude(o, &ack, blocks != 0, now_us);
}

void osctp_acknowledged(struct osctp *o, uint32_t cum, uint64_t now_us)
{
    struct progress_of_ack ack = {.flight = o->congestion.flight};

    if (tsn_before(cum, o->tx.cum) || tsn_before(highest_sent(o), cum))
        return;
    acknowledge_all_to(o, cum, &ack, now_us);
    ack_conclude(o, &ack, false, now_us);
}
