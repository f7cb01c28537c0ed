/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rate.c - how many 8-octet Writes a second can be posted: one at a time, in lists, and by threads on one loop or
 * several. rate [ROUNDS [SECONDS]]
 *
 * Each thread has its own queue pair and CQ, and 256 Writes under way; all share a context. Rounds are interleaved;
 * medians are printed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/lib/ends.h"

enum { SIZE = 8, LIST = 32, THREADS_MAX = 8 };

struct row {
    uint32_t list, threads, loops;
};

static const struct row rows[] = {
    {1, 1, 1}, {LIST, 1, 1}, {LIST, 1, 2}, {LIST, 2, 1}, {LIST, 2, 2}, {LIST, 8, 1}, {LIST, 8, 2},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

struct poster {
    struct end end;
    uint32_t list;
    double seconds;
    uint64_t done;
    pthread_t thread;
};

static void *post(void *arg)
{
    struct poster *poster = arg;

    poster->done = ends_write_for(&poster->end, poster->list, SIZE, poster->seconds);
    return NULL;
}

/* Millions of Writes a second, of all threads together. */
static double measure(const struct row *row, double seconds)
{
    struct poster poster[THREADS_MAX];
    struct ends_peer peer;
    uint64_t done = 0;

    ends_start(&peer, NULL);
    for (uint32_t i = 0; i < row->threads; i++) {
        poster[i] = (struct poster){.list = row->list, .seconds = seconds};
        ends_open(&poster[i].end, &peer, i ? poster[0].end.context : NULL, row->loops);
    }
    for (uint32_t i = 0; i < row->threads; i++)
        if (pthread_create(&poster[i].thread, NULL, post, &poster[i]))
            ends_fail("pthread_create", 0);
    for (uint32_t i = 0; i < row->threads; i++) {
        pthread_join(poster[i].thread, NULL);
        done += poster[i].done;
    }
    ends_stop(&peer);
    for (uint32_t i = row->threads; i-- > 0;)
        ends_close(&poster[i].end, i == 0);
    return (double)done / seconds / 1e6;
}

int main(int argc, char **argv)
{
    static double value[ROWS][ENDS_ROUNDS_MAX];
    int rounds;
    double seconds, base = 0, median;

    ends_arguments(argc, argv, &rounds, &seconds);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < ROWS; i++)
            value[i][round] = measure(&rows[i], seconds);
    printf("Writes of %d octets, %d under way a thread (%d rounds)\n", SIZE, ENDS_UNDER_WAY, rounds);
    printf("list threads loops   M/s   against one loop\n");
    for (int i = 0; i < ROWS; i++) {
        median = ends_at(value[i], (size_t)rounds, 0.5);
        if (rows[i].loops == 1)
            base = median;
        printf("%4u %7u %5u  %5.2f  %5.2f\n", rows[i].list, rows[i].threads, rows[i].loops, median, median / base);
    }
    return 0;
}
