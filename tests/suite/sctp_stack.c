/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_stack.c - our own SCTP as its provider shows it: which packets carry small messages, and how
 * many associations wait for a listener. */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "loop/reactor.h"
#include "sctp/io/osctp_provider.h"
#include "sctp/chunk.h"

enum { SCTP_PORT = 5001, PATIENCE_US = 20000000, DATAGRAM = 2048, BACKLOG = OSCTP_BACKLOG, BUFFER = OSCTP_STORE };

static const struct sctp_provider *const stack = &osctp;

static struct sctp_socket *listening, *connecting;
static int relay = -1; /* between the two, if it is used */
static struct sockaddr_in active, passive;
static useconds_t delay_us; /* of each packet at the relay, at least */

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static struct sctp_socket *open_socket(uint16_t udp_port)
{
    const struct sctp_attr attr = {.indication = 4, .udp_port = udp_port};
    struct sockaddr_in any = loopback(0);
    struct sctp_socket *opened = NULL;
    const char *why;

    assert_int_equal(stack->open((const struct sockaddr *)&any, sizeof(any), &attr, &opened, &why), 0);
    return opened;
}

static struct sockaddr_in address_of(int fd)
{
    struct sockaddr_in local;
    socklen_t length = sizeof(local);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&local, &length), 0);
    return local;
}

static void open_relay(void)
{
    struct sockaddr_in any = loopback(0);

    relay = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(relay, (const struct sockaddr *)&any, sizeof(any)), 0);
}

/* Takes the next packet that lies at the relay. Returns its octets; 0: there is none. */
static uint32_t take(uint8_t p[DATAGRAM], struct sockaddr_in *from)
{
    socklen_t length = sizeof(*from);
    ssize_t n = recvfrom(relay, p, DATAGRAM, MSG_DONTWAIT, (struct sockaddr *)from, &length);

    return n > 0 ? (uint32_t)n : 0;
}

static void pass_all(void)
{
    struct sockaddr_in from, to;
    uint8_t p[DATAGRAM];
    uint32_t n;

    usleep(delay_us);
    while ((n = take(p, &from))) {
        if (from.sin_port != passive.sin_port)
            active = from;
        to = from.sin_port == passive.sin_port ? active : passive;
        assert_int_equal(sendto(relay, p, n, 0, (const struct sockaddr *)&to, sizeof(to)), n);
    }
}

static void turn(void)
{
    struct pollfd fds[3] = {{listening->fd, POLLIN, 0}, {connecting->fd, POLLIN, 0}, {relay, POLLIN, 0}};

    poll(fds, 3, 1);
    if (relay >= 0)
        pass_all();
    stack->drive(connecting);
    stack->drive(listening);
}

static void open_both(void)
{
    listening = open_socket(0);
    assert_int_equal(stack->listen(listening, SCTP_PORT), 0);
    passive = address_of(listening->fd);
    connecting = open_socket(ntohs(relay >= 0 ? address_of(relay).sin_port : passive.sin_port));
}

static struct sctp_assoc *begin(void)
{
    struct sockaddr_in to = loopback(SCTP_PORT);
    struct sctp_assoc *assoc = NULL;

    assert_int_equal(stack->connect(connecting, (const struct sockaddr *)&to, &assoc), 0);
    return assoc;
}

/* Drives both ends until the association reports an event, which has to be this. */
static void expect_news(struct sctp_assoc *assoc, enum sctp_news_kind kind)
{
    uint64_t end = reactor_now_us() + PATIENCE_US;
    struct sctp_news news;

    while (!stack->next(assoc, &news)) {
        assert_true(reactor_now_us() < end);
        turn();
    }
    assert_int_equal(news.kind, kind);
    sctp_news_free(&news);
}

static void submit(struct sctp_assoc *assoc, uint8_t fill, bool more)
{
    uint8_t message[84];
    const struct span span = {message, sizeof(message)};

    memset(message, fill, sizeof(message));
    assert_int_equal(stack->submit(assoc, &span, 1, 0, 0, more), 0);
}

