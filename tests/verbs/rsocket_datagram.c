/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket_datagram.c - what programs rely on that use rsockets for datagrams, and what goes over the wire: the peer of
 * some tests is made by hand of a UDP socket and a UD queue pair. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 20000, MOST = 2020, ORIGIN_V4 = 8, ORIGIN_V6 = 24, GREETING_V4 = 16, GREETING_V6 = 28, GRH = 40 };

union address {
    struct sockaddr_storage any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t length_of(const union address *address)
{
    return address->any.ss_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

static union address loopback(int family)
{
    union address address = {.any = {.ss_family = (sa_family_t)family}};

    if (family == AF_INET6)
        address.v6.sin6_addr = in6addr_loopback;
    else
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static union address name_of(int fd)
{
    union address name;
    socklen_t length = sizeof(name);

    memset(&name, 0, sizeof(name));
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)&name.any, &length), 0);
    return name;
}

/* An rsocket at loopback's address, whose name is stored. */
static int bound(int family, union address *name)
{
    int fd = rsocket(family, SOCK_DGRAM, 0);

    assert_true(fd >= 0);
    *name = loopback(family);
    assert_int_equal(rbind(fd, (struct sockaddr *)&name->any, length_of(name)), 0);
    *name = name_of(fd);
    assert_int_not_equal(name->v4.sin_port, 0);
    return fd;
}

static int events_of(int fd, short events, int timeout_ms)
{
    struct pollfd one = {.fd = fd, .events = events};
    int n = rpoll(&one, 1, timeout_ms);

    assert_true(n >= 0);
    return n ? one.revents : 0;
}

static ssize_t send_to(int fd, const void *data, size_t n, const union address *to)
{
    return rsendto(fd, data, n, 0, (const struct sockaddr *)&to->any, length_of(to));
}

/* Receives one message, and says whose it is. */
static void expect(int fd, const void *data, size_t n, const union address *from)
{
    static char buffer[4096];
    union address name;
    socklen_t length = sizeof(name);

    assert_int_equal(events_of(fd, POLLIN, WAIT_MS), POLLIN);
    assert_int_equal(rrecvfrom(fd, buffer, sizeof(buffer), 0, (struct sockaddr *)&name.any, &length), (ssize_t)n);
    assert_memory_equal(buffer, data, n);
    assert_int_equal(length, length_of(from));
    assert_int_equal(name.any.ss_family, from->any.ss_family);
    assert_int_equal(name.v4.sin_port, from->v4.sin_port);
    if (from->any.ss_family == AF_INET6)
        assert_memory_equal(&name.v6.sin6_addr, &from->v6.sin6_addr, 16);
    else
        assert_int_equal(name.v4.sin_addr.s_addr, from->v4.sin_addr.s_addr);
}

