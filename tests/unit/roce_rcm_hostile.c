/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_rcm_hostile.c - what strangers can do to RoCE's connection manager: floods of requests, and messages with
 * guessed numbers. */
#include <string.h>

#include "base/container.h"
#include "tests/lib/rcm_world.h"

/* --- floods ------------------------------------------------------------------------------------------------------- */

enum { BACKLOG = 8, SHARE = BACKLOG / RCM_SHARE, CONNS = 64 };

static struct rcm_conn conn[CONNS];
static uint32_t asked, answers;

static void begin(void)
{
    rcm_open(BACKLOG);
    memset(conn, 0, sizeof(conn));
    asked = answers = 0;
}

/* Another request, which becomes the next connection. */
static void ask_by(const struct rcm_path *path)
{
    struct rcm_message request = rcm_request();

    cw.path = *path;
    request.local_id = PEER_ID + asked;
    request.terms.qpn = PEER_QPN + asked;
    rcm_says(&request);
    rcm_expect(RCM_EVENT_REQUEST);
    rcm_take(&cw.cm, &conn[asked++]);
    assert_true(cw.listener.pending_count <= BACKLOG);
}

static void ask(uint32_t peer)
{
    const struct rcm_path path = rcm_peer(peer);

    ask_by(&path);
}

/* That one was given up, and its peer was told. */
static void gave_way(uint32_t number)
{
    struct rcm_path path = conn[number].path;
    struct bth b = {.data = cw.packet + BTH_OCTETS + DETH_OCTETS};

    assert_ptr_equal(rcm_expect(RCM_EVENT_GAVE_WAY)->conn, &conn[number]);
    assert_ptr_equal(rcm_expect(RCM_EVENT_GONE)->conn, &conn[number]);
    rcm_expect_nothing();
    assert_int_equal(conn[number].state, RCM_CLOSED);
    assert_true(rcm_output(&cw.cm, &cw.received_path, cw.packet));
    assert_memory_equal(cw.received_path.peer, path.peer, 16);
    assert_int_equal(rcm_decode(&cw.received, b.data, RCM_MAD_OCTETS), RCM_OK);
    assert_true(cw.received.attribute == RCM_REJ && cw.received.reason == RCM_NO_RESOURCES);
    assert_int_equal(cw.received.remote_id, PEER_ID + number);
    rcm_hear_nothing();
}

/* ROCE-CM-12: the backlog at n - 1, n and n + 1 of many peers: the oldest gives way */
static void full(void **state)
{
    (void)state;
    begin();
    for (uint32_t i = 0; i < BACKLOG; i++) {
        ask(i);
        rcm_expect_nothing();
    }
    for (uint32_t i = 0; i < 2 * BACKLOG; i++) {
        ask(BACKLOG + i);
        gave_way(i);
    }
    assert_int_equal(cw.listener.pending_count, BACKLOG);
    assert_int_equal(cw.cm.counters.gave_way, 2 * BACKLOG);
}

/* ROCE-CM-12: the same of one peer, with its share; the others do not notice */
static void share(void **state)
{
    (void)state;
    begin();
    ask(1);
    for (uint32_t i = 0; i < SHARE; i++) {
        ask(0);
        rcm_expect_nothing();
    }
    for (uint32_t i = 0; i < 20; i++) {
        ask(0);
        gave_way(1 + i);
    }
    assert_int_equal(cw.listener.pending_count, 1 + SHARE);
    assert_int_equal(conn[0].state, RCM_REQ_RECEIVED);
}

/* ROCE-CM-12: a sender that the host knows does not give way to others, whose addresses may be forged, and waits with
 * what is more than its share. */
