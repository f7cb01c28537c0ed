/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.c - two queue pairs of RoCE do what they can to each other over a path that does everything to packets: each
 * octet arrives where it belongs, each request and receive completes once and in order, no atomic is executed twice.
 *
 * SIM_RUNS=10000 sets the number of runs; SIM_SEED=0x1234 sets the first seed. A failed run prints its seed. */
#include "tests/lib/rc_net.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/lib/seeds.h"

enum {
    RUNS = 400,
    REQUESTS = 80,  /* of an end, at most */
    SOURCE = 65536, /* octets that are read and sent from */
    MESSAGE = 9000, /* octets, at most */
    SINK = REQUESTS * MESSAGE,
    RECEIVES = REQUESTS,
};

static const uint64_t hour_us = 3600 * UINT64_C(1000000);

/* A message that takes a receive, in the order of posting. */
struct expected {
    uint32_t length, at; /* of a Send: from where in the source */
    bool send, immediate, solicited;
    uint32_t value;
};

struct actor {
    struct rc_peer *end;
    struct mr *source, *sink, *target, *receive, *word;
    uint32_t to_post, posted, completed;
    uint32_t received, receives_posted;
    uint32_t sink_used, target_used;
    uint32_t atomics;
    struct expected expected[RECEIVES]; /* what this end sends to the other's receives */
    uint32_t expectations;
    enum rddp_wr_opcode opcode[REQUESTS];
    uint32_t sum_at[REQUESTS]; /* of an atomic: where in the sink its result goes */
    uint32_t nth[REQUESTS];    /* and which atomic it is */
    bool signalled[REQUESTS];
    uint32_t max_length;
};

struct game {
    struct rc_net net;
    struct actor actor[2];
};

/* --- posting ------------------------------------------------------------------------------------------------------ */

/* Cuts `length` octets from `at` on into up to four pieces. */
static int cut(struct rng *r, const struct mr *mr, uint32_t at, uint32_t length, struct rddp_sge *sge)
{
    int n = 0;

    for (uint32_t done = 0; done < length || !n; n++) {
        uint32_t rest = length - done, piece = n == 3 || rng_one_in(r, 2) ? rest : rng_below(r, rest + 1);

        sge[n] = piece_of(mr, at + done, piece);
        done += piece;
        if (n == 3)
            return 4;
    }
    return n;
}

static void expect(struct actor *a, const struct rddp_send_wr *wr, uint32_t length, uint32_t at)
{
    bool immediate = wr->opcode == RDDP_WR_SEND_WITH_IMM || wr->opcode == RDDP_WR_RDMA_WRITE_WITH_IMM;
    bool send = wr->opcode == RDDP_WR_SEND || wr->opcode == RDDP_WR_SEND_WITH_IMM;

    if (send || immediate)
        a->expected[a->expectations++] =
            (struct expected){.length = length, .at = at, .send = send, .immediate = immediate, .value = wr->imm_data};
}

static uint8_t *wanted(struct game *g, const struct mr *mr)
{
    return want_of(&g->net.engine, mr);
}

static void fill_message(struct game *g, struct actor *a, struct actor *other, struct rddp_send_wr *wr)
{
    struct rng *r = &g->net.rng;
    uint32_t length = rng_size(r, a->max_length), at = rng_below(r, SOURCE - length);

    wr->num_sge = cut(r, a->source, at, length, wr->sg_list);
    wr->imm_data = (uint32_t)rng_next(r);
    if (wr->opcode == RDDP_WR_RDMA_WRITE || wr->opcode == RDDP_WR_RDMA_WRITE_WITH_IMM) {
        wr->rkey = other->target->key;
        wr->remote_addr = other->target->start + other->target_used;
        memcpy(wanted(g, other->target) + other->target_used, a->source->base + at, length);
        other->target_used += length;
    }
    if (length <= 64 && rng_one_in(r, 2))
        wr->send_flags |= RDDP_SEND_INLINE;
    expect(a, wr, length, at);
}

