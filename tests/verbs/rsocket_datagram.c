/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket_datagram.c - what programs rely on that use rsockets for datagrams. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/verbs/lib/datagram_ends.h"

enum { MOST = 2020 };

/* Messages of all lengths, both ways: the first go by UDP. */
static void exchange(int family)
{
    union address a_name, b_name;
    int a = datagram_bound(family, &a_name), b = datagram_bound(family, &b_name);
    static uint8_t data[MOST];

    for (size_t n = 0; n <= 1500; n += 300) {
        for (size_t i = 0; i < n; i++)
            data[i] = (uint8_t)(i * 7 + n);
        assert_int_equal(datagram_send(a, data, n, &b_name), (ssize_t)n);
        datagram_expect(b, data, n, &a_name);
        assert_int_equal(datagram_send(b, data, n, &a_name), (ssize_t)n);
        datagram_expect(a, data, n, &b_name);
    }
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(b), 0);
}

static void test_exchange(void **state)
{
    (void)state;
    exchange(AF_INET);
    exchange(AF_INET6);
}

static void test_connected(void **state)
{
    union address a_name, b_name, c_name, name;
    int a = rsocket(AF_INET, SOCK_DGRAM, IPPROTO_UDP), b = datagram_bound(AF_INET, &b_name),
        c = datagram_bound(AF_INET, &c_name);
    socklen_t length = sizeof(name);
    char octets[4];
    struct iovec out[] = {{"sc", 2}, {"", 0}, {"attered", 7}}, in[] = {{octets, 2}, {octets + 2, 2}};

    (void)state;
    assert_int_equal(rsend(a, "x", 1, 0), -1);
    assert_int_equal(errno, EDESTADDRREQ);
    assert_int_equal(rgetpeername(a, (struct sockaddr *)&name.any, &length), -1);
    assert_int_equal(errno, ENOTCONN);
    for (int i = 0; i < 2; i++) { /* c knows the queue pair of a from now on */
        assert_int_equal(datagram_send(a, "to c", 4, &c_name), 4);
        datagram_expect(c, "to c", 4,
                        &(union address){.v4 = {.sin_family = AF_INET,
                                                .sin_port = datagram_name(a).v4.sin_port,
                                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}});
    }
    assert_int_equal(rconnect(a, (struct sockaddr *)&b_name.any, sizeof(b_name.v4)), 0);
    length = sizeof(name);
    assert_int_equal(rgetpeername(a, (struct sockaddr *)&name.any, &length), 0);
    assert_memory_equal(&name.v4, &b_name.v4, sizeof(name.v4));
    a_name = datagram_name(a);
    assert_int_equal(a_name.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rwritev(a, out, 3), 9);
        datagram_expect(b, "scattered", 9, &a_name);
        assert_int_equal(datagram_send(b, "back", 4, &a_name), 4);
        assert_int_equal(datagram_events(a, POLLIN, DATAGRAM_WAIT_MS), POLLIN);
        assert_int_equal(rrecv(a, octets, 2, MSG_PEEK), 2);
        assert_int_equal(rreadv(a, in, 2), 4);
        assert_memory_equal(octets, "back", 4);
        assert_int_equal(datagram_send(c, "c", 1, &a_name), 1); /* a takes none of it */
    }
    assert_int_equal(datagram_send(b, "last", 4, &a_name), 4);
    datagram_expect(a, "last", 4, &b_name);
    assert_int_equal(datagram_send(a, "to c", 4, &c_name), 4); /* of a connected socket, too */
    datagram_expect(c, "to c", 4, &a_name);
    assert_int_equal(rwrite(a, "to b", 4), 4);
    datagram_expect(b, "to b", 4, &a_name);
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(b), 0);
    assert_int_equal(rclose(c), 0);
}

