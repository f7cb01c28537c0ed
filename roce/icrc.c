/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* icrc.c - computes the invariant CRC, and verifies it although a socket does not show the IP header. */
#include "roce/icrc.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "roce/bth.h"

enum {
    LINK_OCTETS = 8, /* of ones in front, for a header that Ethernet does not have */
    IPV4_OCTETS = 20,
    IPV6_OCTETS = 40,
    UDP_OCTETS = 8,
    BELOW_OCTETS = LINK_OCTETS + IPV6_OCTETS + UDP_OCTETS,
    IPV4_BEHIND_ID = IPV4_OCTETS - 6,
    PROTOCOL_UDP = 17,
    DONT_FRAGMENT = 0x4000,
    VARIANT = 0xff, /* stands for an octet that routers may change */
    CHECKSUM = 0xffff,
    BTH_VARIANT_AT = 4, /* FECN, BECN and reserved bits: zero in almost every packet */
};

/* As a CRC is linear, this change of it in front of a BTH does what ones in place of a variant octet of zero do. */
#define VARIANT_CHANGE 0x0f6a70d9u

/* TOS, TTL and the checksum are variant. */
static uint8_t *put_ipv4(uint8_t *p, const struct icrc_path *path, uint16_t identification, uint16_t udp_octets)
{
    p = put16(put8(put8(p, 0x45), VARIANT), (uint16_t)(IPV4_OCTETS + udp_octets));
    p = put16(put16(p, identification), DONT_FRAGMENT);
    p = put16(put8(put8(p, VARIANT), PROTOCOL_UDP), CHECKSUM);
    return put_bytes(put_bytes(p, path->source, 4), path->destination, 4);
}

/* Traffic class, flow label and hop limit are variant. */
static uint8_t *put_ipv6(uint8_t *p, const struct icrc_path *path, uint16_t udp_octets)
{
    p = put16(put32(p, 0x6fffffff), udp_octets);
    p = put8(put8(p, PROTOCOL_UDP), VARIANT);
    return put_bytes(put_bytes(p, path->source, 16), path->destination, 16);
}

static uint8_t *put_below(uint8_t *p, const struct icrc_path *path, uint16_t identification, uint32_t octets)
{
    uint16_t udp_octets = (uint16_t)(octets + UDP_OCTETS);

    p = put64(p, UINT64_MAX);
    p = path->ipv6 ? put_ipv6(p, path, udp_octets) : put_ipv4(p, path, identification, udp_octets);
    p = put16(put16(p, path->source_port), path->destination_port);
    return put16(put16(p, udp_octets), CHECKSUM);
}

static uint32_t crc_below(const struct icrc_path *path, uint16_t identification, uint32_t octets)
{
    uint8_t below[BELOW_OCTETS], *p = put_below(below, path, identification, octets);

    return crc32(0, below, (size_t)(p - below));
}

/* What each bit of an identification changes of that CRC: its place in front of the end does not. */
static const uint32_t identified[16] = {
    0x9b73ead4, 0xed96d3e9, 0x005ca193, 0x00b94326, 0x0172864c, 0x02e50c98, 0x05ca1930, 0x0b943260,
    0x81256527, 0xd93bcc0f, 0x69069e5f, 0xd20d3cbe, 0x7f6b7f3d, 0xfed6fe7a, 0x26dcfab5, 0x4db9f56a,
};

static uint32_t memo_look_up(const struct icrc_path *path, uint16_t identification, uint32_t octets)
{
    uint32_t i = octets / 4 % ICRC_MEMOS, crc;

    if (path->memo->at[i].octets != octets) {
        path->memo->at[i].crc = crc_below(path, 0, octets);
        path->memo->at[i].octets = octets;
    }
    crc = path->memo->at[i].crc;
    for (uint32_t bits = path->ipv6 ? 0 : identification; bits; bits &= bits - 1)
        crc ^= identified[__builtin_ctz(bits)];
    return crc;
}

static inline uint32_t begin_crc(const struct icrc_path *path, uint16_t identification, uint32_t octets)
{
    return path->memo ? memo_look_up(path, identification, octets) : crc_below(path, identification, octets);
}

uint32_t icrc_begin(const struct icrc_path *path, uint16_t identification, uint32_t octets)
{
    return begin_crc(path, identification, octets);
}