static void fill_read(struct game *g, struct actor *a, struct actor *other, struct rddp_send_wr *wr)
{
    struct rng *r = &g->net.rng;
    uint32_t length = rng_size(r, a->max_length), at = rng_below(r, SOURCE - length);

    wr->num_sge = cut(r, a->sink, a->sink_used, length, wr->sg_list);
    wr->rkey = other->source->key;
    wr->remote_addr = other->source->start + at;
    memcpy(wanted(g, a->sink) + a->sink_used, other->source->base + at, length);
    a->sink_used += length;
}

static void fill_atomic(struct game *g, struct actor *a, struct actor *other, struct rddp_send_wr *wr)
{
    uint64_t was = a->atomics;

    a->sink_used = (a->sink_used + 7) & ~7u;
    wr->sg_list[0] = piece_of(a->sink, a->sink_used, 8);
    wr->num_sge = 1;
    wr->rkey = other->word->key;
    wr->remote_addr = other->word->start;
    wr->compare_add = wr->opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD ? 1 : was;
    wr->swap = was + 1;
    memcpy(wanted(g, a->sink) + a->sink_used, &was, 8);
    a->sink_used += 8;
    a->atomics++;
    memcpy(wanted(g, other->word), &(uint64_t){a->atomics}, 8);
}

static enum rddp_wr_opcode draw_opcode(struct rng *r)
{
    static const enum rddp_wr_opcode opcodes[] = {
        RDDP_WR_SEND,      RDDP_WR_SEND_WITH_IMM,        RDDP_WR_RDMA_WRITE,         RDDP_WR_RDMA_WRITE_WITH_IMM,
        RDDP_WR_RDMA_READ, RDDP_WR_ATOMIC_FETCH_AND_ADD, RDDP_WR_ATOMIC_CMP_AND_SWP,
    };

    return opcodes[rng_below(r, sizeof(opcodes) / sizeof(opcodes[0]))];
}

static void post_one(struct game *g, struct actor *a, struct actor *other)
{
    struct rddp_sge sge[4];
    struct rddp_send_wr wr = {.wr_id = a->posted, .sg_list = sge, .opcode = draw_opcode(&g->net.rng)};

    if (atomic_load(&a->end->side.qp.sq.taken) >= a->end->side.qp.attr.send_depth)
        return;
    a->signalled[a->posted] = !rng_one_in(&g->net.rng, 3) || a->posted + 1 == a->to_post;
    wr.send_flags = a->signalled[a->posted] ? RDDP_SEND_SIGNALED : 0;
    wr.send_flags |= rng_one_in(&g->net.rng, 6) ? RDDP_SEND_FENCE : 0;
    if (wr.opcode == RDDP_WR_RDMA_READ)
        fill_read(g, a, other, &wr);
    else if (wr.opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD || wr.opcode == RDDP_WR_ATOMIC_CMP_AND_SWP)
        fill_atomic(g, a, other, &wr);
    else
        fill_message(g, a, other, &wr);
    assert_int_equal(qp_post_send(&a->end->side.qp, &wr), 0);
    a->posted++;
}

static void post_receive(struct actor *a)
{
    uint32_t i = a->receives_posted;
    struct rddp_sge sge = piece_of(a->receive, i * MESSAGE, MESSAGE);

    if (i == RECEIVES || post_recv(&a->end->side, i, &sge, 1))
        return;
    a->receives_posted++;
}

/* --- completions -------------------------------------------------------------------------------------------------- */

static void take_sends(struct actor *a)
{
    struct rddp_wc wc;

    while (cq_poll(&a->end->side.send_cq, &wc, 1)) {
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        while (!a->signalled[a->completed])
            a->completed++;
        assert_int_equal(wc.wr_id, a->completed);
        a->completed++;
    }
}

