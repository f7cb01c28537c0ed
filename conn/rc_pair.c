/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_pair.c - the life of a connected queue pair of RoCE: its parts, its failures, its time. */
#include "conn/rc_pair.h"

#include "conn/rc_pair_inner.h"

static uint32_t request_slots(const struct qp *qp)
{
    return qp->sq.mask + 1;
}

size_t rc_pair_size(const struct rc_pair_attr *attr, const struct qp *qp)
{
    return request_slots(qp) * sizeof(struct rc_request) + rc_responder_size(attr->responder.reads);
}

void rc_pair_begin(struct rc_pair *p, bool active, const struct life_limits *limits, struct qp *qp, uint64_t now_us)
{
    *p = (struct rc_pair){.attr.limits = *limits};
    life_init(&p->life, active, limits, now_us);
    p->life.qp = qp;
}

void rc_pair_connect(struct rc_pair *p, const struct rc_pair_attr *attr, struct qp *qp, uint32_t ord, void *buffer)
{
    struct rc_request *ring = buffer;

    p->attr = *attr;
    p->attr.responder.mtu = attr->requester.mtu;
    p->attr.responder.unreliable = attr->service == BTH_UC;
    rc_requester_init(&p->requester, &p->attr.requester, ring, request_slots(qp));
    rc_responder_init(&p->responder, &p->attr.responder, ring + request_slots(qp));
    p->life.qp = qp;
    qp_connect(qp, attr->responder.reads, ord, 0);
    life_ready(&p->life);
}

void rc_pair_fini(struct rc_pair *p)
{
    rc_responder_fini(&p->responder);
}

void rc_pair_init(struct rc_pair *p, const struct rc_pair_attr *attr, struct qp *qp, uint32_t ord, void *buffer,
                  uint64_t now_us)
{
    rc_pair_begin(p, true, &attr->limits, qp, now_us);
    rc_pair_connect(p, attr, qp, ord, buffer);
    life_established(&p->life);
}

void rc_pair_start(struct rc_pair *p, const struct rc_requester_attr *attr, uint32_t ord)
{
    const struct rc_requester_attr before = p->attr.requester;

    p->attr.requester = *attr;
    p->attr.requester.mtu = before.mtu;
    p->attr.requester.window = before.window;
    rc_requester_init(&p->requester, &p->attr.requester, p->requester.ring, p->requester.mask + 1);
    p->life.qp->attr.ord = ord;
    qp_sent(p->life.qp, p->requester.una); /* what was noticed before counts from another PSN */
    p->is_waiting = false;
}

void rc_pair_communicates(struct rc_pair *p)
{
    if (p->is_waiting)
        qp_tell(p->life.qp, QP_COMMUNICATES);
    p->is_waiting = false;
}

static void notify_drained(struct rc_pair *p)
{
    if (!p->is_draining || p->is_drained || p->requester.una != p->requester.end || p->life.qp->state != QP_READY)
        return;
    p->is_drained = true;
    qp_tell(p->life.qp, QP_DRAINED);
}

void rc_pair_drain(struct rc_pair *p, bool drains, uint64_t now_us)
{
    p->is_draining = drains;
    p->is_drained = false;
    rc_requester_ask(&p->requester);
    rc_pair_settle(p, now_us);
}

void rc_pair_close(struct rc_pair *p, uint64_t now_us)
{
    rc_requester_ask(&p->requester);
    life_close(&p->life, now_us);
}

void rc_pair_restart(struct rc_pair *p, uint64_t now_us)
{
    rc_pair_check(p, now_us);
    qp_restart_sends(p->life.qp);
    rc_pair_drain(p, false, now_us);
}

/* --- failures ---------------------------------------------------------------------------------------------------- */

enum bth_nak rc_pair_reason(enum fault fault)
{
    switch (fault) {
    case FAULT_KEY:
    case FAULT_DOMAIN:
    case FAULT_RIGHT:
    case FAULT_BOUNDS:
    case FAULT_WRAP:
    case FAULT_ABSENT:
    case FAULT_INVALIDATE:
        return NAK_REMOTE_ACCESS;
    case FAULT_LOCAL_KEY:
    case FAULT_CQ_FULL:
    case FAULT_MEMORY:
        return NAK_REMOTE_OPERATIONAL;
    default:
        return NAK_INVALID_REQUEST;
    }
}

void rc_pair_refuse(struct rc_pair *p, const struct fault_note *note, enum bth_nak reason, uint64_t now_us)
{
    if (!p->responder.refused)
        rc_responder_refuse(&p->responder, reason);
    life_fail(&p->life, note, p->attr.service == BTH_RC, now_us);
}

