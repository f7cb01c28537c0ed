/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* grh.c - the header in front of a datagram, of IPv6 or IPv4. */
#include "roce/grh.h"

#include <string.h>

#include "base/bytes.h"

enum {
    IPV4_AT = 20,   /* where a header of IPv4 begins */
    IPV4_HEAD = 20, /* its octets */
    IPV4_BEGIN = 0x45,
    IPV6_BEGIN = 6, /* the upper half of the first octet */
    UDP_HEAD = 8,
    DONT_FRAGMENT = 0x4000,
    HOPS = 64,
    UDP = 17,
    MAPPED = 12, /* octets in front of a mapped address of IPv4 */
};

static const uint8_t mapped[MAPPED] = {[10] = 0xff, 0xff};

/* RFC 1071: 0 over a header with its checksum. */
static uint16_t ipv4_sum(const uint8_t *head)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < IPV4_HEAD; i += 2)
        sum += get16(head + i);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~((sum & 0xffff) + (sum >> 16));
}

static void write_ipv4(uint8_t *head, const uint8_t *from, const uint8_t *to, uint32_t octets)
{
    uint8_t *p = put8(put8(head, IPV4_BEGIN), 0), *sum;

    p = put16(p, (uint16_t)(IPV4_HEAD + UDP_HEAD + octets));
    p = put16(put16(p, 0), DONT_FRAGMENT);
    sum = put8(put8(p, HOPS), UDP);
    p = put16(sum, 0);
    put_bytes(put_bytes(p, from + MAPPED, 4), to + MAPPED, 4);
    put16(sum, ipv4_sum(head));
}

static void write_ipv6(uint8_t *head, const uint8_t *from, const uint8_t *to, uint32_t octets)
{
    uint8_t *p = put32(head, (uint32_t)IPV6_BEGIN << 28);

    p = put8(put8(put16(p, (uint16_t)(UDP_HEAD + octets)), UDP), HOPS);
    put_bytes(put_bytes(p, from, GRH_ADDRESS), to, GRH_ADDRESS);
}

void grh_write(uint8_t grh[GRH_OCTETS], const uint8_t from[GRH_ADDRESS], const uint8_t to[GRH_ADDRESS], uint32_t octets)
{
    memset(grh, 0, GRH_OCTETS);
    if (memcmp(from, mapped, MAPPED) == 0)
        write_ipv4(grh + IPV4_AT, from, to, octets);
    else
        write_ipv6(grh, from, to, octets);
}

bool grh_is_ipv4(const uint8_t grh[GRH_OCTETS])
{
    return grh[0] >> 4 != IPV6_BEGIN;
}

static void read_ipv4(const uint8_t *p, uint8_t address[GRH_ADDRESS])
{
    put_bytes(put_bytes(address, mapped, MAPPED), p, 4);
}

bool grh_read(const uint8_t grh[GRH_OCTETS], uint8_t from[GRH_ADDRESS], uint8_t to[GRH_ADDRESS])
{
    const uint8_t *ipv4 = grh + IPV4_AT;

    if (ipv4[0] == IPV4_BEGIN && !ipv4_sum(ipv4)) {
        read_ipv4(ipv4 + 12, from);
        read_ipv4(ipv4 + 16, to);
        return true;
    }
    if (grh[0] >> 4 != IPV6_BEGIN)
        return false;
    memcpy(from, grh + 8, GRH_ADDRESS);
    memcpy(to, grh + 24, GRH_ADDRESS);
    return true;
}
