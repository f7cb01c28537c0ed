/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_ud.c - datagrams of RoCE over loopback: what arrives and from where, what is dropped, and which mistake of the
 * application has which errno or completion. ROCE-RSP-19. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/suite/lib/datagrams.h"

enum { MTU_MAX = 4096 };

static struct rddp_wc arrives(unsigned to, uint32_t octets)
{
    struct rddp_wc wc = hand_completion(&h.end[to]);

    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.opcode, RDDP_WC_RECV);
    assert_int_equal(wc.byte_len, GRH + octets);
    assert_true(wc.wc_flags & RDDP_WC_GRH);
    assert_int_equal(wc.src_qp, rddp_qp_num(h.end[!to].qp));
    hand_check(h.end[to].buffer + AT + GRH, octets, octets);
    return wc;
}

static struct rddp_ib_counters counted(unsigned end)
{
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(h.end[end].qp, &info), 0);
    return info.ib;
}

/* The message is dropped: counters say so within seconds. */
static void until_counted(uint64_t (*what)(unsigned end), unsigned end, uint64_t wanted)
{
    for (unsigned i = 0; i < 30000 && what(end) != wanted; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(what(end), wanted);
}

/* --- what arrives ------------------------------------------------------------------------------------------------- */

static void send_once(uint32_t octets, enum rddp_wr_opcode opcode)
{
    struct rddp_send_wr *wr = datagram(0, octets);
    unsigned wanted = RDDP_WC_GRH;
    struct rddp_wc wc;

    hand_fill(h.end[0].buffer, octets, octets);
    memset(h.end[1].buffer + AT, 0xa5, GRH + octets + 1);
    hand_receive(&h.end[1], 7, AT, GRH + octets);
    wr->opcode = opcode;
    datagram_send(0, wr);
    wc = arrives(1, octets);
    /* A header of IPv6 begins with its version, one of IPv4 with zeros. */
    wanted |= h.end[1].buffer[AT] ? 0 : RDDP_WC_IPV4;
    wanted |= opcode == RDDP_WR_SEND ? 0 : RDDP_WC_WITH_IMM;
    assert_int_equal(wc.wc_flags, wanted);
    assert_true(opcode == RDDP_WR_SEND || wc.imm_data == IMMEDIATE);
    assert_int_equal(h.end[1].buffer[AT + GRH + octets], 0xa5);
}

static void exchange(const char *address)
{
    static const uint32_t octets[] = {0, 1, 2, 3, 4, 255, 1024, MTU_MAX - 1, MTU_MAX};

    datagrams_open(address);
    for (unsigned i = 0; i < sizeof(octets) / sizeof(octets[0]); i++) {
        send_once(octets[i], RDDP_WR_SEND);
        send_once(octets[i], RDDP_WR_SEND_WITH_IMM);
    }
    datagrams_close();
}

static void sizes(void **state)
{
    (void)state;
    exchange("127.0.0.1");
    exchange("::1");
}

/* The header says where to answer, and is what libibverbs reads: a right checksum of IPv4 behind 20 zeros. */
static void answered(void **state)
{
    static const uint8_t zeros[20];
    struct rddp_ah_attr attr;
    struct rddp_send_wr *wr;
    struct rddp_wc wc;
    uint8_t *grh;

    (void)state;
    datagrams_open("127.0.0.1");
    hand_receive(&h.end[1], 1, AT, GRH + 100);
    hand_fill(h.end[0].buffer, 100, 100);
    datagram_send(0, datagram(0, 100));
    wc = arrives(1, 100);
    grh = h.end[1].buffer + AT;
    assert_memory_equal(grh, zeros, sizeof(zeros));
    assert_int_equal(grh[20], 0x45);
    assert_int_equal(grh[22] << 8 | grh[23], 20 + 8 + 12 + 8 + 100 + 4); /* IP, UDP, BTH, DETH, ICRC */
    assert_int_equal(rddp_ah_attr_from_wc(&wc, grh, &attr), 0);
    assert_int_equal(rddp_destroy_ah(way[1]), 0);
    way[1] = rddp_create_ah(h.end[1].pd, &attr);
    assert_non_null(way[1]);
    hand_receive(&h.end[0], 1, AT, GRH + 50);
    hand_fill(h.end[1].buffer, 50, 50);
    wr = datagram(1, 50);
    wr->remote_qpn = wc.src_qp;
    datagram_send(1, wr);
    arrives(0, 50);

    grh[31] ^= 1;
    assert_int_equal(rddp_ah_attr_from_wc(&wc, grh, &attr), -EINVAL);
    grh[31] ^= 1;
    wc.wc_flags = 0;
    assert_int_equal(rddp_ah_attr_from_wc(&wc, grh, &attr), -EINVAL);
    datagrams_close();
}

/* Many at once, in batches, each with its own receive: on loopback none is lost while there are receives. */
static void many(void **state)
{
    enum { ROUNDS = 20 };

    (void)state;
    datagrams_open("127.0.0.1");
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < HAND_DEPTH; i++)
            hand_receive(&h.end[1], i, AT + i * 2048, 2048);
        for (unsigned i = 0; i < HAND_DEPTH; i++) {
            struct rddp_send_wr *wr = datagram(0, 16 + i);

            wr->send_flags = i == HAND_DEPTH - 1 ? RDDP_SEND_SIGNALED : 0;
            assert_int_equal(datagram_post(0, wr), 0);
        }
        for (unsigned i = 0; i < HAND_DEPTH; i++) {
            struct rddp_wc wc = hand_completion(&h.end[1]);

            assert_int_equal(wc.status, RDDP_WC_SUCCESS);
            assert_int_equal(wc.wr_id, i);
            assert_int_equal(wc.byte_len, GRH + 16 + i);
        }
        assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    }
    datagrams_close();
}

