/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_pause.c - a peer that does nothing for a while, with all its packets in its sockets: what was sent meanwhile is
 * sent once, by one way. ROCE-REQ-19. */
#include <time.h>

#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

enum {
    WRITES = 60,
    OCTETS = 64 << 10,
    WARM = 200,
    PAUSE_MS = 40,
    RESENT_MAX = 40,
    ROUNDS = 10,
    ROUNDS_MAX = 30,
    SKIPPED = 77
};

/* Two addresses of this host that are not its loopback: packets between them go by the route that others' go. */
static const char *const address[2] = {"10.91.0.1", "10.91.0.2"};

static struct hands h;

static void open_ends(void)
{
    hands_open_manual(&h, RDDP_QPT_RC, address[0]);
    hands_make(&h);
    for (unsigned i = 0; i < 2; i++) {
        h.address = hand_address(address[!i], 0);
        h.ib.local = hand_address(address[i], 0);
        hand_connect(&h, i, rddp_qp_num(h.end[!i].qp));
    }
}

static unsigned completed(unsigned end)
{
    struct rddp_wc wc;
    int n = rddp_poll_cq(h.end[end].cq, 1, &wc);

    assert_true(n <= 0 || wc.status == RDDP_WC_SUCCESS);
    return n > 0;
}

static struct rddp_ib_counters counted(unsigned end)
{
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(h.end[end].qp, &info), 0);
    return info.ib;
}

/* Writes one at a time, so that the round trip is known and the window has grown. */
static void warm_up(void)
{
    for (unsigned i = 0; i < WARM; i++) {
        hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, 8192, 0);
        while (!completed(0))
            completed(1);
    }
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Returns whether the timer has fired meanwhile: on a busy machine it may be set to more. */
static bool pause_once(void)
{
    struct rddp_ib_counters before, after;
    unsigned done = 0;
    uint64_t begun;

    open_ends();
    warm_up();
    before = counted(0);
    assert_int_equal(counted(1).gaps, 0);
    for (unsigned i = 0; i < WRITES; i++)
        hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, OCTETS, 0);
    for (begun = now_ms(); now_ms() < begun + PAUSE_MS;)
        done += completed(0);
    assert_int_equal(done, 0);
    while (done < WRITES) {
        completed(1);
        done += completed(0);
    }
    after = counted(0);
    assert_int_equal(counted(1).gaps, 0);
    assert_int_equal(after.naks, before.naks);
    assert_in_range(after.resent - before.resent, 0, RESENT_MAX);
    hands_close(&h);
    return after.undone > before.undone;
}

/* Which of its sockets the peer looks at first is chance. */
static void paused(void **state)
{
    unsigned fired = 0;

    (void)state;
    for (unsigned i = 0; i < ROUNDS_MAX && fired < ROUNDS; i++)
        fired += pause_once();
    assert_true(fired > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(paused)};

    if (!network_alone() || !network_add(address[0]) || !network_add(address[1])) {
        print_message("no namespace with addresses of its own here\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests_name("roce_pause", tests, NULL, NULL);
}
