/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_rcm_over.c - connections that a peer asked for end, and their numbers are used again. */
#include "tests/lib/rcm_world.h"

/* The peer, which had asked for the connection or was asked (`actively`), has left, and was answered. */
static void peer_leaves(bool actively)
{
    rcm_open(4);
    rcm_is_established(actively);
    rcm_says_usual(RCM_DREQ);
    rcm_hear(RCM_DREP);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    rcm_expect_nothing();
}

/* ROCE-CM-07, ROCE-CM-08: the RTU is lost, and the peer's DREQ is the first that arrives */
static void dreq_first(void **state)
{
    (void)state;
    rcm_open(4);
    rcm_has_accepted();
    rcm_says_usual(RCM_DREQ);
    rcm_expect(RCM_EVENT_ESTABLISHED);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    rcm_expect_nothing();
    rcm_hear(RCM_DREP);
    assert_int_equal(cw.listener.pending_count, 0);
    assert_int_equal(rcm_waits_for_deadline(), TIMEWAIT_US);
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-07 */
static void disconnected(void **state)
{
    (void)state;
    peer_leaves(false);
    rcm_says_usual(RCM_DREQ);
    rcm_hear(RCM_DREP);
    rcm_expect_nothing();
    assert_int_equal(rcm_waits_for_deadline(), TIMEWAIT_US);
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
    rcm_says_usual(RCM_DREQ); /* it is gone */
    rcm_hear(RCM_DREP);
    assert_true(cw.received.remote_id == PEER_ID && cw.received.local_id == cw.conn.local_id);
    rcm_expect_nothing();
}

/* ROCE-CM-07: the queue pair of a connection may be connected again when that has rested, and not before. */
static void rested(void **state)
{
    struct rcm_message request = rcm_request();

    (void)state;
    peer_leaves(false);
    request.local_id++;
    request.transaction++;
    cw.now_us = rcm_deadline(&cw.cm) - 1;
    rcm_says(&request);
    rcm_hear(RCM_REJ);
    rcm_expect_nothing();
    cw.now_us++; /* no tick: the host has been kept from its processor */
    rcm_says(&request);
    rcm_expect(RCM_EVENT_REQUEST);
    rcm_expect(RCM_EVENT_GONE);
}

/* ROCE-CM-07: the same if it accepts again. `early`: 1 us before it has rested. */
static void accepts_again(bool early)
{
    struct rcm_connect connect = rcm_usual_connect();
    struct rcm_conn second = {.state = RCM_CLOSED, .timer.due_us = UINT64_MAX};
    struct rcm_message answer;

    peer_leaves(true);
    assert_int_equal(rcm_connect(&cw.cm, &second, &connect, cw.now_us), 0);
    rcm_hear(RCM_REQ);
    answer = rcm_says_what(RCM_REP);
    answer.transaction = second.transaction;
    answer.remote_id = second.local_id;
    answer.local_id++;
    cw.now_us = cw.conn.timer.due_us - early;
    rcm_says(&answer);
    if (early) {
        rcm_hear(RCM_REJ);
        assert_int_equal(rcm_expect(RCM_EVENT_REJECTED)->reason, RCM_STALE);
        assert_ptr_equal(rcm_expect(RCM_EVENT_GONE)->conn, &second);
    } else {
        assert_ptr_equal(rcm_expect(RCM_EVENT_GONE)->conn, &cw.conn);
        assert_ptr_equal(rcm_expect(RCM_EVENT_ANSWERED)->conn, &second);
    }
    rcm_expect_nothing();
}

static void rested_acceptor(void **state)
{
    (void)state;
    accepts_again(true);
    accepts_again(false);
}

/* ROCE-CM-05: the peer uses a number again that a connection has: it may have restarted. */
static void stale(void **state)
{
    struct rcm_message request = rcm_request();

    (void)state;
    for (uint32_t same_id = 0; same_id < 2; same_id++) {
        rcm_open(4);
        rcm_is_established(false);
        request = rcm_request();
        if (same_id)
            request.terms.qpn++;
        else
            request.local_id++;
        request.transaction++;
        rcm_says(&request);
        rcm_hear(RCM_REJ);
        assert_true(cw.received.reason == RCM_STALE && cw.received.remote_id == request.local_id);
        assert_ptr_equal(rcm_expect(RCM_EVENT_DOUBTED)->conn, &cw.conn);
        rcm_expect_nothing();
        assert_int_equal(cw.conn.state, RCM_ESTABLISHED);
        rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
        rcm_hear(RCM_DREQ);
        rcm_says(&request);
        rcm_hear(RCM_REJ);
        rcm_expect_nothing();
        rcm_forget(&cw.cm, &cw.conn);
        rcm_says(&request);
        rcm_expect(RCM_EVENT_REQUEST);
    }
    rcm_open(4); /* the same number at another address is another one */
    rcm_is_established(false);
    cw.path = rcm_peer(1);
    request = rcm_request();
    rcm_says(&request);
    rcm_expect(RCM_EVENT_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dreq_first),      cmocka_unit_test(disconnected), cmocka_unit_test(rested),
        cmocka_unit_test(rested_acceptor), cmocka_unit_test(stale),
    };

    return cmocka_run_group_tests_name("roce_rcm_over", tests, NULL, NULL);
}
