/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_respond.c - what a queue pair of RoCE does with requests, packet by packet: the test plays its peer. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/rc_world.h"

/* ROCE-RSP-01 */
static void gap(void **state)
{
    (void)state;
    open_usual();
    offer_receive(1, 100);
    says(packet(BTH_SEND, ONLY | ASK, PEER + 1, 10));
    hear_ack(PEER, aeth_nak(NAK_SEQUENCE), 0);
    says(packet(BTH_SEND, ONLY | ASK, PEER + 2, 10));
    hear_nothing();
    says(packet(BTH_SEND, ONLY | ASK, PEER, 10));
    hear_ack(PEER, ACK, 1);
    expect_wc(&w.side->recv_cq, 1, RDDP_WC_SUCCESS);
    says(packet(BTH_SEND, ONLY | ASK, PEER + 2, 10)); /* another gap, another NAK */
    hear_ack(PEER + 1, aeth_nak(NAK_SEQUENCE), 1);
    close_world();
}

/* ROCE-RSP-02, ROCE-RSP-12 */
static void duplicates(void **state)
{
    (void)state;
    open_usual();
    offer_receive(1, 100);
    offer_receive(2, 100);
    says(packet(BTH_SEND, ONLY, PEER, 10));
    hear_nothing();
    assert_int_equal(rc_pair_deadline(w.pair), w.net.now_us + RC_ACK_DELAY_US);
    says(packet(BTH_SEND, ONLY, PEER + 1, 10));
    waits(RC_ACK_DELAY_US);
    hear_ack(PEER + 1, ACK, 2);
    hear_nothing();
    says(packet(BTH_SEND, ONLY, PEER, 10));
    hear_nothing();
    says(packet(BTH_SEND, ONLY | ASK, PEER + 1, 10));
    hear_ack(PEER + 1, ACK, 2);
    hear_nothing();
    says(packet(BTH_SEND, ONLY, PEER, 10));
    waits(RC_ACK_DELAY_US);
    hear_ack(PEER + 1, ACK, 2);
    expect_wc(&w.side->recv_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&w.side->recv_cq, 2, RDDP_WC_SUCCESS);
    expect_quiet(&w.side->recv_cq);
    close_world();
}

/* ROCE-RSP-03, ROCE-RSP-14 */
static void read_again(void **state)
{
    struct bth again;

    (void)state;
    open_usual();
    offer_receive(1, 100);
    says(packet(BTH_READ_REQUEST, ONLY, PEER, 0));
    assert_true(w.pair->responder.answer_head);
    hear_message(PEER, BTH_READ_RESPONSE, ONLY, 0);
    again = packet(BTH_READ_REQUEST, ONLY, PEER + 1, 0);
    again.dma_length = 600;
    says(again);
    says(packet(BTH_SEND, ONLY | ASK, PEER + 4, 10));
    hear_message(PEER + 1, BTH_READ_RESPONSE, BTH_FIRST, MTU);
    hear_message(PEER + 2, BTH_READ_RESPONSE, 0, MTU);
    hear_message(PEER + 3, BTH_READ_RESPONSE, BTH_LAST, 88);
    hear_ack(PEER + 4, ACK, 3);
    again.psn += 1; /* the rest of it */
    again.address += MTU;
    again.dma_length -= MTU;
    says(again);
    hear_message(PEER + 2, BTH_READ_RESPONSE, BTH_FIRST, MTU);
    assert_memory_equal(w.octets + BTH_OCTETS + AETH_OCTETS, w.region->base + MTU, MTU);
    hear_message(PEER + 3, BTH_READ_RESPONSE, BTH_LAST, 88);
    again.dma_length = 2000; /* of more than was asked for: silence */
    says(again);
    hear_nothing();
    close_world();
}

/* What still waits for its first response is not answered twice. */
static void read_twice(void **state)
{
    struct bth read;

    (void)state;
    open_usual();
    read = packet(BTH_READ_REQUEST, ONLY, PEER, 0);
    read.dma_length = 300;
    says(read);
    says(read);
    hear_message(PEER, BTH_READ_RESPONSE, BTH_FIRST, MTU);
    says(read);
    hear_message(PEER + 1, BTH_READ_RESPONSE, BTH_LAST, 300 - MTU);
    hear_nothing();
    close_world();
}

/* What may no longer be read in the middle is refused there: the requester has what was before. */
static void read_breaks_off(void **state)
{
    struct bth request;

    (void)state;
    open_usual();
    request = packet(BTH_READ_REQUEST, ONLY, PEER, 0);
    request.dma_length = 600;
    says(request);
    hear_message(PEER, BTH_READ_RESPONSE, BTH_FIRST, MTU);
    w.region->valid = false;
    hear_ack(PEER + 1, aeth_nak(NAK_REMOTE_ACCESS), 1);
    close_world();
}

