/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.c - messages become packets of DATA chunks, which stay until they are acknowledged (RFC 9260 6.1). */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "sctp/inner.h"

uint32_t osctp_payload_max(const struct osctp *o)
{
    return o->attr.packet_max - PACKET_COMMON - CHUNK_DATA_HEAD;
}

bool osctp_has_space(const struct osctp *o)
{
    uint32_t reserve = osctp_max(o->attr.store / 4, o->attr.packet_max);

    return osctp_is_drained(o) ||
           (o->tx.queued + reserve <= o->attr.store && o->tx.end - o->tx.first <= OSCTP_PACKETS - OSCTP_PACKETS / 4);
}

/* --- messages ------------------------------------------------------------------------------------------------ */

/* Returns a packet that was not sent and has space for a chunk, or a new one; NULL: *error says why not. */
static struct osctp_sent *packet_for(struct osctp *o, uint32_t octets, int *error)
{
    struct osctp_tx *tx = &o->tx;
    struct osctp_sent *sent = tx->end != tx->unsent ? osctp_sent_at(o, tx->end - 1) : NULL;

    *error = 0;
    if (tx->first != tx->end && (octets > o->attr.store || tx->queued > o->attr.store - octets))
        *error = -EAGAIN;
    else if (sent && sent->octets + octets <= o->attr.packet_max)
        return sent;
    else if (tx->end - tx->first == OSCTP_PACKETS)
        *error = -EAGAIN;
    if (*error)
        return NULL;
    sent = osctp_sent_at(o, tx->end);
    *sent = (struct osctp_sent){.packet = o->user->lend(o->of), .tsn = tx->next, .octets = PACKET_COMMON};
    if (!sent->packet) {
        *error = -ENOMEM;
        return NULL;
    }
    chunk_packet(sent->packet, o->attr.local_port, o->attr.peer_port, o->peer_tag);
    sent->crc = crc32c(0, sent->packet, PACKET_COMMON);
    tx->queued += PACKET_COMMON;
    tx->end++;
    return sent;
}

static void append_chunk(struct osctp *o, struct osctp_sent *sent, const struct span *span, uint32_t spans,
                         uint16_t stream, uint32_t ppid, uint32_t payload)
{
    uint8_t *at = sent->packet + sent->octets, *q = at;
    uint32_t octets = CHUNK_DATA_HEAD + payload, padding = chunk_padded(octets) - octets;

    q = chunk_head(q, CHUNK_DATA, CHUNK_FIRST | CHUNK_LAST | CHUNK_UNORDERED, octets);
    q = put32(put16(put16(put32(q, o->tx.next++), stream), 0), ppid);
    for (uint32_t i = 0; i < spans; i++)
        q = put_bytes(q, span[i].at, span[i].length);
    memset(q, 0, padding);
    sent->crc = crc32c(sent->crc, at, octets + padding); /* while the octets are in a cache */
    sent->octets = (uint16_t)(sent->octets + octets + padding);
    sent->payload += payload;
    sent->missing = ++sent->chunks;
    o->tx.queued += octets + padding;
}

int osctp_submit(struct osctp *o, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid)
{
    uint32_t payload = 0;
    struct osctp_sent *sent;
    int error;

    if (!o->up || o->state != OSCTP_ESTABLISHED)
        return -EPIPE;
    for (uint32_t i = 0; i < spans; i++) {
        if (span[i].length > osctp_payload_max(o) - payload)
            return -EMSGSIZE;
        payload += span[i].length;
    }
    if (!payload || stream >= o->streams)
        return -EINVAL;
    sent = packet_for(o, chunk_padded(CHUNK_DATA_HEAD + payload), &error);
    if (sent)
        append_chunk(o, sent, span, spans, stream, ppid, payload);
    return error;
}

/* --- packets ------------------------------------------------------------------------------------------------- */

void osctp_probe(struct osctp *o)
{
    for (uint32_t place = o->tx.unsent; place != o->tx.first; place--) {
        struct osctp_sent *sent = osctp_sent_at(o, place - 1);

        if (sent->gap_acked)
            continue;
        if (sent->flying)
            osctp_lose(o, place - 1);
        sent->packet[PACKET_COMMON + 1] |= CHUNK_AT_ONCE;
        sent->crc = packet_checksum(sent->packet, sent->octets);
        o->congestion.burst = osctp_max(o->congestion.burst, 1);
        return;
    }
}

/* RFC 9260 6.1 A, B, D; 7.2.4: the window may be exceeded by less than a packet. */
static bool may_send(const struct osctp *o, const struct osctp_sent *sent)
{
    const struct osctp_congestion *c = &o->congestion;

    if (!sent->number && sent->tsn + sent->chunks - 1 - o->tx.cum >= OSCTP_TSNS)
        return false;
    if (!c->flight)
        return true;
    if (c->flight >= c->window || !c->burst)
        return false;
    return sent->number || (sent->payload <= o->tx.window && c->flight <= o->tx.window - sent->payload);
}

bool osctp_send(struct osctp *o, const uint8_t **p, uint32_t *n, uint64_t now_us)
{
    struct osctp_congestion *c = &o->congestion;
    uint32_t place = o->tx.lost ? osctp_first_lost(o) : o->tx.unsent;
    struct osctp_sent *sent = osctp_sent_at(o, place);

    c->adds = false;
    if (place == o->tx.end || !may_send(o, sent))
        return false;
    o->tx.repeats = sent->number != 0;
    if (sent->number) {
        o->count.sent_again++;
        sent->retransmitted = true;
    } else {
        o->tx.unsent++;
    }
    osctp_flight_add(o, place);
    sent->sent_us = now_us;
    c->burst -= c->burst != 0;
    if (o->timer.data_us == OSCTP_NEVER)
        osctp_arm(o, now_us);
    osctp_arm_probe(o, now_us);
    packet_set_checksum(sent->packet, sent->crc);
    *p = sent->packet;
    *n = sent->octets;
    return true;
}
