/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.h - a TCP segment in an IPv4 or IPv6 packet: decodes and encodes its headers and options. */
#ifndef RDDP_TCP_PACKET_H
#define RDDP_TCP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum {
    UTCP_HEAD_MAX = 40 + 60,
    UTCP_OPTIONS_MAX = 40,
    UTCP_SACKS = 4,
    UTCP_SPANS = 8,
    UTCP_PAYLOAD_MAX = 65495, /* the payload that the smallest headers leave in an IPv4 packet */
};

enum utcp_flag {
    UTCP_FIN = 1 << 0,
    UTCP_SYN = 1 << 1,
    UTCP_RST = 1 << 2,
    UTCP_PSH = 1 << 3,
    UTCP_ACK = 1 << 4,
    UTCP_ECE = 1 << 6,
    UTCP_CWR = 1 << 7,
};

/* The last two bits of an IP header's traffic class (RFC 3168 5). */
enum utcp_ecn { UTCP_NOT_ECT, UTCP_ECT = 2, UTCP_CE };

/* The address of one end. IPv4 addresses are stored as IPv4-mapped, ::ffff:a.b.c.d. */
struct utcp_name {
    uint8_t ip[16];
    uint16_t port;
};

struct utcp_block {
    uint32_t from, to;
};

struct utcp_options {
    bool has_mss, has_wscale, sack_permitted, has_stamp;
    uint8_t wscale;
    uint16_t mss;
    uint32_t stamp, echo;
    struct utcp_block sack[UTCP_SACKS];
    uint8_t sacks;
    /* The first option of the kind that was asked for, from its kind octet on; NULL: none. `extra_at` is its offset in
     * the TCP header. `broken`: an illegal length octet ended the decoding. */
    const uint8_t *extra;
    uint8_t extra_length, extra_at;
    bool broken;
};

/* A received segment. `payload` and `opt.extra` point into the packet. */
struct utcp_segment {
    struct utcp_name from, to;
    uint32_t seq, ack;
    uint16_t window;
    uint8_t flags; /* enum utcp_flag */
    uint8_t ecn;   /* enum utcp_ecn */
    const uint8_t *payload;
    uint32_t length;
    struct utcp_options opt;
};

/* An ICMP message that a packet of ours was too big for the path. */
struct utcp_too_big {
    struct utcp_name from, to; /* of our packet that was dropped */
    uint32_t seq, mtu;
};

enum utcp_kind {
    UTCP_KIND_SEGMENT,
    UTCP_KIND_TOO_BIG,
    UTCP_KIND_OTHER,        /* not for us: another protocol, a fragment, or an extension header */
    UTCP_KIND_BAD,          /* impossible lengths */
    UTCP_KIND_BAD_CHECKSUM, /* of the IPv4 header or of the segment */
};

/* Decodes a packet. `checked`: the TCP checksum was verified. Looks for options of kind `extra` unless it is 0. Fills
 * in *s or *b, whichever the returned kind names; *s points into `octets`. */
enum utcp_kind utcp_packet_read(const uint8_t *octets, uint32_t n, bool checked, uint8_t extra, struct utcp_segment *s,
                                struct utcp_too_big *b);

/* Decodes the options between the fixed TCP header and the payload. */
void utcp_options_read(struct utcp_options *o, const uint8_t *octets, uint32_t n, uint8_t extra);

/* A packet to send: its headers, and spans of its payload, which is borrowed. */
struct utcp_packet {
    uint8_t head[UTCP_HEAD_MAX];
    uint32_t head_length, ip_length; /* ip_length: the offset of the TCP header */
    struct span span[UTCP_SPANS];
    uint32_t spans, length; /* length: octets of payload */
    bool partial;           /* the checksum covers only the pseudo-header; the device completes it */
};

/* Appends `next`, which continues the stream of `p`, to make one packet that a device cuts into segments of `each`
 * octets of payload; only the last may be shorter. Returns false, and changes nothing, if the headers differ, the
 * packet would be too long, or the device does not compute checksums. */
bool utcp_packet_join(struct utcp_packet *p, const struct utcp_packet *next, uint32_t each);

/* The fields of a TCP header to be written. */
struct utcp_head {
    uint32_t seq, ack;
    uint16_t window;
    uint8_t flags, ecn, hops; /* hops: time to live; 0: the default */
    uint8_t option[UTCP_OPTIONS_MAX];
    uint32_t options; /* octets, a multiple of 4 */
};

/* The options of a SYN, in the order in which they are written. */
struct utcp_syn_options {
    uint16_t mss;
    uint8_t scale, kind; /* kind: of an option that both sides must offer; 0: none */
    bool use_scale, sack, stamps;
    uint32_t stamp, echo;
};
void utcp_syn_options_write(struct utcp_head *h, const struct utcp_syn_options *o);

bool utcp_is_v4(const struct utcp_name *name);
bool utcp_same_name(const struct utcp_name *a, const struct utcp_name *b);

/* Writes the IP and TCP headers for the payload whose spans are in `p`. Computes the checksum unless p->partial. */
void utcp_packet_write(struct utcp_packet *p, const struct utcp_name *from, const struct utcp_name *to,
                       const struct utcp_head *h);

#endif