/* A message is received whole or cut, and never with another. */
static void test_messages(void **state)
{
    union address a_name, b_name, name;
    int a = datagram_bound(AF_INET, &a_name), b = datagram_bound(AF_INET, &b_name);
    static char data[MOST + 1], part[8];
    struct iovec iov = {part, 3};
    struct msghdr msg = {.msg_name = &name.any, .msg_namelen = sizeof(name), .msg_iov = &iov, .msg_iovlen = 1};

    (void)state;
    assert_int_equal(datagram_events(b, POLLIN | POLLOUT, 0), POLLOUT);
    assert_int_equal(rrecv(b, part, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(datagram_send(a, data, sizeof(data), &b_name), -1);
    assert_int_equal(errno, EMSGSIZE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(datagram_send(a, data, MOST, &b_name), MOST);
        datagram_expect(b, data, MOST, &a_name);
        assert_int_equal(datagram_send(a, "first", 5, &b_name), 5);
        assert_int_equal(datagram_send(a, "second", 6, &b_name), 6);
        assert_int_equal(datagram_events(b, POLLIN, DATAGRAM_WAIT_MS), POLLIN);
        assert_int_equal(rrecv(b, part, 2, MSG_PEEK | MSG_TRUNC), 5);
        assert_int_equal(rrecvmsg(b, &msg, 0), 3);
        assert_memory_equal(part, "fir", 3);
        assert_int_equal(msg.msg_flags, MSG_TRUNC);
        assert_int_equal(name.v4.sin_port, a_name.v4.sin_port);
        datagram_expect(b, "second", 6, &a_name);
    }
    iov = (struct iovec){"by msg", 6};
    msg.msg_name = &b_name;
    assert_int_equal(rsendmsg(a, &msg, 0), 6);
    datagram_expect(b, "by msg", 6, &a_name);
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(b), 0);
}

static void *receive_one(void *arg)
{
    static char octet;

    return rrecv(*(int *)arg, &octet, 1, 0) == 1 ? &octet : NULL;
}

/* A thread that sleeps in a call is woken by a message, whatever way it comes, and whoever reads UDP. */
static void test_waiting(void **state)
{
    union address a_name, b_name;
    int a = datagram_bound(AF_INET, &a_name), b = datagram_bound(AF_INET, &b_name);

    (void)state;
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *got;
        assert_int_equal(pthread_create(&thread, NULL, receive_one, &b), 0);
        usleep(20000);
        assert_int_equal(datagram_events(b, POLLOUT, 0), POLLOUT); /* reads, too */
        assert_int_equal(datagram_send(a, "wake", 4, &b_name), 4);
        assert_int_equal(pthread_join(thread, &got), 0);
        assert_non_null(got);
        assert_int_equal(*(char *)got, 'w');
    }
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(b), 0);
}

