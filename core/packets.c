/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packets.c - messages of a transport that numbers packets: they arrive in order, each end counts them, and none has a
 * number of its own. */
#include "core/packets.h"

#include <assert.h>
#include <errno.h>

#include "core/qp_inner.h"

/* --- posting ------------------------------------------------------------------------------------------------- */

static int packets_check(const struct qp *qp, const struct rddp_send_wr *wr, uint32_t length)
{
    bool is_answer_needed = is_answered(wr->opcode) || wr->opcode == RDDP_WR_SEND_WITH_INV;

    if (length > PACKETS_MESSAGE_MAX)
        return -EINVAL;
    if (wr->send_flags & RDDP_SEND_MASKED || (is_answer_needed && qp->attr.service == QP_UNRELIABLE))
        return -EOPNOTSUPP;
    return wr->send_flags & RDDP_SEND_ORDER || wr->control_length ? -EINVAL : 0;
}

void qp_use_packets(struct qp *qp)
{
    qp->numbering = &numbering_packets;
}

/* --- leaving ------------------------------------------------------------------------------------------------- */

static enum seg_op op_of(enum rddp_wr_opcode opcode)
{
    if (is_atomic(opcode))
        return SEG_ATOMIC_REQ;
    if (opcode == RDDP_WR_RDMA_READ)
        return SEG_READ_REQ;
    return is_write(opcode) ? SEG_WRITE : SEG_SEND;
}

/* A request that was taken and is not complete: the place of any other may be the application's again. */
static struct send *taken_at(const struct qp *qp, uint32_t at)
{
    assert(at - qp->sq.tail < qp->sq.next - qp->sq.tail);
    return sq_at(qp, at);
}

void qp_describe_request(const struct qp *qp, uint32_t at, struct seg *seg)
{
    const struct send *s = taken_at(qp, at);

    *seg = (struct seg){.op = op_of(s->opcode), .length = s->length, .total = s->length};
    if (s->flags & RDDP_SEND_SOLICITED)
        seg->flags |= SEG_SOLICITED;
    if (s->opcode == RDDP_WR_SEND_WITH_INV) {
        seg->flags |= SEG_INVALIDATE;
        seg->invalidate = s->remote_key;
    }
    if (s->opcode == RDDP_WR_SEND_WITH_IMM || s->opcode == RDDP_WR_RDMA_WRITE_WITH_IMM) {
        seg->flags |= SEG_WITH_IMM;
        seg->immediate = s->immediate;
    }
    if (is_atomic(s->opcode)) {
        seg->atomic = s->atomic;
        return;
    }
    seg->key = s->remote_key;
    seg->offset = s->remote_offset;
}

/* May each sge of the sink be written to? So that no response is asked for that has no place. */
static bool check_sink(struct qp *qp, struct send *s)
{
    for (uint32_t i = 0; i < s->sges; i++) {
        const struct rddp_sge *sge = &s->sge[i];
        struct mr *mr;
        uint8_t *at;

        if (!sge->length)
            continue;
        if (mr_check(qp->attr.mrs, qp->attr.pd, sge->lkey, sge->addr, sge->length, RDDP_ACCESS_LOCAL_WRITE, &at, &mr) ||
            (mr->access & RDDP_ACCESS_ONE_SHOT && atomic_exchange(&mr->used, true)))
            return emit_fail_key(qp, s, op_of(s->opcode), sge);
    }
    return true;
}

static bool begin_answered(struct qp *qp, struct send *s)
{
    const struct fault_note none = {.fault = FAULT_NO_ORD, .op = op_of(s->opcode)};

    if (!qp->attr.ord) {
        s->status = RDDP_WC_LOC_QP_OP_ERR;
        qp_fail(qp, &none);
        return false;
    }
    if (!check_sink(qp, s))
        return false;
    s->state = SEND_WAITING;
    qp->reads.at[qp->reads.head++ & qp->reads.mask] = qp->sq.next;
    return true;
}

bool qp_has_request(const struct qp *qp)
{
    return qp->state == QP_READY && !qp->binding && emit_has_request(qp);
}

bool qp_take_request(struct qp *qp, uint32_t *at, struct seg *seg)
{
    struct send *s;

    if (qp->state != QP_READY)
        return false;
    if ((qp->binding || qp_has_local(qp)) && (!emit_all_local(qp) || qp->binding))
        return false;
    if (!emit_has_request(qp))
        return false;
    s = sq_at(qp, qp->sq.next);
    if (is_answered(s->opcode)) {
        if (!begin_answered(qp, s))
            return false;
    } else {
        s->state = SEND_QUEUED;
        qp->tx_octets += s->length;
    }
    *at = qp->sq.next++;
    qp_describe_request(qp, *at, seg);
    return true;
}

