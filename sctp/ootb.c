/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ootb.c - packets out of the blue, which belong to no association (RFC 9260 8.4), and those that ICMP quotes. */
#include "base/bytes.h"
#include "sctp/chunk.h"
#include "sctp/osctp.h"

enum { TAG_AT = 4 };

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

bool osctp_is_quoted(const struct osctp *o, const uint8_t *p, uint32_t n)
{
    if (n < TAG_AT + 4 || packet_source(p) != o->attr.local_port || packet_destination(p) != o->attr.peer_port)
        return false;
    if (get32(p + TAG_AT))
        return o->peer_tag && get32(p + TAG_AT) == o->peer_tag;
    return n >= PACKET_COMMON + CHUNK_HEAD + 4 && p[PACKET_COMMON] == CHUNK_INIT &&
           get32(p + PACKET_COMMON + CHUNK_HEAD) == o->attr.tag;
}
