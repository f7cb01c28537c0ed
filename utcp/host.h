/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.h - an address with many connections behind it: who gets a packet, and what is answered when nobody does. */
#ifndef RDDP_UTCP_HOST_H
#define RDDP_UTCP_HOST_H

#include "utcp/utcp.h"

enum {
    UTCP_HALF_WAYS = 4, /* half-open connections that share a place; the oldest gives way */
    UTCP_HALF_TRIES = 5,
    UTCP_RESETS = 100, /* a second, to packets that belong to nothing */
};

/* A SYN came and was answered; the third packet of the handshake has not come yet. */
struct utcp_half {
    struct utcp_name local, remote;
    uint32_t irs, isn, stamp;
    uint16_t mss, window;
    uint8_t scale, tries;
    bool used, due, use_scale, sack, stamps, option;
    uint64_t at_us, again_us;
};

struct utcp_host_user {
    /* Does somebody listen there? */
    bool (*listens)(void *of, const struct utcp_name *local);
    /* A connection is there: room for it, begun by utcp_open(), or NULL: not now. */
    struct utcp *(*accept)(void *of, const struct utcp_name *local, const struct utcp_name *remote);
    /* A packet for this connection changes it next: returns the time as it is then. NULL: nobody has to know. */
    uint64_t (*touch)(void *of, struct utcp *t, uint64_t now_us);
};

struct utcp_host_attr {
    struct utcp_attr tcp; /* what SYNs are answered with */
    uint64_t key[2];      /* by chance, secret */
};

struct utcp_host_count {
    uint64_t packets, other, bad, bad_checksum, syns, displaced, strays, resets, too_big;
};

struct utcp_host {
    const struct utcp_host_user *user;
    void *of;
    struct utcp_host_attr attr;
    struct utcp **bucket;
    uint32_t buckets; /* a power of two */
    struct utcp_half *half;
    uint32_t halves, half_count, half_due; /* halves: a power of two, at least UTCP_HALF_WAYS */
    uint32_t half_at;                      /* where to look first for one to answer */
    uint64_t half_us;                      /* the next time to look at all of them */
    struct utcp_head reply;                /* to a packet that belongs to nothing */
    struct utcp_name reply_from, reply_to;
    bool replies;
    uint32_t resets;
    uint64_t resets_us;
    struct utcp_host_count count;
};

struct utcp_host_rooms {
    struct utcp **bucket; /* all NULL */
    struct utcp_half *half;
    uint32_t buckets, halves;
};

void utcp_host_init(struct utcp_host *h, const struct utcp_host_attr *attr, const struct utcp_host_rooms *rooms,
                    const struct utcp_host_user *user, void *of);

/* A packet came. Returns the connection that it was for, which may be a new one, or NULL. */
struct utcp *utcp_host_input(struct utcp_host *h, const uint8_t *octets, uint32_t n, bool checked, uint64_t now_us);
/* The next packet that no connection sends: resets and answers to SYNs. */
bool utcp_host_output(struct utcp_host *h, struct utcp_packet *p, uint64_t now_us);
uint64_t utcp_host_deadline(const struct utcp_host *h);
void utcp_host_timeout(struct utcp_host *h, uint64_t now_us);

/* The connection of these names, or NULL. */
struct utcp *utcp_host_find(const struct utcp_host *h, const struct utcp_name *local, const struct utcp_name *remote);
void utcp_host_add(struct utcp_host *h, struct utcp *t); /* its names are set */
void utcp_host_remove(struct utcp_host *h, struct utcp *t);

/* An initial sequence number and a start of timestamps for a connection between these (RFC 6528). */
uint32_t utcp_host_isn(const struct utcp_host *h, const struct utcp_name *local, const struct utcp_name *remote,
                       uint64_t now_us);
uint32_t utcp_host_stamp_offset(const struct utcp_host *h, const struct utcp_name *local,
                                const struct utcp_name *remote);

#endif
