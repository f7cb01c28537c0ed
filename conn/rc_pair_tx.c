/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_pair_tx.c - selects the next packet: a response or an acknowledgement to the peer, or part of a request of
 * ours. */
#include "conn/rc_pair_inner.h"

static void rc_pair_tx_begin(const struct rc_pair *p, struct bth *b)
{
    *b =
        (struct bth){.service = p->attr.service, .flags = BTH_MIGRATION, .pkey = p->attr.pkey, .qpn = p->attr.peer_qpn};
}

static bool rc_pair_tx_encode(struct rc_packet *out, struct bth *b, uint32_t length)
{
    b->length = out->length = length;
    out->head_length = bth_encode(b, out->head);
    return true;
}

/* --- to the peer's requests ----------------------------------------------------------------------------------------
 */

static void response_head(const struct rc_answer *a, struct bth *b)
{
    bool last = a->sent + 1 == a->packets;

    b->op = a->atomic ? BTH_ATOMIC_ACKNOWLEDGE : BTH_READ_RESPONSE;
    b->flags |= (a->sent ? 0u : BTH_FIRST) | (last ? BTH_LAST : 0u);
    b->psn = (uint32_t)(a->position + a->sent) & BTH_MASK24;
    b->msn = a->msn;
    b->syndrome = AETH_ACK | AETH_NO_CREDITS;
}

/* The response to a duplicate, from what it asks for. What it may no longer have is not answered. */
static bool emit_again(struct rc_pair *p, const struct rc_answer *a, struct rc_packet *out)
{
    uint32_t mtu = p->attr.requester.mtu, offset = a->sent * mtu, rest = a->length - offset;
    uint32_t n = a->atomic ? 0 : rest < mtu ? rest : mtu;
    struct bth b;

    if (!a->atomic && qp_gather_again(p->life.qp, a->r_key, a->address + offset, rest, n, &out->emit)) {
        rc_responder_drop_again(&p->responder);
        return false;
    }
    rc_pair_tx_begin(p, &b);
    response_head(a, &b);
    b.original = a->original;
    rc_responder_answered(&p->responder, a->original);
    return rc_pair_tx_encode(out, &b, n);
}

static bool rc_pair_tx_answer(struct rc_pair *p, const struct rc_answer *a, struct rc_packet *out, uint64_t now_us)
{
    struct bth b;

    if (!qp_take_answer(p->life.qp, &out->emit, p->attr.requester.mtu)) {
        rc_responder_refuse_answer(&p->responder, rc_pair_reason(p->life.qp->note.fault));
        rc_pair_refuse(p, &p->life.qp->note, NAK_REMOTE_ACCESS, now_us);
        return false;
    }
    rc_pair_tx_begin(p, &b);
    response_head(a, &b);
    b.original = out->emit.seg.atomic.data;
    rc_responder_answered(&p->responder, b.original);
    return rc_pair_tx_encode(out, &b, a->atomic ? 0 : out->emit.seg.length);
}

static bool emit_acknowledge(struct rc_pair *p, struct rc_packet *out, uint64_t now_us)
{
    struct bth b;

    if (p->attr.service != BTH_RC || !rc_responder_has_output(&p->responder, now_us))
        return false;
    rc_pair_tx_begin(p, &b);
    if (!rc_responder_acknowledge(&p->responder, &b, now_us))
        return false;
    b.op = BTH_ACKNOWLEDGE;
    b.flags |= BTH_FIRST | BTH_LAST;
    return rc_pair_tx_encode(out, &b, 0);
}

static bool answer_or_acknowledge(struct rc_pair *p, struct rc_packet *out, uint64_t now_us)
{
    const struct rc_answer *a;
    bool again;

    while (life_is_open(&p->life) && (a = rc_responder_answer(&p->responder, &again)))
        if (again ? emit_again(p, a, out) : rc_pair_tx_answer(p, a, out, now_us))
            return true;
    return emit_acknowledge(p, out, now_us);
}