static void known(void **state)
{
    const struct rcm_accept accept = rcm_usual_accept();
    struct rcm_path path = rcm_peer(0);

    (void)state;
    begin();
    path.is_known = true;
    for (uint32_t i = 0; i < SHARE; i++) {
        assert_false(rcm_is_full(&cw.listener));
        ask_by(&path);
    }
    assert_true(rcm_is_full(&cw.listener));
    for (uint32_t i = 0; i < BACKLOG - SHARE; i++) {
        ask(1 + i);
        rcm_expect_nothing();
    }
    for (uint32_t i = 0; i < BACKLOG; i++) {
        ask(BACKLOG + i);
        gave_way(SHARE + i);
    }
    cw.path = path;
    rcm_accept(&cw.cm, &conn[0], &accept, cw.now_us);
    rcm_hear(RCM_REP);
    rcm_waits(RCM_RESEND_FIRST_US); /* it need not prove itself */
    rcm_hear(RCM_REP);
    assert_int_equal(cw.cm.unasked, RCM_UNASKED_MAX);
    rcm_communicates(&cw.cm, &conn[0]);
    rcm_expect(RCM_EVENT_ESTABLISHED);
    assert_false(rcm_is_full(&cw.listener));
}

/* Of the smallest backlog everyone has a share of one. */
static void least(void **state)
{
    (void)state;
    begin();
    cw.listener.backlog = 1;
    ask(0);
    ask(1);
    gave_way(0);
    ask(1);
    gave_way(1);
}

/* ROCE-CM-12: requests with forged addresses that are accepted: the answers are never more than the questions, and
 * RCM_UNASKED_MAX in all. A peer that proves itself earns one. */
static void answers_no_more_than_asked(void **state)
{
    const struct rcm_accept accept = rcm_usual_accept();
    const uint32_t most = 4;
    uint32_t sent = 0;

    (void)state;
    begin();
    cw.listener.backlog = BACKLOG * RCM_SHARE;
    for (uint32_t i = 0; i < most; i++) {
        ask(i);
        rcm_accept(&cw.cm, &conn[i], &accept, cw.now_us);
        rcm_hear(RCM_REP);
    }
    for (uint32_t i = 0; i < 12; i++) { /* of 15 resends each */
        rcm_tick(&cw.cm, rcm_deadline(&cw.cm));
        while (rcm_output(&cw.cm, &cw.received_path, cw.packet))
            sent++;
        assert_int_equal(cw.cm.unasked, RCM_UNASKED_MAX - sent);
    }
    assert_int_equal(sent, RCM_UNASKED_MAX);
    assert_true(cw.cm.counters.withheld >= most);
    rcm_disconnect(&cw.cm, &conn[1], cw.now_us); /* not told either */
    assert_false(rcm_output(&cw.cm, &cw.received_path, cw.packet));
    rcm_communicates(&cw.cm, &conn[2]);
    rcm_expect(RCM_EVENT_ESTABLISHED);
    assert_int_equal(cw.cm.unasked, 1);
    rcm_disconnect(&cw.cm, &conn[2], cw.now_us);
    assert_true(rcm_output(&cw.cm, &cw.received_path, cw.packet));
    assert_int_equal(cw.cm.unasked, 1);
}

/* ROCE-CM-12: those that are accepted give way too, until they are established, and those that wait for the answer to a
 * DREQ. */
static void accepted_give_way(void **state)
{
    const struct rcm_accept accept = rcm_usual_accept();

    (void)state;
    begin();
    for (uint32_t i = 0; i < SHARE; i++) {
        ask(0);
        rcm_accept(&cw.cm, &conn[i], &accept, cw.now_us);
        rcm_hear(RCM_REP);
    }
    rcm_disconnect(&cw.cm, &conn[1], cw.now_us);
    rcm_hear(RCM_DREQ);
    ask(0);
    gave_way(0);
    ask(0);
    gave_way(1);
    rcm_accept(&cw.cm, &conn[2], &accept, cw.now_us);
    rcm_hear(RCM_REP);
    rcm_communicates(&cw.cm, &conn[2]);
    rcm_expect(RCM_EVENT_ESTABLISHED);
    ask(0);
    rcm_expect_nothing();
    ask(0);
    gave_way(3);
    assert_int_equal(conn[2].state, RCM_ESTABLISHED);
}

