/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib_drained.c - two queue pairs of rddpe0 that are drained, and go on by another path. */
#include <string.h>

#include "tests/verbs/lib/looped.h"

enum { OCTETS = 64 };

static struct looped looped;
static uint8_t memory[2 * OCTETS];
static struct ibv_mr *mr;

static int gid_index(const uint8_t wanted[16])
{
    union ibv_gid gid;

    for (int at = 0; !ibv_query_gid(looped.context, 1, at, &gid) || at < 16; at++)
        if (!memcmp(gid.raw, wanted, sizeof(gid.raw)))
            return at;
    return -1;
}

static void send_one(uint8_t value)
{
    const struct ibv_sge sge = {(uintptr_t)memory, OCTETS, mr->lkey};

    memset(memory, value, OCTETS);
    looped_receive(looped.qp[1], 1, (uintptr_t)memory + OCTETS, OCTETS, mr->lkey);
    looped_post(looped.qp[0], IBV_WR_SEND, sge, 0, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(looped_completion(&looped).status, IBV_WC_SUCCESS);
    assert_memory_equal(memory, memory + OCTETS, OCTETS);
}

static void set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

/* Each end drops what does not come from its peer's address, so both have changed when a message arrives. */
static void test_other_path(void **state)
{
    static const uint8_t here[16] = {[15] = 1};
    struct ibv_qp_attr attr = {.ah_attr = {.is_global = 1, .port_num = 1}}, now;
    struct ibv_qp_init_attr init;
    int index;

    (void)state;
    looped_open(&looped, 0);
    mr = ibv_reg_mr(looped.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    index = gid_index(here);
    if (index < 0)
        skip(); /* no IPv6 */
    send_one(1);
    attr.ah_attr.grh.sgid_index = (uint8_t)index;
    memcpy(attr.ah_attr.grh.dgid.raw, here, sizeof(here));
    attr.max_rd_atomic = 1;
    attr.retry_cnt = 2;
    for (int i = 0; i < 2; i++) {
        set_state(looped.qp[i], IBV_QPS_SQD);
        assert_int_equal(ibv_modify_qp(looped.qp[i], &attr, IBV_QP_AV | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT), 0);
        assert_int_equal(ibv_query_qp(looped.qp[i], &now, 0, &init), 0);
        assert_memory_equal(now.ah_attr.grh.dgid.raw, here, sizeof(here));
        assert_int_equal(now.ah_attr.grh.sgid_index, index);
        assert_int_equal(now.max_rd_atomic, 1);
        assert_int_equal(now.retry_cnt, 2);
    }
    for (int i = 0; i < 2; i++)
        set_state(looped.qp[i], IBV_QPS_RTS);
    send_one(2);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    looped_close(&looped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_path)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
