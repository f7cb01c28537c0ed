/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fair.c - a loop with more work than time gives its lock to a thread that waits for it. */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum {
    WAITS = 200,   /* for the loop lock */
    GLUTTONS = 60, /* descriptors that are ready in each round */
    TURNS = 35,    /* the median of all waits: a busy machine makes some of them long, and a whole round has 60 */
};

/* Descriptors that are always ready keep the loop's thread busy, 200 us each time. */
static atomic_uint turns;

static void eat(struct watch *watch, uint32_t events)
{
    uint64_t until_us = reactor_now_us() + 200;

    (void)watch;
    (void)events;
    turns++;
    while (reactor_now_us() < until_us)
        continue;
}

static int compare(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

    return (x > y) - (x < y);
}

/* A thread that waits for the loop lock gets it after a few turns, not only when the loop has no work left. */
static void token_in_turn(void **state)
{
    struct rddp_context *context = rddp_open(NULL);
    struct loop *loop = context->loop;
    struct watch watch[GLUTTONS];
    unsigned waited[WAITS];

    (void)state;
    for (int i = 0; i < GLUTTONS; i++) {
        watch[i] = (struct watch){.fd = eventfd(1, EFD_CLOEXEC), .ready = eat};
        assert_int_equal(reactor_watch(&loop->reactor, &watch[i], EPOLLIN), 0);
    }
    while (turns < 10)
        sched_yield();
    for (int i = 0; i < WAITS; i++) {
        unsigned before = turns;

        loop_lock(loop);
        waited[i] = turns - before;
        loop_unlock(loop);
        poll(NULL, 0, 1); /* otherwise this thread takes the loop lock again at once */
    }
    qsort(waited, WAITS, sizeof(waited[0]), compare);
    print_message("turns in %d waits: least %u, median %u, most %u\n", WAITS, waited[0], waited[WAITS / 2],
                  waited[WAITS - 1]);
    assert_in_range(waited[WAITS / 2], 0, TURNS);
    loop_lock(loop);
    for (int i = 0; i < GLUTTONS; i++) {
        reactor_unwatch(&loop->reactor, &watch[i]);
        close(watch[i].fd);
    }
    loop_unlock(loop);
    assert_int_equal(rddp_close(context), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(token_in_turn)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
