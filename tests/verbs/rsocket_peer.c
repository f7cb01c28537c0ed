/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket_peer.c - rsockets and a peer that breaks their protocol, made of rdma_cm and verbs alone; options, names,
 * mapped buffers, sockets that are closed at once. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { HELLO = 40, WAIT_MS = 20000 };

/* Private data of an rsocket that has a target SGL and a buffer at places that do not exist. */
static const uint8_t hello[HELLO] = {
    1, 2, 1, 0, 0, 0, 0,  0,                         /* version 1, iomaps, 256 credits */
    0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 1, 0, 0, 0, 2, /* two entries at 0x1000, key 1 */
    0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 1, 0, 1, 0, 0, /* 64 KiB at 0x2000, key 1 */
};

static int listen_here(struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);

    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(rbind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
    assert_int_equal(rlisten(fd, 8), 0);
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

/* Another program of verbs that connects. */
struct peer {
    struct rdma_cm_id *id;
    struct rdma_conn_param param;
    int error;
    pthread_t thread;
};

static void *peer_connect(void *arg)
{
    struct peer *peer = arg;

    peer->error = rdma_connect(peer->id, &peer->param) ? errno : 0;
    return NULL;
}

static void peer_start(struct peer *peer, const struct sockaddr_in *to, const uint8_t *data, uint8_t length)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
    struct sockaddr_in address = *to;

    *peer = (struct peer){.param = {.private_data = data, .private_data_len = length}};
    assert_int_equal(rdma_create_id(NULL, &peer->id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(peer->id, NULL, (struct sockaddr *)&address, WAIT_MS), 0);
    assert_int_equal(rdma_resolve_route(peer->id, WAIT_MS), 0);
    assert_int_equal(rdma_create_qp(peer->id, NULL, &attr), 0);
    pthread_create(&peer->thread, NULL, peer_connect, peer);
}

static int peer_result(struct peer *peer)
{
    pthread_join(peer->thread, NULL);
    return peer->error;
}

/* Data of other programs, of versions to come, and of rsockets that nothing could be sent to. */
static void test_strange_hello(void **state)
{
    static const struct {
        uint8_t at, value, length;
    } cases[] = {
        {0, 2, HELLO},     /* version */
        {0, 1, HELLO - 1}, /* too short */
        {0, 1, 0},         /* none */
        {2, 0, HELLO},     /* no credits */
        {23, 1, HELLO},    /* one entry */
        {37, 0, HELLO},    /* a buffer of nothing */
    };
    struct sockaddr_in address;
    int listener = listen_here(&address);
    (void)state;

    assert_int_equal(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pollfd fd = {.fd = listener, .events = POLLIN};
        uint8_t data[HELLO];
        struct peer peer;
        memcpy(data, hello, HELLO);
        data[cases[i].at] = cases[i].value;
        peer_start(&peer, &address, data, cases[i].length);
        assert_int_equal(rpoll(&fd, 1, WAIT_MS), 1);
        assert_int_equal(raccept(listener, NULL, NULL), -1);
        assert_int_equal(errno, EAGAIN);
        assert_int_equal(peer_result(&peer), ECONNREFUSED);
        rdma_destroy_ep(peer.id);
    }
    rclose(listener);
}

/* One message after the connection has begun, and what the rsocket makes of it. */
static void test_strange_messages(void **state)
{
    static const struct {
        uint32_t message, length;
        int error;
    } cases[] = {
        {(128 << 10) + 1, 4, EPROTO},       /* more data than 128 KiB, which are published at most */
        {(uint32_t)1 << 29, 4, EPROTO},     /* reserved */
        {(uint32_t)6 << 29, 4, EPROTO},     /* an entry of the iomap, which has none */
        {0, 3, EPROTO},                     /* no message at all */
        {(uint32_t)7 << 29 | 1, 4, EAGAIN}, /* keepalive */
        {(uint32_t)7 << 29 | 2, 4, 0},      /* shutdown */
        {(uint32_t)7 << 29, 4, 0},          /* disconnect */
    };
    struct sockaddr_in address;
    int listener = listen_here(&address);
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t message = cases[i].message;
        struct ibv_wc wc;
        struct peer peer;
        ssize_t n;
        char octet;
        int fd;
        peer_start(&peer, &address, hello, HELLO);
        fd = raccept(listener, NULL, NULL);
        assert_true(fd >= 0);
        assert_int_equal(peer_result(&peer), 0);
        assert_int_equal(rdma_post_send(peer.id, NULL, &message, cases[i].length, NULL, IBV_SEND_INLINE), 0);
        while (!ibv_poll_cq(peer.id->send_cq, 1, &wc))
            ;
        n = cases[i].error == EAGAIN ? 0 : rrecv(fd, &octet, 1, 0);
        assert_int_equal(n, cases[i].error && cases[i].error != EAGAIN ? -1 : 0);
        if (n < 0)
            assert_int_equal(errno, cases[i].error);
        rdma_disconnect(peer.id);
        rclose(fd);
        rdma_destroy_ep(peer.id);
    }
    rclose(listener);
}

