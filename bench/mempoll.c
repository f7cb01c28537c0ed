/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mempoll.c - half of the round-trip time of 8-octet Writes, depending on what each side polls. mempoll [ROUNDS
 * [SECONDS]]
 *
 * cq: polls its CQ; memory: polls its memory only; both: eight empty polls of the CQ, then memory, like
 * ib_write_lat, UCX and MPI. Rounds are interleaved; medians are printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/ends.h"

enum { TRIPS_MAX = 1 << 20, SIZE = 8, EMPTY_POLLS = 8, PARTS = 4, WAYS = 3 };
enum way { WAY_CQ, WAY_MEMORY, WAY_BOTH };

static const char *const way_name[WAYS] = {"cq", "memory", "both"};
static const double part[PARTS] = {0.5, 0.9, 0.99, 0.999};
static enum way way;
static double took_us[TRIPS_MAX];

/* The last count that the peer wrote; it is in the second half of the memory. */
static volatile uint64_t *arrived(struct end *end)
{
    return (volatile uint64_t *)(void *)(end->memory + ENDS_OCTETS / 2);
}

static void send_count(struct end *end, uint64_t count)
{
    int polls = way == WAY_BOTH ? EMPTY_POLLS : 0;

    memcpy(end->memory, &count, sizeof(count));
    ends_write(end, 1, SIZE);
    while (!ends_poll(end, 1))
        continue;
    while (polls--)
        ends_poll(end, 1);
}

static void wait_for(struct end *end, uint64_t count)
{
    while (*arrived(end) != count)
        if (way == WAY_CQ)
            ends_poll(end, 1);
}

static void answer(struct end *end)
{
    end->peer_at += ENDS_OCTETS / 2;
    for (uint64_t count = 1;; count++) {
        wait_for(end, count);
        send_count(end, count);
    }
}

static void measure(double seconds, double result[PARTS])
{
    uint64_t end_ns, before;
    struct ends_peer peer;
    struct end end;
    size_t n = 0;

    ends_start(&peer, answer);
    ends_open(&end, &peer, NULL, 1);
    end.peer_at += ENDS_OCTETS / 2;
    ends_tell(&end, &peer);
    for (end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9); ends_now_ns() < end_ns && n < TRIPS_MAX; n++) {
        before = ends_now_ns();
        send_count(&end, n + 1);
        wait_for(&end, n + 1);
        took_us[n] = (double)(ends_now_ns() - before) / 2e3;
    }
    for (int i = 0; i < PARTS; i++)
        result[i] = ends_at(took_us, n, part[i]);
    ends_stop(&peer);
    ends_close(&end, true);
}

int main(int argc, char **argv)
{
    static double value[WAYS][PARTS][ENDS_ROUNDS_MAX];
    int rounds;
    double seconds, result[PARTS], polling = 0;

    ends_arguments(argc, argv, &rounds, &seconds);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < WAYS; i++) {
            way = (enum way)i;
            measure(seconds, result);
            for (int j = 0; j < PARTS; j++)
                value[i][j][round] = result[j];
        }
    printf("half a round trip of %d octets, us (%d rounds)\n", SIZE, rounds);
    printf("waits on      p50      p90      p99    p99.9   p90 against cq\n");
    for (int i = 0; i < WAYS; i++) {
        for (int j = 0; j < PARTS; j++)
            result[j] = ends_at(value[i][j], (size_t)rounds, 0.5);
        if (i == WAY_CQ)
            polling = result[1];
        printf("%-7s %8.1f %8.1f %8.1f %8.1f   %.2f\n", way_name[i], result[0], result[1], result[2], result[3],
               result[1] / polling);
    }
    return 0;
}
