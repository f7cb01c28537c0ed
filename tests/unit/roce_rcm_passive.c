/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_rcm_passive.c - RoCE's connection manager is called: the test plays the end that calls. */
#include <errno.h>
#include <string.h>

#include "base/container.h"
#include "roce/rc_requester.h"
#include "tests/lib/rcm_world.h"

/* ROCE-CM-02, ROCE-CM-09 */
static void established(void **state)
{
    const struct rcm_accept accept = rcm_usual_accept();
    const struct rcm_message request = rcm_request(), *m;
    const struct rcm_event *e;

    (void)state;
    rcm_open(4);
    rcm_says(&request);
    e = rcm_expect(RCM_EVENT_REQUEST);
    assert_ptr_equal(e->listener, &cw.listener);
    assert_memory_equal(&e->path, &cw.path, sizeof(cw.path));
    assert_true(e->ip->port == 0x91a3 && !e->ip->ipv6);
    assert_memory_equal(e->ip->source, cw.path.peer, 16);
    assert_memory_equal(e->ip->destination, cw.path.local, 16);
    m = e->message;
    assert_true(m->terms.qpn == PEER_QPN && m->terms.psn == PEER_PSN && m->terms.mtu == 3);
    assert_true(m->terms.responder_resources == 3 && m->terms.initiator_depth == 2);
    assert_true(m->terms.retries == 7 && m->terms.rnr_retries == 6);
    assert_memory_equal(m->data + RCM_IP_OCTETS, "abcd", 5);
    rcm_take(&cw.cm, &cw.conn);
    assert_true(cw.conn.state == RCM_REQ_RECEIVED && cw.listener.pending_count == 1);
    rcm_expect_nothing();
    rcm_hear_nothing();

    assert_int_equal(rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us), 0);
    m = rcm_hear(RCM_REP);
    assert_true(m->transaction == PEER_TRANSACTION && m->remote_id == PEER_ID && m->local_id == cw.conn.local_id);
    assert_true(m->terms.qpn == OUR_QPN && m->terms.psn == OUR_PSN && m->terms.rnr_retries == 7);
    assert_true(m->terms.responder_resources == 2 && m->terms.initiator_depth == 3); /* lowered */
    assert_true(cw.conn.responder_resources == 2 && cw.conn.initiator_depth == 3);
    assert_memory_equal(m->data, "stuv", 5);
    rcm_expect_nothing();
    rcm_says_usual(RCM_RTU);
    assert_ptr_equal(rcm_expect(RCM_EVENT_ESTABLISHED)->conn, &cw.conn);
    rcm_says_usual(RCM_RTU);
    rcm_expect_nothing();
    assert_true(cw.conn.state == RCM_ESTABLISHED && !cw.listener.pending_count);
    assert_int_equal(rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us), -ENOTCONN);
    rcm_forget(&cw.cm, &cw.conn);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-03: a REP comes again after each response time-out, as often as the REQ says, and no sooner. */
static void no_rtu(void **state)
{
    uint8_t first[RCM_MAD_OCTETS];

    (void)state;
    rcm_open(4);
    rcm_has_accepted();
    memcpy(first, cw.conn.out, sizeof(first));
    for (uint32_t i = 0; i < 15; i++) {
        assert_int_equal(rcm_waits_for_deadline(), RESPONSE_US);
        rcm_hear(RCM_REP);
        assert_memory_equal(cw.packet + BTH_OCTETS + DETH_OCTETS, first, sizeof(first));
        rcm_expect_nothing();
    }
    assert_int_equal(rcm_waits_for_deadline(), RESPONSE_US);
    rcm_expect(RCM_EVENT_UNREACHABLE);
    rcm_expect_nothing();
    rcm_hear(RCM_REJ); /* the peer may think that it is connected */
    assert_true(cw.received.reason == RCM_TIMED_OUT && cw.received.remote_id == PEER_ID);
    assert_int_equal(cw.listener.pending_count, 0);
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* Time-outs and retries are the peer's, within limits. */
static void peers_timeouts(void **state)
{
    static const struct {
        uint8_t code, counts;
    } waits[] = {{0, 14}, {13, 14}, {14, 14}, {15, 15}, {21, 21}, {22, 22}, {23, 22}, {31, 22}};

    (void)state;
    for (uint32_t i = 0; i < countof(waits); i++) {
        const struct rcm_accept accept = rcm_usual_accept();
        struct rcm_message m = rcm_request();

        rcm_open(4);
        m.local_timeout = waits[i].code;
        m.cm_retries = 1;
        rcm_says(&m);
        rcm_expect(RCM_EVENT_REQUEST);
        rcm_take(&cw.cm, &cw.conn);
        rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us);
        rcm_hear(RCM_REP);
        assert_int_equal(rcm_waits_for_deadline(), rc_timeout_us(waits[i].counts));
        rcm_hear(RCM_REP);
        rcm_waits_for_deadline();
        rcm_expect(RCM_EVENT_UNREACHABLE);
    }
}