/* --- what does not arrive ------------------------------------------------------------------------------------------
 */

static uint64_t wrong_keys(unsigned end)
{
    return counted(end).wrong_qkey;
}

static uint64_t not_ready(unsigned end)
{
    return counted(end).not_ready_here;
}

static void q_keys(void **state)
{
    struct rddp_send_wr *wr;
    struct rddp_ib_attr attr;

    (void)state;
    datagrams_open("127.0.0.1");
    hand_receive(&h.end[1], 1, AT, GRH + 10);
    hand_fill(h.end[0].buffer, 10, 10);
    wr = datagram(0, 10);
    wr->remote_qkey = QKEY ^ 1;
    datagram_send(0, wr);
    until_counted(wrong_keys, 1, 1);
    wr = datagram(0, 10);
    wr->remote_qkey = 0x80000000; /* our own, which the other end has, too */
    datagram_send(0, wr);
    arrives(1, 10);

    rddp_ib_attr_init(&attr);
    attr.state = RDDP_IB_RTS;
    attr.qkey = QKEY + 1;
    assert_int_equal(rddp_modify_qp(h.end[1].qp, &attr), 0);
    hand_receive(&h.end[1], 2, AT, GRH + 10);
    datagram_send(0, datagram(0, 10));
    until_counted(wrong_keys, 1, 2);
    wr = datagram(0, 10);
    wr->remote_qkey = QKEY + 1;
    datagram_send(0, wr);
    arrives(1, 10);
    datagrams_close();
}

static void without_receive(void **state)
{
    (void)state;
    datagrams_open("127.0.0.1");
    datagram_send(0, datagram(0, 10));
    until_counted(not_ready, 1, 1);
    send_once(20, RDDP_WR_SEND);
    assert_int_equal(ib_state_of(1), RDDP_IB_RTS);
    datagrams_close();
}

