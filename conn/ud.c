/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.c - a queue pair of unreliable datagrams: what leaves is done, and what finds no receive is dropped. */
#include "conn/ud.h"

void ud_init(struct ud *u, const struct ud_attr *attr, struct qp *qp, uint64_t now_us)
{
    *u = (struct ud){.attr = *attr, .is_waiting = true};
    life_init(&u->life, true, &attr->limits, now_us);
    u->life.qp = qp;
    qp_connect(qp, 0, 0, 0);
    life_ready(&u->life);
    life_established(&u->life);
}

void ud_start(struct ud *u, uint32_t psn)
{
    u->psn = psn;
    u->sends = true;
    u->is_waiting = false;
}

void ud_drain(struct ud *u, bool drains, uint64_t now_us)
{
    u->is_draining = drains;
    ud_check(u, now_us);
    if (drains && life_is_open(&u->life))
        qp_tell(u->life.qp, QP_DRAINED);
}

void ud_restart(struct ud *u, uint64_t now_us)
{
    u->is_draining = false;
    qp_restart_sends(u->life.qp);
    ud_check(u, now_us);
}

void ud_check(struct ud *u, uint64_t now_us)
{
    struct qp *qp = u->life.qp;

    if (!qp)
        return;
    qp_settle(qp);
    if (life_is_open(&u->life) && qp->state == QP_ERROR)
        life_fail(&u->life, &qp->note, false, now_us);
}

/* --- in ---------------------------------------------------------------------------------------------------------- */

static unsigned ud_flags(const struct bth *b, const uint8_t *grh)
{
    unsigned flags = SEG_FIRST | SEG_LAST | SEG_DATAGRAM;

    flags |= b->flags & BTH_SOLICITED ? SEG_SOLICITED : 0;
    flags |= grh_is_ipv4(grh) ? SEG_IPV4 : 0;
    return flags | (b->flags & BTH_IMMEDIATE ? SEG_WITH_IMM : 0);
}

static void ud_place(struct ud *u, const struct bth *b, const uint8_t *grh, uint64_t now_us)
{
    struct qp *qp = u->life.qp;
    const struct seg seg = {
        .op = SEG_SEND,
        .flags = ud_flags(b, grh),
        .immediate = b->immediate,
        .data = b->data,
        .length = b->length,
        .head = grh,
        .head_length = GRH_OCTETS,
        .source = b->source_qpn,
        .begin = qp->rx_pos,
        .end = qp->rx_pos + 1,
    };
    enum fault fault = qp_place(qp, &seg);

    if (fault == FAULT_NO_RECEIVE)
        u->not_ready++;
    else if (fault)
        life_fail(&u->life, &qp->note, false, now_us);
}

void ud_rx(struct ud *u, const struct bth *b, const uint8_t grh[GRH_OCTETS], uint64_t now_us)
{
    if (!life_is_open(&u->life) || b->service != BTH_UD || b->length > BTH_MTU_MAX)
        return;
    if (b->q_key != u->attr.q_key) {
        u->wrong_q_key++;
        return;
    }
    if (u->is_waiting)
        qp_tell(u->life.qp, QP_COMMUNICATES);
    u->is_waiting = false;
    ud_place(u, b, grh, now_us);
    ud_check(u, now_us);
}

/* --- out --------------------------------------------------------------------------------------------------------- */

static void ud_encode(struct ud *u, const struct seg *seg, const struct destination *to, struct rc_packet *out)
{
    struct bth b = {
        .service = BTH_UD,
        .op = BTH_SEND,
        .flags = BTH_FIRST | BTH_LAST | BTH_MIGRATION,
        .pkey = u->attr.pkey,
        .qpn = to->qpn & BTH_MASK24,
        .psn = u->psn,
        .q_key = to->q_key & UD_OWN_Q_KEY ? u->attr.q_key : to->q_key,
        .source_qpn = u->attr.number,
        .immediate = (uint32_t)seg->immediate,
        .length = seg->length,
    };

    b.flags |= seg->flags & SEG_SOLICITED ? BTH_SOLICITED : 0u;
    b.flags |= seg->flags & SEG_WITH_IMM ? BTH_IMMEDIATE : 0u;
    u->psn = (u->psn + 1) & BTH_MASK24;
    out->length = seg->length;
    out->head_length = bth_encode(&b, out->head);
}

bool ud_has_output(const struct ud *u)
{
    return life_is_open(&u->life) && u->sends && !u->is_draining && qp_has_output(u->life.qp);
}

bool ud_emit(struct ud *u, struct rc_packet *out, const struct destination **to, uint64_t now_us)
{
    struct qp *qp = u->life.qp;
    struct seg seg;
    uint32_t at;

    out->emit.spans = 0;
    out->emit.may_change = out->emit.volatile_data = false;
    if (life_is_open(&u->life) && qp->tx_pos != u->left)
        qp_sent(qp, u->left); /* the packet of the call before has left */
    ud_check(u, now_us);
    if (!ud_has_output(u) || !qp_take_request(qp, &at, &seg) || !qp_gather_request(qp, at, 0, seg.length, &out->emit)) {
        ud_check(u, now_us);
        return false;
    }
    qp_request_ends(qp, at, ++u->left);
    *to = qp_destination(qp, at);
    ud_encode(u, &seg, *to, out);
    return true;
}

/* --- time -------------------------------------------------------------------------------------------------------- */

uint64_t ud_deadline(const struct ud *u)
{
    return life_deadline(&u->life);
}

void ud_tick(struct ud *u, uint64_t now_us)
{
    ud_check(u, now_us);
    (void)life_tick(&u->life, now_us);
}
