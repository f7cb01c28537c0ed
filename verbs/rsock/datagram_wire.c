/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagram_wire.c - what goes before a datagram: the address of its sender between queue pairs, a greeting by UDP. */
#include <netinet/in.h>
#include <string.h>

#include "verbs/rsock/rsock_datagram.h"

enum {
    IPV4 = 4, /* versions */
    IPV6 = 6,
    ORIGIN_V4 = 8,
    ORIGIN_V6 = 24,
    GREETING_V4 = 16,
    GREETING_V6 = 28,
    TAG = 0x55555555,
    QPN_MASK = 0xffffff,
};

static const struct sockaddr_in *v4_of(const struct sockaddr_storage *address)
{
    return (const struct sockaddr_in *)address;
}

static const struct sockaddr_in6 *v6_of(const struct sockaddr_storage *address)
{
    return (const struct sockaddr_in6 *)address;
}

void rs_address_plain(struct sockaddr_storage *address)
{
    struct sockaddr_in6 v6 = *v6_of(address);
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;

    if (v6.sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
        return;
    memset(address, 0, sizeof(*address));
    v4->sin_family = AF_INET;
    v4->sin_port = v6.sin6_port;
    memcpy(&v4->sin_addr, v6.sin6_addr.s6_addr + 12, 4);
}

void rs_address_shown(const struct rsocket *rs, struct sockaddr_storage *address)
{
    struct sockaddr_in v4 = *v4_of(address);
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

    if (rs->family != AF_INET6 || v4.sin_family != AF_INET)
        return;
    memset(address, 0, sizeof(*address));
    v6->sin6_family = AF_INET6;
    v6->sin6_port = v4.sin_port;
    v6->sin6_addr.s6_addr[10] = v6->sin6_addr.s6_addr[11] = 0xff;
    memcpy(v6->sin6_addr.s6_addr + 12, &v4.sin_addr, 4);
}

/* Version, length, port, and an address, which has a flow before it in IPv6: all in network order, as in a sockaddr. */
unsigned rs_origin_encode(uint8_t out[RD_ORIGIN_MAX], const struct sockaddr_storage *address)
{
    const bool is_v4 = address->ss_family == AF_INET;

    out[0] = is_v4 ? IPV4 : IPV6;
    out[1] = is_v4 ? ORIGIN_V4 : ORIGIN_V6;
    memcpy(out + 2, &v4_of(address)->sin_port, 2); /* at the same place for IPv6 */
    if (is_v4) {
        memcpy(out + 4, &v4_of(address)->sin_addr, 4);
    } else {
        memcpy(out + 4, &v6_of(address)->sin6_flowinfo, 4);
        memcpy(out + 8, &v6_of(address)->sin6_addr, 16);
    }
    return out[1];
}

unsigned rs_origin_decode(struct sockaddr_storage *address, const uint8_t *from, size_t n)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

    memset(address, 0, sizeof(*address));
    if (n >= ORIGIN_V4 && from[0] == IPV4 && from[1] == ORIGIN_V4) {
        v4->sin_family = AF_INET;
        memcpy(&v4->sin_addr, from + 4, 4);
    } else if (n >= ORIGIN_V6 && from[0] == IPV6 && from[1] == ORIGIN_V6) {
        v6->sin6_family = AF_INET6;
        memcpy(&v6->sin6_flowinfo, from + 4, 4);
        memcpy(&v6->sin6_addr, from + 8, 16);
    } else {
        return 0;
    }
    memcpy(&v4->sin_port, from + 2, 2);
    return from[1];
}

/* Tag, version, what it is, length, an octet of nothing, the queue pair, and the address without its port. */
unsigned rs_greeting_encode(uint8_t out[RD_GREETING_MAX], const struct rs_greeting *greeting)
{
    const bool is_v4 = greeting->address.ss_family == AF_INET;
    const uint32_t tag = htonl(TAG), qpn = htonl(greeting->qpn & QPN_MASK);

    memcpy(out, &tag, 4);
    out[4] = is_v4 ? IPV4 : IPV6;
    out[5] = (uint8_t)greeting->what;
    out[6] = is_v4 ? GREETING_V4 : GREETING_V6;
    out[7] = 0;
    memcpy(out + 8, &qpn, 4);
    if (is_v4)
        memcpy(out + 12, &v4_of(&greeting->address)->sin_addr, 4);
    else
        memcpy(out + 12, &v6_of(&greeting->address)->sin6_addr, 16);
    return out[6];
}

/* The address is not looked at: that of the UDP packet counts, since the answer has to get there. */
unsigned rs_greeting_decode(struct rs_greeting *greeting, const uint8_t *from, size_t n)
{
    uint32_t tag, qpn;

    if (n < GREETING_V4)
        return 0;
    memcpy(&tag, from, 4);
    memcpy(&qpn, from + 8, 4);
    if (ntohl(tag) != TAG || (from[5] != RS_DATA && from[5] != RS_CONTROL))
        return 0;
    greeting->what = (enum rs_message)from[5];
    greeting->qpn = ntohl(qpn) & QPN_MASK;
    if (from[4] == IPV4 && from[6] == GREETING_V4)
        return GREETING_V4;
    return from[4] == IPV6 && from[6] == GREETING_V6 && n >= GREETING_V6 ? GREETING_V6 : 0;
}
