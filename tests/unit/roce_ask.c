/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_ask.c - which messages of a queue pair of RoCE ask for an acknowledgement, and when those do that did not. */
#include "tests/lib/rc_world.h"

#include "roce/psn.h"

enum {
    TRIP_US = 100,
    OCTETS = 8,
    LATE_MAX = 8,
    LOCAL_ID = 99,
    SIGNALLED = RDDP_SEND_SIGNALED,
    INLINE = RDDP_SEND_INLINE
};

static uint64_t posted; /* messages */

static const struct rc_requester *requester(void)
{
    return &w.pair->requester;
}

static void write_octets(unsigned flags, uint32_t octets)
{
    struct rddp_sge sge = piece_of(w.region, 0, octets);

    assert_int_equal(post_remote(w.side, ++posted, RDDP_WR_RDMA_WRITE, flags, &sge, 1, 77, 0x1000), 0);
}

/* The packet of message `number` is the next one. Returns whether it asks. */
static bool hears(uint64_t number)
{
    hear_message(FIRST + (uint32_t)number - 1, BTH_WRITE, ONLY, OCTETS);
    return w.said.flags & ASK;
}

/* Posts one that need not be acknowledged at once. Returns whether it asks all the same. */
static bool asks_at_once(void)
{
    write_octets(INLINE, OCTETS);
    return hears(posted);
}

static void acknowledge_all(void)
{
    acknowledges((FIRST + (uint32_t)posted - 1) & BTH_MASK24, ACK);
    assert_int_equal(requester()->una, requester()->end);
}

/* A pair whose round trip is known. */
static void open_known(void)
{
    struct rc_pair_attr attr = rc_net_attr();

    attr.requester.timeout_us = 500000;
    open_world(&attr);
    posted = 0;
    assert_true(asks_at_once());
    waits(TRIP_US);
    acknowledge_all();
}

/* ROCE-REQ-04: one of several asks, and for all of them. */
static void one_of_several(void **state)
{
    (void)state;
    open_known();
    for (int round = 0; round < 4; round++) {
        for (int i = 1; i < LATE_MAX; i++)
            assert_false(asks_at_once());
        hear_nothing();
        assert_true(asks_at_once());
        acknowledge_all();
    }
    assert_int_equal(requester()->counters.resent, 0);
    close_world();
}

/* ROCE-REQ-04: its poster waits for it, or cannot have its memory back before; or it has more than one packet. */
static void at_once(void **state)
{
    static const struct {
        unsigned flags;
        uint32_t octets;
    } how[] = {{INLINE | SIGNALLED, OCTETS}, {SIGNALLED, OCTETS}, {0, OCTETS}, {SIGNALLED, 0}, {0, MTU}};

    (void)state;
    open_known();
    for (unsigned i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        assert_false(asks_at_once());
        write_octets(how[i].flags, how[i].octets);
        assert_true(hear()->flags & ASK);
        acknowledge_all();
    }
    write_octets(0, 0);
    assert_false(hear()->flags & ASK);
    write_octets(0, MTU + 1);
    assert_false(hear()->flags & ASK);
    assert_true(hear()->flags & ASK);
    close_world();
}

/* Who drains the queue between its packets has asked before the last one leaves. */
static void in_parts(void **state)
{
    struct rc_outgoing out;

    (void)state;
    open_known();
    (void)rc_requester_add(&w.pair->requester, RC_MESSAGE, 2 * MTU, 0, RC_ASK_LATE);
    assert_true(rc_requester_next(&w.pair->requester, &out, w.net.now_us));
    assert_false(out.ask);
    assert_true(rc_requester_next(&w.pair->requester, &out, w.net.now_us));
    assert_true(out.ask);
    close_world();
}

/* A queue that is half full; no time-out, so that nothing would ask later. */
static void no_place_or_no_time(void **state)
{
    struct rc_pair_attr attr = rc_net_attr();

    (void)state;
    open_known();
    w.pair->requester.mask = 3;
    assert_false(asks_at_once());
    assert_true(asks_at_once());
    close_world();
    attr.requester.timeout_us = 0;
    open_world(&attr);
    for (posted = 0; posted < 3;) {
        assert_true(asks_at_once());
        waits(TRIP_US);
        acknowledge_all();
    }
    close_world();
}

/* Nothing follows: the last one is sent again after a while, once, and asks. That is no loss. */
static void after_a_while(void **state)
{
    uint32_t window;

    (void)state;
    open_known();
    window = requester()->congestion.window;
    for (int i = 0; i < 3; i++)
        assert_false(asks_at_once());
    waits(RC_RTO_MIN_US - 1);
    hear_nothing();
    waits(1);
    assert_true(hears(posted));
    hear_nothing();
    waits(RC_RTO_MIN_US - 1);
    hear_nothing();
    acknowledge_all();
    assert_int_equal(rc_requester_deadline(requester()), RC_NEVER);
    assert_int_equal(requester()->congestion.window, window);
    assert_int_equal(requester()->counters.resent, 1);
    assert_int_equal(requester()->counters.timeouts, 0);
    assert_false(asks_at_once());
    close_world();
}

/* It was lost, too: from then on it is a time-out as any other. */
static void after_a_while_in_vain(void **state)
{
    (void)state;
    open_known();
    for (int i = 0; i < 3; i++)
        assert_false(asks_at_once());
    waits(RC_RTO_MIN_US);
    assert_true(hears(posted));
    waits(RC_RTO_MIN_US);
    for (uint64_t number = posted - 2; number < posted; number++)
        (void)hears(number);
    hear_nothing(); /* the window is the least one */
    acknowledges((FIRST + (uint32_t)posted - 2) & BTH_MASK24, ACK);
    assert_true(hears(posted));
    acknowledge_all();
    close_world();
}

