/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refused_calls.c - a program makes mistakes: each returns the errno of verbs, and with RDDP_LOG=warn one line names
 * the call and what is wrong. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/verbs/lib/ids.h"
#include "tests/verbs/lib/lines.h"

enum { TOO_MANY = 1 << 30 };

static struct ids ids;
/* A call that returns an errno; one that returns NULL or -1 with errno. */
static void expect(int result, int error, const char *call, const char *rule)
{
    assert_int_equal(result, error);
    lines_expect(call, rule, strerror(error));
}

static void expect_errno(bool failed, int error, const char *call, const char *rule)
{
    int is = errno;

    assert_true(failed);
    assert_int_equal(is, error);
    lines_expect(call, rule, strerror(error));
}

static void test_in_use(void **state)
{
    struct ibv_context *verbs = ids.client->verbs;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(verbs);
    struct ibv_cq *cq = ibv_create_cq(verbs, 4, NULL, channel, 0);

    (void)state;
    expect(ibv_dealloc_pd(ids.client->pd), EBUSY, "ibv_dealloc_pd", "use the PD");
    expect(ibv_destroy_cq(ids.client->send_cq), EBUSY, "ibv_destroy_cq", "queue pairs use");
    expect(ibv_destroy_comp_channel(channel), EBUSY, "ibv_destroy_comp_channel", "CQs use");
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void test_arguments(void **state)
{
    struct ibv_context *verbs = ids.client->verbs;
    struct ibv_qp_init_attr init = ids_queues();
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = TOO_MANY, .max_sge = 1}};
    struct ibv_cq *cq;

    (void)state;
    expect_errno(!ibv_create_cq(verbs, TOO_MANY, NULL, NULL, 0), EINVAL, "ibv_create_cq", "entries");
    expect_errno(!ibv_create_cq(verbs, -1, NULL, NULL, 0), EINVAL, "ibv_create_cq", "negative");
    expect_errno(!ibv_create_srq(ids.client->pd, &srq), EINVAL, "ibv_create_srq", "max_wr");
    expect_errno(!ibv_reg_mr(ids.client->pd, (void *)4096, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT, "ibv_reg_mr",
                 "mapped");
    expect_errno(!ibv_create_qp(ids.client->pd, &init), EINVAL, "ibv_create_qp", "no CQ");
    init.send_cq = init.recv_cq = ids.client->send_cq;
    init.qp_type = IBV_QPT_UD;
    expect_errno(!ibv_create_qp(ids.client->pd, &init), EOPNOTSUPP, "ibv_create_qp", "which rddp0 does not have");
    init.qp_type = IBV_QPT_RC;
    init.cap.max_send_wr = TOO_MANY;
    expect_errno(!ibv_create_qp(ids.client->pd, &init), EINVAL, "ibv_create_qp", "too large");
    cq = ibv_create_cq(verbs, 4, NULL, NULL, 0);
    expect(ibv_req_notify_cq(cq, 0), EINVAL, "ibv_req_notify_cq", "no channel");
    expect(ibv_resize_cq(cq, TOO_MANY), EINVAL, "ibv_resize_cq", "entries");
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void test_queue_pair(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .port_num = 2};
    struct ibv_recv_wr receive = {.wr_id = 7}, *bad_receive;
    struct ibv_send_wr send = {.wr_id = 8, .num_sge = 1000, .opcode = IBV_WR_SEND}, *bad_send;
    char line[LINES_MAX];
    int error = 0;

    (void)state;
    expect(ibv_modify_qp(ids.client->qp, &attr, IBV_QP_STATE), EINVAL, "ibv_modify_qp", "to state");
    expect(ibv_modify_qp(ids.client->qp, &attr, IBV_QP_PORT), EINVAL, "ibv_modify_qp", "port 2");
    expect(ibv_post_send(ids.client->qp, &send, &bad_send), EINVAL, "ibv_post_send", "wr_id 8");
    for (int i = 0; i < 10 * DEPTH && !error; i++)
        error = ibv_post_recv(ids.client->qp, &receive, &bad_receive);
    expect(error, ENOMEM, "ibv_post_recv", "is full");
    assert_int_equal(ibv_post_recv(ids.client->qp, &receive, &bad_receive), ENOMEM);
    lines_read(line); /* said once */
    assert_string_equal(line, "");
}

static void test_ids(void **state)
{
    (void)state;
    expect_errno(rdma_connect(ids.client, NULL), EINVAL, "rdma_connect", "connected");
    expect_errno(rdma_listen(ids.client, 1), EINVAL, "rdma_listen", "connected");
    expect_errno(rdma_accept(ids.client, NULL), EINVAL, "rdma_accept", "no request");
    expect_errno(rdma_reject(ids.client, NULL, 0), EINVAL, "rdma_reject", "no request");
    expect_errno(rdma_disconnect(ids.listener), EINVAL, "rdma_disconnect", "never connected");
    expect_errno(rdma_resolve_route(ids.client, 0), EINVAL, "rdma_resolve_route", "comes first");
}

/* Without RDDP_LOG a mistake makes no noise. */
static void test_silent(void **state)
{
    char line[LINES_MAX];

    (void)state;
    unsetenv("RDDP_LOG");
    assert_int_equal(ibv_dealloc_pd(ids.client->pd), EBUSY);
    setenv("RDDP_LOG", "warn", 1);
    lines_read(line);
    assert_string_equal(line, "");
}

static int set_up(void **state)
{
    (void)state;
    setenv("RDDP_LOG", "warn", 1);
    ids_connect(&ids);
    return lines_begin();
}

static int tear_down(void **state)
{
    (void)state;
    lines_end();
    ids_free(&ids);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_use), cmocka_unit_test(test_arguments), cmocka_unit_test(test_queue_pair),
        cmocka_unit_test(test_ids),    cmocka_unit_test(test_silent),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