/* ROCE-CM-04: the request comes again in every state: it is answered, and offered once. */
static void asked_again(void **state)
{
    const struct rcm_message request = rcm_request();
    const struct rcm_accept accept = rcm_usual_accept();
    uint8_t rep[RCM_MAD_OCTETS];

    (void)state;
    rcm_open(4);
    rcm_is_asked();
    rcm_says(&request);
    rcm_expect_nothing();
    rcm_hear(RCM_MRA);
    assert_true(cw.received.about == RCM_ABOUT_REQ && cw.received.service_timeout == RCM_SERVICE_DEFAULT);
    assert_true(cw.received.remote_id == PEER_ID && cw.received.transaction == PEER_TRANSACTION);
    rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us);
    rcm_hear(RCM_REP);
    memcpy(rep, cw.conn.out, sizeof(rep));
    rcm_says(&request);
    rcm_expect_nothing();
    rcm_hear(RCM_REP);
    assert_memory_equal(cw.packet + BTH_OCTETS + DETH_OCTETS, rep, sizeof(rep));
    rcm_says_usual(RCM_RTU);
    rcm_expect(RCM_EVENT_ESTABLISHED);
    rcm_says(&request);
    rcm_expect_nothing();
    rcm_hear_nothing();
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_hear(RCM_DREQ);
    rcm_says(&request);
    rcm_hear(RCM_REJ);
    assert_int_equal(cw.received.reason, RCM_CONSUMER);
    rcm_waits(RCM_RESEND_FIRST_US);
    rcm_hear(RCM_DREQ);
    rcm_says_usual(RCM_DREP);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    rcm_says(&request);
    rcm_hear(RCM_REJ);
    assert_int_equal(cw.received.reason, RCM_STALE);
    rcm_expect_nothing();
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
    assert_int_equal(cw.cm.counters.duplicates, 5);
}

/* ROCE-CM-05: the application rejects, with private data up to their limit; again if it is asked again. */
static void rejects(void **state)
{
    static const uint8_t data[RCM_PRIVATE_REJ + 1] = "not now";
    const struct rcm_message request = rcm_request();

    (void)state;
    for (uint8_t octets = RCM_PRIVATE_REJ - 1; octets <= RCM_PRIVATE_REJ; octets++) {
        rcm_open(4);
        rcm_is_asked();
        assert_int_equal(rcm_reject(&cw.cm, &cw.conn, RCM_CONSUMER, data, sizeof(data), cw.now_us), -EMSGSIZE);
        assert_int_equal(rcm_reject(&cw.cm, &cw.conn, RCM_CONSUMER, data, octets, cw.now_us), 0);
        for (uint32_t i = 0; i < 3; i++) {
            rcm_hear(RCM_REJ);
            assert_true(cw.received.reason == RCM_CONSUMER && cw.received.about == RCM_ABOUT_REQ);
            assert_true(cw.received.remote_id == PEER_ID && cw.received.transaction == PEER_TRANSACTION);
            assert_memory_equal(cw.received.data, data, RCM_PRIVATE_REJ);
            rcm_hear_nothing();
            rcm_says(&request);
            rcm_expect_nothing();
        }
        rcm_hear(RCM_REJ);
        assert_int_equal(cw.listener.pending_count, 0);
        assert_int_equal(rcm_waits_for_deadline(), 2 * RESPONSE_US);
        rcm_expect(RCM_EVENT_GONE);
        rcm_assert_empty(&cw.cm);
    }
}

