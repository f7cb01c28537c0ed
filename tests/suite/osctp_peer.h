/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_peer.h - a socket of our own SCTP, and a peer that sends what packets it likes. Only tests/suite/osctp_*.c and
 * sctp_*.c include it. */
#ifndef RDDP_TESTS_SUITE_OSCTP_PEER_H
#define RDDP_TESTS_SUITE_OSCTP_PEER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "loop/reactor.h"
#include "sctp/io/osctp_provider.h"
#include "sctp/io/osctp_order.h"
#include "sctp/packet.h"

enum { SCTP_PORT = 5001, PEER_PORT = 777, PATIENCE_US = 20000000, DATAGRAM = 2048, COOKIE = 256 };
enum {
    DATA,
    INIT,
    INIT_ACK,
    SACK,
    ABORT = 6,
    SHUTDOWN,
    SHUTDOWN_ACK,
    ERROR,
    COOKIE_ECHO,
    COOKIE_ACK,
    SHUTDOWN_COMPLETE = 14
};
enum { E = 1, B = 2, U = 4 };

static struct sctp_socket *ours; /* NULL: it is driven elsewhere */
static int fd = -1;              /* the peer's */
static struct sockaddr_in to;
static uint32_t tag, our_tag, tsn, our_tsn;
static uint32_t indication; /* of the peer; 0: none */
static bool is_ecn;         /* the peer takes part in explicit congestion notification */
static uint8_t cookie[COOKIE], got[DATAGRAM];
static uint32_t cookie_octets, got_octets;
static uint32_t aborts; /* that the peer has received */
static uint16_t peer_port = PEER_PORT, sctp_port = SCTP_PORT;

static inline struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* --- the peer's packets -------------------------------------------------------------------------------------- */

static inline void send_chunk(uint32_t to_tag, uint8_t type, uint8_t flags, const void *value, uint32_t octets)
{
    uint8_t p[DATAGRAM] = {0}, sealed[DATAGRAM], *q = put16(put16(p, peer_port), sctp_port);
    uint32_t n = PACKET_COMMON + ((4 + octets + 3) & ~3u);

    q = put32(put32(q, to_tag), 0);
    q = put16(put8(put8(q, type), flags), (uint16_t)(4 + octets));
    if (octets)
        memcpy(q, value, octets);
    packet_seal(sealed, p, n);
    assert_int_equal(sendto(fd, sealed, n, 0, (const struct sockaddr *)&to, sizeof(to)), n);
}

/* Takes the next packet for the peer. Returns the type of its first chunk; -1: there is none now. */
static inline int take_packet(void)
{
    ssize_t n = recv(fd, got, sizeof(got), MSG_DONTWAIT);

    if (n <= 0)
        return -1;
    assert_true(packet_is_sound(got, (size_t)n));
    got_octets = (uint32_t)n;
    aborts += got[PACKET_COMMON] == ABORT;
    return got[PACKET_COMMON];
}

static inline void drive(void)
{
    if (ours)
        osctp.drive(ours);
}

/* The kernel may be late with a packet to our end. */
static inline void await_and_drive(void)
{
    poll(&(struct pollfd){ours->fd, POLLIN, 0}, 1, PATIENCE_US / 1000);
    osctp.drive(ours);
}

/* ... and with one to the peer, if there is one. */
static inline void await_answer(int ms)
{
    poll(&(struct pollfd){fd, POLLIN, 0}, 1, ms);
}

/* Drives our end until the peer gets a packet that begins with this chunk. */
static inline void expect_packet(int type)
{
    uint64_t end = reactor_now_us() + PATIENCE_US;
    int is;

    while ((is = take_packet()) != type) {
        struct pollfd fds[2] = {{ours ? ours->fd : -1, POLLIN, 0}, {fd, POLLIN, 0}};

        assert_true(reactor_now_us() < end);
        if (is < 0)
            poll(fds, 2, 1);
        drive();
    }
}

