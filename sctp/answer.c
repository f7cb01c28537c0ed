/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* answer.c - the packets of chunks that answer those of the peer. */
#include <string.h>

#include "base/bytes.h"
#include "sctp/inner.h"

uint8_t *osctp_add_answer(struct osctp *o, uint8_t type, uint32_t octets)
{
    uint32_t at = o->answer_octets ? o->answer_octets : PACKET_COMMON;

    if (!o->peer_tag || chunk_padded(CHUNK_HEAD + octets) > osctp_min(OSCTP_ANSWER, o->attr.packet_max) - at)
        return NULL;
    if (!o->answer_octets)
        chunk_packet(o->answer, o->attr.local_port, o->attr.peer_port, o->peer_tag);
    memset(o->answer + at, 0, chunk_padded(CHUNK_HEAD + octets));
    o->answer_octets = at + chunk_padded(CHUNK_HEAD + octets);
    return chunk_head(o->answer + at, type, 0, CHUNK_HEAD + octets);
}

bool osctp_add_echo(struct osctp *o, const uint8_t *info, uint32_t octets)
{
    uint32_t n = chunk_padded(CHUNK_HEAD + octets);
    uint8_t *chunk, *q = osctp_add_answer(o, CHUNK_HEARTBEAT_ACK, octets);

    if (q) {
        put_bytes(q, info, octets);
        return true;
    }
    if (!o->peer_tag || o->echo_octets || n <= OSCTP_ANSWER - PACKET_COMMON || n > o->attr.packet_max - PACKET_COMMON)
        return false;
    if (!o->echo)
        o->echo = o->user->lend(o->of);
    if (!o->echo)
        return false;
    chunk = chunk_packet(o->echo, o->attr.local_port, o->attr.peer_port, o->peer_tag);
    chunk_close(chunk, put_bytes(chunk_head(chunk, CHUNK_HEARTBEAT_ACK, 0, 0), info, octets));
    o->echo_octets = PACKET_COMMON + n;
    return true;
}