/* Messages of all lengths, both ways: the first go by UDP. */
static void exchange(int family)
{
    union address a_name, b_name;
    int a = bound(family, &a_name), b = bound(family, &b_name);
    static uint8_t data[MOST];

    for (size_t n = 0; n <= 1500; n += 300) {
        for (size_t i = 0; i < n; i++)
            data[i] = (uint8_t)(i * 7 + n);
        assert_int_equal(send_to(a, data, n, &b_name), (ssize_t)n);
        expect(b, data, n, &a_name);
        assert_int_equal(send_to(b, data, n, &a_name), (ssize_t)n);
        expect(a, data, n, &b_name);
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
    int a = rsocket(AF_INET, SOCK_DGRAM, IPPROTO_UDP), b = bound(AF_INET, &b_name), c = bound(AF_INET, &c_name);
    socklen_t length = sizeof(name);
    char octets[4];
    struct iovec out[] = {{"sc", 2}, {"", 0}, {"attered", 7}}, in[] = {{octets, 2}, {octets + 2, 2}};

    (void)state;
    assert_int_equal(rsend(a, "x", 1, 0), -1);
    assert_int_equal(errno, EDESTADDRREQ);
    assert_int_equal(rgetpeername(a, (struct sockaddr *)&name.any, &length), -1);
    assert_int_equal(errno, ENOTCONN);
    for (int i = 0; i < 2; i++) { /* c knows the queue pair of a from now on */
        assert_int_equal(send_to(a, "to c", 4, &c_name), 4);
        expect(c, "to c", 4,
               &(union address){.v4 = {.sin_family = AF_INET,
                                       .sin_port = name_of(a).v4.sin_port,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}});
    }
    assert_int_equal(rconnect(a, (struct sockaddr *)&b_name.any, sizeof(b_name.v4)), 0);
    length = sizeof(name);
    assert_int_equal(rgetpeername(a, (struct sockaddr *)&name.any, &length), 0);
    assert_memory_equal(&name.v4, &b_name.v4, sizeof(name.v4));
    a_name = name_of(a);
    assert_int_equal(a_name.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rwritev(a, out, 3), 9);
        expect(b, "scattered", 9, &a_name);
        assert_int_equal(send_to(b, "back", 4, &a_name), 4);
        assert_int_equal(events_of(a, POLLIN, WAIT_MS), POLLIN);
        assert_int_equal(rrecv(a, octets, 2, MSG_PEEK), 2);
        assert_int_equal(rreadv(a, in, 2), 4);
        assert_memory_equal(octets, "back", 4);
        assert_int_equal(send_to(c, "c", 1, &a_name), 1); /* a takes none of it */
    }
    assert_int_equal(send_to(b, "last", 4, &a_name), 4);
    expect(a, "last", 4, &b_name);
    assert_int_equal(send_to(a, "to c", 4, &c_name), 4); /* of a connected socket, too */
    expect(c, "to c", 4, &a_name);
    assert_int_equal(rwrite(a, "to b", 4), 4);
    expect(b, "to b", 4, &a_name);
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(b), 0);
    assert_int_equal(rclose(c), 0);
}

/* A message is received whole or cut, and never with another. */
static void test_messages(void **state)
{
    union address a_name, b_name, name;
    int a = bound(AF_INET, &a_name), b = bound(AF_INET, &b_name);
    static char data[MOST + 1], part[8];
    struct iovec iov = {part, 3};
    struct msghdr msg = {.msg_name = &name.any, .msg_namelen = sizeof(name), .msg_iov = &iov, .msg_iovlen = 1};

    (void)state;
    assert_int_equal(events_of(b, POLLIN | POLLOUT, 0), POLLOUT);
    assert_int_equal(rrecv(b, part, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(send_to(a, data, sizeof(data), &b_name), -1);
    assert_int_equal(errno, EMSGSIZE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(send_to(a, data, MOST, &b_name), MOST);
        expect(b, data, MOST, &a_name);
        assert_int_equal(send_to(a, "first", 5, &b_name), 5);
        assert_int_equal(send_to(a, "second", 6, &b_name), 6);
        assert_int_equal(events_of(b, POLLIN, WAIT_MS), POLLIN);
        assert_int_equal(rrecv(b, part, 2, MSG_PEEK | MSG_TRUNC), 5);
        assert_int_equal(rrecvmsg(b, &msg, 0), 3);
        assert_memory_equal(part, "fir", 3);
        assert_int_equal(msg.msg_flags, MSG_TRUNC);
        assert_int_equal(name.v4.sin_port, a_name.v4.sin_port);
        expect(b, "second", 6, &a_name);
    }
    iov = (struct iovec){"by msg", 6};
    msg.msg_name = &b_name;
    assert_int_equal(rsendmsg(a, &msg, 0), 6);
    expect(b, "by msg", 6, &a_name);
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
    int a = bound(AF_INET, &a_name), b = bound(AF_INET, &b_name);

    (void)state;
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *got;
        assert_int_equal(pthread_create(&thread, NULL, receive_one, &b), 0);
        usleep(20000);
        assert_int_equal(events_of(b, POLLOUT, 0), POLLOUT); /* reads, too */
        assert_int_equal(send_to(a, "wake", 4, &b_name), 4);
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
    server_name = loopback(AF_INET);
    assert_int_equal(rbind(server, (struct sockaddr *)&server_name.any, sizeof(server_name.v4)), 0);
    server_name = name_of(server);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = bound(AF_INET, &names[i]);
    for (uint32_t n = 0; n < EACH; n++)
        for (uint32_t i = 0; i < CLIENTS; i++) {
            for (int k = 0; k < 16; k++)
                message[k] = n * CLIENTS + i;
            assert_int_equal(send_to(clients[i], message, sizeof(message), &server_name), sizeof(message));
        }
    do {
        while (rrecv(server, message, sizeof(message), MSG_DONTWAIT) == sizeof(message)) {
            for (int k = 1; k < 16; k++)
                assert_int_equal(message[k], message[0]);
            got++;
        }
        last = got;
    } while (events_of(server, POLLIN, 200) == POLLIN || got != last);
    assert_true(got > 0);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(send_to(server, "still there", 11, &names[i]), 11);
        expect(clients[i], "still there", 11, &server_name);
        assert_int_equal(rclose(clients[i]), 0);
    }
    assert_int_equal(rclose(server), 0);
}

static void test_options_and_mistakes(void **state)
{
    union address a_name, other = loopback(AF_INET6), v4 = loopback(AF_INET);
    int a = bound(AF_INET, &a_name), fresh = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), value = -1;
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
    assert_int_equal(send_to(a, "x", 1, &other), -1);
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
    int fd = bound(AF_INET, &gone), a = rsocket(AF_INET, SOCK_DGRAM, 0), value = 0;
    socklen_t length = sizeof(value);
    char octet;

    (void)state;
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rconnect(a, (struct sockaddr *)&gone.any, sizeof(gone.v4)), 0);
    assert_int_equal(rsend(a, "x", 1, 0), 1);
    assert_true(events_of(a, POLLIN, WAIT_MS) & POLLERR);
    assert_int_equal(rrecv(a, &octet, 1, 0), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_int_equal(rgetsockopt(a, SOL_SOCKET, SO_ERROR, &value, &length), 0);
    assert_int_equal(value, 0);
    assert_int_equal(rclose(a), 0);
}

