/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp.c - batches of UDP packets on loopback: none is cut, joined, lost or misdelivered. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "loop/udp.h"

#ifndef UDP_NO_CHECK6_TX
#define UDP_NO_CHECK6_TX 101
#endif

enum { PATIENCE_MS = 5000, LONGEST = 9000 };

static struct udp from, to[2];
static struct udp_stage stage;
static struct sockaddr_storage address[2];
static uint32_t seed = 1;

static struct udp open_one(int family)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct udp u;

    if (family == AF_INET)
        assert_int_equal(udp_open(&u, (struct sockaddr *)&v4, sizeof(v4)), 0);
    else
        assert_int_equal(udp_open(&u, (struct sockaddr *)&v6, sizeof(v6)), 0);
    return u;
}

static void open_all(int family)
{
    from = open_one(family);
    for (unsigned i = 0; i < 2; i++) {
        to[i] = open_one(family);
        udp_local(&to[i], &address[i]);
    }
    stage.buffer = malloc((size_t)UDP_BUFFERS * UDP_BUFFER_OCTETS);
    assert_non_null(stage.buffer);
}

static void close_all(void)
{
    udp_close(&from);
    udp_close(&to[0]);
    udp_close(&to[1]);
    free(stage.buffer);
}

static void put(unsigned peer, uint32_t number, uint32_t octets)
{
    uint8_t *buffer = udp_buffer(&from, &address[peer], octets);

    assert_non_null(buffer);
    memset(buffer, (int)(number & 0xff), octets);
    put32(buffer, number);
    udp_put(&from, octets);
}

/* Checks the packets [first, first + count) of these lengths, each complete. */
static void expect(unsigned peer, uint32_t first, uint32_t count, const uint32_t *octets)
{
    struct udp_batch batch[UDP_BUFFERS];
    uint32_t next = 0;

    while (next < count) {
        struct pollfd fd = {to[peer].fd, POLLIN, 0};
        int n;

        assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
        n = udp_recv(&to[peer], &stage, batch);
        assert_true(n > 0);
        for (int i = 0; i < n; i++) {
            for (uint32_t at = 0; at < batch[i].octets; at += batch[i].each, next++) {
                uint32_t left = batch[i].octets - at;

                assert_true(next < count);
                assert_int_equal(left < batch[i].each ? left : batch[i].each, octets[next]);
                assert_int_equal(get32(batch[i].at + at), first + next);
            }
        }
    }
}

/* As many as one call takes, one less, one more; and a shorter packet ends a batch. */
static void batches(void **state)
{
    static const uint32_t counts[] = {1, 2, UDP_BATCH_PACKETS - 1, UDP_BATCH_PACKETS, UDP_BATCH_PACKETS + 1, 150};
    static uint32_t octets[200];

    (void)state;
    for (unsigned family = 0; family < 2; family++) {
        open_all(family ? AF_INET6 : AF_INET);
        for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            for (uint32_t k = 0; k < counts[i]; k++) {
                octets[k] = k % 10 == 9 ? 100 : 900;
                put(0, k, octets[k]);
            }
            udp_flush(&from);
            expect(0, 0, counts[i], octets);
        }
        assert_int_equal(from.dropped, 0);
        close_all();
    }
}

/* To two peers in turn, of any length up to the longest; each gets only its own. */
static void mixed(void **state)
{
    static uint32_t octets[2][300], count[2];

    (void)state;
    open_all(AF_INET);
    for (unsigned round = 0; round < 20; round++) {
        count[0] = count[1] = 0;
        for (unsigned i = 0; i < 60; i++) {
            unsigned peer = (seed = seed * 1103515245u + 12345u) >> 20 & 1;
            uint32_t length = 4 + (seed >> 8) % LONGEST;

            octets[peer][count[peer]] = length;
            put(peer, count[peer]++, length);
        }
        udp_flush(&from);
        expect(0, 0, count[0], octets[0]);
        expect(1, 0, count[1], octets[1]);
    }
    assert_int_equal(from.dropped, 0);
    close_all();
}

/* Packets longer than a batch are refused; the same with a kernel that does not cut; and an empty batch sends
 * nothing. */
static void limits(void **state)
{
    struct udp_batch batch[UDP_BUFFERS];
    uint32_t octets[3] = {UDP_BATCH_OCTETS, 500, 500};

    (void)state;
    open_all(AF_INET);
    assert_int_equal(udp_recv(&to[0], &stage, batch), 0);
    assert_null(udp_buffer(&from, &address[0], UDP_BATCH_OCTETS + 1));
    put(0, 0, UDP_BATCH_OCTETS);
    udp_flush(&from);
    expect(0, 0, 1, octets);
    from.cuts = false;
    put(0, 1, 500);
    put(0, 2, 500);
    udp_flush(&from);
    expect(0, 1, 2, octets + 1);
    udp_flush(&from);
    close_all();
}

