/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_rcm_active.c - RoCE's connection manager calls: the test plays the end that is called. */
#include <errno.h>
#include <string.h>

#include "roce/rc_requester.h"
#include "tests/lib/rcm_world.h"

/* ROCE-CM-02, ROCE-CM-09: what a REQ says, and what comes of the answer */
static void established(void **state)
{
    const struct rcm_message *m;
    const struct rcm_event *e;
    struct rcm_ip ip;

    (void)state;
    rcm_open(4);
    rcm_calls();
    m = &cw.received;
    assert_true(m->local_id && m->local_id == cw.conn.local_id && !m->remote_id);
    assert_true(m->service == SERVICE && m->guid == 1 && m->terms.qpn == OUR_QPN && m->terms.psn == OUR_PSN);
    assert_true(m->terms.responder_resources == 4 && m->terms.initiator_depth == 5);
    assert_true(m->terms.retries == 7 && m->terms.rnr_retries == 7 && m->terms.mtu == 3 && m->terms.pkey == 0xffff);
    assert_true(m->remote_timeout == 20 && m->local_timeout == 20 && m->cm_retries == 15);
    assert_true(m->route.local_lid == 0xffff && m->route.remote_lid == 0xffff && m->route.hop_limit == 64);
    assert_true(m->route.ack_timeout == 19);
    assert_memory_equal(m->route.local_gid, cw.path.local, 16);
    assert_memory_equal(m->route.remote_gid, cw.path.peer, 16);
    assert_true(rcm_ip_decode(&ip, m->data));
    assert_true(!ip.ipv6 && ip.port == 0x91a3);
    assert_memory_equal(ip.source, cw.path.local, 16);
    assert_memory_equal(ip.destination, cw.path.peer, 16);
    assert_memory_equal(m->data + RCM_IP_OCTETS, "wxyz", 5);

    rcm_says_usual(RCM_REP);
    e = rcm_expect(RCM_EVENT_ANSWERED);
    assert_ptr_equal(e->conn, &cw.conn);
    assert_true(e->message->terms.psn == PEER_PSN && cw.conn.peer_qpn == PEER_QPN);
    assert_true(cw.conn.responder_resources == 2 && cw.conn.initiator_depth == 3); /* lowered */
    rcm_expect_nothing();
    rcm_hear_nothing();
    assert_int_equal(rcm_confirm(&cw.cm, &cw.conn), 0);
    m = rcm_hear(RCM_RTU);
    assert_true(m->local_id == cw.conn.local_id && m->remote_id == PEER_ID);
    assert_true(m->transaction == cw.conn.transaction);
    assert_int_equal(cw.conn.state, RCM_ESTABLISHED);
    rcm_expect_nothing();
    assert_int_equal(rcm_confirm(&cw.cm, &cw.conn), -ENOTCONN);
    rcm_forget(&cw.cm, &cw.conn);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-03: soon at first, then after a whole response time-out each, with the same octets; then it is over. */
static void no_answer(void **state)
{
    uint8_t first[RCM_MAD_OCTETS];
    uint64_t soon_us = RCM_RESEND_FIRST_US;

    (void)state;
    rcm_open(4);
    rcm_calls();
    memcpy(first, cw.conn.out, sizeof(first));
    for (; soon_us < RESPONSE_US; soon_us *= 2) {
        assert_int_equal(rcm_waits_for_deadline(), soon_us);
        rcm_hear(RCM_REQ);
    }
    for (uint32_t tries = 0; tries < 15; tries++) {
        assert_int_equal(rcm_waits_for_deadline(), RESPONSE_US);
        rcm_hear(RCM_REQ);
        assert_memory_equal(cw.packet + BTH_OCTETS + DETH_OCTETS, first, sizeof(first));
        rcm_expect_nothing();
    }
    assert_int_equal(rcm_waits_for_deadline(), RESPONSE_US);
    rcm_expect(RCM_EVENT_UNREACHABLE);
    rcm_expect(RCM_EVENT_GONE);
    rcm_expect_nothing();
    rcm_hear(RCM_REJ); /* the peer need not wait either */
    assert_true(cw.received.reason == RCM_TIMED_OUT && !cw.received.remote_id);
    rcm_hear_nothing();
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-05 */
static void rejected(void **state)
{
    static const uint16_t reasons[] = {RCM_NO_SERVICE, RCM_STALE, RCM_CONSUMER, 1234};

    (void)state;
    for (uint32_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        struct rcm_message m;
        const struct rcm_event *e;

        rcm_open(4);
        if (i % 2)
            rcm_is_answered();
        else
            rcm_calls();
        m = rcm_says_what(RCM_REJ);
        m.transaction = cw.conn.transaction;
        m.remote_id = cw.conn.local_id;
        m.local_id = i % 2 ? PEER_ID : 0; /* as Linux rejects a request that it knows nothing of */
        m.reason = reasons[i];
        m.data = (const uint8_t *)"no";
        m.octets = 2;
        rcm_says(&m);
        e = rcm_expect(RCM_EVENT_REJECTED);
        assert_int_equal(e->reason, reasons[i]);
        assert_memory_equal(e->message->data, "no", 3);
        e = rcm_expect(RCM_EVENT_GONE);
        assert_ptr_equal(e->conn, &cw.conn);
        assert_null(e->message);
        rcm_expect_nothing();
        rcm_hear_nothing();
        rcm_assert_empty(&cw.cm);
    }
}

/* ROCE-CM-06: once, and not without limit */
static void prolonged(void **state)
{
    static const struct {
        uint8_t code, counts;
    } waits[] = {{0, 0}, {1, 1}, {24, 24}, {26, 26}, {27, 26}, {31, 26}};

    (void)state;
    for (uint32_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        uint64_t service_us = waits[i].counts ? rc_timeout_us(waits[i].counts) : 0;
        struct rcm_message m;

        rcm_open(4);
        rcm_calls();
        m = rcm_says_what(RCM_MRA);
        m.about = RCM_ABOUT_REP;
        rcm_says(&m); /* about another message */
        m.about = RCM_ABOUT_REQ;
        m.service_timeout = waits[i].code;
        assert_int_equal(rcm_deadline(&cw.cm), cw.now_us + RCM_RESEND_FIRST_US);
        rcm_says(&m);
        assert_int_equal(rcm_deadline(&cw.cm), cw.now_us + service_us + RESPONSE_US);
        rcm_waits(100);
        rcm_says(&m);
        assert_int_equal(rcm_waits_for_deadline(), service_us + RESPONSE_US - 100);
        rcm_hear(RCM_REQ);
        assert_int_equal(rcm_waits_for_deadline(), RESPONSE_US);
        rcm_forget(&cw.cm, &cw.conn);
        rcm_assert_empty(&cw.cm);
    }
}

/* Returns the REP that has answered the request. */
static struct rcm_message open_answered(void)
{
    rcm_open(4);
    rcm_is_answered();
    return rcm_says_what(RCM_REP);
}

/* ROCE-CM-04: the answer comes again: in every state it is answered, and executed once. */
static void answered_again(void **state)
{
    uint8_t rtu[RCM_PACKET_OCTETS];
    struct rcm_message rep;

    (void)state;
    rep = open_answered();
    rcm_says(&rep);
    rcm_hear(RCM_MRA);
    assert_true(cw.received.about == RCM_ABOUT_REP && cw.received.service_timeout == RCM_SERVICE_DEFAULT);
    rcm_confirm(&cw.cm, &cw.conn);
    rcm_hear(RCM_RTU);
    memcpy(rtu, cw.packet, sizeof(rtu));
    rcm_says(&rep);
    rcm_hear(RCM_RTU);
    assert_memory_equal(rtu + BTH_OCTETS, cw.packet + BTH_OCTETS, RCM_PACKET_OCTETS - BTH_OCTETS);
    rep.local_id++; /* a second connection of the same request */
    rcm_says(&rep);
    rcm_hear(RCM_REJ);
    assert_true(cw.received.reason == RCM_STALE && cw.received.about == RCM_ABOUT_REP &&
                cw.received.remote_id == rep.local_id);
    rep.local_id--;
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_hear(RCM_DREQ);
    rcm_says(&rep);
    rcm_hear_nothing();
    rcm_waits(RCM_RESEND_FIRST_US);
    rcm_hear(RCM_DREQ);
    rcm_says_usual(RCM_DREP);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    rcm_says(&rep);
    rcm_hear(RCM_REJ);
    assert_int_equal(cw.received.reason, RCM_STALE);
    rcm_expect_nothing();
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_says(&rep);
    rcm_hear(RCM_REJ);
    assert_true(cw.received.reason == RCM_UNKNOWN_ID && cw.received.remote_id == PEER_ID);
    assert_int_equal(cw.received.transaction, rep.transaction);
    rcm_assert_empty(&cw.cm);
}

/* The answer is no use: it is rejected, and again when it comes again. */
static void rejects(void **state)
{
    struct rcm_message rep;

    (void)state;
    rep = open_answered();
    assert_int_equal(rcm_reject(&cw.cm, &cw.conn, RCM_CONSUMER, "sorry", RCM_PRIVATE_REJ + 1, cw.now_us), -EMSGSIZE);
    assert_int_equal(rcm_reject(&cw.cm, &cw.conn, RCM_CONSUMER, "sorry", 5, cw.now_us), 0);
    for (uint32_t i = 0; i < 2; i++) {
        rcm_hear(RCM_REJ);
        assert_true(cw.received.about == RCM_ABOUT_REP && cw.received.reason == RCM_CONSUMER);
        assert_true(cw.received.local_id == cw.conn.local_id && cw.received.remote_id == PEER_ID);
        assert_memory_equal(cw.received.data, "sorry", 6);
        rcm_hear_nothing();
        rcm_says(&rep);
    }
    rcm_hear(RCM_REJ);
    rcm_expect_nothing();
    assert_int_equal(rcm_reject(&cw.cm, &cw.conn, RCM_CONSUMER, NULL, 0, cw.now_us), -ENOTCONN);
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-11: withdrawn before it is answered */
static void cancelled(void **state)
{
    struct rcm_message rep;

    (void)state;
    rcm_open(4);
    rcm_calls();
    rep = rcm_says_what(RCM_REP);
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_expect(RCM_EVENT_GONE);
    rcm_hear(RCM_REJ);
    assert_true(cw.received.reason == RCM_TIMED_OUT && cw.received.transaction == rep.transaction &&
                !cw.received.remote_id);
    rcm_assert_empty(&cw.cm);
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us); /* it is over */
    rcm_assert_empty(&cw.cm);
    rcm_says(&rep);
    rcm_hear(RCM_REJ);
    assert_int_equal(cw.received.reason, RCM_UNKNOWN_ID);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-07 */
static void disconnects(void **state)
{
    const struct rcm_message *m;

    (void)state;
    rcm_open(4);
    rcm_is_established(true);
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    m = rcm_hear(RCM_DREQ);
    assert_true(m->remote_qpn == PEER_QPN && m->local_id == cw.conn.local_id && m->remote_id == PEER_ID);
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_hear_nothing();
    rcm_expect_nothing();
    rcm_says_usual(RCM_DREP);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    rcm_says_usual(RCM_DREP);
    rcm_expect_nothing();
    assert_int_equal(cw.conn.state, RCM_TIMEWAIT);
    assert_int_equal(rcm_waits_for_deadline(), TIMEWAIT_US);
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-03, ROCE-CM-07: the DREQ is lost each time */
static void no_dreq_answer(void **state)
{
    uint32_t sent = 1;

    (void)state;
    rcm_open(4);
    rcm_is_established(true);
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_hear(RCM_DREQ);
    for (;;) {
        rcm_waits_for_deadline();
        if (cw.conn.state == RCM_TIMEWAIT)
            break;
        rcm_hear(RCM_DREQ);
        rcm_expect_nothing();
        sent++;
    }
    assert_int_equal(sent, 1 + 5 + 15); /* 5 soon */
    rcm_expect(RCM_EVENT_DISCONNECTED);
    rcm_expect_nothing();
    rcm_hear_nothing();
    assert_int_equal(rcm_waits_for_deadline(), TIMEWAIT_US);
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-07, ROCE-CM-11: both at once */
static void both_disconnect(void **state)
{
    struct rcm_message dreq;

    (void)state;
    rcm_open(4);
    rcm_is_established(true);
    dreq = rcm_says_what(RCM_DREQ);
    dreq.transaction = 77;
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_hear(RCM_DREQ);
    rcm_says(&dreq);
    rcm_hear(RCM_DREP);
    assert_true(cw.received.transaction == 77 && cw.received.local_id == cw.conn.local_id &&
                cw.received.remote_id == PEER_ID);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    rcm_says(&dreq);
    rcm_hear(RCM_DREP);
    rcm_expect_nothing();
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* ROCE-CM-11: the peer accepts and ends it at once; its REP is lost, or the host is not ready yet */
static void ended_early(void **state)
{
    (void)state;
    for (uint32_t is_answered = 0; is_answered < 2; is_answered++) {
        struct rcm_message dreq;

        rcm_open(4);
        if (is_answered)
            rcm_is_answered();
        else
            rcm_calls();
        dreq = rcm_says_what(RCM_DREQ);
        rcm_says(&dreq);
        rcm_hear(RCM_DREP);
        assert_int_equal(rcm_expect(RCM_EVENT_REJECTED)->reason, RCM_CONSUMER);
        rcm_expect(RCM_EVENT_GONE);
        rcm_expect_nothing();
        assert_int_equal(rcm_confirm(&cw.cm, &cw.conn), -ENOTCONN);
        rcm_assert_empty(&cw.cm);
    }
}

/* A REJ ends an established connection: the peer had given up waiting for the RTU. */
static void rejected_late(void **state)
{
    struct rcm_message m;

    (void)state;
    rcm_open(4);
    rcm_is_established(true);
    m = rcm_says_what(RCM_REJ);
    m.reason = RCM_TIMED_OUT;
    rcm_says(&m);
    rcm_expect(RCM_EVENT_DISCONNECTED);
    rcm_expect_nothing();
    rcm_says(&m);
    rcm_expect_nothing();
    rcm_waits_for_deadline();
    rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* Private data at their limits. */
static void private_data(void **state)
{
    static const struct {
        bool sidr, rdma_cm;
        uint8_t most;
    } kinds[] = {{false, true, RCM_IP_PRIVATE},
                 {false, false, RCM_PRIVATE_REQ},
                 {true, true, RCM_IP_PRIVATE_SIDR},
                 {true, false, RCM_PRIVATE_SIDR_REQ}};
    uint8_t data[RCM_PRIVATE_MAX];

    (void)state;
    memset(data, 'x', sizeof(data));
    for (uint32_t i = 0; i < 4; i++)
        for (uint8_t octets = kinds[i].most - 1; octets <= kinds[i].most + 1; octets++) {
            struct rcm_connect connect;
            int result;

            rcm_open(4);
            connect = rcm_usual_connect();
            connect.rdma_cm = kinds[i].rdma_cm;
            connect.data = data;
            connect.octets = octets;
            result = kinds[i].sidr ? rcm_resolve(&cw.cm, &cw.conn, &connect, cw.now_us)
                                   : rcm_connect(&cw.cm, &cw.conn, &connect, cw.now_us);
            assert_int_equal(result, octets <= kinds[i].most ? 0 : -EMSGSIZE);
            if (result) {
                rcm_assert_empty(&cw.cm);
                continue;
            }
            rcm_hear(kinds[i].sidr ? RCM_SIDR_REQ : RCM_REQ);
            assert_memory_equal(cw.received.data + cw.received.octets - kinds[i].most, data, octets);
        }
}

/* IPv6, and comm IDs with a part that the host gives. */
static void given_numbers(void **state)
{
    static struct rcm_conn conn[16];
    struct rcm_connect connect;
    uint32_t all = 0;
    struct rcm_ip ip;

    (void)state;
    rcm_open(4);
    cw.cm.attr.id_base = 0x12340000;
    cw.cm.attr.id_mask = 0xf;
    cw.path.local[0] = cw.path.peer[0] = 0xfd;
    connect = rcm_usual_connect();
    memset(conn, 0, sizeof(conn));
    for (uint32_t i = 0; i < 16; i++) {
        assert_int_equal(rcm_connect(&cw.cm, &conn[i], &connect, cw.now_us), 0);
        rcm_hear(RCM_REQ);
        assert_int_equal(cw.received.local_id & ~0xfu, 0x12340000);
        all |= 1u << (cw.received.local_id & 0xf);
        assert_true(rcm_ip_decode(&ip, cw.received.data) && ip.ipv6);
        assert_memory_equal(ip.destination, cw.path.peer, 16);
    }
    assert_int_equal(all, 0xffff); /* none twice */
    for (uint32_t i = 0; i < 16; i++)
        rcm_forget(&cw.cm, &conn[i]);
    rcm_assert_empty(&cw.cm);
}

/* Many deadlines: each comes in its turn. */
static void deadlines(void **state)
{
    static struct rcm_conn conn[100];
    struct rcm_connect connect;
    uint32_t gone = 0;

    (void)state;
    rcm_open(4);
    memset(conn, 0, sizeof(conn));
    for (uint32_t i = 0; i < 100; i++) {
        connect = rcm_usual_connect();
        connect.response_timeout = (uint8_t)rng_between(&cw.rng, RCM_TIMEOUT_LEAST, RCM_TIMEOUT_MOST);
        connect.cm_retries = (uint8_t)rng_below(&cw.rng, 3);
        assert_int_equal(rcm_connect(&cw.cm, &conn[i], &connect, cw.now_us), 0);
        rcm_waits(rng_below(&cw.rng, 3000));
    }
    while (gone < 100) {
        uint64_t first_us = RCM_NEVER;
        struct rcm_path path;

        for (uint32_t i = 0; i < 100; i++)
            if (conn[i].timer.due_us < first_us)
                first_us = conn[i].timer.due_us;
        assert_int_equal(rcm_deadline(&cw.cm), first_us);
        if (rng_one_in(&cw.rng, 10))
            rcm_disconnect(&cw.cm, &conn[rng_below(&cw.rng, 100)], cw.now_us);
        else
            rcm_waits(first_us - cw.now_us);
        while (rcm_event(&cw.cm, &cw.event))
            gone += cw.event.kind == RCM_EVENT_GONE;
        while (rcm_output(&cw.cm, &path, cw.packet))
            continue;
    }
    rcm_assert_empty(&cw.cm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(established),     cmocka_unit_test(no_answer),      cmocka_unit_test(rejected),
        cmocka_unit_test(prolonged),       cmocka_unit_test(answered_again), cmocka_unit_test(rejects),
        cmocka_unit_test(cancelled),       cmocka_unit_test(disconnects),    cmocka_unit_test(no_dreq_answer),
        cmocka_unit_test(both_disconnect), cmocka_unit_test(ended_early),    cmocka_unit_test(rejected_late),
        cmocka_unit_test(private_data),    cmocka_unit_test(given_numbers),  cmocka_unit_test(deadlines),
    };

    return cmocka_run_group_tests_name("roce_rcm_active", tests, NULL, NULL);
}