/* --- the wire ---------------------------------------------------------------------------------------------------- */

/* What librdmacm consists of, made by hand. */
struct peer {
    int udp;
    union address name;
    struct rdma_event_channel *events;
    struct rdma_cm_id *id; /* for its queue pair alone */
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint8_t memory[8192];
};

static void peer_open(struct peer *peer, int family)
{
    struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_UD};
    socklen_t length = sizeof(peer->name);

    peer->name = loopback(family);
    peer->udp = socket(family, SOCK_DGRAM, 0);
    assert_int_equal(bind(peer->udp, (struct sockaddr *)&peer->name.any, length_of(&peer->name)), 0);
    assert_int_equal(getsockname(peer->udp, (struct sockaddr *)&peer->name.any, &length), 0);
    peer->events = rdma_create_event_channel();
    assert_int_equal(rdma_create_id(peer->events, &peer->id, NULL, RDMA_PS_UDP), 0);
    assert_int_equal(rdma_resolve_addr(peer->id, NULL, (struct sockaddr *)&peer->name.any, WAIT_MS), 0);
    peer->pd = ibv_alloc_pd(peer->id->verbs);
    peer->cq = ibv_create_cq(peer->id->verbs, 16, NULL, NULL, 0);
    init.send_cq = init.recv_cq = peer->cq;
    assert_int_equal(rdma_create_qp(peer->id, peer->pd, &init), 0);
    peer->mr = ibv_reg_mr(peer->pd, peer->memory, sizeof(peer->memory), IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(peer->mr);
}

static void peer_close(struct peer *peer)
{
    struct rdma_cm_event *event;

    assert_int_equal(rdma_get_cm_event(peer->events, &event), 0);
    rdma_ack_cm_event(event);
    rdma_destroy_qp(peer->id);
    assert_int_equal(ibv_dereg_mr(peer->mr), 0);
    assert_int_equal(ibv_destroy_cq(peer->cq), 0);
    assert_int_equal(ibv_dealloc_pd(peer->pd), 0);
    assert_int_equal(rdma_destroy_id(peer->id), 0);
    rdma_destroy_event_channel(peer->events);
    close(peer->udp);
}

static ssize_t hear(const struct peer *peer, uint8_t *octets, size_t n)
{
    struct pollfd fd = {.fd = peer->udp, .events = POLLIN};

    assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
    return recv(peer->udp, octets, n, 0);
}

static void say(const struct peer *peer, const void *octets, size_t n, const union address *to)
{
    assert_int_equal(sendto(peer->udp, octets, n, 0, (const struct sockaddr *)&to->any, length_of(to)), (ssize_t)n);
}

