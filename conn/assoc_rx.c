/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_rx.c - processes a message of an association: rules R1 to R6, its position, its placement, and the signals
 * whose turn has come. */
#include "conn/assoc_inner.h"

/* A message being processed. */
struct assoc_arrival {
    const struct assoc_message *m;
    struct sctpddp_chunk chunk;
    struct neg neg;
    uint64_t pos;
    uint32_t positions; /* from `pos` on: one for each TSN, where TSNs count */
    struct seg seg;
    bool in_turn;
};

static enum fault note(struct assoc *a, const struct assoc_arrival *x, enum fault fault, uint64_t got, uint64_t want)
{
    a->life.note = (struct fault_note){
        .fault = fault,
        .op = x->chunk.mode == SCTPDDP_NO_PLACEMENT ? SEG_SEND : SEG_WRITE,
        .key = x->chunk.tag,
        .offset = x->chunk.offset,
        .length = x->chunk.length,
        .msg = x->neg.id,
        .got = got,
        .want = want,
    };
    return fault;
}

/* Copies the note of the queue pair, which says why. */
static enum fault note_qp(struct assoc *a, enum fault fault)
{
    if (fault && fault != FAULT_NOT_NOW)
        a->life.note = a->life.qp->note;
    return fault;
}

/* --- position ------------------------------------------------------------------------------------------------ */

/* Plain messages are ordered by their arrival alone. */
static enum fault assoc_rx_locate(struct assoc *a, struct assoc_arrival *x, bool again)
{
    struct window *window = &a->window;
    uint32_t next = (uint32_t)(window->origin + window->next), sequence = x->m->tsn;
    enum fault fault = FAULT_NONE;

    if (a->peer == SCTPDDP_PLAIN)
        sequence = next + window->ahead;
    else if (sctpddp_has_aws(a->peer))
        sequence = x->chunk.aws;
    x->positions = a->peer != SCTPDDP_PLAIN && !sctpddp_has_aws(a->peer) && x->m->tsns ? x->m->tsns : 1;
    x->pos = window->next;
    if (!again)
        fault = window_find(window, sequence, &x->pos);
    if (!fault && x->positions > window->size - (x->pos - window->next))
        fault = FAULT_CHUNK_AHEAD;
    x->in_turn = x->pos == window->next;
    return fault ? note(a, x, fault, sequence, next) : FAULT_NONE;
}

static enum fault assoc_rx_read_head(struct assoc *a, struct assoc_arrival *x)
{
    enum fault fault = sctpddp_decode(a->peer, &x->chunk, x->m->data, x->m->octets);

    if (fault)
        return note(a, x, fault, x->m->octets, sctpddp_head(a->peer));
    fault = sctpddp_judge(a->peer, &x->chunk, x->m->whole);
    if (fault)
        return note(a, x, fault, fault == FAULT_CHUNK_MODE ? x->chunk.mode : 0,
                    fault == FAULT_CHUNK_MODE ? SCTPDDP_MODES - 1 : 0);
    return FAULT_NONE;
}

/* --- data that is placed ------------------------------------------------------------------------------------- */

/* Part of the answer to a Read of ours: replaces the tag by the sink that we recorded for it. */
static enum fault find_answer(struct assoc *a, struct assoc_arrival *x, const struct assoc_read *read)
{
    const struct sctpddp_chunk *chunk = &x->chunk;
    bool ends;

    if (chunk->offset > read->length || chunk->length > read->length - chunk->offset)
        return note(a, x, FAULT_UNASKED, chunk->offset, read->length);
    ends = chunk->length == read->length - chunk->offset;
    /* SCTPDDP_NOTIFY must mark the last chunk, and only it: the sink is then finished. */
    if (ends != !!(chunk->flags & SCTPDDP_NOTIFY))
        return note(a, x, FAULT_UNASKED, chunk->offset, read->length);
    x->seg.op = SEG_READ_RESP;
    x->seg.key = read->key;
    x->seg.offset = read->offset + chunk->offset;
    x->seg.flags = ends ? SEG_LAST : 0;
    x->chunk.flags &= SCTPDDP_ACK; /* the other flags belong to the Read and are no signals for the application */
    return FAULT_NONE;
}

static enum fault assoc_rx_place(struct assoc *a, struct assoc_arrival *x)
{
    struct sctpddp_chunk *chunk = &x->chunk;
    const struct assoc_read *read = NULL;
    uint32_t tag = chunk->tag;
    bool tagged = chunk->mode != SCTPDDP_MODE_DDP;
    enum fault fault;

