/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_kept.c - what a queue pair of RoCE does with packets that arrive behind a gap: they wait, and are executed in
 * their turn. The peer is known to send only what is missing; roce_back.c has the others. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/rc_world.h"

enum { CELLS = 300, RECEIVES = 8, LATER = 200, ABSENT = 4242 };

static void open_cells(uint32_t cells)
{
    struct rc_pair_attr attr = rc_net_attr();

    open_keeping(&attr, cells);
    w.pair->responder.back.skips = true;
    for (uint64_t i = 1; i <= RECEIVES; i++)
        offer_receive(i, 100);
}

static void expect_received(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i <= to; i++)
        expect_wc(&w.side->recv_cq, i, RDDP_WC_SUCCESS);
    expect_quiet(&w.side->recv_cq);
}

static uint32_t kept(void)
{
    return CELLS - rc_pool_free(&w.net.pool);
}

static struct bth send_at(uint32_t psn)
{
    return packet(BTH_SEND, ONLY, psn, 10);
}

/* ROCE-RSP-01, ROCE-RSP-12: nothing is executed before its turn; one NAK, one acknowledgement of all. */
static void in_turn(void **state)
{
    (void)state;
    open_cells(CELLS);
    says(send_at(PEER + 1));
    hear_ack(PEER, aeth_nak(NAK_SEQUENCE), 0);
    says(send_at(PEER + 3));
    says(send_at(PEER + 3)); /* twice, behind the others */
    says(send_at(PEER + 2)); /* in another order */
    says(send_at(PEER + 2)); /* twice, before another */
    hear_nothing();
    expect_quiet(&w.side->recv_cq);
    assert_int_equal(kept(), 3);
    says(send_at(PEER));
    hear_ack(PEER + 3, ACK, 4);
    hear_nothing();
    expect_received(1, 4);
    assert_int_equal(kept(), 0);

    says(send_at(PEER + 1)); /* a duplicate: ROCE-RSP-02 */
    waits(RC_ACK_DELAY_US);
    hear_ack(PEER + 3, ACK, 4);
    says(packet(BTH_SEND, ONLY | ASK, PEER + 4, 10));
    hear_ack(PEER + 4, ACK, 5);
    expect_received(5, 5);
    close_world();
}

/* A gap that closes before its NAK has left draws none. */
static void closed_at_once(void **state)
{
    (void)state;
    open_cells(CELLS);
    says(send_at(PEER + 1));
    says(send_at(PEER));
    hear_ack(PEER + 1, ACK, 2);
    hear_nothing();
    expect_received(1, 2);
    close_world();
}

/* Each gap has its NAK, when a packet behind it comes that is not the next one. */
static void several_gaps(void **state)
{
    (void)state;
    open_cells(CELLS);
    says(send_at(PEER + 1));
    hear_ack(PEER, aeth_nak(NAK_SEQUENCE), 0);
    says(send_at(PEER + 3));
    says(send_at(PEER));
    hear_ack(PEER + 1, ACK, 2);
    hear_nothing();
    says(send_at(PEER + 4));
    hear_ack(PEER + 2, aeth_nak(NAK_SEQUENCE), 2);
    says(send_at(PEER + 2));
    hear_ack(PEER + 4, ACK, 5);
    expect_received(1, 5);
    assert_int_equal(w.pair->responder.gaps, 2);
    close_world();
}

/* ROCE-RSP-08: memory is untouched, and a key is looked up, when it is a packet's turn. */
static void judged_in_turn(void **state)
{
    uint8_t before[100];
    struct bth bad;

    (void)state;
    open_cells(CELLS);
    bad = packet(BTH_WRITE, ONLY | ASK, PEER + 2, 8);
    memcpy(before, w.region->base, sizeof(before));
    bad.r_key = ABSENT;
    says(packet(BTH_WRITE, ONLY | ASK, PEER + 1, 100));
    hear_ack(PEER, aeth_nak(NAK_SEQUENCE), 0);
    says(bad);
    says(send_at(PEER + 3));
    hear_nothing();
    assert_memory_equal(w.region->base, before, sizeof(before));
    assert_int_equal(w.side->qp.state, QP_READY);
    says(send_at(PEER));
    assert_memory_equal(w.region->base, packet(BTH_WRITE, 0, 0, 0).data, 100);
    hear_ack(PEER + 2, aeth_nak(NAK_REMOTE_ACCESS), 2);
    hear_nothing();
    assert_int_equal(expect_wc(&w.side->recv_cq, 1, RDDP_WC_SUCCESS).byte_len, 10);
    close_world();
}

