/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* chunk.c - reads and writes chunks and parameters. */
#include "sctp/chunk.h"

#include <string.h>

#include "base/bytes.h"

enum {
    PARAMETER_COOKIE = 7,
    PARAMETER_HOST_NAME = 11,
    PARAMETER_INDICATION = 0xc006, /* RFC 5061 4.2.6 */
    PARAMETER_INDICATION_OCTETS = 8,
    PARAMETER_ECN = 0x8000,  /* ECN Capable */
    PARAMETER_SKIP = 0x8000, /* bits of an unknown type, as those of a chunk */
    PARAMETER_REPORT = 0x4000,
};

bool chunk_next(const uint8_t *p, uint32_t n, uint32_t *at, struct osctp_chunk *chunk)
{
    const uint8_t *q = p + *at;

    if (*at > n || n - *at < CHUNK_HEAD)
        return false;
    *chunk = (struct osctp_chunk){.type = q[0], .flags = q[1], .at = q, .octets = get16(q + 2)};
    if (chunk->octets < CHUNK_HEAD || chunk->octets > n - *at)
        return false;
    *at += chunk_padded(chunk->octets);
    return true;
}

/* Types that we know and have no use for: addresses, Unrecognized Parameter, Cookie Preservative, Supported Address
 * Types. */
static bool is_without_use(uint16_t type)
{
    return type == 5 || type == 6 || type == 8 || type == 9 || type == 12;
}

/* Returns false if the parameters behind an unknown one must not be looked at. */
static bool read_parameter(const uint8_t *p, uint32_t octets, struct chunk_init *init)
{
    uint16_t type = get16(p);

    if (type == PARAMETER_COOKIE) {
        init->cookie = p + PARAMETER_HEAD;
        init->cookie_octets = octets - PARAMETER_HEAD;
        return true;
    }
    if (type == PARAMETER_INDICATION) {
        if (octets == PARAMETER_INDICATION_OCTETS)
            init->indication = get32(p + PARAMETER_HEAD);
        return true;
    }
    if (type == PARAMETER_ECN) {
        init->ecn = true;
        return true;
    }
    if (type == PARAMETER_HOST_NAME) {
        init->host_name = p;
        return true;
    }
    if (is_without_use(type))
        return true;
    if (type & PARAMETER_REPORT && init->unknowns < CHUNK_UNKNOWN_MAX)
        init->unknown[init->unknowns++] = p;
    return type & PARAMETER_SKIP;
}

bool chunk_read_init(const struct osctp_chunk *chunk, struct chunk_init *init)
{
    const uint8_t *p = chunk->at;
    uint32_t at = CHUNK_INIT_HEAD;

    if (chunk->octets < CHUNK_INIT_HEAD)
        return false;
    *init = (struct chunk_init){
        .tag = get32(p + 4),
        .window = get32(p + 8),
        .out = get16(p + 12),
        .in = get16(p + 14),
        .tsn = get32(p + 16),
    };
    if (!init->tag || !init->out || !init->in || init->window < CHUNK_WINDOW_MIN)
        return false;
    while (at < chunk->octets && chunk->octets - at >= PARAMETER_HEAD) {
        uint32_t octets = get16(p + at + 2);

        if (octets < PARAMETER_HEAD || octets > chunk->octets - at)
            return false;
        if (!read_parameter(p + at, octets, init))
            break;
        at += chunk_padded(octets);
    }
    return true;
}

uint8_t *chunk_packet(uint8_t *p, uint16_t from, uint16_t to, uint32_t tag)
{
    return put32(put32(put16(put16(p, from), to), tag), 0);
}

uint8_t *chunk_head(uint8_t *p, uint8_t type, uint8_t flags, uint32_t octets)
{
    return put16(put8(put8(p, type), flags), (uint16_t)octets);
}

uint8_t *chunk_init(uint8_t *p, uint8_t type, const struct chunk_init *init)
{
    p = put32(put32(chunk_head(p, type, 0, CHUNK_INIT_HEAD), init->tag), init->window);
    return put32(put16(put16(p, init->out), init->in), init->tsn);
}

uint8_t *chunk_indication(uint8_t *p, uint32_t indication)
{
    uint8_t value[4];

    put32(value, indication);
    return indication ? chunk_parameter(p, PARAMETER_INDICATION, value, sizeof(value)) : p;
}

uint8_t *chunk_ecn(uint8_t *p)
{
    return chunk_parameter(p, PARAMETER_ECN, NULL, 0);
}

uint8_t *chunk_parameter(uint8_t *p, uint16_t type, const void *value, uint32_t octets)
{
    p = put16(put16(p, type), (uint16_t)(PARAMETER_HEAD + octets));
    memset(p, 0, chunk_padded(octets));
    put_bytes(p, value, octets);
    return p + chunk_padded(octets);
}

uint8_t *chunk_close(uint8_t *chunk, uint8_t *end)
{
    uint32_t octets = (uint32_t)(end - chunk);

    put16(chunk + 2, (uint16_t)octets);
    memset(end, 0, chunk_padded(octets) - octets);
    return chunk + chunk_padded(octets);
}
