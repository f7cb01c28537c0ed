/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flight.c - which packets are in flight, in the order of their last transmission, and which are lost. */
#include <string.h>

#include "sctp/inner.h"

/* Removes a packet from the list of those in flight. */
static void flight_leave(struct osctp *o, struct osctp_sent *sent)
{
    struct osctp_tx *tx = &o->tx;

    if (sent->before == OSCTP_NO_PLACE)
        tx->oldest = sent->behind;
    else
        tx->sent[sent->before].behind = sent->behind;
    if (sent->behind == OSCTP_NO_PLACE)
        tx->youngest = sent->before;
    else
        tx->sent[sent->behind].before = sent->before;
    sent->flying = false;
    o->congestion.flight -= sent->payload;
}

static void mark_lost(struct osctp *o, uint32_t place, bool lost)
{
    uint64_t bit = 1ULL << place % 64, *word = &o->tx.lost_bits[place % OSCTP_PACKETS / 64];

    if (lost) {
        *word |= bit;
        o->tx.lost++;
    } else {
        *word &= ~bit;
        o->tx.lost--;
    }
}

void osctp_flight_begin(struct osctp *o)
{
    o->tx.oldest = o->tx.youngest = OSCTP_NO_PLACE;
}

void osctp_flight_add(struct osctp *o, uint32_t place)
{
    struct osctp_tx *tx = &o->tx;
    struct osctp_sent *sent = osctp_sent_at(o, place);
    uint16_t at = (uint16_t)(place % OSCTP_PACKETS);

    if (sent->number)
        mark_lost(o, place, false);
    sent->number = ++tx->number;
    sent->flying = true;
    sent->before = tx->youngest;
    sent->behind = OSCTP_NO_PLACE;
    if (tx->youngest == OSCTP_NO_PLACE)
        tx->oldest = at;
    else
        tx->sent[tx->youngest].behind = at;
    tx->youngest = at;
    o->congestion.flight += sent->payload;
}

void osctp_flight_arrived(struct osctp *o, uint32_t place)
{
    struct osctp_sent *sent = osctp_sent_at(o, place);

    if (sent->flying)
        flight_leave(o, sent);
    else if (!sent->gap_acked)
        mark_lost(o, place, false);
}

void osctp_lose(struct osctp *o, uint32_t place)
{
    if (!o->tx.lost || tsn_before(place, o->tx.lost_from))
        o->tx.lost_from = place;
    flight_leave(o, osctp_sent_at(o, place));
    mark_lost(o, place, true);
}

/* What was acknowledged by gap blocks alone may have been dropped again (RFC 9260 6.2.1 D). */
void osctp_lose_all(struct osctp *o)
{
    memset(o->tx.acked, 0, sizeof(o->tx.acked));
    for (uint32_t place = o->tx.first; place != o->tx.unsent; place++) {
        struct osctp_sent *sent = osctp_sent_at(o, place);

        sent->missing = sent->chunks;
        if (sent->flying)
            flight_leave(o, sent);
        else if (!sent->gap_acked)
            continue;
        sent->gap_acked = false;
        mark_lost(o, place, true);
    }
    o->tx.lost_from = o->tx.first;
}

/* There is one. Whole words without a lost packet cost one step. */
uint32_t osctp_first_lost(struct osctp *o)
{
    uint32_t place = o->tx.lost_from;

    for (;;) {
        uint64_t word = o->tx.lost_bits[place % OSCTP_PACKETS / 64] >> place % 64;

        if (word) {
            o->tx.lost_from = place + osctp_lowest_bit(word);
            return o->tx.lost_from;
        }
        place += 64 - place % 64;
    }
}
