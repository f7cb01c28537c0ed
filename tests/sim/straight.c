/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* straight.c - the same octets come to four ends: one takes whole messages straight to their place, one takes none so,
 * one hears the octets one by one, and one reads payloads to their place without a stage. All have to end alike,
 * whatever the octets are and the application does.
 *
 * SIM_RUNS=100000 sets the number of connections, RDDP_LONG=1 ten times the usual; SIM_SEED=7 sets the first seed. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/container.h"
#include "tests/lib/seeds.h"
#include "tests/sim/lib/talk.h"

enum { RUNS = 10000, ACTS_LEAST = 8, ACTS_MOST = 48, POLL_MOST = 8 };

static uint64_t seed_now, receives;

/* --- what the application does, at each ear the same ------------------------------------------------------------ */

static struct rddp_sge some_piece(const struct ear *ear, uint32_t region, uint32_t at, uint32_t n)
{
    const struct area *area = &ear->host.engine.area[region];

    return (struct rddp_sge){.addr = area->mr.start + at, .length = n, .lkey = talk.key[region]};
}

static void post_receive(void)
{
    uint32_t sges = rng_below(&talk.rng, 5), region[4], at[4], n[4], capacity = 0;
    int error[EARS];

    for (uint32_t i = 0; i < sges; i++) {
        region[i] = talk_is_wrong(64) ? rng_below(&talk.rng, TALK_REGIONS) : 3 + rng_below(&talk.rng, 2);
        at[i] = rng_below(&talk.rng, TALK_REGION_OCTETS / 2);
        n[i] = rng_one_in(&talk.rng, 4) ? 0 : talk_octets() % (TALK_REGION_OCTETS / 2 + 1);
        capacity += n[i];
    }
    talk.wr_id++;
    for (enum ear_kind kind = 0; kind < EARS; kind++) {
        struct rddp_sge sge[4];

        for (uint32_t i = 0; i < sges; i++)
            sge[i] = some_piece(&talk.ear[kind], region[i], at[i], n[i]);
        error[kind] = post_recv(&talk.ear[kind].host.side, talk.wr_id, sge, (int)sges);
    }
    if (!error[STRAIGHT])
        talk.capacity[++talk.receives % TALK_RECEIVES] = capacity;
}

static void post_read(void)
{
    uint32_t region = 4 + rng_below(&talk.rng, 2), n = rng_below(&talk.rng, TALK_REGION_OCTETS);
    int error[EARS];

    if (talk.reads == TALK_READS)
        return;
    talk.wr_id++;
    for (enum ear_kind kind = 0; kind < EARS; kind++) {
        struct rddp_sge sge = some_piece(&talk.ear[kind], region, 0, n);

        error[kind] = post_remote(&talk.ear[kind].host.side, talk.wr_id, RDDP_WR_RDMA_READ, 0, &sge, 1, 1, 0);
    }
    if (!error[STRAIGHT])
        talk.asked[talk.reads++] = (struct asked){.key = talk.key[region], .length = n};
}

static void post_local(void)
{
    uint32_t key = talk_key();

    talk.has_gone = true;
    talk.wr_id++;
    for (enum ear_kind kind = 0; kind < EARS; kind++)
        post_remote(&talk.ear[kind].host.side, talk.wr_id, RDDP_WR_LOCAL_INV, RDDP_SEND_SIGNALED, NULL, 0, key, 0);
}

/* The application deregisters memory, or registers it again. */
static void change_region(void)
{
    uint32_t i = rng_below(&talk.rng, TALK_REGIONS);

    talk.has_gone = true;
    for (enum ear_kind kind = 0; kind < EARS; kind++) {
        struct engine *e = &talk.ear[kind].host.engine;
        struct mr *mr = &e->area[i].mr;

        if (talk.is_gone[i] && mr_table_has_space(&e->mrs))
            assert_true(mr_insert(&e->mrs, mr, talk.key[i] + TALK_NEXT_KEY));
        else if (!talk.is_gone[i])
            mr_remove(&e->mrs, mr);
    }
    talk.key[i] += talk.is_gone[i] ? TALK_NEXT_KEY : 0;
    talk.is_gone[i] ^= true;
}

static void poll_all(uint32_t most)
{
    for (unsigned which = 0; which < 2; which++) {
        struct rddp_wc wc[EARS][POLL_MOST];
        uint32_t n[EARS];

        for (enum ear_kind kind = 0; kind < EARS; kind++) {
            struct side *side = &talk.ear[kind].host.side;

            n[kind] = cq_poll(which ? &side->send_cq : &side->recv_cq, wc[kind], most);
        }
        for (enum ear_kind kind = PLAIN; kind < EARS; kind++) {
            if (!ear_is_comparable(kind))
                continue;
            assert_int_equal(n[kind], n[STRAIGHT]);
            for (uint32_t i = 0; i < n[kind]; i++)
                ears_compare_completions(&wc[kind][i], &wc[STRAIGHT][i]);
        }
        receives += which ? 0 : n[STRAIGHT];
    }
}

/* The connection may end before a unit has come whole that one end has looked at: its receive knows what is wrong. */
static void cut_unit(void)
{
    talk.has_gone |= talk.ear[APART].host.staged != 0;
}

