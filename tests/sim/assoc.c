/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc.c - associations under loss and reordering, in virtual time: every octet is in its place, nothing is delivered
 * before everything earlier is placed, and every request completes once.
 *
 * SIM_RUNS=10000 sets the number of runs. A failure prints its seed. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/assoc.h"
#include "tests/lib/seeds.h"

#define BOTH SCTPDDP_RDMA_AND_NEGOTIATION

enum { RUNS = 120, SIGNAL_RUNS = 19, REQUESTS = 120, OCTETS = 1500, ROUNDS_MAX = 20000, CHUNKS = 3000, CHUNK = 16 };

/* The requests of one side: request i uses place i of each region. */
struct party {
    struct mr *source, *target, *sink, *inbox;
    uint32_t posted, done, received, sends, writes;
    uint32_t length[REQUESTS];
    enum rddp_wr_opcode kind[REQUESTS];
    uint32_t writes_before[REQUESTS]; /* indexed by Send: the Writes posted before it */
    uint32_t write_at[REQUESTS];      /* indexed by Write: its request */
    uint32_t send_length[REQUESTS];
};

static struct net n;
static struct party party[2];
static uint32_t current;

static void show_seed(void)
{
    printf("sim: seed %u\n", current);
}

static void open_party(unsigned i)
{
    struct party *p = &party[i];

    memset(p, 0, sizeof(*p));
    p->source = engine_region(&n.engine, REQUESTS * OCTETS, LOCAL | RDDP_ACCESS_REMOTE_READ);
    p->target = engine_region(&n.engine, REQUESTS * OCTETS, ALL_ACCESS);
    p->sink = engine_region(&n.engine, REQUESTS * OCTETS, LOCAL);
    p->inbox = engine_region(&n.engine, REQUESTS * OCTETS, LOCAL);
    pattern(p->source->base, REQUESTS * OCTETS, current + i);
}

/* Posts as many receives as the queue takes. */
static void fill_receives(unsigned i, uint32_t *posted)
{
    while (*posted < REQUESTS) {
        struct rddp_sge sge = piece_of(party[i].inbox, *posted * OCTETS, OCTETS);

        if (post_recv(&n.side[i].side, *posted, &sge, 1))
            return;
        ++*posted;
    }
}

/* Posts a request of any kind; a Send only if a receive is posted for it. */
static bool post_one(unsigned i, uint32_t receives)
{
    static const enum rddp_wr_opcode kinds[] = {RDDP_WR_RDMA_WRITE, RDDP_WR_RDMA_READ, RDDP_WR_SEND, RDDP_WR_SEND};
    struct party *p = &party[i];
    uint32_t k = p->posted, length = chance(&n.seed) % 4 ? chance(&n.seed) % OCTETS : chance(&n.seed) % 3;
    enum rddp_wr_opcode kind = kinds[chance(&n.seed) % 4];
    struct rddp_sge sge = piece_of(kind == RDDP_WR_RDMA_READ ? p->sink : p->source, k * OCTETS, length);
    const struct mr *remote = kind == RDDP_WR_RDMA_READ ? party[!i].source : party[!i].target;

    if (kind == RDDP_WR_SEND && p->sends >= receives)
        kind = RDDP_WR_RDMA_WRITE;
    if (kind == RDDP_WR_RDMA_WRITE)
        remote = party[!i].target;
    if (k == REQUESTS || post_remote(&n.side[i].side, k, kind, RDDP_SEND_SIGNALED, &sge, 1, remote->key,
                                     remote->start + (uint64_t)k * OCTETS))
        return false;
    p->kind[k] = kind;
    p->length[k] = length;
    p->posted++;
    if (kind == RDDP_WR_RDMA_WRITE)
        p->write_at[p->writes++] = k;
    if (kind == RDDP_WR_SEND) {
        p->writes_before[p->sends] = p->writes;
        p->send_length[p->sends++] = k;
    }
    return true;
}

static bool is_written(unsigned from, uint32_t k)
{
    return memcmp(party[!from].target->base + k * OCTETS, party[from].source->base + k * OCTETS,
                  party[from].length[k]) == 0;
}

/* A Send is delivered after all Writes before it were placed. SCTP-2.2-24 SCTP-2.2-29 */
static void check_received(unsigned i)
{
    struct party *p = &party[i], *peer = &party[!i];
    struct rddp_wc wc;

    while (cq_poll(&n.side[i].side.recv_cq, &wc, 1)) {
        uint32_t number = p->received++, k = peer->send_length[number];

        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_int_equal(wc.wr_id, number);
        assert_int_equal(wc.byte_len, peer->length[k]);
        assert_memory_equal(p->inbox->base + number * OCTETS, peer->source->base + k * OCTETS, wc.byte_len);
        for (uint32_t w = 0; w < peer->writes_before[number]; w++)
            assert_true(is_written(!i, peer->write_at[w]));
    }
}

