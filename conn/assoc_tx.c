/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_tx.c - selects the next chunk of an association: HELLO, PLACED, or a segment of the queue pair, each cut to one
 * message. */
#include "conn/assoc_inner.h"

#include <string.h>

static bool assoc_tx_may_send(const struct assoc *a)
{
    return a->up && life_is_open(&a->life) && !a->shut;
}

unsigned assoc_wants(const struct assoc *a)
{
    const struct life *l = &a->life;

    if (l->state == CONN_OVER)
        return 0;
    if (l->state == CONN_TERMINATING)
        return ASSOC_ABORT;
    if (!a->up || a->shut)
        return 0;
    if (a->hello_due || (assoc_tx_may_send(a) && (a->placed_due || (l->qp && qp_has_output(l->qp)))))
        return ASSOC_TX;
    return l->state == CONN_ENDING || (l->state == CONN_DRAINING && life_is_drained(l)) ? ASSOC_FIN : 0;
}

/* Writes the header extension and the message's header. AWS counts every message given to SCTP (2.2). */
static void assoc_tx_put_head(struct assoc *a, struct assoc_chunk *out, struct sctpddp_chunk *chunk,
                              const struct neg *neg)
{
    size_t n;

    chunk->aws = (uint32_t)a->tx_pos++;
    n = sctpddp_encode(a->own, chunk, out->head);
    if (neg)
        n += neg_encode(neg, out->head + n);
    out->head_length = (uint32_t)n;
    out->end = a->tx_pos;
}

static void emit_hello(struct assoc *a, struct assoc_chunk *out)
{
    struct sctpddp_chunk chunk = {.mode = SCTPDDP_NO_PLACEMENT};
    struct neg neg = {.type = NEG_HELLO, .ird = a->attr.ird, .ord = a->attr.ord};

    neg.flags = a->attr.batches ? NEG_BATCHES : 0;
    if (!a->life.active) {
        neg.flags |= (uint16_t)(NEG_REPLY | (a->reject ? NEG_REJECT : 0));
        neg.ird = a->ird;
        neg.ord = a->ord;
    }
    assoc_tx_put_head(a, out, &chunk, &neg);
    if (a->own_length)
        out->emit.span[out->emit.spans++] = (struct span){a->own_data, a->own_length};
    a->hello_due = false;
}

static void emit_placed(struct assoc *a, struct assoc_chunk *out)
{
    struct sctpddp_chunk chunk = {.mode = SCTPDDP_NO_PLACEMENT};
    struct neg neg = {.type = NEG_PLACED, .aws = a->placed_aws};

    assoc_tx_put_head(a, out, &chunk, &neg);
    a->placed_due = false;
}

/* --- segments ------------------------------------------------------------------------------------------------ */

static void send_head(struct assoc *a, struct assoc_chunk *out)
{
    const struct seg *seg = &out->emit.seg;
    struct sctpddp_chunk chunk = {.mode = SCTPDDP_NO_PLACEMENT};
    struct neg neg = {.type = NEG_SEND, .id = seg->msg, .offset = (uint32_t)seg->offset};

    if (seg->flags & SEG_LAST)
        neg.flags |= NEG_LAST;
    if (seg->flags & SEG_SOLICITED)
        neg.flags |= NEG_SOLICITED;
    if (seg->flags & SEG_INVALIDATE) {
        neg.flags |= NEG_INVALIDATE;
        neg.value = (uint32_t)seg->invalidate;
    }
    assoc_tx_put_head(a, out, &chunk, a->negotiates ? &neg : NULL);
}

static void assoc_tx_read_head(struct assoc *a, struct assoc_chunk *out)
{
    const struct seg *seg = &out->emit.seg;
    struct sctpddp_chunk chunk = {.mode = SCTPDDP_NO_PLACEMENT};
    struct neg neg = {
        .type = NEG_READ_REQUEST,
        .id = seg->msg,
        .source_tag = (uint32_t)seg->read.source_key,
        .source_offset = seg->read.source_offset,
        .length = seg->read.length,
        .sink_tag = assoc_open_sink(a, &seg->read),
    };

    assoc_tx_put_head(a, out, &chunk, &neg);
}

