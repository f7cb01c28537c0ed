/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_rcm_datagram.c - RoCE's connection manager finds the queue pair of a datagram service (SIDR), and answers for
 * its own. */
#include <errno.h>
#include <string.h>

#include "tests/lib/rcm_world.h"

/* --- we ask ------------------------------------------------------------------------------------------------------- */

static void resolves(void)
{
    struct rcm_connect connect;

    rcm_open(4);
    connect = rcm_usual_connect();
    connect.service = DATAGRAM_SERVICE;
    assert_int_equal(rcm_resolve(&cw.cm, &cw.conn, &connect, cw.now_us), 0);
    rcm_hear(RCM_SIDR_REQ);
}

/* ROCE-CM-10 */
static void resolves_peer(void **state)
{
    const struct rcm_event *e;
    struct rcm_message m;

    (void)state;
    resolves();
    assert_true(cw.received.service == DATAGRAM_SERVICE && cw.received.terms.pkey == 0xffff);
    assert_memory_equal(cw.received.data + RCM_IP_OCTETS, "wxyz", 5);
    m = rcm_says_what(RCM_SIDR_REP);
    m.transaction++;
    rcm_says(&m); /* to another question */
    rcm_expect_nothing();
    rcm_says_usual(RCM_REP);
    rcm_hear_nothing();
    m.transaction--;
    rcm_says(&m);
    e = rcm_expect(RCM_EVENT_RESOLVED);
    assert_true(e->message->status == RCM_SIDR_VALID && e->message->terms.qpn == PEER_QPN);
    assert_int_equal(e->message->terms.q_key, 0x1234567);
    rcm_expect(RCM_EVENT_GONE);
    rcm_says(&m);
    rcm_expect_nothing();
    rcm_assert_empty(&cw.cm);

    resolves();
    m = rcm_says_what(RCM_SIDR_REP);
    m.status = RCM_SIDR_NO_SERVICE;
    rcm_says(&m);
    assert_int_equal(rcm_expect(RCM_EVENT_RESOLVED)->message->status, RCM_SIDR_NO_SERVICE);
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-03, ROCE-CM-10 */
static void no_answer(void **state)
{
    uint32_t sent = 0;

    (void)state;
    for (resolves(); cw.conn.state == RCM_SIDR_SENT; sent++) {
        rcm_waits_for_deadline();
        if (cw.conn.state == RCM_SIDR_SENT)
            rcm_hear(RCM_SIDR_REQ);
    }
    assert_int_equal(sent, 1 + 5 + 15);
    rcm_expect(RCM_EVENT_UNREACHABLE);
    rcm_expect(RCM_EVENT_GONE);
    rcm_hear_nothing();
    rcm_assert_empty(&cw.cm);
    resolves();
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_expect(RCM_EVENT_GONE);
    rcm_hear_nothing();
    rcm_assert_empty(&cw.cm);
}

/* --- we are asked ------------------------------------------------------------------------------------------------- */

static struct rcm_message datagram_request(void)
{
    struct rcm_message m = rcm_request();

    m.attribute = RCM_SIDR_REQ;
    m.service = DATAGRAM_SERVICE;
    return m;
}

/* ROCE-CM-10 */
static void is_resolved(void **state)
{
    const struct rcm_message request = datagram_request();
    struct rcm_accept accept = rcm_usual_accept();

    (void)state;
    rcm_open(4);
    rcm_says(&request);
    assert_ptr_equal(rcm_expect(RCM_EVENT_REQUEST)->listener, &cw.datagrams);
    rcm_take(&cw.cm, &cw.conn);
    assert_int_equal(cw.datagrams.pending_count, 1);
    rcm_says(&request); /* it is with the application */
    rcm_expect_nothing();
    rcm_hear_nothing();
    accept.terms.q_key = 0x1234567;
    accept.octets = RCM_PRIVATE_SIDR_REP + 1;
    assert_int_equal(rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us), -EMSGSIZE);
    accept.octets = 4;
    assert_int_equal(rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us), 0);
    for (uint32_t i = 0; i < 2; i++) {
        rcm_hear(RCM_SIDR_REP);
        assert_true(cw.received.status == RCM_SIDR_VALID && cw.received.remote_id == PEER_ID);
        assert_true(cw.received.terms.qpn == OUR_QPN && cw.received.terms.q_key == 0x1234567);
        assert_true(cw.received.service == DATAGRAM_SERVICE && cw.received.transaction == PEER_TRANSACTION);
        assert_memory_equal(cw.received.data, "stuv", 5);
        rcm_hear_nothing();
        rcm_says(&request);
        rcm_expect_nothing();
    }
    rcm_hear(RCM_SIDR_REP);
    assert_int_equal(cw.datagrams.pending_count, 0);
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-10 */
static void refused(void **state)
{
    struct rcm_message request = datagram_request();

    (void)state;
    rcm_open(4);
    rcm_says(&request);
    rcm_expect(RCM_EVENT_REQUEST);
    rcm_take(&cw.cm, &cw.conn);
    assert_int_equal(rcm_reject(&cw.cm, &cw.conn, RCM_CONSUMER, "no", 2, cw.now_us), 0);
    rcm_hear(RCM_SIDR_REP);
    assert_true(cw.received.status == RCM_SIDR_REJECTED && cw.received.remote_id == PEER_ID);
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_says(&request);
    rcm_expect(RCM_EVENT_REQUEST);
    assert_int_equal(rcm_refuse(&cw.cm, RCM_CONSUMER, NULL, 0), 0);
    rcm_hear(RCM_SIDR_REP);
    assert_int_equal(cw.received.status, RCM_SIDR_REJECTED);
    request.service = SERVICE;
    rcm_says(&request); /* a service of connections */
    rcm_hear(RCM_SIDR_REP);
    assert_true(cw.received.status == RCM_SIDR_NO_SERVICE && cw.received.service == SERVICE);
    rcm_assert_empty(&cw.cm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolves_peer),
        cmocka_unit_test(no_answer),
        cmocka_unit_test(is_resolved),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests_name("roce_rcm_datagram", tests, NULL, NULL);
}
