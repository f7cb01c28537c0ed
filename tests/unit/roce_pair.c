/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_pair.c - what a queue pair of RoCE asks its peer, packet by packet: acknowledgements, NAKs, responses. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/rc_world.h"

/* ROCE-REQ-01 with a wrap, ROCE-REQ-03, ROCE-REQ-04, ROCE-REQ-05, ROCE-REQ-06, ROCE-REQ-07 */
static void messages(void **state)
{
    (void)state;
    open_usual();
    request_send(1, 600);
    request_send(2, 0);
    hear_message(FIRST, BTH_SEND, BTH_FIRST, MTU);
    assert_false(w.said.flags & ASK);
    hear_message(FIRST + 1, BTH_SEND, 0, MTU);
    hear_message(0, BTH_SEND, BTH_LAST, 88);
    assert_true(w.said.flags & ASK);
    assert_memory_equal(w.octets + BTH_OCTETS, w.region->base + 512, 88);
    hear_message(1, BTH_SEND, ONLY, 0);
    hear_nothing();
    acknowledges(2, ACK); /* not sent yet */
    acknowledges(FIRST - 1, ACK);
    expect_quiet(&w.side->send_cq);
    acknowledges(FIRST + 1, ACK);
    expect_quiet(&w.side->send_cq);
    acknowledges(1, ACK);
    expect_wc(&w.side->send_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&w.side->send_cq, 2, RDDP_WC_SUCCESS);
    close_world();
}

/* ROCE-REQ-09, and what is there when it is sent again (ROCE-REQ-20) */
static void sequence_nak(void **state)
{
    (void)state;
    open_usual();
    request_send(1, 600);
    for (int i = 0; i < 3; i++)
        hear();
    w.region->base[300] ^= 0xff;
    acknowledges(FIRST + 1, aeth_nak(NAK_SEQUENCE));
    hear_message(FIRST + 1, BTH_SEND, 0, MTU);
    assert_memory_equal(w.octets + BTH_OCTETS, w.region->base + 256, MTU);
    w.region->base[300] ^= 0xff;
    hear_message(0, BTH_SEND, BTH_LAST, 88);
    acknowledges(0, ACK);
    expect_wc(&w.side->send_cq, 1, RDDP_WC_SUCCESS);
    close_world();
}

/* ROCE-REQ-08 */
static void retries_exceeded(void **state)
{
    struct rc_pair_attr attr = rc_net_attr();
    uint64_t sends = 0, began;

    (void)state;
    attr.requester.retries = 3;
    attr.requester.timeout_us = 200000;
    open_world(&attr);
    request_send(1, 10);
    request_send(2, 10);
    began = w.net.now_us;
    while (w.side->qp.state != QP_ERROR) {
        while (rc_pair_emit(w.pair, &w.out, w.net.now_us))
            sends++;
        assert_true(rc_pair_deadline(w.pair) > w.net.now_us && rc_pair_deadline(w.pair) < UINT64_MAX);
        waits(rc_pair_deadline(w.pair) - w.net.now_us);
    }
    assert_int_equal(w.net.now_us - began, 4 * 200000);
    assert_true(sends >= 2 * 4);
    expect_wc(&w.side->send_cq, 1, RDDP_WC_RETRY_EXC_ERR);
    expect_failed(2, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(w.pair->life.note.fault, FAULT_RETRY);
    close_world();
}

/* ROCE-REQ-10 */
static void not_ready(void **state)
{
    struct rc_pair_attr attr = rc_net_attr();

    (void)state;
    attr.requester.rnr_retries = 2;
    open_world(&attr);
    request_send(1, 300);
    for (int tries = 0; tries < 2; tries++) {
        hear_message(FIRST, BTH_SEND, BTH_FIRST, MTU);
        hear_message(FIRST + 1, BTH_SEND, BTH_LAST, 44);
        acknowledges(FIRST, AETH_RNR_NAK | 14); /* 1.28 ms */
        hear_nothing();
        waits(1270);
        hear_nothing();
        waits(10);
    }
    hear_message(FIRST, BTH_SEND, BTH_FIRST, MTU);
    acknowledges(FIRST, AETH_RNR_NAK | 14);
    expect_failed(1, RDDP_WC_RNR_RETRY_EXC_ERR);
    close_world();
}

/* ROCE-REQ-11 */
static void refusals(void **state)
{
    static const struct {
        uint8_t reason;
        enum rddp_wc_status status;
    } refusal[] = {{NAK_INVALID_REQUEST, RDDP_WC_REM_INV_REQ_ERR},
                   {NAK_REMOTE_ACCESS, RDDP_WC_REM_ACCESS_ERR},
                   {NAK_REMOTE_OPERATIONAL, RDDP_WC_REM_OP_ERR}};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        open_usual();
        request_send(1, 10);
        request_send(2, 10);
        request_send(3, 10);
        for (int n = 0; n < 3; n++)
            hear();
        acknowledges(FIRST + 1, aeth_nak(refusal[i].reason));
        expect_wc(&w.side->send_cq, 1, RDDP_WC_SUCCESS);
        expect_wc(&w.side->send_cq, 2, refusal[i].status);
        expect_failed(3, RDDP_WC_WR_FLUSH_ERR);
        close_world();
    }
}