/* The greeting of a queue pair: `what` is 0 before a message, and 7 alone. */
static size_t greeting(uint8_t *to, uint8_t what, uint32_t qpn, const union address *of)
{
    const int is_v4 = of->any.ss_family == AF_INET;

    memcpy(to, (const uint8_t[]){0x55, 0x55, 0x55, 0x55}, 4);
    to[4] = is_v4 ? 4 : 6;
    to[5] = what;
    to[6] = is_v4 ? GREETING_V4 : GREETING_V6;
    to[7] = 0;
    qpn = htonl(qpn);
    memcpy(to + 8, &qpn, 4);
    if (is_v4)
        memcpy(to + 12, &of->v4.sin_addr, 4);
    else
        memcpy(to + 12, &of->v6.sin6_addr, 16);
    return to[6];
}

static size_t origin(uint8_t *to, const union address *of)
{
    const int is_v4 = of->any.ss_family == AF_INET;

    memset(to, 0, ORIGIN_V6);
    to[0] = is_v4 ? 4 : 6;
    to[1] = is_v4 ? ORIGIN_V4 : ORIGIN_V6;
    memcpy(to + 2, &of->v4.sin_port, 2);
    if (is_v4)
        memcpy(to + 4, &of->v4.sin_addr, 4);
    else
        memcpy(to + 8, &of->v6.sin6_addr, 16);
    return to[1];
}

static struct ibv_wc completion(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(cq, 1, &wc)))
        ;
    assert_int_equal(n, 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    return wc;
}

