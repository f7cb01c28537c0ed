/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* emit.c - selects the message that is sent next, requests and responses in turn, and cuts its segments. */
#include "core/qp_inner.h"
#include "core/mw.h"

#include <assert.h>

/* --- what may be sent? ---------------------------------------------------------------------------------------- */

static bool has_answer(const struct qp *qp)
{
    return qp->answers.tail != qp->answers.head;
}

/* May the next request be sent, by its fence and the agreed ORD? With an ORD of 0 it is let through, to fail. */
bool emit_has_request(const struct qp *qp)
{
    const struct send *s = sq_next(qp);

    if (!s || qp->sends_failed || (s->flags & RDDP_SEND_FENCE && reads_out(qp)))
        return false;
    return !is_answered(s->opcode) || reads_out(qp) < qp->attr.ord || !qp->attr.ord;
}

/* --- failure of a local request ------------------------------------------------------------------------------- */

/* Earlier requests that were sent have completed; all others are flushed. Always returns false. */
static bool fail_request(struct qp *qp, struct send *s, enum rddp_wc_status status, const struct fault_note *note)
{
    s->status = status;
    if (qp->attr.service == QP_RELIABLE)
        qp_fail(qp, note);
    else
        sq_fail(qp, note);
    return false;
}

bool emit_fail_key(struct qp *qp, struct send *s, enum seg_op op, const struct rddp_sge *sge)
{
    const struct fault_note note = {
        .fault = FAULT_LOCAL_KEY,
        .op = op,
        .key = sge->lkey,
        .offset = sge->addr,
        .length = sge->length,
    };

    return fail_request(qp, s, RDDP_WC_LOC_PROT_ERR, &note);
}

/* --- payload ------------------------------------------------------------------------------------------------- */

/* Adds a copy of octets that may not be there, at its place in the buffer: it does not depend on the region any more.
 * Not inlined, so that other memory does not pay for it. */
__attribute__((noinline)) static enum fault emit_fetch(const struct qp *qp, struct emit *e, const uint8_t *at,
                                                       uint32_t length)
{
    uint8_t *to = e->buffer;

    if (!to)
        return FAULT_ABSENT;
    for (uint32_t i = 0; i < e->spans; i++)
        to += e->span[i].length;
    if (!qp->attr.mrs->copier->fetch(to, at, length))
        return FAULT_ABSENT;
    e->volatile_data = true;
    e->region[e->spans] = NULL;
    e->span[e->spans++] = (struct span){to, length};
    return FAULT_NONE;
}

/* Adds `length` octets at `offset` of the region, after checking that `rest` octets from there may be read. */
enum fault emit_add_span(struct qp *qp, struct emit *e, uint64_t key, uint64_t offset, uint32_t rest, uint32_t length,
                         unsigned rights)
{
    struct mr *mr;
    uint8_t *at;
    enum fault fault = mr_check(qp->attr.mrs, qp->attr.pd, key, offset, rest, rights, &at, &mr);

    if (fault)
        return fault;
    if (is_of_other(qp, mr))
        return FAULT_DOMAIN;
    if (mr_is_on_demand(mr))
        return emit_fetch(qp, e, at, length);
    e->may_change |= !(mr->access & RDDP_ACCESS_STABLE);
    e->region[e->spans] = mr;
    e->span[e->spans++] = (struct span){at, length};
    return FAULT_NONE;
}

/* Adds the next `length` octets of a request. Returns NULL, or the sge that may not be sent. Checks the rest of an sge
 * as a whole, so that a message that cannot be completed is not begun. */
static const struct rddp_sge *emit_gather(struct qp *qp, struct emit *e, const struct send *s, uint32_t length)
{
    while (length) {
        const struct rddp_sge *sge = &s->sge[qp->cut.sge];
        uint32_t rest = sge->length - qp->cut.sge_offset, n = rest < length ? rest : length;

        if (n && emit_add_span(qp, e, sge->lkey, sge->addr + qp->cut.sge_offset, rest, n, 0))
            return sge;
        length -= n;
        qp->cut.sge_offset += n;
        if (n == rest) {
            qp->cut.sge++;
            qp->cut.sge_offset = 0;
        }
    }
    return NULL;
}

