/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw_udp.c - batches of UDP, single packets, and their answers. */
#include "bench/lib/raw_udp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/lib/ends.h"
#include "loop/udp.h"

enum {
    PATIENCE_NS = 20000000, /* what was not answered by then was lost */
    LOST_NS = 100000000,    /* the same of a single one */
    SINGLE = 64,            /* octets of such a packet, at most */
};

static void raw_udp_open(struct udp *udp, struct udp_stage *stage, const struct sockaddr_in *own)
{
    int error = udp_open_with(udp, (const struct sockaddr *)own, sizeof(*own), UDP_UNFRAGMENTED);

    stage->buffer = malloc((size_t)UDP_BUFFERS * UDP_BUFFER_OCTETS);
    if (error || !stage->buffer)
        ends_fail("UDP", error);
}

void raw_udp_answer(const struct sockaddr_in *own, uint32_t octets, uint32_t packets, void (*ready)(void),
                    const _Atomic bool *over)
{
    struct udp_batch batch[UDP_BUFFERS];
    struct udp_stage stage;
    struct udp udp;

    raw_udp_open(&udp, &stage, own);
    ready();
    while (!*over) {
        int n = udp_recv_one(&udp, &stage, batch);

        for (int i = 0; i < n; i++) {
            for (uint32_t k = 0; k < packets; k++) {
                memset(udp_buffer(&udp, &batch[i].from, octets), 0, octets);
                udp_put(&udp, octets);
            }
            udp_flush(&udp);
        }
    }
}

static int count_answers(struct udp *udp, struct udp_stage *stage)
{
    struct udp_batch batch[UDP_BUFFERS];
    int n = udp_recv_one(udp, stage, batch), answers = 0;

    for (int i = 0; i < n; i++)
        answers += (int)((batch[i].octets + batch[i].each - 1) / batch[i].each);
    return answers;
}

/* Memory whose octets are sent, and where the next packet begins. */
struct source {
    uint8_t *octets;
    size_t size, at;
};

static struct source source_of(size_t walk, uint32_t octets)
{
    struct source source = {.size = walk > octets ? walk : octets};

    source.octets = malloc(source.size);
    if (!source.octets)
        ends_fail("memory", 0);
    memset(source.octets, 1, source.size);
    return source;
}

static void send_raw_batch(struct udp *udp, const struct sockaddr_storage *to, struct source *source, uint32_t octets,
                           uint32_t packets)
{
    for (uint32_t i = 0; i < packets; i++) {
        if (source->at + octets > source->size)
            source->at = 0;
        udp_lend(udp, to, source->octets + source->at, octets, false);
        source->at += octets;
    }
    udp_flush(udp);
}

double raw_udp_batches(const struct sockaddr_in *own, const struct sockaddr_in *to, uint32_t octets, uint32_t packets,
                       int ahead, size_t walk, double seconds)
{
    struct source source = source_of(walk, octets);
    struct sockaddr_storage peer = {0};
    uint64_t end, now, heard, answered = 0;
    struct udp_stage stage;
    struct udp udp;
    int under_way = 0;

    memcpy(&peer, to, sizeof(*to));
    raw_udp_open(&udp, &stage, own);
    now = heard = ends_now_ns();
    for (end = now + (uint64_t)(seconds * 1e9); now < end; now = ends_now_ns()) {
        int n;

        for (; under_way < ahead; under_way++)
            send_raw_batch(&udp, &peer, &source, octets, packets);
        n = count_answers(&udp, &stage);
        if (n)
            heard = now;
        answered += (uint64_t)n;
        under_way -= n < under_way ? n : under_way;
        if (now > heard + PATIENCE_NS)
            under_way = 0;
    }
    free(source.octets);
    return (double)answered;
}

/* --- one packet a call ------------------------------------------------------------------------------------------- */

static int open_connected(const struct sockaddr_in *own, const struct sockaddr_in *peer)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)own, sizeof(*own)) ||
        connect(fd, (const struct sockaddr *)peer, sizeof(*peer)))
        ends_fail("UDP", 0);
    return fd;
}

void raw_udp_echo(const struct sockaddr_in *own, const struct sockaddr_in *peer, void (*ready)(void),
                  const _Atomic bool *over)
{
    int fd = open_connected(own, peer);
    uint8_t buffer[SINGLE];

    ready();
    while (!*over) {
        ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);

        if (n > 0)
            send(fd, buffer, (size_t)n, MSG_DONTWAIT);
    }
    close(fd);
}

bool raw_udp_await(int fd, uint8_t *buffer, size_t space, uint64_t since_ns)
{
    while (recv(fd, buffer, space, MSG_DONTWAIT) < 0)
        if (ends_now_ns() - since_ns > LOST_NS)
            return false;
    return true;
}

double raw_udp_ping(const struct sockaddr_in *own, const struct sockaddr_in *peer, uint32_t octets, double seconds)
{
    int fd = open_connected(own, peer);
    uint8_t buffer[SINGLE] = {0};
    uint64_t end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9), answers = 0;

    for (uint64_t before_ns; (before_ns = ends_now_ns()) < end_ns;) {
        send(fd, buffer, octets, MSG_DONTWAIT);
        answers += raw_udp_await(fd, buffer, sizeof(buffer), before_ns);
    }
    close(fd);
    return (double)answers;
}
