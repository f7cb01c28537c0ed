/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* data.c - DATA that arrives (RFC 9260 6.2): which TSNs were received, and the SACKs that say so. */
#include "base/bytes.h"
#include "sctp/inner.h"

static uint64_t *bits_of(struct osctp_rx *rx, uint32_t tsn)
{
    return &rx->bits[tsn % OSCTP_TSNS / 64];
}

static bool was_received(struct osctp_rx *rx, uint32_t tsn)
{
    return !tsn_before(rx->cum, tsn) || (*bits_of(rx, tsn) >> tsn % 64 & 1);
}

/* The bits are those behind the cumulative TSN. */
static void mark_received(struct osctp_rx *rx, uint32_t tsn)
{
    if (tsn_before(rx->highest, tsn))
        rx->highest = tsn;
    *bits_of(rx, tsn) |= 1ULL << tsn % 64;
    while (*bits_of(rx, rx->cum + 1) >> (rx->cum + 1) % 64 & 1) {
        rx->cum++;
        *bits_of(rx, rx->cum) &= ~(1ULL << rx->cum % 64);
    }
}

/* The TSN is acknowledged nevertheless (RFC 9260 6.5). */
static void refuse_stream(struct osctp *o, uint16_t stream)
{
    uint8_t *q = osctp_add_answer(o, CHUNK_ERROR, CAUSE_HEAD + 4);

    if (q)
        put16(put16(put16(put16(q, CAUSE_STREAM), CAUSE_HEAD + 4), stream), 0);
}

static void report_duplicate(struct osctp_rx *rx, uint32_t tsn)
{
    if (rx->duplicated < OSCTP_DUPLICATES)
        rx->duplicates[rx->duplicated++] = tsn;
    rx->due = true;
}

/* RFC 9260 appendix A: the peer is told until it says that it has reacted. */
static void mark_congestion(struct osctp_rx *rx, uint32_t tsn)
{
    if (!rx->echoes || tsn_before(rx->marked_tsn, tsn))
        rx->marked_tsn = tsn;
    rx->echoes = rx->due = true;
    rx->marked = false; /* its first chunk has the lowest TSN */
}

void osctp_cwr(struct osctp *o, const struct osctp_chunk *chunk)
{
    if (chunk->octets >= CHUNK_HEAD + 4 && !tsn_before(get32(chunk->at + CHUNK_HEAD), o->rx.marked_tsn))
        o->rx.echoes = false;
}

void osctp_data(struct osctp *o, const struct osctp_chunk *chunk)
{
    struct osctp_rx *rx = &o->rx;
    const uint8_t *p = chunk->at;
    struct osctp_data data;

    if (chunk->octets <= CHUNK_DATA_HEAD) {
        osctp_fail(o, CAUSE_NO_DATA, p + 4, chunk->octets == CHUNK_DATA_HEAD ? 4 : 0);
        return;
    }
    data = (struct osctp_data){
        .tsn = get32(p + 4),
        .stream = get16(p + 8),
        .ssn = get16(p + 10),
        .ppid = get32(p + 12),
        .first = chunk->flags & CHUNK_FIRST,
        .last = chunk->flags & CHUNK_LAST,
        .unordered = chunk->flags & CHUNK_UNORDERED,
        .data = p + CHUNK_DATA_HEAD,
        .octets = chunk->octets - CHUNK_DATA_HEAD,
    };
    rx->due |= (chunk->flags & CHUNK_AT_ONCE) != 0;
    if (rx->marked && o->ecn)
        mark_congestion(rx, data.tsn);
    if (tsn_before(rx->cum + OSCTP_TSNS - 1, data.tsn)) {
        o->count.refused++;
        rx->due = true;
        return;
    }
    if (was_received(rx, data.tsn)) {
        o->count.duplicates++;
        report_duplicate(rx, data.tsn);
        return;
    }
    if (data.stream >= o->attr.streams) {
        refuse_stream(o, data.stream);
        o->user->skip(o->of, data.stream);
    } else if (!o->user->take(o->of, &data)) {
        o->count.refused++;
        rx->due = true;
        return;
    }
    rx->due |= rx->highest != rx->cum; /* it may fill a gap */
    mark_received(rx, data.tsn);
}

/* Every second packet is acknowledged at once, and every one while TSNs are missing. */
void osctp_data_packet(struct osctp *o, uint64_t now_us)
{
    struct osctp_rx *rx = &o->rx;

    rx->due |= ++rx->packets >= OSCTP_SACK_PACKETS || rx->highest != rx->cum;
    if (!rx->due && o->timer.sack_us == OSCTP_NEVER)
        o->timer.sack_us = now_us + OSCTP_SACK_DELAY_US;
}

/* Returns the end of the run of TSNs from `tsn` on, behind the cumulative one, that were received, or were not. */
static uint32_t run_end(struct osctp_rx *rx, uint32_t tsn, bool received)
{
    while (!tsn_before(rx->highest, tsn)) {
        uint64_t word = (received ? ~*bits_of(rx, tsn) : *bits_of(rx, tsn)) >> tsn % 64;

        if (word)
            return tsn + osctp_lowest_bit(word);
        tsn += 64 - tsn % 64;
    }
    return tsn;
}

uint32_t osctp_write_sack(struct osctp *o, uint8_t *p, uint32_t space)
{
    struct osctp_rx *rx = &o->rx;
    uint8_t *q = p + CHUNK_SACK_HEAD;
    uint32_t blocks = 0, most = (space - CHUNK_SACK_HEAD) / 4 - rx->duplicated, from = rx->cum + 1;

    while (rx->highest != rx->cum && blocks < most) {
        uint32_t start = run_end(rx, from, false);

        if (tsn_before(rx->highest, start))
            break;
        from = run_end(rx, start, true);
        q = put16(put16(q, (uint16_t)(start - rx->cum)), (uint16_t)(from - 1 - rx->cum));
        blocks++;
    }
    for (uint32_t i = 0; i < rx->duplicated; i++)
        q = put32(q, rx->duplicates[i]);
    chunk_head(p, CHUNK_SACK, 0, (uint32_t)(q - p));
    put32(put32(p + 4, rx->cum), rx->window);
    put16(put16(p + 12, (uint16_t)blocks), (uint16_t)rx->duplicated);
    rx->said = rx->window;
    rx->duplicated = rx->packets = 0;
    rx->due = false;
    o->timer.sack_us = OSCTP_NEVER;
    return (uint32_t)(q - p);
}

void osctp_window(struct osctp *o, uint32_t octets)
{
    uint32_t packet = o->attr.packet_max;

    o->rx.window = octets;
    /* The peer waits for this if it took the window for closed. */
    if (o->state == OSCTP_ESTABLISHED && o->rx.said < packet && octets >= 2 * packet)
        o->rx.due = true;
}
