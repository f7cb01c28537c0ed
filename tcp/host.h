/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.h - one address with many connections: finds the connection of a packet, and answers packets that belong to
 * none. */
#ifndef RDDP_TCP_HOST_H
#define RDDP_TCP_HOST_H

#include "tcp/utcp.h"

enum {
    UTCP_HALF_WAYS = 4, /* half-open connections that share a bucket */
    UTCP_HALF_TRIES = 5,
    UTCP_RESETS = 100, /* resets per second for packets that belong to no connection */
};

/* A half-open connection: a SYN was received and answered, the ACK has not arrived. One with a cookie (tcp/cookie.h)
 * may give way to another, and its ACK is good nevertheless; it is not answered again then. */
struct utcp_half {
    struct utcp_name local, remote;
    uint32_t irs, isn, stamp;
    uint16_t mss, window;
    uint8_t scale, tries;
    bool used, due, cookie, use_scale, sack, stamps, option, ecn;
    uint64_t at_us, again_us;
};

struct utcp_host_user {
    /* Does anybody listen at this address? */
    bool (*listens)(void *of, const struct utcp_name *local);
    /* A handshake is complete: returns a connection begun by utcp_open(), or NULL to refuse it for now. */
    struct utcp *(*accept)(void *of, const struct utcp_name *local, const struct utcp_name *remote);
    /* Called before a packet changes this connection; returns the current time. May be NULL. */
    uint64_t (*touch)(void *of, struct utcp *t, uint64_t now_us);
};

struct utcp_host_attr {
    struct utcp_attr tcp; /* of the connections that are accepted */
    uint64_t key[2];      /* random and secret */
    bool quiet;           /* packets of no connection are the kernel's: they are not answered */
};

struct utcp_host_count {
    uint64_t packets, other, bad, bad_checksum, syns, displaced, restored, strays, resets, too_big;
};

struct utcp_host {
    const struct utcp_host_user *user;
    void *of;
    struct utcp_host_attr attr;
    struct utcp **bucket;
    uint32_t buckets;    /* a power of two */
    struct utcp *recent; /* the connection of the last segment, or NULL: the next is often for it, too */
    struct utcp_half *half;
    uint32_t halves, half_count, half_due; /* halves: a power of two, at least UTCP_HALF_WAYS */
    uint32_t half_at;                      /* where to look first for one that must be answered */
    uint64_t half_us;                      /* when to check all of them again */
    uint64_t displaced_us;                 /* when the last one gave way to another; 0: none */
    struct utcp_head reply;                /* the reset for a packet that belongs to no connection */
    struct utcp_name reply_from, reply_to;
    bool replies;
    uint32_t resets;
    uint64_t resets_us;
    struct utcp_host_count count;
};

/* Memory of the host; it stays the caller's and must outlive the host. */
struct utcp_host_buffers {
    struct utcp **bucket; /* all NULL */
    struct utcp_half *half;
    uint32_t buckets, halves;
};

void utcp_host_init(struct utcp_host *h, const struct utcp_host_attr *attr, const struct utcp_host_buffers *buffers,
                    const struct utcp_host_user *user, void *of);

/* Processes a packet. `checked`: its TCP checksum was verified. Returns the connection that it was for, perhaps a new
 * one, or NULL. */
struct utcp *utcp_host_input(struct utcp_host *h, const uint8_t *octets, uint32_t n, bool checked, uint64_t now_us);
/* Writes the next packet that belongs to no connection: a reset or the answer to a SYN. Returns false if there is
 * none. */
bool utcp_host_output(struct utcp_host *h, struct utcp_packet *p, uint64_t now_us);
uint64_t utcp_host_deadline(const struct utcp_host *h);
void utcp_host_timeout(struct utcp_host *h, uint64_t now_us);

/* Returns the connection between these addresses, or NULL. */
struct utcp *utcp_host_find(const struct utcp_host *h, const struct utcp_name *local, const struct utcp_name *remote);
void utcp_host_add(struct utcp_host *h, struct utcp *t); /* t->local and t->remote must be set */
void utcp_host_remove(struct utcp_host *h, struct utcp *t);

/* Return an initial sequence number (RFC 6528) and a timestamp offset for a connection between these addresses. */
uint32_t utcp_host_isn(const struct utcp_host *h, const struct utcp_name *local, const struct utcp_name *remote,
                       uint64_t now_us);
uint32_t utcp_host_stamp_offset(const struct utcp_host *h, const struct utcp_name *local,
                                const struct utcp_name *remote);

#endif
