/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - drives one connection: octets to segments to the queue pair, and back. */
#include "conn/conn.h"

#include <assert.h>
#include <string.h>

#include "conn/conn_inner.h"

/* Smaller payloads are copied behind their header: a span of their own costs more than the copy. */
enum { GATHER_MIN = 16384 };

/* --- octets in ----------------------------------------------------------------------------------------------- */

/* Fails the connection because of a unit; *seg holds what was decoded of it. */
static void fail_unit(struct conn *c, enum fault fault, const struct seg *seg, uint64_t now_us)
{
    const struct fault_note note = {
        .fault = fault,
        .op = seg->op,
        .key = seg->key,
        .offset = seg->offset,
        .length = seg->length,
        .msg = seg->msg,
    };

    conn_fail(c, &note, seg, now_us);
}

/* Decodes and processes one unit. Returns the octets consumed, 0 if more are needed, or minus a fault that was
 * handled. */
static int segment(struct conn *c, uint8_t *p, size_t n, uint64_t now_us)
{
    struct seg seg;
    size_t need;
    int eaten = c->front_octets;

    if (eaten) {
        c->front_octets = 0;
        return unit_arrived(c, &c->front, eaten, now_us);
    }
    if (unit_waits(c, p, n, now_us))
        return 0;
    eaten = c->place_at ? read_to_place_end(c, &seg, p, n) : c->wire->decode(&c->agreed, &seg, p, n, &need);
    if (eaten > 0)
        return unit_arrived(c, &seg, eaten, now_us);
    if (eaten == 0 || unit_refuses(c, fault_of(eaten)))
        return 0;
    fail_unit(c, fault_of(eaten), &seg, now_us);
    return eaten;
}

static int conn_step(struct conn *c, uint8_t *p, size_t n, uint64_t now_us)
{
    switch (c->life.state) {
    case CONN_WAIT_REQUEST:
    case CONN_WAIT_REPLY:
        return start_rx(c, p, n, now_us);
    case CONN_READY:
    case CONN_DRAINING:
        return segment(c, p, n, now_us);
    case CONN_WAIT_ANSWER:
        return 0;
    default:
        return (int)n; /* dropped */
    }
}

static size_t conn_eat(struct conn *c, uint8_t *p, size_t n, uint64_t now_us)
{
    size_t eaten = 0;

    while (eaten < n) {
        int k = conn_step(c, p + eaten, n - eaten, now_us);

        if (k < 0)
            continue; /* the state has changed: process the rest accordingly */
        if (k == 0)
            break;
        eaten += (size_t)k;
    }
    return eaten;
}

/* After octets in order, of which `rest` are left. */
static void conn_rx_reordered(struct conn *c, size_t rest, uint64_t now_us)
{
    if (unit_overlaps(c, rest) && !unit_refuses(c, FAULT_OVERLAP))
        conn_fail(c, &(struct fault_note){.fault = FAULT_OVERLAP}, NULL, now_us);
    unit_turns(c, now_us);
}

size_t conn_rx(struct conn *c, uint8_t *p, size_t n, uint64_t now_us)
{
    uint64_t before = c->agreed.rx_pos;
    size_t eaten;

    if (c->life.qp && c->life.qp->state == QP_ERROR)
        conn_check(c, now_us); /* a CQ was full for what went straight: what follows comes too late */
    if (c->held)
        life_listen(&c->life, true, now_us);
    c->held = HELD_NOT;
    if (c->reorder)
        unit_turns(c, now_us);
    eaten = conn_eat(c, p, n, now_us);
    if (c->reorder)
        conn_rx_reordered(c, n - eaten, now_us);
    conn_check(c, now_us);
    if (c->life.unfinished && c->agreed.rx_pos != before && life_is_late(&c->life, now_us))
        conn_fail(c, &(struct fault_note){.fault = FAULT_STALLED}, NULL, now_us);
    if (c->held)
        life_listen(&c->life, false, now_us);
    else if (eaten < n || (c->reorder && c->reorder->count))
        life_stall(&c->life, true, now_us);
    return eaten;
}

/* --- octets out ---------------------------------------------------------------------------------------------- */

