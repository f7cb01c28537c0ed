/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packets.h - the queues of a queue pair for a transport that acknowledges packets and may send each of them again:
 * requests stay where they are, and their octets are looked up for every packet. */
#ifndef RDDP_CORE_PACKETS_H
#define RDDP_CORE_PACKETS_H

#include "core/qp.h"

/* Octets of a message: the limit of InfiniBand. */
#define PACKETS_MESSAGE_MAX (UINT32_C(1) << 31)

/* Numbers messages as such a transport does; before anything is posted. Requests may then have immediate data beside a
 * payload, and Reads several sges. */
void qp_use_packets(struct qp *qp);

/* Is there a request that qp_take_request() has not taken? It may have to wait. */
static inline bool qp_has_posted(const struct qp *qp)
{
    return qp->sq.next != atomic_load_explicit(&qp->sq.head, memory_order_acquire);
}

/* Might qp_take_request() have one? */
bool qp_has_request(const struct qp *qp);

/* Takes the next request that may leave, by its fence and the agreed ORD, and executes those that send nothing. *seg
 * describes the whole message: op, key, offset, length, flags, immediate data. Its state is for a message that ends at
 * position `end` of qp_request_ends(). Returns false if there is none, or QP_ERROR: one of them failed. */
bool qp_take_request(struct qp *qp, uint32_t *at, struct seg *seg);

/* Does the poster wait for the completion of this request? */
bool qp_is_signalled(const struct qp *qp, uint32_t at);

/* Are its octets, if it has any, in the room of the queue, and none in memory of the poster? */
bool qp_has_copied(const struct qp *qp, uint32_t at);

/* Notes how many requests are under way about which the peer was not asked, for who counts places in use. */
static inline void qp_requests_unasked(struct qp *qp, uint32_t n)
{
    atomic_store_explicit(&qp->sq.unasked, n, memory_order_relaxed);
}

/* Describes a request again that was taken. */
void qp_describe_request(const struct qp *qp, uint32_t at, struct seg *seg);

/* Where do these octets of it lie? Every check is made again, since the memory may have been taken away. Returns false:
 * it was, and the queue pair has failed. */
bool qp_gather_request(struct qp *qp, uint32_t at, uint32_t offset, uint32_t length, struct emit *e);

/* The same for octets of several packets that follow each other. False: they have to be gathered packet by packet. The
 * caller sets e->buffer to NULL, since it has room for one packet. */
bool qp_gather_train(struct qp *qp, uint32_t at, uint32_t offset, uint32_t length, struct emit *e);

/* The request is acknowledged when qp_sent() comes to `end`. */
void qp_request_ends(struct qp *qp, uint32_t at, uint64_t end);

/* This request is to blame, before qp_fail(). */
void qp_blame_request(struct qp *qp, uint32_t at, enum rddp_wc_status status);

/* Cuts the next segment, of at most `max` octets, of the response to the oldest Read or atomic of the peer; an atomic
 * is executed by it. Returns false: there is none, or the queue pair has failed. */
bool qp_take_answer(struct qp *qp, struct emit *e, uint32_t max);

/* After it cut a segment of a Read's response: cuts up to `most` more, of `each` octets, none of them the last, as one.
 * e->buffer is NULL, as above. Returns their number; 0: they have to be cut one by one. */
uint32_t qp_take_answer_train(struct qp *qp, struct emit *e, uint32_t each, uint32_t most);

/* The source of a Read that the peer repeats, checked as for the first time. Returns a fault, and *e is undefined. */
enum fault qp_gather_again(struct qp *qp, uint64_t key, uint64_t offset, uint32_t rest, uint32_t length,
                           struct emit *e);

/* What has arrived of a message is void: the next message takes its receive. */
void qp_discard_message(struct qp *qp);

#endif