bool qp_is_signalled(const struct qp *qp, uint32_t at)
{
    return qp->attr.signal_all || sq_at(qp, at)->flags & RDDP_SEND_SIGNALED;
}

bool qp_has_copied(const struct qp *qp, uint32_t at)
{
    return !sq_at(qp, at)->length || sq_at(qp, at)->flags & RDDP_SEND_INLINE;
}

void qp_request_ends(struct qp *qp, uint32_t at, uint64_t end)
{
    sq_at(qp, at)->end = end;
}

/* Adds the octets of these sges, each checked to its end. Returns NULL, or the sge that may not be read. */
static const struct rddp_sge *gather(struct qp *qp, const struct rddp_sge *sge, uint32_t offset, uint32_t length,
                                     struct emit *e)
{
    for (; length; sge++) {
        uint32_t rest, n;

        if (offset >= sge->length) {
            offset -= sge->length;
            continue;
        }
        rest = sge->length - offset;
        n = rest < length ? rest : length;
        if (emit_add_span(qp, e, sge->lkey, sge->addr + offset, rest, n, 0))
            return sge;
        offset = 0;
        length -= n;
    }
    return NULL;
}

bool qp_gather_request(struct qp *qp, uint32_t at, uint32_t offset, uint32_t length, struct emit *e)
{
    struct send *s = taken_at(qp, at);
    const struct rddp_sge *bad;

    e->spans = 0;
    if (!(s->flags & RDDP_SEND_INLINE)) {
        bad = gather(qp, s->sge, offset, length, e);
        return !bad || emit_fail_key(qp, s, op_of(s->opcode), bad);
    }
    if (length) {
        e->region[0] = NULL;
        e->span[e->spans++] = (struct span){s->inlined + offset, length};
    }
    return true;
}

bool qp_gather_train(struct qp *qp, uint32_t at, uint32_t offset, uint32_t length, struct emit *e)
{
    const struct send *s = taken_at(qp, at);

    e->spans = 0;
    return !(s->flags & RDDP_SEND_INLINE) && !gather(qp, s->sge, offset, length, e);
}

void qp_blame_request(struct qp *qp, uint32_t at, enum rddp_wc_status status)
{
    taken_at(qp, at)->status = status;
}

bool qp_take_answer(struct qp *qp, struct emit *e, uint32_t max)
{
    return qp->state == QP_READY && emit_answer(qp, e, max);
}

uint32_t qp_take_answer_train(struct qp *qp, struct emit *e, uint32_t each, uint32_t most)
{
    const struct peer_read *p = peer_read_at(qp, qp->answers.tail);
    uint32_t left, n;

    if (qp->state != QP_READY || qp->cut.source != EMIT_RESPONSE)
        return 0;
    left = p->read.length - qp->cut.offset;
    n = (left - 1) / each < most ? (left - 1) / each : most;
    e->spans = 0;
    if (!n || emit_add_span(qp, e, p->read.source_key, p->read.source_offset + qp->cut.offset, left, n * each,
                            remote_right(qp, RDDP_ACCESS_REMOTE_READ)))
        return 0;
    qp->cut.offset += n * each;
    qp->tx_octets += n * each;
    return n;
}

enum fault qp_gather_again(struct qp *qp, uint64_t key, uint64_t offset, uint32_t rest, uint32_t length, struct emit *e)
{
    e->spans = 0;
    return length ? emit_add_span(qp, e, key, offset, rest, length, remote_right(qp, RDDP_ACCESS_REMOTE_READ))
                  : FAULT_NONE;
}

/* --- arriving ------------------------------------------------------------------------------------------------ */

/* The receive that a message is arriving at; the next one, if it is the first segment. NULL: none is posted. */
static struct inbound *receive_of(struct qp *qp)
{
    return qp->arriving.claimed != qp->arriving.next ? inbound_at(qp, qp->arriving.next) : place_claim(qp);
}

void qp_discard_message(struct qp *qp)
{
    struct inbound *in = inbound_at(qp, qp->arriving.next);

    if (qp->arriving.claimed == qp->arriving.next)
        return;
    in->got.count = 0;
    in->end = in->flags = in->reach = 0;
}

static enum fault packets_take_send(struct qp *qp, const struct seg *seg)
{
    struct inbound *in = receive_of(qp);
    enum fault fault;

    if (!in)
        return note_seg(qp, seg, FAULT_NO_RECEIVE, 0, 0);
    fault = place_message(qp, seg, in, true);
    if (!fault)
        in->immediate = (uint32_t)seg->immediate;
    return fault;
}