/* No socket has the peer's port: the ICMP error is not an error of ours. */
static void no_listener(void **state)
{
    struct udp_batch batch[UDP_BUFFERS];

    (void)state;
    open_all(AF_INET);
    udp_close(&to[0]);
    for (unsigned i = 0; i < 5; i++) {
        put(0, i, 100);
        udp_flush(&from);
        assert_int_equal(udp_recv(&from, &stage, batch), 0);
    }
    close_all();
}

/* A peer that cannot be sent a batch (port 0: EINVAL) takes batches from no other. */
static void batches_of_others(void **state)
{
    struct sockaddr_storage good;
    struct udp_batch batch[UDP_BUFFERS];

    (void)state;
    open_all(AF_INET);
    good = address[0];
    ((struct sockaddr_in *)&address[0])->sin_port = 0;
    for (unsigned i = 0; i < 4; i++)
        put(0, i, 100);
    udp_flush(&from);
    assert_int_equal(from.dropped, 4);
    address[0] = good;
    for (unsigned i = 0; i < 4; i++)
        put(0, i, 100);
    udp_flush(&from);
    assert_int_equal(poll(&(struct pollfd){to[0].fd, POLLIN, 0}, 1, PATIENCE_MS), 1);
    assert_int_equal(udp_recv(&to[0], &stage, batch), from.cuts ? 1 : 4);
    close_all();
}

static uint32_t told; /* a bit for each place that has changed */

static void left_alone(const struct sockaddr_storage *peer, uint8_t *p, uint32_t octets, uint32_t place)
{
    assert_memory_equal(peer, &address[0], sizeof(address[0]));
    assert_int_equal(octets, 100);
    assert_int_equal(get32(p), place);
    told |= 1u << place;
}

/* A batch that cannot leave as one (here: without checksums) is told packet by packet; the next one has no places. */
static void places(void **state)
{
    uint32_t octets[4] = {100, 100, 100, 100};
    int on = 1;

    (void)state;
    open_all(AF_INET);
    from.alone = left_alone;
    assert_int_equal(setsockopt(from.fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
    for (uint32_t round = 0; round < 2; round++) {
        told = 0;
        for (uint32_t i = 0; i < 4; i++) {
            assert_non_null(udp_buffer(&from, &address[0], 100));
            assert_int_equal(udp_place(&from), round ? 0 : i);
            put(0, i, 100);
        }
        udp_flush(&from);
        expect(0, 0, 4, octets);
        assert_int_equal(told, round ? 0 : 0xe);
    }
    close_all();
}

/* A socket of both families says which address a packet came to, and sends from the one that it is told. */
static void addresses(void **state)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    static const char *const text[] = {"::ffff:127.0.0.5", "::1"};
    struct udp_batch batch[UDP_BUFFERS];
    struct in6_addr wanted;

    (void)state;
    open_all(AF_INET6);
    udp_close(&from);
    udp_close(&to[0]);
    assert_int_equal(udp_open_with(&from, (void *)&any, sizeof(any), UDP_BOTH_FAMILIES | UDP_UNFRAGMENTED), 0);
    assert_int_equal(udp_open_with(&to[0], (void *)&any, sizeof(any), UDP_BOTH_FAMILIES | UDP_IN_GROUP), 0);
    udp_local(&to[0], &address[0]);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(inet_pton(AF_INET6, text[i], &wanted), 1);
        ((struct sockaddr_in6 *)&address[0])->sin6_addr = wanted;
        udp_set_source(&from, wanted.s6_addr);
        put(0, i, 100);
        udp_flush(&from);
        assert_int_equal(poll(&(struct pollfd){to[0].fd, POLLIN, 0}, 1, PATIENCE_MS), 1);
        assert_int_equal(udp_recv(&to[0], &stage, batch), 1);
        assert_memory_equal(batch[0].to, &wanted, sizeof(wanted));
        assert_memory_equal(&((struct sockaddr_in6 *)&batch[0].from)->sin6_addr, &wanted, sizeof(wanted));
    }
    close_all();
}

/* Packets of IPv6 without a checksum of UDP arrive where that is wanted, and only there. */
static void without_checksum(void **state)
{
    struct sockaddr_in6 local = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const uint32_t one[] = {100};
    int on = 1;

    (void)state;
    open_all(AF_INET6);
    udp_close(&to[1]);
    assert_int_equal(udp_open_with(&to[1], (struct sockaddr *)&local, sizeof(local), UDP_WITHOUT_CHECKSUM), 0);
    udp_local(&to[1], &address[1]);
    assert_int_equal(setsockopt(from.fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof(on)), 0);
    put(0, 1, 100);
    put(1, 1, 100);
    udp_flush(&from);
    expect(1, 1, 1, one);
    on = 0;
    assert_int_equal(setsockopt(from.fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof(on)), 0);
    put(0, 2, 100);
    udp_flush(&from);
    expect(0, 2, 1, one); /* and not the first */
    close_all();
}

