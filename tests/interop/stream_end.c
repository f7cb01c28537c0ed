/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_end.c - a stream of rddp/stream.h as one end of a connection with a peer that knows the TCP RDMA option.
 *
 * stream_end DEVICE connect|listen send|receive|both NEIGHBOR OWN PEER PORT [partly]
 *
 * It sends an octet when it is ready, and then messages: a head of 48 octets, and data that belong to a transfer. It
 * checks the messages that it receives, that the data lie where they belong, and that no octet was written outside. All
 * data must have been placed; with `partly`, some of them. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rddp/stream.h>

enum { MESSAGES = 200, HEAD = 48, GUARD = 64, PLAIN = 1 << 16, CANARY = 0xa5 };

static struct rddp_stream_net *net;
static struct rddp_stream *stream;
static uint8_t *text[MESSAGES], *target[MESSAGES];
static uint64_t placed;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "stream_end: %s\n", what);
    exit(1);
}

/* What both ends know of the messages. */
static uint32_t length_of(uint32_t i)
{
    return 1 + i * 7919 % 30011;
}

static uint64_t rid_of(uint32_t i)
{
    return (i + 1) * 0x9e3779b97f4a7c15ULL >> 18;
}

static void make_memory(void)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        text[i] = malloc(HEAD + length_of(i));
        target[i] = malloc(length_of(i) + 2 * GUARD);
        if (!text[i] || !target[i])
            die("no memory");
        for (uint32_t at = 0; at < HEAD + length_of(i); at++)
            text[i][at] = (uint8_t)(i * 131 + at * 7 + at / 251);
        memset(target[i], CANARY, length_of(i) + 2 * GUARD);
    }
}

static struct sockaddr_in address(const char *text_of_it, uint16_t port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};

    if (inet_pton(AF_INET, text_of_it, &name.sin_addr) != 1)
        die("expected an IPv4 address");
    return name;
}

static void open_stream(char **argv)
{
    struct sockaddr_in neighbor = address(argv[4], 0), own = address(argv[5], 0);
    struct sockaddr_in peer = address(argv[6], (uint16_t)atoi(argv[7]));
    struct rddp_stream_net_attr attr;

    rddp_stream_net_attr_init(&attr);
    attr.device = argv[1];
    attr.neighbor = (struct sockaddr *)&neighbor;
    attr.prefix = 24;
    net = rddp_stream_net_open(&attr);
    if (!net)
        die(strerror(errno));
    if (!strcmp(argv[2], "listen")) {
        if (rddp_stream_listen(net, (uint16_t)atoi(argv[7]), 1))
            die("rddp_stream_listen");
        puts("ready");
        fflush(stdout);
        while (!(stream = rddp_stream_accept(net)))
            rddp_stream_progress(net, -1);
        return;
    }
    stream = rddp_stream_connect(net, (struct sockaddr *)&own, (struct sockaddr *)&peer);
    while (stream && rddp_stream_state(stream) == RDDP_STREAM_CONNECTING)
        rddp_stream_progress(net, -1);
    if (!stream || rddp_stream_state(stream) != RDDP_STREAM_OPEN)
        die("no connection");
}

static void write_all(void)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct rddp_stream_mark mark = {.rid = rid_of(i), .total = length_of(i), .has_total = i % 2};

        if (rddp_stream_write(stream, text[i], HEAD, RDDP_STREAM_MESSAGE | RDDP_STREAM_MORE, NULL) ||
            rddp_stream_write(stream, text[i] + HEAD, length_of(i), i + 1 < MESSAGES ? RDDP_STREAM_MORE : 0, &mark))
            die("rddp_stream_write");
    }
}

/* Tells the peer that there is a buffer for each transfer. */
static void say_ready(void)
{
    if (rddp_stream_write(stream, "", 1, 0, NULL))
        die("rddp_stream_write");
    while (rddp_stream_unacked(stream))
        rddp_stream_progress(net, 1000);
}

static void expect_all(void)
{
    for (uint32_t i = 0; i < MESSAGES; i++)
        if (rddp_stream_expect(stream, rid_of(i), target[i] + GUARD, length_of(i)))
            die("rddp_stream_expect");
}

/* Compares the part of the stream that `r` tells about, which begins at octet `at` of message `i`. */
static void check_record(const struct rddp_stream_record *r, const uint8_t *plain, uint32_t *i, uint32_t *at)
{
    const uint8_t *from = r->kind == RDDP_STREAM_PLACED ? r->at : plain;

    if (r->kind == RDDP_STREAM_PLACED) {
        if (r->rid != rid_of(*i) || from != target[*i] + GUARD + *at - HEAD || r->buffer_offset != *at - HEAD)
            die("placed elsewhere");
        placed += r->length;
    }
    for (size_t k = 0; k < r->length; k++) {
        if (*i >= MESSAGES || from[k] != text[*i][*at])
            die("a wrong octet");
        if (++*at == HEAD + length_of(*i)) {
            ++*i;
            *at = 0;
        }
    }
}

/* Reads until the peer finishes, and returns the octets of data. */
static void read_all(bool expected)
{
    static uint8_t plain[PLAIN];
    struct rddp_stream_record r = {0};
    uint32_t message = 0, at = 0;
    int got;

    while (r.kind != RDDP_STREAM_FINISH) {
        rddp_stream_progress(net, 1000);
        while (r.kind != RDDP_STREAM_FINISH && (got = rddp_stream_read(stream, plain, sizeof(plain), &r)) != 0) {
            if (got < 0)
                die(strerror(-got));
            check_record(&r, plain, &message, &at);
        }
    }
    if (message != (expected ? MESSAGES : 0) || at)
        die("the stream ended early");
}

static void check_guards(void)
{
    for (uint32_t i = 0; i < MESSAGES; i++)
        for (uint32_t k = 0; k < GUARD; k++)
            if (target[i][k] != CANARY || target[i][GUARD + length_of(i) + k] != CANARY)
                die("an octet was written outside a buffer");
}

int main(int argc, char **argv)
{
    struct rddp_stream_counters count;
    bool sends, receives;
    uint64_t data = 0;

    if (argc < 8) {
        fprintf(stderr, "usage: stream_end DEVICE connect|listen send|receive|both NEIGHBOR OWN PEER PORT [partly]\n");
        return 2;
    }
    sends = strcmp(argv[3], "receive") != 0;
    receives = strcmp(argv[3], "send") != 0;
    make_memory();
    open_stream(argv);
    if (!rddp_stream_has_option(stream))
        die("the peer does not offer the option");
    if (receives)
        expect_all();
    say_ready();
    if (sends)
        write_all();
    rddp_stream_finish(stream);
    read_all(receives);
    while (rddp_stream_state(stream) == RDDP_STREAM_OPEN)
        rddp_stream_progress(net, 1000);
    for (uint32_t i = 0; receives && i < MESSAGES; i++)
        data += length_of(i);
    check_guards();
    rddp_stream_count(stream, &count);
    printf("data=%llu placed=%llu early=%llu kept=%llu again=%llu\n", (unsigned long long)data,
           (unsigned long long)placed, (unsigned long long)count.octets_placed_early,
           (unsigned long long)count.kept_max, (unsigned long long)count.sent_again);
    if (placed != count.octets_placed || (argc == 8 ? placed < data : !placed))
        die("not all data were placed");
    if (count.options_bad || count.options_unknown || count.options_outside || count.options_total)
        die("wrong options");
    rddp_stream_close(stream);
    return rddp_stream_net_close(net) ? 1 : 0;
}
