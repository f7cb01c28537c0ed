/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsocket_datagram_wire.c - what goes over the wire between rsockets for datagrams: the peer is made by hand of a UDP
 * socket and a UD queue pair. */
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <unistd.h>

#include "tests/verbs/lib/datagram_ends.h"

enum { ORIGIN_V4 = 8, ORIGIN_V6 = 24, GREETING_V4 = 16, GREETING_V6 = 28, GRH = 40 };

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

    peer->name = datagram_loopback(family);
    peer->udp = socket(family, SOCK_DGRAM, 0);
    assert_int_equal(bind(peer->udp, (struct sockaddr *)&peer->name.any, datagram_length(&peer->name)), 0);
    assert_int_equal(getsockname(peer->udp, (struct sockaddr *)&peer->name.any, &length), 0);
    peer->events = rdma_create_event_channel();
    assert_int_equal(rdma_create_id(peer->events, &peer->id, NULL, RDMA_PS_UDP), 0);
    assert_int_equal(rdma_resolve_addr(peer->id, NULL, (struct sockaddr *)&peer->name.any, DATAGRAM_WAIT_MS), 0);
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

    assert_int_equal(poll(&fd, 1, DATAGRAM_WAIT_MS), 1);
    return recv(peer->udp, octets, n, 0);
}

static void say(const struct peer *peer, const void *octets, size_t n, const union address *to)
{
    assert_int_equal(sendto(peer->udp, octets, n, 0, (const struct sockaddr *)&to->any, datagram_length(to)),
                     (ssize_t)n);
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

/* Until it has taken the greeting, which the kernel may still be handing over, the rsocket goes on by UDP. */
static void await_greeted(struct peer *peer, int fd)
{
    struct pollfd udp = {.fd = peer->udp, .events = POLLIN};
    uint8_t octets[256];
    int n;

    peer_receives(peer);
    do {
        assert_int_equal(datagram_send(fd, "again", 5, &peer->name), 5);
        while (!(n = ibv_poll_cq(peer->cq, 1, &(struct ibv_wc){0})) && !poll(&udp, 1, 1))
            continue;
    } while (!n && recv(peer->udp, octets, sizeof(octets), 0) > 0);
    assert_int_equal(n, 1);
}

/* The rsocket speaks first: by UDP until it is greeted, and then by its queue pair. Returns its number. */
static uint32_t check_what_is_sent(struct peer *peer, int fd, const union address *name, struct ibv_ah **ah)
{
    uint8_t octets[256], want[256];
    uint32_t qpn;
    size_t n;
    struct ibv_wc wc;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(datagram_send(fd, "first", 5, &peer->name), 5);
        n = (size_t)hear(peer, octets, sizeof(octets));
        memcpy(&qpn, octets + 8, 4);
        qpn = ntohl(qpn);
        assert_true(qpn > 1 && qpn <= 0xffffff);
        assert_int_equal(n, greeting(want, 0, qpn, name) + 5);
        memcpy(want + n - 5, "first", 5);
        assert_memory_equal(octets, want, n);
    }
    say(peer, want, greeting(want, 7, peer->id->qp->qp_num, &peer->name), name);
    await_greeted(peer, fd);
    for (int i = 0; i < 2; i++) {
        peer_receives(peer);
        assert_int_equal(datagram_send(fd, "second", 6, &peer->name), 6);
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
    datagram_expect(fd, "third", 5, &peer->name);
    n = greeting(octets, 0, peer->id->qp->qp_num, &peer->name);
    memcpy(octets + n, "fourth", 6);
    say(peer, octets, n + 6, name);
    datagram_expect(fd, "fourth", 6, &peer->name);
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
    datagram_expect(fd, "fifth", 5, &peer->name);
    assert_int_equal(datagram_events(fd, POLLIN, 0), 0);
}

/* A message that names another host than the one that it comes from, and one that is longer than any. */
static void check_what_is_dropped(struct peer *peer, int fd, const union address *name, struct ibv_ah *ah, uint32_t qpn)
{
    static uint8_t octets[4096];
    union address other = peer->name;
    uint8_t *message = peer->memory + 4096;
    size_t n;

    if (other.any.ss_family == AF_INET)
        other.v4.sin_addr.s_addr ^= htonl(8);
    else
        other.v6.sin6_addr.s6_addr[15] ^= 8;
    n = origin(message, &other);
    memcpy(message + n, "forged", 6);
    peer_sends(peer, ah, qpn, n + 6);
    greeting(octets, 0, peer->id->qp->qp_num, &peer->name);
    say(peer, octets, sizeof(octets), name);
    n = origin(message, &peer->name);
    memcpy(message + n, "sixth", 5);
    peer_sends(peer, ah, qpn, n + 5);
    datagram_expect(fd, "sixth", 5, &peer->name);
    assert_int_equal(datagram_events(fd, POLLIN, 0), 0);
}

/* A greeting that names a wrong queue pair, as a forged one does: messages of the peer do not confirm it, and it is
 * believed for a second. Then one goes by UDP, and the answer is right. */
static void check_what_is_forged(struct peer *peer, int fd, const union address *name, struct ibv_ah *ah, uint32_t qpn)
{
    enum { TIMES = 100, EVERY_MS = 50 };
    struct pollfd udp = {.fd = peer->udp, .events = POLLIN};
    uint8_t octets[256], *message = peer->memory + 4096;
    size_t n;
    int i;

    while (recv(peer->udp, octets, sizeof(octets), MSG_DONTWAIT) > 0)
        ;
    say(peer, octets, greeting(octets, 7, peer->id->qp->qp_num ^ 0xff, &peer->name), name);
    for (i = 0; i < TIMES && !poll(&udp, 1, EVERY_MS); i++) {
        n = origin(message, &peer->name);
        memcpy(message + n, "here", 4);
        peer_sends(peer, ah, qpn, n + 4);
        datagram_expect(fd, "here", 4, &peer->name);
        assert_int_equal(datagram_send(fd, "again", 5, &peer->name), 5);
    }
    assert_true(i > 1 && i < TIMES);
    say(peer, octets, greeting(octets, 7, peer->id->qp->qp_num, &peer->name), name);
    await_greeted(peer, fd);
}

static void by_hand(int family)
{
    static struct peer peer;
    union address name;
    int fd = datagram_bound(family, &name);
    struct ibv_ah *ah = NULL;
    uint32_t qpn;

    peer_open(&peer, family);
    qpn = check_what_is_sent(&peer, fd, &name, &ah);
    check_what_is_received(&peer, fd, &name, ah, qpn);
    check_what_is_dropped(&peer, fd, &name, ah, qpn);
    check_what_is_forged(&peer, fd, &name, ah, qpn);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wire)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