    if (tagged) {
        fault = window_check_release(&a->window, x->pos, tag, chunk->flags & SCTPDDP_RELEASE);
        if (fault)
            return note(a, x, fault, 0, 0);
    }
    x->seg.op = SEG_WRITE;
    x->seg.key = tag;
    x->seg.offset = chunk->offset;
    if (chunk->mode == SCTPDDP_MODE_DDP) {
        /* The stream selects the buffer; the tag belongs to the application (2.1). */
        x->seg.key = x->m->stream < ASSOC_STREAMS ? a->stream_key[x->m->stream] : 0;
        if (!x->seg.key && chunk->length)
            return note(a, x, FAULT_CHUNK_STREAM, x->m->stream, 0);
    } else if (chunk->mode == SCTPDDP_MODE_RDMA && (read = assoc_find_sink(a, tag))) {
        fault = find_answer(a, x, read);
        if (fault)
            return fault;
    }
    fault = qp_place(a->life.qp, &x->seg);
    if (!fault)
        window_place(&a->window, x->pos, tag, tagged, chunk->flags & SCTPDDP_SIGNALS);
    return note_qp(a, fault);
}

/* --- messages ------------------------------------------------------------------------------------------------ */

static enum fault assoc_rx_take_send(struct assoc *a, struct assoc_arrival *x)
{
    const struct neg *neg = &x->neg;

    x->seg.op = neg->flags & NEG_IMMEDIATE ? SEG_IMMEDIATE : SEG_SEND;
    x->seg.msg = neg->id;
    x->seg.offset = neg->offset;
    x->seg.flags = (neg->flags & NEG_LAST ? SEG_LAST : 0u) | (neg->flags & NEG_SOLICITED ? SEG_SOLICITED : 0u);
    if (neg->flags & NEG_INVALIDATE) {
        x->seg.flags |= SEG_INVALIDATE;
        x->seg.invalidate = neg->value;
    }
    if (neg->flags & NEG_IMMEDIATE)
        x->seg.immediate =
            (uint64_t)neg->value << 32 | (neg->flags & NEG_WRITTEN ? SEG_IMMEDIATE_OF_WRITE : SEG_IMMEDIATE_OF_SEND);
    x->seg.data = neg->data;
    x->seg.length = neg->data_length;
    return note_qp(a, qp_place(a->life.qp, &x->seg));
}

static enum fault assoc_rx_take_read_request(struct assoc *a, struct assoc_arrival *x)
{
    const struct neg *neg = &x->neg;

    if (a->own != SCTPDDP_RDMA_AND_NEGOTIATION)
        return note(a, x, FAULT_NEG_TYPE, neg->type, NEG_SEND); /* our adaptation cannot place data at the peer */
    x->seg.op = SEG_READ_REQ;
    x->seg.msg = neg->id;
    x->seg.flags = SEG_LAST;
    x->seg.length = 0;
    x->seg.read = (struct seg_read){
        .sink_key = neg->sink_tag,
        .source_key = neg->source_tag,
        .source_offset = neg->source_offset,
        .length = neg->length,
    };
    return note_qp(a, qp_place(a->life.qp, &x->seg));
}

static enum fault act(struct assoc *a, struct assoc_arrival *x, uint64_t now_us)
{
    bool is_hello = x->neg.type == NEG_HELLO;
    enum fault fault;

    if (is_hello) {
        fault = assoc_hello(a, &x->neg, x->pos, now_us);
        return fault ? note(a, x, fault, 0, 0) : FAULT_NONE;
    }
    if (!life_is_open(&a->life))
        return note(a, x, FAULT_NEG_TURN, 0, 0);
    switch (x->neg.type) {
    case NEG_SEND:
        return assoc_rx_take_send(a, x);
    case NEG_READ_REQUEST:
        return assoc_rx_take_read_request(a, x);
    default:
        return FAULT_NONE; /* PLACED: we never asked for it */
    }
}

/* Acts on a negotiation message in its turn. The data of a Send may be placed before. */
static enum fault negotiate(struct assoc *a, struct assoc_arrival *x, uint64_t now_us)
{
    enum fault fault = neg_decode(&x->neg, x->chunk.data, x->chunk.length);

    if (fault)
        return note(a, x, fault, x->chunk.length ? x->chunk.data[0] : 0, NEG_VERSION);
    if (!x->in_turn && (x->neg.type != NEG_SEND || !life_is_open(&a->life)))
        return FAULT_NOT_NOW;
    return act(a, x, now_us);
}

/* If not both sides negotiate, each message is a Send, in order of arrival. */
static enum fault deliver_plain(struct assoc *a, struct assoc_arrival *x)
{
    if (!x->in_turn)
        return FAULT_NOT_NOW;
    x->seg.op = SEG_SEND;
    x->seg.msg = a->life.qp->arriving.next;
    x->seg.offset = 0;
    x->seg.flags = SEG_LAST;
    return note_qp(a, qp_place(a->life.qp, &x->seg));
}

static enum fault place_nothing(struct assoc *a, struct assoc_arrival *x, uint64_t now_us)
{
    enum fault fault = a->negotiates ? negotiate(a, x, now_us) : deliver_plain(a, x);

