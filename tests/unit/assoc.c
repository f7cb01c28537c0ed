/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc.c - two associations with negotiation: set-up, every operation, private data, and the ways to end. */
#include <errno.h>

#include "tests/unit/assoc_both.h"

/* Each message takes many chunks, and both directions are busy at once. SCTP-2.1-08 SCTP-2.2-12 SCTP-3.2.1-R5a
 * SCTP-3.2.2-S3a SCTP-2.2-28 */
static void every_operation(void **state)
{
    struct mr *from, *to, *sink, *source;
    struct rddp_sge sge;

    (void)state;
    open_both(BOTH, BOTH);
    from = region(LOCAL);
    to = region(ALL_ACCESS);
    sink = region(LOCAL);
    source = region(RDDP_ACCESS_REMOTE_READ);
    pattern(source->base, OCTETS, 9);
    ready_to_go(from, 3);
    sge = piece_of(from, 0, OCTETS);
    assert_int_equal(post_remote(of(0), 1, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, &sge, 1, to->key, to->start), 0);
    sge = piece_of(sink, 0, OCTETS);
    assert_int_equal(post_remote(of(0), 2, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, source->key, source->start),
                     0);
    assert_int_equal(post_remote(of(1), 3, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 0, source->key, source->start),
                     0);
    net_run(&n);
    expect_wc(&of(0)->send_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(expect_wc(&of(0)->send_cq, 2, RDDP_WC_SUCCESS).byte_len, OCTETS);
    assert_int_equal(expect_wc(&of(1)->send_cq, 3, RDDP_WC_SUCCESS).byte_len, 0);
    memcpy(want_of(&n.engine, to), from->base, OCTETS);
    memcpy(want_of(&n.engine, sink), source->base, OCTETS);
    engine_expect(&n.engine);
    assert_true(n.side[0].sent > OCTETS / NET_PAYLOAD);
    /* All chunks share one sequence: HELLO, the Write, the Read, and the answer to the empty Read. */
    assert_int_equal(n.side[0].assoc.tx_pos, n.side[0].sent);
    assert_int_equal(n.side[1].assoc.window.next, n.side[0].sent);
    net_fini(&n);
}

/* Sends that are empty, that fill one chunk, and that take many, all solicited. The last Send invalidates a key. */
static void sends(void **state)
{
    static const uint32_t lengths[] = {0, 1, NET_PAYLOAD - 36, NET_PAYLOAD - 35, OCTETS};
    struct mr *from, *to, *dead;
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND_WITH_INV, .wr_id = 9, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_wc wc;

    (void)state;
    open_both(BOTH, BOTH);
    from = region(LOCAL);
    to = region(LOCAL);
    dead = region(ALL_ACCESS);
    ready_to_go(from, 4);
    for (unsigned i = 0; i < 5; i++) {
        struct rddp_sge sge = piece_of(from, 0, lengths[i]);

        receive_into(1, 100 + i, to);
        assert_int_equal(post(of(0), i, RDDP_WR_SEND, RDDP_SEND_SIGNALED | RDDP_SEND_SOLICITED, &sge, 1), 0);
        net_run(&n);
        expect_wc(&of(0)->send_cq, i, RDDP_WC_SUCCESS);
        assert_int_equal(expect_wc(&of(1)->recv_cq, 100 + i, RDDP_WC_SUCCESS).byte_len, lengths[i]);
    }
    memcpy(want_of(&n.engine, to), from->base, OCTETS);
    engine_expect(&n.engine);
    receive_into(1, 200, to);
    wr.invalidate_rkey = dead->key;
    assert_int_equal(qp_post_send(&of(0)->qp, &wr), 0);
    net_run(&n);
    wc = expect_wc(&of(1)->recv_cq, 200, RDDP_WC_SUCCESS);
    assert_int_equal(wc.invalidated_rkey, dead->key);
    assert_false(dead->valid);
    net_fini(&n);
}

/* Immediate data with a Write, and without one: each takes a receive once everything before it is placed, and the
 * completion tells the two apart. */
static void immediate(void **state)
{
    struct mr *from, *to;
    struct rddp_sge sge;
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_WRITE_WITH_IMM, .wr_id = 1, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_wc wc;

    (void)state;
    open_both(BOTH, BOTH);
    from = region(LOCAL);
    to = region(ALL_ACCESS);
    ready_to_go(from, 11);
    receive_into(1, 100, to);
    receive_into(1, 101, to);
    sge = piece_of(from, 0, OCTETS);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.rkey = to->key;
    wr.remote_addr = to->start;
    wr.imm_data = 0x04030201;
    assert_int_equal(qp_post_send(&of(0)->qp, &wr), 0);
    wr = (struct rddp_send_wr){.opcode = RDDP_WR_SEND_WITH_IMM, .wr_id = 2, .imm_data = 0xffffffff};
    wr.send_flags = RDDP_SEND_SIGNALED | RDDP_SEND_SOLICITED;
    assert_int_equal(qp_post_send(&of(0)->qp, &wr), 0);
    net_run(&n);
    expect_wc(&of(0)->send_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&of(0)->send_cq, 2, RDDP_WC_SUCCESS);
    wc = expect_wc(&of(1)->recv_cq, 100, RDDP_WC_SUCCESS);
    assert_int_equal(wc.opcode, RDDP_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x04030201);
    wc = expect_wc(&of(1)->recv_cq, 101, RDDP_WC_SUCCESS);
    assert_int_equal(wc.opcode, RDDP_WC_RECV);
    assert_true(wc.wc_flags & RDDP_WC_WITH_IMM);
    assert_int_equal(wc.imm_data, 0xffffffff);
    memcpy(want_of(&n.engine, to), from->base, OCTETS);
    engine_expect(&n.engine);
    net_fini(&n);
}

/* Each side gets the other's private data, at most 512 octets; the smaller of the two Read depths applies. */
static void private_data(void **state)
{
    static uint8_t data[NEG_PRIVATE_MAX + 1];
    struct net_side *active = &n.side[0], *passive = &n.side[1];
    struct assoc_attr attr;

    (void)state;
    net_init(&n, BOTH, BOTH, NULL, 1);
    pattern(data, sizeof(data), 1);
    attr = active->assoc.attr;
    attr.ird = 3;
    attr.ord = 2;
    assert_int_equal(assoc_init_active(&active->assoc, &attr, active->slots, &active->side.qp, data, 513, 0), -EINVAL);
    assert_int_equal(assoc_init_active(&active->assoc, &attr, active->slots, &active->side.qp, data, 100, 0), 0);
    net_up(&n);
    net_run(&n);
    assert_int_equal(passive->assoc.life.state, CONN_WAIT_ANSWER);
    assert_int_equal(passive->assoc.peer_hello.data_length, 100);
    assert_memory_equal(passive->assoc.peer_hello.data, data, 100);
    assert_int_equal(assoc_accept(&passive->assoc, &passive->side.qp, 4, 1, data, 513), -EINVAL);
    assert_int_equal(assoc_accept(&passive->assoc, &passive->side.qp, 4, 1, data + 100, 99), 0);
    net_run(&n);
    assert_int_equal(active->assoc.life.state, CONN_READY);
    assert_int_equal(active->assoc.peer_hello.data_length, 99);
    assert_memory_equal(active->assoc.peer_hello.data, data + 100, 99);
    assert_int_equal(active->assoc.ird, 1);
    assert_int_equal(active->assoc.ord, 2);
    assert_int_equal(passive->assoc.ird, 2);
    assert_int_equal(passive->assoc.ord, 1);
    net_fini(&n);
}

static void rejected(void **state)
{
    struct net_side *active = &n.side[0], *passive = &n.side[1];

    (void)state;
    net_init(&n, BOTH, BOTH, NULL, 1);
    net_up(&n);
    net_run(&n);
    assert_int_equal(assoc_reject(&passive->assoc, "no", 2, n.now_us), 0);
    net_run(&n);
    assert_true(active->news & CONN_NEWS_REJECTED);
    assert_int_equal(active->assoc.life.note.fault, FAULT_REJECTED);
    assert_memory_equal(active->assoc.peer_hello.data, "no", 2);
    assert_int_equal(active->assoc.life.state, CONN_OVER);
    assert_int_equal(passive->assoc.life.state, CONN_OVER);
    assert_false(active->aborted || passive->aborted);
    net_fini(&n);
}

/* A request that was posted before the close still leaves and is answered. */
static void closed_well(void **state)
{
    struct mr *sink, *source;
    struct rddp_sge sge;

    (void)state;
    open_both(BOTH, BOTH);
    sink = region(LOCAL);
    source = region(RDDP_ACCESS_REMOTE_READ);
    ready_to_go(source, 5);
    sge = piece_of(sink, 0, OCTETS);
    assert_int_equal(post_remote(of(0), 1, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, source->key, source->start),
                     0);
    assoc_close(&n.side[0].assoc, n.now_us);
    net_run(&n);
    expect_wc(&of(0)->send_cq, 1, RDDP_WC_SUCCESS);
    memcpy(want_of(&n.engine, sink), source->base, OCTETS);
    engine_expect(&n.engine);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(n.side[i].assoc.life.state, CONN_OVER);
        assert_true(n.side[i].news & CONN_NEWS_DISCONNECTED);
        assert_int_equal(n.side[i].assoc.life.note.fault, FAULT_NONE);
        assert_false(n.side[i].aborted);
    }
    net_fini(&n);
}

/* After its queue pair is detached, the association ends by itself and drops what arrives meanwhile. */
static void detached(void **state)
{
    struct mr *from;
    struct rddp_sge sge;

    (void)state;
    open_both(BOTH, BOTH);
    from = region(LOCAL);
    sge = piece_of(from, 0, 10);
    assert_int_equal(post(of(0), 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &sge, 1), 0);
    assoc_detach(&n.side[1].assoc, n.now_us);
    net_run(&n);
    assert_null(n.side[1].assoc.life.qp);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(n.side[i].assoc.life.state, CONN_OVER);
        assert_false(n.side[i].aborted);
    }
    net_fini(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation), cmocka_unit_test(sends),    cmocka_unit_test(immediate),
        cmocka_unit_test(private_data),    cmocka_unit_test(rejected), cmocka_unit_test(closed_well),
        cmocka_unit_test(detached),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