/* ROCE-RSP-05, ROCE-PKT-09: the same for its opcode and length. */
static void out_of_sequence(void **state)
{
    (void)state;
    open_cells(CELLS);
    says(packet(BTH_SEND, BTH_LAST, PEER + 1, 10));
    hear_ack(PEER, aeth_nak(NAK_SEQUENCE), 0);
    says(send_at(PEER)); /* a whole message: no Last may follow */
    hear_ack(PEER + 1, aeth_nak(NAK_INVALID_REQUEST), 1);
    close_world();
}

/* ROCE-RSP-16: a key is invalidated in its turn, and what waits behind that need not come again: the thread that
 * executes it uses the region no more. */
static void invalidated_in_turn(void **state)
{
    struct epoch_reader reader[1] = {0};
    struct bth b;

    (void)state;
    open_cells(CELLS);
    epochs_init(&w.net.engine.mrs.epochs, reader, 1);
    epoch_enter(&w.net.engine.mrs.epochs, reader);
    w.pair->life.reader = reader;
    b = packet(BTH_SEND, ONLY | BTH_INVALIDATE, PEER + 1, 10);
    b.immediate = w.region->key;
    says(b);
    hear_ack(PEER, aeth_nak(NAK_SEQUENCE), 0);
    says(send_at(PEER + 2));
    says(packet(BTH_WRITE, ONLY, PEER + 3, 8));
    says(packet(BTH_WRITE, ONLY, PEER, 8));
    hear_ack(PEER + 3, aeth_nak(NAK_REMOTE_ACCESS), 3);
    assert_int_equal(expect_wc(&w.side->recv_cq, 1, RDDP_WC_SUCCESS).invalidated_rkey, w.region->key);
    expect_wc(&w.side->recv_cq, 2, RDDP_WC_SUCCESS);
    assert_memory_equal(w.region->base, packet(BTH_WRITE, 0, 0, 0).data, 8);
    epoch_leave(reader);
    close_world();
}

/* ROCE-RSP-06: a message that finds no receive comes again, those behind it need not. */
static void no_receive(void **state)
{
    struct rc_pair_attr attr = rc_net_attr();

    (void)state;
    open_keeping(&attr, CELLS);
    w.pair->responder.back.skips = true;
    offer_receive(1, 100);
    for (uint32_t i = 3; i; i--)
        says(send_at(PEER + i));
    hear_ack(PEER, aeth_nak(NAK_SEQUENCE), 0);
    says(send_at(PEER));
    hear_ack(PEER + 1, AETH_RNR_NAK | attr.responder.rnr_timer, 1);
    hear_nothing();
    expect_received(1, 1);
    offer_receive(2, 100);
    offer_receive(3, 100);
    says(send_at(PEER + 1));
    hear_ack(PEER + 3, AETH_RNR_NAK | attr.responder.rnr_timer, 3);
    offer_receive(4, 100);
    says(packet(BTH_SEND, ONLY | ASK, PEER + 3, 10));
    hear_ack(PEER + 3, ACK, 4);
    expect_received(2, 4);
    close_world();
}

/* ROCE-RSP-06: the waits of a peer that tries again only so often grow, and the last is the longest that there is. */
static void waits_grow(void **state)
{
    static const uint8_t codes[] = {12, 16, 20, 0, 0};
    struct rc_pair_attr attr = rc_net_attr();
    uint8_t tries = 4;

    (void)state;
    attr.responder.rnr_timer = codes[0];
    attr.responder.rnr_tries = tries;
    open_keeping(&attr, CELLS);
    for (unsigned i = 0; i < sizeof(codes); i++) {
        says(send_at(PEER));
        hear_ack(PEER, AETH_RNR_NAK | codes[i], 0);
    }
    offer_receive(1, 100);
    says(send_at(PEER));
    expect_received(1, 1);
    says(send_at(PEER + 1));
    hear_ack(PEER + 1, AETH_RNR_NAK | codes[0], 1); /* another message: from the start */
    w.pair->responder.attr.rnr_tries = 1;
    says(send_at(PEER + 1));
    hear_ack(PEER + 1, AETH_RNR_NAK, 1);
    w.pair->responder.attr.rnr_tries = 0;
    says(send_at(PEER + 1));
    hear_ack(PEER + 1, AETH_RNR_NAK | codes[0], 1);
    close_world();
}