static struct bth atomic(uint32_t psn, uint64_t add)
{
    struct bth b = packet(BTH_FETCH_ADD, ONLY, psn, 0);

    b.swap_or_add = add;
    return b;
}

/* ROCE-RSP-04, ROCE-RSP-11, ROCE-RSP-17 */
static void atomics(void **state)
{
    uint64_t was, now;
    struct bth b;

    (void)state;
    open_usual();
    memcpy(&was, w.region->base, 8);
    says(atomic(PEER, 5));
    hear_message(PEER, BTH_ATOMIC_ACKNOWLEDGE, ONLY, 0);
    assert_true(w.said.original == was);
    says(atomic(PEER, 5));
    hear_message(PEER, BTH_ATOMIC_ACKNOWLEDGE, ONLY, 0);
    assert_true(w.said.original == was);
    memcpy(&now, w.region->base, 8);
    assert_true(now == was + 5);
    for (uint32_t i = 1; i < 5; i++)
        says(atomic(PEER + i, 1));
    for (uint32_t i = 1; i < 5; i++)
        hear_message(PEER + i, BTH_ATOMIC_ACKNOWLEDGE, ONLY, 0);
    says(atomic(PEER, 5)); /* too old: its result is not kept any more */
    hear_nothing();
    w.region->start += 4; /* its octets lie at a multiple of 8, their addresses do not */
    b = atomic(PEER + 5, 1);
    says(b);
    hear_ack(PEER + 5, aeth_nak(NAK_INVALID_REQUEST), 5);
    assert_int_equal(w.side->qp.state, QP_ERROR);
    close_world();
}

static void too_many_reads(void **state)
{
    (void)state;
    open_usual();
    for (uint32_t i = 0; i < 5; i++)
        says(atomic(PEER + i, 1));
    hear_ack(PEER + 4, aeth_nak(NAK_INVALID_REQUEST), 4);
    close_world();
}

/* ROCE-RSP-05, ROCE-PKT-09, ROCE-RSP-09 */
static void out_of_turn(void **state)
{
    static const struct {
        enum bth_op op;
        unsigned flags[2];
        uint32_t length[2], total;
    } wrong[] = {
        {BTH_SEND, {0}, {MTU}, 0},                               /* a Middle without First */
        {BTH_SEND, {BTH_LAST}, {10}, 0},                         /* a Last without First */
        {BTH_SEND, {BTH_FIRST, BTH_FIRST}, {MTU, MTU}, 0},       /* a First inside */
        {BTH_SEND, {BTH_FIRST, ONLY}, {MTU, 4}, 0},              /* an Only inside */
        {BTH_SEND, {BTH_FIRST}, {MTU - 4}, 0},                   /* a short First */
        {BTH_SEND, {BTH_FIRST, 0}, {MTU, 100}, 0},               /* a short Middle */
        {BTH_SEND, {BTH_FIRST, BTH_LAST}, {MTU, 0}, 0},          /* an empty Last */
        {BTH_SEND, {ONLY}, {MTU + 4}, 0},                        /* a long Only */
        {BTH_WRITE, {BTH_FIRST, BTH_LAST}, {MTU, 10}, MTU + 9},  /* more than announced */
        {BTH_WRITE, {BTH_FIRST, BTH_LAST}, {MTU, 10}, MTU + 11}, /* fewer */
        {BTH_WRITE, {BTH_FIRST}, {MTU}, MTU},                    /* all of it, but not the Last */
        {BTH_WRITE, {ONLY}, {8}, 9},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint32_t good = wrong[i].length[1] || wrong[i].flags[1] ? 1 : 0;

        open_usual();
        offer_receive(1, SPACE);
        for (uint32_t n = 0; n <= good; n++) {
            struct bth b = packet(wrong[i].op, wrong[i].flags[n], PEER + n, wrong[i].length[n]);

            b.dma_length = wrong[i].total;
            says(b);
        }
        hear_ack(PEER + good, aeth_nak(NAK_INVALID_REQUEST), 0);
        hear_nothing();
        expect_wc(&w.side->recv_cq, 1, RDDP_WC_WR_FLUSH_ERR);
        close_world();
    }
}

