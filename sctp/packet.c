/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.c - SCTP's common header, the fixed fields of INIT, and the causes of an ABORT (RFC 9260 3). */
#include "sctp/packet.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "sctp/chunk.h"

enum {
    DESTINATION = 2,
    CHECKSUM = 8,
    INIT_TSN = CHUNK_HEAD + 12, /* offset in the chunk */
    SACK_GAPS = CHUNK_HEAD + 8, /* offset in the chunk */
};

void packet_seal(uint8_t *to, const uint8_t *p, size_t n)
{
    uint32_t crc;

    memcpy(to, p, CHECKSUM);
    memset(to + CHECKSUM, 0, PACKET_COMMON - CHECKSUM);
    crc = crc32c(0, to, PACKET_COMMON);
    crc = crc32c_copy(crc, to + PACKET_COMMON, p + PACKET_COMMON, n - PACKET_COMMON);
    put32le(to + CHECKSUM, crc);
}

uint32_t packet_checksum(const uint8_t *p, size_t n)
{
    static const uint8_t none[PACKET_COMMON - CHECKSUM];
    uint32_t crc = crc32c(0, p, CHECKSUM);

    crc = crc32c(crc, none, sizeof(none));
    return crc32c(crc, p + PACKET_COMMON, n - PACKET_COMMON);
}

void packet_set_checksum(uint8_t *p, uint32_t crc)
{
    put32le(p + CHECKSUM, crc);
}

bool packet_is_sound(const uint8_t *p, size_t n)
{
    return n >= PACKET_COMMON + CHUNK_HEAD && packet_checksum(p, n) == get32le(p + CHECKSUM);
}

bool packet_read_init(const uint8_t *p, size_t n, struct packet_init *init)
{
    const uint8_t *chunk = p + PACKET_COMMON;

    if (n < PACKET_COMMON + CHUNK_INIT_HEAD || (chunk[0] != CHUNK_INIT && chunk[0] != CHUNK_INIT_ACK))
        return false;
    init->tsn = get32(chunk + INIT_TSN);
    return true;
}

bool packet_read_data(const uint8_t *p, size_t n, uint32_t *tsn, uint32_t *next)
{
    size_t at = PACKET_COMMON;
    uint32_t chunks = 0;

    for (; at + CHUNK_DATA_HEAD <= n; chunks++) {
        size_t octets = get16(p + at + 2);

        if (p[at] != CHUNK_DATA || octets <= CHUNK_DATA_HEAD || octets > n - at)
            return false;
        if (!chunks)
            *tsn = get32(p + at + CHUNK_HEAD);
        else if (get32(p + at + CHUNK_HEAD) != *tsn + chunks)
            return false;
        at += (octets + 3) & ~(size_t)3;
    }
    *next = *tsn + chunks;
    return chunks && at == n;
}

void packet_ask_ack(uint8_t *p)
{
    p[PACKET_COMMON + 1] |= CHUNK_AT_ONCE;
}

bool packet_read_sack(const uint8_t *p, size_t n, bool *gaps)
{
    if (n < PACKET_COMMON + CHUNK_SACK_HEAD || p[PACKET_COMMON] != CHUNK_SACK)
        return false;
    *gaps = get16(p + PACKET_COMMON + SACK_GAPS) != 0;
    return true;
}

uint16_t packet_source(const uint8_t *p)
{
    return get16(p);
}

uint16_t packet_destination(const uint8_t *p)
{
    return get16(p + DESTINATION);
}

void packet_set_destination(uint8_t *p, uint16_t port)
{
    put16(p + DESTINATION, port);
}

void packet_set_source(uint8_t *p, uint16_t port)
{
    put16(p, port);
}

bool packet_refuse(const uint8_t *p, size_t n, uint8_t refusal[PACKET_REFUSAL])
{
    uint8_t packet[PACKET_REFUSAL], *q;

    if (n < PACKET_COMMON + CHUNK_INIT_HEAD || p[PACKET_COMMON] != CHUNK_INIT)
        return false;
    /* With the verification tag that the sender of the INIT expects. */
    q = chunk_packet(packet, packet_destination(p), packet_source(p), get32(p + PACKET_COMMON + CHUNK_HEAD));
    chunk_head(q, CHUNK_ABORT, 0, CHUNK_HEAD);
    packet_seal(refusal, packet, sizeof(packet));
    return true;
}

const uint8_t *packet_reason(const uint8_t *chunk, size_t n, size_t *length)
{
    size_t at = CHUNK_HEAD, end;

    if (n < CHUNK_HEAD || chunk[0] != CHUNK_ABORT)
        return NULL;
    end = get16(chunk + 2) < n ? get16(chunk + 2) : n;
    while (at < end && end - at >= CAUSE_HEAD) {
        size_t octets = get16(chunk + at + 2);

        if (octets < CAUSE_HEAD || octets > end - at)
            return NULL;
        if (get16(chunk + at) == CAUSE_USER_ABORT) {
            *length = octets - CAUSE_HEAD;
            return chunk + at + CAUSE_HEAD;
        }
        at += (octets + 3) & ~(size_t)3;
    }
    return NULL;
}
