/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.h - a queue pair of unreliable datagrams (UD) of RoCE: packets of anybody in, packets to anybody out. Packets and
 * the time are arguments, as in rc_pair.h, whose rules for the host hold here. */
#ifndef RDDP_CONN_UD_H
#define RDDP_CONN_UD_H

#include "conn/rc_pair.h"
#include "core/datagram.h"
#include "roce/grh.h"

/* If it is set in the Q_Key of a request, that of the queue pair is sent: so no application uses one of the system's.
 */
#define UD_OWN_Q_KEY 0x80000000u

struct ud_attr {
    uint32_t q_key, number;
    uint16_t pkey;
    struct life_limits limits;
};

struct ud {
    struct life life;
    struct ud_attr attr;
    uint32_t psn;                    /* of the next packet */
    uint64_t left;                   /* packets that have left */
    bool sends;                      /* in RTS */
    bool is_waiting, is_draining;    /* as of struct rc_pair */
    uint64_t wrong_q_key, not_ready; /* counters: packets that were dropped */
};

/* It receives from now on. `qp` has had qp_use_datagrams(). */
void ud_init(struct ud *u, const struct ud_attr *attr, struct qp *qp, uint64_t now_us);

/* Requests leave from now on, the first with this PSN. */
void ud_start(struct ud *u, uint32_t psn);

/* As rc_pair_drain() and rc_pair_restart(): nothing is ever under way. */
void ud_drain(struct ud *u, bool drains, uint64_t now_us);
void ud_restart(struct ud *u, uint64_t now_us);

/* A packet of a peer, and the header in front of it. Both are borrowed for the call. */
void ud_rx(struct ud *u, const struct bth *b, const uint8_t grh[GRH_OCTETS], uint64_t now_us);

/* Builds the next packet, and finds its destination: *to is valid until the next call. Returns false if there is none.
 */
bool ud_emit(struct ud *u, struct rc_packet *out, const struct destination **to, uint64_t now_us);
bool ud_has_output(const struct ud *u);

void ud_check(struct ud *u, uint64_t now_us);
uint64_t ud_deadline(const struct ud *u);
void ud_tick(struct ud *u, uint64_t now_us);

#endif
