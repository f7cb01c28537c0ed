/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_ip.c - the service IDs of rdma_cm, and the addresses that its requests begin with. */
#include "base/bytes.h"
#include "roce/rcm_message.h"

/* A service ID: a prefix of 40 bits, the port space in 8, the port in 16. */
enum { SPACE_SHIFT = 16, PREFIX_SHIFT = 24, PREFIX = 1 };

uint64_t rcm_service(enum rcm_space space, uint16_t port)
{
    return (uint64_t)PREFIX << PREFIX_SHIFT | (uint64_t)space << SPACE_SHIFT | port;
}

bool rcm_service_port(uint64_t service, enum rcm_space *space, uint16_t *port)
{
    uint8_t code = (uint8_t)(service >> SPACE_SHIFT);

    if (service >> PREFIX_SHIFT != PREFIX || (code != RCM_SPACE_TCP && code != RCM_SPACE_UDP && code != RCM_SPACE_IB))
        return false;
    *space = code;
    *port = (uint16_t)service;
    return true;
}

/* Version 8 (major 4, minor 4); IP version 4, reserved 4; port 16; source address 128; destination address 128. */
enum { VERSION = 0, FAMILY_SHIFT = 4, IPV4 = 4, IPV6 = 6, GID_OCTETS = 16, IPV4_AT = 12 };

static const uint8_t mapped[IPV4_AT] = {[10] = 0xff, [11] = 0xff};

/* An IPv4 address is in the last four octets, behind zeros on the wire, behind ::ffff in a GID. */
static void get_address(uint8_t *gid, const uint8_t *p, bool ipv6)
{
    memcpy(gid, p, GID_OCTETS);
    if (!ipv6)
        memcpy(gid, mapped, IPV4_AT);
}

static uint8_t *put_address(uint8_t *p, const uint8_t *gid, bool ipv6)
{
    put_bytes(p, gid, GID_OCTETS);
    if (!ipv6)
        memset(p, 0, IPV4_AT);
    return p + GID_OCTETS;
}

bool rcm_ip_decode(struct rcm_ip *ip, const uint8_t *p)
{
    uint8_t family = p[1] >> FAMILY_SHIFT;

    if (p[0] != VERSION || (family != IPV4 && family != IPV6))
        return false;
    ip->ipv6 = family == IPV6;
    ip->port = get16(p + 2);
    get_address(ip->source, p + 4, ip->ipv6);
    get_address(ip->destination, p + 4 + GID_OCTETS, ip->ipv6);
    return true;
}

void rcm_ip_encode(const struct rcm_ip *ip, uint8_t *p)
{
    p = put8(put8(p, VERSION), (uint8_t)((ip->ipv6 ? IPV6 : IPV4) << FAMILY_SHIFT));
    p = put16(p, ip->port);
    put_address(put_address(p, ip->source, ip->ipv6), ip->destination, ip->ipv6);
}

bool rcm_is_ipv4(const uint8_t *gid)
{
    return !memcmp(gid, mapped, IPV4_AT);
}