/* Behind a loss all ask, until what was lost is there. */
static void after_a_loss(void **state)
{
    uint64_t lost;

    (void)state;
    open_known();
    for (int i = 0; i < 4; i++)
        assert_false(asks_at_once());
    lost = posted - 2;
    acknowledges((FIRST + (uint32_t)lost - 1) & BTH_MASK24, aeth_nak(NAK_SEQUENCE));
    for (uint64_t number = lost; number < posted; number++)
        (void)hears(number);
    assert_true(hears(posted));
    assert_true(asks_at_once());
    acknowledge_all();
    assert_false(asks_at_once());
    close_world();
}

/* While the peer is not ready nothing is asked: what is sent then asks. */
static void not_ready(void **state)
{
    (void)state;
    open_known();
    for (int i = 0; i < 2; i++)
        assert_false(asks_at_once());
    acknowledges((FIRST + (uint32_t)posted - 2) & BTH_MASK24, AETH_RNR_NAK | 20);
    waits(RC_RTO_MIN_US);
    hear_nothing();
    waits(rc_rnr_us(20));
    (void)hears(posted - 1);
    assert_true(hears(posted));
    acknowledge_all();
    close_world();
}

/* An acknowledgement of some, which another message asked for, does not stand for the rest. */
static void of_some(void **state)
{
    (void)state;
    open_known();
    for (int i = 0; i < 3; i++)
        assert_false(asks_at_once());
    acknowledges((FIRST + (uint32_t)posted - 2) & BTH_MASK24, ACK);
    hear_nothing();
    waits(RC_RTO_MIN_US);
    assert_true(hears(posted));
    acknowledge_all();
    close_world();
}

/* The response to a Read says as much as an acknowledgement. */
static void a_read_behind(void **state)
{
    (void)state;
    open_known();
    assert_false(asks_at_once());
    request_read(++posted, OCTETS);
    hear_message(FIRST + (uint32_t)posted - 1, BTH_READ_REQUEST, ONLY, 0);
    says(packet(BTH_READ_RESPONSE, ONLY, FIRST + (uint32_t)posted - 1, OCTETS));
    assert_int_equal(requester()->una, requester()->end);
    expect_wc(&w.side->send_cq, posted, RDDP_WC_SUCCESS);
    close_world();
}

/* A message that does not ask, and a request behind it that sends nothing. */
static void post_local_behind(void)
{
    struct rddp_send_wr wr = {.wr_id = LOCAL_ID, .opcode = RDDP_WR_LOCAL_INV, .send_flags = SIGNALLED};

    wr.invalidate_rkey = w.region->key;
    assert_false(asks_at_once());
    assert_int_equal(qp_post_send(&w.side->qp, &wr), 0);
}

/* What sends nothing completes behind what was not acknowledged: that is asked for now, by itself ... */
static void local_behind(void **state)
{
    (void)state;
    open_known();
    post_local_behind();
    assert_true(hears(posted));
    hear_nothing();
    expect_quiet(&w.side->send_cq);
    acknowledge_all();
    expect_wc(&w.side->send_cq, LOCAL_ID, RDDP_WC_SUCCESS);
    close_world();
}

/* ... or by what follows, if both were posted while packets left. */
static void local_between(void **state)
{
    (void)state;
    open_known();
    post_local_behind();
    write_octets(INLINE, OCTETS);
    assert_true(rc_pair_emit(w.pair, &w.out, w.net.now_us));
    assert_true(w.out.head[8] & 0x80);
    hear_nothing();
    acknowledge_all();
    expect_wc(&w.side->send_cq, LOCAL_ID, RDDP_WC_SUCCESS);
    close_world();
}

/* The queue pair is to become empty. */
static void draining(void **state)
{
    (void)state;
    open_known();
    rc_pair_drain(w.pair, true, w.net.now_us);
    hear_nothing();
    rc_pair_drain(w.pair, false, w.net.now_us);
    assert_false(asks_at_once());
    rc_pair_drain(w.pair, true, w.net.now_us);
    assert_true(hears(posted));
    rc_pair_drain(w.pair, true, w.net.now_us);
    hear_nothing();
    acknowledge_all();
    close_world();
}

/* The queue pair ends while the window is full: what leaves later asks as well. */
static void closing_behind_a_window(void **state)
{
    (void)state;
    open_known();
    w.pair->requester.congestion.window = 2;
    for (int i = 0; i < 2; i++)
        (void)asks_at_once();
    write_octets(INLINE, OCTETS);
    hear_nothing();
    rc_pair_close(w.pair, w.net.now_us);
    acknowledges((FIRST + (uint32_t)posted - 2) & BTH_MASK24, ACK);
    assert_true(hears(posted));
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_several),
        cmocka_unit_test(at_once),
        cmocka_unit_test(in_parts),
        cmocka_unit_test(no_place_or_no_time),
        cmocka_unit_test(after_a_while),
        cmocka_unit_test(after_a_loss),
        cmocka_unit_test(after_a_while_in_vain),
        cmocka_unit_test(not_ready),
        cmocka_unit_test(of_some),
        cmocka_unit_test(a_read_behind),
        cmocka_unit_test(local_behind),
        cmocka_unit_test(local_between),
        cmocka_unit_test(draining),
        cmocka_unit_test(closing_behind_a_window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