/* What an rsocket says of itself, octet by octet. */
static void test_own_hello(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), iomaps = 300;
    const uint8_t *data;
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    (void)state;

    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&here), 0);
    assert_int_equal(rdma_listen(id, 0), 0);
    here.sin_port = rdma_get_src_port(id);
    assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_IOMAPSIZE, &iomaps, sizeof(iomaps)), 0);
    assert_int_equal(rconnect(fd, (struct sockaddr *)&here, sizeof(here)), -1);
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(event->param.conn.private_data_len, HELLO);
    data = event->param.conn.private_data;
    assert_memory_equal(data, "\x01\x02\x01\x80\0\0\0\x82", 8); /* 384 credits; 300 is more than one octet says: 512 */
    assert_memory_equal(data + 20, "\0\0\0\x02", 4);            /* entries of the target SGL */
    assert_memory_equal(data + 36, "\0\x01\0\0", 4);            /* half of 128 KiB */
    rdma_reject(event->id, NULL, 0);
    id = event->id;
    rdma_ack_cm_event(event);
    rdma_destroy_id(id);
    rclose(fd);
}

static void set_iomaps(int fd)
{
    int two = 2;

    assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_IOMAPSIZE, &two, sizeof(two)), 0);
}

static void test_iomap(void **state)
{
    static uint8_t mapped[200000], other[64], data[200000];
    struct sockaddr_in address;
    int listener = listen_here(&address), client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), server;
    struct pollfd fd = {.fd = client, .events = POLLOUT};
    char octet;
    (void)state;

    set_iomaps(listener);
    set_iomaps(client);
    rconnect(client, (struct sockaddr *)&address, sizeof(address));
    server = raccept(listener, NULL, NULL);
    assert_int_equal(riomap(server, mapped, sizeof(mapped), PROT_WRITE, 0, 1000), 1000);
    assert_int_equal(rpoll(&fd, 1, WAIT_MS), 1);
    rfcntl(client, F_SETFL, 0);
    assert_int_equal(riomap(server, other, sizeof(other), PROT_WRITE, 0, -1), (off_t)(uintptr_t)other);
    assert_int_equal(riomap(server, data, 1, PROT_WRITE, 0, 5), -1);
    assert_int_equal(errno, ENOMEM); /* the client has two entries */
    assert_int_equal(riomap(server, data, 1, PROT_NONE, 0, 5), 5);
    assert_int_equal(riounmap(server, data, 1), 0);
    assert_int_equal(riomap(server, data, 1, PROT_EXEC, 0, 5), -1);
    assert_int_equal(errno, EINVAL);

    assert_int_equal(rsend(server, "m", 1, 0), 1); /* the mappings are known when this is */
    assert_int_equal(rrecv(client, &octet, 1, 0), 1);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 31 + (i >> 8));
    assert_int_equal(riowrite(client, data, 199000, 2000, 0), 199000);
    assert_int_equal(riowrite(client, "small", 6, (off_t)(uintptr_t)other + 58, 0), 6);
    assert_int_equal(riowrite(client, data, 1, 999, 0), (size_t)-1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(riowrite(client, data, 2, 200999, 0), 1); /* the last octet, and none behind it */
    assert_int_equal(riowrite(client, data, 1, 201000, 0), (size_t)-1);
    assert_int_equal(rsend(client, "w", 1, 0), 1); /* what was written is there when this is */
    assert_int_equal(rrecv(server, &octet, 1, 0), 1);
    assert_memory_equal(mapped + 1000, data, 198999);
    assert_int_equal(mapped[199999], data[0]);
    assert_string_equal((char *)other + 58, "small");
    assert_int_equal(mapped[999], 0);
    assert_int_equal(riounmap(server, other, sizeof(other)), 0);
    assert_int_equal(riounmap(server, other, sizeof(other)), -1);
    assert_int_equal(errno, EINVAL);
    rclose(client);
    rclose(server);
    rclose(listener);
}