/* ROCE-RSP-06 */
static void no_receive(void **state)
{
    struct bth write = packet(BTH_WRITE, ONLY | BTH_IMMEDIATE | ASK, PEER + 1, 20);

    (void)state;
    open_usual();
    write = packet(BTH_WRITE, ONLY | BTH_IMMEDIATE | ASK, PEER + 1, 20);
    write.immediate = 0x01020304;
    says(packet(BTH_SEND, ONLY | ASK, PEER, 10));
    says(write);
    hear_ack(PEER, AETH_RNR_NAK | 14, 0);
    hear_nothing();
    offer_receive(1, 100);
    says(packet(BTH_SEND, ONLY | ASK, PEER, 10));
    hear_ack(PEER, ACK, 1);
    expect_wc(&w.side->recv_cq, 1, RDDP_WC_SUCCESS);
    engine_remember(&w.net.engine);
    says(write);
    hear_ack(PEER + 1, AETH_RNR_NAK | 14, 1);
    engine_expect(&w.net.engine);
    offer_receive(2, 0);
    says(write);
    hear_ack(PEER + 1, ACK, 2);
    assert_int_equal(expect_wc(&w.side->recv_cq, 2, RDDP_WC_SUCCESS).byte_len, 20); /* ROCE-RSP-15 */
    assert_memory_equal(w.region->base, write.data, 20);
    close_world();
}

/* ROCE-RSP-07 */
static void too_long(void **state)
{
    (void)state;
    open_usual();
    offer_receive(1, 100);
    says(packet(BTH_SEND, ONLY, PEER, 101));
    hear_ack(PEER, aeth_nak(NAK_INVALID_REQUEST), 0);
    expect_wc(&w.side->recv_cq, 1, RDDP_WC_LOC_LEN_ERR);
    close_world();
}

/* ROCE-RSP-08: not one octet of a Write moves, whose end is outside. */
static void bad_keys(void **state)
{
    struct bth b;

    (void)state;
    for (int i = 0; i < 4; i++) {
        open_usual();
        b = packet(BTH_WRITE, BTH_FIRST, PEER, MTU);
        b.dma_length = i == 0 ? SPACE + 1 : SPACE;
        b.r_key = i == 1 ? w.remote->key : i == 2 ? 0x999 : b.r_key;
        b.address += i == 3;
        says(b);
        hear_ack(PEER, aeth_nak(NAK_REMOTE_ACCESS), 0);
        engine_expect(&w.net.engine);
        close_world();
    }
    open_usual();
    b = packet(BTH_WRITE, ONLY | ASK, PEER, 0); /* an empty one is not checked */
    b.r_key = 0x999;
    says(b);
    hear_ack(PEER, ACK, 1);
    b = packet(BTH_READ_REQUEST, ONLY, PEER + 1, 0);
    b.dma_length = SPACE + 1;
    says(b);
    hear_ack(PEER + 1, aeth_nak(NAK_REMOTE_ACCESS), 1);
    close_world();
}

/* ROCE-RSP-10 */
static void no_right(void **state)
{
    struct rc_pair_attr attr = rc_net_attr();

    (void)state;
    attr.access = RDDP_ACCESS_REMOTE_READ;
    open_world(&attr);
    says(packet(BTH_WRITE, ONLY, PEER, 8));
    hear_ack(PEER, aeth_nak(NAK_INVALID_REQUEST), 0);
    engine_expect(&w.net.engine);
    close_world();
}

/* ROCE-RSP-10: nor may a request be read that has the PSN of an old one. */
static void no_right_to_read_again(void **state)
{
    struct bth read;

    (void)state;
    open_usual();
    offer_receive(1, 100);
    says(packet(BTH_SEND, ONLY | ASK, PEER, 10));
    hear_ack(PEER, ACK, 1);
    read = packet(BTH_READ_REQUEST, ONLY, PEER, 0);
    read.dma_length = 100;
    says(read);
    hear_message(PEER, BTH_READ_RESPONSE, ONLY, 100);
    says(read);
    w.side->qp.attr.refused = RDDP_ACCESS_REMOTE_READ;
    hear_nothing();
    close_world();
}

/* ROCE-RSP-16 */
static void invalidates(void **state)
{
    struct bth b;

    (void)state;
    open_usual();
    offer_receive(1, 100);
    offer_receive(2, 100);
    b = packet(BTH_SEND, ONLY | BTH_INVALIDATE | ASK, PEER, 10);
    b.immediate = w.region->key;
    says(b);
    hear_ack(PEER, ACK, 1);
    assert_int_equal(expect_wc(&w.side->recv_cq, 1, RDDP_WC_SUCCESS).invalidated_rkey, w.region->key);
    says(packet(BTH_WRITE, ONLY, PEER + 1, 8));
    hear_ack(PEER + 1, aeth_nak(NAK_REMOTE_ACCESS), 1);
    close_world();
}