/* ROCE-RSP-04, ROCE-RSP-14: Reads and atomics are answered in order, an atomic once. */
static void answers(void **state)
{
    struct bth read, add;
    uint64_t value;

    (void)state;
    open_cells(CELLS);
    read = packet(BTH_READ_REQUEST, ONLY, PEER + 1, 0);
    add = packet(BTH_FETCH_ADD, ONLY, PEER + 4, 0);
    read.dma_length = 3 * MTU;
    add.swap_or_add = 5;
    memcpy(&value, w.region->base, sizeof(value));
    says(add);
    hear_ack(PEER, aeth_nak(NAK_SEQUENCE), 0);
    says(read);
    says(send_at(PEER + 5));
    hear_nothing();
    says(send_at(PEER));
    hear_message(PEER + 1, BTH_READ_RESPONSE, BTH_FIRST, MTU);
    hear_message(PEER + 2, BTH_READ_RESPONSE, 0, MTU);
    hear_message(PEER + 3, BTH_READ_RESPONSE, BTH_LAST, MTU);
    hear_message(PEER + 4, BTH_ATOMIC_ACKNOWLEDGE, ONLY, 0);
    assert_int_equal(w.said.original, value);
    hear_ack(PEER + 5, ACK, 4);
    says(add); /* a duplicate */
    hear_message(PEER + 4, BTH_ATOMIC_ACKNOWLEDGE, ONLY, 0);
    assert_int_equal(w.said.original, value);
    assert_memory_equal(w.region->base, &(uint64_t){value + 5}, 8);
    hear_nothing();
    close_world();
}

/* Packets at PEER + from, and so on, until that many were kept or `most` came. */
static uint32_t keeps_from(uint32_t from, uint32_t most)
{
    uint32_t count = 0;

    while (count < most) {
        says(send_at(PEER + from + count));
        if (kept() == count)
            break;
        count++;
    }
    return count;
}

static void limits(void **state)
{
    struct bth longer;

    (void)state;
    open_cells(CELLS);
    assert_int_equal(keeps_from(1, LATER + RC_KEEP_SPAN), RC_KEEP_SPAN);
    close_world();

    open_cells(CELLS);
    assert_int_equal(keeps_from(RC_KEEP_HOLE, 1), 1);
    says(send_at(PEER + 2 * RC_KEEP_HOLE + 1)); /* as many are missing in front of this one */
    assert_int_equal(kept(), 2);
    says(send_at(PEER + 3 * RC_KEEP_HOLE + 3));
    assert_int_equal(kept(), 2);
    close_world();

    open_cells(CELLS);
    assert_int_equal(keeps_from(RC_KEEP_HOLE + 1, 1), 0);
    longer = packet(BTH_SEND, BTH_FIRST, PEER + 1, MTU + 1);
    says(longer);
    assert_int_equal(kept(), 0);
    longer.length = MTU;
    says(longer);
    assert_int_equal(kept(), 1);
    close_world();
}

/* The PSNs that a Read takes are no hole. */
static void read_is_no_hole(void **state)
{
    struct bth read;

    (void)state;
    open_cells(CELLS);
    read = packet(BTH_READ_REQUEST, ONLY, PEER + 1, 0);
    read.dma_length = 3 * RC_KEEP_HOLE * MTU;
    says(read);
    says(send_at(PEER + 1 + 3 * RC_KEEP_HOLE));
    assert_int_equal(kept(), 2);
    close_world();
}

