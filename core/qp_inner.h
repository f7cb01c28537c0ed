/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_inner.h - declarations shared by the files of the engine; only core/ includes it. */
#ifndef RDDP_CORE_QP_INNER_H
#define RDDP_CORE_QP_INNER_H

#include "base/bytes.h"
#include "base/ring.h"
#include "core/sequence.h"
#include "core/qp.h"

static inline size_t size_align(size_t octets)
{
    return (octets + 15) & ~(size_t)15;
}

static inline struct inbound *inbound_at(const struct qp *qp, uint32_t msn)
{
    return &qp->arriving.ring[msn & qp->arriving.mask];
}

static inline struct peer_read *peer_read_at(const struct qp *qp, uint32_t msn)
{
    return &qp->answers.ring[msn & qp->answers.mask];
}

/* Returns a pending Read; `i` runs from reads.tail to reads.head. */
static inline struct send *read_out_at(const struct qp *qp, uint32_t i)
{
    return sq_at(qp, qp->reads.at[i & qp->reads.mask]);
}

static inline uint32_t reads_out(const struct qp *qp)
{
    return qp->reads.head - qp->reads.tail;
}

static inline const struct rddp_sge *sink_of(const struct send *s)
{
    static const struct rddp_sge none;

    return s->sges ? s->sge : &none;
}

enum { ATOMIC_OCTETS = 8 }; /* octets that an atomic operation works on */

static inline bool is_atomic(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_ATOMIC_CMP_AND_SWP || opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD;
}

/* Does the peer answer such a request? Then it counts against the ORD. */
static inline bool is_answered(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_RDMA_READ || is_atomic(opcode);
}

static inline bool is_write(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_RDMA_WRITE || opcode == RDDP_WR_RDMA_WRITE_WITH_IMM;
}

/* The rights that a region must grant for a remote operation: one that none has, if the queue pair refuses it. */
static inline unsigned remote_right(const struct qp *qp, unsigned right)
{
    return right & atomic_load_explicit(&qp->attr.refused, memory_order_relaxed) ? 1u << 31 : right;
}

/* Is this the window of another queue pair? */
static inline bool is_of_other(const struct qp *qp, const struct mr *mr)
{
    return mr->user && mr->user != qp->user;
}

/* mr_check() for what the peer asks for: also by the access of the queue pair and the user of a window. *at and *mr are
 * for use only if there is no fault. check_remote(): for who does not touch the octets. */
static inline enum fault find_remote(const struct qp *qp, uint64_t key, uint64_t offset, uint64_t length,
                                     unsigned right, uint8_t **at, struct mr **mr)
{
    enum fault fault = mr_check(qp->attr.mrs, qp->attr.pd, key, offset, length, remote_right(qp, right), at, mr);

    return !fault && is_of_other(qp, *mr) ? FAULT_DOMAIN : fault;
}

static inline enum fault check_remote(const struct qp *qp, uint64_t key, uint64_t offset, uint64_t length,
                                      unsigned right, uint8_t **at)
{
    struct mr *mr;

    return find_remote(qp, key, offset, length, right, at, &mr);
}

/* Does the message continue here? Octets that were placed early may arrive again in order. */
static inline bool in_turn(const struct ranges *got, bool early, uint64_t offset)
{
    uint32_t prefix = ranges_prefix(got);

    return early ? offset <= prefix : offset == prefix;
}

/* rq.c: sums up the lengths of a list of sges. Returns 0, or -EINVAL if there are too many or the sum is too large. */
int sges_check(const struct rddp_sge *sge, int count, uint32_t max, uint32_t *length);
bool rq_take(struct rq *rq, struct recv *to); /* false: the queue is empty (others may share it) */
bool rq_drop(struct rq *rq, uint64_t *wr_id); /* like rq_take(), returning only wr_id */

/* complete.c: completes the finished requests at the tail of the send queue, in order. Returns FAULT_CQ_FULL if the CQ
 * was full, which fails the queue pair; qp_fail_cq() does the same. */
enum fault sq_retire(struct qp *qp);
enum fault qp_fail_cq(struct qp *qp);
/* A request failed, and has its status: flushes the send queue, which takes requests only to flush them from now on. */
void sq_fail(struct qp *qp, const struct fault_note *note);
/* A Read completed: invalidates its sink if that is RDDP_ACCESS_ONE_SHOT. */
void expire_sink(struct qp *qp, struct send *s);

/* note.c: fill in qp->note for a fault of a segment, of the message at arriving.next, or of the oldest pending Read,
 * and return the fault. note_read() returns the note for a Read Request of the peer. */
enum fault note_seg(struct qp *qp, const struct seg *seg, enum fault fault, uint64_t got, uint64_t want);
enum fault note_message(struct qp *qp, enum fault fault, uint64_t got, uint64_t want);
enum fault note_response(struct qp *qp, uint64_t got, uint64_t want);
struct fault_note note_read(const struct peer_read *p, uint32_t msn, enum fault fault);

/* place.c: place a segment. The caller has found the receive (`in`), the slot in the ring of the peer's Reads (`at`),
 * or the Read and the offset in its sink (`at`). */
