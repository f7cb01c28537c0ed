/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib_states.c - a queue pair of rddpe0 that a program leads by hand: each attribute that a step must be told, those
 * that it may not, and the errno of each mistake, which are the kernel's. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/verbs/lib/devices.h"

enum {
    TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    TO_INIT_UD = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
    TO_RTR_UC = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    TO_RTR = TO_RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    TO_RTS =
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
    MASK_BITS = 21,
    GID_EMPTY = 127,
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint8_t loopback; /* the index of 127.0.0.1 */
static union ibv_gid loopback_gid;

static int set_up(void **state)
{
    (void)state;
    setenv("RDDP_LOG", "error", 1);
    context = devices_open("rddpe0");
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    assert_true(pd && cq);
    loopback = devices_loopback(context, &loopback_gid);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
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
    struct ibv_qp_attr attr = {
        .qp_state = to,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
        .qkey = 0x1234,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = 0x1234,
        .rq_psn = 7,
        .sq_psn = 9,
        .max_dest_rd_atomic = 1,
        .max_rd_atomic = 2,
        .min_rnr_timer = 12,
        .timeout = 14,
        .retry_cnt = 6,
        .rnr_retry = 5,
        .ah_attr = {.is_global = 1, .port_num = 1},
    };

    attr.ah_attr.grh.dgid = loopback_gid;
    attr.ah_attr.grh.sgid_index = loopback;
    return attr;
}

static int step(struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
    struct ibv_qp_attr attr = attributes(to);

    return ibv_modify_qp(qp, &attr, mask);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, qp->state);
    return attr.qp_state;
}

/* Each bit that is missing, and each that is too many, is refused, and nothing has changed. */
static void expect_mask(struct ibv_qp *qp, enum ibv_qp_state to, int must, int may)
{
    enum ibv_qp_state before = state_of(qp);

    for (int bit = 2; bit < MASK_BITS; bit++) {
        int mask = must ^ 1 << bit;
        if (1 << bit & may)
            continue;
        assert_int_equal(step(qp, to, mask), EINVAL);
        assert_int_equal(state_of(qp), before);
    }
    assert_int_equal(step(qp, to, must), 0);
    assert_int_equal(state_of(qp), to);
}

static void masks(void **state)
{
    enum { RIGHTS = IBV_QP_ACCESS_FLAGS, PARTITION = IBV_QP_PKEY_INDEX };
    struct ibv_qp *rc = make_qp(IBV_QPT_RC), *uc = make_qp(IBV_QPT_UC), *ud = make_qp(IBV_QPT_UD);

    (void)state;
    expect_mask(rc, IBV_QPS_INIT, TO_INIT, 0);
    expect_mask(uc, IBV_QPS_INIT, TO_INIT, 0);
    expect_mask(ud, IBV_QPS_INIT, TO_INIT_UD, 0);
    expect_mask(rc, IBV_QPS_RTR, TO_RTR, RIGHTS | PARTITION);
    expect_mask(uc, IBV_QPS_RTR, TO_RTR_UC, RIGHTS | PARTITION);
    expect_mask(ud, IBV_QPS_RTR, IBV_QP_STATE, IBV_QP_QKEY | PARTITION);
    expect_mask(rc, IBV_QPS_RTS, TO_RTS, RIGHTS | IBV_QP_MIN_RNR_TIMER);
    expect_mask(uc, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN, RIGHTS);
    expect_mask(ud, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN, IBV_QP_QKEY);
    expect_mask(rc, IBV_QPS_SQD, IBV_QP_STATE, IBV_QP_EN_SQD_ASYNC_NOTIFY);
    expect_mask(rc, IBV_QPS_RTS, IBV_QP_STATE, RIGHTS | IBV_QP_MIN_RNR_TIMER);
    for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTR; to++)
        assert_int_equal(step(rc, to, to == IBV_QPS_INIT ? TO_INIT : TO_RTR), EINVAL);
    assert_int_equal(step(rc, IBV_QPS_ERR, IBV_QP_STATE), 0);
    assert_int_equal(step(rc, IBV_QPS_RTS, TO_RTS), EINVAL);
    assert_int_equal(step(rc, IBV_QPS_RESET, IBV_QP_STATE), 0);
    assert_int_equal(step(rc, IBV_QPS_RESET, IBV_QP_STATE), 0);
    assert_int_equal(step(rc, IBV_QPS_RTR, TO_RTR), EINVAL);
    assert_int_equal(ibv_destroy_qp(rc), 0);
    assert_int_equal(ibv_destroy_qp(uc), 0);
    assert_int_equal(ibv_destroy_qp(ud), 0);
}

