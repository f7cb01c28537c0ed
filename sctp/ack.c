/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ack.c - what the peer acknowledges (RFC 9260 6.2.1, 7.2): round trips, losses, and the congestion window.
 *
 * Losses are found otherwise than in RFC 9260 7.2.4, which counts for each TSN the SACKs that report it missing. Every
 * transmission of a packet has a number of its own, and a packet is lost if one with a number that is higher by
 * `reorder`, or any sent a good round trip ago, was acknowledged. So a packet that was sent again can be found lost
 * again, where RFC 9260 waits for the time-out; and `reorder`, at first the 3 of RFC 9260, grows when duplicates show
 * that packets were late and not lost. What is sent again counts against the congestion window, and sending the first
 * packet again does not restart its timer.
 *
 * The gap blocks of a SACK are compared with the TSNs that earlier ones acknowledged, by words of bits, and only
 * packets with news are looked at: what one SACK costs depends on its length, not on the packets in flight. */
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

static void arrived(struct osctp *o, uint32_t place, struct progress_of_ack *ack, uint64_t now_us)
{
    const struct osctp_sent *sent = osctp_sent_at(o, place);
    uint64_t since_us = now_us - sent->sent_us;

    osctp_flight_arrived(o, place);
    if (sent->gap_acked)
        return;
    /* After so short a time it was an earlier transmission that arrived. */
    if (sent->retransmitted && since_us < o->rtt.min_us)
        return;
    if (sent->number > ack->newest)
        ack->newest = sent->number;
    if (!sent->retransmitted && sent->number > ack->sampled) {
        ack->sampled = sent->number;
        ack->sample_us = since_us;
    }
}

static uint64_t *acked_word(struct osctp_tx *tx, uint32_t tsn)
{
    return &tx->acked[tsn % OSCTP_TSNS / 64];
}

/* Removes what the cumulative TSN acknowledges. */
static void acknowledge_all_to(struct osctp *o, uint32_t cum, struct progress_of_ack *ack, uint64_t now_us)
{
    struct osctp_tx *tx = &o->tx;

    for (; tx->first != tx->unsent; tx->first++) {
        struct osctp_sent *sent = osctp_sent_at(o, tx->first);

        if (tsn_before(cum, last_tsn(sent)))
            break;
        arrived(o, tx->first, ack, now_us);
        ack->octets += sent->payload;
        tx->queued -= sent->octets;
        o->user->put_back(o->of, sent->packet);
        sent->packet = NULL;
    }
    ack->moved = cum != tx->cum;
    for (; tx->cum != cum; tx->cum++)
        *acked_word(tx, tx->cum + 1) &= ~(1ULL << (tx->cum + 1) % 64);
    if (tsn_before(tx->lost_from, tx->first))
        tx->lost_from = tx->first;
}

/* Returns the place of the packet in flight with this TSN. `place` is that of an earlier one, or tx.first. */
static uint32_t find_packet(const struct osctp *o, uint32_t tsn, uint32_t place)
{
    uint32_t end = o->tx.unsent;

    if (!tsn_before(last_tsn(osctp_sent_at(o, place)), tsn))
        return place;
    while (end - place > 1) {
        uint32_t middle = place + (end - place) / 2;

        if (tsn_before(tsn, osctp_sent_at(o, middle)->tsn))
            end = middle;
        else
            place = middle;
    }
    return place;
}

/* A gap block acknowledges this TSN for the first time. Returns the place of its packet. */
static uint32_t acknowledge(struct osctp *o, uint32_t tsn, uint32_t place, struct progress_of_ack *ack, uint64_t now_us)
{
    struct osctp_sent *sent;

    place = find_packet(o, tsn, place);
    sent = osctp_sent_at(o, place);
    o->count.looks++;
    if (--sent->missing)
        return place;
    arrived(o, place, ack, now_us);
    sent->gap_acked = true;
    return place;
}

/* Acknowledges `n` TSNs from this one on. Returns the place of the last packet with news. */
static uint32_t acknowledge_block(struct osctp *o, uint32_t tsn, uint32_t n, uint32_t place,
                                  struct progress_of_ack *ack, uint64_t now_us)
{
    while (n) {
        uint32_t bit = tsn % 64, bits = osctp_min(64 - bit, n);
        uint64_t *word = acked_word(&o->tx, tsn), news = UINT64_MAX >> (64 - bits) << bit & ~*word;

        *word |= news;
        for (; news; news &= news - 1)
            place = acknowledge(o, tsn - bit + osctp_lowest_bit(news), place, ack, now_us);
        tsn += bits;
        n -= bits;
    }
    return place;
}

/* Acknowledges what the gap blocks say; blocks that are not in order end it. Returns false if one is beyond what was
 * sent. */
static bool acknowledge_blocks(struct osctp *o, const uint8_t *block, uint32_t blocks, uint32_t highest,
                               struct progress_of_ack *ack, uint64_t now_us)
{
    uint32_t place = o->tx.first, before = 1; /* the TSN behind the cumulative one is missing */

    for (; blocks; blocks--, block += 4) {
        uint32_t from = get16(block), to = get16(block + 2);

        if (to > highest - o->tx.cum)
            return false;
        if (from <= before || to < from)
            return true;
        before = to;
        place = acknowledge_block(o, o->tx.cum + from, to - from + 1, place, ack, now_us);
    }
    return true;
}

/* The highest TSN that was sent; everything before tx.first is acknowledged. */
static uint32_t highest_sent(const struct osctp *o)
{
    return o->tx.first == o->tx.unsent ? o->tx.cum : last_tsn(osctp_sent_at(o, o->tx.unsent - 1));
}

/* --- losses -------------------------------------------------------------------------------------------------- */