/* One octet less than the message needs: an error of the receive, and of the queue pair. */
static void too_long(void **state)
{
    struct rddp_wc wc;

    (void)state;
    datagrams_open("127.0.0.1");
    hand_fill(h.end[0].buffer, 100, 100);
    hand_receive(&h.end[1], 1, AT, GRH + 101);
    datagram_send(0, datagram(0, 100));
    arrives(1, 100);
    hand_receive(&h.end[1], 2, AT, GRH + 100);
    datagram_send(0, datagram(0, 100));
    arrives(1, 100);
    memset(h.end[1].buffer + AT, 0xa5, GRH);
    hand_receive(&h.end[1], 3, AT, GRH + 99);
    hand_receive(&h.end[1], 4, AT, GRH + 100);
    datagram_send(0, datagram(0, 100));
    wc = hand_completion(&h.end[1]);
    assert_int_equal(wc.wr_id, 3);
    assert_int_equal(wc.status, RDDP_WC_LOC_LEN_ERR);
    assert_int_equal(h.end[1].buffer[AT], 0xa5); /* no octet has moved */
    wc = hand_completion(&h.end[1]);
    assert_int_equal(wc.wr_id, 4);
    assert_int_equal(wc.status, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(ib_state_of(1), RDDP_IB_ERR);
    assert_int_equal(ib_state_of(0), RDDP_IB_RTS); /* it is not told */
    datagrams_close();
}

/* --- mistakes ------------------------------------------------------------------------------------------------------
 */

static void refused(void **state)
{
    static const enum rddp_wr_opcode none[] = {
        RDDP_WR_RDMA_WRITE,    RDDP_WR_RDMA_WRITE_WITH_IMM,  RDDP_WR_RDMA_READ, RDDP_WR_ATOMIC_CMP_AND_SWP,
        RDDP_WR_SEND_WITH_INV, RDDP_WR_ATOMIC_FETCH_AND_ADD, RDDP_WR_LOCAL_INV,
    };
    struct rddp_ah_attr attr;
    struct rddp_send_wr *wr;
    struct rddp_ah *small;

    (void)state;
    datagrams_open("127.0.0.1");
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        wr = datagram(0, 8);
        wr->opcode = none[i];
        assert_int_equal(datagram_post(0, wr), -EOPNOTSUPP);
    }
    wr = datagram(0, 8);
    wr->ah = NULL;
    assert_int_equal(datagram_post(0, wr), -EINVAL);
    wr->ah = way[1]; /* of another protection domain */
    assert_int_equal(datagram_post(0, wr), -EINVAL);

    rddp_ah_attr_init(&attr);
    attr.peer = h.address;
    attr.path_mtu = 256;
    small = rddp_create_ah(h.end[0].pd, &attr);
    assert_non_null(small);
    hand_fill(h.end[0].buffer, 256, 256);
    for (uint32_t octets = 255; octets <= 257; octets++) {
        wr = datagram(0, octets);
        wr->ah = small;
        assert_int_equal(datagram_post(0, wr), octets <= 256 ? 0 : -EINVAL);
        if (octets <= 256)
            assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    }
    wr = datagram(0, 256);
    wr->ah = small;
    until_counted(not_ready, 1, 2);
    hand_receive(&h.end[1], 1, AT, GRH + 256);
    assert_int_equal(datagram_post(0, wr), 0);
    assert_int_equal(rddp_destroy_ah(small), 0); /* as soon as the post has returned */
    assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    arrives(1, 256);
    datagrams_close();
}

static void no_handle(struct rddp_ah_attr attr, int wanted)
{
    assert_null(rddp_create_ah(h.end[0].pd, &attr));
    assert_int_equal(errno, wanted);
}

static void handles(void **state)
{
    struct rddp_ah_attr attr;

    (void)state;
    datagrams_open("127.0.0.1");
    rddp_ah_attr_init(&attr);
    no_handle(attr, EINVAL);
    attr.peer = h.address;
    for (attr.path_mtu = 255; attr.path_mtu <= 257; attr.path_mtu += 2)
        no_handle(attr, EINVAL);
    attr.path_mtu = 8192;
    no_handle(attr, EINVAL);
    attr.path_mtu = 4096;
    attr.local.ss_family = AF_INET6;
    no_handle(attr, EADDRNOTAVAIL);
    datagrams_close();
}

/* --- states --------------------------------------------------------------------------------------------------------
 */

/* In SQD nothing begins, in RTR nothing may be posted, and both receive. */
static void states(void **state)
{
    struct rddp_ib_attr attr;
    struct rddp_wc wc;

    (void)state;
    datagrams_open("127.0.0.1");
    rddp_ib_attr_init(&attr);
    attr.qkey = QKEY;
    attr.state = RDDP_IB_SQD;
    assert_int_equal(rddp_modify_qp(h.end[0].qp, &attr), 0);
    hand_receive(&h.end[1], 1, AT, GRH + 8);
    hand_fill(h.end[0].buffer, 8, 8);
    assert_int_equal(datagram_post(0, datagram(0, 8)), 0);
    hand_receive(&h.end[0], 1, AT, GRH + 8);
    hand_fill(h.end[1].buffer, 8, 8);
    datagram_send(1, datagram(1, 8));
    arrives(0, 8);
    assert_int_equal(rddp_poll_cq(h.end[1].cq, 1, &wc), 0);
    attr.state = RDDP_IB_RTS;
    assert_int_equal(rddp_modify_qp(h.end[0].qp, &attr), 0);
    arrives(1, 8);
    assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);

    assert_int_equal(rddp_reset_qp(h.end[1].qp), 0);
    for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTR; attr.state++)
        assert_int_equal(rddp_modify_qp(h.end[1].qp, &attr), 0);
    assert_int_equal(datagram_post(1, datagram(1, 8)), -EINVAL);
    send_once(8, RDDP_WR_SEND);
    datagrams_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),   cmocka_unit_test(answered),        cmocka_unit_test(many),
        cmocka_unit_test(q_keys),  cmocka_unit_test(without_receive), cmocka_unit_test(too_long),
        cmocka_unit_test(refused), cmocka_unit_test(handles),         cmocka_unit_test(states),
    };

    return cmocka_run_group_tests_name("roce_ud", tests, NULL, NULL);
}
