/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* model.c - what was requested at each end, and whether it was done. */
#include "tests/sim/lib/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/report.h"

void party_init(struct party *p, struct stack *stack, struct party *peer, uint64_t seed)
{
    *p = (struct party){.stack = stack, .peer = peer, .rng = {seed}, .next_wr = 1};
}

void request_free(struct request *r)
{
    for (uint32_t i = 0; i < r->locals; i++)
        area_release(&r->local[i]);
    area_release(&r->remote);
    free(r->octets);
    free(r->control);
    free(r);
}

void receive_free(struct receive *r)
{
    for (uint32_t i = 0; i < r->areas; i++)
        area_release(&r->area[i]);
    free(r->control);
    free(r);
}

void party_fini(struct party *p)
{
    struct request *r;
    struct receive *in;

    while ((r = p->oldest)) {
        p->oldest = r->next;
        request_free(r);
    }
    while ((in = p->first_receive)) {
        p->first_receive = in->next;
        receive_free(in);
    }
}

/* --- posting ------------------------------------------------------------------------------------------------- */

/* The peer's receive will contain what is sent, as far as it fits. */
static void promise(struct party *p, struct request *r)
{
    uint32_t done = 0;

    r->receive = p->peer->promised;
    p->peer->promised = r->receive->next;
    if (!is_send_opcode(r->opcode))
        return;
    for (uint32_t i = 0; i < r->receive->areas && done < r->length; i++) {
        struct area *a = &r->receive->area[i];

        a->octets = r->octets + done;
        a->filled = r->length - done < a->length ? r->length - done : a->length;
        done += a->filled;
    }
}

/* A Write of a sequence may wait for the messages before it, or for none. */
static struct rddp_send_wr wr_of(struct request *r, struct rddp_sge *sge, const struct wire *wire)
{
    struct rddp_send_wr wr = {
        .wr_id = r->wr_id,
        .sg_list = sge,
        .num_sge = (int)r->locals,
        .opcode = posted_as(r),
        .imm_data = r->imm_data,
        .send_flags = r->flags,
        .remote_addr = r->remote.region ? area_offset(&r->remote) : 0,
        .rkey = r->remote.region ? r->remote.region->mr.key : 1,
        .invalidate_rkey = r->invalid_key,
        .control = r->control,
        .control_length = r->control_length,
        .response_control = r->response,
        .response_size = sizeof(r->response),
    };

    if (wire->numbering == SEG_NUMBERS_SEQUENCE && r->opcode == RDDP_WR_RDMA_WRITE && r->wr_id % 3) {
        wr.send_flags |= RDDP_SEND_ORDER;
        wr.order = (uint32_t)(r->wr_id % 5);
    }
    if (is_word_opcode(r->opcode))
        word_fill(&wr, r);
    for (uint32_t i = 0; i < r->locals; i++) {
        sge[i] = area_sge(&r->local[i]);
        if (r->flags & RDDP_SEND_INLINE)
            sge[i].addr = (uint64_t)(uintptr_t)r->local[i].region->mr.base + r->local[i].at;
    }
    if (r->wrong_here) {
        sge[0] = r->outlaw;
        wr.num_sge = 1;
    } else if (r->wrong) {
        wr.remote_addr = r->outlaw.addr;
        wr.rkey = r->outlaw.lkey;
    }
    return wr;
}

bool party_post(struct party *p, struct request *r)
{
    struct rddp_sge sge[QP_SGE_MAX];
    struct rddp_send_wr wr;
    int error;

    r->wr_id = p->next_wr;
    wr = wr_of(r, sge, p->stack->attr.wire);
    error = qp_post_send(&p->stack->qp, &wr);
    qp_settle(&p->stack->qp);
    if (error == -ENOMEM)
        return false;
    if (error)
        report_failure("qp_post_send() refuses request %llu", (unsigned long long)r->wr_id);
    p->next_wr++;
    p->counts.requests++;
    r->signaled = r->flags & RDDP_SEND_SIGNALED || p->stack->attr.qp.signal_all;
    if (p->newest)
        p->newest->next = r;
    else
        p->oldest = r;
    p->newest = r;
    r->takes = is_send_opcode(r->opcode) || r->with_imm || (r->control && p->peer->stack->attr.qp.rdma_control);
    p->unasked += r->takes ? 0 : r->control_length;
    if (r->takes && p->peer->promised && !r->wrong_here)
        promise(p, r);
    /* The application may reuse the memory of an inline request at once. */
    for (uint32_t i = 0; r->flags & RDDP_SEND_INLINE && i < r->locals; i++) {
        area_scribble(&r->local[i], &p->rng);
        area_release(&r->local[i]);
    }
    return true;
}

