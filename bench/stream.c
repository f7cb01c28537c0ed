/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.c - goodput of rddp/stream.h over two TUN devices with the kernel forwarding between them, for each MTU and
 * loss rate, with the option and as a plain stream; each end is a thread on a processor of its own.
 *
 * stream [MIB [ROUNDS]] [checksums]: transfers MIB for each line, default 64. With ROUNDS measures all lines this
 * many times in turn, and prints the one with the median goodput, and the range. With `checksums` the streams compute
 * and verify them, not the devices. It creates its own network namespace. `copies` counts the receiver's copies in user
 * space; `path` is what passes the devices without any TCP. */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rddp/stream.h>

#include "bench/lib/path.h"
#include "bench/lib/raw.h"

enum { MTUS = 4, LOSSES = 4, ROUNDS_MAX = 32 };
enum { PORT = 700, TRANSFER = 1 << 20, HEAD = 64, WINDOW = 1 << 20, AHEAD = 8, NAP_MS = 20 };

static const uint32_t mtus[MTUS] = {1280, 1500, 9000, 65000}, losses[LOSSES] = {0, 100, 1000, 5000};

/* What one line shows. */
struct line {
    double gbps, cpu, copies, early_mb;
    uint64_t kept_max, sent_again, timeouts;
};

static struct line lines[2][MTUS][LOSSES][ROUNDS_MAX], paths[MTUS][ROUNDS_MAX];
static uint8_t *source, *target;
static bool checksums;

static double seconds(void)
{
    return (double)path_now_us() / 1e6;
}