/* One server, many clients, and more messages at once than places for them: none hangs, and what comes is whole. */
static void test_flood(void **state)
{
    enum { CLIENTS = 20, EACH = 200 };
    union address server_name, names[CLIENTS];
    int server = rsocket(AF_INET, SOCK_DGRAM, 0), clients[CLIENTS], size = 16384, got = 0, last;
    socklen_t length = sizeof(size);
    uint32_t message[16];

    (void)state;
    assert_int_equal(rsetsockopt(server, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
    assert_int_equal(rgetsockopt(server, SOL_SOCKET, SO_RCVBUF, &size, &length), 0);
    assert_int_equal(size, 2 * 16384);
    server_name = datagram_loopback(AF_INET);
    assert_int_equal(rbind(server, (struct sockaddr *)&server_name.any, sizeof(server_name.v4)), 0);
    server_name = datagram_name(server);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = datagram_bound(AF_INET, &names[i]);
    for (uint32_t n = 0; n < EACH; n++)
        for (uint32_t i = 0; i < CLIENTS; i++) {
            for (int k = 0; k < 16; k++)
                message[k] = n * CLIENTS + i;
            assert_int_equal(datagram_send(clients[i], message, sizeof(message), &server_name), sizeof(message));
        }
    do {
        while (rrecv(server, message, sizeof(message), MSG_DONTWAIT) == sizeof(message)) {
            for (int k = 1; k < 16; k++)
                assert_int_equal(message[k], message[0]);
            got++;
        }
        last = got;
    } while (datagram_events(server, POLLIN, 200) == POLLIN || got != last);
    assert_true(got > 0);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(datagram_send(server, "still there", 11, &names[i]), 11);
        datagram_expect(clients[i], "still there", 11, &server_name);
        assert_int_equal(rclose(clients[i]), 0);
    }
    assert_int_equal(rclose(server), 0);
}

static void test_options_and_mistakes(void **state)
{
    union address a_name, other = datagram_loopback(AF_INET6), v4 = datagram_loopback(AF_INET);
    int a = datagram_bound(AF_INET, &a_name), fresh = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), value = -1;
    socklen_t length = sizeof(value);

    (void)state;
    assert_int_equal(rgetsockopt(a, SOL_SOCKET, SO_TYPE, &value, &length), 0);
    assert_int_equal(value, SOCK_DGRAM);
    assert_int_equal(rgetsockopt(a, SOL_SOCKET, SO_ERROR, &value, &length), 0);
    assert_int_equal(value, 0);
    value = 1;
    assert_int_equal(rsetsockopt(fresh, SOL_SOCKET, SO_REUSEADDR, &value, sizeof(value)), 0);
    assert_int_equal(rsetsockopt(fresh, IPPROTO_TCP, 12345, &value, sizeof(value)), -1);
    value = 64;
    assert_int_equal(rsetsockopt(fresh, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), 0);
    assert_int_equal(rsetsockopt(a, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), -1); /* its queue pair is made */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rfcntl(fresh, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    assert_int_equal(rbind(a, (struct sockaddr *)&v4.any, sizeof(v4.v4)), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rlisten(a, 1), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(raccept(a, NULL, NULL), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(datagram_send(a, "x", 1, &other), -1);
    assert_int_equal(errno, EAFNOSUPPORT);
    assert_int_equal(rsendto(a, "x", 1, 0, (struct sockaddr *)&v4.any, 3), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rrecv(fresh, &value, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(fresh), 0);
    assert_int_equal(rsend(a, "x", 1, 0), -1);
    assert_int_equal(errno, EBADF);
}

/* A port without a socket: its host says so, as it does of UDP. */
static void test_refused(void **state)
{
    union address gone;
    int fd = datagram_bound(AF_INET, &gone), a = rsocket(AF_INET, SOCK_DGRAM, 0), value = 0;
    socklen_t length = sizeof(value);
    char octet;

    (void)state;
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rconnect(a, (struct sockaddr *)&gone.any, sizeof(gone.v4)), 0);
    assert_int_equal(rsend(a, "x", 1, 0), 1);
    assert_true(datagram_events(a, POLLIN, DATAGRAM_WAIT_MS) & POLLERR);
    assert_int_equal(rrecv(a, &octet, 1, 0), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_int_equal(rgetsockopt(a, SOL_SOCKET, SO_ERROR, &value, &length), 0);
    assert_int_equal(value, 0);
    assert_int_equal(rclose(a), 0);
}

/* A peer that begins again has another queue pair, and is found after a second of silence. */
static void test_restart(void **state)
{
    union address a_name, b_name, again;
    int a = datagram_bound(AF_INET, &a_name), b = datagram_bound(AF_INET, &b_name);

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(datagram_send(a, "one", 3, &b_name), 3);
        datagram_expect(b, "one", 3, &a_name);
        assert_int_equal(datagram_send(b, "two", 3, &a_name), 3);
        datagram_expect(a, "two", 3, &b_name);
    }
    assert_int_equal(rclose(b), 0);
    b = rsocket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(rbind(b, (struct sockaddr *)&b_name.any, sizeof(b_name.v4)), 0);
    again = datagram_name(b);
    assert_int_equal(again.v4.sin_port, b_name.v4.sin_port);
    for (int tries = 0; !datagram_events(b, POLLIN, 100); tries++) {
        assert_true(tries < DATAGRAM_WAIT_MS / 100);
        assert_int_equal(datagram_send(a, "three", 5, &b_name), 5);
    }
    datagram_expect(b, "three", 5, &a_name);
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(b), 0);
}

/* A socket of IPv6 at the wildcard serves IPv4, too. */
static void test_both_families(void **state)
{
    union address name, any = {.any = {.ss_family = AF_INET6}}, to = datagram_loopback(AF_INET), mapped;
    int server = rsocket(AF_INET6, SOCK_DGRAM, 0), client = datagram_bound(AF_INET, &name), off = 0;

    (void)state;
    assert_int_equal(rsetsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
    assert_int_equal(rbind(server, (struct sockaddr *)&any.any, sizeof(any.v6)), 0);
    to.v4.sin_port = datagram_name(server).v6.sin6_port;
    memset(&mapped, 0, sizeof(mapped));
    mapped.v6.sin6_family = AF_INET6;
    mapped.v6.sin6_port = name.v4.sin_port;
    memcpy(mapped.v6.sin6_addr.s6_addr + 10, (const uint8_t[]){0xff, 0xff, 127, 0, 0, 1}, 6);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(datagram_send(client, "four", 4, &to), 4);
        datagram_expect(server, "four", 4, &mapped);
        assert_int_equal(datagram_send(server, "six", 3, &mapped), 3);
        datagram_expect(client, "six", 3, &to);
    }
    assert_int_equal(rclose(server), 0);
    assert_int_equal(rclose(client), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange), cmocka_unit_test(test_connected), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_waiting),  cmocka_unit_test(test_flood),     cmocka_unit_test(test_options_and_mistakes),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_restart),   cmocka_unit_test(test_both_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
