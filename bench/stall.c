/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stall.c - measures whether a post waits for the work of another queue pair. stall [ROUNDS [SECONDS]]
 *
 * An 8-octet Write is posted every 20 us while another thread moves Writes of 1 MiB on another queue pair: of the
 * same context, then of another one. Only the call is timed. Rounds are interleaved; medians are printed. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/lib/ends.h"

enum { POSTS_MAX = 1 << 20, SMALL = 8, DEPTH = 16, BETWEEN_NS = 20000, UNPOLLED = 1000, PARTS = 3 };

static const double part[PARTS] = {0.99, 0.999, 1};
static const char *const part_name[PARTS] = {"p99", "p99.9", "worst"};
static _Atomic bool stop;
static double took_us[POSTS_MAX];

static void *move_bulk(void *arg)
{
    struct end *end = arg;
    int under_way = 0;

    while (!stop) {
        for (; under_way < DEPTH; under_way++)
            ends_write(end, 1, ENDS_OCTETS);
        under_way -= ends_poll(end, DEPTH);
    }
    return NULL;
}

static size_t post_for(struct end *end, double seconds)
{
    uint64_t end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9), before, next;
    size_t n = 0;
    int unpolled = 0;

    for (; ends_now_ns() < end_ns && n < POSTS_MAX; n++, unpolled++) {
        before = ends_now_ns();
        ends_write(end, 1, SMALL);
        next = ends_now_ns();
        took_us[n] = (double)(next - before) / 1e3;
        while (ends_now_ns() < next + BETWEEN_NS)
            continue;
        while (unpolled > UNPOLLED)
            unpolled -= ends_poll(end, 64);
    }
    return n;
}

/* Sets `result` to the figures of a round. */
static void measure(bool shared, double seconds, double result[PARTS])
{
    struct end small, bulk;
    struct ends_peer peer;
    pthread_t thread;
    size_t n;

    ends_start(&peer, NULL);
    ends_open(&small, &peer, NULL, 1);
    ends_open(&bulk, &peer, shared ? small.context : NULL, 1);
    stop = false;
    if (pthread_create(&thread, NULL, move_bulk, &bulk))
        ends_fail("pthread_create", 0);
    n = post_for(&small, seconds);
    stop = true;
    pthread_join(thread, NULL);
    for (int i = 0; i < PARTS; i++)
        result[i] = ends_at(took_us, n, part[i]);
    ends_stop(&peer);
    ends_close(&bulk, !shared);
    ends_close(&small, true);
}

int main(int argc, char **argv)
{
    static double same[PARTS][ENDS_ROUNDS_MAX], own[PARTS][ENDS_ROUNDS_MAX];
    int rounds;
    double seconds, result[PARTS], a, b;

    ends_arguments(argc, argv, &rounds, &seconds);
    for (int round = 0; round < rounds; round++) {
        measure(true, seconds, result);
        for (int i = 0; i < PARTS; i++)
            same[i][round] = result[i];
        measure(false, seconds, result);
        for (int i = 0; i < PARTS; i++)
            own[i][round] = result[i];
    }
    printf("post of %d octets beside Writes of 1 MiB: same context, own context, ratio (%d rounds)\n", SMALL, rounds);
    for (int i = 0; i < PARTS; i++) {
        a = ends_at(same[i], (size_t)rounds, 0.5);
        b = ends_at(own[i], (size_t)rounds, 0.5);
        printf("%-6s %9.1f us %9.1f us  %.2f\n", part_name[i], a, b, a / b);
    }
    return 0;
}
