/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.c - SCTP's common header, and the causes of an ABORT (RFC 9260 3). */
#include "sctp/packet.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "sctp/chunk.h"

enum {
    DESTINATION = 2,
    CHECKSUM = 8,
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

uint16_t packet_source(const uint8_t *p)
{
    return get16(p);
}

uint16_t packet_destination(const uint8_t *p)
{
    return get16(p + DESTINATION);
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
