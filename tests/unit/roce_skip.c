/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_skip.c - a queue pair of RoCE learns whether its peer keeps what arrives behind a gap, and sends again what the
 * peer lacks (ROCE-REQ-09). The test plays the peer. */
#include "tests/lib/rc_world.h"

#include <string.h>

#include "roce/psn.h"

/* The first message, of which the second packet is lost, and the next one. */
enum { LONG = 8, GAP = FIRST + 1, NEXT = FIRST + LONG, MORE = 12 };

static const struct rc_skip *knowledge(void)
{
    return &w.pair->requester.skip;
}

static void naks(uint32_t psn)
{
    acknowledges(psn, aeth_nak(NAK_SEQUENCE));
}

/* This many packets are under way, of messages of EACH packets and a last one. */
static void open_with(uint32_t packets)
{
    enum { EACH = 15 };
    struct rc_pair_attr attr = rc_net_attr();

    attr.requester.timeout_us = 500000;
    open_world(&attr);
    for (uint32_t rest = packets, i = 1; rest; rest -= rest < EACH ? rest : EACH, i++)
        request_send(i, (rest < EACH ? rest : EACH) * MTU);
    for (uint32_t i = 0; i < packets; i++)
        assert_int_equal(hear()->psn, (FIRST + i) & BTH_MASK24);
    hear_nothing();
}

/* The first gap is answered as the specification has it, but what the peer acknowledges is not sent again. */
static void learn(void)
{
    naks(GAP);
    hear_message(GAP, BTH_SEND, 0, MTU);
    assert_false(knowledge()->keeps);
    acknowledges(NEXT - 1, ACK);
    assert_true(knowledge()->keeps);
    hear_nothing();
    expect_wc(&w.side->send_cq, 1, RDDP_WC_SUCCESS);
}

/* A peer that is known to keep packets has got a message of MORE packets from NEXT on, but for some. */
static void open_knowing(void)
{
    open_with(LONG);
    learn();
    request_send(2, MORE * MTU);
    for (uint32_t i = 0; i < MORE; i++)
        hear();
    hear_nothing();
}

static void hear_asking(uint32_t psn)
{
    assert_int_equal(hear()->psn, psn & BTH_MASK24);
    assert_true(w.said.flags & ASK);
}

/* ROCE-REQ-05: what it lacks, with the question what it has; then what is new. */
static void one_gap(void **state)
{
    (void)state;
    open_knowing();
    naks(NEXT + 2);
    hear_asking(NEXT + 2);
    hear_nothing();
    naks(NEXT + 2); /* once for each gap */
    hear_nothing();
    assert_true(knowledge()->keeps);
    request_send(3, 8);
    hear_message(NEXT + MORE, BTH_SEND, ONLY, 8);
    acknowledges(NEXT + MORE, ACK);
    hear_nothing();
    expect_wc(&w.side->send_cq, 2, RDDP_WC_SUCCESS);
    expect_wc(&w.side->send_cq, 3, RDDP_WC_SUCCESS);
    assert_int_equal(w.pair->requester.counters.resent, 2);
    close_world();
}

static uint32_t round_trips(void)
{
    return w.pair->requester.rtt.samples;
}

/* A NAK tells how long a round trip was, but not while the peer is sent what it lacks: the packet behind the next gap
 * had come long before. */
static void naks_tell_round_trips(void **state)
{
    (void)state;
    open_with(LONG);
    naks(FIRST); /* which acknowledges nothing, as those below */
    assert_int_equal(round_trips(), 1);
    close_world();

    open_knowing();
    assert_int_equal(round_trips(), 1);
    naks(NEXT);
    assert_int_equal(round_trips(), 2);
    hear_asking(NEXT);
    naks(NEXT + 7);
    assert_int_equal(round_trips(), 2);
    close_world();
}

/* An acknowledgement that ends before the last packet names the next one that is missing. */
static void another_gap(void **state)
{
    (void)state;
    open_knowing();
    naks(NEXT + 2);
    hear_asking(NEXT + 2);
    acknowledges(NEXT + 6, ACK);
    hear_asking(NEXT + 7); /* five came, and five are left */
    hear_nothing();
    acknowledges(NEXT + MORE - 1, ACK);
    expect_wc(&w.side->send_cq, 2, RDDP_WC_SUCCESS);
    hear_nothing();
    close_world();
}

/* If they lie close together all of the rest is sent again. */
static void many_gaps(void **state)
{
    (void)state;
    open_knowing();
    naks(NEXT + 2);
    hear_asking(NEXT + 2);
    acknowledges(NEXT + 5, ACK);
    for (uint32_t i = 6; i < MORE; i++) /* four came, and six are left */
        assert_int_equal(hear()->psn, (NEXT + i) & BTH_MASK24);
    hear_nothing();
    assert_true(knowledge()->keeps);
    close_world();
}

