/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* complete.c - completes requests in posting order, or fails the queue pair and flushes all of them. */
#include "core/qp_inner.h"
#include "core/mw.h"

enum { RUN = 32 /* requests that complete while the CQ is locked */ };

/* --- completion ---------------------------------------------------------------------------------------------- */

static const enum rddp_wc_opcode completed[] = {
    [RDDP_WR_RDMA_WRITE] = RDDP_WC_RDMA_WRITE,
    [RDDP_WR_RDMA_WRITE_WITH_IMM] = RDDP_WC_RDMA_WRITE,
    [RDDP_WR_SEND] = RDDP_WC_SEND,
    [RDDP_WR_SEND_WITH_IMM] = RDDP_WC_SEND,
    [RDDP_WR_RDMA_READ] = RDDP_WC_RDMA_READ,
    [RDDP_WR_ATOMIC_CMP_AND_SWP] = RDDP_WC_COMP_SWAP,
    [RDDP_WR_ATOMIC_FETCH_AND_ADD] = RDDP_WC_FETCH_ADD,
    [RDDP_WR_LOCAL_INV] = RDDP_WC_LOCAL_INV,
    [RDDP_WR_BIND_MW] = RDDP_WC_BIND_MW,
    [RDDP_WR_SEND_WITH_INV] = RDDP_WC_SEND,
};

/* A request that succeeded completes without a word unless it is signalled. */
static bool is_silent(const struct qp *qp, const struct send *s)
{
    return !(s->flags & RDDP_SEND_SIGNALED) && !qp->attr.signal_all;
}

static inline struct rddp_wc wc_of(const struct qp *qp, const struct send *s, enum rddp_wc_status status)
{
    return (struct rddp_wc){
        .wr_id = s->wr_id,
        .status = status,
        .opcode = completed[s->opcode],
        .vendor_err = status == RDDP_WC_SUCCESS ? FAULT_NONE : qp->note.fault,
        .byte_len = is_answered(s->opcode) ? s->length : 0,
        .qp_num = qp->attr.number,
        .control_length = s->opcode == RDDP_WR_RDMA_READ ? s->response_length : 0,
    };
}

static void complete_give_back(struct qp *qp, uint32_t places)
{
    if (places)
        atomic_fetch_sub_explicit(&qp->sq.taken, places, memory_order_release);
}

/* The key that a LOCAL_INV, or the end of a Read into a one-shot sink, invalidated in the epoch s->retired. */
static uint64_t key_taken(const struct send *s)
{
    return is_local(s->opcode) ? s->remote_key : sink_of(s)->lkey;
}

static bool complete_is_done(const struct qp *qp, const struct send *s)
{
    return (s->state == SEND_DONE && mr_is_unused(qp->attr.mrs, key_taken(s), s->retired)) ||
           (s->state == SEND_QUEUED && s->end <= qp->tx_pos);
}

static bool add_success(struct cq_writer *w, struct qp *qp, const struct send *s)
{
    struct rddp_wc *place = cq_add(w, false, &qp->sq.taken);

    if (place)
        *place = wc_of(qp, s, RDDP_WC_SUCCESS);
    return place;
}

/* Completes requests, up to RUN of them, whose completions are seen together. Returns how many; RUN + 1: the CQ is
 * full. */
static uint32_t retire_run(struct qp *qp, uint32_t head)
{
    struct cq_writer w = {.cq = qp->attr.send_cq};
    uint32_t silent = 0, n = 0;

    for (; n < RUN && qp->sq.tail != head; n++) {
        const struct send *s = sq_at(qp, qp->sq.tail);

        if (!complete_is_done(qp, s))
            break;
        qp->sq.tail++;
        if (is_silent(qp, s))
            silent++;
        else if (!add_success(&w, qp, s))
            n = RUN;
    }
    complete_give_back(qp, silent); /* whoever polls a completion may post to the places of all that came before */
    cq_show(&w);
    return n;
}

enum fault sq_retire(struct qp *qp)
{
    uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_acquire), n;

    do
        n = retire_run(qp, head);
    while (n == RUN);
    return n < RUN ? FAULT_NONE : qp_fail_cq(qp);
}

bool qp_waits_for_spans(const struct qp *qp)
{
    const struct mr_table *mrs = qp->attr.mrs;

    if (qp->invalidating && mr_is_lent(mrs, inbound_at(qp, qp->arriving.next)->invalidate))
        return true;
    if (qp->binding) {
        const struct mr *window = mr_find_window(mrs, sq_at(qp, qp->sq.next)->remote_key);
        if (window && window->sending)
            return true;
    }
    return sq_waits(qp) && mr_is_lent(mrs, key_taken(sq_at(qp, qp->sq.tail)));
}

/* The key of a one-shot sink is invalidated when its Read completes. */
void expire_sink(struct qp *qp, struct send *s)
{
    const struct mr *mr = s->length ? mr_find(qp->attr.mrs, sink_of(s)->lkey) : NULL;

    if (mr && mr->used && mr->access & RDDP_ACCESS_ONE_SHOT)
        (void)mr_invalidate(qp->attr.mrs, qp->attr.pd, mr->key, false, &s->retired);
}