/* What one packet acknowledges has overrun the CQ, and the request that it refuses is flushed with all others: it may
 * not be looked at any more, since another request may lie there. */
static void refused_behind_a_full_cq(void **state)
{
    (void)state;
    open_usual();
    w.side->send_cq.cqe = 1;
    for (uint64_t i = 1; i <= 3; i++) {
        request_send(i, 10);
        hear();
    }
    acknowledges(FIRST + 2, aeth_nak(NAK_REMOTE_ACCESS));
    expect_wc(&w.side->send_cq, 1, RDDP_WC_SUCCESS);
    assert_true(w.side->send_cq.overflowed);
    assert_int_equal(w.pair->life.note.fault, FAULT_CQ_FULL);
    close_world();
}

static void responds(uint32_t psn, unsigned flags, uint32_t length)
{
    says(packet(BTH_READ_RESPONSE, flags, psn, length));
}

/* ROCE-REQ-12, ROCE-REQ-13, ROCE-REQ-05 */
static void responses(void **state)
{
    (void)state;
    open_usual();
    request_send(1, 5);
    request_read(2, 700);
    request_send(3, 5);
    hear_message(FIRST, BTH_SEND, ONLY, 5);
    hear_message(FIRST + 1, BTH_READ_REQUEST, ONLY, 0);
    assert_int_equal(w.said.dma_length, 700);
    hear_message(FIRST + 4, BTH_SEND, ONLY, 5);
    responds(FIRST + 1, BTH_FIRST, MTU);
    expect_wc(&w.side->send_cq, 1, RDDP_WC_SUCCESS);
    responds(FIRST + 3, BTH_LAST, 188); /* one is missing */
    hear_message(FIRST + 2, BTH_READ_REQUEST, ONLY, 0);
    assert_int_equal(w.said.dma_length, 700 - MTU);
    assert_int_equal(w.said.address, 0x1000 + MTU);
    hear_message(FIRST + 4, BTH_SEND, ONLY, 5);
    responds(FIRST + 3, BTH_LAST, 188);
    hear_nothing(); /* it has been asked for */
    responds(FIRST + 1, BTH_FIRST, MTU);
    responds(FIRST + 2, BTH_FIRST, MTU);
    responds(FIRST + 3, BTH_LAST, 188);
    expect_wc(&w.side->send_cq, 2, RDDP_WC_SUCCESS);
    acknowledges(FIRST + 4, ACK);
    expect_wc(&w.side->send_cq, 3, RDDP_WC_SUCCESS);
    close_world();
}

/* An acknowledgement behind a response that did not come: the response was lost. */
static void response_lost(void **state)
{
    (void)state;
    open_usual();
    request_read(1, 10);
    request_send(2, 5);
    hear();
    hear();
    acknowledges(FIRST + 1, ACK);
    expect_quiet(&w.side->send_cq);
    hear_message(FIRST, BTH_READ_REQUEST, ONLY, 0);
    hear_message(FIRST + 1, BTH_SEND, ONLY, 5);
    acknowledges(FIRST + 1, ACK); /* once for each gap */
    hear_nothing();
    waits(rc_net_attr().requester.timeout_us); /* and for each time-out: the next answer is of what was sent again */
    hear_message(FIRST, BTH_READ_REQUEST, ONLY, 0);
    hear_message(FIRST + 1, BTH_SEND, ONLY, 5);
    acknowledges(FIRST + 1, ACK);
    hear_message(FIRST, BTH_READ_REQUEST, ONLY, 0);
    hear_message(FIRST + 1, BTH_SEND, ONLY, 5);
    responds(FIRST, ONLY, 10);
    acknowledges(FIRST + 1, ACK);
    expect_wc(&w.side->send_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&w.side->send_cq, 2, RDDP_WC_SUCCESS);
    close_world();
}

/* ROCE-REQ-13 */
static void bad_responses(void **state)
{
    static const struct {
        unsigned flags;
        uint32_t length;
    } bad[] = {{0, MTU}, {BTH_FIRST, 100}, {ONLY, MTU}, {BTH_FIRST, MTU + 4}};

    (void)state;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        open_usual();
        request_read(1, 700);
        hear();
        responds(FIRST, bad[i].flags, bad[i].length);
        expect_failed(1, RDDP_WC_BAD_RESP_ERR);
        close_world();
    }
}

