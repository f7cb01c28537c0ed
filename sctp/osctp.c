/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp.c - an association comes up, sends its packets, and ends. */
#include "sctp/osctp.h"

#include <string.h>

#include "base/bytes.h"
#include "sctp/inner.h"

enum { TAG_AT = 4, HEARTBEAT_INFO = 1 };

/* --- up and down --------------------------------------------------------------------------------------------- */

void osctp_established(struct osctp *o, uint64_t now_us)
{
    o->state = OSCTP_ESTABLISHED;
    o->up = true;
    o->due.echo = o->due.init = false;
    o->timer.init_us = OSCTP_NEVER;
    osctp_heard(o, now_us);
}

void osctp_over(struct osctp *o, enum osctp_end end)
{
    o->state = OSCTP_CLOSED;
    o->end = end;
    o->answer_octets = 0;
    o->due =
        (struct osctp_due){.shutdown_complete = o->due.shutdown_complete, .abort = o->due.abort, .cause = o->due.cause};
    o->rx.due = false;
    osctp_stop_timers(o);
}

void osctp_fail(struct osctp *o, uint16_t cause, const void *reason, uint32_t octets)
{
    o->due.abort = true;
    o->due.cause = cause;
    o->reason_octets = osctp_min(octets, OSCTP_REASON);
    put_bytes(o->reason, reason, o->reason_octets);
    osctp_over(o, OSCTP_LOST);
}

void osctp_abort(struct osctp *o, const void *reason, uint32_t octets)
{
    if (o->state == OSCTP_CLOSED)
        return;
    osctp_fail(o, CAUSE_USER_ABORT, reason, octets);
    o->due.abort = o->peer_tag != 0;
    o->end = OSCTP_LEFT;
}

void osctp_drained(struct osctp *o, uint64_t now_us)
{
    if (!osctp_is_drained(o))
        return;
    if (o->state == OSCTP_SHUTDOWN_PENDING) {
        o->state = OSCTP_SHUTDOWN_SENT;
        o->due.shutdown = true;
    } else if (o->state == OSCTP_SHUTDOWN_RECEIVED) {
        o->state = OSCTP_SHUTDOWN_ACK_SENT;
        o->due.shutdown_ack = true;
    } else {
        return;
    }
    o->timer.shutdown_us = now_us + o->rtt.rto_us;
}

void osctp_shutdown(struct osctp *o, uint64_t now_us)
{
    if (o->state == OSCTP_COOKIE_WAIT || o->state == OSCTP_COOKIE_ECHOED)
        osctp_abort(o, NULL, 0);
    else if (o->state == OSCTP_ESTABLISHED)
        o->state = OSCTP_SHUTDOWN_PENDING;
    osctp_drained(o, now_us);
}

void osctp_free(struct osctp *o)
{
    for (; o->tx.first != o->tx.end; o->tx.first++)
        o->user->put_back(o->of, osctp_sent_at(o, o->tx.first)->packet);
    o->tx.unsent = o->tx.first;
    osctp_over(o, o->state == OSCTP_CLOSED ? o->end : OSCTP_LEFT);
}

/* --- packets ------------------------------------------------------------------------------------------------- */

static uint8_t *begin_packet(struct osctp *o)
{
    return chunk_packet(o->out, o->attr.local_port, o->attr.peer_port, o->peer_tag);
}

static uint32_t lone_chunk(struct osctp *o, uint8_t type, uint8_t flags, const void *value, uint32_t octets)
{
    uint8_t *chunk = begin_packet(o);

    return (uint32_t)(chunk_close(chunk, put_bytes(chunk_head(chunk, type, flags, 0), value, octets)) - o->out);
}

static uint32_t write_abort(struct osctp *o)
{
    uint8_t *chunk = begin_packet(o), *q = chunk_head(chunk, CHUNK_ABORT, 0, 0);

    q = put16(put16(q, o->due.cause), (uint16_t)(CAUSE_HEAD + o->reason_octets));
    return (uint32_t)(chunk_close(chunk, put_bytes(q, o->reason, o->reason_octets)) - o->out);
}

static uint32_t write_heartbeat(struct osctp *o, uint64_t now_us)
{
    uint8_t info[PARAMETER_HEAD + OSCTP_HEARTBEAT_OCTETS];

    put32(put64(put16(put16(info, HEARTBEAT_INFO), sizeof(info)), now_us), o->attr.tag);
    return lone_chunk(o, CHUNK_HEARTBEAT, 0, info, sizeof(info));
}