/* A peer that keeps no more, or never did, is sent everything behind a gap, as from the start. */
static void unlearn(void **state)
{
    (void)state;
    open_knowing();
    naks(NEXT + 2);
    hear_asking(NEXT + 2);
    acknowledges(NEXT + 2, ACK);
    assert_false(knowledge()->keeps);
    for (uint32_t i = 3; i < MORE; i++)
        assert_int_equal(hear()->psn, (NEXT + i) & BTH_MASK24);
    naks(NEXT + 5);
    for (uint32_t i = 5; i < MORE; i++)
        assert_int_equal(hear()->psn, (NEXT + i) & BTH_MASK24);
    hear_nothing();
    close_world();
}

/* What a peer does is tried, if new packets follow, which may show it. */
static void tried(void **state)
{
    (void)state;
    open_with(RC_WINDOW_FIRST / 2);
    naks(FIRST);
    hear_asking(FIRST);
    assert_false(knowledge()->keeps);
    acknowledges(FIRST + 3, ACK);
    assert_true(knowledge()->keeps);
    close_world();

    open_with(RC_WINDOW_FIRST / 2 - 1); /* few are under way, and none waits: no more will follow */
    naks(FIRST);
    for (uint32_t i = 0; i < RC_WINDOW_FIRST / 2 - 1; i++)
        assert_int_equal(hear()->psn, (FIRST + i) & BTH_MASK24);
    close_world();

    open_with(0); /* the same, but more waits */
    request_send(1, LONG * MTU);
    hear();
    hear();
    naks(FIRST);
    hear_asking(FIRST);
    assert_int_equal(hear()->psn, (FIRST + 2) & BTH_MASK24);
    close_world();

    open_with(RC_WINDOW_FIRST / 2); /* late, and not lost: nothing is learned */
    naks(FIRST);
    acknowledges(FIRST + 3, ACK);
    assert_false(knowledge()->keeps);
    close_world();
}

/* Of a peer that keeps nothing each try costs a round trip: there are a few. */
static void in_vain(void **state)
{
    uint32_t gap = FIRST;

    (void)state;
    open_with(RC_WINDOW_FIRST);
    for (uint32_t i = 0; i < RC_VAIN; i++, gap += 2) {
        naks(gap);
        hear_asking(gap);
        hear_nothing();
        acknowledges(gap, ACK);
        assert_int_equal(hear()->psn, (gap + 1) & BTH_MASK24);
    }
    naks(gap);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(hear()->psn, (gap + i) & BTH_MASK24);
    close_world();
}

/* Sends what may leave. Returns the number of packets. */
static uint32_t sends(struct rc_requester *q, struct rc_outgoing *out)
{
    uint32_t count = 0;

    while (rc_requester_next(q, out, 1))
        count++;
    return count;
}

/* Not for all time: where packets are lost two by two, one that keeps them looks like that. */
static void tried_again(void **state)
{
    static struct rc_request ring[1];
    const struct rc_requester_attr attr = {.mtu = MTU, .timeout_us = 1000000, .retries = 7};
    struct rc_requester q;
    struct rc_outgoing out;

    (void)state;
    rc_requester_init(&q, &attr, ring, 1);
    q.skip.vain = RC_VAIN;
    rc_requester_add(&q, RC_MESSAGE, 2 * RC_WINDOW_FIRST * MTU, 0, RC_ASK_ALWAYS);
    for (uint32_t gaps = RC_VAIN; gaps < RC_VAIN_GAPS; gaps++) {
        assert_true(sends(&q, &out) > 0);
        rc_requester_acknowledged(&q, psn_wire(q.una + 1), aeth_nak(NAK_SEQUENCE), 1);
        assert_false(q.skip.due);
    }
    assert_true(sends(&q, &out) > 0);
    rc_requester_acknowledged(&q, psn_wire(q.una + 1), aeth_nak(NAK_SEQUENCE), 1);
    assert_true(q.skip.due);
}

/* What was sent again may be acknowledged by any peer: nothing is learned. */
static void not_learned(void **state)
{
    (void)state;
    open_with(LONG);
    naks(GAP);
    for (uint32_t i = 0; i < 3; i++)
        hear_message(GAP + i, BTH_SEND, 0, MTU);
    acknowledges(GAP + 2, ACK);
    assert_false(knowledge()->keeps);
    naks(GAP + 3);
    acknowledges(GAP + 3, ACK); /* it was late, and nothing was sent again */
    assert_false(knowledge()->keeps);
    for (uint32_t i = 4; GAP + i < NEXT; i++)
        assert_int_equal(hear()->psn, (GAP + i) & BTH_MASK24);
    hear_nothing();
    close_world();
}