/* One value each that is out of range. */
static void values(void **state)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_RC);
    struct ibv_qp_attr attr = attributes(IBV_QPS_INIT);

    (void)state;
    attr.port_num = 2;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_INIT), EINVAL);
    attr.port_num = 1;
    attr.pkey_index = 1;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_INIT), EINVAL);
    assert_int_equal(step(qp, IBV_QPS_INIT, TO_INIT), 0);

#define REFUSED(change) \
    attr = attributes(IBV_QPS_RTR); \
    (change); \
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_RTR), EINVAL)
    REFUSED(attr.path_mtu = 0);
    REFUSED(attr.path_mtu = IBV_MTU_4096 + 1);
    REFUSED(attr.ah_attr.is_global = 0);
    REFUSED(attr.ah_attr.port_num = 0);
    REFUSED(attr.ah_attr.port_num = 2);
    REFUSED(attr.ah_attr.grh.sgid_index = GID_EMPTY);
    REFUSED(attr.ah_attr.grh.sgid_index = GID_EMPTY + 1);
    REFUSED(memset(attr.ah_attr.grh.dgid.raw, 0xfd, 16)); /* IPv6 from IPv4 */
    REFUSED(attr.max_dest_rd_atomic = 129);
    REFUSED(attr.min_rnr_timer = 32);
    attr = attributes(IBV_QPS_RTR);
    attr.cur_qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_RTR | IBV_QP_CUR_STATE), EINVAL);
    assert_int_equal(step(qp, IBV_QPS_RTR, TO_RTR), 0);
    attr = attributes(IBV_QPS_RTS);
    attr.timeout = 32;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_RTS), EINVAL);
    attr = attributes(IBV_QPS_RTS);
    attr.retry_cnt = 8;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_RTS), EINVAL);
    assert_int_equal(step(qp, IBV_QPS_RTS, TO_RTS), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* What was set is told. */
static void told(void **state)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_RC);
    struct ibv_qp_attr attr, want = attributes(IBV_QPS_RTS);
    struct ibv_qp_init_attr init;

    (void)state;
    assert_int_equal(step(qp, IBV_QPS_INIT, TO_INIT), 0);
    assert_int_equal(step(qp, IBV_QPS_RTR, TO_RTR), 0);
    assert_int_equal(step(qp, IBV_QPS_RTS, TO_RTS), 0);
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.path_mtu, want.path_mtu);
    assert_int_equal(attr.dest_qp_num, want.dest_qp_num);
    assert_int_equal(attr.rq_psn, want.rq_psn);
    assert_int_equal(attr.sq_psn, want.sq_psn);
    assert_int_equal(attr.qp_access_flags, want.qp_access_flags);
    assert_int_equal(attr.max_rd_atomic, want.max_rd_atomic);
    assert_int_equal(attr.max_dest_rd_atomic, want.max_dest_rd_atomic);
    assert_int_equal(attr.min_rnr_timer, want.min_rnr_timer);
    assert_int_equal(attr.timeout, want.timeout);
    assert_int_equal(attr.retry_cnt, want.retry_cnt);
    assert_int_equal(attr.rnr_retry, want.rnr_retry);
    assert_memory_equal(&attr.ah_attr.grh.dgid, &want.ah_attr.grh.dgid, sizeof(want.ah_attr.grh.dgid));
    assert_int_equal(attr.ah_attr.grh.sgid_index, loopback);
    assert_int_equal(init.qp_type, IBV_QPT_RC);
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A step that is refused grants nothing. */
static void refused_rights(void **state)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_RC);
    struct ibv_qp_attr attr = attributes(IBV_QPS_INIT);
    struct ibv_qp_init_attr init;

    (void)state;
    attr.qp_access_flags = 0;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_INIT), 0);
    attr = attributes(IBV_QPS_RTR);
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    attr.dest_qp_num = 1 << 24;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_RTR | IBV_QP_ACCESS_FLAGS), EINVAL);
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_INIT);
    assert_int_equal(attr.qp_access_flags, 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static uint8_t rnr_timer_of(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_MIN_RNR_TIMER, &init), 0);
    return attr.min_rnr_timer;
}

static int set_rnr_timer(struct ibv_qp *qp, enum ibv_qp_state to, int mask, uint8_t code)
{
    struct ibv_qp_attr attr = attributes(to);

    attr.min_rnr_timer = code;
    return ibv_modify_qp(qp, &attr, mask | IBV_QP_MIN_RNR_TIMER);
}

