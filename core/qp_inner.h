/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_inner.h - what the files of the engine share behind qp.h. Only core/ includes it. */
#ifndef RDDP_CORE_QP_INNER_H
#define RDDP_CORE_QP_INNER_H

#include "base/bytes.h"
#include "core/sequence.h"
#include "core/qp.h"

/* Places of a ring that holds `depth`: a power of two. */
static inline uint32_t ring_slots(uint32_t depth)
{
    uint32_t slots = 1;

    while (slots < depth)
        slots *= 2;
    return slots;
}

static inline size_t room_align(size_t octets)
{
    return (octets + 15) & ~(size_t)15;
}

static inline struct send *sq_at(const struct qp *qp, uint32_t i)
{
    return &qp->sq[i & qp->sq_mask];
}

static inline struct inbound *inbound_at(const struct qp *qp, uint32_t msn)
{
    return &qp->inbound[msn & qp->inbound_mask];
}

static inline struct peer_read *peer_read_at(const struct qp *qp, uint32_t msn)
{
    return &qp->peer_read[msn & qp->peer_read_mask];
}

/* The i-th of the Reads that wait for their responses, counted from read_tail. */
static inline struct send *read_out_at(const struct qp *qp, uint32_t i)
{
    return sq_at(qp, qp->read_at[i & qp->read_mask]);
}

static inline uint32_t reads_out(const struct qp *qp)
{
    return qp->read_head - qp->read_tail;
}

/* May be told what took a key away at that moment? */
static inline bool is_parted(const struct qp *qp, uint64_t moment)
{
    return !moment || visits_are_over(&qp->attr.mrs->visits, moment);
}

static inline const struct rddp_sge *sink_of(const struct send *s)
{
    static const struct rddp_sge none;

    return s->sges ? s->sge : &none;
}

enum { ATOMIC_OCTETS = 8 }; /* that an atomic operation is about */

static inline bool is_atomic(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_ATOMIC_CMP_AND_SWP || opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD;
}

/* Does the peer answer it? Then it counts against ORD. */
static inline bool is_answered(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_RDMA_READ || is_atomic(opcode);
}

static inline bool is_write(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_RDMA_WRITE || opcode == RDDP_WR_RDMA_WRITE_WITH_IMM;
}

/* Is this where the message goes on? What was placed early may come once more when its turn is. */
static inline bool in_turn(const struct ranges *got, bool early, uint64_t offset)
{
    uint32_t prefix = ranges_prefix(got);

    return early ? offset <= prefix : offset == prefix;
}

/* rq.c: the sum of a list of sges; 0, or -EINVAL if they are too many or too long. */
int sges_check(const struct rddp_sge *sge, int count, uint32_t max, uint32_t *length);
uint32_t rq_posted(struct rq *rq);
bool rq_take(struct rq *rq, struct recv *to); /* false: there is none (any more: others may share the queue) */
bool rq_drop(struct rq *rq, uint64_t *wr_id); /* the same, and forgets all but its number */

/* complete.c: completes what is done at the tail of the send queue, in order. FAULT_CQ_FULL if that failed the queue
 * pair, as qp_fail_cq() does. */
enum fault sq_retire(struct qp *qp);
enum fault qp_fail_cq(struct qp *qp);
void expire_sink(struct qp *qp, struct send *s); /* the Read is done: what its sink was, if it was good for one only */

/* note.c: what is known about a fault of a segment, of the message at rx_next, or of the oldest Read that is not
 * answered: into qp->note; returns the fault. Of a Read Request of the peer: the note. */
enum fault note_seg(struct qp *qp, const struct seg *seg, enum fault fault, uint64_t got, uint64_t want);
enum fault note_message(struct qp *qp, enum fault fault, uint64_t got, uint64_t want);
enum fault note_response(struct qp *qp, uint64_t got, uint64_t want);
struct fault_note note_read(const struct peer_read *p, uint32_t msn, enum fault fault);

/* place.c: placement, once the receive, the place in the ring of Reads (`at`), or the Read and the offset in its
 * sink (`at`) is known. */
struct inbound *place_claim(struct qp *qp); /* NULL: no receive is posted */
enum fault place_message(struct qp *qp, const struct seg *seg, struct inbound *in, bool in_order);
enum fault place_write(struct qp *qp, const struct seg *seg);
void place_beside(struct inbound *in, uint64_t end, uint32_t length, unsigned flags);
enum fault place_read_request(struct qp *qp, const struct seg *seg, uint32_t at);
enum fault place_answer(struct qp *qp, const struct seg *seg, struct send *s, uint32_t at, bool in_order);
enum fault place_atomic_answer(struct qp *qp, const struct seg *seg, struct send *s, bool in_order);

/* The payload alone, of a segment whose turn has not come; nothing else is noted. Without data no octet moves. */
enum fault place_ahead_message(struct qp *qp, const struct seg *seg, const struct inbound *in);
enum fault place_ahead_write(struct qp *qp, const struct seg *seg);
enum fault place_ahead_answer(struct qp *qp, const struct seg *seg, const struct send *s, uint32_t at);

/* The same checks for a segment in order, of which no octet moves: *at is where it would go, NULL if not to one piece.
 */
enum fault place_where_message(struct qp *qp, const struct seg *seg, struct inbound *in, uint8_t **at);
enum fault place_where_write(struct qp *qp, const struct seg *seg, uint8_t **at);
enum fault place_where_answer(struct qp *qp, const struct seg *seg, struct send *s, uint32_t offset, uint8_t **at);

/* atomic.c: may the peer do that? Then *at is the word. Does it; returns what the word was. */
enum fault atomic_check(const struct qp *qp, const struct seg_atomic *a, uint8_t **at);
uint64_t atomic_do(uint8_t *at, const struct seg_atomic *a);

/* deliver.c: the message at rx_next, which is whole, goes to the application; the peer's Read at answer_head becomes
 * answerable; the oldest Read completes if all of its response and everything before it is here. FAULT_NOT_NOW: the
 * message is withheld, and stays where it is. */
enum fault deliver_message(struct qp *qp);
enum fault deliver_read_request(struct qp *qp);
enum fault deliver_read_response(struct qp *qp);
bool deliver_has_request(const struct qp *qp, uint32_t msn);
bool deliver_has_response(const struct qp *qp, uint32_t i);

/* emit.c: is there anything to send? Chooses what goes next unless a message is being cut: false if nothing can, or if
 * a request that is done here failed. Then cuts the next segment of it; all but its numbers. */
bool emit_is_due(const struct qp *qp);
bool emit_choose(struct qp *qp);
bool emit_message(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max);

/* control.c: control data of messages in one sequence, and the receives that messages take there. */
struct inbound *find_inbound(const struct qp *qp, enum seg_op op, uint32_t number);
enum fault claim_inbound(struct qp *qp, const struct seg *seg, bool in_order, struct inbound **in);
void control_add(struct inbound *in, const struct seg *seg);

/* In its turn, a segment of a Write or Read Request may need a receive: *in, or NULL. Taken before anything is placed;
 * asked again after FAULT_NOT_NOW it is the same. */
enum fault control_claim(struct qp *qp, const struct seg *seg, struct inbound **in);

/* The segment has been placed: its control data go to where they belong. Those of a Send are there already. */
void control_place(struct qp *qp, const struct seg *seg, struct inbound *in);

/* The last of the response to the peer's Read `number` has been cut: it is processed. */
void control_answered(struct qp *qp, uint32_t number);

#endif
