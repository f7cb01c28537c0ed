/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cookie.h - the State Cookie (RFC 9260 5.1.3): what the passive end has to know of an association is kept by the peer,
 * with a MAC of ours. */
#ifndef RDDP_SCTP_COOKIE_H
#define RDDP_SCTP_COOKIE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    OSCTP_COOKIE = 64,       /* octets of ours */
    OSCTP_COOKIE_MAX = 1024, /* of a peer's */
};

#define OSCTP_COOKIE_US UINT64_C(60000000) /* Valid.Cookie.Life (RFC 9260 16) */

struct osctp_cookie {
    uint64_t made_us;
    uint64_t peer; /* number of the peer's address */
    uint32_t tag, tsn, peer_tag, peer_tsn;
    uint32_t peer_window, peer_indication;
    uint16_t local_port, peer_port;
    uint16_t streams; /* that we may send on */
    bool ecn;         /* both ends take part in explicit congestion notification */
};

void osctp_cookie_write(const struct osctp_cookie *cookie, const uint64_t key[2], uint8_t octets[OSCTP_COOKIE]);

/* Is it older than it may be? */
static inline bool osctp_cookie_is_stale(const struct osctp_cookie *cookie, uint64_t now_us)
{
    return now_us - cookie->made_us > OSCTP_COOKIE_US;
}

/* Returns false if it is not one of ours. */
bool osctp_cookie_read(struct osctp_cookie *cookie, const uint64_t key[2], const uint8_t *octets, uint32_t n);

#endif
