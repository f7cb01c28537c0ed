/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.c - a server sends a picture with a line before and after it. The picture is placed in the client's buffer;
 * the lines are read as from any stream. Both ends are in this process, in its own network namespace, so that no
 * privilege is needed; the kernel forwards between the two devices. */
#define _GNU_SOURCE /* unshare() */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rddp/stream.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT = 80, RID = 1, SIZE = 300000 };

static uint8_t sent[SIZE], picture[SIZE];

static void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static struct sockaddr_in address(uint32_t net, uint32_t host, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(10U << 24 | net << 16 | host), .sin_port = htons(port)};
}

/* The kernel has the address 10.NUMBER.0.1; all others in 10.NUMBER.0.0/24 are ours. */
static struct rddp_stream_net *open_net(uint32_t number)
{
    struct sockaddr_in neighbor = address(number, 1, 0);
    struct rddp_stream_net_attr attr;
    struct rddp_stream_net *net;

    rddp_stream_net_attr_init(&attr);
    attr.neighbor = (struct sockaddr *)&neighbor;
    attr.prefix = 24;
    attr.lose = 1000; /* one packet in a hundred: data after a lost packet are placed all the same */
    net = rddp_stream_net_open(&attr);
    check(net != NULL, "rddp_stream_net_open");
    return net;
}

static void serve(struct rddp_stream *client)
{
    static const char before[] = "here is a picture\n", behind[] = "that was it\n";
    struct rddp_stream_mark mark = {.rid = RID, .total = SIZE, .has_total = true};

    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (uint8_t)(i * i / 7);
    check(!rddp_stream_write(client, before, sizeof(before) - 1, RDDP_STREAM_MESSAGE, NULL), "write");
    check(!rddp_stream_write(client, sent, SIZE, 0, &mark), "write");
    check(!rddp_stream_write(client, behind, sizeof(behind) - 1, 0, NULL), "write");
    check(!rddp_stream_finish(client), "finish");
}

/* Reads all that has arrived, in the order of the stream. Returns false at its end. */
static int read_all(struct rddp_stream *stream)
{
    struct rddp_stream_record record;
    char text[100];
    int got;

    while ((got = rddp_stream_read(stream, text, sizeof(text), &record)) > 0) {
        if (record.kind == RDDP_STREAM_FINISH)
            return 0;
        if (record.kind == RDDP_STREAM_PLAIN)
            printf("%.*s", (int)record.length, text);
        else
            printf("%zu octets of transfer %llu lie at %llu\n", record.length, (unsigned long long)record.rid,
                   (unsigned long long)record.buffer_offset);
    }
    check(!got, "read");
    return 1;
}

int main(void)
{
    struct sockaddr_in from = address(1, 2, 0), to = address(2, 2, PORT);
    struct rddp_stream_net *here, *there;
    struct rddp_stream *stream, *client = NULL;
    struct rddp_stream_counters count;
    int forward;

    if ((unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET)) || access("/dev/net/tun", R_OK | W_OK)) {
        perror("cannot run here");
        return 77;
    }
    forward = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY);
    check(forward >= 0 && write(forward, "1", 1) == 1, "ip_forward");
    here = open_net(1);
    there = open_net(2);
    check(!rddp_stream_listen(there, PORT, 1), "listen");
    stream = rddp_stream_connect(here, (struct sockaddr *)&from, (struct sockaddr *)&to);
    check(stream != NULL, "connect");
    check(!rddp_stream_expect(stream, RID, picture, SIZE), "expect");
    while (read_all(stream)) {
        rddp_stream_progress(here, 1);
        rddp_stream_progress(there, 1);
        if (!client && (client = rddp_stream_accept(there)))
            serve(client);
    }
    rddp_stream_count(stream, &count);
    printf("%llu octets were placed, %llu of them early; at most %llu waited\n",
           (unsigned long long)count.octets_placed, (unsigned long long)count.octets_placed_early,
           (unsigned long long)count.kept_max);
    rddp_stream_close(stream);
    rddp_stream_close(client);
    return rddp_stream_net_close(here) || rddp_stream_net_close(there) || memcmp(sent, picture, SIZE) != 0;
}
