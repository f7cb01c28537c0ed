/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_link.h - an association meets its provider: what came is told to the one, what leaves is given to the other. */
#ifndef RDDP_API_SCTP_LINK_H
#define RDDP_API_SCTP_LINK_H

#include "conn/assoc.h"
#include "net/usctp.h"

enum { LINK_TURN_MESSAGES = 1024 }; /* that one turn takes, and gives, so that others have theirs */

struct sctp_link {
    struct assoc *assoc;
    struct usctp_port *port;
    struct usctp *usctp;
    struct sctp_news *kept; /* messages that wait for their turn, by their names less 1 */
    uint32_t kept_room, kept_free;
    uint8_t *held; /* a chunk that the provider had no room for */
    uint32_t held_octets, held_ppid;
    uint16_t held_stream;
    uint64_t held_end;
};

/* The three are the caller's, and outlive the link. */
void sctp_link_init(struct sctp_link *l, struct assoc *assoc, struct usctp_port *port, struct usctp *usctp);
void sctp_link_fini(struct sctp_link *l);

/* Takes what came; while assoc_signal() has something nothing more is taken. True: there may be more. */
bool sctp_link_hear(struct sctp_link *l, uint64_t now_us);

/* Gives what leaves. True: there may be more at once. For one who must not `wait` for the stack that is so, too, where
 * somebody else is at it. */
bool sctp_link_serve(struct sctp_link *l, bool wait, uint64_t now_us);

/* After usctp_drive(): both, and the passing of time. True: there may be more to take at once. */
bool sctp_link_turn(struct sctp_link *l, uint64_t now_us);

#endif