/* While other threads use the region nothing else is executed, and no NAK asks for what was put off. */
static void invalidates_late(void **state)
{
    struct epoch_reader readers[2] = {0};
    struct bth b;

    (void)state;
    open_usual();
    epochs_init(&w.net.engine.mrs.epochs, readers, 2);
    for (int i = 0; i < 2; i++)
        epoch_enter(&w.net.engine.mrs.epochs, &readers[i]);
    w.pair->life.reader = &readers[0];
    for (uint64_t i = 1; i <= 3; i++)
        offer_receive(i, 100);
    b = packet(BTH_SEND, ONLY | BTH_INVALIDATE, PEER, 10);
    b.immediate = w.region->key;
    says(b);
    says(packet(BTH_SEND, ONLY, PEER + 1, 10));
    says(packet(BTH_SEND, ONLY, PEER + 2, 10));
    waits(RC_ACK_DELAY_US);
    hear_ack(PEER, ACK, 1);
    hear_nothing();
    expect_quiet(&w.side->recv_cq);
    epoch_leave(&readers[1]);
    waits(LIFE_RESUME_US);
    expect_wc(&w.side->recv_cq, 1, RDDP_WC_SUCCESS);
    says(packet(BTH_SEND, ONLY, PEER + 1, 10));
    says(packet(BTH_SEND, ONLY | ASK, PEER + 2, 10));
    hear_ack(PEER + 2, ACK, 3);
    expect_wc(&w.side->recv_cq, 2, RDDP_WC_SUCCESS);
    expect_wc(&w.side->recv_cq, 3, RDDP_WC_SUCCESS);
    epoch_leave(&readers[0]);
    close_world();
}

/* --- without acknowledgements ----------------------------------------------------------------------------------------
 */

static void datagram(struct bth b)
{
    b.service = BTH_UC;
    says(b);
}

/* ROCE-RSP-18, ROCE-REQ-18, ROCE-PKT-05 */
static void unreliable(void **state)
{
    struct rc_pair_attr attr = rc_net_attr();

    (void)state;
    attr.service = BTH_UC;
    open_world(&attr);
    offer_receive(1, SPACE);
    offer_receive(2, SPACE);
    says(packet(BTH_SEND, ONLY, PEER, 10)); /* of another service */
    datagram(packet(BTH_SEND, BTH_FIRST, PEER, MTU));
    datagram(packet(BTH_SEND, BTH_LAST, PEER + 2, 10)); /* one is missing */
    expect_quiet(&w.side->recv_cq);
    datagram(packet(BTH_SEND, ONLY, PEER + 7, 30));
    assert_int_equal(expect_wc(&w.side->recv_cq, 1, RDDP_WC_SUCCESS).byte_len, 30);
    datagram(packet(BTH_SEND, BTH_FIRST, PEER + 8, MTU));
    datagram(packet(BTH_SEND, ONLY, PEER + 9, 31)); /* the message ends in the middle */
    assert_int_equal(expect_wc(&w.side->recv_cq, 2, RDDP_WC_SUCCESS).byte_len, 31);
    datagram(packet(BTH_SEND, ONLY, PEER + 10, 31)); /* without a receive: dropped */
    hear_nothing();
    request_send(3, 300);
    hear_message(FIRST, BTH_SEND, BTH_FIRST, MTU);
    expect_quiet(&w.side->send_cq);
    waits(1000000); /* there is no answer to wait for */
    hear_message(FIRST + 1, BTH_SEND, BTH_LAST, 44);
    hear_nothing();
    expect_wc(&w.side->send_cq, 3, RDDP_WC_SUCCESS);
    assert_int_equal(w.pair->life.state, CONN_READY);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gap),         cmocka_unit_test(duplicates),
        cmocka_unit_test(read_again),  cmocka_unit_test(read_twice),
        cmocka_unit_test(atomics),     cmocka_unit_test(too_many_reads),
        cmocka_unit_test(out_of_turn), cmocka_unit_test(no_receive),
        cmocka_unit_test(too_long),    cmocka_unit_test(bad_keys),
        cmocka_unit_test(no_right),    cmocka_unit_test(no_right_to_read_again),
        cmocka_unit_test(invalidates), cmocka_unit_test(invalidates_late),
        cmocka_unit_test(unreliable),  cmocka_unit_test(read_breaks_off),
    };

    return cmocka_run_group_tests_name("roce_respond", tests, NULL, NULL);
}