static uint32_t emit_cut(uint32_t left, uint32_t max)
{
    assert(max || !left);
    return left < max ? left : max;
}

/* Accounts for the segment. Returns whether it was the last of its message. */
static bool ends_message(struct qp *qp, struct emit *e, uint32_t message_length)
{
    qp->cut.offset += e->seg.length;
    qp->tx_octets += e->seg.length;
    if (qp->cut.offset < message_length)
        return false;
    e->seg.flags |= SEG_LAST;
    qp->cut.source = EMIT_NOTHING;
    return true;
}

/* --- a message of the send queue ----------------------------------------------------------------------------- */

static void fill_write(const struct qp *qp, struct seg *seg, const struct send *s)
{
    seg->op = SEG_WRITE;
    seg->key = s->remote_key;
    seg->offset = s->remote_offset + qp->cut.offset;
}

/* Every segment of the message carries Solicited and Invalidate (RFC 5041 4.2: the same RsvdULP in all of them). */
static void emit_fill_send(const struct qp *qp, struct seg *seg, const struct send *s)
{
    seg->op = SEG_SEND;
    seg->offset = qp->cut.offset;
    if (s->flags & RDDP_SEND_SOLICITED)
        seg->flags |= SEG_SOLICITED;
    if (s->opcode == RDDP_WR_SEND_WITH_INV) {
        seg->flags |= SEG_INVALIDATE;
        seg->invalidate = s->remote_key;
    }
}

static bool emit_payload(struct qp *qp, struct emit *e, struct send *s, uint32_t tagged_max, uint32_t untagged_max)
{
    bool tagged = is_write(s->opcode);
    const struct rddp_sge *bad = NULL;

    if (tagged)
        fill_write(qp, &e->seg, s);
    else
        emit_fill_send(qp, &e->seg, s);
    e->seg.length = emit_cut(s->length - qp->cut.offset, tagged ? tagged_max : untagged_max);
    if (s->flags & RDDP_SEND_INLINE) {
        e->volatile_data = true;
        if (e->seg.length) {
            e->region[0] = NULL;
            e->span[e->spans++] = (struct span){s->inlined + qp->cut.offset, e->seg.length};
        }
    } else {
        bad = emit_gather(qp, e, s, e->seg.length);
    }
    if (bad)
        return emit_fail_key(qp, s, e->seg.op, bad);
    if (!ends_message(qp, e, s->length))
        return true;
    if (s->opcode == RDDP_WR_RDMA_WRITE_WITH_IMM) {
        qp->cut.source = EMIT_IMMEDIATE;
    } else {
        s->state = SEND_QUEUED;
        qp->sq.next++;
    }
    return true;
}

/* "An RDMA Write Message followed by an Immediate Data Operation" is a Write with immediate (RFC 7306 6). */
static bool emit_immediate(struct qp *qp, struct emit *e)
{
    struct send *s = sq_at(qp, qp->sq.next++);

    e->seg.op = SEG_IMMEDIATE;
    e->seg.flags = SEG_LAST | (s->flags & RDDP_SEND_SOLICITED ? SEG_SOLICITED : 0);
    e->seg.immediate = (uint64_t)s->immediate << 32 |
                       (s->opcode == RDDP_WR_SEND_WITH_IMM ? SEG_IMMEDIATE_OF_SEND : SEG_IMMEDIATE_OF_WRITE);
    s->state = SEND_QUEUED;
    qp->cut.last = EMIT_SEND;
    qp->cut.source = EMIT_NOTHING;
    return true;
}

