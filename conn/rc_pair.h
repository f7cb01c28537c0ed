/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_pair.h - one connected queue pair of RoCE, reliable or not: packets in, packets out. Packets and the time are
 * arguments.
 *
 * The host (a socket, a test, a simulator, a fuzzer) verifies ICRCs, finds the queue pair of a packet, and knows that
 * it came from the peer's address. After each of these calls it takes packets with rc_pair_emit() until there is none,
 * reads and clears life.news, and calls rc_pair_tick() at rc_pair_deadline(). */
#ifndef RDDP_CONN_RC_PAIR_H
#define RDDP_CONN_RC_PAIR_H

#include "conn/life.h"
#include "core/packets.h"
#include "roce/bth.h"
#include "roce/rc_requester.h"
#include "roce/rc_responder.h"

struct rc_pair_attr {
    enum bth_service service; /* BTH_RC or BTH_UC */
    uint32_t peer_qpn;
    uint16_t pkey;
    unsigned access; /* enum rddp_access: which of the REMOTE rights the queue pair grants, whatever a region does */
    struct rc_requester_attr requester;
    struct rc_responder_attr responder; /* mtu, and unreliable, are the requester's and the service's */
    struct life_limits limits;
};

/* A packet without its pad and ICRC: headers, then spans of memory borrowed until the next call. */
struct rc_packet {
    uint8_t head[BTH_HEAD_MAX];
    uint32_t head_length;
    uint32_t length;  /* octets in the spans */
    struct emit emit; /* its buffer is the caller's: BTH_MTU_MAX octets */
};

struct rc_pair {
    struct life life;
    struct rc_pair_attr attr;
    struct rc_requester requester;
    struct rc_responder responder;
    uint64_t write_address; /* of the Write that is arriving */
    uint32_t write_key;
    bool answer_turn; /* a response is to leave before the next request */
    bool is_waiting;  /* in RTR, as whoever connects by hand sets it: the owner is told of the first packet */
    bool is_draining; /* no request begins any more */
    bool is_drained;  /* the owner knows that none is under way */
};

/* Octets of memory for a queue pair with these attributes. */
size_t rc_pair_size(const struct rc_pair_attr *attr, const struct qp *qp);

/* Begins the life of a pair whose peer has not been found yet: packets flow from rc_pair_connect() on. `qp` may be
 * NULL. */
void rc_pair_begin(struct rc_pair *p, bool active, const struct life_limits *limits, struct qp *qp, uint64_t now_us);

/* The peer is known: its requests are executed and answered; ours leave once life_established() was called. `buffer` is
 * zeroed, aligned for any type, and stays the caller's. `qp` has had qp_use_packets(); *ird and *ord of qp_connect()
 * are the responder's `reads`, and `ord`. attr->limits are those of rc_pair_begin(). */
void rc_pair_connect(struct rc_pair *p, const struct rc_pair_attr *attr, struct qp *qp, uint32_t ord, void *buffer);

/* Before the memory of the pair, or the pool of its responder, goes. */
void rc_pair_fini(struct rc_pair *p);

/* Begins, connects and establishes, for those who know of each other. */
void rc_pair_init(struct rc_pair *p, const struct rc_pair_attr *attr, struct qp *qp, uint32_t ord, void *buffer,
                  uint64_t now_us);

/* Before anything was posted: requests leave from now on with these attributes, but the path MTU and window of
 * rc_pair_init(), and at most `ord` Reads and atomics at once. */
void rc_pair_start(struct rc_pair *p, const struct rc_requester_attr *attr, uint32_t ord);

/* No request begins any more, and qp.attr.happened() says when none is under way; or they begin again. */
void rc_pair_drain(struct rc_pair *p, bool drains, uint64_t now_us);

/* As life_close(), once the peer has been asked what of it has come. */
void rc_pair_close(struct rc_pair *p, uint64_t now_us);

/* Requests may begin again after one that failed at this end of an unreliable connection (qp->sends_failed). */
void rc_pair_restart(struct rc_pair *p, uint64_t now_us);

/* A packet of the peer. `b->data` is borrowed for the call. */
void rc_pair_rx(struct rc_pair *p, const struct bth *b, uint64_t now_us);

/* Builds the next packet. Returns false if none may leave now. */
bool rc_pair_emit(struct rc_pair *p, struct rc_packet *out, uint64_t now_us);

/* After rc_pair_emit() has built a packet of a message or response: builds up to `most` more that only differ in their
 * PSNs, one after the other. out->length is that of each, and the spans are those of all payloads. Returns their
 * number, maybe 0. */
uint32_t rc_pair_emit_train(struct rc_pair *p, struct rc_packet *out, uint32_t most, uint64_t now_us);

/* Could rc_pair_emit() have one? */
bool rc_pair_has_output(const struct rc_pair *p, uint64_t now_us);

/* After rc_pair_rx(): the acknowledgement that is due may wait for a request of the application, and leaves behind its
 * first packet then: the host makes sure that the peer gets both together, and that it takes the acknowledgement first.
 * Returns whether it waits; rc_pair_release() ends that, and so does its deadline, and returns whether it waited. */
bool rc_pair_withhold(struct rc_pair *p, uint64_t now_us);
bool rc_pair_release(struct rc_pair *p);

/* For the functions below alone: is there something to notice? */
static inline bool rc_pair_needs_check(const struct rc_pair *p)
{
    const struct life *l = &p->life;

    return !l->qp || l->resume_us || l->awaits_spans || l->qp->state == QP_ERROR || l->qp->sends_failed ||
           qp_waits(l->qp) || qp_has_local(l->qp);
}
void rc_pair_check_all(struct rc_pair *p, uint64_t now_us);

/* To be called after a post: notices a queue pair that has failed by itself, and what waits for readers. */
static inline void rc_pair_check(struct rc_pair *p, uint64_t now_us)
{
    if (rc_pair_needs_check(p))
        rc_pair_check_all(p, now_us);
}

/* Is it connected, with nothing to send, to report, to notice or to end? */
static inline bool rc_pair_is_quiet(const struct rc_pair *p, uint64_t now_us)
{
    return p->life.state == CONN_READY && !p->life.news && !rc_pair_needs_check(p) && !rc_pair_has_output(p, now_us);
}

uint64_t rc_pair_deadline(const struct rc_pair *p);
void rc_pair_tick(struct rc_pair *p, uint64_t now_us);

#endif