struct inbound *place_claim(struct qp *qp); /* NULL: no receive is posted */
enum fault place_message(struct qp *qp, const struct seg *seg, struct inbound *in, bool in_order);
enum fault place_write(struct qp *qp, const struct seg *seg);
void place_elsewhere(struct inbound *in, uint64_t end, uint32_t length, unsigned flags);
enum fault place_read_request(struct qp *qp, const struct seg *seg, uint32_t at);
enum fault place_answer(struct qp *qp, const struct seg *seg, struct send *s, uint32_t at, bool in_order);
enum fault place_atomic_answer(struct qp *qp, const struct seg *seg, struct send *s, bool in_order);
/* A whole message: seg->head, and then the payload. */
enum fault place_datagram(struct qp *qp, const struct seg *seg, struct inbound *in);

/* whole.c: takes the Send that `seg`, the next of the stream, is by itself. Returns false if it is none, or not a
 * simple one: nothing has changed, but it may have claimed its receive. Small functions in a row cost as much as what
 * they do: in what is flattened, here and elsewhere, those that are called are inlined. */
__attribute__((flatten)) bool whole_take(struct qp *qp, const struct seg *seg, enum fault *fault);
/* Cuts and numbers the next request if it is one segment and nothing goes in front of it. Returns false, and has
 * changed nothing but *e, if it is not as simple: the numbering's emit() knows. */
__attribute__((flatten)) bool whole_emit(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max);

/* place.c: copy only the payload of a segment whose turn has not come, and record nothing. Without seg->data nothing
 * moves. */
enum fault place_ahead_message(struct qp *qp, const struct seg *seg, const struct inbound *in);
enum fault place_ahead_write(struct qp *qp, const struct seg *seg);
enum fault place_ahead_answer(struct qp *qp, const struct seg *seg, const struct send *s, uint32_t at);

/* place.c: make the same checks for a segment in order and move nothing. *at is where its payload belongs; NULL if that
 * is not one piece. */
enum fault place_where_message(struct qp *qp, const struct seg *seg, struct inbound *in, uint8_t **at);
enum fault place_where_write(struct qp *qp, const struct seg *seg, uint8_t **at);
enum fault place_where_answer(struct qp *qp, const struct seg *seg, struct send *s, uint32_t offset, uint8_t **at);

/* atomic.c: atomic_check() checks the access and stores the word's address in *at. atomic_do() executes the operation
 * and returns the old value. */
enum fault atomic_check(const struct qp *qp, const struct seg_atomic *a, uint8_t **at);
uint64_t atomic_do(uint8_t *at, const struct seg_atomic *a);

/* deliver.c: deliver_message() delivers the complete message at arriving.next to the application.
 * deliver_read_request() makes the peer's Read at answers.head ready to be answered. deliver_read_response() completes
 * the oldest Read if its response and everything before it have arrived. FAULT_NOT_NOW: the message waits for its
 * invalidation and stays in place. */
enum fault deliver_message(struct qp *qp);
enum fault deliver_read_request(struct qp *qp);
enum fault deliver_read_response(struct qp *qp);
bool deliver_has_request(const struct qp *qp, uint32_t msn);
bool deliver_has_response(const struct qp *qp, uint32_t i);

/* emit.c: emit_all_local() executes the next requests as far as they send nothing, until one waits (qp->binding);
 * returns false if one failed.
 * emit_is_due(): is there anything to send? emit_choose() selects the next message unless one is being cut;
 * returns false if there is none, or if a request that is executed locally failed. emit_message() then cuts the next
 * segment, without its numbers. */
bool emit_all_local(struct qp *qp);
bool emit_is_due(const struct qp *qp);
bool emit_choose(struct qp *qp);
bool emit_message(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max);

/* emit.c, for packets.c and whole.c: emit_has_request(): may the next request leave, or be executed? emit_add_span()
 * adds memory of a region to *e after checking that `rest` octets may be read. emit_fail_key() fails the queue pair
 * because of an sge, returns false. emit_answer() cuts the next segment of the oldest response; false: there is none,
 * or the queue pair failed. */
bool emit_has_request(const struct qp *qp);
enum fault emit_add_span(struct qp *qp, struct emit *e, uint64_t key, uint64_t offset, uint32_t rest, uint32_t length,
                         unsigned rights);
bool emit_fail_key(struct qp *qp, struct send *s, enum seg_op op, const struct rddp_sge *sge);
bool emit_answer(struct qp *qp, struct emit *e, uint32_t max);

/* control.c: control data of messages in one sequence, and the receives that these messages take. */
struct inbound *find_inbound(const struct qp *qp, enum seg_op op, uint32_t number);
enum fault claim_inbound(struct qp *qp, const struct seg *seg, bool in_order, struct inbound **in);
void control_add(struct inbound *in, const struct seg *seg);

/* Finds or claims the receive that a segment of a Write or Read Request needs, in its turn: *in, or NULL for none.
 * Called before anything is placed; after FAULT_NOT_NOW the next call returns the same receive. */
enum fault control_claim(struct qp *qp, const struct seg *seg, struct inbound **in);

/* Stores the control data of a segment that was placed. Those of a Send were stored with its payload. */
void control_place(struct qp *qp, const struct seg *seg, struct inbound *in);

/* The last segment of the response to the peer's Read `number` was cut: the Read is processed. */
void control_answered(struct qp *qp, uint32_t number);

#endif
