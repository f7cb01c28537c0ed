/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* by_hand.c - makes and connects queue pairs of RoCE as two programs do that exchange numbers. */
#include "tests/suite/lib/by_hand.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sockaddr_storage hand_address(const char *text, uint16_t port)
{
    struct sockaddr_storage address = {.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;

    v4->sin_port = htons(port); /* at the same place for IPv6 */
    assert_int_equal(inet_pton(address.ss_family, text,
                               address.ss_family == AF_INET6 ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr),
                     1);
    return address;
}

uint16_t hand_port(const struct rddp_listener *listener)
{
    struct sockaddr_storage address;

    assert_int_equal(rddp_listener_addr(listener, &address), 0);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

void hands_open_with(struct hands *h, enum rddp_qp_type type, const char *address, const struct rddp_context_attr *attr)
{
    unsigned all = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ |
                   RDDP_ACCESS_REMOTE_ATOMIC | RDDP_ACCESS_ZERO_BASED;

    *h = (struct hands){.end[0].psn = 0xfffff0, .end[1].psn = 0x123456};
    h->address = hand_address(address, 0);
    rddp_qp_attr_init(&h->qp);
    rddp_ib_attr_init(&h->ib);
    h->qp.type = type;
    h->qp.max_send_wr = h->qp.max_recv_wr = HAND_DEPTH;
    h->qp.max_rd_atomic = HAND_READS;
    for (unsigned i = 0; i < 2; i++) {
        struct hand *hand = &h->end[i];

        hand->context = rddp_open(attr);
        assert_non_null(hand->context);
        hand->pd = rddp_alloc_pd(hand->context);
        hand->cq = rddp_create_cq(hand->context, 4 * HAND_DEPTH, NULL, NULL);
        hand->buffer = calloc(1, HAND_BUFFER);
        hand->mr = rddp_reg_mr(hand->pd, hand->buffer, HAND_BUFFER, all);
        assert_non_null(hand->mr);
    }
}

void hands_open(struct hands *h, enum rddp_qp_type type, const char *address)
{
    hands_open_with(h, type, address, NULL);
}

void hands_open_manual(struct hands *h, enum rddp_qp_type type, const char *address)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    hands_open_with(h, type, address, &attr);
}

void hands_make(struct hands *h)
{
    for (unsigned i = 0; i < 2; i++) {
        h->qp.send_cq = h->qp.recv_cq = h->end[i].cq;
        h->end[i].qp = rddp_create_qp(h->end[i].pd, &h->qp);
        assert_non_null(h->end[i].qp);
    }
}

void hand_connect(struct hands *h, unsigned end, uint32_t peer_qpn)
{
    struct rddp_ib_attr attr = h->ib;

    attr.peer = h->address;
    attr.peer_qpn = peer_qpn;
    attr.sq_psn = h->end[end].psn;
    attr.rq_psn = h->end[!end].psn;
    for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTS; attr.state++)
        assert_int_equal(rddp_modify_qp(h->end[end].qp, &attr), 0);
}

void hands_connect(struct hands *h)
{
    for (unsigned i = 0; i < 2; i++)
        hand_connect(h, i, rddp_qp_num(h->end[!i].qp));
}

void hands_close(struct hands *h)
{
    for (unsigned i = 0; i < 2; i++) {
        struct hand *hand = &h->end[i];

        if (hand->qp)
            assert_int_equal(rddp_destroy_qp(hand->qp), 0);
        assert_int_equal(rddp_dereg_mr(hand->mr), 0);
        assert_int_equal(rddp_destroy_cq(hand->cq), 0);
        assert_int_equal(rddp_dealloc_pd(hand->pd), 0);
        assert_int_equal(rddp_close(hand->context), 0);
        free(hand->buffer);
    }
}

struct rddp_wc hand_completion(struct hand *hand)
{
    struct timespec now, end;
    struct rddp_wc wc;
    int n;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += HAND_WAIT_MS / 1000;
    while (!(n = rddp_poll_cq(hand->cq, 1, &wc))) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec < end.tv_sec);
    }
    assert_int_equal(n, 1);
    return wc;
}

void hand_receive(struct hand *hand, uint64_t id, size_t at, uint32_t length)
{
    struct rddp_sge sge = {at, length, rddp_mr_key(hand->mr)};
    struct rddp_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

    assert_int_equal(rddp_post_recv(hand->qp, &wr, NULL), 0);
}

void hand_post(struct hand *from, const struct hand *to, enum rddp_wr_opcode opcode, size_t at, uint32_t length,
               size_t remote)
{
    struct rddp_sge sge = {at, length, rddp_mr_key(from->mr)};
    struct rddp_send_wr wr = {
        .wr_id = opcode,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = RDDP_SEND_SIGNALED,
        .remote_addr = remote,
        .rkey = rddp_mr_key(to->mr),
        .imm_data = 0x12345678,
        .compare_add = 5,
        .swap = 77,
    };

    assert_int_equal(rddp_post_send(from->qp, &wr, NULL), 0);
}

static uint8_t octet_at(size_t i, uint32_t seed)
{
    return (uint8_t)(((i + seed) * 2654435761u) >> 13);
}

void hand_fill(uint8_t *p, size_t octets, uint32_t seed)
{
    for (size_t i = 0; i < octets; i++)
        p[i] = octet_at(i, seed);
}

void hand_check(const uint8_t *p, size_t octets, uint32_t seed)
{
    for (size_t i = 0; i < octets; i++)
        if (p[i] != octet_at(i, seed))
            fail_msg("octet %zu of %zu: %02x, not %02x", i, octets, p[i], octet_at(i, seed));
}

void hands_skip_without_threads_in_children(void)
{
#ifdef __SANITIZE_THREAD__
    print_message("the sanitizer allows no thread in a process made by fork() beside others\n");
    skip();
#endif
}
