/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc.c - the set-up of an association, by its indications and HELLO messages, and its end. */
#include "conn/assoc.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "conn/assoc_inner.h"

static bool negotiates(enum sctpddp_adaptation adaptation)
{
    return adaptation == SCTPDDP_RDMA_AND_NEGOTIATION || adaptation == SCTPDDP_RDMA_NEGOTIATION;
}

static int keep_private(struct assoc *a, const void *data, uint16_t length)
{
    if (length > NEG_PRIVATE_MAX || (length && !negotiates(a->attr.adaptation)))
        return -EINVAL;
    if (length)
        memcpy(a->own_data, data, length);
    a->own_length = length;
    return 0;
}

static void assoc_init(struct assoc *a, bool active, const struct assoc_attr *attr, struct window_slot *slots,
                       uint64_t now_us)
{
    memset(a, 0, sizeof(*a));
    a->attr = *attr;
    window_init(&a->window, slots, WINDOW_CHUNKS, 0);
    life_init(&a->life, active, &attr->limits, now_us);
}

int assoc_init_active(struct assoc *a, const struct assoc_attr *attr, struct window_slot *slots, struct qp *qp,
                      const void *private_data, uint16_t private_length, uint64_t now_us)
{
    assoc_init(a, true, attr, slots, now_us);
    a->life.qp = qp;
    return keep_private(a, private_data, private_length);
}

void assoc_init_passive(struct assoc *a, const struct assoc_attr *attr, struct window_slot *slots, uint64_t now_us)
{
    assoc_init(a, false, attr, slots, now_us);
}

void assoc_narrow(struct assoc *a, struct window_slot *early)
{
    assert(!a->up);
    window_init(&a->window, early, WINDOW_EARLY, 0);
}

/* A peer that negotiates has nothing to say between its HELLO and our answer. */
bool assoc_wants_slots(const struct assoc *a)
{
    return a->window.size < WINDOW_CHUNKS && a->life.state != CONN_WAIT_REQUEST &&
           !(a->life.state == CONN_WAIT_ANSWER && a->negotiates);
}

void assoc_widen(struct assoc *a, struct window_slot *slots)
{
    window_widen(&a->window, slots);
}

/* --- what can be sent ---------------------------------------------------------------------------------------- */

/* Can our adaptation express this segment (S1, S2)? Without negotiation a message is exactly one chunk. */
bool assoc_can_say(const struct assoc *a, const struct seg *seg)
{
    switch (seg->op) {
    case SEG_SEND:
        return sctpddp_may_send(a->own, SCTPDDP_NO_PLACEMENT) &&
               (a->negotiates || (!seg->offset && seg->flags & SEG_LAST && !(seg->flags & SEG_INVALIDATE)));
    case SEG_READ_REQ:
        return a->negotiates && sctpddp_may_send(a->peer, SCTPDDP_MODE_RDMA);
    case SEG_IMMEDIATE:
        return a->negotiates;
    case SEG_ATOMIC_REQ:
    case SEG_ATOMIC_RESP:
        return false; /* RFC 7306 extends another protocol */
    default:
        return a->own != SCTPDDP_PLAIN && a->own != SCTPDDP_RDMA_NEGOTIATION;
    }
}

/* Returns the requests that the two indications have no message for: bit N is enum rddp_wr_opcode N. */
static uint32_t assoc_unsupported(const struct assoc *a)
{
    static const struct {
        enum rddp_wr_opcode opcode;
        struct seg seg;
    } made[] = {
        {RDDP_WR_RDMA_WRITE, {.op = SEG_WRITE}},
        {RDDP_WR_RDMA_WRITE_WITH_IMM, {.op = SEG_IMMEDIATE}},
        {RDDP_WR_SEND, {.op = SEG_SEND, .flags = SEG_LAST}},
        {RDDP_WR_SEND_WITH_IMM, {.op = SEG_IMMEDIATE}},
        {RDDP_WR_RDMA_READ, {.op = SEG_READ_REQ}},
        {RDDP_WR_ATOMIC_CMP_AND_SWP, {.op = SEG_ATOMIC_REQ}},
        {RDDP_WR_ATOMIC_FETCH_AND_ADD, {.op = SEG_ATOMIC_REQ}},
        {RDDP_WR_SEND_WITH_INV, {.op = SEG_SEND, .flags = SEG_LAST | SEG_INVALIDATE}},
    };
    uint32_t unsupported = 0;

    for (uint32_t i = 0; i < sizeof(made) / sizeof(*made); i++)
        if (!assoc_can_say(a, &made[i].seg))
            unsupported |= 1u << made[i].opcode;
    return unsupported;
}

