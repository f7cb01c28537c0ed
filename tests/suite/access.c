/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* access.c - a queue pair refuses remote operations that its regions allow; what it was created with can be asked. */
#include <errno.h>
#include <string.h>

#include "tests/suite/lib/pair.h"

enum {
    READ = RDDP_ACCESS_REMOTE_READ,
    WRITE = RDDP_ACCESS_REMOTE_WRITE,
    ATOMIC = RDDP_ACCESS_REMOTE_ATOMIC,
};

static void attempt(struct pair *pair, enum rddp_wr_opcode opcode, uint64_t at)
{
    assert_int_equal(pair_post(&pair->client, &pair->server, opcode, 1, 0, 8, at, RDDP_SEND_SIGNALED), 0);
}

/* Far from where fails() looks: a Write may be placed after it has completed. */
static void succeeds(struct pair *pair, enum rddp_wr_opcode opcode)
{
    attempt(pair, opcode, 4096);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
}

static void fails(struct pair *pair, enum rddp_wr_opcode opcode)
{
    memset(pair->server.buffer, 0x12, 128);
    memset(pair->client.buffer, 0x34, 8);
    attempt(pair, opcode, 64);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    assert_true(pair_said(&pair->server, "the queue pair does not allow this access") ||
                pair_said(&pair->server, "the queue pair allows the peer no such operation"));
    for (int i = 0; i < 128; i++)
        assert_int_equal(pair->server.buffer[i], 0x12);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pair->client.buffer[i], 0x34);
}

static void no_writes(void **state)
{
    struct pair *pair = *state;

    succeeds(pair, RDDP_WR_RDMA_WRITE);
    succeeds(pair, RDDP_WR_RDMA_READ);                           /* behind which the Write is placed */
    assert_int_equal(rddp_set_qp_access(pair->client.qp, 0), 0); /* of the other end */
    assert_int_equal(rddp_set_qp_access(pair->server.qp, READ | RDDP_ACCESS_LOCAL_WRITE), 0);
    succeeds(pair, RDDP_WR_RDMA_READ);
    fails(pair, RDDP_WR_RDMA_WRITE);
}

static void no_reads(void **state)
{
    struct pair *pair = *state;

    succeeds(pair, RDDP_WR_RDMA_READ);
    assert_int_equal(rddp_set_qp_access(pair->server.qp, 0), 0);
    assert_int_equal(rddp_set_qp_access(pair->server.qp, WRITE | ATOMIC), 0);
    succeeds(pair, RDDP_WR_RDMA_WRITE);
    fails(pair, RDDP_WR_RDMA_READ);
}

static void no_atomics(void **state)
{
    struct pair *pair = *state;

    if (pair->row->wire != RDDP_WIRE_IWARP)
        skip(); /* this wire has no atomics */
    succeeds(pair, RDDP_WR_ATOMIC_FETCH_AND_ADD);
    assert_int_equal(rddp_set_qp_access(pair->server.qp, WRITE | READ), 0);
    succeeds(pair, RDDP_WR_RDMA_READ);
    fails(pair, RDDP_WR_ATOMIC_FETCH_AND_ADD);
}

/* From the beginning, until a call grants more, and again after a reset. */
static void since_creation(void **state)
{
    struct pair *pair = *state;
    struct rddp_qp_attr attr;

    pair->qp_attr.access = READ;
    pair_connect(pair);
    succeeds(pair, RDDP_WR_RDMA_READ);
    assert_int_equal(rddp_set_qp_access(pair->server.qp, READ | WRITE), 0);
    succeeds(pair, RDDP_WR_RDMA_WRITE);
    assert_int_equal(rddp_query_qp_attr(pair->server.qp, &attr), 0);
    assert_int_equal(attr.access, READ | WRITE);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    assert_int_equal(rddp_reset_qp(pair->client.qp), 0);
    assert_int_equal(rddp_reset_qp(pair->server.qp), 0);
    assert_int_equal(rddp_query_qp_attr(pair->server.qp, &attr), 0);
    assert_int_equal(attr.access, READ);
    pair_join(pair);
    fails(pair, RDDP_WR_RDMA_WRITE);
}

static void query(void **state)
{
    struct pair *pair = *state;
    struct side *side = &pair->server;
    struct rddp_srq *srq = rddp_create_srq(side->pd, 4, 2);
    struct rddp_qp_attr attr =
                            {
                                .send_cq = side->cq,
                                .recv_cq = side->cq,
                                .srq = srq,
                                .max_send_wr = 3,
                                .max_recv_wr = 5,
                                .max_send_sge = 7,
                                .max_recv_sge = 9,
                                .max_inline_data = 11,
                                .max_rd_atomic = 13,
                                .access = WRITE | ATOMIC,
                                .wait_for_receive_ms = 15,
                                .sq_sig_all = true,
                                .out_of_order_sends = true,
                                .rdma_control = true,
                                .user = pair,
                            },
                        asked;

    side->qp = rddp_create_qp(side->pd, &attr);
    assert_non_null(side->qp);
    memset(&asked, 0xff, sizeof(asked));
    assert_int_equal(rddp_query_qp_attr(side->qp, &asked), 0);
    assert_ptr_equal(asked.send_cq, attr.send_cq);
    assert_ptr_equal(asked.recv_cq, attr.recv_cq);
    assert_ptr_equal(asked.srq, attr.srq);
    assert_int_equal(asked.max_send_wr, 3);
    assert_int_equal(asked.max_recv_wr, 5);
    assert_int_equal(asked.max_send_sge, 7);
    assert_int_equal(asked.max_recv_sge, 9);
    assert_int_equal(asked.max_inline_data, 11);
    assert_int_equal(asked.max_rd_atomic, 13);
    assert_int_equal(asked.access, WRITE | ATOMIC);
    assert_int_equal(asked.wait_for_receive_ms, 15);
    assert_true(asked.sq_sig_all && asked.out_of_order_sends && asked.rdma_control);
    assert_ptr_equal(asked.user, pair);
    assert_int_equal(rddp_set_qp_access(side->qp, RDDP_ACCESS_STABLE), -EINVAL);
    attr.access = RDDP_ACCESS_ZERO_BASED;
    errno = 0;
    assert_null(rddp_create_qp(side->pd, &attr));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rddp_destroy_qp(side->qp), 0);
    side->qp = NULL;
    assert_int_equal(rddp_destroy_srq(srq), 0);
}

int main(void)
{
    static const struct pair_test connected[] = {PAIR_TEST(no_writes), PAIR_TEST(no_reads), PAIR_TEST(no_atomics)};
    static const struct pair_test open[] = {PAIR_TEST(since_creation), PAIR_TEST(query)};
    int failed = pair_run("access", connected, sizeof(connected) / sizeof(*connected), true);

    return failed + pair_run("access, open", open, sizeof(open) / sizeof(*open), false);
}