static bool conn_may_send(const struct conn *c, uint64_t now_us)
{
    return life_is_open(&c->life) && !c->start.silent && !c->start.rtr_answer_due && now_us >= c->start.tx_after_us;
}

/* Must our ready-to-receive message wait? It precedes everything else and is sent even if the connection ends: siw 6.1
 * does not survive an end without it. */
static bool rtr_waits(const struct conn *c, uint64_t now_us)
{
    return c->start.rtr_due && now_us < c->start.tx_after_us;
}

bool conn_owes(const struct conn *c)
{
    bool starts = c->start.frame_length || c->start.rtr_due || c->start.rtr_answer_due;

    return life_owes(&c->life) || (starts && c->life.state == CONN_READY);
}

/* Is a graceful close complete, so that further responses are useless to us? */
static bool conn_is_done(const struct conn *c)
{
    return c->life.state == CONN_DRAINING && life_is_drained(&c->life);
}

bool conn_wants_rx(const struct conn *c)
{
    return c->life.state != CONN_OVER && c->life.state != CONN_WAIT_ANSWER && !c->life.peer_ended && !c->held &&
           !life_is_invalidating(&c->life);
}

unsigned conn_wants(const struct conn *c, uint64_t now_us)
{
    unsigned wants = conn_wants_rx(c) ? CONN_RX : 0;
    bool out = c->life.out && c->life.out->octets;

    if (c->life.state == CONN_OVER)
        return 0;
    if (c->held && !conn_still_holds(c))
        wants |= CONN_AGAIN;
    if (out || c->start.frame_length || start_nudges(c) ||
        ((c->start.rtr_due || c->life.term_due) && !rtr_waits(c, now_us)) ||
        (conn_may_send(c, now_us) && c->life.qp && !conn_is_done(c) && qp_has_output(c->life.qp)))
        return wants | CONN_TX;
    if (c->life.fin_sent || c->start.rtr_due)
        return wants;
    if (c->life.state >= CONN_TERMINATING || conn_is_done(c))
        wants |= CONN_FIN;
    return wants;
}

/* May the payload be sent from where it lies? Not if it could change between its CRC and the socket. */
static bool may_borrow(const struct conn *c, const struct emit *e)
{
    bool can_change = e->volatile_data || (e->may_change && c->agreed.crc);

    return e->seg.length >= GATHER_MIN && !can_change && !e->seg.control_length && !c->wire->interleaves(&c->agreed);
}

/* Frames one segment into `out`, by copy or by reference. */
__attribute__((flatten)) static void conn_encode(struct conn *c, struct emit *e)
{
    struct out *out = c->life.out;
    uint8_t *head = out_space(out), *tail = head + WIRE_HEAD_MAX;
    size_t head_length, tail_length;

    if (!may_borrow(c, e)) {
        out_commit_unit(out, c->wire->frame(&c->agreed, &e->seg, e->span, e->spans, head));
        return;
    }
    c->wire->wrap(&c->agreed, &e->seg, e->span, e->spans, head, &head_length, tail, &tail_length);
    out_commit(out, head_length);
    for (uint32_t i = 0; i < e->spans; i++)
        out_borrow(out, e->span[i], e->region[i]);
    memmove(out_space(out), tail, tail_length);
    out_commit_unit(out, tail_length);
}

static void fill_rtr(struct conn *c, unsigned rtr)
{
    struct emit e = {.seg = {.flags = SEG_LAST, .msg = 1, .key = 1, .read = {.sink_key = 1, .source_key = 1}}};

    switch (rtr) {
    case MPA_RTR_SEND:
        e.seg.op = SEG_SEND;
        if (c->life.qp)
            c->life.qp->tx_send_msg++;
        break;
    case MPA_RTR_WRITE:
        e.seg.op = SEG_WRITE;
        break;
    default:
        e.seg.op = SEG_READ_REQ;
        if (c->life.qp)
            c->life.qp->tx_read_msg++;
        c->start.rtr_answer_due = true;
        break;
    }
    conn_encode(c, &e);
}