static const struct end {
    enum fault fault;
    enum rddp_wc_status status;
} ends[] = {
    [RC_RETRY_EXCEEDED] = {FAULT_RETRY, RDDP_WC_RETRY_EXC_ERR},
    [RC_RNR_EXCEEDED] = {FAULT_RNR, RDDP_WC_RNR_RETRY_EXC_ERR},
    [RC_NAK] = {FAULT_NAK, RDDP_WC_REM_INV_REQ_ERR},
    [RC_BAD_RESPONSE] = {FAULT_RESPONSE, RDDP_WC_BAD_RESP_ERR},
};

static const enum rddp_wc_status refusals[NAK_REASONS] = {
    [NAK_SEQUENCE] = RDDP_WC_REM_INV_REQ_ERR,
    [NAK_INVALID_REQUEST] = RDDP_WC_REM_INV_REQ_ERR,
    [NAK_REMOTE_ACCESS] = RDDP_WC_REM_ACCESS_ERR,
    [NAK_REMOTE_OPERATIONAL] = RDDP_WC_REM_OP_ERR,
};

/* The requester has come to its end: the request that it is about gets its status, all others are flushed. */
static void end_of_requests(struct rc_pair *p, uint64_t now_us)
{
    const struct rc_requester *q = &p->requester;
    enum rddp_wc_status status = q->why == RC_NAK ? refusals[q->reason] : ends[q->why].status;
    struct fault_note note = {.fault = ends[q->why].fault, .got = q->reason, .want = q->reason};
    struct seg seg;
    uint32_t at;

    if (rc_requester_blamed(q, &at)) {
        qp_describe_request(p->life.qp, at, &seg);
        qp_blame_request(p->life.qp, at, status);
        note.op = seg.op;
        note.key = seg.key;
        note.offset = seg.offset;
        note.length = seg.length;
    }
    life_fail(&p->life, &note, false, now_us);
}

void rc_pair_settle(struct rc_pair *p, uint64_t now_us)
{
    struct qp *qp = p->life.qp;

    if (!life_is_open(&p->life))
        return;
    if (qp->tx_pos != p->requester.una)
        qp_sent(qp, p->requester.una);
    notify_drained(p);
    if (p->requester.why && qp->state == QP_READY) /* else a full CQ has ended it, and its requests are gone */
        end_of_requests(p, now_us);
    else
        rc_pair_check(p, now_us);
}

/* A request failed here, on an unreliable connection: what was posted behind it is flushed, and has no packets left. */
static void flush_requests(struct rc_pair *p, uint64_t now_us)
{
    qp_settle(p->life.qp);
    rc_requester_forget(&p->requester, now_us);
    qp_sent(p->life.qp, p->requester.una);
}

void rc_pair_check_all(struct rc_pair *p, uint64_t now_us)
{
    struct qp *qp = p->life.qp;
    uint32_t next = qp ? qp->sq.next : 0;
    enum fault fault = life_resume(&p->life, now_us);

    if (!qp)
        return;
    if (!life_is_open(&p->life)) {
        qp_settle(qp); /* what was posted since */
        return;
    }
    if (qp->sq.next != next) /* requests that send nothing complete when all before them is acknowledged */
        rc_requester_ask(&p->requester);
    if (fault) {
        rc_pair_refuse(p, &qp->note, rc_pair_reason(fault), now_us);
    } else if (qp->state == QP_ERROR) {
        qp_settle(qp);
        life_fail(&p->life, &qp->note, false, now_us);
    } else if (qp->sends_failed) {
        flush_requests(p, now_us);
    }
}

/* --- time -------------------------------------------------------------------------------------------------------- */

static uint64_t rc_pair_earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t rc_pair_deadline(const struct rc_pair *p)
{
    uint64_t at = life_deadline(&p->life);

    if (!life_is_open(&p->life))
        return at;
    at = rc_pair_earlier(at, rc_responder_deadline(&p->responder));
    return rc_pair_earlier(at, rc_requester_deadline(&p->requester));
}

void rc_pair_tick(struct rc_pair *p, uint64_t now_us)
{
    if (p->attr.service == BTH_UC)
        rc_requester_left(&p->requester, now_us); /* and is not waited for */
    else if (life_is_open(&p->life))
        rc_requester_tick(&p->requester, now_us);
    rc_pair_settle(p, now_us);
    (void)life_tick(&p->life, now_us);
}