/* ROCE-CM-12: whatever comes, there is at most one answer, and it is as long as the question. */
static void no_amplification(void **state)
{
    uint64_t questions = 0;

    (void)state;
    begin();
    for (uint32_t i = 0; i < 20000; i++) {
        struct rcm_message m = rcm_request();

        m.attribute = (enum rcm_attribute)rng_between(&cw.rng, RCM_REQ, RCM_APR);
        m.local_id = rng_below(&cw.rng, 30);
        m.terms.qpn = rng_below(&cw.rng, 30);
        m.remote_id = rng_one_in(&cw.rng, 2) ? conn[rng_below(&cw.rng, CONNS)].local_id : rng_below(&cw.rng, 3);
        m.octets = m.octets < rcm_private_max(m.attribute) ? m.octets : (uint8_t)rcm_private_max(m.attribute);
        m.service += rng_below(&cw.rng, 2);
        cw.path = rcm_peer(rng_below(&cw.rng, 12));
        rcm_says(&m);
        questions++;
        while (rcm_event(&cw.cm, &cw.event)) {
            struct rcm_conn *free = NULL;

            for (uint32_t k = 0; k < CONNS && !free; k++)
                free = conn[k].state == RCM_CLOSED && !conn[k].news ? &conn[k] : NULL;
            if (cw.event.kind == RCM_EVENT_REQUEST && free && rng_one_in(&cw.rng, 2))
                rcm_take(&cw.cm, free);
            else if (cw.event.kind == RCM_EVENT_REQUEST)
                assert_int_equal(rcm_refuse(&cw.cm, RCM_CONSUMER, NULL, 0), 0);
        }
        while (rcm_output(&cw.cm, &cw.received_path, cw.packet))
            answers++;
        assert_true(answers <= questions && cw.listener.pending_count <= BACKLOG);
    }
    assert_true(answers > questions / 4);
}

/* Answers that wait: n, and one more. The oldest is lost. */
static void answers_waiting(void **state)
{
    struct rcm_message m = rcm_request();

    (void)state;
    begin();
    m.service++;
    for (uint32_t i = 0; i <= RCM_ANSWERS; i++) {
        m.local_id = PEER_ID + i;
        rcm_says(&m);
    }
    for (uint32_t i = 1; i <= RCM_ANSWERS; i++) {
        rcm_hear(RCM_REJ);
        assert_int_equal(cw.received.remote_id, PEER_ID + i);
    }
    rcm_hear_nothing();
}

/* Connections in TIMEWAIT: n, and one more. */
static void resting(void **state)
{
    static struct rcm_conn many[RCM_RESTING_MAX + 1];

    (void)state;
    begin();
    memset(many, 0, sizeof(many));
    for (uint32_t i = 0; i <= RCM_RESTING_MAX; i++) {
        struct rcm_message request = rcm_request();

        request.local_id = PEER_ID + i;
        rcm_says(&request);
        rcm_expect(RCM_EVENT_REQUEST);
        rcm_take(&cw.cm, &many[i]);
        rcm_reject(&cw.cm, &many[i], RCM_CONSUMER, NULL, 0, cw.now_us);
        rcm_hear(RCM_REJ);
        if (i == RCM_RESTING_MAX)
            assert_ptr_equal(rcm_expect(RCM_EVENT_GONE)->conn, &many[0]);
        rcm_expect_nothing();
    }
    assert_int_equal(cw.cm.resting_count, RCM_RESTING_MAX);
    rcm_waits_for_deadline();
    for (uint32_t i = 0; i < RCM_RESTING_MAX; i++)
        rcm_expect(RCM_EVENT_GONE);
    rcm_assert_empty(&cw.cm);
}