static uint32_t write_shutdown(struct osctp *o)
{
    uint8_t cum[4];

    put32(cum, o->rx.cum);
    return lone_chunk(o, CHUNK_SHUTDOWN, 0, cum, sizeof(cum));
}

static bool take_due(bool *due)
{
    bool was = *due;

    *due = false;
    return was;
}

/* Writes the next packet of control chunks to o->out; 0: there is none. */
static uint32_t write_control(struct osctp *o, uint64_t now_us)
{
    struct osctp_due *due = &o->due;

    if (take_due(&due->abort))
        return write_abort(o);
    if (take_due(&due->shutdown_complete))
        return lone_chunk(o, CHUNK_SHUTDOWN_COMPLETE, 0, NULL, 0);
    if (take_due(&due->init))
        return osctp_write_init(o, o->out);
    if (take_due(&due->echo))
        return lone_chunk(o, CHUNK_COOKIE_ECHO, 0, o->cookie, o->cookie_octets);
    if (take_due(&due->cookie_ack))
        return lone_chunk(o, CHUNK_COOKIE_ACK, 0, NULL, 0);
    if (o->rx.due)
        return PACKET_COMMON +
               osctp_write_sack(o, begin_packet(o), osctp_min(OSCTP_ANSWER, o->attr.packet_max) - PACKET_COMMON);
    if (take_due(&due->shutdown))
        return write_shutdown(o);
    if (take_due(&due->shutdown_ack))
        return lone_chunk(o, CHUNK_SHUTDOWN_ACK, 0, NULL, 0);
    if (take_due(&due->heartbeat))
        return write_heartbeat(o, now_us);
    return 0;
}

static bool may_send_data(const struct osctp *o)
{
    return o->state == OSCTP_ESTABLISHED || o->state == OSCTP_SHUTDOWN_PENDING || o->state == OSCTP_SHUTDOWN_RECEIVED;
}

bool osctp_output(struct osctp *o, const uint8_t **p, uint32_t *n, uint64_t now_us)
{
    bool has = true;

    *p = o->out;
    *n = 0;
    if (o->answer_octets && !o->due.cookie_ack) {
        *p = o->answer;
        *n = o->answer_octets;
        o->answer_octets = 0;
    } else {
        *n = write_control(o, now_us);
    }
    if (*n)
        packet_set_checksum((uint8_t *)(uintptr_t)*p, packet_checksum(*p, *n));
    else
        has = may_send_data(o) && osctp_send(o, p, n, now_us);
    o->count.packets_out += has;
    return has;
}

/* A peer that acknowledges batches is one that sends them. */
bool osctp_urgent(const struct osctp *o)
{
    return o->rx.due && !o->batches;
}

/* --- packets of nobody --------------------------------------------------------------------------------------- */

static bool has_abort(const uint8_t *p, uint32_t n)
{
    uint32_t at = PACKET_COMMON;
    struct osctp_chunk chunk = {.type = CHUNK_DATA};

    while (chunk.type != CHUNK_ABORT && chunk_next(p, n, &at, &chunk))
        ;
    return chunk.type == CHUNK_ABORT;
}

uint32_t osctp_refuse(const uint8_t *p, uint32_t n, uint8_t *reply)
{
    uint32_t at = PACKET_COMMON, tag;
    struct osctp_chunk chunk;
    uint8_t *q;

    if (n < PACKET_COMMON || !chunk_next(p, n, &at, &chunk) || has_abort(p, n))
        return 0;
    tag = get32(p + TAG_AT);
    switch (chunk.type) {
    case CHUNK_SHUTDOWN_COMPLETE:
    case CHUNK_COOKIE_ACK:
    case CHUNK_ERROR:
        return 0;
    case CHUNK_INIT:
        if (tag || chunk.octets < CHUNK_INIT_HEAD || !get32(chunk.at + CHUNK_HEAD))
            return 0;
        q = chunk_packet(reply, packet_destination(p), packet_source(p), get32(chunk.at + CHUNK_HEAD));
        q = chunk_head(q, CHUNK_ABORT, 0, CHUNK_HEAD);
        break;
    default:
        q = chunk_packet(reply, packet_destination(p), packet_source(p), tag);
        q = chunk_head(q, chunk.type == CHUNK_SHUTDOWN_ACK ? CHUNK_SHUTDOWN_COMPLETE : CHUNK_ABORT, CHUNK_REFLECTS,
                       CHUNK_HEAD);
    }
    return (uint32_t)(q - reply);
}
