/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* take.c - octets in the order in which a link receives them: which are placed at once, kept or refused. */
#include <assert.h>

#include "conn/conn_inner.h"

/* A damaged unit may have been corrupted in transit. It is refused, and thus retransmitted, at most this many times. */
enum { REFUSALS_MAX = 3 };

void conn_lend_early(struct conn *c, struct early *early)
{
    assert(!c->early);
    c->early = early;
    early_init(early);
}

/* Can corruption in transit cause this fault? Other faults are the sender's. */
static bool may_be_spoilt(enum fault fault)
{
    switch (fault) {
    case FAULT_LENGTH:
    case FAULT_CRC:
    case FAULT_MARKER:
    case FAULT_LAP:
    case FAULT_SEG_VERSION:
    case FAULT_SEG_LENGTH:
    case FAULT_SEG_CLEN:
    case FAULT_SEG_ID:
    case FAULT_SEG_CRC:
        return true;
    default:
        return false;
    }
}

bool take_refuses(struct conn *c, enum fault fault)
{
    if (!c->taking || c->refusals == REFUSALS_MAX || !may_be_spoilt(fault))
        return false;
    c->refusals++;
    c->refused = true;
    return true;
}

static enum conn_verdict take_in_order(struct conn *c, uint8_t *p, size_t n, size_t *octets, uint64_t now_us)
{
    bool refused;
    size_t eaten;

    c->taking = true;
    eaten = conn_rx(c, p, n, now_us);
    refused = c->refused;
    c->taking = c->refused = false;
    if (eaten) {
        *octets = eaten;
        c->refusals = 0;
        return CONN_TAKEN;
    }
    return refused ? CONN_REFUSED : CONN_KEEP;
}

/* Places the payload of a unit, removing framing from it if necessary. Changes nothing if it returns false. */
static bool take_place(struct conn *c, const struct wire_state *agreed, struct seg *seg, uint8_t *p, size_t n)
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
static enum conn_verdict take_unit(struct conn *c, const struct wire_state *agreed, uint8_t *p, size_t n, bool sure,
                                   size_t *octets)
{
    struct seg seg;
    int unit = c->wire->look(agreed, &seg, p, n);
    enum early_fit fit;

    *octets = n;
    if (unit < 0)
        return sure && may_be_spoilt(fault_of(unit)) ? CONN_REFUSED : CONN_KEEP;
    if (!unit)
        return CONN_KEEP;
    *octets = (size_t)unit;
    c->early->boundary = seg.end;
    fit = early_fit(c->early, seg.begin, seg.end);
    if (fit == EARLY_THERE)
        return CONN_TAKEN;
    /* Other control data would have to be kept. Those of a Send go to their own place. */
    if (fit == EARLY_NOT || seg.op >= SEG_TERMINATE || (seg.control_length && seg.op != SEG_SEND))
        return CONN_KEEP;
    if (!take_place(c, agreed, &seg, p, (size_t)unit))
        return CONN_KEEP;
    early_add(c->early, &seg);
    return CONN_TAKEN;
}

/* Takes one unit, or several if all are taken: the verdict applies to all of them. */
static enum conn_verdict take_early(struct conn *c, uint8_t *p, size_t n, uint64_t pos, size_t *octets)
{
    struct wire_state agreed = c->agreed;
    bool sure = true;
    enum conn_verdict verdict, next = CONN_TAKEN;
    size_t at = 0, unit;

    agreed.rx_pos = pos;
    if (!early_is_boundary(c->early, pos))
        at = c->wire->find(&agreed, p, n, &sure);
    if (at) {
        *octets = at;
        c->early->boundary = at < n && sure ? pos + at : 0;
        return CONN_KEEP;
    }
    verdict = take_unit(c, &agreed, p, n, sure, &at);
    while (verdict == CONN_TAKEN && next == CONN_TAKEN && at < n) {
        agreed.rx_pos = pos + at;
        next = take_unit(c, &agreed, p + at, n - at, true, &unit);
        at += next == CONN_TAKEN ? unit : 0;
    }
    *octets = at;
    return verdict;
}

enum conn_verdict conn_take(struct conn *c, uint8_t *p, size_t n, uint64_t pos, size_t *octets, uint64_t now_us)
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
        return c->held ? CONN_KEEP : take_in_order(c, p, n, octets, now_us);
    if (!c->early || !may_place)
        return CONN_KEEP;
    verdict = take_early(c, p, n, pos, octets);
    conn_check(c, now_us);
    if (c->early->count)
        life_stall(&c->life, true, now_us);
    return verdict;
}

void take_turns(struct conn *c, uint64_t now_us)
{
    const struct seg *seg;

    while (c->early && !c->held && life_is_open(&c->life) && (seg = early_first(c->early)) &&
           seg->begin == c->agreed.rx_pos) {
        struct seg turn = *seg;

        c->agreed.rx_pos = turn.end;
        if (unit_arrived(c, &turn, (int)(turn.end - turn.begin), now_us))
            early_pop(c->early);
    }
}

/* Does the unit in front not end where the next one begins? A unit that is held back or refused proves nothing. */
bool take_laps(const struct conn *c, size_t rest)
{
    const struct seg *seg = c->early ? early_first(c->early) : NULL;

    return seg && !c->held && !c->refused && life_is_open(&c->life) &&
           (seg->begin < c->agreed.rx_pos || (rest && seg->begin - c->agreed.rx_pos <= rest));
}

uint64_t conn_advance(struct conn *c, uint64_t edge, uint64_t now_us)
{
    conn_rx(c, NULL, 0, now_us);
    return c->life.state >= CONN_TERMINATING ? edge : c->agreed.rx_pos;
}