/* --- set-up -------------------------------------------------------------------------------------------------- */

/* Opens the association: the peer's next message is at `rx_pos`. */
static void assoc_ready(struct assoc *a, uint64_t rx_pos)
{
    life_ready(&a->life);
    a->life.qp->unsupported = assoc_unsupported(a);
    if (!a->negotiates) /* one message, one chunk */
        a->life.qp->send_max = a->payload_max - sctpddp_head(a->own);
    qp_connect(a->life.qp, a->ird, a->ord, rx_pos);
    life_established(&a->life);
}

/* If the peer indicated nothing, our own indication has no meaning: plain messages without header extension (3.1). */
void assoc_up(struct assoc *a, uint32_t indication, uint32_t tsn, uint32_t payload_max, uint64_t now_us)
{
    struct fault_note note = {.fault = FAULT_NEG_UNLIKE, .got = indication, .want = a->attr.adaptation};

    assert(!a->up && payload_max >= ASSOC_PAYLOAD_MIN);
    a->up = true;
    a->peer = sctpddp_adaptation_of(a->attr.adaptation ? indication : SCTPDDP_PLAIN);
    a->own = a->peer ? a->attr.adaptation : SCTPDDP_PLAIN;
    a->negotiates = negotiates(a->own) && negotiates(a->peer);
    a->payload_max = payload_max;
    window_init(&a->window, a->window.slot, a->window.size, a->peer && !sctpddp_has_aws(a->peer) ? tsn : 0);
    if (!life_in_startup(&a->life))
        return;
    if (a->attr.strict && a->peer != a->attr.adaptation)
        assoc_fail(a, &note, now_us);
    else if (a->negotiates)
        a->hello_due = a->life.active;
    else if (a->life.active)
        assoc_ready(a, 0);
    else
        life_requested(&a->life);
}

static uint16_t lesser(uint16_t a, uint16_t b)
{
    return a < b ? a : b;
}

/* Processes the reply to our HELLO: the peer may lower what we asked for, not raise it. */
static enum fault take_answer(struct assoc *a, const struct neg *neg, uint64_t pos, uint64_t now_us)
{
    if (neg->flags & NEG_REJECT) {
        life_rejected(&a->life, now_us);
        return FAULT_NONE;
    }
    if (neg->ord > a->attr.ird || neg->ird > a->attr.ord)
        return FAULT_NEG_FIELD;
    a->ird = neg->ord;
    a->ord = neg->ird;
    assoc_ready(a, pos + 1);
    return FAULT_NONE;
}

enum fault assoc_hello(struct assoc *a, const struct neg *neg, uint64_t pos, uint64_t now_us)
{
    enum conn_state awaited = neg->flags & NEG_REPLY ? CONN_WAIT_REPLY : CONN_WAIT_REQUEST;

    if (a->life.state != awaited || neg->ird > NEG_READS_MAX || neg->ord > NEG_READS_MAX)
        return a->life.state != awaited ? FAULT_NEG_TURN : FAULT_NEG_FIELD;
    a->peer_hello = *neg;
    if (neg->data_length)
        memcpy(a->peer_data, neg->data, neg->data_length);
    a->peer_hello.data = a->peer_data;
    if (neg->flags & NEG_REPLY)
        return take_answer(a, neg, pos, now_us);
    life_requested(&a->life);
    return FAULT_NONE;
}