/* Whoever finds no place drops, as the specification has it: the peer sends all of it again. */
static void exhausted(void **state)
{
    (void)state;
    open_cells(2);
    for (uint32_t i = 1; i <= 4; i++)
        says(send_at(PEER + i));
    hear_ack(PEER, aeth_nak(NAK_SEQUENCE), 0);
    assert_int_equal(rc_pool_free(&w.net.pool), 0);
    says(send_at(PEER));
    hear_ack(PEER + 2, ACK, 3);
    says(send_at(PEER + 4));
    hear_ack(PEER + 3, aeth_nak(NAK_SEQUENCE), 3);
    assert_int_equal(rc_pool_free(&w.net.pool), 1);
    says(send_at(PEER + 3));
    hear_ack(PEER + 4, ACK, 5);
    expect_received(1, 5);
    close_world();
}

static bool keeps(struct rc_kept *kept, uint64_t position)
{
    const struct bth b = {.op = BTH_SEND};

    return rc_kept_put(kept, &b, position, PEER, MTU);
}

/* A queue pair whose peer says no more gives way to those that lose packets, when as many were to be kept as there are
 * places; none gives way to itself, nor to one that keeps packets as often. */
static void silent_gives_way(void **state)
{
    struct rc_kept silent = {.pool = &w.net.pool}, other = {.pool = &w.net.pool};
    void *memory = malloc(rc_pool_size(4));

    (void)state;
    assert_non_null(memory);
    rc_pool_init(&w.net.pool, memory, 4);
    assert_true(keeps(&other, PEER + 1));
    for (uint32_t i = 1; i <= 3; i++)
        assert_true(keeps(&silent, PEER + i));
    for (uint32_t i = 0; i < 4; i++)
        assert_false(keeps(&other, PEER + 2));
    assert_true(keeps(&other, PEER + 2));
    assert_null(rc_kept_at(&silent, PEER + 1));
    assert_int_equal(rc_pool_free(&w.net.pool), 2);

    assert_true(keeps(&silent, PEER + 1));
    assert_true(keeps(&other, PEER + 3));
    for (uint32_t i = 0; i < 3; i++)
        assert_false(keeps(&other, PEER + 4 + i));
    assert_true(keeps(&other, PEER + 4));
    for (uint32_t i = 0; i < 100; i++)
        assert_false(keeps(&other, PEER + 5 + i % 10));
    for (uint32_t i = 1; i <= 4; i++)
        assert_non_null(rc_kept_at(&other, PEER + i));
    rc_kept_clear(&other);
    assert_int_equal(rc_pool_free(&w.net.pool), 4);
    free(memory);
}

/* ROCE-RSP-18: an unreliable connection keeps nothing. */
static void unreliable(void **state)
{
    struct rc_pair_attr attr = rc_net_attr();
    struct bth b;

    (void)state;
    attr.service = BTH_UC;
    open_keeping(&attr, CELLS);
    b = send_at(PEER + 1);
    b.service = BTH_UC;
    offer_receive(1, 100);
    offer_receive(2, 100);
    says(b);
    expect_received(1, 1);
    assert_int_equal(kept(), 0);
    close_world();
}

/* A queue pair that ends gives back what it kept: close_world() looks. */
static void ends(void **state)
{
    (void)state;
    open_cells(CELLS);
    says(send_at(PEER + 1));
    says(send_at(PEER + 2));
    says(packet(BTH_SEND, BTH_LAST, PEER, 10));
    hear();
    says(send_at(PEER));
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_turn),         cmocka_unit_test(closed_at_once),      cmocka_unit_test(several_gaps),
        cmocka_unit_test(judged_in_turn),  cmocka_unit_test(out_of_sequence),     cmocka_unit_test(no_receive),
        cmocka_unit_test(waits_grow),      cmocka_unit_test(invalidated_in_turn), cmocka_unit_test(answers),
        cmocka_unit_test(limits),          cmocka_unit_test(exhausted),           cmocka_unit_test(silent_gives_way),
        cmocka_unit_test(read_is_no_hole), cmocka_unit_test(unreliable),          cmocka_unit_test(ends),
    };

    return cmocka_run_group_tests_name("roce_kept", tests, NULL, NULL);
}