/* The peer is told the request's own sge, so its response is checked against the request alone. */
static bool emit_read_request(struct qp *qp, struct emit *e, struct send *s)
{
    const struct rddp_sge *sink = sink_of(s);
    struct mr *mr = NULL;
    uint8_t *at;

    e->seg.op = is_atomic(s->opcode) ? SEG_ATOMIC_REQ : SEG_READ_REQ;
    if (!qp->attr.ord)
        return fail_request(qp, s, RDDP_WC_LOC_QP_OP_ERR, &(struct fault_note){.fault = FAULT_NO_ORD, .op = e->seg.op});
    if (s->length &&
        mr_check(qp->attr.mrs, qp->attr.pd, sink->lkey, sink->addr, s->length, RDDP_ACCESS_LOCAL_WRITE, &at, &mr))
        return emit_fail_key(qp, s, e->seg.op, sink);
    if (mr && mr->access & RDDP_ACCESS_ONE_SHOT && atomic_exchange(&mr->used, true))
        return emit_fail_key(qp, s, e->seg.op, sink);
    e->seg.flags = SEG_LAST;
    if (e->seg.op == SEG_ATOMIC_REQ)
        e->seg.atomic = s->atomic;
    else
        e->seg.read = (struct seg_read){
            .sink_key = sink->lkey,
            .sink_offset = sink->addr,
            .source_key = s->remote_key,
            .source_offset = s->remote_offset,
            .length = s->length,
        };
    s->state = SEND_WAITING;
    qp->reads.at[qp->reads.head++ & qp->reads.mask] = qp->sq.next++;
    qp->cut.source = EMIT_NOTHING;
    return true;
}

static bool emit_request(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max)
{
    struct send *s = sq_at(qp, qp->sq.next);

    qp->cut.last = EMIT_SEND;
    if (is_answered(s->opcode))
        return emit_read_request(qp, e, s);
    if (s->opcode == RDDP_WR_SEND_WITH_IMM)
        return emit_immediate(qp, e);
    return emit_payload(qp, e, s, tagged_max, untagged_max);
}

/* --- a response ---------------------------------------------------------------------------------------------- */

/* Executes the atomic when its response is cut, in order with other responses (RFC 7306 5.4). The access was also
 * checked at delivery, as for a Read. */
static bool emit_atomic_response(struct qp *qp, struct emit *e)
{
    const struct peer_read *p = peer_read_at(qp, qp->answers.tail);
    struct fault_note note;
    uint8_t *at;
    enum fault fault = atomic_check(qp, &p->atomic, &at);

    qp->cut.last = EMIT_RESPONSE;
    if (fault) {
        note = note_read(p, qp->answers.tail, fault);
        qp_fail(qp, &note);
        return false;
    }
    e->seg.op = SEG_ATOMIC_RESP;
    e->seg.flags = SEG_LAST;
    e->seg.atomic = (struct seg_atomic){.id = p->atomic.id, .data = atomic_do(at, &p->atomic)};
    qp->answers.tail++;
    qp->cut.source = EMIT_NOTHING;
    return true;
}

static bool emit_response(struct qp *qp, struct emit *e, uint32_t tagged_max)
{
    const struct peer_read *p = peer_read_at(qp, qp->answers.tail);
    uint32_t left = p->read.length - qp->cut.offset;
    enum fault fault = FAULT_NONE;
    struct fault_note note;

    qp->cut.last = EMIT_RESPONSE;
    e->seg.op = SEG_READ_RESP;
    e->seg.key = p->read.sink_key;
    e->seg.offset = p->read.sink_offset + qp->cut.offset;
    e->seg.length = emit_cut(left, tagged_max);
    /* The access was checked when the request was delivered, but may have been revoked since. */
    if (left)
        fault = emit_add_span(qp, e, p->read.source_key, p->read.source_offset + qp->cut.offset, left, e->seg.length,
                              remote_right(qp, RDDP_ACCESS_REMOTE_READ));
    if (fault) {
        note = note_read(p, qp->answers.tail, fault);
        qp_fail(qp, &note);
        return false;
    }
    if (ends_message(qp, e, p->read.length))
        qp->answers.tail++;
    return true;
}