bool party_post_receive(struct party *p, struct receive *in)
{
    struct rddp_sge sge[QP_SGE_MAX];
    struct rddp_recv_wr wr = {.wr_id = p->next_wr, .sg_list = sge, .num_sge = (int)in->areas};
    int error;

    wr.control = in->control;
    wr.control_size = in->control_size;
    in->wr_id = wr.wr_id;
    for (uint32_t i = 0; i < in->areas; i++)
        sge[i] = area_sge(&in->area[i]);
    error = p->stack->attr.shared ? rq_post(&p->stack->srq, &wr) : qp_post_recv(&p->stack->qp, &wr);
    qp_settle(&p->stack->qp);
    if (error == -ENOMEM)
        return false;
    if (error)
        report_failure("a receive is refused");
    p->next_wr++;
    p->counts.receives++;
    if (p->last_receive)
        p->last_receive->next = in;
    else
        p->first_receive = in;
    p->last_receive = in;
    p->awaited = p->awaited ? p->awaited : in;
    p->promised = p->promised ? p->promised : in;
    return true;
}

/* --- effects that are known ---------------------------------------------------------------------------------- */

static void forget_done(struct party *p)
{
    struct request **link = &p->oldest, *r, *last = NULL;

    while ((r = *link)) {
        if (r->completed && r->landed && (r->told || !r->takes)) {
            *link = r->next;
            request_free(r);
        } else {
            last = r;
            link = &r->next;
        }
    }
    p->newest = last;
}

/* Everything that this end sent before `until` (NULL: all) has been placed at the other end. */
static void land_before(struct party *p, const struct request *until)
{
    for (struct request *r = p->oldest; r && r != until; r = r->next) {
        if (r->landed || r->opcode != RDDP_WR_RDMA_WRITE)
            continue;
        if (r->octets && r->remote.region && !area_is_filled(&r->remote))
            report_failure("a Write of %u octets, request %llu, is not placed though what came later was delivered",
                           r->length, (unsigned long long)r->wr_id);
        if (r->remote.region && !r->remote.region->hot)
            area_settle(&r->remote);
        area_release(&r->remote);
        r->landed = true;
    }
}

static void check_invalid(struct stack *owner, struct request *r)
{
    if (r->invalidates->removed)
        return;
    if (r->invalidates->mr.valid)
        report_failure("the key that request %llu invalidates is valid", (unsigned long long)r->wr_id);
    region_renew(r->invalidates, &owner->mrs, &owner->rng);
}

static void complete_well(struct party *p, struct request *r)
{
    r->completed = true;
    p->counts.octets += r->length;
    control_taken_back(r);
    if (r->wrong && r->opcode == RDDP_WR_RDMA_READ)
        report_failure("a wrong request completes well");
    switch (r->opcode) {
    case RDDP_WR_RDMA_READ:
        if (r->octets && r->locals && !area_is_filled(&r->local[0]))
            report_failure("a Read of %u octets, request %llu, brought others", r->length,
                           (unsigned long long)r->wr_id);
        if (r->locals)
            area_settle(&r->local[0]);
        area_release(&r->remote);
        land_before(p, r);
        r->landed = true;
        break;
    case RDDP_WR_ATOMIC_CMP_AND_SWP:
    case RDDP_WR_ATOMIC_FETCH_AND_ADD:
        word_check(r);
        land_before(p, r);
        r->landed = true;
        break;
    case RDDP_WR_LOCAL_INV:
        check_invalid(p->stack, r);
        r->landed = true;
        break;
    default:
        for (uint32_t i = 0; i < r->locals; i++)
            if (r->local[i].region)
                area_scribble(&r->local[i], &p->rng);
        break;
    }
    for (uint32_t i = 0; i < r->locals; i++)
        area_release(&r->local[i]);
}

/* A failed Read may have placed some octets; its sink stays claimed. Sources may be reused, because what is still being
 * sent was copied. */
static void complete_badly(struct party *p, struct request *r, const struct rddp_wc *wc)
{
    r->completed = true;
    p->counts.flushed++;
    if (r->wr_id < p->drained_before)
        report_failure("request %llu was posted before the close and fails", (unsigned long long)r->wr_id);
    if (r->wrong_here && wc->status != RDDP_WC_LOC_PROT_ERR)
        report_failure("request %llu names memory that is not ours and completes as %d", (unsigned long long)r->wr_id,
                       (int)wc->status);
    if (wc->status != RDDP_WC_WR_FLUSH_ERR && p->culprit_seen)
        report_failure("two requests are to blame, %llu is the second", (unsigned long long)r->wr_id);
    p->culprit_seen |= wc->status != RDDP_WC_WR_FLUSH_ERR;
    p->send_failed = true;
    if (r->opcode == RDDP_WR_RDMA_READ || is_word_opcode(r->opcode))
        return;
    for (uint32_t i = 0; i < r->locals; i++) {
        if (r->local[i].region)
            area_scribble(&r->local[i], &p->rng);
        area_release(&r->local[i]);
    }
}

