/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_conn.h - a connection that is an SCTP association: what `assoc` emits goes to the association's socket, and the
 * socket's events go to `assoc`. The holder of the endpoint may call sctp_conn_serve(), the driver all. */
#ifndef RDDP_SCTP_IO_SCTP_CONN_H
#define RDDP_SCTP_IO_SCTP_CONN_H

#include "conn/assoc.h"
#include "sctp/io/sctp.h"

enum { SCTP_TURN_MESSAGES = 1024 }; /* messages per turn in each direction, so that other associations get their turn */

struct sctp_conn {
    struct assoc assoc;
    struct window_slot early[WINDOW_EARLY]; /* of `assoc`, until its peer has asked for a connection */
    struct window_slot *slots;              /* owned: of `assoc` from then on */
    struct sctp_socket *socket;
    struct sctp_assoc *sctp;  /* NULL: not attached */
    bool reported;            /* the provider knows that the peer's sends batches */
    uint32_t reported_octets; /* the provider knows that this much is kept */
    struct sctp_news *kept;   /* owned: messages that wait for their turn, indexed by name - 1 */
    uint32_t kept_capacity, kept_free;
    uint8_t *copies; /* owned: of the chunk that is being made, see struct emit */
    uint8_t *held;   /* owned: a chunk that the provider had no room for */
    uint32_t held_octets, held_ppid;
    uint16_t held_stream;
    uint64_t held_end;
};

/* Initialise `assoc` of a struct that is zero, as assoc_init_active() and assoc_init_passive() do; -ENOMEM as well. */
int sctp_conn_init_active(struct sctp_conn *c, const struct assoc_attr *attr, struct qp *qp, const void *private_data,
                          uint16_t private_length, uint64_t now_us);
void sctp_conn_init_passive(struct sctp_conn *c, const struct assoc_attr *attr, uint64_t now_us);

/* Connects `assoc` with an association of this socket. */
void sctp_conn_attach(struct sctp_conn *c, struct sctp_socket *socket, struct sctp_assoc *sctp);

/* Frees what it owns, and closes the association of its socket if it is attached. */
void sctp_conn_fini(struct sctp_conn *c);

/* Processes waiting events; stops while assoc_signal() has something to take. Returns true if there may be more. */
bool sctp_conn_receive(struct sctp_conn *c, uint64_t now_us);

/* Sends what the association has to send. Returns true if there may be more at once. If `wait` is false it does not
 * wait for the stack, and returns true if another thread uses it. */
bool sctp_conn_serve(struct sctp_conn *c, bool wait, uint64_t now_us);

#endif