static inline void expect_silence(void)
{
    for (unsigned i = 0; i < 20; i++) {
        poll(NULL, 0, 1);
        drive();
    }
    assert_int_equal(take_packet(), -1);
}

static inline void send_init(void)
{
    uint8_t init[28], *q = put32(put32(init, tag), 1 << 20);

    q = put32(put16(put16(q, 16), 16), tsn);
    if (is_ecn)
        q = put16(put16(q, 0x8000), 4);
    if (indication)
        q = put32(put16(put16(q, 0xc006), 8), indication);
    send_chunk(0, INIT, 0, init, (uint32_t)(q - init));
}

/* Keeps the cookie of the INIT-ACK. */
static inline void ask(uint32_t as, uint32_t first_tsn)
{
    tag = as;
    tsn = first_tsn;
    send_init();
    expect_packet(INIT_ACK);
    assert_int_equal(get32(got + 4), tag);
    our_tag = get32(got + PACKET_COMMON + 4);
    our_tsn = get32(got + PACKET_COMMON + 16);
    for (uint32_t at = PACKET_COMMON + 20; at < got_octets; at += (get16(got + at + 2) + 3u) & ~3u)
        if (get16(got + at) == 7) {
            cookie_octets = get16(got + at + 2) - 4u;
            memcpy(cookie, got + at + 4, cookie_octets);
        }
    assert_true(cookie_octets);
}

static inline struct sctp_assoc *connect_peer(uint32_t as, uint32_t first_tsn)
{
    struct sctp_assoc *assoc;
    struct sctp_news news;

    ask(as, first_tsn);
    send_chunk(our_tag, COOKIE_ECHO, 0, cookie, cookie_octets);
    expect_packet(COOKIE_ACK);
    assoc = osctp.accept(ours);
    assert_non_null(assoc);
    assert_true(osctp.next(assoc, &news));
    assert_int_equal(news.kind, SCTP_NEWS_UP);
    assert_int_equal(news.tsn, first_tsn);
    return assoc;
}

static inline void send_data(uint32_t at, uint8_t flags, uint16_t stream, uint16_t ssn, const void *data,
                             uint32_t octets)
{
    uint8_t chunk[DATAGRAM], *q = put32(put16(put16(put32(chunk, at), stream), ssn), 42);

    memcpy(q, data, octets);
    send_chunk(our_tag, DATA, flags, chunk, 12 + octets);
}

/* --- our end ------------------------------------------------------------------------------------------------- */

static inline int begin(void **state)
{
    struct sockaddr_in any = loopback(0);
    const struct sctp_attr attr = {.indication = 4};
    socklen_t length = sizeof(to);
    const char *why;

    (void)state;
    assert_int_equal(osctp.open((const struct sockaddr *)&any, sizeof(any), &attr, &ours, &why), 0);
    assert_int_equal(osctp.listen(ours, SCTP_PORT), 0);
    assert_int_equal(getsockname(ours->fd, (struct sockaddr *)&to, &length), 0);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof(any)), 0);
    return 0;
}

static inline int finish(void **state)
{
    (void)state;
    osctp.close_socket(ours);
    close(fd);
    return 0;
}

static inline void expect_news(struct sctp_assoc *assoc, enum sctp_news_kind kind, const char *data)
{
    uint64_t end = reactor_now_us() + PATIENCE_US;
    struct sctp_news news;

    while (!osctp.next(assoc, &news)) {
        assert_true(reactor_now_us() < end);
        poll(NULL, 0, 1);
        osctp.drive(ours);
    }
    assert_int_equal(news.kind, kind);
    if (data) {
        assert_int_equal(news.octets, strlen(data));
        assert_memory_equal(news.data, data, news.octets);
    }
    sctp_news_free(&news);
}

static inline void expect_none(struct sctp_assoc *assoc)
{
    struct sctp_news news;

    expect_silence();
    assert_false(osctp.next(assoc, &news));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)

#endif