    /* The chunks of a fragmented message have positions of their own; what it signals has the last. */
    for (uint32_t i = 1; !fault && i < x->positions; i++)
        window_place(&a->window, x->pos + i - 1, 0, false, 0);
    if (!fault)
        window_place(&a->window, x->pos + x->positions - 1, x->chunk.tag, false, x->chunk.flags & SCTPDDP_SIGNALS);
    return fault;
}

/* --- signals ------------------------------------------------------------------------------------------------- */

static enum fault assoc_rx_release(struct assoc *a, const struct window_slot *slot)
{
    struct qp *qp = a->life.qp;

    if (!slot->tagged || !mr_invalidate_for(qp->attr.mrs, qp->attr.pd, qp->user, slot->value, &a->released))
        return FAULT_NONE;
    a->life.note = (struct fault_note){.fault = FAULT_INVALIDATE, .op = SEG_WRITE, .key = slot->value};
    return FAULT_INVALIDATE;
}

static enum fault signal(struct assoc *a, uint64_t pos, const struct window_slot *slot)
{
    if (slot->flags & SCTPDDP_ACK && a->negotiates) {
        a->placed_aws = (uint32_t)pos;
        a->placed_due = true;
    }
    a->signal[a->signal_head++ % ASSOC_SIGNALS] = (struct assoc_signal){pos, slot->value, slot->flags};
    return slot->flags & SCTPDDP_RELEASE ? assoc_rx_release(a, slot) : FAULT_NONE;
}

/* Processes everything whose turn has come, in order: first what it completes, then what it signals. Stops while the
 * host has not taken earlier signals. */
static enum fault assoc_rx_settle(struct assoc *a)
{
    struct window_slot slot;
    enum fault fault = FAULT_NONE;

    while (!fault && !life_is_invalidating(&a->life) && a->signal_head - a->signal_tail < ASSOC_SIGNALS &&
           window_pop(&a->window, &slot)) {
        if (a->life.qp && life_is_open(&a->life))
            fault = note_qp(a, qp_advance(a->life.qp, a->window.next));
        if (!fault && slot.flags)
            fault = signal(a, a->window.next - 1, &slot);
    }
    return fault;
}

/* --- all ----------------------------------------------------------------------------------------------------- */

/* A message without a receive may wait for one: in its turn for a time, before it until its turn. */
static enum fault await_receive(struct assoc *a, const struct assoc_arrival *x, uint64_t now_us)
{
    bool may_wait = x->in_turn ? life_may_await_receive(&a->life, now_us) : a->life.qp->attr.receive_wait_us != 0;

    if (!may_wait)
        return FAULT_NO_RECEIVE;
    a->life.note = a->life.qp->note = (struct fault_note){.fault = FAULT_NONE}; /* it is none yet */
    return FAULT_NOT_NOW;
}

static enum fault assoc_rx_take(struct assoc *a, struct assoc_arrival *x, bool again, uint64_t now_us)
{
    enum fault fault = assoc_rx_read_head(a, x);

    if (!fault)
        fault = assoc_rx_locate(a, x, again);
    if (fault)
        return fault;
    x->seg.begin = x->pos;
    x->seg.end = x->pos + x->positions;
    x->seg.data = x->chunk.data;
    x->seg.length = x->chunk.length;
    /* Nothing of a negotiating peer is placed before its HELLO has been processed. */
    if (life_is_invalidating(&a->life))
        fault = FAULT_NOT_NOW;
    else if (life_in_startup(&a->life) && (x->chunk.mode || !a->negotiates))
        fault = a->negotiates && x->in_turn ? note(a, x, FAULT_NEG_TURN, 0, 0) : FAULT_NOT_NOW;
    else
        fault = x->chunk.mode ? assoc_rx_place(a, x) : place_nothing(a, x, now_us);
    if (fault == FAULT_NO_RECEIVE)
        return await_receive(a, x, now_us);
    if (x->in_turn)
        life_received(&a->life);
    return fault ? fault : assoc_rx_settle(a);
}

/* Refuses to keep more than ASSOC_KEPT_OCTETS, which protects the host's memory. */
static enum assoc_verdict assoc_rx_keep(struct assoc *a, const struct assoc_arrival *x, bool again, uint64_t now_us)
{
    uint32_t limit = a->life.state == CONN_WAIT_REQUEST ? ASSOC_KEPT_EARLY : ASSOC_KEPT_OCTETS;
    struct fault_note full = {.fault = FAULT_CHUNK_AHEAD, .got = x->pos, .want = a->window.next};