/* A Read completes when all of its data are placed; requests complete in posting order. */
static void check_completed(unsigned i)
{
    struct party *p = &party[i];
    struct rddp_wc wc;

    while (cq_poll(&n.side[i].side.send_cq, &wc, 1)) {
        uint32_t k = p->done++;

        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_int_equal(wc.wr_id, k);
        if (p->kind[k] == RDDP_WR_RDMA_READ)
            assert_memory_equal(p->sink->base + k * OCTETS, party[!i].source->base + k * OCTETS, p->length[k]);
    }
}

static bool is_finished(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (party[i].done < REQUESTS || party[i].received < party[!i].sends)
            return false;
    return true;
}

static void one_run(uint32_t seed)
{
    static const unsigned losses[] = {0, 1, 3, 20}, reorders[] = {0, 20, 90};
    uint32_t receives[2] = {0, 0};
    unsigned round = 0;

    current = seed;
    show_seed();
    net_init(&n, BOTH, BOTH, NULL, seed);
    n.loss_percent = losses[seed % 4];
    n.reorder_percent = reorders[seed / 4 % 3];
    net_open(&n);
    open_party(0);
    open_party(1);
    for (; !is_finished(); round++) {
        assert_true(round < ROUNDS_MAX);
        for (unsigned i = 0; i < 2; i++) {
            fill_receives(i, &receives[i]);
            while (chance(&n.seed) % 3 && post_one(i, receives[!i]))
                ;
        }
        net_step(&n);
        for (unsigned i = 0; i < 2; i++) {
            check_received(i);
            check_completed(i);
            assert_int_equal(n.side[i].assoc.life.note.fault, FAULT_NONE);
        }
    }
    net_run(&n); /* a Write is complete when it was sent */
    for (unsigned i = 0; i < 2; i++)
        for (uint32_t w = 0; w < party[i].writes; w++)
            assert_true(is_written(i, party[i].write_at[w]));
    net_fini(&n);
}

static void requests(void **state)
{
    (void)state;
    for (unsigned long seed = 1; seed <= seeds_count(RUNS); seed++)
        one_run((uint32_t)seed);
}

/* Chunks of a hand-made peer arrive in random order, each with a signal. Signals are reported in AWS order, also across
 * its wrap at 32 bits, and never before all earlier chunks are placed. SCTP-2.2-24 SCTP-2.2-25 SCTP-1-01 */
static void signals(void **state)
{
    static uint32_t order[CHUNKS];
    static uint8_t data[CHUNKS][CHUNK];

    (void)state;
    for (uint32_t seed = 1; seed <= seeds_count(SIGNAL_RUNS); seed++) {
        struct net_side *s = &n.side[1];
        uint32_t told = 0;
        struct mr *mr;

        current = seed;
        show_seed();
        net_init(&n, SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY, NULL, seed);
        net_open(&n);
        mr = engine_region(&n.engine, CHUNKS * CHUNK, ALL_ACCESS);
        s->assoc.window.origin = seed & 1 ? 0xfffffff0 : 0;
        pattern(data[0], CHUNKS * CHUNK, seed);
        for (uint32_t i = 0; i < CHUNKS; i++)
            order[i] = i;
        for (uint32_t i = 0; i < CHUNKS; i++) { /* shuffled, each by at most 500 places */
            uint32_t k = i + chance(&n.seed) % (CHUNKS - i < 500 ? CHUNKS - i : 500), other = order[k];

            order[k] = order[i];
            order[i] = other;
        }
        for (uint32_t i = 0; i < CHUNKS; i++) {
            uint32_t k = order[i];
            struct sctpddp_chunk chunk = {
                .mode = SCTPDDP_MODE_RDMA,
                .flags = SCTPDDP_NOTIFY,
                .tag = mr->key,
                .offset = mr->start + (uint64_t)k * CHUNK,
                .aws = s->assoc.window.origin + k,
                .data = data[k],
                .length = CHUNK,
            };

            s->signal_count = 0;
            net_chunk(&n, 1, SCTPDDP_RDMA_ONLY, &chunk);
            assert_int_equal(s->assoc.life.note.fault, FAULT_NONE);
            for (uint32_t t = 0; t < s->signal_count && s->signal_count <= 256; t++)
                assert_int_equal(s->signals[t].pos, told + t);
            told += s->signal_count;
            assert_memory_equal(mr->base, data[0], told * CHUNK);
        }
        assert_int_equal(told, CHUNKS);
        net_fini(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(signals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