/* The first of several segments names the place of the whole Write: no octet of it moves if one may not. */
static enum fault check_whole(struct qp *qp, const struct seg *seg)
{
    enum fault fault = FAULT_NONE;
    uint8_t *at;

    if (seg->flags & SEG_FIRST && seg->total > seg->length)
        fault = check_remote(qp, seg->key, seg->offset, seg->total, RDDP_ACCESS_REMOTE_WRITE, &at);
    return fault ? note_seg(qp, seg, fault, 0, 0) : FAULT_NONE;
}

/* Immediate data take a receive, and nothing is placed in it. */
static enum fault packets_take_write(struct qp *qp, const struct seg *seg)
{
    bool takes = seg->flags & SEG_WITH_IMM && seg->flags & SEG_LAST;
    struct inbound *in = takes ? receive_of(qp) : NULL;
    enum fault fault;

    if (takes && !in)
        return note_seg(qp, seg, FAULT_NO_RECEIVE, 0, 0);
    fault = check_whole(qp, seg);
    if (!fault)
        fault = place_write(qp, seg);
    if (fault || !takes)
        return fault;
    place_elsewhere(in, seg->end, seg->total, seg->flags);
    in->op = SEG_WRITE;
    in->immediate = (uint32_t)seg->immediate;
    return FAULT_NONE;
}

/* Responses come in the order of their requests, and in order within. */
static enum fault packets_take_response(struct qp *qp, const struct seg *seg)
{
    struct send *s;

    if (!reads_out(qp))
        return note_seg(qp, seg, FAULT_UNASKED, 0, 0);
    s = read_out_at(qp, qp->reads.tail);
    if (seg->op == SEG_ATOMIC_RESP)
        return is_atomic(s->opcode) ? place_atomic_answer(qp, seg, s, true) : note_seg(qp, seg, FAULT_UNASKED, 0, 0);
    if (is_atomic(s->opcode) || seg->offset > s->length || seg->length > s->length - seg->offset)
        return note_seg(qp, seg, FAULT_UNASKED, seg->offset, s->length);
    return place_answer(qp, seg, s, (uint32_t)seg->offset, true);
}

static enum fault take_request(struct qp *qp, const struct seg *seg)
{
    return place_read_request(qp, seg, qp->answers.head);
}

static enum fault packets_deliver(struct qp *qp)
{
    const struct inbound *in = inbound_at(qp, qp->arriving.next);

    if (qp->arriving.claimed == qp->arriving.next || !(in->flags & SEG_LAST))
        return FAULT_NONE;
    return deliver_message(qp);
}

static const struct {
    enum fault (*take)(struct qp *qp, const struct seg *seg);
    enum fault (*deliver)(struct qp *qp);
} steps[] = {
    [SEG_SEND] = {packets_take_send, packets_deliver},
    [SEG_WRITE] = {packets_take_write, packets_deliver},
    [SEG_READ_REQ] = {take_request, deliver_read_request},
    [SEG_READ_RESP] = {packets_take_response, deliver_read_response},
    [SEG_IMMEDIATE] = {packets_take_send, packets_deliver},
    [SEG_ATOMIC_REQ] = {take_request, deliver_read_request},
    [SEG_ATOMIC_RESP] = {packets_take_response, deliver_read_response},
};

static enum fault packets_place(struct qp *qp, const struct seg *seg)
{
    enum fault fault;

    if (seg->op == SEG_SEND && whole_take(qp, seg, &fault))
        return fault;
    fault = steps[seg->op].take(qp, seg);
    if (fault)
        return fault;
    qp->rx_octets += seg->length;
    qp->rx_pos = seg->end;
    fault = steps[seg->op].deliver(qp);
    return fault == FAULT_NOT_NOW ? FAULT_NONE : fault; /* the message is withheld */
}

/* A message that has waited for its invalidation; it may wait on. */
static enum fault packets_resume(struct qp *qp)
{
    enum fault fault = packets_deliver(qp);

    return fault == FAULT_NOT_NOW ? FAULT_NONE : fault;
}

/* Nothing comes out of order: the transport keeps it. */
static enum fault place_never(struct qp *qp, const struct seg *seg)
{
    (void)qp;
    (void)seg;
    return FAULT_NOT_NOW;
}

static enum fault packets_advance(struct qp *qp, uint64_t pos)
{
    qp->rx_pos = pos;
    return FAULT_NONE;
}

const struct numbering numbering_packets = {
    .check = packets_check,
    .place = packets_place,
    .place_early = place_never,
    .advance = packets_advance,
    .resume = packets_resume,
};
