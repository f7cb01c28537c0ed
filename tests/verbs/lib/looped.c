/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* looped.c - two RC queue pairs of rddpe0 in one process, connected by hand over loopback. */
#include "tests/verbs/lib/looped.h"

#include <time.h>
#include <unistd.h>

#include "tests/verbs/lib/devices.h"

enum {
    DEPTH = 8,
    WAIT_S = 20,
    RIGHTS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER,
    TO_RTS =
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
};

static void looped_connect(struct looped *looped, struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr attr = {
        .port_num = 1,
        .qp_access_flags = RIGHTS,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 4,
        .max_rd_atomic = 4,
        .min_rnr_timer = 12,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1, .port_num = 1},
    };
    union ibv_gid gid;

    attr.ah_attr.grh.sgid_index = devices_loopback(looped->context, &gid);
    attr.ah_attr.grh.dgid = gid;
    attr.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_INIT), 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_RTR), 0);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &attr, TO_RTS), 0);
}

void looped_open(struct looped *looped, uint64_t wc_flags)
{
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = 4 * DEPTH, .wc_flags = IBV_WC_STANDARD_FLAGS | wc_flags};
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1}};

    looped->context = devices_open("rddpe0");
    looped->pd = ibv_alloc_pd(looped->context);
    looped->channel = cq_attr.channel = ibv_create_comp_channel(looped->context);
    looped->cq = ibv_create_cq_ex(looped->context, &cq_attr);
    assert_true(looped->pd && looped->cq);
    init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(looped->cq);
    for (int i = 0; i < 2; i++) {
        looped->qp[i] = ibv_create_qp(looped->pd, &init);
        assert_non_null(looped->qp[i]);
    }
    for (int i = 0; i < 2; i++)
        looped_connect(looped, looped->qp[i], looped->qp[!i]->qp_num);
}

void looped_close(struct looped *looped)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(ibv_destroy_qp(looped->qp[i]), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(looped->cq)), 0);
    assert_int_equal(ibv_destroy_comp_channel(looped->channel), 0);
    assert_int_equal(ibv_dealloc_pd(looped->pd), 0);
    assert_int_equal(ibv_close_device(looped->context), 0);
}

void looped_receive(struct ibv_qp *qp, uint64_t wr_id, uint64_t addr, uint32_t length, uint32_t lkey)
{
    struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

void looped_post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t remote, uint32_t rkey)
{
    struct ibv_send_wr wr = {.wr_id = opcode,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

struct ibv_wc looped_completion(struct looped *looped)
{
    time_t end = time(NULL) + WAIT_S;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(ibv_cq_ex_to_cq(looped->cq), 1, &wc)) == 0 && time(NULL) < end)
        usleep(100);
    assert_int_equal(n, 1);
    return wc;
}
