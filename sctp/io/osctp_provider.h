/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_provider.h - SCTP in user space over UDP (RFC 6951): the associations of sctp/ at sockets, as a provider.
 *
 * Each socket has a lock of its own, which guards it with all its associations. Every function takes it, except
 * submit() and due(), which need enter(). Sockets share nothing but the list for osctp_abandon(). */
#ifndef RDDP_SCTP_IO_OSCTP_PROVIDER_H
#define RDDP_SCTP_IO_OSCTP_PROVIDER_H

#include "sctp/io/sctp.h"

enum {
    OSCTP_BACKLOG = 128,   /* associations that wait for accept(); beyond, a COOKIE-ECHO is dropped */
    OSCTP_LEFT_MAX = 256,  /* associations of a listener that wait for SHUTDOWN-COMPLETE when their owners have left */
    OSCTP_INBOX = 8 << 20, /* octets that may wait for the owner of an association, or for missing chunks */
    /* Octets of memory that peers can make a socket keep, in all its associations: what waits for an owner, for missing
     * chunks, or with an owner for its turn. Beyond, the association that keeps the most is aborted. */
    OSCTP_HELD = 64 << 20,
    OSCTP_STORE = 4 << 20,        /* octets that may wait to be sent or acknowledged */
    OSCTP_STORE_MS = 512 << 10,   /* the same, for each millisecond, begun or whole, of the round trip */
    OSCTP_SPARES = 4 << 20,       /* octets of free memory for packets that a socket keeps */
    OSCTP_PORT_FIRST = 49152,     /* SCTP ports from here on are allocated to associations */
    OSCTP_INIT_RETRIES = 8,       /* Max.Init.Retransmits (RFC 9260 16) */
    OSCTP_INIT_MAX_US = 60000000, /* RTO.Max */
};

extern const struct sctp_provider osctp;

/* Marks sockets and their associations as another's. They can be closed, which sends nothing. In a child of fork(),
 * with false: those of the parent; call it before any other call in the child, and only if no thread was in a call
 * during the fork. With true: all, since the program has closed their descriptors. */
void osctp_abandon(bool ours);

#endif