/* --- guesses ------------------------------------------------------------------------------------------------------ */

/* What someone knows who is not on the path: everything but one number. */
enum guess {
    GUESS_ADDRESS, /* another source address */
    GUESS_OUR_ADDRESS,
    GUESS_OUR_ID,
    GUESS_PEER_ID,
    GUESS_TRANSACTION,
    GUESS_QPN,
    GUESSES,
};

static const struct {
    enum rcm_attribute attribute;
    unsigned needs; /* numbers that have to be right */
    void (*open)(void);
} forged[] = {
    {RCM_REP, 1 << GUESS_ADDRESS | 1 << GUESS_OUR_ADDRESS | 1 << GUESS_OUR_ID | 1 << GUESS_TRANSACTION, rcm_calls},
    {RCM_REJ, 1 << GUESS_ADDRESS | 1 << GUESS_OUR_ADDRESS | 1 << GUESS_OUR_ID | 1 << GUESS_TRANSACTION, rcm_calls},
    {RCM_MRA, 1 << GUESS_ADDRESS | 1 << GUESS_OUR_ADDRESS | 1 << GUESS_OUR_ID | 1 << GUESS_TRANSACTION, rcm_calls},
    {RCM_REJ, 0x1f, rcm_is_answered},
    {RCM_RTU, 0x1f, rcm_has_accepted},
    {RCM_REJ, 0x1f, rcm_has_accepted},
    {RCM_DREQ, 0x2f, rcm_has_accepted},
};

static void guess_wrong(struct rcm_message *m, enum guess guess)
{
    switch (guess) {
    case GUESS_ADDRESS:
        cw.path.peer[15] ^= 1;
        break;
    case GUESS_OUR_ADDRESS:
        cw.path.local[15] ^= 1;
        break;
    case GUESS_OUR_ID:
        m->remote_id ^= 1;
        break;
    case GUESS_PEER_ID:
        m->local_id ^= 1;
        break;
    case GUESS_TRANSACTION:
        m->transaction ^= UINT64_C(1) << 63;
        break;
    default:
        m->remote_qpn ^= 1;
    }
}

/* Each number by itself: with a wrong one nothing changes but that an answer without a connection may leave. */
static void guessed(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < countof(forged); i++)
        for (enum guess guess = 0; guess < GUESSES; guess++) {
            struct rcm_message m;
            struct rcm_conn before;
            bool changes;

            rcm_open(4);
            forged[i].open();
            cw.received.local_id = cw.conn.local_id;
            cw.received.remote_id = PEER_ID;
            cw.received.transaction = cw.conn.transaction;
            m = rcm_says_what(forged[i].attribute);
            if (!(forged[i].needs >> guess & 1))
                continue;
            memcpy(&before, &cw.conn, sizeof(before));
            guess_wrong(&m, guess);
            rcm_says(&m);
            rcm_expect_nothing();
            assert_memory_equal(&before, &cw.conn, sizeof(before));
            /* and with all of them right something does */
            guess_wrong(&m, guess);
            rcm_says(&m);
            changes = memcmp(&before, &cw.conn, sizeof(before)) != 0;
            assert_true(changes);
        }
}

/* The same of an established connection, and of one that waits for its DREP. */
static void guessed_ends(void **state)
{
    (void)state;
    for (uint32_t actively = 0; actively < 2; actively++)
        for (enum guess guess = 0; guess < GUESSES; guess++) {
            struct rcm_message m;

            rcm_open(4);
            rcm_is_established(actively);
            cw.received.local_id = cw.conn.local_id;
            cw.received.remote_id = PEER_ID;
            m = rcm_says_what(RCM_DREQ);
            guess_wrong(&m, guess == GUESS_TRANSACTION ? GUESS_QPN : guess);
            rcm_says(&m);
            rcm_expect_nothing();
            assert_int_equal(cw.conn.state, RCM_ESTABLISHED);
            while (rcm_output(&cw.cm, &cw.received_path, cw.packet))
                continue;
            cw.path = rcm_peer(0);
            rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
            rcm_hear(RCM_DREQ);
            m = rcm_says_what(RCM_DREP);
            guess_wrong(&m, guess == GUESS_QPN ? GUESS_TRANSACTION : guess);
            rcm_says(&m);
            rcm_expect_nothing();
            assert_int_equal(cw.conn.state, RCM_DREQ_SENT);
        }
}

