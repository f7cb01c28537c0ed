/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_faults.c - two queue pairs of RoCE on which everything goes wrong that can: keys that are wrong at either end,
 * short receives or none, full CQs, regions that are invalidated, retries that are used up, drains and restarts; and an
 * owner who takes a completion at once, and posts again to its place. What remains true: completions come in order,
 * each once; a queue pair that has failed is not taken for one that goes on, nor for a drained one; no place stays in
 * use; and whoever has said that nothing can leave now does not say at once that something can. core/packets.c asserts
 * that no request is described that is not under way.
 *
 * SIM_RUNS=100000 sets the number of runs; SIM_SEED=0x1234 sets the first seed. A failed run prints its seed. */
#include "tests/lib/rc_net.h"

#include "tests/lib/seeds.h"

enum { RUNS = 4000, STEPS = 120, REGIONS = 6, SPACE = 4096, LONGEST = 3000, SHORT = 64, BATCH = 16, POLLS = 40 };

static const uint64_t long_us = UINT64_C(4000000000);

static struct {
    struct rc_net net;
    struct mr *mr[REGIONS]; /* the last one grants the peer nothing */
    uint32_t posted[2], completed[2];
    bool is_unreliable, posts_at_once;
} w;

/* --- the application ---------------------------------------------------------------------------------------------- */

static struct mr *any_region(void)
{
    return w.mr[rng_below(&w.net.rng, REGIONS - 1)];
}

static enum rddp_wr_opcode any_opcode(void)
{
    static const enum rddp_wr_opcode usual[] = {RDDP_WR_SEND, RDDP_WR_RDMA_WRITE, RDDP_WR_RDMA_READ,
                                                RDDP_WR_SEND_WITH_IMM, RDDP_WR_ATOMIC_FETCH_AND_ADD};
    static const enum rddp_wr_opcode rare[] = {RDDP_WR_LOCAL_INV, RDDP_WR_SEND_WITH_INV, RDDP_WR_RDMA_WRITE_WITH_IMM};

    return rng_one_in(&w.net.rng, 30) ? rare[rng_below(&w.net.rng, 3)] : usual[rng_below(&w.net.rng, 5)];
}

static uint32_t length_of(enum rddp_wr_opcode opcode)
{
    if (opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD)
        return 8;
    return rng_below(&w.net.rng, rng_one_in(&w.net.rng, 3) ? LONGEST : SHORT);
}

/* Posts anything; it may be refused. */
static void post_any(int i)
{
    struct rng *r = &w.net.rng;
    enum rddp_wr_opcode opcode = any_opcode();
    const struct mr *remote = any_region();
    struct rddp_sge sge = piece_of(any_region(), 0, length_of(opcode));
    struct rddp_send_wr wr = {
        .wr_id = w.posted[i],
        .opcode = opcode,
        .sg_list = &sge,
        .num_sge = opcode != RDDP_WR_LOCAL_INV,
        .send_flags = (rng_one_in(r, 3) ? 0u : RDDP_SEND_SIGNALED) | (rng_one_in(r, 8) ? RDDP_SEND_FENCE : 0u),
        .remote_addr = remote->start,
        .compare_add = 1,
    };

    if (opcode == RDDP_WR_LOCAL_INV || opcode == RDDP_WR_SEND_WITH_INV)
        wr.invalidate_rkey = remote->key;
    else
        wr.rkey = rng_one_in(r, 60) ? w.mr[REGIONS - 1]->key : rng_one_in(r, 60) ? 0x77777 : remote->key;
    if (rng_one_in(r, 60))
        sge.lkey ^= 0x80000;
    if (sge.length <= SHORT && (opcode == RDDP_WR_SEND || opcode == RDDP_WR_RDMA_WRITE) && rng_one_in(r, 2))
        wr.send_flags |= RDDP_SEND_INLINE;
    if (!qp_post_send(&w.net.end[i].side.qp, &wr))
        w.posted[i]++;
}

static void receive_any(int i)
{
    struct rddp_sge sge = piece_of(any_region(), 0, rng_one_in(&w.net.rng, 10) ? 10 : SPACE);

    for (uint32_t n = rng_below(&w.net.rng, 6); n; n--)
        (void)post_recv(&w.net.end[i].side, 1, &sge, 1);
}

/* Returns how many completions of requests there were. */
static uint32_t poll_both(int i, uint32_t most)
{
    struct side *side = &w.net.end[i].side;
    struct rddp_wc wc[BATCH];
    uint32_t n;

    cq_poll(&side->recv_cq, wc, most);
    n = cq_poll(&side->send_cq, wc, most);
    for (uint32_t k = 0; k < n; k++) {
        assert_true(wc[k].wr_id >= w.completed[i] && wc[k].wr_id < w.posted[i]);
        w.completed[i] = (uint32_t)wc[k].wr_id + 1;
    }
    return n;
}

/* As another thread that polls and posts while this one emits, places or flushes. */
static void at_once(struct cq *cq)
{
    int i = cq == &w.net.end[1].side.send_cq;

    for (uint32_t n = poll_both(i, BATCH); n; n--)
        post_any(i);
    cq_arm(cq, CQ_NEXT);
}