static int int_option(int fd, int level, int name)
{
    int value = -1;
    socklen_t length = sizeof(value);

    return rgetsockopt(fd, level, name, &value, &length) ? -errno : value;
}

static int set_int(int fd, int level, int name, int value)
{
    return rsetsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static void test_options(void **state)
{
    struct sockaddr_in6 name;
    socklen_t length = sizeof(name);
    int fd = rsocket(AF_INET6, SOCK_STREAM, 0);
    (void)state;

    assert_int_equal(int_option(fd, SOL_SOCKET, SO_SNDBUF), 128 << 10);
    assert_int_equal(set_int(fd, SOL_SOCKET, SO_SNDBUF, 5000), 0);
    assert_int_equal(int_option(fd, SOL_SOCKET, SO_SNDBUF), 10000); /* as the kernel doubles it */
    assert_int_equal(set_int(fd, SOL_SOCKET, SO_RCVBUF, 1), 0);
    assert_int_equal(int_option(fd, SOL_SOCKET, SO_RCVBUF), 4096);
    assert_int_equal(set_int(fd, SOL_RDMA, RDMA_SQSIZE, 15), 0);
    assert_int_equal(int_option(fd, SOL_RDMA, RDMA_SQSIZE), 16);
    assert_int_equal(set_int(fd, SOL_RDMA, RDMA_RQSIZE, 16001), 0);
    assert_int_equal(int_option(fd, SOL_RDMA, RDMA_RQSIZE), 16000);
    assert_int_equal(set_int(fd, SOL_RDMA, RDMA_RQSIZE, -1), -EINVAL);
    assert_int_equal(set_int(fd, SOL_RDMA, RDMA_ROUTE, 1), -ENOPROTOOPT);
    assert_int_equal(set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1), 0);
    assert_int_equal(int_option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(int_option(fd, IPPROTO_TCP, TCP_INFO), -ENOPROTOOPT);
    assert_int_equal(int_option(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)&name, &length), 0);
    assert_int_equal(name.sin6_family, AF_INET6);
    assert_int_equal(rgetpeername(fd, (struct sockaddr *)&name, &length), -1);
    assert_int_equal(errno, ENOTCONN);
    assert_int_equal(rsend(fd, "x", 1, 0), -1);
    assert_int_equal(errno, ENOTCONN);
    assert_int_equal(rfcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rclose(fd), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
    assert_int_equal(errno, EAFNOSUPPORT);
    assert_int_equal(rsocket(AF_INET, SOCK_SEQPACKET, 0), -1);
    assert_int_equal(errno, EPROTONOSUPPORT);
}

/* iWARP has no datagrams. */
static void test_datagrams(void **state)
{
    (void)state;
    assert_int_equal(rsocket(AF_INET, SOCK_DGRAM, 0), -1);
    assert_int_equal(errno, ENODEV);
}

/* A server that closes what it has just accepted is no server that refuses. */
static void test_closed_at_once(void **state)
{
    struct sockaddr_in address;
    int listener = listen_here(&address), client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), server;
    struct pollfd fd = {.fd = client, .events = POLLOUT};
    char octet;
    (void)state;

    assert_int_equal(rconnect(client, (struct sockaddr *)&address, sizeof(address)), -1);
    server = raccept(listener, NULL, NULL);
    assert_int_equal(rclose(server), 0);
    assert_int_equal(rpoll(&fd, 1, WAIT_MS), 1);
    assert_int_equal(int_option(client, SOL_SOCKET, SO_ERROR), 0);
    fd.events = POLLIN;
    assert_int_equal(rpoll(&fd, 1, WAIT_MS), 1);
    assert_int_equal(rrecv(client, &octet, 1, 0), 0);
    assert_int_equal(rclose(client), 0);
    assert_int_equal(rclose(listener), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strange_hello),  cmocka_unit_test(test_strange_messages),
        cmocka_unit_test(test_own_hello),      cmocka_unit_test(test_iomap),
        cmocka_unit_test(test_options),        cmocka_unit_test(test_datagrams),
        cmocka_unit_test(test_closed_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
