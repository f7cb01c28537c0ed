/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rate.c - how many 8-octet Writes a second can be posted: one at a time and in lists, signalled or not, without the
 * library's thread and with it, and by several threads on one loop or two. rate [ROUNDS [SECONDS]]
 *
 * The memory is another process's, which polls if there is one poster. Each poster has its own queue pair and CQ, and
 * 256 Writes under way; all share a context. Rounds are interleaved; medians are printed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/lib/ends.h"

enum { SIZE = 8, FEW = 64, POSTERS_MAX = 8 };

struct row {
    uint32_t list;
    uint32_t every; /* one Write of as many is signalled: FEW, or 1 */
    uint32_t posters;
    uint32_t loops; /* each with a thread; 0: none, and no thread */
};

static const struct row rows[] = {
    {1, 1, 1, 0},  {1, FEW, 1, 0}, {16, 1, 1, 0},   {32, 1, 1, 0}, {32, FEW, 1, 0}, {1, 1, 1, 1},  {1, FEW, 1, 1},
    {16, 1, 1, 1}, {32, 1, 1, 1},  {32, FEW, 1, 1}, {32, 1, 2, 1}, {32, 1, 2, 2},   {32, 1, 8, 1}, {32, 1, 8, 2},
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

/* Millions of Writes a second, of all posters together. */
static double measure(const struct row *row, double seconds)
{
    struct poster poster[POSTERS_MAX];
    struct ends_peer peer;
    uint64_t done = 0;

    ends_start(&peer, row->posters == 1 ? ends_poll_always : NULL);
    for (uint32_t i = 0; i < row->posters; i++) {
        poster[i] = (struct poster){.list = row->list, .seconds = seconds};
        ends_open(&poster[i].end, &peer, i ? poster[0].end.context : NULL, row->loops);
        poster[i].end.every = row->every;
    }
    if (row->posters == 1)
        ends_tell(&poster[0].end, &peer);
    for (uint32_t i = 0; i < row->posters; i++)
        if (pthread_create(&poster[i].thread, NULL, post, &poster[i]))
            ends_fail("pthread_create", 0);
    for (uint32_t i = 0; i < row->posters; i++) {
        pthread_join(poster[i].thread, NULL);
        done += poster[i].done;
    }
    ends_stop(&peer);
    for (uint32_t i = row->posters; i-- > 0;)
        ends_close(&poster[i].end, i == 0);
    return (double)done / seconds / 1e6;
}

int main(int argc, char **argv)
{
    static double value[ROWS][ENDS_ROUNDS_MAX];
    int rounds;
    double seconds;

    ends_arguments(argc, argv, &rounds, &seconds);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < ROWS; i++)
            value[i][round] = measure(&rows[i], seconds);
    printf("Writes of %d octets, %d under way a poster: medians of %d rounds\n", SIZE, ENDS_UNDER_WAY, rounds);
    printf("list  signalled  posters  threads   M/s\n");
    for (int i = 0; i < ROWS; i++)
        printf("%4u  %9s  %7u  %7u  %5.2f\n", rows[i].list, rows[i].every == 1 ? "each" : "1 in 64", rows[i].posters,
               rows[i].loops, ends_at(value[i], (size_t)rounds, 0.5));
    return 0;
}