static void take_receives(struct game *g, struct actor *a, struct actor *other)
{
    struct rddp_wc wc;

    while (cq_poll(&a->end->side.recv_cq, &wc, 1)) {
        const struct expected *e = &other->expected[a->received];

        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_int_equal(wc.wr_id, a->received);
        assert_true(a->received < other->expectations);
        assert_int_equal(wc.opcode, e->send ? RDDP_WC_RECV : RDDP_WC_RECV_RDMA_WITH_IMM);
        assert_int_equal(wc.byte_len, e->length);
        assert_int_equal(!!(wc.wc_flags & RDDP_WC_WITH_IMM), e->immediate);
        assert_true(!e->immediate || wc.imm_data == e->value);
        if (e->send)
            memcpy(wanted(g, a->receive) + a->received * MESSAGE, other->source->base + e->at, e->length);
        a->received++;
    }
}

/* --- a run ---------------------------------------------------------------------------------------------------------
 */

/* It loses and harms up to one packet of twenty each: if it were one of ten, one of a million would be lost eight times
 * in turn, and the retries would be used up. */
static void draw_path(struct rng *r, struct rc_path *path)
{
    static const uint32_t chances[] = {0, 0, 1000, 10000, 100000};

    path->lose = chances[rng_below(r, 5)] / 2;
    path->repeat = chances[rng_below(r, 5)];
    path->harm = chances[rng_below(r, 5)] / 2;
    path->hold_back = chances[rng_below(r, 5)];
    path->delay_us = rng_size(r, 5000);
    path->held_back_us = rng_size(r, 10000);
}

static void open_game(struct game *g, uint64_t seed)
{
    static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};
    static const uint32_t cells[] = {0, 1, 10, 600, 600};
    struct qp_attr qp[2];
    struct rc_pair_attr pair[2];
    uint32_t psn[2], mtu;

    rc_net_init(&g->net, seed);
    g->net.cells = cells[rng_below(&g->net.rng, 5)];
    mtu = mtus[rng_below(&g->net.rng, 5)];
    for (int i = 0; i < 2; i++) {
        struct actor *a = &g->actor[i];
        struct rng *r = &g->net.rng;

        *a = (struct actor){
            .end = &g->net.end[i], .to_post = rng_below(r, REQUESTS + 1), .max_length = rng_size(r, MESSAGE)};
        a->source = engine_region(&g->net.engine, SOURCE, ALL_ACCESS);
        a->sink = engine_region(&g->net.engine, SINK, LOCAL);
        a->target = engine_region(&g->net.engine, SINK, ALL_ACCESS);
        a->receive = engine_region(&g->net.engine, RECEIVES * MESSAGE, LOCAL);
        a->word = engine_region(&g->net.engine, 8, ALL_ACCESS);
        pattern(a->source->base, SOURCE, (uint32_t)i + 1);
        draw_path(r, &a->end->path);
        qp[i] = side_attr(&g->net.engine);
        qp[i].ird = qp[i].ord = 1 + rng_below(r, 16);
        pair[i] = rc_net_attr();
        pair[i].requester.mtu = mtu;
        pair[i].requester.timeout_us = 100000;
        pair[i].requester.window = rng_one_in(r, 2) ? 0 : 1 + rng_below(r, 100);
        pair[i].responder.reads = qp[i].ird;
        psn[i] = rng_one_in(r, 2) ? (0u - rng_below(r, 50)) & BTH_MASK24 : (uint32_t)rng_next(r) & BTH_MASK24;
    }
    rc_net_connect(&g->net, qp, pair, psn);
    g->net.withholds = rng_one_in(&g->net.rng, 2);
    engine_remember(&g->net.engine);
}

static bool is_over(const struct game *g)
{
    for (int i = 0; i < 2; i++) {
        const struct actor *a = &g->actor[i];

        if (a->posted < a->to_post || a->completed < a->to_post || a->received < g->actor[!i].expectations)
            return false;
    }
    return true;
}

