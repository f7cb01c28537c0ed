/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flushed_memory.c - a Send leaves from where it lies, and one posted with it fails: what was flushed is the
 * application's again, and what it writes there does not leave. */
#include <string.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/manual.h"

enum { LENGTH = 32768, BEFORE = 1, AFTER = 2, ROUNDS = 4 };

static struct {
    struct rddp_mr *mr;
    uint8_t octets[LENGTH];
} ours, theirs;

static unsigned flushed;

/* As another thread that polls while this one posts: it sees each completion at once. */
static void take_flushed(struct cq *cq)
{
    struct rddp_wc wc;

    cq_arm(cq, CQ_NEXT);
    while (cq_poll(cq, &wc, 1)) {
        assert_int_not_equal(wc.status, RDDP_WC_SUCCESS);
        memset(ours.octets, AFTER, LENGTH);
        flushed++;
    }
}

static void register_both(void)
{
    ours.mr = rddp_reg_mr(here.pd, ours.octets, LENGTH, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_STABLE);
    theirs.mr = rddp_reg_mr(there.pd, theirs.octets, LENGTH, RDDP_ACCESS_LOCAL_WRITE);
    assert_non_null(ours.mr);
    assert_non_null(theirs.mr);
    memset(ours.octets, BEFORE, LENGTH);
}

static struct rddp_sge all_of(const uint8_t *octets, const struct rddp_mr *mr)
{
    return (struct rddp_sge){.addr = (uintptr_t)octets, .length = LENGTH, .lkey = mr ? rddp_mr_key(mr) : 0};
}

static void receive_all(void)
{
    struct rddp_sge sge = all_of(theirs.octets, theirs.mr);
    struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(rddp_post_recv(there.qp, &wr, &bad), 0);
}

static struct rddp_wc take(struct manual_end *end)
{
    struct rddp_wc wc;

    while (!rddp_poll_cq(end->cq, 1, &wc))
        continue;
    return wc;
}

static void is_not_sent(void **state)
{
    struct rddp_sge sge[2];
    struct rddp_send_wr wr[2] = {{.opcode = RDDP_WR_SEND, .num_sge = 1}, {.opcode = RDDP_WR_SEND, .num_sge = 1}}, *bad;
    void (*notify)(struct cq * cq);
    struct rddp_wc wc;

    (void)state;
    register_both();
    for (int i = 0; i < ROUNDS; i++) { /* nothing else happens on the connection then */
        manual_send(&here, &there);
        assert_int_equal(take(&there).status, RDDP_WC_SUCCESS);
        assert_int_equal(rddp_progress(here.context, 0), 0);
    }
    notify = here.cq->cq.notify;
    here.cq->cq.notify = take_flushed;
    cq_arm(&here.cq->cq, CQ_NEXT);
    sge[0] = all_of(ours.octets, ours.mr);
    sge[1] = all_of(ours.octets, NULL);
    for (int i = 0; i < 2; i++)
        wr[i].sg_list = &sge[i];
    wr[0].next = &wr[1];
    receive_all();
    assert_int_equal(rddp_post_send(here.qp, wr, &bad), 0);
    wc = take(&there);
    assert_int_equal(flushed, 2);
    for (uint32_t i = 0; i < LENGTH && wc.status == RDDP_WC_SUCCESS; i++)
        assert_int_equal(theirs.octets[i], BEFORE);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    here.cq->cq.notify = notify;
    assert_int_equal(rddp_dereg_mr(ours.mr), 0);
    assert_int_equal(rddp_dereg_mr(theirs.mr), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(is_not_sent, manual_open, manual_close)};

    return cmocka_run_group_tests_name("flushed_memory", tests, NULL, NULL);
}
