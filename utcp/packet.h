/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.h - a TCP segment in an IPv4 or IPv6 packet: its headers and options to a struct, and back. */
#ifndef RDDP_UTCP_PACKET_H
#define RDDP_UTCP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum {
    UTCP_HEAD_MAX = 40 + 60,
    UTCP_OPTIONS_MAX = 40,
    UTCP_SACKS = 4,
    UTCP_SPANS = 8,
    UTCP_PAYLOAD_MAX = 65495, /* what the smallest headers leave of an IPv4 packet */
};

enum utcp_flag {
    UTCP_FIN = 1 << 0,
    UTCP_SYN = 1 << 1,
    UTCP_RST = 1 << 2,
    UTCP_PSH = 1 << 3,
    UTCP_ACK = 1 << 4,
};

/* One end. IPv4 addresses are kept as IPv6 has them, ::ffff:a.b.c.d. */
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
    /* The first option of the kind that was asked for, from its kind octet on; NULL: none. `extra_at` counts from the
     * start of the TCP header. A length octet that is illegal ends the walk: `broken`. */
    const uint8_t *extra;
    uint8_t extra_length, extra_at;
    bool broken;
};

/* A segment that came in. `payload` and `opt.extra` point into the packet. */
struct utcp_segment {
    struct utcp_name from, to;
    uint32_t seq, ack;
    uint16_t window;
    uint8_t flags; /* enum utcp_flag */
    const uint8_t *payload;
    uint32_t length;
    struct utcp_options opt;
};

/* A path too narrow for a packet of ours, as an ICMP message tells it. */
struct utcp_too_big {
    struct utcp_name from, to; /* of the packet that was dropped: from us */
    uint32_t seq, mtu;
};

enum utcp_kind {
    UTCP_KIND_SEGMENT,
    UTCP_KIND_TOO_BIG,
    UTCP_KIND_OTHER,        /* not for us: another protocol, a fragment, an extension header */
    UTCP_KIND_BAD,          /* lengths that cannot be */
    UTCP_KIND_BAD_CHECKSUM, /* of the IPv4 header or of the segment */
};

/* Reads a packet. `checked`: somebody has verified the TCP checksum already. Options of kind `extra` are looked for
 * unless it is 0. Of `s` and `b` the one that the kind names is filled in. */
enum utcp_kind utcp_packet_read(const uint8_t *octets, uint32_t n, bool checked, uint8_t extra, struct utcp_segment *s,
                                struct utcp_too_big *b);

/* The options between the fixed TCP header and the payload. */
void utcp_options_read(struct utcp_options *o, const uint8_t *octets, uint32_t n, uint8_t extra);

/* A packet on its way out: headers here, the payload where it lies. */
struct utcp_packet {
    uint8_t head[UTCP_HEAD_MAX];
    uint32_t head_length, ip_length; /* ip_length: where the TCP header begins */
    struct span span[UTCP_SPANS];
    uint32_t spans, length; /* of payload */
    bool partial;           /* the checksum is that of the pseudo-header alone: the device has to finish it */
};

/* `next` follows `p` in the same stream, all whose segments have `each` octets of payload, the last of them perhaps
 * less: makes one packet of both for a device that cuts it again. False, and nothing has changed: their headers differ,
 * or it would be too long, or the checksum is not the device's affair. */
bool utcp_packet_join(struct utcp_packet *p, const struct utcp_packet *next, uint32_t each);

/* What goes into the TCP header. */
struct utcp_head {
    uint32_t seq, ack;
    uint16_t window;
    uint8_t flags;
    uint8_t option[UTCP_OPTIONS_MAX];
    uint32_t options; /* octets, a multiple of 4 */
};

/* What a SYN offers, in the order in which it is written. */
struct utcp_syn_options {
    uint16_t mss;
    uint8_t scale, kind; /* kind: of the option that both sides have to offer, 0: none */
    bool use_scale, sack, stamps;
    uint32_t stamp, echo;
};
void utcp_syn_options_write(struct utcp_head *h, const struct utcp_syn_options *o);

bool utcp_is_v4(const struct utcp_name *name);
bool utcp_same_name(const struct utcp_name *a, const struct utcp_name *b);

/* Writes both headers before the spans that are in `p` already. `p->partial` decides about the checksum. */
void utcp_packet_write(struct utcp_packet *p, const struct utcp_name *from, const struct utcp_name *to,
                       const struct utcp_head *h);

#endif