static void peer_receives(struct peer *peer)
{
    struct ibv_sge sge = {(uintptr_t)peer->memory, 4096, peer->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(ibv_post_recv(peer->id->qp, &wr, &bad), 0);
}

/* From queue pair to queue pair. */
static void peer_sends(struct peer *peer, struct ibv_ah *ah, uint32_t qpn, size_t n)
{
    struct ibv_sge sge = {(uintptr_t)peer->memory + 4096, (uint32_t)n, peer->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
    assert_int_equal(ibv_post_send(peer->id->qp, &wr, &bad), 0);
    completion(peer->cq);
}

/* The rsocket speaks first: by UDP until it is greeted, and then by its queue pair. Returns its number. */
static uint32_t check_what_is_sent(struct peer *peer, int fd, const union address *name, struct ibv_ah **ah)
{
    uint8_t octets[256], want[256];
    uint32_t qpn;
    size_t n;
    struct ibv_wc wc;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(send_to(fd, "first", 5, &peer->name), 5);
        n = (size_t)hear(peer, octets, sizeof(octets));
        memcpy(&qpn, octets + 8, 4);
        qpn = ntohl(qpn);
        assert_true(qpn > 1 && qpn <= 0xffffff);
        assert_int_equal(n, greeting(want, 0, qpn, name) + 5);
        memcpy(want + n - 5, "first", 5);
        assert_memory_equal(octets, want, n);
    }
    say(peer, want, greeting(want, 7, peer->id->qp->qp_num, &peer->name), name);
    for (int i = 0; i < 2; i++) {
        peer_receives(peer);
        assert_int_equal(send_to(fd, "second", 6, &peer->name), 6);
        wc = completion(peer->cq);
        assert_int_equal(wc.src_qp, qpn);
        n = origin(want, name);
        memcpy(want + n, "second", 6);
        assert_int_equal(wc.byte_len, GRH + n + 6);
        assert_memory_equal(peer->memory + GRH, want, n + 6);
        if (i)
            continue;
        *ah = ibv_create_ah_from_wc(peer->pd, &wc, (struct ibv_grh *)(void *)peer->memory, 1);
        assert_non_null(*ah);
    }
    return qpn;
}

/* The peer speaks: by its queue pair; by UDP, which is answered; and nonsense. */
static void check_what_is_received(struct peer *peer, int fd, const union address *name, struct ibv_ah *ah,
                                   uint32_t qpn)
{
    uint8_t octets[256], want[256], *message = peer->memory + 4096;
    size_t n = origin(message, &peer->name);

    memcpy(message + n, "third", 5);
    peer_sends(peer, ah, qpn, n + 5);
    expect(fd, "third", 5, &peer->name);
    n = greeting(octets, 0, peer->id->qp->qp_num, &peer->name);
    memcpy(octets + n, "fourth", 6);
    say(peer, octets, n + 6, name);
    expect(fd, "fourth", 6, &peer->name);
    n = (size_t)hear(peer, octets, sizeof(octets));
    assert_int_equal(n, greeting(want, 7, qpn, name));
    assert_memory_equal(octets, want, n);

    for (size_t bad = 0; bad <= 8; bad++) { /* each octet of a header is wrong once, and the header is too short */
        origin(message, &peer->name);
        message[bad % 2] ^= 0x40;
        peer_sends(peer, ah, qpn, bad < 2 ? 32 : bad % 8);
        n = greeting(octets, 0, 77, &peer->name);
        octets[bad < 7 ? bad : 0] ^= 0x40;
        say(peer, octets, bad < 7 ? n : bad, name);
    }
    origin(message, &peer->name);
    memcpy(message + origin(message, &peer->name), "fifth", 5);
    peer_sends(peer, ah, qpn, origin(want, &peer->name) + 5);
    expect(fd, "fifth", 5, &peer->name);
    assert_int_equal(events_of(fd, POLLIN, 0), 0);
}

static void by_hand(int family)
{
    static struct peer peer;
    union address name;
    int fd = bound(family, &name);
    struct ibv_ah *ah = NULL;
    uint32_t qpn;

    peer_open(&peer, family);
    qpn = check_what_is_sent(&peer, fd, &name, &ah);
    check_what_is_received(&peer, fd, &name, ah, qpn);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    peer_close(&peer);
    assert_int_equal(rclose(fd), 0);
}

static void test_wire(void **state)
{
    (void)state;
    by_hand(AF_INET);
    by_hand(AF_INET6);
}

/* A peer that begins again has another queue pair, and is found after a second of silence. */
static void test_restart(void **state)
{
    union address a_name, b_name, again;
    int a = bound(AF_INET, &a_name), b = bound(AF_INET, &b_name);

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(send_to(a, "one", 3, &b_name), 3);
        expect(b, "one", 3, &a_name);
        assert_int_equal(send_to(b, "two", 3, &a_name), 3);
        expect(a, "two", 3, &b_name);
    }
    assert_int_equal(rclose(b), 0);
    b = rsocket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(rbind(b, (struct sockaddr *)&b_name.any, sizeof(b_name.v4)), 0);
    again = name_of(b);
    assert_int_equal(again.v4.sin_port, b_name.v4.sin_port);
    for (int tries = 0; !events_of(b, POLLIN, 100); tries++) {
        assert_true(tries < WAIT_MS / 100);
        assert_int_equal(send_to(a, "three", 5, &b_name), 5);
    }
    expect(b, "three", 5, &a_name);
    assert_int_equal(rclose(a), 0);
    assert_int_equal(rclose(b), 0);
}

/* A socket of IPv6 at the wildcard serves IPv4, too. */
static void test_both_families(void **state)
{
    union address name, any = {.any = {.ss_family = AF_INET6}}, to = loopback(AF_INET), mapped;
    int server = rsocket(AF_INET6, SOCK_DGRAM, 0), client = bound(AF_INET, &name), off = 0;

    (void)state;
    assert_int_equal(rsetsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
    assert_int_equal(rbind(server, (struct sockaddr *)&any.any, sizeof(any.v6)), 0);
    to.v4.sin_port = name_of(server).v6.sin6_port;
    memset(&mapped, 0, sizeof(mapped));
    mapped.v6.sin6_family = AF_INET6;
    mapped.v6.sin6_port = name.v4.sin_port;
    memcpy(mapped.v6.sin6_addr.s6_addr + 10, (const uint8_t[]){0xff, 0xff, 127, 0, 0, 1}, 6);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(send_to(client, "four", 4, &to), 4);
        expect(server, "four", 4, &mapped);
        assert_int_equal(send_to(server, "six", 3, &mapped), 3);
        expect(client, "six", 3, &to);
    }
    assert_int_equal(rclose(server), 0);
    assert_int_equal(rclose(client), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange), cmocka_unit_test(test_connected),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_flood),    cmocka_unit_test(test_options_and_mistakes),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_wire),
        cmocka_unit_test(test_restart),  cmocka_unit_test(test_both_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