/* --- completions of the send queue --------------------------------------------------------------------------- */

static void check_send_wc(const struct party *p, const struct request *r, const struct rddp_wc *wc)
{
    if (wc->status != RDDP_WC_SUCCESS)
        return;
    if (p->send_failed)
        report_failure("request %llu completes well after another did not", (unsigned long long)r->wr_id);
    if (!r->signaled)
        report_failure("request %llu did not ask for its completion", (unsigned long long)r->wr_id);
    if (wc->opcode != completes_as(r->opcode) || wc->vendor_err)
        report_failure("the completion of request %llu says opcode %d, fault %u", (unsigned long long)r->wr_id,
                       (int)wc->opcode, wc->vendor_err);
    if (r->opcode == RDDP_WR_RDMA_READ && wc->byte_len != r->length)
        report_failure("a Read of %u octets says %u", r->length, wc->byte_len);
    control_check_response(r, wc);
}

/* Requests complete in posting order (RDMAP-5.5-04). An unsignalled one is known to be done by a later completion;
 * after the first failure every request has its own. */
static void completed_send(struct party *p, const struct rddp_wc *wc)
{
    struct request *r = p->oldest;

    for (; r && r->wr_id != wc->wr_id; r = r->next) {
        if (r->completed)
            continue;
        if (r->signaled || p->send_failed)
            report_failure("request %llu completes before %llu", (unsigned long long)wc->wr_id,
                           (unsigned long long)r->wr_id);
        complete_well(p, r);
    }
    if (!r || r->completed)
        report_failure("request %llu completes twice, or was never posted", (unsigned long long)wc->wr_id);
    check_send_wc(p, r, wc);
    if (wc->status == RDDP_WC_SUCCESS)
        complete_well(p, r);
    else
        complete_badly(p, r, wc);
    forget_done(p);
}

/* --- completions of receives --------------------------------------------------------------------------------- */

/* Returns the peer's oldest undelivered request that takes a receive. */
static struct request *next_taker(struct party *p)
{
    struct request *r = p->oldest;

    while (r && (r->told || !r->takes))
        r = r->next;
    return r;
}

static void check_delivery(struct party *p, struct receive *in, struct request *r, const struct rddp_wc *wc)
{
    bool invalidates = r->opcode == RDDP_WR_SEND_WITH_INV;

    if (r->receive != in)
        report_failure("receive %llu got another message than the next", (unsigned long long)in->wr_id);
    if (wc->byte_len != r->length || wc->opcode != received_as(r->opcode) || wc->vendor_err)
        report_failure("request %llu of %u octets is received as opcode %d of %u", (unsigned long long)r->wr_id,
                       r->length, (int)wc->opcode, wc->byte_len);
    control_check(in, r, wc);
    for (uint32_t i = 0; i < in->areas; i++) {
        if (in->area[i].octets && !area_is_filled(&in->area[i]))
            report_failure("the Send of request %llu brought other octets", (unsigned long long)r->wr_id);
        if (!in->area[i].octets && !area_is_untouched(&in->area[i]))
            report_failure("octets behind the Send of request %llu were touched", (unsigned long long)r->wr_id);
        area_settle(&in->area[i]);
        area_release(&in->area[i]);
    }
    if (invalidates != !!(wc->wc_flags & RDDP_WC_WITH_INV) || (invalidates && wc->invalidated_rkey != r->invalid_key))
        report_failure("the Send of request %llu says to have invalidated another key", (unsigned long long)r->wr_id);
    if (invalidates)
        check_invalid(p->stack, r);
}

/* Receives complete in posting order, each by the next message that takes one, after everything that was sent before
 * it. Returns whether it should make an event. */
static bool completed_receive(struct party *p, const struct rddp_wc *wc)
{
    struct receive *in = p->awaited;
    struct request *r = next_taker(p->peer);
    bool solicited;

    if (!in || in->wr_id != wc->wr_id)
        report_failure("receive %llu completes out of order, or twice", (unsigned long long)wc->wr_id);
    in->completed = true;
    p->awaited = in->next;
    if (wc->status != RDDP_WC_SUCCESS) {
        p->recv_failed = true;
        return true;
    }
    if (p->recv_failed)
        report_failure("receive %llu completes well after another did not", (unsigned long long)wc->wr_id);
    if (!r)
        report_failure("receive %llu completes though nothing was sent", (unsigned long long)wc->wr_id);
    check_delivery(p, in, r, wc);
    land_before(p->peer, r->next);
    r->landed |= r->opcode != RDDP_WR_RDMA_READ;
    r->told = true;
    p->counts.told += !is_send_opcode(r->opcode);
    solicited = r->flags & RDDP_SEND_SOLICITED;
    forget_done(p->peer);
    return solicited;
}

