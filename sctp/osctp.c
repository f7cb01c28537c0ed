/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp.c - the packets of an association, and its end. */
#include "sctp/osctp.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "sctp/inner.h"

enum { TAG_AT = 4, HEARTBEAT_INFO = 1 };

/* --- the end ------------------------------------------------------------------------------------------------- */

void osctp_abort(struct osctp *o, const void *reason, uint32_t octets)
{
    if (o->state == OSCTP_CLOSED)
        return;
    osctp_fail(o, CAUSE_USER_ABORT, reason, octets);
    o->due.abort = o->peer_tag != 0;
    o->end = OSCTP_LEFT;
}

void osctp_shutdown(struct osctp *o, uint64_t now_us)
{
    if (o->state == OSCTP_COOKIE_WAIT || o->state == OSCTP_COOKIE_ECHOED)
        osctp_abort(o, NULL, 0);
    else if (o->state == OSCTP_ESTABLISHED)
        o->state = OSCTP_SHUTDOWN_PENDING;
    osctp_drained(o, now_us);
}

void osctp_lend(struct osctp *o, struct osctp_sent *sent)
{
    assert(o->tx.first == o->tx.end);
    o->tx.sent = sent;
}

void osctp_free(struct osctp *o)
{
    for (; o->tx.first != o->tx.end; o->tx.first++)
        o->user->put_back(o->of, osctp_sent_at(o, o->tx.first)->packet);
    o->tx.unsent = o->tx.first;
    if (o->echo)
        o->user->put_back(o->of, o->echo);
    o->echo = NULL;
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

    o->timer.asked_us = now_us;
    put32(put64(put16(put16(info, HEARTBEAT_INFO), sizeof(info)), now_us), o->attr.tag);
    return lone_chunk(o, CHUNK_HEARTBEAT, 0, info, sizeof(info));
}

/* Behind the cookie is what we have to say of the INIT-ACK: before it the peer does not know us (RFC 9260 3.2.2). */
static uint32_t write_echo(struct osctp *o)
{
    uint32_t n = lone_chunk(o, CHUNK_COOKIE_ECHO, 0, o->cookie, o->cookie_octets);
    uint32_t more = o->answer_octets ? o->answer_octets - PACKET_COMMON : 0;

    if (more > osctp_min(OSCTP_ANSWER, o->attr.packet_max) - n)
        return n;
    put_bytes(o->out + n, o->answer + PACKET_COMMON, more);
    o->answer_octets = 0;
    return n + more;
}

/* RFC 9260 appendix A: a SACK, and before it what was marked. */
static uint32_t write_sack(struct osctp *o)
{
    uint8_t *p = begin_packet(o), *end = o->out + osctp_min(OSCTP_ANSWER, o->attr.packet_max);

    if (o->rx.echoes)
        p = put32(chunk_head(p, CHUNK_ECNE, 0, CHUNK_HEAD + 4), o->rx.marked_tsn);
    p += osctp_write_sack(o, p, (uint32_t)(end - p));
    return (uint32_t)(p - o->out);
}

static uint32_t write_cwr(struct osctp *o)
{
    uint8_t tsn[4];

    put32(tsn, o->congestion.reacted);
    return lone_chunk(o, CHUNK_CWR, 0, tsn, sizeof(tsn));
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
        return write_echo(o);
    if (take_due(&due->cookie_ack))
        return lone_chunk(o, CHUNK_COOKIE_ACK, 0, NULL, 0);
    if (o->rx.due)
        return write_sack(o);
    if (take_due(&due->cwr))
        return write_cwr(o);
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
    if (o->answer_octets && !o->due.cookie_ack && !o->due.echo) {
        *p = o->answer;
        *n = o->answer_octets;
        o->answer_octets = 0;
    } else if (o->echo_octets) {
        *p = o->echo;
        *n = o->echo_octets;
        o->echo_octets = 0;
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

bool osctp_is_ect(const struct osctp *o, const uint8_t *p)
{
    return o->ecn && osctp_lasts(o, p) && !o->tx.repeats;
}

/* A peer that acknowledges batches is one that sends them. */
bool osctp_urgent(const struct osctp *o)
{
    return o->rx.due && !o->batches;
}
