/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spin.c - a thread that looks for the next arrival for a while before it sleeps, and leaves that if none comes. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/suite/lib/pair.h"

enum { TRIPS = 200, WORD = 8, SPIN_US = 20000, REST_MS = 25, ARRIVALS_MAX = 1000 };

static uint64_t used_us(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

static void rest(int ms)
{
    poll(NULL, 0, ms);
}

/* The last count that the peer wrote. */
static uint64_t count_at(const struct side *side)
{
    return *(volatile uint64_t *)(void *)(side->buffer + WORD);
}

static void tell(struct side *from, struct side *to, uint64_t count)
{
    memcpy(from->buffer, &count, sizeof(count));
    assert_int_equal(pair_post(from, to, RDDP_WR_RDMA_WRITE, count, 0, WORD, WORD, 0), 0);
}

static void await(const struct side *side, uint64_t count)
{
    for (int ms = 0; count_at(side) != count && ms < PAIR_WAIT_MS; ms++)
        rest(1);
    assert_int_equal(count_at(side), count);
}

/* Neither end makes a call while it waits: the threads serve both. */
static void serves_memory(void **state)
{
    struct pair *pair = *state;

    for (uint64_t count = 1; count <= TRIPS; count++) {
        tell(&pair->client, &pair->server, count);
        await(&pair->server, count);
        tell(&pair->server, &pair->client, count);
        await(&pair->client, count);
    }
}

/* Makes one thread see an arrival, and returns the processor time that is used after it. */
static uint64_t use_after_arrival(struct pair *pair, uint64_t count)
{
    uint64_t begun_us;

    tell(&pair->client, &pair->server, count);
    await(&pair->server, count);
    begun_us = used_us();
    rest(REST_MS);
    return used_us() - begun_us;
}

/* The thread uses its processor after an arrival, and for a while no more when nothing came several times. One low
 * figure can mean that others had the processor. */
static void stays_awake_for_a_while(void **state)
{
    struct pair *pair = *state;
    uint64_t count = 0;
    int low = 0;

    while (use_after_arrival(pair, ++count) < SPIN_US / 5)
        assert_true(count < ARRIVALS_MAX);
    while (low < 2) {
        assert_true(count < 2 * ARRIVALS_MAX);
        low = use_after_arrival(pair, ++count) < SPIN_US / 20 ? low + 1 : 0;
    }
}

static int set_up(void **state)
{
    static const struct row row = {.name = "spin", .mpa_revision = 2, .spin_us = SPIN_US};
    static struct pair pair;

    pair = (struct pair){0};
    pair_open(&pair, &row);
    pair_connect(&pair);
    *state = &pair;
    return 0;
}

static int tear_down(void **state)
{
    pair_close(*state);
    return 0;
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
    puts("an application that waits at its memory races with the thread, as intended");
    return 77;
#endif
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(serves_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stays_awake_for_a_while, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
