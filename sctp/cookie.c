/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cookie.c - the State Cookie: fields in a fixed order, and a SipHash of them. */
#include "sctp/cookie.h"

#include "base/bytes.h"
#include "base/siphash.h"

enum { MAC_AT = OSCTP_COOKIE - 8, MAC_PURPOSE = 1, ECN_AT = 47 };

static uint64_t cookie_mac(const uint64_t key[2], const uint8_t octets[OSCTP_COOKIE])
{
    return siphash(key, octets, MAC_AT);
}

void osctp_cookie_write(const struct osctp_cookie *cookie, const uint64_t key[2], uint8_t octets[OSCTP_COOKIE])
{
    uint8_t *q = octets;

    memset(octets, 0, OSCTP_COOKIE);
    q = put64(put64(q, cookie->made_us), cookie->peer);
    q = put32(put32(q, cookie->tag), cookie->tsn);
    q = put32(put32(q, cookie->peer_tag), cookie->peer_tsn);
    q = put32(put32(q, cookie->peer_window), cookie->peer_indication);
    q = put16(put16(q, cookie->local_port), cookie->peer_port);
    put8(put8(put16(q, cookie->streams), MAC_PURPOSE), cookie->ecn);
    put64(octets + MAC_AT, cookie_mac(key, octets));
}

bool osctp_cookie_read(struct osctp_cookie *cookie, const uint64_t key[2], const uint8_t *octets, uint32_t n)
{
    if (n != OSCTP_COOKIE || get64(octets + MAC_AT) != cookie_mac(key, octets))
        return false;
    *cookie = (struct osctp_cookie){
        .made_us = get64(octets),
        .peer = get64(octets + 8),
        .tag = get32(octets + 16),
        .tsn = get32(octets + 20),
        .peer_tag = get32(octets + 24),
        .peer_tsn = get32(octets + 28),
        .peer_window = get32(octets + 32),
        .peer_indication = get32(octets + 36),
        .local_port = get16(octets + 40),
        .peer_port = get16(octets + 42),
        .streams = get16(octets + 44),
        .ecn = octets[ECN_AT],
    };
    return true;
}