/* ROCE-REQ-14 */
static void reads_under_way(void **state)
{
    struct rddp_sge sge;

    (void)state;
    open_usual();
    for (uint64_t i = 0; i < 5; i++)
        request_read(i, 8);
    for (int i = 0; i < 4; i++)
        hear();
    hear_nothing();
    responds(FIRST, ONLY, 8);
    hear_message(FIRST + 4, BTH_READ_REQUEST, ONLY, 0);
    sge = piece_of(w.region, 0, 8);
    assert_int_equal(post(w.side, 9, RDDP_WR_SEND, RDDP_SEND_FENCE, &sge, 1), 0);
    hear_nothing();
    for (uint32_t i = 1; i < 5; i++)
        responds(FIRST + i, ONLY, 8);
    hear_message(FIRST + 5, BTH_SEND, ONLY, 8);
    close_world();
}

/* ROCE-REQ-16 */
static void local_errors(void **state)
{
    const struct rddp_send_wr late = {.wr_id = 3, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_sge sge;

    (void)state;
    open_usual();
    request_send(1, 5);
    sge = piece_of(w.region, 0, 600);
    sge.lkey ^= 0x800000;
    assert_int_equal(post(w.side, 2, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &sge, 1), 0);
    hear();
    rc_pair_emit(w.pair, &w.out, w.net.now_us);
    expect_wc(&w.side->send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    expect_failed(2, RDDP_WC_LOC_PROT_ERR);
    assert_int_equal(qp_post_send(&w.side->qp, &late), 0); /* is flushed now, not when the connection has ended */
    rc_pair_check(w.pair, w.net.now_us);
    expect_failed(3, RDDP_WC_WR_FLUSH_ERR);
    close_world();
}

static void post_inline(uint64_t wr_id)
{
    struct rddp_sge sge = {.addr = (uintptr_t) "octets", .length = 6};

    assert_int_equal(post(w.side, wr_id, RDDP_WR_SEND, RDDP_SEND_INLINE, &sge, 1), 0);
}

/* What has left without asking for an acknowledgement would be asked for when the next one can not leave. But that one
 * has failed here, and both are flushed: their places are the application's again. */
static void fails_behind_one_unasked(void **state)
{
    struct rddp_sge sge;

    (void)state;
    open_usual();
    post_inline(1);
    hear_message(FIRST, BTH_SEND, ONLY, 6);
    waits(100);
    acknowledges(FIRST, ACK);
    post_inline(2);
    hear_message(FIRST + 1, BTH_SEND, ONLY, 6);
    assert_false(w.said.flags & ASK);
    sge = piece_of(w.region, 0, 8);
    sge.lkey ^= 0x800000;
    assert_int_equal(post(w.side, 3, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1), 0);
    assert_false(rc_pair_emit(w.pair, &w.out, w.net.now_us));
    expect_wc(&w.side->send_cq, 2, RDDP_WC_WR_FLUSH_ERR);
    expect_failed(3, RDDP_WC_LOC_PROT_ERR);
    close_world();
}

/* The first PSN counts that is told when requests may be sent. What came before, and was noticed with another one that
 * is larger, acknowledges nothing. */
static void lower_first_psn(void **state)
{
    struct rddp_send_wr local = {.wr_id = 2, .opcode = RDDP_WR_LOCAL_INV, .send_flags = RDDP_SEND_SIGNALED};
    struct rc_requester_attr attr;

    (void)state;
    open_usual();
    says(packet(BTH_WRITE, ONLY, PEER, 1));
    attr = w.pair->attr.requester;
    attr.psn = 5;
    rc_pair_start(w.pair, &attr, 1);
    request_send(1, 5);
    local.invalidate_rkey = w.remote->key;
    assert_int_equal(qp_post_send(&w.side->qp, &local), 0);
    hear_message(5, BTH_SEND, ONLY, 5);
    hear_nothing();
    expect_quiet(&w.side->send_cq);
    close_world();
}

/* An acknowledgement that is due leaves before requests of ours, whoever's turn it is: with a queue of one request the
 * peer sends its next one when it sees our answer. */
static void acknowledges_first(void **state)
{
    (void)state;
    open_usual();
    for (uint32_t i = 0; i < 4; i++) {
        offer_receive(i, 10);
        says(packet(BTH_SEND, ONLY | ASK, PEER + i, 10));
        request_send(10 + i, 10);
        hear_ack(PEER + i, ACK, i + 1);
        hear_message((FIRST + i) & BTH_MASK24, BTH_SEND, ONLY, 10);
        if (i & 1) /* so that turns begin with either */
            hear_nothing();
    }
    close_world();
}

/* --- trains: packets of a message that differ in their PSNs ------------------------------------------------------ */

static void trains(void **state)
{
    (void)state;
    open_usual();
    request_send(1, 15 * MTU + 88);
    assert_int_equal(train(100), 0); /* the first packet has to leave before */
    hear_message(FIRST, BTH_SEND, BTH_FIRST, MTU);
    assert_int_equal(train(3), 3);
    expect_train(BTH_SEND, FIRST + 1, 3, MTU);
    assert_int_equal(train(100), 11);
    expect_train(BTH_SEND, FIRST + 4, 11, 4 * MTU);
    hear_message(FIRST + 15, BTH_SEND, BTH_LAST, 88);
    assert_true(w.said.flags & ASK);
    assert_int_equal(train(100), 0);
    acknowledges(FIRST + 4, aeth_nak(NAK_SEQUENCE));
    hear_message(FIRST + 4, BTH_SEND, 0, MTU);
    assert_int_equal(train(5), 5);
    expect_train(BTH_SEND, FIRST + 5, 5, 5 * MTU);
    assert_int_equal(w.pair->requester.counters.resent, 1 + 5);
    says(packet(BTH_WRITE, ONLY | ASK, PEER, 8));
    assert_int_equal(train(100), 0); /* the acknowledgement leaves before */
    hear_ack(PEER, ACK, 1);
    assert_int_equal(train(100), 5);
    hear_message(FIRST + 15, BTH_SEND, BTH_LAST, 88);
    acknowledges(FIRST + 15, ACK);
    expect_wc(&w.side->send_cq, 1, RDDP_WC_SUCCESS);
    close_world();
}

/* The packet that fills the window asks for an acknowledgement. */
static void train_and_window(void **state)
{
    struct rc_pair_attr attr = rc_net_attr();

    (void)state;
    attr.requester.window = 6;
    open_world(&attr);
    request_send(1, 16 * MTU);
    hear_message(FIRST, BTH_SEND, BTH_FIRST, MTU);
    assert_int_equal(train(100), 4);
    hear_message(FIRST + 5, BTH_SEND, 0, MTU);
    assert_true(w.said.flags & ASK);
    assert_int_equal(train(100), 0);
    hear_nothing();
    acknowledges(FIRST + 5, ACK);
    assert_int_equal(train(100), 5);
    close_world();
}

/* A large window is acknowledged in parts: the packets between those that ask can be a train. */
static void train_and_asks(void **state)
{
    struct rddp_sge sge[2];

    (void)state;
    open_usual();
    sge[0] = sge[1] = piece_of(w.region, 0, SPACE);
    assert_int_equal(post(w.side, 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, sge, 2), 0);
    hear_message(FIRST, BTH_SEND, BTH_FIRST, MTU);
    assert_int_equal(train(100), RC_ASK_MIN - 2);
    expect_train(BTH_SEND, FIRST + 1, RC_ASK_MIN - 2, MTU);
    hear_message(FIRST + RC_ASK_MIN - 1, BTH_SEND, 0, MTU);
    assert_true(w.said.flags & ASK);
    assert_int_equal(train(100), 2 * SPACE / MTU - RC_ASK_MIN - 1);
    hear_message(FIRST + 2 * SPACE / MTU - 1, BTH_SEND, BTH_LAST, MTU);
    close_world();
}

/* A region that is taken away is noticed when the next packet is built. */
static void train_without_region(void **state)
{
    (void)state;
    open_usual();
    request_send(1, 4 * MTU);
    hear_message(FIRST, BTH_SEND, BTH_FIRST, MTU);
    mr_remove(&w.net.engine.mrs, w.region);
    assert_int_equal(train(100), 0);
    assert_int_equal(w.side->qp.state, QP_READY);
    hear_nothing();
    expect_failed(1, RDDP_WC_LOC_PROT_ERR);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(sequence_nak),
        cmocka_unit_test(retries_exceeded),
        cmocka_unit_test(not_ready),
        cmocka_unit_test(refusals),
        cmocka_unit_test(refused_behind_a_full_cq),
        cmocka_unit_test(responses),
        cmocka_unit_test(response_lost),
        cmocka_unit_test(bad_responses),
        cmocka_unit_test(reads_under_way),
        cmocka_unit_test(local_errors),
        cmocka_unit_test(fails_behind_one_unasked),
        cmocka_unit_test(lower_first_psn),
        cmocka_unit_test(acknowledges_first),
        cmocka_unit_test(trains),
        cmocka_unit_test(train_and_window),
        cmocka_unit_test(train_without_region),
        cmocka_unit_test(train_and_asks),
    };

    return cmocka_run_group_tests_name("roce_pair", tests, NULL, NULL);
}
