/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hold.c - a segment that was put back: what it waits for, and what becomes of the end of the peer behind it. */
#include "conn/conn_inner.h"

int conn_hold(struct conn *c, uint64_t begin, enum conn_held why)
{
    c->agreed.rx_pos = begin;
    c->held = why;
    c->held_tail = c->life.qp->answers.tail;
    return 0;
}

bool conn_still_holds(const struct conn *c)
{
    const struct qp *qp = c->life.qp;

    if (!life_is_open(&c->life) || !qp)
        return false;
    switch (c->held) {
    case HELD_FOR_INVALIDATION:
        return qp->invalidating != 0;
    case HELD_FOR_ANSWER:
        return qp->answers.tail == c->held_tail;
    case HELD_FOR_RECEIVE:
        return life_must_await_receive(&c->life);
    default:
        return false;
    }
}

bool conn_wants_end(const struct conn *c)
{
    if (c->life.state == CONN_WAIT_ANSWER)
        return !c->attr.immediate;
    return c->held == HELD_FOR_RECEIVE && life_is_open(&c->life) && !c->life.peer_is_gone;
}

void conn_rx_end_unread(struct conn *c, uint64_t now_us)
{
    if (c->held == HELD_FOR_RECEIVE && life_is_open(&c->life))
        life_peer_gone(&c->life, now_us);
    else
        conn_rx_end(c, 0, now_us);
}