    if (again)
        return ASSOC_KEPT;
    if (x->m->octets + ASSOC_KEPT_ENTRY > limit - a->kept_octets) {
        assoc_fail(a, &full, now_us);
        return ASSOC_TAKEN;
    }
    a->kept_octets += x->m->octets + ASSOC_KEPT_ENTRY;
    window_keep(&a->window, x->pos, x->m->name);
    life_stall(&a->life, !life_awaits_receive(&a->life), now_us); /* what it waits for may never come */
    return ASSOC_KEPT;
}

static void assoc_rx_broken(struct assoc *a, uint64_t now_us)
{
    struct fault_note why = a->life.note;

    a->life.note = (struct fault_note){.fault = FAULT_NONE};
    if (why.fault == FAULT_NO_RECEIVE && a->life.peer_is_gone)
        life_peer_ended(&a->life, true, now_us); /* no peer is left to be told */
    else
        assoc_fail(a, &why, now_us);
}

/* The peer has ended while a message waited for a receive, and none waits any more. */
static void end_in_turn(struct assoc *a, uint64_t now_us)
{
    uint32_t name;

    if (a->life.peer_is_gone && life_is_open(&a->life) && !life_awaits_receive(&a->life) && !assoc_due(a, &name))
        life_peer_ended(&a->life, a->window.ahead, now_us);
}

enum assoc_verdict assoc_rx(struct assoc *a, const struct assoc_message *m, uint64_t now_us)
{
    struct assoc_arrival x = {.m = m};
    uint64_t next = a->window.next;
    uint32_t name;
    bool again = window_due(&a->window, &name) && name == m->name;
    enum fault fault;

    if (a->life.state >= CONN_TERMINATING)
        return ASSOC_TAKEN;
    a->rx_ppid = m->ppid;
    fault = assoc_rx_take(a, &x, again, now_us);
    if (fault == FAULT_NOT_NOW)
        return assoc_rx_keep(a, &x, again, now_us);
    if (again)
        a->kept_octets -= m->octets + ASSOC_KEPT_ENTRY;
    if (fault)
        assoc_rx_broken(a, now_us);
    if (a->window.next != next)
        life_stall(&a->life, false, now_us);
    if (a->window.ahead)
        life_stall(&a->life, !life_awaits_receive(&a->life), now_us);
    end_in_turn(a, now_us);
    return ASSOC_TAKEN;
}

void assoc_skipped(struct assoc *a, uint16_t stream, uint64_t now_us)
{
    const struct fault_note note = {.fault = FAULT_CHUNK_STREAM, .op = SEG_SEND, .got = stream};

    if (a->peer != SCTPDDP_PLAIN && a->life.state < CONN_TERMINATING)
        assoc_fail(a, &note, now_us);
}

bool assoc_due(const struct assoc *a, uint32_t *name)
{
    bool asked = a->life.state == CONN_WAIT_ANSWER; /* messages that come before the answer wait for it */

    return a->life.state < CONN_TERMINATING && !asked && !life_is_invalidating(&a->life) &&
           window_due(&a->window, name) && !life_must_await_receive(&a->life);
}

/* Are the regions whose tags were released out of use? */
static bool are_left(const struct assoc *a)
{
    for (uint32_t i = a->signal_tail; a->released && a->life.qp && i != a->signal_head; i++) {
        const struct assoc_signal *s = &a->signal[i % ASSOC_SIGNALS];

        if (s->flags & SCTPDDP_RELEASE && !mr_is_unused(a->life.qp->attr.mrs, s->tag, a->released))
            return false;
    }
    return true;
}

bool assoc_has_signal(const struct assoc *a)
{
    return a->signal_tail != a->signal_head && are_left(a);
}

/* Delivers what waited until others left a region, if they have left. */
static enum fault assoc_rx_resume(struct assoc *a, uint64_t now_us)
{
    bool waited = life_is_invalidating(&a->life);
    enum fault fault = life_resume(&a->life, now_us);

    if (a->released && a->life.qp)
        life_renew(&a->life);
    if (are_left(a)) {
        a->released = 0;
    } else {
        a->life.resume_us = now_us + LIFE_RESUME_US;
        a->life.awaits_spans = epoch_is_over(&a->life.qp->attr.mrs->epochs, a->released);
    }
    return fault || !waited ? fault : assoc_rx_settle(a);
}

void assoc_check(struct assoc *a, uint64_t now_us)
{
    struct qp *qp = a->life.qp;
    enum fault fault = assoc_rx_resume(a, now_us);

    if (!qp || (!fault && qp->state != QP_ERROR))
        return;
    qp_settle(qp);
    assoc_fail(a, &qp->note, now_us);
}

bool assoc_signal(struct assoc *a, struct assoc_signal *out, uint64_t now_us)
{
    if (!assoc_has_signal(a))
        return false;
    *out = a->signal[a->signal_tail++ % ASSOC_SIGNALS];
    if (a->life.state < CONN_TERMINATING && assoc_rx_settle(a))
        assoc_rx_broken(a, now_us);
    return true;
}
