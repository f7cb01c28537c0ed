/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp.h - SCTP in user space over UDP (RFC 6951): usrsctp, with packets and CRC of our own.
 *
 * There is one stack per process, while there may be many loops. One lock guards the stack. Every function that touches
 * it takes the lock itself, except submit() and flush(), which need enter(). No callback of the stack takes it. */
#ifndef RDDP_SCTP_IO_USCTP_H
#define RDDP_SCTP_IO_USCTP_H

#include "sctp/io/sctp.h"

enum {
    USCTP_TICK_US = 10000,
    USCTP_PATHS = 1024,     /* peers' addresses without an association at one socket; beyond, the oldest is forgotten */
    USCTP_BACKLOG = 128,    /* associations that wait for usctp_accept() */
    USCTP_INBOX = 8 << 20,  /* octets that may wait for the owner of an association; beyond, its socket is not read */
    USCTP_BUFFER = 4 << 20, /* octets that the stack may hold, each way */
    /* Octets to send that it may hold for each millisecond, begun or whole, of the round trip, up to USCTP_BUFFER. More
     * than the path needs would only leave the caches. */
    USCTP_SEND_MS = 512 << 10,
    USCTP_BURST = 128, /* packets that may follow one acknowledgement, if the peer acknowledges batches */
};

extern const struct sctp_provider usctp;

#endif