static void wait_some(uint32_t us)
{
    cut_unit();
    for (enum ear_kind kind = 0; kind < EARS; kind++)
        host_wait_until(&talk.ear[kind].host, talk.ear[kind].host.now_us + us);
}

static void close_all(void)
{
    talk.has_close = true;
    for (enum ear_kind kind = 0; kind < EARS; kind++)
        conn_close(&talk.ear[kind].host.conn, talk.ear[kind].host.now_us);
}

/* `octets` more of the stream come. */
static void all_listen(size_t octets)
{
    talk.offered += octets;
    for (enum ear_kind kind = 0; kind < EARS; kind++)
        ear_listen(&talk.ear[kind], kind, talk.offered);
    ears_compare();
}

/* --- one connection --------------------------------------------------------------------------------------------- */

static void act(void)
{
    switch (rng_below(&talk.rng, 32)) {
    case 0:
        post_read();
        break;
    case 1:
        if (talk_is_wrong(4))
            change_region();
        break;
    case 2:
        if (talk_is_wrong(8))
            post_local();
        break;
    case 3:
        wait_some(rng_one_in(&talk.rng, 16) ? 1100000 : 1000);
        break;
    case 4:
        if (rng_one_in(&talk.rng, 16))
            close_all();
        break;
    case 5:
    case 6:
        poll_all(1 + rng_below(&talk.rng, POLL_MOST));
        break;
    default:
        if (rng_one_in(&talk.rng, 2))
            post_receive();
        else
            for (uint32_t n = 1 + rng_below(&talk.rng, 4); n; n--)
                talk_unit();
        break;
    }
    for (enum ear_kind kind = 0; kind < EARS; kind++)
        host_pump(&talk.ear[kind].host);
}

static struct options some_options(void)
{
    static const uint64_t waits[] = {0, 500000, UINT64_MAX};
    struct options options = {.conn = host_attr()};

    options.conn.crc = !rng_one_in(&talk.rng, 4);
    options.conn.markers = rng_one_in(&talk.rng, 12);
    options.conn.ird = options.conn.ord = TALK_READS;
    options.receive_wait_us = waits[rng_below(&talk.rng, countof(waits))];
    options.cqe = rng_one_in(&talk.rng, 4) ? 1 + rng_below(&talk.rng, 8) : ENGINE_WC;
    options.is_active = rng_one_in(&talk.rng, 2);
    options.is_shared = rng_one_in(&talk.rng, 4);
    options.is_of_other = rng_one_in(&talk.rng, 4);
    return options;
}

static void begin(uint64_t seed)
{
    struct options options;

    seed_now = seed;
    memset(&talk, 0, offsetof(struct talk, ear));
    talk.rng.state = seed;
    options = some_options();
    for (enum ear_kind kind = 0; kind < EARS; kind++)
        ear_open(&talk.ear[kind], &options);
    talk.peer = talk.ear[STRAIGHT].host.peer;
    talk.send_msg = talk.read_msg = 1;
    talk.has_gone = options.is_shared;
    talk.is_honest = rng_one_in(&talk.rng, 2);
    for (uint32_t i = 0; i < TALK_REGIONS; i++)
        talk.key[i] = talk.ear[STRAIGHT].host.engine.area[i].mr.key;
}

static void end(void)
{
    ears_compare_last_word();
    cut_unit();
    for (enum ear_kind kind = 0; kind < EARS; kind++)
        if (conn_wants_rx(&talk.ear[kind].host.conn))
            host_hear_end(&talk.ear[kind].host);
    ears_compare();
    for (uint32_t polled = 0; polled < ENGINE_WC / 8; polled += POLL_MOST)
        poll_all(POLL_MOST);
    for (enum ear_kind kind = 0; kind < EARS; kind++)
        ear_close(&talk.ear[kind]);
}

static void run(uint64_t seed)
{
    begin(seed);
    for (uint32_t acts = rng_between(&talk.rng, ACTS_LEAST, ACTS_MOST); acts; acts--) {
        uint32_t rest;

        act();
        rest = (uint32_t)(talk.said - talk.offered);
        if (rng_one_in(&talk.rng, 2))
            all_listen(rng_one_in(&talk.rng, 2) ? rest : rng_below(&talk.rng, rest + 1));
    }
    all_listen(talk.said - talk.offered);
    end();
}

static void runs(void **state)
{
    (void)state;
    seeds_each(RUNS, run);
    printf("sim: %llu times octets went straight, %llu octets were read to their place, %llu receives completed\n",
           (unsigned long long)talk_tally.straight, (unsigned long long)talk_tally.apart, (unsigned long long)receives);
    for (enum fault fault = 0; fault < FAULTS; fault++)
        if (talk_tally.faults[fault])
            printf("sim: %llu ended for %s\n", (unsigned long long)talk_tally.faults[fault], fault_name(fault));
    if (seeds_count(RUNS) >= RUNS)
        assert_true(talk_tally.straight > RUNS / 2 && talk_tally.apart > RUNS && talk_tally.faults[FAULT_CQ_FULL]);
}

static int name_seed(void **state)
{
    (void)state;
    printf("sim: the last seed was %llu\n", (unsigned long long)seed_now);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(runs, name_seed),
    };

    return cmocka_run_group_tests_name("sim straight", tests, NULL, NULL);
}