/* --- turns --------------------------------------------------------------------------------------------------- */

static bool fail_bind(struct qp *qp, struct send *s)
{
    const struct fault_note note = {
        .fault = FAULT_LOCAL_KEY,
        .op = SEG_OPS,
        .key = s->bind.lkey,
        .offset = s->bind.addr,
        .length = (uint32_t)s->bind.length,
    };

    return fail_request(qp, s, RDDP_WC_MW_BIND_ERR, &note);
}

/* Executes a request that sends nothing, or finds that it has to wait. Returns false if it failed. */
static bool emit_locally(struct qp *qp, struct send *s)
{
    const struct rddp_sge what = {.lkey = s->remote_key};
    const struct mw_bind bind = {.key = s->remote_key, .to = s->bind};
    enum fault fault;

    if (s->opcode == RDDP_WR_BIND_MW)
        fault = mw_bind(qp->attr.mrs, qp->attr.pd, qp->user, &bind, &qp->joined);
    else
        fault = mr_invalidate(qp->attr.mrs, qp->attr.pd, s->remote_key, false, &s->retired);
    qp->binding = fault == FAULT_NOT_NOW;
    if (qp->binding)
        return true;
    if (fault)
        return s->opcode == RDDP_WR_BIND_MW ? fail_bind(qp, s) : emit_fail_key(qp, s, SEG_OPS, &what);
    s->state = SEND_DONE;
    qp->sq.next++;
    return !sq_retire(qp);
}

bool emit_answer(struct qp *qp, struct emit *e, uint32_t max)
{
    if (!has_answer(qp))
        return false;
    if (qp->cut.source == EMIT_NOTHING) {
        qp->cut.offset = 0;
        qp->cut.source = EMIT_RESPONSE;
    }
    e->seg = (struct seg){.op = SEG_READ_RESP};
    e->spans = 0;
    e->volatile_data = e->may_change = false;
    return emit_message(qp, e, max, 0);
}

/* Selects the next message: a request or a response if only one is ready, otherwise by turns. */
static enum emit_source choose(struct qp *qp, bool request)
{
    bool answer = has_answer(qp);

    if (!answer && !request)
        return EMIT_NOTHING;
    if (answer && request)
        answer = qp->answers.turn;
    qp->answers.turn = !answer;
    qp->cut.offset = qp->cut.sge = qp->cut.sge_offset = 0;
    return answer ? EMIT_RESPONSE : EMIT_SEND;
}

bool emit_is_due(const struct qp *qp)
{
    return qp->cut.source != EMIT_NOTHING || has_answer(qp) || (!qp->binding && emit_has_request(qp));
}

/* A request that is being cut is still the next one, so none behind it is executed before. */
bool emit_all_local(struct qp *qp)
{
    qp->binding = false;
    while (!qp->binding && emit_has_request(qp) && is_local(sq_at(qp, qp->sq.next)->opcode))
        if (!emit_locally(qp, sq_at(qp, qp->sq.next)))
            return false;
    return true;
}

bool emit_choose(struct qp *qp)
{
    if (qp->cut.source != EMIT_NOTHING)
        return true;
    if ((qp->binding || qp_has_local(qp)) && !emit_all_local(qp))
        return false;
    qp->cut.source = choose(qp, !qp->binding && emit_has_request(qp));
    return qp->cut.source != EMIT_NOTHING;
}

bool emit_message(struct qp *qp, struct emit *e, uint32_t tagged_max, uint32_t untagged_max)
{
    switch (qp->cut.source) {
    case EMIT_SEND:
        return emit_request(qp, e, tagged_max, untagged_max);
    case EMIT_IMMEDIATE:
        return emit_immediate(qp, e);
    case EMIT_RESPONSE:
        return peer_read_at(qp, qp->answers.tail)->op == SEG_ATOMIC_REQ ? emit_atomic_response(qp, e)
                                                                        : emit_response(qp, e, tagged_max);
    default:
        return false;
    }
}