int assoc_accept(struct assoc *a, struct qp *qp, uint16_t ird, uint16_t ord, const void *private_data,
                 uint16_t private_length)
{
    assert(a->life.state == CONN_WAIT_ANSWER);
    if (keep_private(a, private_data, private_length))
        return -EINVAL;
    a->life.qp = qp;
    if (a->negotiates) {
        a->ird = lesser(ird, a->peer_hello.ord);
        a->ord = lesser(ord, a->peer_hello.ird);
        a->hello_due = true;
    }
    assoc_ready(a, a->window.next);
    return 0;
}

int assoc_reject(struct assoc *a, const void *private_data, uint16_t private_length, uint64_t now_us)
{
    assert(a->life.state == CONN_WAIT_ANSWER);
    if (keep_private(a, private_data, private_length))
        return -EINVAL;
    a->hello_due = a->reject = a->negotiates;
    life_rejected(&a->life, now_us);
    return 0;
}

int assoc_bind(struct assoc *a, uint16_t stream, uint32_t key)
{
    if (stream >= ASSOC_STREAMS)
        return -EINVAL;
    a->stream_key[stream] = key;
    return 0;
}

/* --- sinks of our Reads -------------------------------------------------------------------------------------- */

/* SplitMix64. Each tag is sent to the peer and is valid for one Read of this association only. */
static uint32_t assoc_draw(struct assoc *a)
{
    uint64_t z = a->attr.seed += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32 ^ z);
}

uint32_t assoc_open_sink(struct assoc *a, const struct seg_read *read)
{
    struct assoc_read *r = &a->read[(a->life.qp->reads.head - 1) % QP_READS_MAX];
    uint32_t tag;

    do
        tag = assoc_draw(a);
    while (!tag || mr_find(a->life.qp->attr.mrs, tag) || assoc_find_sink(a, tag));
    *r = (struct assoc_read){.tag = tag, .length = read->length, .key = read->sink_key, .offset = read->sink_offset};
    return tag;
}

const struct assoc_read *assoc_find_sink(const struct assoc *a, uint32_t tag)
{
    const struct qp *qp = a->life.qp;

    for (uint32_t i = qp->reads.tail; i != qp->reads.head; i++)
        if (a->read[i % QP_READS_MAX].tag == tag)
            return &a->read[i % QP_READS_MAX];
    return NULL;
}

/* --- the end ------------------------------------------------------------------------------------------------- */

void assoc_fail(struct assoc *a, const struct fault_note *note, uint64_t now_us)
{
    life_fail(&a->life, note, true, now_us);
}

size_t assoc_reason(const struct assoc *a, char reason[NEG_REASON_MAX])
{
    return neg_reason(&a->life.note, reason);
}

void assoc_fin(struct assoc *a, uint64_t now_us)
{
    a->shut = true;
    life_fin(&a->life, now_us);
}

void assoc_peer_ended(struct assoc *a, uint64_t now_us)
{
    if (life_is_open(&a->life) && life_awaits_receive(&a->life))
        life_peer_gone(&a->life, now_us);
    else
        life_peer_ended(&a->life, false, now_us);
    a->hello_due = a->placed_due = false;
}

void assoc_peer_aborted(struct assoc *a, const char *reason, size_t n, uint64_t now_us)
{
    struct wire_blame blame;

    neg_explain(reason, n, &blame);
    if (!life_in_startup(&a->life))
        life_terminated(&a->life, &blame, now_us);
    life_lost(&a->life, FAULT_LOST);
}

void assoc_lost(struct assoc *a, enum fault fault)
{
    life_lost(&a->life, fault);
}

void assoc_close(struct assoc *a, uint64_t now_us)
{
    life_close(&a->life, now_us);
}

void assoc_detach(struct assoc *a, uint64_t now_us)
{
    life_detach(&a->life, now_us);
}

uint64_t assoc_deadline(const struct assoc *a)
{
    return life_deadline(&a->life);
}

void assoc_tick(struct assoc *a, uint64_t now_us)
{
    struct fault_note note = {.fault = FAULT_STALLED};

    if (life_tick(&a->life, now_us))
        assoc_fail(a, &note, now_us);
}
