/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_link.h - connects an association with its SCTP provider: passes events to the one and messages to the other. The
 * holder of the endpoint may call sctp_link_serve(), the driver all. */
#ifndef RDDP_SCTP_IO_SCTP_CONN_H
#define RDDP_SCTP_IO_SCTP_CONN_H

#include "conn/assoc.h"
#include "sctp/io/sctp.h"

enum { LINK_TURN_MESSAGES = 1024 }; /* messages per turn in each direction, so that other associations get their turn */

struct sctp_link {
    struct assoc *assoc;
    struct sctp_socket *socket;
    struct sctp_assoc *sctp;
    bool told;              /* the provider knows that the peer's sends batches */
    struct sctp_news *kept; /* owned: messages that wait for their turn, indexed by name - 1 */
    uint32_t kept_capacity, kept_free;
    uint8_t *held; /* owned: a chunk that the provider had no room for */
    uint32_t held_octets, held_ppid;
    uint16_t held_stream;
    uint64_t held_end;
};

/* `assoc`, `socket` and `sctp` are the caller's and outlive the link. */
void sctp_link_init(struct sctp_link *l, struct assoc *assoc, struct sctp_socket *socket, struct sctp_assoc *sctp);
void sctp_link_fini(struct sctp_link *l);

/* Processes waiting events; stops while assoc_signal() has something to take. Returns true if there may be more. */
bool sctp_link_hear(struct sctp_link *l, uint64_t now_us);

/* Sends what the association has to send. Returns true if there may be more at once. If `wait` is false it does not
 * wait for the stack, and returns true if another thread uses it. */
bool sctp_link_serve(struct sctp_link *l, bool wait, uint64_t now_us);

/* After the provider's drive(), for a host without endpoints (tests): hears, ticks and serves. Returns true if there
 * may be more. */
bool sctp_link_turn(struct sctp_link *l, uint64_t now_us);

#endif