/* --- failure ------------------------------------------------------------------------------------------------- */

/* If the CQ is full here the completion is lost. The CQ records that (`overflowed`), and there is nothing else to
 * notify. */
static void flush_sends(struct qp *qp)
{
    uint32_t head = qp->sq.head;

    while (qp->sq.tail != head) {
        struct send *s = sq_at(qp, qp->sq.tail++);
        struct rddp_wc wc;

        if (s->state == SEND_WAITING)
            expire_sink(qp, s);
        wc = wc_of(qp, s, s->status == RDDP_WC_SUCCESS ? RDDP_WC_WR_FLUSH_ERR : s->status);
        cq_push(qp->attr.send_cq, &wc, false, &qp->sq.taken);
    }
    qp->sq.next = head;
    qp->reads.tail = qp->reads.head;
}

static void flush_receive(struct qp *qp, uint64_t wr_id, enum rddp_wc_status status)
{
    struct rddp_wc wc = {
        .wr_id = wr_id,
        .status = status == RDDP_WC_SUCCESS ? RDDP_WC_WR_FLUSH_ERR : status,
        .opcode = RDDP_WC_RECV,
        .vendor_err = qp->note.fault,
        .qp_num = qp->attr.number,
    };

    cq_push(qp->attr.recv_cq, &wc, false, &qp->rq->taken);
}

static void complete_flush_receives(struct qp *qp)
{
    uint64_t wr_id;

    for (; qp->arriving.next != qp->arriving.claimed; qp->arriving.next++) {
        const struct inbound *in = inbound_at(qp, qp->arriving.next);

        flush_receive(qp, in->recv.wr_id, in->status);
    }
    while (!qp->attr.srq && rq_drop(&qp->own_rq, &wr_id))
        flush_receive(qp, wr_id, RDDP_WC_SUCCESS);
}

static void stop_binding(struct qp *qp)
{
    qp->binding = false;
    mw_part_from(&qp->joined);
}

void qp_fail(struct qp *qp, const struct fault_note *note)
{
    if (qp->state == QP_ERROR)
        return;
    qp->note = *note;
    qp->state = QP_ERROR;
    qp->cut.source = EMIT_NOTHING;
    qp->answers.tail = qp->answers.head;
    qp->invalidating = 0;
    stop_binding(qp);
    qp_tell(qp, QP_FAILS);
    flush_sends(qp);
    complete_flush_receives(qp);
    qp_tell(qp, QP_FAILED);
}

void sq_fail(struct qp *qp, const struct fault_note *note)
{
    qp->note = *note;
    qp->sends_failed = true;
    stop_binding(qp);
    flush_sends(qp);
    qp_tell(qp, QP_SENDS_FAILED);
}

void qp_settle(struct qp *qp)
{
    if (qp->state == QP_ERROR || qp->sends_failed)
        flush_sends(qp);
    if (qp->state == QP_ERROR)
        complete_flush_receives(qp);
}

void qp_restart_sends(struct qp *qp)
{
    qp_settle(qp);
    qp->sends_failed = false;
}

enum fault qp_fail_cq(struct qp *qp)
{
    qp_fail(qp, &(struct fault_note){.fault = FAULT_CQ_FULL});
    return FAULT_CQ_FULL;
}

/* Does this request make messages of kind `op`? */
static bool makes(const struct send *s, enum seg_op op)
{
    switch (s->opcode) {
    case RDDP_WR_RDMA_WRITE:
        return op == SEG_WRITE;
    case RDDP_WR_RDMA_WRITE_WITH_IMM:
        return op == SEG_WRITE || op == SEG_IMMEDIATE;
    case RDDP_WR_SEND_WITH_IMM:
        return op == SEG_IMMEDIATE;
    case RDDP_WR_SEND:
    case RDDP_WR_SEND_WITH_INV:
        return op == SEG_SEND;
    default:
        return false;
    }
}

/* Returns the oldest pending Read, or atomic if `op` is SEG_ATOMIC_REQ; NULL: none. */
static struct send *unanswered(const struct qp *qp, enum seg_op op)
{
    for (uint32_t i = qp->reads.tail; i != qp->reads.head; i++)
        if (is_atomic(read_out_at(qp, i)->opcode) == (op == SEG_ATOMIC_REQ))
            return read_out_at(qp, i);
    return NULL;
}

void qp_blame(struct qp *qp, enum seg_op op, enum rddp_wc_status status)
{
    /* The request that is being cut into segments may be the one, too. */
    uint32_t left = qp->sq.next + (qp->cut.source == EMIT_SEND || qp->cut.source == EMIT_IMMEDIATE), i = qp->sq.tail;

    if (op == SEG_READ_RESP || op == SEG_ATOMIC_RESP)
        return;
    if ((op == SEG_READ_REQ || op == SEG_ATOMIC_REQ) && unanswered(qp, op)) {
        unanswered(qp, op)->status = status;
        return;
    }
    while (i != left && !makes(sq_at(qp, i), op))
        i++;
    if (i == left)
        i = qp->sq.tail;
    if (i != left)
        sq_at(qp, i)->status = status;
}
