/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* input.c - the packets of the peer: which of them count (RFC 9260 8.5), and what each chunk does. */
#include <string.h>

#include "base/bytes.h"
#include "sctp/inner.h"

enum { TAG_AT = 4 };

/* --- answers ------------------------------------------------------------------------------------------------- */

/* The answer to ours repeats the time when it was sent, which counts once and only if it is the right one: else the
 * peer would choose the round trip. */
static void heartbeat_acked(struct osctp *o, const struct osctp_chunk *chunk, uint64_t now_us)
{
    const uint8_t *p = chunk->at + CHUNK_HEAD;
    uint64_t sent_us;

    if (chunk->octets != CHUNK_HEAD + PARAMETER_HEAD + OSCTP_HEARTBEAT_OCTETS || get16(p) != 1 ||
        get32(p + PARAMETER_HEAD + 8) != o->attr.tag)
        return;
    sent_us = get64(p + PARAMETER_HEAD);
    if (sent_us == OSCTP_NEVER || sent_us != o->timer.asked_us)
        return;
    o->timer.asked_us = OSCTP_NEVER;
    osctp_rtt_sample(&o->rtt, now_us - sent_us);
    o->timer.failures = 0;
}

/* Returns false if the rest of the packet must not be looked at. */
static bool unknown_chunk(struct osctp *o, const struct osctp_chunk *chunk)
{
    uint32_t octets = osctp_min(chunk->octets, 64);
    uint8_t *q = chunk->type & CHUNK_REPORT ? osctp_add_answer(o, CHUNK_ERROR, CAUSE_HEAD + octets) : NULL;

    if (q)
        put_bytes(put16(put16(q, CAUSE_CHUNK), (uint16_t)(CAUSE_HEAD + octets)), chunk->at, octets);
    return chunk->type & CHUNK_SKIP;
}

/* --- the end ------------------------------------------------------------------------------------------------- */

static void aborted(struct osctp *o, const struct osctp_chunk *chunk)
{
    size_t octets;
    const uint8_t *reason = packet_reason(chunk->at, chunk->octets, &octets);

    if (reason) {
        o->reason_octets = osctp_min((uint32_t)octets, OSCTP_REASON);
        memcpy(o->reason, reason, o->reason_octets);
    }
    osctp_over(o, OSCTP_ABORTED);
}

static void peer_shuts_down(struct osctp *o, const struct osctp_chunk *chunk, uint64_t now_us)
{
    if (!o->up || chunk->octets < CHUNK_HEAD + 4)
        return;
    osctp_acknowledged(o, get32(chunk->at + CHUNK_HEAD), now_us);
    if (o->state == OSCTP_CLOSED)
        return;
    if (o->state == OSCTP_ESTABLISHED || o->state == OSCTP_SHUTDOWN_PENDING)
        o->state = OSCTP_SHUTDOWN_RECEIVED;
    if (o->state == OSCTP_SHUTDOWN_SENT) { /* both at once (RFC 9260 9.2) */
        o->state = OSCTP_SHUTDOWN_ACK_SENT;
        o->due.shutdown_ack = true;
        o->timer.shutdown_us = now_us + o->rtt.rto_us;
    }
    o->peer_end = true;
    osctp_drained(o, now_us);
}

static void shutdown_acked(struct osctp *o)
{
    if (o->state != OSCTP_SHUTDOWN_SENT && o->state != OSCTP_SHUTDOWN_ACK_SENT)
        return;
    o->due.shutdown_complete = true;
    osctp_over(o, OSCTP_SHUT);
}

/* --- chunks -------------------------------------------------------------------------------------------------- */

static void cookie_acked(struct osctp *o, uint64_t now_us)
{
    if (o->state != OSCTP_COOKIE_ECHOED)
        return;
    if (!o->timer.inits)
        osctp_rtt_sample(&o->rtt, now_us + o->rtt.rto_us - o->timer.init_us);
    osctp_established(o, now_us);
}

/* A stale cookie: it took too long. */
static void receive_error(struct osctp *o, const struct osctp_chunk *chunk)
{
    if (o->state == OSCTP_COOKIE_ECHOED && chunk->octets >= CHUNK_HEAD + CAUSE_HEAD &&
        get16(chunk->at + CHUNK_HEAD) == CAUSE_STALE_COOKIE)
        osctp_over(o, OSCTP_LOST);
}