/* A CRC of many octets costs little more than one of a few. */
uint32_t icrc_begin_head(const struct icrc_path *path, uint16_t identification, uint32_t octets, const uint8_t *head,
                         uint32_t head_octets)
{
    uint8_t all[BELOW_OCTETS + BTH_HEAD_MAX], *bth, *end;

    if (path->memo)
        return icrc_head(begin_crc(path, identification, octets), head, head_octets);
    end = put_bytes(put_below(all, path, identification, octets), head, head_octets);
    bth = end - head_octets;
    bth[BTH_VARIANT_AT] = VARIANT;
    return crc32(0, all, (size_t)(end - all));
}

uint32_t icrc_head(uint32_t crc, const uint8_t *head, uint32_t octets)
{
    uint8_t masked[BTH_OCTETS];

    if (!head[BTH_VARIANT_AT])
        return crc32(crc ^ VARIANT_CHANGE, head, octets);
    memcpy(masked, head, BTH_OCTETS);
    masked[BTH_VARIANT_AT] = VARIANT;
    return crc32(crc32(crc, masked, BTH_OCTETS), head + BTH_OCTETS, octets - BTH_OCTETS);
}

void icrc_seal(const struct icrc_path *path, uint16_t identification, uint8_t *p, uint32_t octets)
{
    uint32_t body = octets - ICRC_OCTETS;

    put32le(p + body, icrc_head(begin_crc(path, identification, octets), p, body));
}

/* Returns the difference between the ICRC of the packet and the one that it should have. */
static uint32_t difference(const struct icrc_path *path, uint16_t identification, const uint8_t *p, uint32_t octets)
{
    uint32_t body = octets - ICRC_OCTETS;

    return icrc_head(begin_crc(path, identification, octets), p, body) ^ get32le(p + body);
}

bool icrc_is_exact(const struct icrc_path *path, uint16_t identification, const uint8_t *p, uint32_t octets)
{
    return !difference(path, identification, p, octets);
}

/* --- without the identification -------------------------------------------------------------------------------- */

/* Returns the place of the row whose highest bit is that of `change`, among those of the sixteen; rows with other bits
 * are reduced by the rows found. */
static uint32_t icrc_reduce(const struct icrc_space *space, uint32_t change, uint16_t *without)
{
    for (unsigned i = 0; i < 16 && space->change[i]; i++) {
        uint32_t top = 1u << (31 - __builtin_clz(space->change[i]));

        if (change & top) {
            change ^= space->change[i];
            *without ^= space->without[i];
        }
    }
    return change;
}

/* How a change of these bits of the identification changes the ICRC of a packet of this length. */
static uint32_t change_of(uint16_t bits, uint32_t octets)
{
    static const uint8_t zeros[2];
    uint8_t identification[2];

    put16(identification, bits);
    return crc32_shift(crc32(0, identification, 2) ^ crc32(0, zeros, 2),
                       IPV4_BEHIND_ID + UDP_OCTETS + octets - ICRC_OCTETS);
}

void icrc_renumber(uint8_t *p, uint32_t octets, uint16_t from, uint16_t to)
{
    uint8_t *icrc = p + octets - ICRC_OCTETS;

    put32le(icrc, get32le(icrc) ^ change_of(from ^ to, octets));
}

/* Gaussian elimination over the changes that the sixteen bits make, each moved behind the octets that follow it. */
static void compute(struct icrc_space *space, uint32_t octets)
{
    *space = (struct icrc_space){.octets = octets};
    for (unsigned bit = 0, rows = 0; bit < 16; bit++) {
        uint16_t without = (uint16_t)(1u << bit);
        uint32_t change = icrc_reduce(space, change_of(without, octets), &without);

        if (!change)
            continue;
        space->change[rows] = change;
        space->without[rows++] = without;
    }
}

bool icrc_is_right(const struct icrc_path *path, const uint8_t *p, uint32_t octets, struct icrc_space *space)
{
    return icrc_is_right_at(path, 0, p, octets, space);
}

bool icrc_is_right_at(const struct icrc_path *path, uint16_t place, const uint8_t *p, uint32_t octets,
                      struct icrc_space *space)
{
    uint32_t change = difference(path, place, p, octets);
    uint16_t without = 0;

    if (!change || path->ipv6)
        return !change;
    if (space->octets != octets)
        compute(space, octets);
    return !icrc_reduce(space, change, &without);
}
