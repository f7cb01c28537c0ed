/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_trains.c - trains of a queue pair of RoCE: packets of a response that differ in their PSNs, built as one. The
 * test plays the peer. */
#include "tests/lib/rc_world.h"

static struct bth asks_for(uint32_t psn, uint32_t offset, uint32_t length)
{
    struct bth b = packet(BTH_READ_REQUEST, ONLY, psn, 0);

    b.address += offset;
    b.dma_length = length;
    return b;
}

static void response_trains(void **state)
{
    (void)state;
    open_usual();
    offer_receive(1, 100);
    says(asks_for(PEER, 0, 15 * MTU + 88));
    says(packet(BTH_SEND, ONLY | ASK, PEER + 16, 10));
    assert_int_equal(train(100), 0); /* the first packet has to leave before */
    hear_message(PEER, BTH_READ_RESPONSE, BTH_FIRST, MTU);
    assert_int_equal(train(3), 3);
    expect_train(BTH_READ_RESPONSE, PEER + 1, 3, MTU);
    hear_message(PEER + 4, BTH_READ_RESPONSE, 0, MTU);
    assert_int_equal(train(100), 10);
    expect_train(BTH_READ_RESPONSE, PEER + 5, 10, 5 * MTU);
    assert_int_equal(train(100), 0);
    hear_message(PEER + 15, BTH_READ_RESPONSE, BTH_LAST, 88);
    assert_memory_equal(w.octets + BTH_OCTETS + AETH_OCTETS, w.region->base + 15 * MTU, 88);
    assert_int_equal(w.side->qp.tx_octets, 15 * MTU + 88);
    assert_int_equal(train(100), 0); /* the acknowledgement is next */
    hear_ack(PEER + 16, ACK, 2);

    says(asks_for(PEER + 4, 4 * MTU, 11 * MTU + 88)); /* from the middle on, again */
    hear_message(PEER + 4, BTH_READ_RESPONSE, BTH_FIRST, MTU);
    assert_int_equal(train(100), 10);
    expect_train(BTH_READ_RESPONSE, PEER + 5, 10, 5 * MTU);
    hear_message(PEER + 15, BTH_READ_RESPONSE, BTH_LAST, 88);
    assert_int_equal(train(100), 0);
    hear_nothing();
    close_world();
}

/* Trains of both in turn: neither waits for all of the other. The response alone would leave in longer ones. */
static void trains_in_turn(void **state)
{
    uint32_t answered = 0, asked = 0, turns = 0;

    (void)state;
    open_usual();
    request_send(1, SPACE);
    request_send(2, SPACE);
    request_send(3, SPACE);
    w.region = engine_region(&w.net.engine, 3 * SPACE, ALL_ACCESS);
    says(asks_for(PEER, 0, 3 * SPACE));
    while (rc_pair_emit(w.pair, &w.out, w.net.now_us)) {
        bool is_response = bth_is_answer(w.out.head);
        uint32_t n = 1 + train(100);

        assert_true(n <= 1 + 16);
        answered += is_response ? n : 0;
        asked += is_response ? 0 : n;
        turns++;
        assert_true(answered < asked + 34 && asked < answered + 34);
    }
    assert_int_equal(answered, 3 * SPACE / MTU);
    assert_int_equal(asked, 3 * SPACE / MTU);
    assert_true(turns < 24);
    close_world();
}

/* A region that is taken away is noticed when the next packet is built: the requester has what was before. */
static void response_train_without_region(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        open_usual();
        says(asks_for(PEER, 0, 4 * MTU));
        if (again) {
            while (rc_pair_emit(w.pair, &w.out, w.net.now_us))
                ;
            says(asks_for(PEER, 0, 4 * MTU));
        }
        hear_message(PEER, BTH_READ_RESPONSE, BTH_FIRST, MTU);
        w.region->valid = false;
        assert_int_equal(train(100), 0);
        assert_int_equal(w.side->qp.state, QP_READY);
        if (again)
            hear_nothing();
        else
            hear_ack(PEER + 1, aeth_nak(NAK_REMOTE_ACCESS), 1);
        close_world();
    }
}

/* Nor is any of it sent when the queue pair loses the right. */
static void response_train_without_right(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        open_usual();
        says(asks_for(PEER, 0, 4 * MTU));
        if (again) {
            while (rc_pair_emit(w.pair, &w.out, w.net.now_us))
                ;
            says(asks_for(PEER, 0, 4 * MTU));
        }
        hear_message(PEER, BTH_READ_RESPONSE, BTH_FIRST, MTU);
        w.side->qp.attr.refused = RDDP_ACCESS_REMOTE_READ;
        assert_int_equal(train(100), 0);
        close_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(response_trains),
        cmocka_unit_test(trains_in_turn),
        cmocka_unit_test(response_train_without_region),
        cmocka_unit_test(response_train_without_right),
    };

    return cmocka_run_group_tests_name("roce_trains", tests, NULL, NULL);
}