/* Armed for solicited completions, the CQ makes one event for the first of them or for a failure, and none for others
 * (RDMAP-5.3-02). Checked when everything up to that completion was polled. */
static void check_event(struct party *p)
{
    bool is_known = p->event_due || cq_is_empty(&p->stack->recv_cq);

    if (p->stack->recv_cq.overflowed)
        return;
    if (p->armed && is_known && p->stack->events != p->event_due)
        report_failure("%u events came, and should %d", p->stack->events, p->event_due);
    if (p->armed ? !p->event_due : !rng_one_in(&p->rng, 4))
        return;
    p->armed = !p->armed;
    p->stack->events = 0;
    p->event_due = false;
    p->armed_at = p->stack->recv_cq.head;
    if (p->armed)
        cq_arm(&p->stack->recv_cq, CQ_SOLICITED);
}

bool party_poll(struct party *p)
{
    struct rddp_wc wc[16];
    uint32_t first = p->stack->recv_cq.tail;
    uint32_t n = cq_poll(&p->stack->recv_cq, wc, rng_between(&p->rng, 1, 16)), any = n;

    for (uint32_t i = 0; i < n; i++)
        if (completed_receive(p, &wc[i]) && first + i - p->armed_at < STACK_CQE)
            p->event_due = p->armed;
    check_event(p);
    n = cq_poll(&p->stack->send_cq, wc, rng_between(&p->rng, 1, 16));
    for (uint32_t i = 0; i < n; i++)
        completed_send(p, &wc[i]);
    return any + n;
}

bool party_is_idle(const struct party *p)
{
    for (const struct request *r = p->oldest; r; r = r->next)
        if (!r->completed || !r->landed || (r->takes && !r->told))
            return false;
    return true;
}

/* --- the end ------------------------------------------------------------------------------------------------- */

static void judge_queues(const struct party *p)
{
    bool lost = p->stack->send_cq.overflowed || p->stack->recv_cq.overflowed;

    for (const struct request *r = p->oldest; r && !lost; r = r->next)
        if (!r->completed && (r->signaled || p->send_failed))
            report_failure("request %llu never completes", (unsigned long long)r->wr_id);
    for (const struct receive *in = p->awaited; in && !lost && !p->stack->attr.shared; in = in->next)
        report_failure("receive %llu never completes", (unsigned long long)in->wr_id);
}

/* Was this request placed? In order, requests sent after the break have changed nothing. */
static bool is_placed(const struct request *r, bool *is_untouched)
{
    bool filled = true;

    *is_untouched = true;
    if (!r->octets)
        return true;
    if (r->opcode == RDDP_WR_RDMA_WRITE && r->remote.region) {
        filled = area_is_filled(&r->remote);
        *is_untouched = area_is_untouched(&r->remote);
    }
    for (uint32_t i = 0; r->receive && i < r->receive->areas; i++) {
        const struct area *a = &r->receive->area[i];

        if (!a->region || !a->octets)
            continue;
        filled &= area_is_filled(a);
        *is_untouched &= area_is_untouched(a);
    }
    return filled;
}

static void judge_order(const struct party *p)
{
    bool broken = false, placed, is_untouched;

    for (const struct request *r = p->oldest; r; r = r->next) {
        if (r->opcode == RDDP_WR_RDMA_READ || r->opcode == RDDP_WR_LOCAL_INV || is_word_opcode(r->opcode) || r->landed)
            continue;
        placed = is_placed(r, &is_untouched);
        if (broken && !is_untouched)
            report_failure("request %llu is placed though an earlier one is not", (unsigned long long)r->wr_id);
        broken |= !placed || r->wrong;
    }
}

void party_judge(struct party *p)
{
    judge_queues(p);
    control_judge(p);
    word_judge(p);
    if (p->stack->attr.wire->numbering == SEG_NUMBERS_QUEUES && !p->peer->stack->packets)
        judge_order(p);
    for (int i = 0; i < STACK_REGIONS; i++) {
        const char *wrong = region_wrong(&p->stack->region[i]);

        if (wrong)
            report_failure("%s (region %d)", wrong, i);
        if (p->stack->region[i].mr.sending)
            report_failure("region %d is lent without end", i);
    }
}
