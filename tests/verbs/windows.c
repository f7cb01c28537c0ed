/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* windows.c - memory windows as a program of verbs uses them: ibv_bind_mw() for type 1, IBV_WR_BIND_MW and
 * ibv_wr_bind_mw() for type 2, and what is wrong. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "tests/verbs/lib/ids.h"

enum { AT = 100, OCTETS = 64, ID = 9 };

static struct ids ids;
static struct ibv_mr *region; /* the server's buffer, which its own key opens to no peer */

static int set_up(void **state)
{
    (void)state;
    ids = (struct ids){0};
    ids_connect(&ids);
    region = ibv_reg_mr(ids.server->pd, ids.server_buffer, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    /* Who accepts may send when something has come: here, and in ids_connect() it was posted for. */
    rdma_post_send(ids.client, NULL, ids.client_buffer, 1, ids.client_mr, 0);
    ids_completion(ids.client->send_cq);
    return ids_completion(ids.server->recv_cq).status != IBV_WC_SUCCESS || !region;
}

static int tear_down(void **state)
{
    int error = ibv_dereg_mr(region);

    (void)state;
    ids_free(&ids);
    return error;
}

static struct ibv_mw_bind_info what_of(struct ibv_mr *mr, size_t at, size_t length, unsigned access)
{
    return (struct ibv_mw_bind_info){
        .mr = mr, .addr = (uintptr_t)ids.server_buffer + at, .length = length, .mw_access_flags = access};
}

/* Binds a window of type 1, and returns the completion. */
static enum ibv_wc_status bind_1(struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
    struct ibv_mw_bind bind = {.wr_id = ID, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
    uint32_t before = mw->rkey;
    struct ibv_wc wc;

    assert_int_equal(ibv_bind_mw(ids.server->qp, mw, &bind), 0);
    assert_int_equal(mw->rkey, ibv_inc_rkey(before));
    wc = ids_completion(ids.server->send_cq);
    assert_int_equal(wc.wr_id, ID);
    if (!wc.status)
        assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
    return wc.status;
}

static struct ibv_send_wr bind_2(struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
    struct ibv_send_wr wr = {.wr_id = ID, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = info;
    return wr;
}

/* The client writes "here" and returns what became of a Send behind it at the server: whether the peer let it in. */
static bool writes(uint32_t rkey, uint64_t to)
{
    char text[SIZE];
    strcpy(ids.client_buffer, "here");
    memset(ids.server_buffer, 0, SIZE);
    assert_int_equal(
        rdma_post_write(ids.client, NULL, ids.client_buffer, 5, ids.client_mr, IBV_SEND_SIGNALED, to, rkey), 0);
    assert_int_equal(rdma_post_recv(ids.server, NULL, ids.server_buffer + SIZE / 2, SIZE / 2, ids.server_mr), 0);
    assert_int_equal(rdma_post_send(ids.client, NULL, ids.client_buffer, 1, ids.client_mr, 0), 0);
    ids_completion(ids.client->send_cq);
    ids_completion(ids.client->send_cq);
    if (ids_completion(ids.server->recv_cq).status)
        return false;
    memcpy(text, ids.server_buffer, SIZE);
    return !strcmp(text + AT, "here");
}

static void test_type_1(void **state)
{
    struct ibv_mw *mw = ibv_alloc_mw(ids.server->pd, IBV_MW_TYPE_1);
    uint32_t old;

    (void)state;
    assert_non_null(mw);
    assert_int_equal(bind_1(mw, what_of(region, AT, OCTETS, IBV_ACCESS_REMOTE_WRITE)), IBV_WC_SUCCESS);
    assert_true(writes(mw->rkey, (uintptr_t)ids.server_buffer + AT));
    old = mw->rkey;
    assert_int_equal(ibv_dereg_mr(region), EBUSY);
    assert_int_equal(bind_1(mw, what_of(region, AT, OCTETS, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE)),
                     IBV_WC_SUCCESS); /* as programs have it that give a window the rights of its region */
    assert_true(writes(mw->rkey, (uintptr_t)ids.server_buffer + AT));
    assert_int_equal(bind_1(mw, (struct ibv_mw_bind_info){0}), IBV_WC_SUCCESS); /* to nothing */
    assert_int_equal(
        ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND),
        0); /* it is no longer in use */
    assert_false(writes(old, (uintptr_t)ids.server_buffer + AT));
    assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* Nothing of a bind is inline; and a request that was not posted changes no key. */
static void test_flags(void **state)
{
    struct ibv_mw *mw = ibv_alloc_mw(ids.server->pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_INLINE,
                               .bind_info = what_of(region, AT, OCTETS, IBV_ACCESS_REMOTE_WRITE)};
    uint32_t key = mw->rkey;

    (void)state;
    assert_int_equal(ibv_bind_mw(ids.server->qp, mw, &bind), EINVAL);
    assert_int_equal(mw->rkey, key);
    assert_int_equal(bind_1(mw, bind.bind_info), IBV_WC_SUCCESS);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void test_type_2(void **state)
{
    struct ibv_mw *mw = ibv_alloc_mw(ids.server->pd, IBV_MW_TYPE_2);
    struct ibv_send_wr take = {.opcode = IBV_WR_LOCAL_INV}, wr, *bad;

    (void)state;
    wr = bind_2(mw, what_of(region, AT, OCTETS, IBV_ACCESS_REMOTE_WRITE));
    assert_int_equal(ibv_post_send(ids.server->qp, &wr, &bad), 0);
    assert_int_equal(ids_completion(ids.server->send_cq).opcode, IBV_WC_BIND_MW);
    mw->rkey = wr.bind_mw.rkey;
    assert_true(writes(mw->rkey, (uintptr_t)ids.server_buffer + AT));
    take.invalidate_rkey = mw->rkey;
    take.next = &wr;
    wr = bind_2(mw, what_of(region, AT, OCTETS, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED));
    assert_int_equal(ibv_post_send(ids.server->qp, &take, &bad), 0);
    assert_int_equal(ids_completion(ids.server->send_cq).opcode, IBV_WC_LOCAL_INV);
    assert_int_equal(ids_completion(ids.server->send_cq).status, IBV_WC_SUCCESS);
    mw->rkey = wr.bind_mw.rkey;
    assert_true(writes(mw->rkey, 0));
    wr = bind_2(mw, what_of(region, AT, OCTETS, IBV_ACCESS_REMOTE_WRITE)); /* it is bound */
    assert_int_equal(ibv_post_send(ids.server->qp, &wr, &bad), 0);
    assert_int_equal(ids_completion(ids.server->send_cq).status, IBV_WC_MW_BIND_ERR);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* A second connection, whose queue pair has builders. */
static struct rdma_cm_id *connect_second(struct rdma_cm_id **server)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
                                       .cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1},
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = ids.server->pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_BIND_MW};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = rdma_get_src_port(ids.listener)};
    struct ids second = {0};
    pthread_t thread;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(rdma_create_id(NULL, &second.client, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(second.client, NULL, (struct sockaddr *)&to, WAIT_MS), 0);
    assert_int_equal(rdma_resolve_route(second.client, WAIT_MS), 0);
    assert_int_equal(rdma_create_qp_ex(second.client, &attr), 0);
    assert_int_equal(pthread_create(&thread, NULL, ids_run_client, &second), 0);
    assert_int_equal(rdma_get_request(ids.listener, server), 0);
    assert_int_equal(rdma_accept(*server, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(second.connect_error, 0);
    return second.client;
}

/* With ibv_wr_*(); and the window is not for the peer of another queue pair. */
static void test_builder(void **state)
{
    struct ibv_mw *mw = ibv_alloc_mw(ids.server->pd, IBV_MW_TYPE_2);
    struct ibv_mw_bind_info info = what_of(region, AT, OCTETS, IBV_ACCESS_REMOTE_WRITE);
    struct rdma_cm_id *server, *client = connect_second(&server);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(client->qp);

    (void)state;
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    ex->wr_id = ID;
    ibv_wr_bind_mw(ex, mw, mw->rkey ^ 0x100, &info); /* no key of this window */
    assert_int_equal(ibv_wr_complete(ex), EINVAL);
    ibv_wr_start(ex);
    ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(mw->rkey), &info);
    assert_int_equal(ibv_wr_complete(ex), 0);
    assert_int_equal(ids_completion(client->send_cq).opcode, IBV_WC_BIND_MW);
    assert_false(writes(ibv_inc_rkey(mw->rkey), info.addr));
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    rdma_destroy_ep(client);
    rdma_destroy_ep(server);
}

static void test_mistakes(void **state)
{
    struct ibv_pd *pd = ibv_alloc_pd(ids.server->verbs);
    struct ibv_mr *foreign = ibv_reg_mr(pd, ids.server_buffer, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    struct ibv_mw *one = ibv_alloc_mw(ids.server->pd, IBV_MW_TYPE_1);
    struct ibv_mw *two = ibv_alloc_mw(ids.server->pd, IBV_MW_TYPE_2), *other = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.bind_info = what_of(region, 0, 8, IBV_ACCESS_REMOTE_WRITE)};
    struct ibv_send_wr wr = bind_2(one, bind.bind_info), *bad = NULL;

    (void)state;
    assert_int_equal(ibv_bind_mw(ids.server->qp, two, &bind), EINVAL);  /* type 2 */
    assert_int_equal(ibv_bind_mw(ids.server->qp, other, &bind), EPERM); /* of another PD */
    assert_int_equal(ibv_post_send(ids.server->qp, &wr, &bad), EINVAL); /* type 1 */
    assert_ptr_equal(bad, &wr);
    wr = bind_2(two, bind.bind_info);
    wr.bind_mw.rkey ^= 0x100; /* no key of this window */
    assert_int_equal(ibv_post_send(ids.server->qp, &wr, &bad), EINVAL);
    bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
    assert_int_equal(ibv_bind_mw(ids.server->qp, one, &bind), EINVAL);
    bind.bind_info = what_of(foreign, 0, 8, IBV_ACCESS_REMOTE_WRITE);
    assert_int_equal(ibv_bind_mw(ids.server->qp, one, &bind), EPERM);
    assert_int_equal(ibv_bind_mw(ids.server->qp, other, &bind), EPERM); /* the QP is of neither's */
    bind.bind_info.mr = NULL;
    assert_int_equal(ibv_bind_mw(ids.server->qp, one, &bind), EINVAL); /* an address of nothing */
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(foreign), 0);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dealloc_mw(other), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(bind_1(one, what_of(ids.server_mr, 0, 8, IBV_ACCESS_REMOTE_READ)), IBV_WC_MW_BIND_ERR);
    assert_int_equal(ibv_dealloc_mw(one), 0);
    assert_int_equal(ibv_dealloc_mw(two), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_type_1), TEST(test_flags), TEST(test_type_2), TEST(test_builder),
                                       TEST(test_mistakes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