static void change_state(int i)
{
    struct rc_pair *pair = &w.net.end[i].pair;
    struct rng *r = &w.net.rng;

    if (w.is_unreliable && pair->life.qp->sends_failed && rng_one_in(r, 2))
        rc_pair_restart(pair, w.net.now_us);
    else if (rng_one_in(r, 8))
        rc_pair_drain(pair, rng_one_in(r, 2), w.net.now_us);
    else if (rng_one_in(r, 40))
        rc_pair_close(pair, w.net.now_us);
}

static void act(void)
{
    struct rng *r = &w.net.rng;
    int i = (int)rng_below(r, 2);
    uint32_t what = rng_below(r, 12);

    if (what < 5)
        for (uint32_t n = 1 + rng_below(r, 4); n; n--)
            post_any(i);
    else if (what < 7)
        receive_any(i);
    else if (what < 9)
        (void)poll_both(i, 1 + rng_below(r, BATCH));
    else if (what < 11)
        for (uint32_t n = 1 + rng_below(r, 12); n; n--)
            (void)rc_net_step(&w.net, w.net.now_us + 100000);
    else
        change_state(i);
    rc_pair_check(&w.net.end[i].pair, w.net.now_us);
}

static void happens(struct qp *qp, enum qp_happening what)
{
    if (what == QP_DRAINED)
        assert_int_equal(qp->state, QP_READY);
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static void draw_end(int i, struct qp_attr *qp, struct rc_pair_attr *pair)
{
    struct rng *r = &w.net.rng;

    *pair = rc_net_attr();
    pair->requester.retries = (uint8_t)rng_below(r, 8);
    pair->requester.rnr_retries = (uint8_t)rng_below(r, 8);
    pair->requester.window = rng_one_in(r, 2) ? 1 + rng_below(r, 6) : 0;
    *qp = side_attr(&w.net.engine);
    qp->ird = qp->ord = 4;
    qp->happened = happens;
    if (w.is_unreliable) {
        pair->service = BTH_UC;
        qp->service = QP_UNRELIABLE;
    }
    w.net.end[i].path = (struct rc_path){.lose = rng_one_in(r, 3) ? 100000 : 0,
                                         .hold_back = rng_one_in(r, 3) ? 100000 : 0,
                                         .delay_us = rng_below(r, 300),
                                         .held_back_us = 5000};
    w.posted[i] = w.completed[i] = 0;
}

static void open_faulty(uint64_t seed)
{
    static const uint32_t psn[2] = {5, 0xfffff0};
    struct rc_pair_attr pair[2];
    struct qp_attr qp[2];

    rc_net_init(&w.net, seed);
    w.is_unreliable = rng_one_in(&w.net.rng, 4);
    w.posts_at_once = rng_one_in(&w.net.rng, 2);
    w.net.cells = rng_one_in(&w.net.rng, 2) ? 64 : 0;
    w.net.withholds = rng_one_in(&w.net.rng, 2);
    for (int i = 0; i < REGIONS; i++)
        w.mr[i] = engine_region(&w.net.engine, SPACE, i == REGIONS - 1 ? LOCAL : ALL_ACCESS);
    for (int i = 0; i < 2; i++)
        draw_end(i, &qp[i], &pair[i]);
    rc_net_connect(&w.net, qp, pair, psn);
    for (int i = 0; i < 2; i++) {
        struct side *side = &w.net.end[i].side;

        if (rng_one_in(&w.net.rng, 2))
            side->send_cq.cqe = 1 + rng_below(&w.net.rng, 6);
        if (rng_one_in(&w.net.rng, 3))
            side->recv_cq.cqe = 1 + rng_below(&w.net.rng, 6);
        side->send_cq.notify = w.posts_at_once ? at_once : NULL;
        cq_arm(&side->send_cq, CQ_NEXT);
    }
}

static void expect_consistent(int i)
{
    const struct rc_pair *pair = &w.net.end[i].pair;
    struct side *side = &w.net.end[i].side;

    if (life_is_open(&pair->life)) {
        assert_int_not_equal(side->qp.state, QP_ERROR);
        assert_int_equal(pair->requester.why, RC_GOES_ON);
        assert_false(side->send_cq.overflowed && !w.is_unreliable);
    }
    side->send_cq.notify = NULL;
    qp_settle(&side->qp);
    for (int n = 0; n < POLLS; n++)
        (void)poll_both(i, BATCH);
    assert_false(side->qp.state == QP_ERROR && side->qp.sq.taken);
}

static void run(uint64_t seed)
{
    open_faulty(seed);
    for (int step = 0; step < STEPS; step++)
        act();
    rc_net_run(&w.net, long_us);
    for (int i = 0; i < 2; i++)
        expect_consistent(i);
    rc_net_fini(&w.net);
}

static void everything_wrong(void **state)
{
    (void)state;
    seeds_each(RUNS, run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_wrong)};

    return cmocka_run_group_tests_name("roce_faults", tests, NULL, NULL);
}
