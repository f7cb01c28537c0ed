/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* floor.c - what half a round trip of raw TCP costs with parts of what iWARP has to do, and nothing else of it: a copy
 * and a CRC of each message at both ends, and a sleep that more than one descriptor can end. floor [ROUNDS [SECONDS]]
 *
 * Two processes on a processor each; all ways of a size are measured in turn. A figure of a round is the least of its
 * batches of BATCH trips, since what else runs on the machine only adds; medians of the rounds are printed. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "bench/lib/ends.h"
#include "bench/lib/path.h"
#include "bench/lib/raw_pair.h"

enum { BATCH = 200, SIZE_MAX_OCTETS = 4096, SIZES = 2, WAYS = 5 };
enum way { AWAKE, AWAKE_CRC, IN_RECV, IN_EPOLL, IN_POLL };

static const char *const way_name[WAYS] = {
    "awake",
    "awake, a copy and a CRC at each end",
    "asleep in recv()",
    "asleep in epoll_wait()",
    "asleep in ppoll(), at an epoll set and a descriptor",
};
static const size_t sizes[SIZES] = {8, SIZE_MAX_OCTETS};

struct side {
    int fd, epoll_fd, other_fd;
    enum way way;
    size_t size;
    uint8_t memory[SIZE_MAX_OCTETS], buffer[SIZE_MAX_OCTETS];
};

static volatile uint32_t sink;

static void sleep_for_more(const struct side *side)
{
    struct pollfd both[2] = {{.fd = side->epoll_fd, .events = POLLIN}, {.fd = side->other_fd, .events = POLLIN}};
    struct epoll_event event;

    if (side->way == IN_EPOLL)
        epoll_wait(side->epoll_fd, &event, 1, -1);
    else if (side->way == IN_POLL)
        ppoll(both, 2, NULL, NULL);
}

/* Returns false if the peer is gone. */
static bool receive(struct side *side)
{
    bool is_awake = side->way == AWAKE || side->way == AWAKE_CRC;
    uint8_t *to = side->way == AWAKE_CRC ? side->buffer : side->memory;

    for (size_t at = 0; at < side->size;) {
        ssize_t got;

        sleep_for_more(side);
        got = recv(side->fd, to + at, side->size - at, is_awake ? MSG_DONTWAIT : 0);
        if (got > 0)
            at += (size_t)got;
        else if (!got || errno != EAGAIN)
            return false;
    }
    if (side->way == AWAKE_CRC) /* nothing is placed before it is verified, so octets are read twice */
        sink = crc32c(0, to, side->size);
    if (to != side->memory)
        memcpy(side->memory, to, side->size);
    return true;
}

static bool transmit(struct side *side)
{
    const uint8_t *from = side->memory;

    if (side->way == AWAKE_CRC) { /* memory that the application may change is copied before it is sent */
        sink = crc32c_copy(0, side->buffer, side->memory, side->size);
        from = side->buffer;
    }
    return send(side->fd, from, side->size, MSG_NOSIGNAL) == (ssize_t)side->size;
}

static void set_up(struct side *side, int fd, unsigned processor)
{
    struct epoll_event event = {.events = EPOLLIN};

    side->fd = fd;
    side->epoll_fd = epoll_create1(0);
    side->other_fd = eventfd(0, 0);
    if (side->way > IN_RECV && epoll_ctl(side->epoll_fd, EPOLL_CTL_ADD, fd, &event)) /* its peer pays for being in it */
        ends_fail("epoll_ctl", 0);
    path_pin(processor);
}

static void answer(int fd, void *of)
{
    struct side *side = of;

    set_up(side, fd, 1);
    while (receive(side) && transmit(side))
        ;
}

static double batch_us(struct side *side)
{
    uint64_t before = ends_now_ns();

    for (int i = 0; i < BATCH; i++)
        if (!transmit(side) || !receive(side))
            ends_fail("the other process has ended", 0);
    return (double)(ends_now_ns() - before) / 2e3 / BATCH;
}

static double least_us(enum way way, size_t size, double seconds)
{
    static struct side side;
    uint64_t end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9);
    struct raw_pair pair;
    double least;

    side = (struct side){.way = way, .size = size};
    raw_pair_open(&pair, answer, &side);
    set_up(&side, pair.fd, 0);
    least = batch_us(&side);
    while (ends_now_ns() < end_ns) {
        double took_us = batch_us(&side);

        least = took_us < least ? took_us : least;
    }
    close(side.epoll_fd);
    close(side.other_fd);
    raw_pair_close(&pair);
    path_unpin();
    return least;
}

int main(int argc, char **argv)
{
    static double least[WAYS][ENDS_ROUNDS_MAX], against[WAYS][ENDS_ROUNDS_MAX];
    double seconds;
    int rounds;

    ends_arguments(argc, argv, &rounds, &seconds);
    printf("half a round trip of raw TCP, us: least of batches of %d, medians of %d rounds\n", BATCH, rounds);
    for (size_t s = 0; s < SIZES; s++) {
        for (int round = 0; round < rounds; round++)
            for (int way = 0; way < WAYS; way++) {
                least[way][round] = least_us((enum way)way, sizes[s], seconds);
                against[way][round] = least[way][round] / least[way < IN_RECV ? AWAKE : IN_RECV][round];
            }
        for (int way = 0; way < WAYS; way++)
            printf("%4zu octets, %-52s %6.2f  %5.2f\n", sizes[s], way_name[way],
                   ends_at(least[way], (size_t)rounds, 0.5), ends_at(against[way], (size_t)rounds, 0.5));
    }
    return 0;
}
