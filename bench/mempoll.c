/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mempoll.c - half of the round-trip time of 8-octet Writes, depending on what each side polls. mempoll [ROUNDS
 * [SECONDS]]
 *
 * cq: polls its CQ; memory: polls its memory only; both: eight empty polls of the CQ, then memory, like
 * ib_write_lat, UCX and MPI. These keep two processors busy, one on each side, and the threads of both contexts want
 * one, too. reads: as `both`, by Reads of a peer that sleeps; the program has a processor of its own, and all threads
 * of the library share the others. raw: as `memory`, but a thread that sleeps in recv() writes there, without rddp.
 * Rounds are interleaved; medians are printed. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/ends.h"
#include "bench/lib/raw_tcp.h"

enum { TRIPS_MAX = 1 << 20, SIZE = 8, EMPTY_POLLS = 8, PARTS = 4, WAYS = 5 };
enum way { WAY_CQ, WAY_MEMORY, WAY_BOTH, WAY_READS, WAY_RAW };

static const char *const way_name[WAYS] = {"cq", "memory", "both", "reads", "raw"};
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

/* Reads eight octets, which are zero, to where the count is awaited. The completion of the Read before is due. */
static void read_zero(struct end *end, uint64_t count)
{
    struct rddp_sge to = {(uint64_t)(uintptr_t)arrived(end), SIZE, rddp_mr_key(end->mr)};
    struct rddp_send_wr wr = {
        .sg_list = &to, .num_sge = 1, .opcode = RDDP_WR_RDMA_READ, .remote_addr = end->peer_at, .rkey = end->peer_key};
    int error;

    *arrived(end) = count;
    wr.send_flags = RDDP_SEND_SIGNALED;
    error = rddp_post_send(end->qp, &wr, NULL);
    if (error)
        ends_fail("rddp_post_send", error);
    for (int polls = 0; polls < EMPTY_POLLS; polls++)
        ends_poll(end, 1);
    wait_for(end, 0);
}

/* Keeps this thread, and those that it starts from now on, on the first processor (`first`) or off it. */
static void keep_to(const cpu_set_t *all, bool first)
{
    cpu_set_t some;
    size_t cpu = 0;

    CPU_ZERO(&some);
    while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, all))
        cpu++;
    CPU_SET(cpu, &some);
    if (!first)
        CPU_XOR(&some, &some, all);
    if (sched_setaffinity(0, sizeof(some), &some))
        ends_fail("sched_setaffinity", 0);
}

static size_t measure_ends(double seconds)
{
    uint64_t end_ns, before;
    struct ends_peer peer;
    struct end end;
    cpu_set_t all;
    size_t n = 0;

    sched_getaffinity(0, sizeof(all), &all);
    if (way == WAY_READS && CPU_COUNT(&all) > 1)
        keep_to(&all, false);
    ends_start(&peer, way == WAY_READS ? NULL : answer);
    ends_open(&end, &peer, NULL, 1);
    if (way == WAY_READS && CPU_COUNT(&all) > 1)
        keep_to(&all, true);
    end.peer_at += ENDS_OCTETS / 2;
    if (way != WAY_READS)
        ends_tell(&end, &peer);
    for (end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9); ends_now_ns() < end_ns && n < TRIPS_MAX; n++) {
        before = ends_now_ns();
        if (way == WAY_READS) {
            read_zero(&end, n + 1);
        } else {
            send_count(&end, n + 1);
            wait_for(&end, n + 1);
        }
        took_us[n] = (double)(ends_now_ns() - before) / 2e3;
    }
    ends_stop(&peer);
    ends_close(&end, true);
    sched_setaffinity(0, sizeof(all), &all);
    return n;
}

static void measure(double seconds, double result[PARTS])
{
    size_t n = way == WAY_RAW ? raw_tcp_trips(seconds, took_us, TRIPS_MAX) : measure_ends(seconds);

    for (int i = 0; i < PARTS; i++)
        result[i] = ends_at(took_us, n, part[i]);
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
    printf("waits on      p50      p90      p99    p99.9   p90 against cq   p99.9 against p50\n");
    for (int i = 0; i < WAYS; i++) {
        for (int j = 0; j < PARTS; j++)
            result[j] = ends_at(value[i][j], (size_t)rounds, 0.5);
        if (i == WAY_CQ)
            polling = result[1];
        printf("%-7s %8.1f %8.1f %8.1f %8.1f   %14.2f   %17.1f\n", way_name[i], result[0], result[1], result[2],
               result[3], result[1] / polling, result[3] / result[0]);
    }
    return 0;
}