/* Each step that may be told a timer takes it, and refuses one that is none. */
static void rnr_timers(void **state)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_RC);

    (void)state;
    assert_int_equal(step(qp, IBV_QPS_INIT, TO_INIT), 0);
    assert_int_equal(step(qp, IBV_QPS_RTR, TO_RTR), 0);
    assert_int_equal(set_rnr_timer(qp, IBV_QPS_RTS, TO_RTS, 32), EINVAL);
    assert_int_equal(state_of(qp), IBV_QPS_RTR);
    assert_int_equal(set_rnr_timer(qp, IBV_QPS_RTS, TO_RTS, 20), 0);
    assert_int_equal(rnr_timer_of(qp), 20);
    assert_int_equal(set_rnr_timer(qp, IBV_QPS_RTS, 0, 32), EINVAL);
    assert_int_equal(set_rnr_timer(qp, IBV_QPS_RTS, 0, 5), 0);
    assert_int_equal(rnr_timer_of(qp), 5);
    assert_int_equal(step(qp, IBV_QPS_SQD, IBV_QP_STATE), 0);
    assert_int_equal(set_rnr_timer(qp, IBV_QPS_RTS, IBV_QP_STATE, 31), 0);
    assert_int_equal(rnr_timer_of(qp), 31);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static int set_drained(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
    return ibv_modify_qp(qp, &attr, mask);
}