/* A request can be withdrawn by who knows the peer's numbers alone, which a kernel may count; a connection cannot. */
static void withdrawn_late(void **state)
{
    const struct rcm_message m = {.attribute = RCM_REJ,
                                  .transaction = PEER_TRANSACTION,
                                  .local_id = PEER_ID,
                                  .about = RCM_ABOUT_OTHER,
                                  .reason = RCM_TIMED_OUT};

    (void)state;
    rcm_open(4);
    rcm_is_established(false);
    rcm_says(&m);
    rcm_expect_nothing();
    assert_int_equal(cw.conn.state, RCM_ESTABLISHED);
    rcm_disconnect(&cw.cm, &cw.conn, cw.now_us);
    rcm_hear(RCM_DREQ);
    rcm_says(&m);
    rcm_expect_nothing();
    assert_int_equal(cw.conn.state, RCM_DREQ_SENT);
}

/* An answer names the queue pair of another connection: that goes on, and the answer is refused. */
static void known_pair(void **state)
{
    struct rcm_connect connect;
    struct rcm_conn second = {.of = NULL};
    const struct rcm_event *e;

    (void)state;
    rcm_open(4);
    rcm_is_established(true);
    connect = rcm_usual_connect();
    assert_int_equal(rcm_connect(&cw.cm, &second, &connect, cw.now_us), 0);
    rcm_hear(RCM_REQ);
    rcm_says_usual(RCM_REP);
    rcm_hear(RCM_REJ);
    assert_true(cw.received.reason == RCM_STALE && cw.received.about == RCM_ABOUT_REP);
    e = rcm_expect(RCM_EVENT_REJECTED);
    assert_true(e->conn == &second && e->reason == RCM_STALE);
    rcm_expect(RCM_EVENT_GONE);
    rcm_expect_nothing();
    assert_int_equal(cw.conn.state, RCM_ESTABLISHED);
}

/* ROCE-CM-13: alternate paths are ignored, as everything is that is no message. */
static void ignored(void **state)
{
    struct rcm_conn before;

    (void)state;
    rcm_open(4);
    rcm_is_established(true);
    memcpy(&before, &cw.conn, sizeof(before));
    rcm_says_usual(RCM_LAP);
    rcm_says_usual(RCM_APR);
    cw.mad[0]++;
    rcm_input(&cw.cm, &cw.path, cw.mad, sizeof(cw.mad), cw.now_us);
    rcm_input(&cw.cm, &cw.path, cw.mad, 10, cw.now_us);
    rcm_expect_nothing();
    rcm_hear_nothing();
    assert_memory_equal(&before, &cw.conn, sizeof(before));
    assert_int_equal(cw.cm.counters.dropped, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full),
        cmocka_unit_test(share),
        cmocka_unit_test(known),
        cmocka_unit_test(least),
        cmocka_unit_test(answers_no_more_than_asked),
        cmocka_unit_test(accepted_give_way),
        cmocka_unit_test(no_amplification),
        cmocka_unit_test(answers_waiting),
        cmocka_unit_test(resting),
        cmocka_unit_test(guessed),
        cmocka_unit_test(guessed_ends),
        cmocka_unit_test(withdrawn_late),
        cmocka_unit_test(ignored),
        cmocka_unit_test(known_pair),
    };

    return cmocka_run_group_tests_name("roce_rcm_hostile", tests, NULL, NULL);
}