static double cpu_seconds(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static struct rddp_stream_net *open_net(uint32_t number, uint32_t mtu, uint32_t lose, bool option)
{
    struct sockaddr_in neighbor = path_address(number, 1, 0);
    struct rddp_stream_net_attr attr;
    struct rddp_stream_net *net;

    rddp_stream_net_attr_init(&attr);
    attr.neighbor = (struct sockaddr *)&neighbor;
    attr.prefix = 24;
    attr.mtu = mtu;
    attr.window = WINDOW;
    attr.no_option = !option;
    attr.checksums = checksums;
    attr.lose = number == 1 ? lose : 0; /* in each direction */
    net = rddp_stream_net_open(&attr);
    if (!net)
        path_die("rddp_stream_net_open");
    return net;
}

/* Writes as many transfers as may be outstanding. Returns the number written so far. */
static uint32_t write_some(struct rddp_stream *s, uint32_t written, uint32_t transfers)
{
    while (written < transfers && rddp_stream_unacked(s) < (uint64_t)AHEAD * TRANSFER) {
        struct rddp_stream_mark mark = {.rid = written, .total = TRANSFER, .has_total = true};

        if (rddp_stream_write(s, source, HEAD, RDDP_STREAM_MESSAGE, NULL) ||
            rddp_stream_write(s, source, TRANSFER, 0, &mark))
            path_die("rddp_stream_write");
        written++;
    }
    return written;
}

static uint64_t read_some(struct rddp_stream *s, uint32_t *expected, uint32_t transfers)
{
    static uint8_t plain[1 << 17];
    struct rddp_stream_record r;
    uint64_t octets = 0;

    while (rddp_stream_read(s, plain, sizeof(plain), &r) > 0) {
        octets += r.length;
        if (r.kind != RDDP_STREAM_PLACED || r.buffer_offset + r.length < TRANSFER)
            continue;
        rddp_stream_forget(s, r.rid);
        if (*expected < transfers) {
            rddp_stream_expect(s, *expected, target + (uint64_t)(*expected % (2 * AHEAD)) * TRANSFER, TRANSFER);
            ++*expected;
        }
    }
    return octets;
}

/* After the time was taken: the kernel's receiver, to which this is compared, does not look at its data either. */
static void verify(uint32_t transfers)
{
    for (uint32_t i = 0; i < 2 * AHEAD && i < transfers; i++)
        if (memcmp(target + (size_t)i * TRANSFER, source, TRANSFER) != 0)
            path_die("wrong data");
}

static struct line line_of(const struct rddp_stream *to, const struct rddp_stream *from, double took, double cpu,
                           double gb)
{
    struct rddp_stream_counters in, out;

    rddp_stream_count(to, &in);
    rddp_stream_count(from, &out);
    return (struct line){
        .gbps = gb * 8 / took,
        .cpu = cpu / gb,
        .copies = (double)in.octets_copied / (double)in.octets_in,
        .early_mb = (double)in.octets_placed_early / 1e6,
        .kept_max = in.kept_max,
        .sent_again = out.sent_again,
        .timeouts = out.timeouts,
    };
}

static int by_goodput(const void *a, const void *b)
{
    double x = ((const struct line *)a)->gbps, y = ((const struct line *)b)->gbps;

    return x < y ? -1 : x > y;
}

static void report(struct line *line, uint32_t rounds)
{
    const struct line *l = line + rounds / 2;

    qsort(line, rounds, sizeof(*line), by_goodput);
    printf("%8.2f %8.2f %8.4f %9.1f %10llu %8llu %8llu  %.2f-%.2f\n", l->gbps, l->cpu, l->copies, l->early_mb,
           (unsigned long long)l->kept_max, (unsigned long long)l->sent_again, (unsigned long long)l->timeouts,
           line[0].gbps, line[rounds - 1].gbps);
}

struct sending {
    struct rddp_stream_net *net;
    struct rddp_stream *stream;
    uint32_t transfers;
    atomic_bool over;
};

static void *send_all(void *of)
{
    struct sending *s = of;
    uint32_t written = 0;

    path_pin(0);
    while (!s->over) {
        written = write_some(s->stream, written, s->transfers);
        rddp_stream_progress(s->net, NAP_MS);
    }
    return NULL;
}

static struct line run(uint32_t mtu, uint32_t lose, bool option, uint32_t transfers)
{
    struct rddp_stream_net *here = open_net(1, mtu, lose, option), *there = open_net(2, mtu, lose, option);
    struct sockaddr_in from = path_address(1, 2, 0), to = path_address(2, 2, PORT);
    uint64_t octets = 0, all = (uint64_t)transfers * (TRANSFER + HEAD);
    struct rddp_stream *sender, *reader = NULL;
    struct sending sending = {.net = here, .transfers = transfers};
    double start, cpu, took;
    struct line line;
    uint32_t expected = 0;
    pthread_t thread;

    memset(target, 0, (size_t)2 * AHEAD * TRANSFER); /* nor does the system look for its pages while the time runs */
    rddp_stream_listen(there, PORT, 1);
    sender = rddp_stream_connect(here, (struct sockaddr *)&from, (struct sockaddr *)&to);
    if (!sender)
        path_die("rddp_stream_connect");
    while (!(reader = rddp_stream_accept(there))) {
        rddp_stream_progress(here, 1);
        rddp_stream_progress(there, 1);
    }
    for (; expected < 2 * AHEAD && expected < transfers; expected++)
        rddp_stream_expect(reader, expected, target + (uint64_t)expected * TRANSFER, TRANSFER);
    start = seconds();
    cpu = cpu_seconds();
    sending.stream = sender;
    if (pthread_create(&thread, NULL, send_all, &sending))
        path_die("pthread_create");
    path_pin(1);
    while (octets < all) {
        rddp_stream_progress(there, NAP_MS);
        octets += read_some(reader, &expected, transfers);
    }
    took = seconds() - start;
    cpu = cpu_seconds() - cpu;
    sending.over = true;
    pthread_join(thread, NULL);
    path_unpin();
    line = line_of(reader, sender, took, cpu, (double)all / 1e9);
    if (option)
        verify(transfers);
    rddp_stream_close(sender);
    rddp_stream_close(reader);
    rddp_stream_net_close(here);
    rddp_stream_net_close(there);
    return line;
}

static void measure(uint32_t round, uint32_t transfers)
{
    for (size_t m = 0; m < MTUS; m++)
        paths[m][round].gbps = raw_goodput(mtus[m], WINDOW);
    for (int plain = 0; plain < 2; plain++)
        for (size_t m = 0; m < MTUS; m++)
            for (size_t l = 0; l < LOSSES; l++)
                lines[plain][m][l][round] = run(mtus[m], losses[l], !plain, transfers);
}

static void report_all(uint32_t rounds)
{
    printf("stream     MTU loss %%     Gb/s cpu s/GB copies/B  early MB   kept max    again timeouts  range of Gb/s\n");
    for (size_t m = 0; m < MTUS; m++) {
        qsort(paths[m], rounds, sizeof(paths[m][0]), by_goodput);
        printf("path    %6u        %8.2f%61.2f-%.2f\n", mtus[m], paths[m][rounds / 2].gbps, paths[m][0].gbps,
               paths[m][rounds - 1].gbps);
    }
    for (int plain = 0; plain < 2; plain++)
        for (size_t m = 0; m < MTUS; m++)
            for (size_t l = 0; l < LOSSES; l++) {
                printf("%-7s %6u %6.1f", plain ? "plain" : "option", mtus[m], losses[l] / 1000.0);
                report(lines[plain][m][l], rounds);
            }
}

int main(int argc, char **argv)
{
    uint32_t transfers, rounds;
    int fd;

    checksums = argc > 1 && !strcmp(argv[argc - 1], "checksums");
    argc -= checksums;
    transfers = argc > 1 ? (uint32_t)atoi(argv[1]) : 64;
    rounds = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    if (!transfers || !rounds || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: stream [MIB [ROUNDS]] [checksums], at most %d rounds\n", ROUNDS_MAX);
        return 2;
    }
    if ((unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET)) ||
        (fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY)) < 0 || write(fd, "1", 1) != 1)
        path_die("a network namespace");
    source = malloc(TRANSFER);
    target = malloc((size_t)2 * AHEAD * TRANSFER);
    if (!source || !target)
        path_die("malloc");
    for (uint32_t i = 0; i < TRANSFER; i++)
        source[i] = (uint8_t)(i * 7 + i / 253);
    for (uint32_t round = 0; round < rounds; round++)
        measure(round, transfers);
    report_all(rounds);
    return 0;
}