/* --- our requests ---------------------------------------------------------------------------------------------------
 */

static void message_head(const struct seg *seg, const struct rc_outgoing *o, struct bth *b)
{
    b->op = seg->op == SEG_WRITE ? BTH_WRITE : BTH_SEND;
    b->flags |= (o->first ? BTH_FIRST : 0u) | (o->last ? BTH_LAST : 0u) | (o->ask ? BTH_ACK_REQUEST : 0u);
    if (o->first) {
        b->address = seg->offset;
        b->r_key = (uint32_t)seg->key;
        b->dma_length = seg->length;
    }
    if (!o->last)
        return;
    b->flags |= seg->flags & SEG_SOLICITED ? BTH_SOLICITED : 0u;
    b->flags |= seg->flags & SEG_WITH_IMM ? BTH_IMMEDIATE : 0u;
    b->flags |= seg->flags & SEG_INVALIDATE ? BTH_INVALIDATE : 0u;
    b->immediate = (uint32_t)(seg->flags & SEG_INVALIDATE ? seg->invalidate : seg->immediate);
}

static void rc_pair_tx_read_head(const struct seg *seg, const struct rc_outgoing *o, struct bth *b)
{
    b->op = BTH_READ_REQUEST;
    b->address = seg->offset + o->offset;
    b->r_key = (uint32_t)seg->key;
    b->dma_length = o->length;
    b->flags |= BTH_FIRST | BTH_LAST;
}

static void rc_pair_tx_atomic_head(const struct seg_atomic *a, struct bth *b)
{
    b->op = a->op == SEG_FETCH_ADD ? BTH_FETCH_ADD : BTH_CMP_SWAP;
    b->address = a->offset;
    b->r_key = (uint32_t)a->key;
    b->swap_or_add = a->data;
    b->compare = a->compare;
    b->flags |= BTH_FIRST | BTH_LAST;
}

static bool rc_pair_tx_request(struct rc_pair *p, const struct rc_outgoing *o, const struct seg *seg,
                               struct rc_packet *out, uint64_t now_us)
{
    bool message = seg->op == SEG_SEND || seg->op == SEG_WRITE;
    struct bth b;

    rc_pair_tx_begin(p, &b);
    b.psn = (uint32_t)o->position & BTH_MASK24;
    if (message)
        message_head(seg, o, &b);
    else if (seg->op == SEG_READ_REQ)
        rc_pair_tx_read_head(seg, o, &b);
    else
        rc_pair_tx_atomic_head(&seg->atomic, &b);
    (void)rc_pair_release(p); /* an acknowledgement that was withheld is the next packet */
    out->emit.spans = 0;
    if (message && !qp_gather_request(p->life.qp, o->name, o->offset, o->length, &out->emit)) {
        rc_pair_check(p, now_us);
        return false;
    }
    return rc_pair_tx_encode(out, &b, message ? o->length : 0);
}

static enum rc_kind kind_of(enum seg_op op)
{
    if (op == SEG_READ_REQ)
        return RC_READ;
    return op == SEG_ATOMIC_REQ ? RC_ATOMIC : RC_MESSAGE;
}

/* Who need not wait for it, nor for the memory of its payload, can wait for its acknowledgement, but at the end. */
static enum rc_ask ask_of(const struct rc_pair *p, uint32_t at)
{
    const struct qp *qp = p->life.qp;

    if (qp_is_signalled(qp, at))
        return RC_ASK_ALWAYS;
    return qp_has_copied(qp, at) && p->life.state == CONN_READY ? RC_ASK_LATE : RC_ASK_LAST;
}

/* Moves one request from the send queue to the requester, if its first packet could leave at once: it is the next one
 * then, and *seg describes it. Returns whether it did. Those that send nothing are executed on the way, as
 * rc_pair_check() does. */
