/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* end.c - how the connection of a byte stream ends: in order, or by a fault with a Terminate. */
#include "conn/conn.h"

void conn_fail(struct conn *c, const struct fault_note *note, const struct seg *seg, uint64_t now_us)
{
    struct life *l = &c->life;
    /* A responder sends nothing before the initiator's first FPDU, not even a Terminate (RFC 5044 7.1.2 rule 4). */
    bool framed = !life_in_startup(l) && l->state < CONN_TERMINATING && (!c->start.silent || seg);

    life_fail(l, note, framed && c->wire->terminate(&c->agreed, note, seg, &l->term, l->term_buffer), now_us);
}

void conn_lost(struct conn *c, enum fault fault)
{
    life_lost(&c->life, fault);
}

/* Has all that we had to say left? */
static bool is_all_sent(const struct conn *c)
{
    return !c->start.frame_length && !(c->life.out && c->life.out->octets);
}

void conn_rx_end(struct conn *c, size_t rest, uint64_t now_us)
{
    if (life_is_open(&c->life)) {
        c->start.rtr_due = false;
        /* The initiator has our reply: for it the connection is up, and over without a message. */
        if (!c->life.established && !rest && is_all_sent(c))
            life_established(&c->life);
    }
    life_peer_ended(&c->life, rest, now_us);
}

void conn_close(struct conn *c, uint64_t now_us)
{
    life_close(&c->life, now_us);
}

void conn_detach(struct conn *c, uint64_t now_us)
{
    life_detach(&c->life, now_us);
}

void conn_fin(struct conn *c, uint64_t now_us)
{
    life_fin(&c->life, now_us);
}

void conn_check(struct conn *c, uint64_t now_us)
{
    enum fault fault = life_resume(&c->life, now_us);

    if (!c->life.qp || (!fault && c->life.qp->state != QP_ERROR))
        return;
    qp_settle(c->life.qp);
    conn_fail(c, &c->life.qp->note, NULL, now_us);
}