/* Returns false if the rest of the packet must not be looked at. */
static bool receive_chunk(struct osctp *o, const struct osctp_chunk *chunk, uint64_t now_us)
{
    switch (chunk->type) {
    case CHUNK_DATA:
        if (o->up && o->state != OSCTP_SHUTDOWN_ACK_SENT && !o->peer_end)
            osctp_data(o, chunk);
        return true;
    case CHUNK_SACK:
        if (o->up && !o->tx.sacked) /* one a packet: a lying peer's packet may hold hundreds */
            osctp_sack(o, chunk, now_us);
        o->tx.sacked = true;
        return true;
    case CHUNK_INIT:
        return false;
    case CHUNK_INIT_ACK:
        osctp_init_ack(o, chunk, now_us);
        return false;
    case CHUNK_COOKIE_ECHO: /* the host has verified the first; it comes again if our answer was lost */
        o->due.cookie_ack |= o->up;
        return true;
    case CHUNK_COOKIE_ACK:
        cookie_acked(o, now_us);
        return true;
    case CHUNK_HEARTBEAT:
        osctp_add_echo(o, chunk->at + CHUNK_HEAD, chunk->octets - CHUNK_HEAD);
        return true;
    case CHUNK_HEARTBEAT_ACK:
        heartbeat_acked(o, chunk, now_us);
        return true;
    case CHUNK_ABORT:
        aborted(o, chunk);
        return false;
    case CHUNK_SHUTDOWN:
        peer_shuts_down(o, chunk, now_us);
        return true;
    case CHUNK_SHUTDOWN_ACK:
        shutdown_acked(o);
        return true;
    case CHUNK_SHUTDOWN_COMPLETE:
        if (o->state == OSCTP_SHUTDOWN_ACK_SENT)
            osctp_over(o, OSCTP_SHUT);
        return false;
    case CHUNK_ECNE:
        if (o->up)
            osctp_ecne(o, chunk);
        return true;
    case CHUNK_CWR:
        osctp_cwr(o, chunk);
        return true;
    case CHUNK_ERROR:
        receive_error(o, chunk);
        return true;
    default:
        return unknown_chunk(o, chunk);
    }
}

/* An ABORT or SHUTDOWN-COMPLETE of one that has lost the association repeats the tag of our packet (RFC 9260 8.5.1). */
static bool has_right_tag(const struct osctp *o, const struct osctp_chunk *first, uint32_t tag)
{
    if ((first->type == CHUNK_ABORT || first->type == CHUNK_SHUTDOWN_COMPLETE) && first->flags & CHUNK_REFLECTS)
        return o->peer_tag && tag == o->peer_tag;
    return tag == o->attr.tag;
}

void osctp_marked(struct osctp *o)
{
    o->rx.marked = true;
}

void osctp_input(struct osctp *o, const uint8_t *p, uint32_t n, uint64_t now_us)
{
    uint32_t at = PACKET_COMMON;
    struct osctp_chunk chunk;
    bool data = false;

    if (n < PACKET_COMMON || o->state == OSCTP_CLOSED || !chunk_next(p, n, &at, &chunk) ||
        !has_right_tag(o, &chunk, get32(p + TAG_AT))) {
        o->rx.marked = false;
        return;
    }
    o->count.packets_in++;
    o->tx.sacked = false;
    osctp_restart_heartbeat(o, now_us);
    do
        data |= chunk.type == CHUNK_DATA;
    while (receive_chunk(o, &chunk, now_us) && o->state != OSCTP_CLOSED && chunk_next(p, n, &at, &chunk));
    o->rx.marked = false;
    if (!data || o->state == OSCTP_CLOSED || !o->up)
        return;
    osctp_data_packet(o, now_us);
    /* The peer may not know our SHUTDOWN yet (RFC 9260 9.2), or still sends what waited. */
    if (o->state == OSCTP_SHUTDOWN_SENT) {
        o->timer.failures = 0;
        o->rx.due = true;
        o->due.shutdown = true;
        o->timer.shutdown_us = now_us + o->rtt.rto_us;
    }
}
