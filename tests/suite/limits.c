/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* limits.c - queues of no entries and requests without memory, which verbs allow. */
#include <errno.h>

#include "tests/suite/lib/pair.h"

/* A queue pair that may post nothing at all is one that only reads and writes of the peer use. */
static void nothing_can_be_posted(void **state)
{
    struct pair *pair = *state;
    struct rddp_sge sge = pair_sge(&pair->client, 0, 0);
    struct rddp_recv_wr recv = {.sg_list = &sge}, *bad = NULL;

    pair->qp_attr.max_send_wr = pair->qp_attr.max_recv_wr = 0;
    pair->qp_attr.max_send_sge = pair->qp_attr.max_recv_sge = 0;
    pair->qp_attr.max_inline_data = 0;
    pair_connect(pair);
    assert_int_equal(rddp_post_recv(pair->client.qp, &recv, &bad), -ENOMEM);
    assert_ptr_equal(bad, &recv);
    recv.num_sge = 1;
    assert_int_equal(rddp_post_recv(pair->client.qp, &recv, NULL), -EINVAL);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 0, 0, 0), -EINVAL);
    assert_int_equal(rddp_post_send(pair->client.qp, &(struct rddp_send_wr){.opcode = RDDP_WR_SEND}, NULL), -ENOMEM);
}

/* Requests of no sges, in queues of one entry. */
static void no_sges(void **state)
{
    struct pair *pair = *state;
    struct rddp_send_wr send = {.wr_id = 1, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_recv_wr recv = {.wr_id = 2};
    struct rddp_wc wc;

    pair->qp_attr.max_send_wr = pair->qp_attr.max_recv_wr = 1;
    pair->qp_attr.max_send_sge = pair->qp_attr.max_recv_sge = 0;
    pair_connect(pair);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rddp_post_recv(pair->server.qp, &recv, NULL), 0);
        assert_int_equal(rddp_post_recv(pair->server.qp, &recv, NULL), -ENOMEM);
        assert_int_equal(rddp_post_send(pair->client.qp, &send, NULL), 0);
        assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
        wc = pair_completion(&pair->server);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_int_equal(wc.byte_len, 0);
        assert_int_equal(wc.wr_id, 2);
    }
}

/* With an SRQ the queue pair asks for no receives of its own; the SRQ may have none of memory. */
static void an_srq_instead(void **state)
{
    struct pair *pair = *state;
    struct rddp_recv_wr recv = {.wr_id = 3};
    struct rddp_srq *srq = rddp_create_srq(pair->server.pd, 4, 0);
    struct rddp_qp_attr attr = pair->qp_attr;

    assert_non_null(srq);
    pair->qp_attr.max_recv_wr = pair->qp_attr.max_recv_sge = 0;
    attr = pair->qp_attr;
    attr.send_cq = attr.recv_cq = pair->client.cq;
    pair->client.qp = rddp_create_qp(pair->client.pd, &attr);
    attr.send_cq = attr.recv_cq = pair->server.cq;
    attr.srq = srq;
    pair->server.qp = rddp_create_qp(pair->server.pd, &attr);
    assert_non_null(pair->client.qp);
    assert_non_null(pair->server.qp);
    pair_join(pair);
    assert_int_equal(rddp_post_srq_recv(srq, &recv, NULL), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 0, 0, 0, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).wr_id, 3);
    assert_int_equal(rddp_destroy_qp(pair->server.qp), 0);
    pair->server.qp = NULL;
    assert_int_equal(rddp_destroy_srq(srq), 0);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(nothing_can_be_posted),
        PAIR_TEST(no_sges),
        PAIR_TEST(an_srq_instead),
    };

    return pair_run("limits", tests, sizeof(tests) / sizeof(tests[0]), false);
}
