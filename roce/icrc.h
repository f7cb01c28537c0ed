/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* icrc.h - the invariant CRC at the end of a RoCE packet: over the fields of its IP and UDP headers that no router
 * changes, and all that follows. */
#ifndef RDDP_ROCE_ICRC_H
#define RDDP_ROCE_ICRC_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ICRC_MEMOS = 8,
};

/* The CRCs over the IP and UDP headers of the packets of a path, by their length. All zero at first, and again after
 * the path has changed. */
struct icrc_memo {
    struct {
        uint32_t octets; /* 0: none */
        uint32_t crc;
    } at[ICRC_MEMOS];
};

/* The addresses of a packet, in the order of the wire. IPv4 uses the first four octets. */
struct icrc_path {
    bool ipv6;
    uint8_t source[16], destination[16];
    uint16_t source_port, destination_port;
    struct icrc_memo *memo; /* keeps what was computed of this path; NULL: nothing is kept */
};

/* Returns the CRC over the IP and UDP headers of a packet with a UDP payload of `octets` (ICRC included). The headers
 * are those of a UDP socket that sends with IP_PMTUDISC_DO: DF is set, and the identification of IPv4 is 0, or the
 * place in its batch of a segment of UDP_SEGMENT. */
uint32_t icrc_begin(const struct icrc_path *path, uint16_t identification, uint32_t octets);

/* Goes on over the packet's BTH and extended headers. The payload and its pad follow by crc32(). */
uint32_t icrc_head(uint32_t crc, const uint8_t *head, uint32_t octets);

/* Both for a packet with these headers, of which the BTH comes first: for less than twice the price of either. */
uint32_t icrc_begin_head(const struct icrc_path *path, uint16_t identification, uint32_t octets, const uint8_t *head,
                         uint32_t head_octets);

/* Writes the ICRC at the end of this UDP payload, which is complete but for it. */
void icrc_seal(const struct icrc_path *path, uint16_t identification, uint8_t *p, uint32_t octets);

/* What a change of the identification does to the ICRC, for packets of one length. */
struct icrc_space {
    uint32_t octets;      /* of the UDP payload; 0: not computed yet */
    uint32_t change[16];  /* in echelon form, highest bit first; 0: no such row */
    uint16_t without[16]; /* the bits of the identification that make this change */
};

/* Is the ICRC at the end of this UDP payload right? What a socket receives lacks the identification of IPv4: a CRC is
 * linear, so the identification is solved for, and 16 of the 32 bits are left as a check. IPv6 has none and is checked
 * in full. `space` is scratch memory of the caller, all zero at first: packets of the same length share the work.
 * `octets` is at least BTH_OCTETS + ICRC_OCTETS. */
bool icrc_is_right(const struct icrc_path *path, const uint8_t *p, uint32_t octets, struct icrc_space *space);

/* The same for a packet whose identification is probably its place in what has arrived together, which costs less if it
 * is. */
bool icrc_is_right_at(const struct icrc_path *path, uint16_t place, const uint8_t *p, uint32_t octets,
                      struct icrc_space *space);

/* The same for a packet whose identification is known, as for one captured with its headers. */
bool icrc_is_exact(const struct icrc_path *path, uint16_t identification, const uint8_t *p, uint32_t octets);

/* A packet over IPv4 that was sealed for one identification leaves with another: corrects its ICRC. */
void icrc_renumber(uint8_t *p, uint32_t octets, uint16_t from, uint16_t to);

#endif