static struct sockaddr_storage ipv4_of(uint32_t host, in_port_t port)
{
    struct sockaddr_storage all = {.ss_family = AF_INET};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&all;

    v4->sin_port = port;
    v4->sin_addr.s_addr = htonl(host);
    return all;
}

/* Takes one packet, which was sent to this address of IPv4. */
static struct udp_batch expect_at(unsigned peer, uint32_t host)
{
    struct in6_addr wanted = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    struct udp_batch batch[UDP_BUFFERS];

    put32(&wanted.s6_addr[12], host);
    assert_int_equal(poll(&(struct pollfd){to[peer].fd, POLLIN, 0}, 1, PATIENCE_MS), 1);
    assert_int_equal(udp_recv_one(&to[peer], &stage, batch), 1);
    assert_int_equal(batch[0].octets, 100);
    assert_memory_equal(batch[0].to, &wanted, sizeof(wanted));
    return batch[0];
}

/* A socket at one address, beside one at all of them: each gets what is for it, and no other one gets the port. */
static void beside(void **state)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    struct sockaddr_storage near = ipv4_of(INADDR_LOOPBACK, 0), bound;
    struct udp_batch batch;
    struct udp other;
    in_port_t port;
    int error;

    (void)state;
    open_all(AF_INET);
    udp_close(&to[0]);
    udp_close(&to[1]);
    assert_int_equal(udp_open_with(&to[0], (struct sockaddr *)&any, sizeof(any), UDP_BOTH_FAMILIES), 0);
    udp_local(&to[0], &bound);
    port = ((struct sockaddr_in6 *)&bound)->sin6_port;
    error = udp_open_beside(&to[1], &to[0], &near, UDP_UNFRAGMENTED);
    if (error == -EXDEV)
        skip(); /* this kernel does not name namespaces */
    assert_int_equal(error, 0);
    for (uint32_t round = 0; round < 2; round++) {
        address[0] = ipv4_of(INADDR_LOOPBACK + round, port);
        put(0, round, 100);
        udp_flush(&from);
        batch = expect_at(!round, INADDR_LOOPBACK + round);
    }
    address[1] = ipv4_of(INADDR_LOOPBACK, port);
    assert_int_equal(udp_open_beside(&other, &to[0], &near, UDP_UNFRAGMENTED), -EADDRINUSE);
    assert_int_equal(udp_open_with(&other, (struct sockaddr *)&address[1], sizeof(struct sockaddr_in), UDP_IN_GROUP),
                     -EADDRINUSE);
    assert_int_equal(udp_open_with(&other, (struct sockaddr *)&bound, sizeof(any), UDP_IN_GROUP), -EADDRINUSE);
    address[1] = ipv4_of(INADDR_LOOPBACK + 1, port);
    assert_int_equal(udp_open_with(&other, (struct sockaddr *)&address[1], sizeof(struct sockaddr_in), UDP_IN_GROUP),
                     -EADDRINUSE);
    address[1] = ipv4_of(INADDR_LOOPBACK, port);
    udp_local(&from, &address[0]);
    memset(udp_buffer(&to[1], &address[0], 100), 0, 100);
    udp_put(&to[1], 100);
    udp_flush(&to[1]);
    assert_int_equal(poll(&(struct pollfd){from.fd, POLLIN, 0}, 1, PATIENCE_MS), 1);
    assert_int_equal(udp_recv_one(&from, &stage, &batch), 1);
    assert_memory_equal(&batch.from, &address[1], sizeof(struct sockaddr_in));
    close_all();
}

/* An address that this host has not, or no more, has every packet refused: that says nothing of batches. */
static void from_no_address(void **state)
{
    static const uint8_t source[UDP_ADDRESS] = {0x20, 0x01, 0x0d, 0xb8, [15] = 9};

    (void)state;
    open_all(AF_INET6);
    udp_set_source(&from, source);
    put(0, 0, 100);
    put(0, 1, 100);
    udp_flush(&from);
    assert_int_equal(from.dropped, 2);
    assert_int_equal(udp_leaves_singly(&from, &address[0]), !from.cuts);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside),          cmocka_unit_test(batches),     cmocka_unit_test(mixed),
        cmocka_unit_test(limits),          cmocka_unit_test(no_listener), cmocka_unit_test(batches_of_others),
        cmocka_unit_test(places),          cmocka_unit_test(addresses),   cmocka_unit_test(without_checksum),
        cmocka_unit_test(from_no_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