/* What the kernel's table allows once the requests are drained, and only then. */
static void drained(void **state)
{
    enum {
        MAY = IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
              IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
    };
    struct ibv_qp *rc = make_qp(IBV_QPT_RC), *uc = make_qp(IBV_QPT_UC);
    struct ibv_qp_attr attr = attributes(IBV_QPS_SQD), now;
    struct ibv_qp_init_attr init;

    (void)state;
    assert_int_equal(step(rc, IBV_QPS_INIT, TO_INIT), 0);
    assert_int_equal(step(rc, IBV_QPS_RTR, TO_RTR), 0);
    assert_int_equal(step(rc, IBV_QPS_RTS, TO_RTS), 0);
    assert_int_equal(set_drained(rc, attr, IBV_QP_TIMEOUT), EINVAL); /* not yet */
    assert_int_equal(step(rc, IBV_QPS_SQD, IBV_QP_STATE), 0);
    for (int bit = 2; bit < MASK_BITS; bit++)
        assert_int_equal(set_drained(rc, attr, 1 << bit), 1 << bit & MAY ? 0 : EINVAL);
    attr.timeout = 20;
    attr.retry_cnt = 3;
    attr.rnr_retry = 2;
    attr.max_rd_atomic = 4;
    attr.max_dest_rd_atomic = 0;
    attr.min_rnr_timer = 9;
    assert_int_equal(set_drained(rc, attr, MAY), 0);
    assert_int_equal(set_drained(rc, (struct ibv_qp_attr){.timeout = 32}, IBV_QP_TIMEOUT), EINVAL);
    assert_int_equal(set_drained(rc, (struct ibv_qp_attr){.retry_cnt = 8}, IBV_QP_RETRY_CNT), EINVAL);
    assert_int_equal(set_drained(rc, (struct ibv_qp_attr){.ah_attr.port_num = 1}, IBV_QP_AV), EINVAL);
    assert_int_equal(ibv_query_qp(rc, &now, 0, &init), 0);
    assert_int_equal(now.timeout, 20);
    assert_int_equal(now.retry_cnt, 3);
    assert_int_equal(now.rnr_retry, 2);
    assert_int_equal(now.max_rd_atomic, 4);
    assert_int_equal(now.max_dest_rd_atomic, 0);
    assert_int_equal(now.min_rnr_timer, 9);
    assert_int_equal(step(rc, IBV_QPS_RTS, IBV_QP_STATE), 0);

    assert_int_equal(step(uc, IBV_QPS_INIT, TO_INIT), 0);
    assert_int_equal(step(uc, IBV_QPS_RTR, TO_RTR_UC), 0);
    assert_int_equal(step(uc, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    assert_int_equal(step(uc, IBV_QPS_SQD, IBV_QP_STATE), 0);
    for (int bit = 2; bit < MASK_BITS; bit++)
        assert_int_equal(set_drained(uc, attr, 1 << bit),
                         1 << bit & (IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX) ? 0 : EINVAL);
    assert_int_equal(ibv_destroy_qp(rc), 0);
    assert_int_equal(ibv_destroy_qp(uc), 0);
}

/* Posts that the type or the state of a queue pair has no place for. */
static void posts(void **state)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_UD);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_recv_wr receive = {.wr_id = 1}, *bad_receive = NULL;
    struct ibv_send_wr send = {.wr_id = 2}, *bad_send;

    (void)state;
    assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
    assert_ptr_equal(bad_receive, &receive);
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_INIT_UD), 0);
    assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
    assert_int_equal(step(qp, IBV_QPS_INIT, TO_INIT_UD), 0);
    assert_int_equal(step(qp, IBV_QPS_RTR, IBV_QP_STATE), 0);
    assert_int_equal(step(qp, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    for (int op = IBV_WR_RDMA_WRITE; op <= IBV_WR_BIND_MW; op++) {
        if (op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM)
            continue;
        send.opcode = (enum ibv_wr_opcode)op;
        assert_int_equal(ibv_post_send(qp, &send, &bad_send), EINVAL);
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void handles(void **state)
{
    struct ibv_qp_attr attr = attributes(IBV_QPS_RTR);
    struct ibv_ah *ah = ibv_create_ah(pd, &attr.ah_attr);

    (void)state;
    assert_non_null(ah);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    attr.ah_attr.is_global = 0;
    assert_null(ibv_create_ah(pd, &attr.ah_attr));
    assert_int_equal(errno, EINVAL);
    for (uint8_t port = 0; port <= 2; port += 2) {
        attr = attributes(IBV_QPS_RTR);
        attr.ah_attr.port_num = port;
        assert_null(ibv_create_ah(pd, &attr.ah_attr));
        assert_int_equal(errno, EINVAL);
    }
}

/* There is no way back from an address that this host does not have. */
static void ways_back(void **state)
{
    struct ibv_grh grh = {.version_tclass_flow = htobe32(UINT32_C(6) << 28)};
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    struct ibv_ah_attr way;

    (void)state;
    grh.sgid.raw[15] = grh.dgid.raw[15] = 1; /* ::1 */
    if (!ibv_init_ah_from_wc(context, 1, &wc, &grh, &way))
        assert_memory_equal(&way.grh.dgid, &grh.sgid, sizeof(grh.sgid));
    memcpy(grh.dgid.raw, (const uint8_t[]){0x20, 1, 0xd, 0xb8}, 4); /* 2001:db8::1 */
    assert_int_not_equal(ibv_init_ah_from_wc(context, 1, &wc, &grh, &way), 0);
    assert_null(ibv_create_ah_from_wc(pd, &wc, &grh, 1));
    assert_int_equal(errno, EINVAL);
}

/* A datagram to the queue pair itself. Its service level says that it came by IPv4, as mlx5's does: UCX goes by that.
 */
static void datagram(void **state)
{
    enum { GRH = 40, OCTETS = 8, KEY = 0x1234 };
    static uint8_t buffer[GRH + 2 * OCTETS];
    struct ibv_qp *qp = make_qp(IBV_QPT_UD);
    struct ibv_qp_attr attr = attributes(IBV_QPS_RTR);
    struct ibv_ah *ah = ibv_create_ah(pd, &attr.ah_attr);
    struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge into = {(uintptr_t)buffer, GRH + OCTETS, mr->lkey};
    struct ibv_sge from = {(uintptr_t)buffer + GRH + OCTETS, OCTETS, mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = &into, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.wr_id = 2, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
    struct ibv_wc wc;

    (void)state;
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = KEY};
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_INIT_UD), 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    memcpy(buffer + GRH + OCTETS, "datagram", OCTETS);
    send.wr.ud.ah = ah;
    send.wr.ud.remote_qpn = qp->qp_num;
    send.wr.ud.remote_qkey = KEY;
    assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
    assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
    while (ibv_poll_cq(cq, 1, &wc) != 1 || wc.wr_id != 1)
        ;
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wc_flags, IBV_WC_GRH);
    assert_int_equal(wc.sl, 8 | 2);
    assert_int_equal(wc.src_qp, qp->qp_num);
    assert_memory_equal(buffer + GRH, "datagram", OCTETS);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* The other device has neither datagrams nor address handles. */
static void iwarp(void **state)
{
    struct ibv_context *other = devices_open("rddp0");
    struct ibv_pd *domain = ibv_alloc_pd(other);
    struct ibv_cq *queue = ibv_create_cq(other, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD, .send_cq = queue, .recv_cq = queue};
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

    (void)state;
    assert_null(ibv_create_qp(domain, &init));
    assert_int_equal(errno, EOPNOTSUPP);
    init.qp_type = IBV_QPT_RC;
    assert_null(ibv_create_qp(pd, &init)); /* with the queues of the other device */
    assert_int_equal(errno, EINVAL);
    init.send_cq = cq;
    assert_null(ibv_create_qp(pd, &init));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_create_ah(domain, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_destroy_cq(queue), 0);
    assert_int_equal(ibv_dealloc_pd(domain), 0);
    assert_int_equal(ibv_close_device(other), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks),          cmocka_unit_test(values),    cmocka_unit_test(told),
        cmocka_unit_test(drained),        cmocka_unit_test(posts),     cmocka_unit_test(handles),
        cmocka_unit_test(datagram),       cmocka_unit_test(iwarp),     cmocka_unit_test(rnr_timers),
        cmocka_unit_test(refused_rights), cmocka_unit_test(ways_back),
    };

    return cmocka_run_group_tests_name("ib_states", tests, set_up, tear_down);
}