/* Immediate data use the number of a Send and carry no other data. */
static void immediate_head(struct assoc *a, struct assoc_chunk *out)
{
    const struct seg *seg = &out->emit.seg;
    struct sctpddp_chunk chunk = {.mode = SCTPDDP_NO_PLACEMENT};
    struct neg neg = {
        .type = NEG_SEND,
        .flags = NEG_LAST | NEG_IMMEDIATE,
        .id = seg->msg,
        .value = (uint32_t)(seg->immediate >> 32),
    };

    if ((uint32_t)seg->immediate != SEG_IMMEDIATE_OF_SEND)
        neg.flags |= NEG_WRITTEN;
    if (seg->flags & SEG_SOLICITED)
        neg.flags |= NEG_SOLICITED;
    assoc_tx_put_head(a, out, &chunk, &neg);
}

/* A buffer of a DDP peer is selected by our stream; requests pass the stream in place of the key. */
static void placed_head(struct assoc *a, struct assoc_chunk *out)
{
    const struct seg *seg = &out->emit.seg;
    bool answers = seg->op == SEG_READ_RESP, ends = seg->flags & SEG_LAST;
    struct sctpddp_chunk chunk = {
        .mode = a->own == SCTPDDP_DDP            ? SCTPDDP_MODE_DDP
                : a->own == SCTPDDP_DDP_WITH_TAG ? SCTPDDP_MODE_TAG
                                                 : SCTPDDP_MODE_RDMA,
        .tag = (uint32_t)seg->key,
        .offset = seg->offset,
    };

    if (ends)
        chunk.flags = answers ? SCTPDDP_NOTIFY | SCTPDDP_RELEASE : a->negotiates ? 0 : a->attr.write_flags;
    if (a->own == SCTPDDP_DDP) {
        out->stream = (uint16_t)seg->key;
        chunk.tag = 0;
    }
    assoc_tx_put_head(a, out, &chunk, NULL);
}

static bool emit_segment(struct assoc *a, struct assoc_chunk *out, uint64_t now_us)
{
    uint32_t tagged_max = a->payload_max - sctpddp_head(a->own);
    uint32_t untagged_max = tagged_max - (a->negotiates ? NEG_SEND_HEAD : 0);
    const struct seg *seg = &out->emit.seg;
    struct fault_note unsupported = {.fault = FAULT_NEG_UNSUPPORTED};

    if (!a->life.qp || !qp_emit(a->life.qp, &out->emit, tagged_max, untagged_max)) {
        assoc_check(a, now_us);
        return false;
    }
    if (!assoc_can_say(a, seg)) {
        unsupported.op = seg->op;
        unsupported.msg = seg->msg;
        qp_blame(a->life.qp, seg->op, RDDP_WC_LOC_QP_OP_ERR);
        assoc_fail(a, &unsupported, now_us);
        return false;
    }
    if (seg->op == SEG_SEND)
        send_head(a, out);
    else if (seg->op == SEG_READ_REQ)
        assoc_tx_read_head(a, out);
    else if (seg->op == SEG_IMMEDIATE)
        immediate_head(a, out);
    else
        placed_head(a, out);
    qp_queued(a->life.qp, out->end);
    return true;
}

bool assoc_emit(struct assoc *a, struct assoc_chunk *out, uint64_t now_us)
{
    out->stream = a->attr.stream;
    out->ppid = a->attr.ppid;
    out->emit.spans = 0;
    out->emit.may_change = out->emit.volatile_data = false;
    if (!(assoc_wants(a) & ASSOC_TX))
        return false;
    if (a->hello_due) {
        emit_hello(a, out);
        return true;
    }
    if (a->placed_due) {
        emit_placed(a, out);
        return true;
    }
    return emit_segment(a, out, now_us);
}

void assoc_sent(struct assoc *a, uint64_t end, uint64_t now_us)
{
    if (a->life.qp && life_is_open(&a->life))
        qp_sent(a->life.qp, end);
    life_sent(&a->life, now_us);
}
