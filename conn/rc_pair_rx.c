/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_pair_rx.c - processes a packet: a request is executed by the engine if it is its turn, a response is placed, an
 * acknowledgement completes what it is about. */
#include "conn/rc_pair_inner.h"

/* Which right of the queue pair an operation needs. */
static const unsigned rights[] = {
    [BTH_SEND] = 0,
    [BTH_WRITE] = RDDP_ACCESS_REMOTE_WRITE,
    [BTH_READ_REQUEST] = RDDP_ACCESS_REMOTE_READ,
    [BTH_CMP_SWAP] = RDDP_ACCESS_REMOTE_ATOMIC,
    [BTH_FETCH_ADD] = RDDP_ACCESS_REMOTE_ATOMIC,
};

static unsigned rc_pair_rx_flags(const struct bth *b)
{
    unsigned flags = b->flags & BTH_LAST ? SEG_LAST : 0;

    flags |= b->flags & BTH_FIRST ? SEG_FIRST : 0;
    flags |= b->flags & BTH_SOLICITED ? SEG_SOLICITED : 0;
    flags |= b->flags & BTH_IMMEDIATE ? SEG_WITH_IMM : 0;
    return flags | (b->flags & BTH_INVALIDATE ? SEG_INVALIDATE : 0);
}

/* The position of the next segment: one each. */
static void rc_pair_rx_next(const struct rc_pair *p, struct seg *seg)
{
    seg->begin = p->life.qp->rx_pos;
    seg->end = seg->begin + 1;
}

static void write_of(struct rc_pair *p, const struct bth *b, struct seg *seg)
{
    if (b->flags & BTH_FIRST) {
        p->write_address = b->address;
        p->write_key = b->r_key;
    }
    seg->op = SEG_WRITE;
    seg->key = p->write_key;
    seg->offset = p->write_address + p->responder.got;
    seg->total = p->responder.total;
    seg->immediate = b->immediate;
}

static void send_of(const struct rc_pair *p, const struct bth *b, struct seg *seg)
{
    seg->op = SEG_SEND;
    seg->offset = p->responder.got;
    seg->immediate = seg->invalidate = b->immediate;
}

static void atomic_of_packet(const struct bth *b, struct seg *seg)
{
    seg->op = SEG_ATOMIC_REQ;
    seg->atomic = (struct seg_atomic){
        .op = b->op == BTH_FETCH_ADD ? SEG_FETCH_ADD : SEG_CMP_SWAP,
        .key = b->r_key,
        .offset = b->address,
        .data = b->swap_or_add,
        .mask = b->op == BTH_FETCH_ADD ? 0 : UINT64_MAX,
        .compare = b->compare,
        .compare_mask = UINT64_MAX,
    };
}

static void seg_of(struct rc_pair *p, const struct bth *b, struct seg *seg)
{
    *seg = (struct seg){.flags = rc_pair_rx_flags(b), .data = b->data, .length = b->length};
    rc_pair_rx_next(p, seg);
    switch (b->op) {
    case BTH_SEND:
        send_of(p, b, seg);
        break;
    case BTH_WRITE:
        write_of(p, b, seg);
        break;
    case BTH_READ_REQUEST:
        seg->op = SEG_READ_REQ;
        seg->read = (struct seg_read){.source_key = b->r_key, .source_offset = b->address, .length = b->dma_length};
        break;
    default:
        atomic_of_packet(b, seg);
        break;
    }
}

static void rc_pair_rx_broken(struct rc_pair *p, const struct bth *b, enum fault fault, uint64_t now_us)
{
    struct fault_note note = {.fault = fault, .op = b->op == BTH_SEND ? SEG_SEND : SEG_WRITE};

    rc_pair_refuse(p, &note, NAK_INVALID_REQUEST, now_us);
}

static void execute(struct rc_pair *p, const struct bth *b, uint64_t now_us)
{
    struct qp *qp = p->life.qp;
    enum fault fault;
    struct seg seg;

    if (rights[b->op] & (~p->attr.access | qp->attr.refused)) {
        rc_pair_rx_broken(p, b, FAULT_QP_ACCESS, now_us);
        return;
    }
    if (life_is_invalidating(&p->life)) {
        rc_responder_postpone(&p->responder);
        return;
    }
    seg_of(p, b, &seg);
    fault = qp_place(qp, &seg);
    if (fault == FAULT_NO_RECEIVE && p->attr.service == BTH_RC)
        rc_responder_not_ready(&p->responder);
    else if (fault == FAULT_NO_RECEIVE)
        rc_responder_skip(&p->responder);
    else if (fault)
        rc_pair_refuse(p, &qp->note, rc_pair_reason(fault), now_us);
    else
        rc_responder_executed(&p->responder, b, now_us);
}

static void rc_pair_rx_take(struct rc_pair *p, const struct bth *b, uint64_t now_us)
{
    enum rc_verdict verdict = rc_responder_take(&p->responder, b, now_us);

    while (verdict == RC_DISCARD) {
        qp_discard_message(p->life.qp);
        verdict = rc_responder_take(&p->responder, b, now_us);
    }
    if (verdict == RC_EXECUTE)
        execute(p, b, now_us);
    else if (p->responder.refused)
        rc_pair_rx_broken(p, b, FAULT_PACKET, now_us);
}

/* With it those that have waited for their turn, until one of them cannot be executed. A key that one of them
 * invalidates is out of use before the next, as it is between packets that arrive. */
static void rc_pair_rx_request(struct rc_pair *p, const struct bth *b, uint64_t now_us)
{
    do {
        rc_pair_rx_take(p, b, now_us);
        if (life_is_invalidating(&p->life))
            rc_pair_check(p, now_us);
    } while ((b = rc_responder_kept(&p->responder, now_us)));
}

/* A response that the requester expects acknowledges what was before it, which completes first. */
static void rc_pair_rx_response(struct rc_pair *p, const struct bth *b, uint64_t now_us)
{
    struct qp *qp = p->life.qp;
    struct seg seg = {.op = SEG_READ_RESP, .data = b->data, .length = b->length};
    enum fault fault;
    uint32_t offset;

    if (!rc_requester_expects(&p->requester, b, &offset, now_us))
        return;
    qp_sent(qp, p->requester.una);
    seg.flags = b->flags & BTH_LAST ? SEG_LAST : 0;
    seg.offset = offset;
    rc_pair_rx_next(p, &seg);
    if (b->op == BTH_ATOMIC_ACKNOWLEDGE) {
        seg.op = SEG_ATOMIC_RESP;
        seg.atomic.data = b->original;
    }
    fault = qp_place(qp, &seg);
    if (fault == FAULT_NOT_NOW)
        return; /* withheld: it is asked for again */
    if (fault)
        life_fail(&p->life, &qp->note, false, now_us);
    else
        rc_requester_took(&p->requester, now_us);
}

void rc_pair_rx(struct rc_pair *p, const struct bth *b, uint64_t now_us)
{
    if (!life_is_open(&p->life) || b->service != p->attr.service)
        return;
    rc_pair_communicates(p);
    switch (b->op) {
    case BTH_ACKNOWLEDGE:
        rc_requester_acknowledged(&p->requester, b->psn, b->syndrome, now_us);
        break;
    case BTH_READ_RESPONSE:
    case BTH_ATOMIC_ACKNOWLEDGE:
        rc_pair_rx_response(p, b, now_us);
        break;
    default:
        rc_pair_rx_request(p, b, now_us);
        break;
    }
    rc_pair_settle(p, now_us);
}
