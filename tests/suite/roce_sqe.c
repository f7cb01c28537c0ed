/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_sqe.c - requests that are wrong at their own end, of queue pairs that are not reliable: the send queue is in
 * error (SQE), what arrives is received, and RTS comes again. ROCE-RSP-21. */
#include <errno.h>
#include <sys/mman.h>

#include "tests/suite/lib/datagrams.h"

static void expect_next(unsigned end, uint64_t wr_id, enum rddp_wc_status status)
{
    struct rddp_wc wc = hand_completion(&h.end[end]);

    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

/* The state of a send queue whose request was wrong. What arrives is received all the same. */
static void send_queue_error(void (*make)(void), void (*unmake)(void), uint32_t front)
{
    struct rddp_sge wrong = {0, 8, 0xdead};
    struct rddp_send_wr *wr, last;
    struct rddp_ib_attr attr;

    make();
    rddp_ib_attr_init(&attr);
    attr.state = RDDP_IB_SQE;
    assert_int_equal(rddp_modify_qp(h.end[0].qp, &attr), -EINVAL);
    last = *datagram(0, 8);
    last.wr_id = 2;
    wr = datagram(0, 8);
    last.sg_list = wr->sg_list;
    wr->sg_list = &wrong;
    wr->wr_id = 1;
    wr->next = &last;
    assert_int_equal(datagram_post(0, wr), 0);
    expect_next(0, 1, RDDP_WC_LOC_PROT_ERR);
    expect_next(0, 2, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(ib_state_of(0), RDDP_IB_SQE);
    for (uint64_t i = 10; i < 10 + 3 * HAND_DEPTH; i++) { /* places are given back */
        wr = datagram(0, 8);
        wr->wr_id = i;
        assert_int_equal(datagram_post(0, wr), 0);
        expect_next(0, i, RDDP_WC_WR_FLUSH_ERR);
    }
    hand_receive(&h.end[0], 3, AT, front + 30);
    hand_fill(h.end[1].buffer, 30, 30);
    datagram_send(1, datagram(1, 30));
    expect_next(0, 3, RDDP_WC_SUCCESS);
    hand_check(h.end[0].buffer + AT + front, 30, 30);

    attr.state = RDDP_IB_SQD;
    assert_int_equal(rddp_modify_qp(h.end[0].qp, &attr), -EINVAL);
    attr.state = RDDP_IB_RTS;
    assert_int_equal(rddp_modify_qp(h.end[0].qp, &attr), 0);
    assert_int_equal(ib_state_of(0), RDDP_IB_RTS);
    hand_receive(&h.end[1], 4, AT, front + 1000);
    hand_fill(h.end[0].buffer, 1000, 1000);
    datagram_send(0, datagram(0, 1000));
    expect_next(1, 4, RDDP_WC_SUCCESS);
    hand_check(h.end[1].buffer + AT + front, 1000, 1000);
    unmake();
}

static void make_datagrams(void)
{
    datagrams_open("127.0.0.1");
}

static void make_unreliable(void)
{
    hands_open(&h, RDDP_QPT_UC, "127.0.0.1");
    h.ib.path_mtu = 256;
    hands_make(&h);
    hands_connect(&h);
}

static void unmake_unreliable(void)
{
    hands_close(&h);
}

static void sqe_of_datagrams(void **state)
{
    (void)state;
    send_queue_error(make_datagrams, datagrams_close, GRH);
}

static void sqe_of_connections(void **state)
{
    (void)state;
    send_queue_error(make_unreliable, unmake_unreliable, 0);
}

enum { LENGTH = 4096 };

static void send_from(struct rddp_mr *mr, enum rddp_wc_status status)
{
    struct rddp_sge source = {0, 200, rddp_mr_key(mr)};
    struct rddp_send_wr *wr = datagram(0, 200);

    wr->wr_id = 6;
    wr->sg_list = &source;
    assert_int_equal(datagram_post(0, wr), 0);
    expect_next(0, 6, status);
}

/* Memory on demand: as long as it is there, and a source and a receive that are not. */
static void on_demand(void (*make)(void), void (*unmake)(void), uint32_t front)
{
    uint8_t *at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned access = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_ON_DEMAND | RDDP_ACCESS_ZERO_BASED;
    struct rddp_sge sink = {1000, 200 + front, 0};
    struct rddp_recv_wr receive = {.wr_id = 5, .sg_list = &sink, .num_sge = 1};
    struct rddp_mr *mr[2];

    make();
    for (unsigned i = 0; i < 2; i++)
        mr[i] = rddp_reg_mr(h.end[i].pd, at, LENGTH, access);
    assert_true(mr[0] && mr[1]);
    sink.lkey = rddp_mr_key(mr[1]);
    hand_fill(at, 200, 200);
    assert_int_equal(rddp_post_recv(h.end[1].qp, &receive, NULL), 0);
    send_from(mr[0], RDDP_WC_SUCCESS);
    expect_next(1, 5, RDDP_WC_SUCCESS);
    hand_check(at + 1000 + front, 200, 200);

    assert_int_equal(mprotect(at, LENGTH, PROT_NONE), 0);
    assert_int_equal(rddp_post_recv(h.end[1].qp, &receive, NULL), 0);
    datagram_send(0, datagram(0, 200));
    expect_next(1, 5, RDDP_WC_LOC_PROT_ERR);
    send_from(mr[0], RDDP_WC_LOC_PROT_ERR);
    assert_int_equal(ib_state_of(0), RDDP_IB_SQE);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rddp_dereg_mr(mr[i]), 0);
    munmap(at, LENGTH);
    unmake();
}

static void datagrams_on_demand(void **state)
{
    (void)state;
    on_demand(make_datagrams, datagrams_close, GRH);
}

static void connections_on_demand(void **state)
{
    (void)state;
    on_demand(make_unreliable, unmake_unreliable, 0);
}

/* A request that fails when some of its packets have left: the peer drops those, and takes the next message whole. */
static void sqe_halfway(void **state)
{
    struct rddp_sge sge[2];
    struct rddp_send_wr *wr;
    struct rddp_ib_attr attr;

    (void)state;
    make_unreliable();
    hand_receive(&h.end[1], 1, AT, 2000);
    wr = datagram(0, 0);
    sge[0] = (struct rddp_sge){0, 1000, rddp_mr_key(h.end[0].mr)};
    sge[1] = (struct rddp_sge){0, 1000, 0xdead};
    wr->sg_list = sge;
    wr->num_sge = 2;
    assert_int_equal(datagram_post(0, wr), 0);
    expect_next(0, 0, RDDP_WC_LOC_PROT_ERR);
    rddp_ib_attr_init(&attr);
    attr.state = RDDP_IB_RTS;
    assert_int_equal(rddp_modify_qp(h.end[0].qp, &attr), 0);
    hand_fill(h.end[0].buffer, 1500, 1500);
    datagram_send(0, datagram(0, 1500));
    expect_next(1, 1, RDDP_WC_SUCCESS);
    hand_check(h.end[1].buffer + AT, 1500, 1500);
    hands_close(&h);
}

/* ROCE-REQ-18: what a connection that is not reliable has no message for. */
static void refused_unreliable(void **state)
{
    static const enum rddp_wr_opcode none[] = {
        RDDP_WR_RDMA_READ,
        RDDP_WR_ATOMIC_CMP_AND_SWP,
        RDDP_WR_ATOMIC_FETCH_AND_ADD,
        RDDP_WR_SEND_WITH_INV,
    };

    (void)state;
    make_unreliable();
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct rddp_send_wr *wr = datagram(0, 8);

        wr->opcode = none[i];
        assert_int_equal(datagram_post(0, wr), -EOPNOTSUPP);
    }
    hand_receive(&h.end[1], 1, AT, 8);
    hand_fill(h.end[0].buffer, 8, 8);
    datagram_send(0, datagram(0, 8));
    expect_next(1, 1, RDDP_WC_SUCCESS);
    hands_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sqe_of_datagrams),      cmocka_unit_test(sqe_of_connections),
        cmocka_unit_test(sqe_halfway),           cmocka_unit_test(datagrams_on_demand),
        cmocka_unit_test(connections_on_demand), cmocka_unit_test(refused_unreliable),
    };

    return cmocka_run_group_tests_name("roce_sqe", tests, NULL, NULL);
}
