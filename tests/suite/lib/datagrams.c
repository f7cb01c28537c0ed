/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagrams.c - makes two queue pairs that send datagrams to each other. */
#include "tests/suite/lib/datagrams.h"

#include <errno.h>

struct hands h;
struct rddp_ah *way[2];

static void lead(struct rddp_qp *qp, uint32_t qkey)
{
    struct rddp_ib_attr attr;

    rddp_ib_attr_init(&attr);
    attr.qkey = qkey;
    attr.sq_psn = 0xfffffe;
    for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTS; attr.state++)
        assert_int_equal(rddp_modify_qp(qp, &attr), 0);
}

void datagrams_open(const char *address)
{
    struct rddp_ah_attr attr;

    hands_open(&h, RDDP_QPT_UD, address);
    hands_make(&h);
    rddp_ah_attr_init(&attr);
    attr.peer = h.address;
    for (unsigned i = 0; i < 2; i++) {
        lead(h.end[i].qp, QKEY);
        way[i] = rddp_create_ah(h.end[i].pd, &attr);
        assert_non_null(way[i]);
    }
}

void datagrams_close(void)
{
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rddp_dealloc_pd(h.end[i].pd), -EBUSY);
        assert_int_equal(rddp_destroy_ah(way[i]), 0);
    }
    hands_close(&h);
}

struct rddp_send_wr *datagram(unsigned from, uint32_t octets)
{
    static struct rddp_sge sge;
    static struct rddp_send_wr wr;

    sge = (struct rddp_sge){0, octets, rddp_mr_key(h.end[from].mr)};
    wr = (struct rddp_send_wr){
        .wr_id = octets,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = RDDP_WR_SEND,
        .send_flags = RDDP_SEND_SIGNALED,
        .imm_data = IMMEDIATE,
        .ah = way[from],
        .remote_qpn = rddp_qp_num(h.end[!from].qp),
        .remote_qkey = QKEY,
    };
    return &wr;
}

int datagram_post(unsigned from, struct rddp_send_wr *wr)
{
    return rddp_post_send(h.end[from].qp, wr, NULL);
}

void datagram_send(unsigned from, struct rddp_send_wr *wr)
{
    struct rddp_wc wc;

    assert_int_equal(datagram_post(from, wr), 0);
    wc = hand_completion(&h.end[from]);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.opcode, RDDP_WC_SEND);
}

enum rddp_ib_state ib_state_of(unsigned end)
{
    struct rddp_ib_attr attr;

    assert_int_equal(rddp_query_ib(h.end[end].qp, &attr), 0);
    return attr.state;
}