/* The same without keeping the request, or without a word. */
static void refuses(void **state)
{
    const struct rcm_message request = rcm_request();

    (void)state;
    rcm_open(4);
    for (uint32_t i = 0; i < 2; i++) {
        rcm_says(&request);
        rcm_expect(RCM_EVENT_REQUEST);
        assert_int_equal(rcm_refuse(&cw.cm, RCM_NO_RESOURCES, "x", RCM_PRIVATE_REJ + 1), -EMSGSIZE);
        assert_int_equal(rcm_refuse(&cw.cm, RCM_NO_RESOURCES, "x", 1), 0);
        rcm_expect_nothing();
        rcm_hear(RCM_REJ);
        assert_true(cw.received.reason == RCM_NO_RESOURCES && cw.received.data[0] == 'x' &&
                    cw.received.remote_id == PEER_ID);
    }
    rcm_says(&request);
    rcm_expect(RCM_EVENT_REQUEST);
    rcm_expect_nothing();
    rcm_hear_nothing();
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-05, ROCE-CM-09, ROCE-CM-14: requests that no listener can have */
static void no_one_listens(void **state)
{
    static const uint8_t version[RCM_IP_OCTETS] = {1, 0x40}, family[RCM_IP_OCTETS] = {0, 0x50};
    struct {
        uint16_t reason;
        struct rcm_message m;
    } cases[9];

    (void)state;
    for (uint32_t i = 0; i < countof(cases); i++)
        cases[i].m = rcm_request();
    cases[0].reason = RCM_NO_SERVICE;
    cases[0].m.service++;
    cases[1].reason = RCM_NO_SERVICE;
    cases[1].m.service = DATAGRAM_SERVICE;
    cases[2].reason = RCM_UNSUPPORTED;
    cases[2].m.data = version;
    cases[2].m.octets = RCM_IP_OCTETS;
    cases[3] = cases[2];
    cases[3].m.data = family;
    cases[4].reason = RCM_WRONG_TRANSPORT;
    cases[4].m.terms.transport = 2; /* reliable datagrams */
    cases[5].reason = RCM_WRONG_MTU;
    cases[5].m.terms.mtu = 6;
    cases[6].reason = RCM_UNSUPPORTED;
    cases[6].m.terms.qpn = 1;
    cases[7].reason = RCM_UNSUPPORTED;
    cases[7].m.local_id = 0;
    cases[8].reason = RCM_WRONG_GID; /* as Linux: a partition that is not ours */
    cases[8].m.terms.pkey = 0x8001;
    rcm_open(4);
    for (uint32_t i = 0; i < countof(cases); i++) {
        rcm_says(&cases[i].m);
        rcm_expect_nothing();
        rcm_hear(RCM_REJ);
        assert_int_equal(cw.received.reason, cases[i].reason);
        assert_true(cw.received.remote_id == cases[i].m.local_id && cw.received.transaction == PEER_TRANSACTION);
        rcm_hear_nothing();
    }
    rcm_assert_empty(&cw.cm);
    cases[4].m.terms.transport = RCM_UC;
    rcm_says(&cases[4].m);
    assert_int_equal(rcm_expect(RCM_EVENT_REQUEST)->message->terms.transport, RCM_UC);
    cases[6].m.terms.qpn = 2;
    rcm_says(&cases[6].m);
    rcm_expect(RCM_EVENT_REQUEST);
    rcm_unlisten(&cw.cm, &cw.listener);
    rcm_says(&cases[6].m);
    rcm_hear(RCM_REJ);
    assert_int_equal(cw.received.reason, RCM_NO_SERVICE);
}

/* ROCE-CM-08: the RTU is lost, data come */
static void data_first(void **state)
{
    (void)state;
    rcm_open(4);
    rcm_is_asked();
    rcm_communicates(&cw.cm, &cw.conn); /* not yet */
    rcm_expect_nothing();
    rcm_forget(&cw.cm, &cw.conn);
    rcm_has_accepted();
    rcm_communicates(&cw.cm, &cw.conn);
    rcm_expect(RCM_EVENT_ESTABLISHED);
    rcm_communicates(&cw.cm, &cw.conn);
    rcm_expect_nothing();
    assert_true(cw.conn.state == RCM_ESTABLISHED && rcm_deadline(&cw.cm) == RCM_NEVER);
    rcm_says_usual(RCM_RTU);
    rcm_expect_nothing();
}

/* ROCE-CM-07: disconnected before the RTU: the peer is told either way, and the backlog is free in the end. */
static void disconnects_early(void **state)
{
    const struct rcm_message request = rcm_request();

    (void)state;
    rcm_open(4);
    rcm_has_accepted();
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_hear(RCM_DREQ);
    assert_int_equal(cw.listener.pending_count, 1);
    assert_int_equal(rcm_waits_for_deadline(), RESPONSE_US); /* the peer has proved nothing yet: no sooner */
    rcm_hear(RCM_DREQ);
    rcm_says(&request); /* the REP was lost */
    rcm_hear(RCM_REJ);
    assert_int_equal(cw.received.reason, RCM_CONSUMER);
    cw.received.transaction = cw.conn.leave_transaction;
    rcm_says_usual(RCM_DREP);
    rcm_expect_nothing();
    cw.received.local_id = cw.conn.local_id;
    rcm_says_usual(RCM_DREP);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    assert_int_equal(cw.listener.pending_count, 0);
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-11: the peer withdraws its request, whose answer it does not know, or has not received. */
static void withdrawn(void **state)
{
    const struct rcm_message request = rcm_request();
    const struct rcm_accept accept = rcm_usual_accept();

    (void)state;
    for (uint32_t is_accepted = 0; is_accepted < 2; is_accepted++) {
        struct rcm_message m = {.attribute = RCM_REJ,
                                .transaction = PEER_TRANSACTION,
                                .local_id = PEER_ID,
                                .about = RCM_ABOUT_OTHER,
                                .reason = RCM_TIMED_OUT};

        rcm_open(4);
        if (is_accepted)
            rcm_has_accepted();
        else
            rcm_is_asked();
        m.transaction++;
        rcm_says(&m);
        rcm_expect_nothing();
        m.transaction--;
        rcm_says(&m);
        assert_int_equal(rcm_expect(RCM_EVENT_REJECTED)->reason, RCM_TIMED_OUT);
        rcm_expect_nothing();
        assert_int_equal(rcm_accept(&cw.cm, &cw.conn, &accept, cw.now_us), -ENOTCONN);
        assert_int_equal(cw.listener.pending_count, 0);
        rcm_says(&request); /* a duplicate that was under way */
        rcm_hear(RCM_REJ);
        rcm_expect_nothing();
        rcm_waits_for_deadline();
        rcm_expect(RCM_EVENT_GONE);
        rcm_assert_empty(&cw.cm);
    }
}

/* ROCE-CM-06: an MRA about our REP */
static void prolonged(void **state)
{
    struct rcm_message m;

    (void)state;
    rcm_open(4);
    rcm_has_accepted();
    m = rcm_says_what(RCM_MRA);
    m.service_timeout = 10;
    rcm_says(&m); /* about the REQ */
    assert_int_equal(rcm_deadline(&cw.cm), cw.now_us + RESPONSE_US);
    m.about = RCM_ABOUT_REP;
    rcm_says(&m);
    rcm_expect_nothing();
    assert_int_equal(rcm_waits_for_deadline(), rc_timeout_us(10) + RESPONSE_US);
    rcm_hear(RCM_REP);
}

/* --- listeners ---------------------------------------------------------------------------------------------------- */

/* A listener at an address comes before one at any. */
static void listeners(void **state)
{
    static const uint8_t at[16] = {[10] = 0xff, 0xff, 10, 77, 0, 2};
    struct rcm_listener here = {.service = SERVICE, .backlog = 1}, again;
    const struct rcm_message request = rcm_request();

    (void)state;
    rcm_open(4);
    memcpy(here.local, at, sizeof(at));
    again = here;
    assert_int_equal(rcm_listen(&cw.cm, &here), 0);
    assert_int_equal(rcm_listen(&cw.cm, &again), -EADDRINUSE);
    rcm_says(&request);
    assert_ptr_equal(rcm_expect(RCM_EVENT_REQUEST)->listener, &here);
    assert_null(cw.event.ip); /* it did not ask for rdma_cm's addresses */
    cw.path.local[15] = 9;
    rcm_says(&request);
    assert_ptr_equal(rcm_expect(RCM_EVENT_REQUEST)->listener, &cw.listener);
    cw.path.local[15] = 2;
    rcm_unlisten(&cw.cm, &here);
    rcm_is_asked();
    rcm_unlisten(&cw.cm, &cw.listener); /* the request outlives it */
    assert_int_equal(cw.conn.state, RCM_REQ_RECEIVED);
    rcm_says(&request);
    rcm_hear(RCM_MRA);
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_hear(RCM_REJ);
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(established),    cmocka_unit_test(no_rtu),     cmocka_unit_test(peers_timeouts),
        cmocka_unit_test(asked_again),    cmocka_unit_test(rejects),    cmocka_unit_test(refuses),
        cmocka_unit_test(no_one_listens), cmocka_unit_test(data_first), cmocka_unit_test(disconnects_early),
        cmocka_unit_test(withdrawn),      cmocka_unit_test(prolonged),  cmocka_unit_test(listeners),
    };

    return cmocka_run_group_tests_name("roce_rcm_passive", tests, NULL, NULL);
}