static uint32_t chunks_of(const uint8_t *p, uint32_t n)
{
    uint32_t at = PACKET_COMMON, chunks = 0;
    struct osctp_chunk chunk;

    for (; chunk_next(p, n, &at, &chunk); chunks++)
        assert_int_equal(chunk.type, CHUNK_DATA);
    return chunks;
}

/* Small messages that are given together leave together, before an acknowledgement, in as few packets as hold them; one
 * alone leaves at once as well. */
static void together(void **state)
{
    static const struct {
        uint32_t messages, packets;
    } rows[] = {{1, 1}, {2, 1}, {14, 1}, {15, 2}, {1, 1}}; /* 14 chunks of 100 octets fit into 1500 */
    struct sctp_assoc *from, *to;

    (void)state;
    open_relay();
    open_both();
    from = begin();
    expect_news(from, SCTP_NEWS_UP);
    to = stack->accept(listening);
    assert_non_null(to);
    expect_news(to, SCTP_NEWS_UP);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t end = reactor_now_us() + PATIENCE_US;
        uint32_t packets = 0, chunks = 0, n;
        uint8_t p[64][DATAGRAM];
        struct sockaddr_in source;

        pass_all();
        assert_true(stack->enter(connecting, true));
        for (uint32_t k = 1; k <= rows[i].messages; k++)
            submit(from, (uint8_t)k, k < rows[i].messages);
        stack->leave(connecting);
        while (packets < 64 && chunks < rows[i].messages) {
            assert_true(reactor_now_us() < end);
            n = take(p[packets], &source);
            if (!n || p[packets][PACKET_COMMON] != CHUNK_DATA)
                continue;
            chunks += chunks_of(p[packets], n);
            assert_int_equal(sendto(relay, p[packets], n, 0, (struct sockaddr *)&passive, sizeof(passive)), n);
            packets++;
        }
        assert_int_equal(chunks, rows[i].messages);
        assert_int_equal(packets, rows[i].packets);
        for (uint32_t k = 1; k <= rows[i].messages; k++)
            expect_news(to, SCTP_NEWS_MESSAGE);
    }
    stack->close(from);
    stack->close(to);
    stack->close_socket(connecting);
    stack->close_socket(listening);
    close(relay);
    relay = -1;
}

static void close_all(struct sctp_assoc **assoc, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (assoc[i])
            stack->close(assoc[i]);
}

/* The stack takes more for a peer that is far: what is under way there, and not read, is more than for a near one.
 */
static void far_peer(void **state)
{
    static uint8_t message[1400];
    const struct span span = {message, sizeof(message)};
    struct sctp_assoc *from;
    uint32_t octets = 0;

    (void)state;
    open_relay();
    delay_us = 10000;
    open_both();
    from = begin();
    expect_news(from, SCTP_NEWS_UP);
    assert_true(stack->enter(connecting, true));
    while (octets < BUFFER && !stack->submit(from, &span, 1, 0, 0, true))
        octets += sizeof(message);
    stack->leave(connecting);
    assert_in_range(octets, BUFFER - (1 << 20), BUFFER);
    stack->close(from);
    stack->close_socket(connecting);
    stack->close_socket(listening);
    close(relay);
    relay = -1;
    delay_us = 0;
}

/* A full backlog makes no association, until there is space again. */
static void full(void **state)
{
    struct sctp_assoc *assoc[BACKLOG + 1], *accepted[BACKLOG + 1];
    struct sctp_news news;

    (void)state;
    open_both();
    for (uint32_t i = 0; i < BACKLOG; i++) {
        assoc[i] = begin();
        expect_news(assoc[i], SCTP_NEWS_UP);
    }
    assoc[BACKLOG] = begin();
    for (uint32_t i = 0; i < 200; i++)
        turn();
    assert_false(stack->next(assoc[BACKLOG], &news));
    for (uint32_t i = 0; i < BACKLOG; i++)
        assert_non_null(accepted[i] = stack->accept(listening));
    expect_news(assoc[BACKLOG], SCTP_NEWS_UP);
    assert_non_null(accepted[BACKLOG] = stack->accept(listening));
    close_all(assoc, BACKLOG + 1);
    close_all(accepted, BACKLOG + 1);
    stack->close_socket(connecting);
    stack->close_socket(listening);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(together), cmocka_unit_test(far_peer), cmocka_unit_test(full)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