/* The path's segment size hardly ever changes. */
static const struct conn_cut *current_cut(struct conn *c)
{
    if (c->cut.emss != c->attr.emss || c->cut.has_markers != c->agreed.tx_markers || !c->cut.tagged_max)
        c->cut = (struct conn_cut){
            .emss = c->attr.emss,
            .has_markers = c->agreed.tx_markers,
            .tagged_max = c->wire->payload_max(&c->agreed, true, c->attr.emss),
            .untagged_max = c->wire->payload_max(&c->agreed, false, c->attr.emss),
        };
    return &c->cut;
}

void conn_fill_segments(struct conn *c)
{
    const struct conn_cut *cut = current_cut(c);
    struct emit e;

    while (out_has_space(c->life.out) && !conn_is_done(c)) {
        e.buffer = out_spare(c->life.out);
        if (!qp_emit(c->life.qp, &e, cut->tagged_max, cut->untagged_max))
            break;
        conn_encode(c, &e);
        qp_queued(c->life.qp, c->agreed.tx_pos);
        if (qp_has_cut_all(c->life.qp))
            break;
    }
}

static void fill_terminate(struct conn *c)
{
    struct emit e = {
        .seg = c->life.term,
        .span[0] = {c->life.term.data, c->life.term.length},
        .spans = 1,
    };

    conn_encode(c, &e);
    c->life.term_due = false;
}

void conn_fill(struct conn *c, uint64_t now_us)
{
    if (c->start.frame_length) {
        memcpy(out_space(c->life.out), c->start.frame, c->start.frame_length);
        out_commit_unit(c->life.out, c->start.frame_length);
        c->start.frame_length = 0;
    }
    if (c->start.rtr_due && !rtr_waits(c, now_us)) {
        fill_rtr(c, c->start.rtr);
        c->start.rtr_due = false;
    } else if (start_nudges(c)) {
        fill_rtr(c, MPA_RTR_WRITE);
        c->start.nudge_due = false;
    }
    if (conn_may_send(c, now_us) && c->life.qp) {
        c->start.tx_after_us = 0;
        conn_fill_segments(c);
        conn_check(c, now_us);
    }
    if (c->life.term_due && !c->start.rtr_due)
        fill_terminate(c);
}

/* Returns the stream position up to which octets were sent. The start-up frame is not part of this stream. */
static uint64_t sent_to(const struct conn *c)
{
    uint32_t waits = c->life.out ? c->life.out->octets : 0;

    return c->agreed.tx_pos >= waits ? c->agreed.tx_pos - waits : 0;
}

void conn_sent(struct conn *c, size_t octets, uint64_t now_us)
{
    out_sent(c->life.out, octets);
    life_sent(&c->life, now_us);
    if (c->life.qp && !c->attr.acknowledged)
        qp_sent(c->life.qp, sent_to(c));
    /* A full CQ fails the queue pair, and no further event may come. */
    conn_check(c, now_us);
}

void conn_acked(struct conn *c, uint64_t pos, uint64_t now_us)
{
    uint64_t sent = sent_to(c);

    pos = pos < sent ? pos : sent;
    if (!c->attr.acknowledged || !c->life.qp || pos <= c->life.qp->tx_pos)
        return;
    life_sent(&c->life, now_us);
    qp_sent(c->life.qp, pos);
    conn_check(c, now_us);
}

/* --- time ---------------------------------------------------------------------------------------------------- */

uint64_t conn_deadline(const struct conn *c, uint64_t now_us)
{
    uint64_t at = life_deadline(&c->life);

    if (c->life.state == CONN_OVER)
        return at;
    if (c->start.tx_after_us > now_us && c->start.tx_after_us < at)
        at = c->start.tx_after_us;
    if (c->start.nudge_us && c->start.nudge_us < at)
        at = c->start.nudge_us;
    return at;
}

bool conn_is_at_rest(const struct conn *c)
{
    return c->life.state == CONN_READY && c->life.qp && c->life.qp->state == QP_READY && !c->life.out &&
           !c->life.news && conn_wants(c, UINT64_MAX) == CONN_RX && conn_deadline(c, UINT64_MAX) == UINT64_MAX;
}

void conn_tick(struct conn *c, uint64_t now_us)
{
    start_tick(c, now_us);
    if (life_tick(&c->life, now_us))
        conn_fail(c, &(struct fault_note){.fault = FAULT_STALLED}, NULL, now_us);
}