static void reduce(struct osctp *o, bool marked)
{
    struct osctp_congestion *c = &o->congestion;

    if (c->recovering)
        return;
    c->threshold = osctp_max(c->window / 2, 4 * o->attr.packet_max);
    c->window = c->threshold;
    c->partial = 0;
    c->recovering = true;
    c->marked = marked;
    c->point = highest_sent(o);
}

/* A mark counts as a loss, once a round trip; the answer is due each time, since it may be lost (RFC 9260 appendix A).
 */
void osctp_ecne(struct osctp *o, const struct osctp_chunk *chunk)
{
    struct osctp_congestion *c = &o->congestion;
    uint32_t tsn;

    if (!o->ecn || chunk->octets < CHUNK_HEAD + 4)
        return;
    tsn = get32(chunk->at + CHUNK_HEAD);
    if (tsn_before(highest_sent(o), tsn))
        return;
    if (tsn_before(c->reacted, tsn)) {
        o->count.marks += !c->recovering;
        reduce(o, true);
        c->reacted = tsn;
    }
    o->due.cwr = true;
}

/* Looks for packets that others have overtaken: they were sent first of those in flight. */
static void find_lost(struct osctp *o, uint64_t now_us)
{
    uint64_t late_us = o->rtt.srtt_us + o->rtt.srtt_us / OSCTP_LATE_PART + OSCTP_LATE_US;
    uint64_t newest = o->tx.newest;

    while (o->tx.oldest != OSCTP_NO_PLACE) {
        const struct osctp_sent *sent = &o->tx.sent[o->tx.oldest];

        o->count.looks++;
        if (sent->number >= newest ||
            (newest - sent->number < o->congestion.reorder && now_us - sent->sent_us < late_us))
            return;
        osctp_lose(o, o->tx.first + ((o->tx.oldest - o->tx.first) & (OSCTP_PACKETS - 1)));
        reduce(o, false);
    }
}

/* The peer received some twice: what was sent again was not lost, but late. */
static void learn_reordering(struct osctp *o, const uint8_t *duplicate, uint32_t duplicates)
{
    struct osctp_congestion *c = &o->congestion;

    if (duplicates && o->count.sent_again && tsn_before(get32(duplicate), o->tx.next))
        c->reorder = osctp_min(2 * c->reorder, OSCTP_REORDER_MAX);
}

/* --- the window ---------------------------------------------------------------------------------------------- */

/* Slow start. A SACK for a batch counts as one for each of its packets. After a mark one of them takes the window past
 * the threshold at most: it would be back at once where the path was congested. Returns the octets that remain for
 * congestion avoidance. */
static uint32_t enlarge_fast(struct osctp *o, uint32_t octets)
{
    struct osctp_congestion *c = &o->congestion;
    uint32_t left = c->threshold - c->window, packet = o->attr.packet_max;
    uint32_t more = octets <= left || !c->marked ? octets : osctp_min(octets, left + packet);

    c->window += o->batches ? more : osctp_min(octets, packet);
    return o->batches ? octets - more : 0;
}

/* RFC 9260 7.2.1, 7.2.2. */
static void ack_enlarge(struct osctp *o, const struct progress_of_ack *ack)
{
    struct osctp_congestion *c = &o->congestion;
    uint32_t octets = ack->octets;

    if (!octets || c->recovering || ack->flight + o->attr.packet_max <= c->window)
        return;
    if (c->window <= c->threshold)
        octets = enlarge_fast(o, octets);
    c->partial += octets;
    if (octets && c->partial >= c->window) {
        c->partial -= c->window;
        c->window += o->attr.packet_max;
    }
    c->window = osctp_min(c->window, OSCTP_WINDOW_MAX);
}

/* Allow as many packets as were acknowledged, plus a burst. SACKs received before the next send add up, to a limit. */
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

/* The peer acknowledges what was not sent: it would have us send faster than the path allows. */
static void lies(struct osctp *o)
{
    static const char why[] = "acknowledged TSNs that were not sent";

    osctp_fail(o, CAUSE_VIOLATION, why, sizeof(why) - 1);
}

void osctp_sack(struct osctp *o, const struct osctp_chunk *chunk, uint64_t now_us)
{
    struct progress_of_ack ack = {.flight = o->congestion.flight};
    const uint8_t *p = chunk->at;
    uint32_t cum, blocks, duplicates, highest = highest_sent(o);

    if (chunk->octets < CHUNK_SACK_HEAD)
        return;
    cum = get32(p + 4);
    blocks = get16(p + 12);
    duplicates = get16(p + 14);
    if (tsn_before(cum, o->tx.cum) || 4 * (blocks + duplicates) > chunk->octets - CHUNK_SACK_HEAD)
        return;
    if (tsn_before(highest, cum)) {
        lies(o);
        return;
    }
    o->tx.window = get32(p + 8);
    acknowledge_all_to(o, cum, &ack, now_us);
    if (!acknowledge_blocks(o, p + CHUNK_SACK_HEAD, blocks, highest, &ack, now_us)) {
        lies(o);
        return;
    }
    learn_reordering(o, p + CHUNK_SACK_HEAD + 4 * blocks, duplicates);
    ack_conclude(o, &ack, blocks, now_us);
}

void osctp_acknowledged(struct osctp *o, uint32_t cum, uint64_t now_us)
{
    struct progress_of_ack ack = {.flight = o->congestion.flight};

    if (tsn_before(cum, o->tx.cum))
        return;
    if (tsn_before(highest_sent(o), cum)) {
        lies(o);
        return;
    }
    acknowledge_all_to(o, cum, &ack, now_us);
    ack_conclude(o, &ack, false, now_us);
}
