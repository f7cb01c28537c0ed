/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* out_of_order.c - octets in the order in which a link receives them: which are placed at once, kept or refused. */
#include <assert.h>

#include "conn/conn_inner.h"

void conn_attach_reorder(struct conn *c, struct reorder *reorder)
{
    assert(!c->reorder);
    c->reorder = reorder;
    c->is_plain = false;
    reorder_init(reorder);
}

static enum conn_verdict rx_in_order(struct conn *c, uint8_t *p, size_t n, size_t *octets, uint64_t now_us)
{
    bool refused;
    size_t eaten;

    c->out_of_order = true;
    eaten = conn_rx(c, p, n, now_us);
    refused = c->refused;
    c->out_of_order = c->refused = false;
    if (eaten) {
        *octets = eaten;
        c->refusals = 0;
        return CONN_TAKEN;
    }
    return refused ? CONN_REFUSED : CONN_KEEP;
}

/* Places the payload of a unit, removing framing from it if necessary. Changes nothing if it returns false. */
static bool place_unit(struct conn *c, const struct wire_state *agreed, struct seg *seg, uint8_t *p, size_t n)
{
    struct wire_state again = *agreed;
    struct seg whole;
    size_t need;
    int eaten;

    if (qp_place_early(c->life.qp, seg))
        return false;
    if (seg->data || !seg->length)
        return true;
    again.crc = false; /* look() has verified it */
    eaten = c->wire->decode(&again, &whole, p, n, &need);
    assert(eaten == (int)n); /* the octets belong to us and have not changed since look() */
    /* No lock protects the region, which may be gone since it was checked. Its owner no longer wants the data then. */
    (void)qp_place_early(c->life.qp, &whole);
    return true;
}

/* Processes the unit at `p`, behind a gap. `sure`: a unit is known to begin here. */
static enum conn_verdict rx_behind_gap(struct conn *c, const struct wire_state *agreed, uint8_t *p, size_t n, bool sure,
                                       size_t *octets)
{
    struct seg seg;
    int unit = c->wire->look(agreed, &seg, p, n);
    enum reorder_fit fit;

    *octets = n;
    if (unit < 0)
        return sure && unit_may_be_corrupted(fault_of(unit)) ? CONN_REFUSED : CONN_KEEP;
    if (!unit)
        return CONN_KEEP;
    *octets = (size_t)unit;
    c->reorder->boundary = seg.end;
    fit = reorder_fit(c->reorder, seg.begin, seg.end);
    if (fit == REORDER_RECORDED)
        return CONN_TAKEN;
    /* Other control data would have to be kept. Those of a Send go to their own place. */
    if (fit == REORDER_NO || seg.op >= SEG_TERMINATE || (seg.control_length && seg.op != SEG_SEND))
        return CONN_KEEP;
    if (!place_unit(c, agreed, &seg, p, (size_t)unit))
        return CONN_KEEP;
    reorder_add(c->reorder, &seg);
    return CONN_TAKEN;
}

/* Takes one unit, or several if all are taken: the verdict applies to all of them. */
static enum conn_verdict rx_all_behind_gap(struct conn *c, uint8_t *p, size_t n, uint64_t pos, size_t *octets)
{
    struct wire_state agreed = c->agreed;
    bool sure = true;
    enum conn_verdict verdict, next = CONN_TAKEN;
    size_t at = 0, unit;

    agreed.rx_pos = pos;
    if (!reorder_is_boundary(c->reorder, pos))
        at = c->wire->find(&agreed, p, n, &sure);
    if (at) {
        *octets = at;
        c->reorder->boundary = at < n && sure ? pos + at : 0;
        return CONN_KEEP;
    }
    verdict = rx_behind_gap(c, &agreed, p, n, sure, &at);
    while (verdict == CONN_TAKEN && next == CONN_TAKEN && at < n) {
        agreed.rx_pos = pos + at;
        next = rx_behind_gap(c, &agreed, p + at, n - at, true, &unit);
        at += next == CONN_TAKEN ? unit : 0;
    }
    *octets = at;
    return verdict;
}

enum conn_verdict conn_rx_out_of_order(struct conn *c, uint8_t *p, size_t n, uint64_t pos, size_t *octets,
                                       uint64_t now_us)
{
    bool may_place = life_is_open(&c->life) && c->life.qp && !c->start.silent && !c->start.rtr_answer_due;
    enum conn_verdict verdict;

    *octets = n;
    if (c->life.state >= CONN_TERMINATING)
        return CONN_TAKEN; /* dropped */
    if (life_in_startup(&c->life) || pos > UINT64_MAX - n)
        return CONN_KEEP;
    if (pos < c->agreed.rx_pos) {
        *octets = n < c->agreed.rx_pos - pos ? n : (size_t)(c->agreed.rx_pos - pos);
        return CONN_TAKEN;
    }
    if (pos == c->agreed.rx_pos)
        return c->held ? CONN_KEEP : rx_in_order(c, p, n, octets, now_us);
    if (!c->reorder || !may_place)
        return CONN_KEEP;
    verdict = rx_all_behind_gap(c, p, n, pos, octets);
    conn_check(c, now_us);
    if (c->reorder->count && !c->held)
        life_stall(&c->life, true, now_us);
    return verdict;
}

uint64_t conn_advance(struct conn *c, uint64_t edge, uint64_t now_us)
{
    conn_rx(c, NULL, 0, now_us);
    return c->life.state >= CONN_TERMINATING ? edge : c->agreed.rx_pos;
}
