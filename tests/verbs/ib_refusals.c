/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib_refusals.c - a program of rddpe0 makes mistakes: with RDDP_LOG=warn one line says which it is, and no other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/verbs/lib/devices.h"
#include "tests/verbs/lib/ids.h"
#include "tests/verbs/lib/lines.h"

enum {
    TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    TO_INIT_UD = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
    TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER,
    EMPTY = 127, /* an index of the GIDs */
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_ah_attr path;

static int set_up(void **state)
{
    union ibv_gid gid;

    (void)state;
    setenv("RDDP_LOG", "warn", 1);
    if (lines_begin())
        return -1;
    context = devices_open("rddpe0");
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    path = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
    path.grh.sgid_index = devices_loopback(context, &gid);
    path.grh.dgid = gid;
    return !pd || !cq;
}

static int tear_down(void **state)
{
    (void)state;
    lines_end();
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    return ibv_close_device(context);
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {.qp_type = type,
                                    .send_cq = cq,
                                    .recv_cq = cq,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    assert_non_null(qp);
    return qp;
}

static struct ibv_qp_attr attributes(enum ibv_qp_state to)
{
    return (struct ibv_qp_attr){
        .qp_state = to, .port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = 0x1234, .ah_attr = path, .qkey = 7};
}

static void expect(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask, const char *step, const char *rule)
{
    struct ibv_qp_attr copy = *attr;

    assert_int_equal(ibv_modify_qp(qp, &copy, mask), EINVAL);
    lines_expect(step, rule, strerror(EINVAL));
}

static void steps(void **state)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_RC);
    struct ibv_qp_attr attr = attributes(IBV_QPS_INIT), good = attributes(IBV_QPS_RTR);

    (void)state;
    expect(qp, &good, TO_RTR, "RESET to RTR", ": there is no such step");
    expect(qp, &attr, TO_INIT & ~IBV_QP_PORT, "RESET to INIT", ": port_num is missing");
    expect(qp, &attr, TO_INIT | IBV_QP_QKEY, "RESET to INIT", ": qkey is not for this step");
    expect(qp, &attr, TO_INIT | IBV_QP_DEST_QPN << 1, "RESET to INIT", ": an unknown attribute is not for");
    attr.port_num = 2;
    expect(qp, &attr, TO_INIT, "RESET to INIT", ": port_num is out of range");
    attr.port_num = 1;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_INIT), 0);
    expect(qp, &good, TO_RTR & ~IBV_QP_MIN_RNR_TIMER, "INIT to RTR", ": min_rnr_timer is missing");
#define REFUSED(change, rule) \
    attr = good; \
    (change); \
    expect(qp, &attr, TO_RTR, "INIT to RTR", rule)
    REFUSED(attr.path_mtu = 6, ": path_mtu is out of range");
    REFUSED(attr.min_rnr_timer = 32, ": min_rnr_timer is out of range");
    REFUSED(attr.dest_qp_num = 1 << 24, ": dest_qp_num is out of range");
    REFUSED(attr.max_dest_rd_atomic = 255, ": max_dest_rd_atomic is out of range");
    REFUSED(attr.ah_attr.is_global = 0, ": ah_attr has no GRH");
    REFUSED(attr.ah_attr.port_num = 2, ": ah_attr has another port_num");
    REFUSED(attr.ah_attr.grh.sgid_index = EMPTY, ": ah_attr names an sgid_index without an address");
    REFUSED(memset(&attr.ah_attr.grh.dgid, 0xfd, 16), ": ah_attr has a dgid of another IP family");
    good.cur_qp_state = IBV_QPS_RTS;
    expect(qp, &good, TO_RTR | IBV_QP_CUR_STATE, "INIT to RTR", ": cur_qp_state is another one");
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void handles(void **state)
{
    struct ibv_ah_attr attr = path;

    (void)state;
    attr.is_global = 0;
    assert_null(ibv_create_ah(pd, &attr));
    lines_expect("ibv_create_ah", "it has no GRH", strerror(EINVAL));
    attr = path;
    attr.grh.sgid_index = EMPTY;
    assert_null(ibv_create_ah(pd, &attr));
    lines_expect("ibv_create_ah", "it names an sgid_index without an address", strerror(EINVAL));
}

static void to_rts_ud(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = attributes(IBV_QPS_INIT);

    assert_int_equal(ibv_modify_qp(qp, &attr, TO_INIT_UD), 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* Datagrams reach no memory of others, so their queue pairs bind no windows: an error like that of any other opcode
 * that they do not have. */
static void no_window(void **state)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_UD);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.wr_id = 8};
    struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV}, *bad;
    uint32_t key = mw->rkey;

    (void)state;
    to_rts_ud(qp);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    lines_expect("ibv_post_send", "opcode", strerror(EINVAL));
    assert_int_equal(ibv_bind_mw(qp, mw, &bind), EINVAL);
    lines_expect("ibv_bind_mw", "state", strerror(EINVAL));
    assert_int_equal(mw->rkey, key);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Of a datagram: the send queue has failed then, and no connection. */
static void local_key(void **state)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_UD);
    struct ibv_ah *ah = ibv_create_ah(pd, &path);
    struct ibv_sge sge = {.addr = 4096, .length = 1, .lkey = 77};
    struct ibv_send_wr wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

    (void)state;
    to_rts_ud(qp);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
    lines_expect("ibv_post_send", "address handle", strerror(EINVAL));
    wr.wr.ud.ah = ah;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    assert_int_equal(ids_completion(cq).status, IBV_WC_LOC_PROT_ERR);
    lines_expect("queue pair", "a request names local memory that it may not use", "Send");
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(handles), cmocka_unit_test(no_window),
                                       cmocka_unit_test(local_key)};

    return cmocka_run_group_tests_name("ib_refusals", tests, set_up, tear_down);
}
