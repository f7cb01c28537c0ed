/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.c - draws control data, and checks what arrived. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/model.h"
#include "tests/sim/lib/report.h"

enum { GUARD = 8, GUARD_OCTET = 0x5c };

void request_control(struct request *r, uint16_t length, struct rng *rng)
{
    r->control = malloc(2 * (size_t)length + 1);
    assert(r->control);
    r->control_length = length;
    rng_fill(rng, r->control, length);
    memcpy(r->control + length, r->control, length);
}

void receive_control(struct receive *in, uint32_t space)
{
    in->control = malloc(space + GUARD);
    assert(in->control);
    in->control_size = space;
    memset(in->control, GUARD_OCTET, space + GUARD);
}

void request_immediate(struct request *r, struct rng *rng)
{
    r->with_imm = true;
    r->imm_data = (uint32_t)rng_next(rng);
}

enum rddp_wr_opcode posted_as(const struct request *r)
{
    if (!r->with_imm)
        return r->opcode;
    return r->opcode == RDDP_WR_SEND ? RDDP_WR_SEND_WITH_IMM : RDDP_WR_RDMA_WRITE_WITH_IMM;
}

void control_taken_back(struct request *r)
{
    if (r->control)
        memset(r->control, GUARD_OCTET, r->control_length);
}

/* As much as there was room for must have arrived, and nothing beyond. */
void control_check(const struct receive *in, const struct request *r, const struct rddp_wc *wc)
{
    uint32_t n = r->control_length < in->control_size ? r->control_length : in->control_size;

    if (r->with_imm != !!(wc->wc_flags & RDDP_WC_WITH_IMM) || (r->with_imm && wc->imm_data != r->imm_data))
        report_failure("request %llu brought other immediate data", (unsigned long long)r->wr_id);
    if (wc->control_length != r->control_length)
        report_failure("%u octets of control data of request %llu are said to be %u", (unsigned)r->control_length,
                       (unsigned long long)r->wr_id, wc->control_length);
    if (!in->control)
        return;
    if (n && memcmp(in->control, r->control + r->control_length, n))
        report_failure("request %llu brought other control data", (unsigned long long)r->wr_id);
    for (; n < in->control_size + GUARD; n++)
        if (in->control[n] != GUARD_OCTET)
            report_failure("octets behind the control data of request %llu were touched", (unsigned long long)r->wr_id);
}

void control_check_response(const struct request *r, const struct rddp_wc *wc)
{
    static const uint8_t nothing[sizeof(r->response)];

    if (wc->control_length || memcmp(r->response, nothing, sizeof(nothing)))
        report_failure("the response to request %llu brought control data", (unsigned long long)r->wr_id);
}

/* Control data without a request must be counted once. */
void control_judge(const struct party *p)
{
    uint64_t dropped = p->stack->qp.control_dropped, sent = p->peer->unasked;

    if (p->stack->detached)
        return;
    if (dropped > sent || (dropped < sent && party_is_idle(p->peer)))
        report_failure("%llu octets of control data were dropped, of %llu", (unsigned long long)dropped,
                       (unsigned long long)sent);
}