static void act(struct game *g)
{
    for (int i = 0; i < 2; i++) {
        struct actor *a = &g->actor[i];

        for (uint32_t n = rng_below(&g->net.rng, 8); n && a->posted < a->to_post; n--)
            post_one(g, a, &g->actor[!i]);
        for (uint32_t n = rng_below(&g->net.rng, 4); n; n--)
            post_receive(a);
        take_sends(a);
        take_receives(g, a, &g->actor[!i]);
    }
}

static void run(uint64_t seed)
{
    struct game *g = calloc(1, sizeof(*g));
    uint64_t next_us;

    assert_non_null(g);
    open_game(g, seed);
    next_us = g->net.now_us;
    while (!is_over(g)) {
        if (g->net.now_us >= next_us) {
            act(g);
            next_us = g->net.now_us + rng_size(&g->net.rng, 3000) + 1;
        }
        if (!rc_net_step(&g->net, next_us))
            g->net.now_us = next_us;
        assert_true(g->net.now_us < hour_us);
        for (int i = 0; i < 2; i++)
            assert_int_equal(g->net.end[i].pair.life.state, CONN_READY);
    }
    rc_net_run(&g->net, 1000000);
    engine_expect(&g->net.engine);
    for (int i = 0; i < 2; i++) {
        expect_quiet(&g->actor[i].end->side.send_cq);
        expect_quiet(&g->actor[i].end->side.recv_cq);
    }
    rc_net_fini(&g->net);
    free(g);
}

/* ROCE-REQ-01, ROCE-REQ-02, ROCE-REQ-07, ROCE-REQ-08, ROCE-REQ-12, ROCE-REQ-17, ROCE-REQ-19, ROCE-RSP-02, ROCE-RSP-04,
 * ROCE-RSP-12 */
static void everything(void **state)
{
    (void)state;
    seeds_each(RUNS, run);
}

enum { WRITES = 400, CELLS = 600, DEPTH = 16 };

/* WRITES of 9000 octets over a path that loses one packet of a hundred. Returns how many are sent again. */
static uint64_t resent_of(uint64_t seed, uint32_t cells)
{
    struct rc_pair_attr pair[2] = {rc_net_attr(), rc_net_attr()};
    const uint32_t psn[2] = {1, 2};
    struct rc_net net;
    struct qp_attr qp[2];
    struct mr *source, *target;
    struct rddp_wc wc;
    uint64_t resent;
    uint32_t done = 0, posted = 0;

    rc_net_init(&net, seed);
    net.cells = cells;
    source = engine_region(&net.engine, MESSAGE, LOCAL);
    target = engine_region(&net.engine, MESSAGE, ALL_ACCESS);
    qp[0] = qp[1] = side_attr(&net.engine);
    rc_net_connect(&net, qp, pair, psn);
    net.end[0].path = (struct rc_path){.lose = 10000, .delay_us = 500};
    net.end[1].path.delay_us = 500;
    while (done < WRITES) {
        struct rddp_sge sge = piece_of(source, 0, MESSAGE);

        for (; posted < WRITES && posted - done < DEPTH; posted++)
            assert_int_equal(post_remote(&net.end[0].side, posted, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, &sge, 1,
                                         target->key, target->start),
                             0);
        assert_true(rc_net_step(&net, hour_us));
        while (cq_poll(&net.end[0].side.send_cq, &wc, 1))
            done += wc.status == RDDP_WC_SUCCESS;
    }
    resent = net.end[0].pair.requester.counters.resent;
    rc_net_fini(&net);
    return resent;
}

/* ROCE-REQ-09: what the peer keeps is not sent again. */
static void little_again(void **state)
{
    uint64_t dropped = 0, kept = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        dropped += resent_of(seed, 0);
        kept += resent_of(seed, CELLS);
    }
    if (kept * 2 > dropped)
        fail_msg("%llu packets were sent again, and %llu if the peer keeps none", (unsigned long long)kept,
                 (unsigned long long)dropped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything),
        cmocka_unit_test(little_again),
    };

    return cmocka_run_group_tests_name("roce", tests, NULL, NULL);
}
