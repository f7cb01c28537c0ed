/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_packet.c - SCTP's common header, the fixed fields of INIT, and the causes of an ABORT (RFC 9260 3). */
#include "net/usctp_packet.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"

enum {
    DESTINATION = 2,
    CHECKSUM = 8,
    CHUNK = 4,
    DATA = 0,
    INIT = 1,
    INIT_ACK = 2,
    SACK = 3,
    ABORT = 6,
    INIT_TSN = CHUNK + 12, /* offset in the chunk */
    INIT_OCTETS = CHUNK + 16,
    DATA_OCTETS = CHUNK + 12,
    DATA_IMMEDIATE = 0x08, /* the I bit */
    SACK_GAPS = CHUNK + 8, /* offset in the chunk */
    SACK_OCTETS = CHUNK + 12,
    CAUSE = 4,
    CAUSE_USER = 12,
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

bool packet_is_sound(const uint8_t *p, size_t n)
{
    static const uint8_t none[PACKET_COMMON - CHECKSUM];
    uint32_t crc;

    if (n < PACKET_COMMON + CHUNK)
        return false;
    crc = crc32c(0, p, CHECKSUM);
    crc = crc32c(crc, none, sizeof(none));
    return crc32c(crc, p + PACKET_COMMON, n - PACKET_COMMON) == get32le(p + CHECKSUM);
}

bool packet_read_init(const uint8_t *p, size_t n, struct packet_init *init)
{
    const uint8_t *chunk = p + PACKET_COMMON;

    if (n < PACKET_COMMON + INIT_OCTETS || (chunk[0] != INIT && chunk[0] != INIT_ACK))
        return false;
    init->tsn = get32(chunk + INIT_TSN);
    return true;
}

bool packet_read_data(const uint8_t *p, size_t n, uint32_t *tsn, uint32_t *next)
{
    size_t at = PACKET_COMMON;
    uint32_t chunks = 0;

    for (; at + DATA_OCTETS <= n; chunks++) {
        size_t octets = get16(p + at + 2);

        if (p[at] != DATA || octets <= DATA_OCTETS || octets > n - at)
            return false;
        if (!chunks)
            *tsn = get32(p + at + CHUNK);
        else if (get32(p + at + CHUNK) != *tsn + chunks)
            return false;
        at += (octets + 3) & ~(size_t)3;
    }
    *next = *tsn + chunks;
    return chunks && at == n;
}

void packet_ask_ack(uint8_t *p)
{
    p[PACKET_COMMON + 1] |= DATA_IMMEDIATE;
}

bool packet_read_sack(const uint8_t *p, size_t n, bool *gaps)
{
    if (n < PACKET_COMMON + SACK_OCTETS || p[PACKET_COMMON] != SACK)
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
    uint8_t packet[PACKET_REFUSAL] = {0}, *q = packet;

    if (n < PACKET_COMMON + INIT_OCTETS || p[PACKET_COMMON] != INIT)
        return false;
    q = put16(q, get16(p + DESTINATION));
    q = put16(q, get16(p));
    put32(q, get32(p + PACKET_COMMON + CHUNK)); /* the verification tag that the sender of the INIT expects */
    q = packet + PACKET_COMMON;
    *q++ = ABORT;
    *q++ = 0;
    put16(q, CHUNK);
    packet_seal(refusal, packet, sizeof(packet));
    return true;
}

const uint8_t *packet_reason(const uint8_t *chunk, size_t n, size_t *length)
{
    size_t at = CHUNK, end;

    if (n < CHUNK || chunk[0] != ABORT)
        return NULL;
    end = get16(chunk + 2) < n ? get16(chunk + 2) : n;
    while (at < end && end - at >= CAUSE) {
        size_t octets = get16(chunk + at + 2);

        if (octets < CAUSE || octets > end - at)
            return NULL;
        if (get16(chunk + at) == CAUSE_USER) {
            *length = octets - CAUSE;
            return chunk + at + CAUSE;
        }
        at += (octets + 3) & ~(size_t)3;
    }
    return NULL;
}