/* After a time-out, packets that were acknowledged beyond those sent again had been late: that says nothing either. */
static void timed_out(void **state)
{
    (void)state;
    open_with(LONG);
    waits(RC_RTO_FIRST_US);
    hear();
    acknowledges(NEXT - 1, ACK);
    assert_false(knowledge()->keeps);
    assert_int_equal(w.pair->requester.counters.undone, 1);
    close_world();

    open_knowing(); /* what is sent again is lost, too: back to the start */
    naks(NEXT + 2);
    hear_asking(NEXT + 2);
    waits(RC_RTO_FIRST_US);
    hear_message(NEXT + 2, BTH_SEND, 0, MTU);
    hear_message(NEXT + 3, BTH_SEND, 0, MTU);
    hear_nothing();
    acknowledges(NEXT + MORE - 1, ACK);
    expect_wc(&w.side->send_cq, 2, RDDP_WC_SUCCESS);
    close_world();
}

/* The packet comes, late, before it was sent again. */
static void late(void **state)
{
    (void)state;
    open_knowing();
    naks(NEXT + 2);
    acknowledges(NEXT + 4, ACK);
    hear_nothing();
    request_send(3, 8);
    hear_message(NEXT + MORE, BTH_SEND, ONLY, 8);
    close_world();
}

/* ROCE-REQ-10: a receiver that is not ready is sent everything again. */
static void not_ready(void **state)
{
    (void)state;
    open_knowing();
    naks(NEXT + 2);
    hear_asking(NEXT + 2);
    acknowledges(NEXT + 4, AETH_RNR_NAK | 1);
    waits(rc_rnr_us(1));
    for (uint32_t i = 4; i < MORE; i++)
        assert_int_equal(hear()->psn, (NEXT + i) & BTH_MASK24);
    close_world();
}

/* A Read is asked for again with all of its PSNs, and nothing of what was posted behind it. */
static void read_lost(void **state)
{
    (void)state;
    open_knowing();
    acknowledges(NEXT + MORE - 1, ACK);
    request_read(3, 3 * MTU);
    request_send(4, 2 * MTU);
    hear_message(NEXT + MORE, BTH_READ_REQUEST, ONLY, 0);
    hear_message(NEXT + MORE + 3, BTH_SEND, BTH_FIRST, MTU);
    hear_message(NEXT + MORE + 4, BTH_SEND, BTH_LAST, MTU);
    naks(NEXT + MORE);
    hear_message(NEXT + MORE, BTH_READ_REQUEST, ONLY, 0);
    hear_nothing();
    close_world();
}

/* A gap behind responses that were lost: both are sent again, and what is between. */
static void responses_lost(void **state)
{
    (void)state;
    open_knowing();
    acknowledges(NEXT + MORE - 1, ACK);
    request_read(3, 3 * MTU);
    request_send(4, 3 * MTU);
    hear_message(NEXT + MORE, BTH_READ_REQUEST, ONLY, 0);
    for (uint32_t i = 3; i < 6; i++)
        assert_int_equal(hear()->psn, (NEXT + MORE + i) & BTH_MASK24);
    naks(NEXT + MORE + 4);
    hear_message(NEXT + MORE, BTH_READ_REQUEST, ONLY, 0);
    for (uint32_t i = 3; i < 6; i++)
        assert_int_equal(hear()->psn, (NEXT + MORE + i) & BTH_MASK24);
    hear_nothing();
    close_world();
}

/* No packet of a train leaves before the lost one. */
static void no_train(void **state)
{
    (void)state;
    open_knowing();
    request_send(3, MORE * MTU);
    hear();
    naks(NEXT + 2);
    assert_int_equal(train(100), 0);
    hear_asking(NEXT + 2);
    hear_message(NEXT + MORE + 1, BTH_SEND, 0, MTU);
    assert_true(train(100) > 0);
    close_world();
}

/* As many packets may follow the lost one as the window has, if the peer can keep them. What it cannot have kept is
 * sent again. */
static uint32_t follow_a_gap(uint32_t window, uint64_t *from)
{
    static struct rc_request ring[1];
    const struct rc_requester_attr attr = {.mtu = MTU, .timeout_us = 1000000, .retries = 7, .window = window};
    struct rc_requester q;
    struct rc_outgoing out;
    uint32_t count;

    rc_requester_init(&q, &attr, ring, 1);
    q.congestion.window = window;
    q.skip.keeps = true;
    rc_requester_add(&q, RC_MESSAGE, UINT32_C(8) * RC_WINDOW_MAX * MTU, 0, RC_ASK_ALWAYS);
    assert_int_equal(sends(&q, &out), window);
    rc_requester_acknowledged(&q, psn_wire(q.una), aeth_nak(NAK_SEQUENCE), 1);
    assert_true(rc_requester_next(&q, &out, 1));
    assert_int_equal(out.position, q.una);
    *from = q.next - q.una;
    count = sends(&q, &out);
    assert_true(out.position < q.una + RC_KEEP_SPAN + 1 || *from == RC_KEEP_SPAN + 1);
    return count;
}