static bool take_next(struct rc_pair *p, struct seg *seg, uint64_t now_us)
{
    struct qp *qp = p->life.qp;
    uint32_t at, next = qp->sq.next;

    if (p->is_draining || !p->life.established || !rc_requester_wants(&p->requester, now_us))
        return false;
    if (!qp_take_request(qp, &at, seg)) {
        if (qp->sq.next != next)
            rc_requester_ask(&p->requester);
        return false;
    }
    if (at != next)
        p->requester.asks = true;
    qp_request_ends(qp, at, rc_requester_add(&p->requester, kind_of(seg->op), seg->length, at, ask_of(p, at)));
    return true;
}

/* Then all requests are flushed: what the requester knows of them may be said no more. */
static bool requests_failed(const struct rc_pair *p)
{
    return p->life.qp->state != QP_READY || p->life.qp->sends_failed;
}

static bool next_packet(struct rc_pair *p, struct rc_outgoing *o, uint64_t now_us)
{
    return life_is_open(&p->life) && !requests_failed(p) && rc_requester_next(&p->requester, o, now_us);
}

/* What the check executes, which sends nothing, may ask about what has left. */
static bool emit_request_packet(struct rc_pair *p, struct rc_packet *out, uint64_t now_us)
{
    struct rc_outgoing o;
    struct seg seg;
    bool is_new = take_next(p, &seg, now_us);

    if (!next_packet(p, &o, now_us)) {
        is_new = false;
        rc_pair_check(p, now_us);
        if (!next_packet(p, &o, now_us))
            return false;
    }
    qp_requests_unasked(p->life.qp, rc_requester_unasked(&p->requester));
    if (!is_new)
        qp_describe_request(p->life.qp, o.name, &seg);
    return rc_pair_tx_request(p, &o, &seg, out, now_us);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static bool has_request_output(const struct rc_pair *p, uint64_t now_us)
{
    const struct rc_requester *q = &p->requester;

    if (!life_is_open(&p->life) || !p->life.established)
        return false;
    if (q->next != q->end)
        return rc_requester_may_send(q, now_us);
    return qp_has_posted(p->life.qp) && !p->is_draining && rc_requester_wants(q, now_us) && qp_has_request(p->life.qp);
}

/* A packet of an unreliable connection was built, and has left by now: rc_pair_emit() completes what it is of. */
static bool has_left(const struct rc_pair *p)
{
    return p->attr.service == BTH_UC && p->requester.una != p->requester.next;
}

bool rc_pair_has_output(const struct rc_pair *p, uint64_t now_us)
{
    return p->life.state == CONN_TERMINATING ||
           (life_is_open(&p->life) && rc_responder_has_output(&p->responder, now_us)) ||
           has_request_output(p, now_us) || has_left(p);
}

bool rc_pair_withhold(struct rc_pair *p, uint64_t now_us)
{
    return p->attr.service == BTH_RC && life_is_open(&p->life) && rc_responder_withhold(&p->responder, now_us);
}

bool rc_pair_release(struct rc_pair *p)
{
    return rc_responder_release(&p->responder);
}

/* A packet that is shorter than an acknowledgement is not followed by it in a batch, but follows it. */
static void release_before_empty(struct rc_pair *p, uint64_t now_us)
{
    struct seg seg;

    (void)take_next(p, &seg, now_us);
    if (rc_requester_has_output(&p->requester, now_us) && rc_requester_next_is_empty(&p->requester))
        (void)rc_pair_release(p);
}

/* Responses and requests take turns. An acknowledgement that is due goes before both: programs with a queue of one
 * request rely on it that what they have sent is complete when they see the answer to it, as adapters have it. One that
 * was withheld follows a request in the same batch, and the peer takes it first. */
bool rc_pair_emit(struct rc_pair *p, struct rc_packet *out, uint64_t now_us)
{
    out->emit.spans = 0;
    out->emit.may_change = out->emit.volatile_data = false;
    if (p->attr.service == BTH_UC) { /* the packet of the call before has left */
        rc_requester_left(&p->requester, now_us);
        rc_pair_settle(p, now_us);
    }
    if (p->life.state == CONN_TERMINATING) {
        life_fin(&p->life, now_us);
        return emit_acknowledge(p, out, now_us);
    }
    if (!life_is_open(&p->life))
        return false;
    if (p->responder.held_us)
        release_before_empty(p, now_us);
    if (emit_acknowledge(p, out, now_us))
        return true;
    p->answer_turn = !p->answer_turn;
    if (p->answer_turn && rc_responder_has_output(&p->responder, now_us))
        return answer_or_acknowledge(p, out, now_us) || (life_is_open(&p->life) && emit_request_packet(p, out, now_us));
    return emit_request_packet(p, out, now_us) || (life_is_open(&p->life) && answer_or_acknowledge(p, out, now_us));
}

/* --- trains ------------------------------------------------------------------------------------------------------ */

enum { TURN = 16 /* packets of a train, if requests and responses take turns */ };

static uint32_t train_of_request(struct rc_pair *p, struct rc_packet *out, uint32_t most, uint64_t now_us)
{
    struct rc_outgoing o;
    struct seg seg;
    struct bth b;
    uint32_t n = requests_failed(p) ? 0 : rc_requester_train(&p->requester, most, &o, now_us);

    if (!n || !qp_gather_train(p->life.qp, o.name, o.offset, o.length, &out->emit))
        return 0;
    rc_requester_took_train(&p->requester, n, now_us);
    qp_describe_request(p->life.qp, o.name, &seg);
    rc_pair_tx_begin(p, &b);
    b.psn = (uint32_t)o.position & BTH_MASK24;
    message_head(&seg, &o, &b);
    rc_pair_tx_encode(out, &b, p->attr.requester.mtu);
    return n;
}

static uint32_t train_of_response(struct rc_pair *p, const struct rc_answer *a, bool again, struct rc_packet *out,
                                  uint32_t most)
{
    uint32_t mtu = p->attr.requester.mtu, offset = a->sent * mtu, n = rc_responder_train(a, most);
    struct bth b;

    if (!n)
        return 0;
    if (!again)
        n = qp_take_answer_train(p->life.qp, &out->emit, mtu, n);
    else if (qp_gather_again(p->life.qp, a->r_key, a->address + offset, a->length - offset, n * mtu, &out->emit))
        n = 0;
    if (!n)
        return 0;
    rc_pair_tx_begin(p, &b);
    response_head(a, &b);
    rc_responder_answered_train(&p->responder, n);
    rc_pair_tx_encode(out, &b, mtu);
    return n;
}

/* An acknowledgement that is due leaves before, alone. */
static uint32_t emit_train(struct rc_pair *p, struct rc_packet *out, uint32_t most, uint64_t now_us)
{
    bool has_request, again;
    const struct rc_answer *a = rc_responder_answer(&p->responder, &again);

    if (!a)
        return rc_responder_has_output(&p->responder, now_us) ? 0 : train_of_request(p, out, most, now_us);
    has_request = has_request_output(p, now_us);
    if (has_request && most > TURN)
        most = TURN;
    if (has_request && !p->answer_turn)
        return train_of_request(p, out, most, now_us);
    return train_of_response(p, a, again, out, most);
}

/* What fails here fails again, and is reported, when the next packet is built alone. */
uint32_t rc_pair_emit_train(struct rc_pair *p, struct rc_packet *out, uint32_t most, uint64_t now_us)
{
    uint8_t *buffer = out->emit.buffer;
    uint32_t n;

    if (!life_is_open(&p->life))
        return 0;
    out->emit.buffer = NULL; /* it has room for one packet */
    n = emit_train(p, out, most, now_us);
    out->emit.buffer = buffer;
    return n;
}