static void windows(void **state)
{
    uint64_t from;

    (void)state;
    assert_int_equal(follow_a_gap(64, &from), 32); /* without round trips the window is halved */
    assert_int_equal(from, 64);
    assert_int_equal(follow_a_gap(200, &from), RC_KEEP_SPAN + 1 - 200);
    assert_int_equal(from, 200);
    assert_int_equal(follow_a_gap(1000, &from), 500 - RC_KEEP_SPAN - 1);
    assert_int_equal(from, RC_KEEP_SPAN + 1);
}

/* A Read of that many packets, and a message of three, in this order or the other: the first packet of the first is
 * lost. */
static void lose_first_of(struct rc_requester *q, enum rc_kind first, uint32_t packets)
{
    static struct rc_request ring[2];
    const struct rc_requester_attr attr = {.mtu = MTU, .timeout_us = 1000000, .retries = 7};
    struct rc_outgoing out;

    rc_requester_init(q, &attr, ring, 2);
    q->congestion.window = 8 * RC_KEEP_SPAN;
    q->skip.keeps = true;
    for (uint32_t name = 0; name < 2; name++) {
        enum rc_kind kind = name ? RC_READ + RC_MESSAGE - first : first;

        rc_requester_add(q, kind, (kind == RC_READ ? packets : 3) * MTU, name, RC_ASK_ALWAYS);
    }
    assert_int_equal(sends(q, &out), 4);
    rc_requester_acknowledged(q, psn_wire(q->una), aeth_nak(NAK_SEQUENCE), 1);
    assert_true(rc_requester_next(q, &out, 1));
    assert_int_equal(out.position, q->una);
}

/* The Read is asked for again once, then comes what is behind it; or all of the Read that was not kept whole. */
static void long_read(void **state)
{
    struct rc_requester q;
    struct rc_outgoing out;

    (void)state;
    lose_first_of(&q, RC_READ, 2 * RC_KEEP_SPAN);
    assert_true(rc_requester_next(&q, &out, 1));
    assert_int_equal(out.name, 1);
    assert_true(out.first);
    assert_int_equal(sends(&q, &out), 2);

    lose_first_of(&q, RC_MESSAGE, 2 * RC_KEEP_SPAN);
    assert_true(rc_requester_next(&q, &out, 1));
    assert_int_equal(out.name, 1);
    assert_int_equal(out.length, 2 * RC_KEEP_SPAN * MTU);
    assert_int_equal(sends(&q, &out), 0);
}

/* A Read that is sent again alone is one packet: its responses show nothing of what lies behind it. */
static void read_alone(void **state)
{
    struct rc_requester q;
    uint32_t offset;

    (void)state;
    lose_first_of(&q, RC_READ, LONG);
    q.skip.keeps = false;
    for (uint32_t i = 0; i < LONG; i++) {
        const struct bth b = {.op = BTH_READ_RESPONSE,
                              .flags = (i ? 0u : BTH_FIRST) | (i + 1 < LONG ? 0u : BTH_LAST),
                              .psn = psn_wire(q.una),
                              .length = MTU};

        assert_true(rc_requester_expects(&q, &b, &offset, 1));
        rc_requester_took(&q, 1);
    }
    assert_false(q.skip.keeps);
    rc_requester_acknowledged(&q, psn_wire(q.una), aeth_nak(NAK_SEQUENCE), 1);
    assert_int_equal(q.skip.vain, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naks_tell_round_trips),
        cmocka_unit_test(one_gap),
        cmocka_unit_test(another_gap),
        cmocka_unit_test(many_gaps),
        cmocka_unit_test(unlearn),
        cmocka_unit_test(not_learned),
        cmocka_unit_test(timed_out),
        cmocka_unit_test(late),
        cmocka_unit_test(not_ready),
        cmocka_unit_test(read_lost),
        cmocka_unit_test(no_train),
        cmocka_unit_test(windows),
        cmocka_unit_test(long_read),
        cmocka_unit_test(read_alone),
        cmocka_unit_test(responses_lost),
        cmocka_unit_test(tried),
        cmocka_unit_test(in_vain),
        cmocka_unit_test(tried_again),
    };

    return cmocka_run_group_tests_name("roce_skip", tests, NULL, NULL);
}
