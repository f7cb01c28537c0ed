/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_straight.c - which units go straight to their place, without a clock, and what becomes of those that do not. */
#include <string.h>

#include "tests/unit/conn_host.h"

enum { LENGTH = 64, HALF = LENGTH / 2 };

static struct mr *mr;
static uint8_t octets[LENGTH];

/* A responder with `receives` receives. The first unit of the peer releases it, so it does not go straight. */
static void begin(uint64_t receives)
{
    const struct conn_attr attr = host_attr();
    struct rddp_sge piece;

    next_connection();
    pattern(octets, LENGTH, 7);
    mr = engine_region(&h.engine, LENGTH, ALL_ACCESS);
    piece = piece_of(mr, 0, LENGTH);
    for (uint64_t i = 1; i <= receives; i++)
        assert_int_equal(post_recv(&h.side, i, &piece, 1), 0);
    host_ready(&h, false, &attr);
    peer_says(&h, a_write(mr->key, mr->start, octets, 1, SEG_LAST));
}

static bool goes_straight(struct seg seg)
{
    peer_says(&h, seg);
    return h.conn.is_straight;
}

static void whole_messages(void **state)
{
    uint8_t stream[512];
    size_t n = 0;

    (void)state;
    begin(3);
    assert_true(goes_straight(a_write(mr->key, mr->start, octets, LENGTH, SEG_LAST)));
    assert_memory_equal(mr->base, octets, LENGTH);
    assert_true(goes_straight(a_send(1, 0, octets, HALF, SEG_LAST)));
    assert_int_equal(expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS).byte_len, HALF);
    assert_true(goes_straight(a_send(2, 0, octets, 0, SEG_LAST | SEG_SOLICITED)));
    assert_int_equal(expect_wc(&h.side.recv_cq, 2, RDDP_WC_SUCCESS).byte_len, 0);
    n += peer_frames(&h, a_write(mr->key, mr->start, octets, LENGTH, SEG_LAST), stream);
    n += peer_frames(&h, a_send(3, 0, octets, LENGTH, SEG_LAST), stream + n);
    host_hear(&h, stream, n);
    assert_true(h.conn.is_straight);
    assert_int_equal(expect_wc(&h.side.recv_cq, 3, RDDP_WC_SUCCESS).byte_len, LENGTH);
    assert_int_equal(h.side.qp.rx_octets, 1 + LENGTH + HALF + 2 * LENGTH);
}

static unsigned events;

static void count_event(struct cq *cq)
{
    (void)cq;
    events++;
}

/* A CQ that is armed for solicited messages passes over the others. */
static void solicited(void **state)
{
    (void)state;
    begin(2);
    events = 0;
    h.side.recv_cq.notify = count_event;
    cq_arm(&h.side.recv_cq, CQ_SOLICITED);
    assert_true(goes_straight(a_send(1, 0, octets, 1, SEG_LAST)));
    assert_int_equal(events, 0);
    assert_true(goes_straight(a_send(2, 0, octets, 1, SEG_LAST | SEG_SOLICITED)));
    assert_int_equal(events, 1);
}

/* What is only begun starts a time limit, and what ends it stops that. */
static void parts(void **state)
{
    (void)state;
    begin(2);
    assert_false(goes_straight(a_send(1, 0, octets, HALF, 0)));
    assert_true(conn_deadline(&h.conn, h.now_us) != UINT64_MAX);
    assert_false(goes_straight(a_write(mr->key, mr->start, octets, LENGTH, SEG_LAST)));
    assert_false(goes_straight(a_send(1, HALF, octets + HALF, HALF, SEG_LAST)));
    assert_int_equal(expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS).byte_len, LENGTH);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
    assert_true(goes_straight(a_send(2, 0, octets, HALF, SEG_LAST)));
    assert_false(goes_straight(a_write(mr->key, mr->start, octets, HALF, 0)));
    assert_false(goes_straight(a_write(mr->key, mr->start, octets, HALF, SEG_LAST)));
    assert_true(goes_straight(a_write(mr->key, mr->start, octets, HALF, SEG_LAST)));
}

/* The rest of the octets wait for more, under the stall limit. */
static void cut_unit(void **state)
{
    uint8_t stream[512];
    size_t n, whole;

    (void)state;
    begin(1);
    whole = peer_frames(&h, a_write(mr->key, mr->start, octets, LENGTH, SEG_LAST), stream);
    n = whole + peer_frames(&h, a_send(1, 0, octets, LENGTH, SEG_LAST), stream + whole);
    host_hear(&h, stream, n - 1);
    assert_false(h.conn.is_straight);
    assert_memory_equal(mr->base, octets, LENGTH);
    assert_true(conn_deadline(&h.conn, h.now_us) != UINT64_MAX);
    expect_quiet(&h.side.recv_cq);
    host_hear(&h, stream + n - 1, 1);
    assert_int_equal(expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS).byte_len, LENGTH);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
}

/* A Read Request has to be answered, and an invalidation to be waited for. */
static void other_messages(void **state)
{
    struct seg_read read = {.sink_key = 1, .length = HALF};
    struct seg seg;

    (void)state;
    begin(1);
    read.source_key = mr->key;
    read.source_offset = mr->start;
    assert_false(goes_straight(a_read_request(1, &read)));
    expect_seg(&h, SEG_READ_RESP);
    seg = a_send(1, 0, octets, HALF, SEG_LAST | SEG_INVALIDATE);
    seg.invalidate = mr->key;
    assert_false(goes_straight(seg));
    expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS);
}

/* What is wrong is said as ever, once, and nothing behind it is placed. */
static void wrong(void **state)
{
    uint8_t stream[512];
    size_t n;

    (void)state;
    begin(1);
    n = peer_frames(&h, a_write(mr->key + 1, mr->start, octets, LENGTH, SEG_LAST), stream);
    n += peer_frames(&h, a_send(1, 0, octets, LENGTH, SEG_LAST), stream + n);
    host_hear(&h, stream, n);
    assert_false(h.conn.is_straight);
    assert_int_equal(h.conn.life.note.fault, FAULT_KEY);
    expect_wc(&h.side.recv_cq, 1, RDDP_WC_WR_FLUSH_ERR);
}

/* Posts need no clock, unless there is anything else to do. */
static void posts(void **state)
{
    struct conn *c = &h.conn;
    bool *const facts[] = {&c->start.silent, &c->start.rtr_due, &c->start.rtr_answer_due, &c->life.peer_ended,
                           &c->life.awaits_spans};
    uint64_t *const times[] = {&c->start.tx_after_us, &c->life.stall_deadline_us, &c->life.resume_us,
                               &c->life.receive_deadline_us};

    (void)state;
    begin(0);
    assert_true(conn_sends_straight(c));
    assert_true(c->is_plain);
    c->is_plain = false;
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        *facts[i] = true;
        assert_false(conn_sends_straight(c));
        *facts[i] = false;
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        *times[i] = 1;
        assert_false(conn_sends_straight(c));
        *times[i] = 0;
    }
    c->start.frame_length = 1;
    assert_false(conn_sends_straight(c));
    c->start.frame_length = 0;
    c->life.news = CONN_NEWS_ESTABLISHED;
    assert_false(conn_sends_straight(c));
    c->life.news = 0;
    c->life.out = &h.out;
    assert_false(conn_sends_straight(c));
    c->life.out = NULL;
    assert_true(conn_sends_straight(c));
}

/* An empty Write goes in front of a post, but only as long as the peer has said nothing. */
static void nudge(void **state)
{
    struct conn *c = &h.conn;

    (void)state;
    begin(0);
    c->is_plain = false;
    c->start.nudge_due = true;
    assert_true(conn_sends_straight(c));
    c->agreed.rx_pos = 0;
    assert_false(conn_sends_straight(c));
}

/* It is no longer to be sent once the peer has said something, so that does not go straight. */
static void nudge_no_more(void **state)
{
    const struct conn_attr attr = host_attr();

    (void)state;
    next_connection();
    mr = engine_region(&h.engine, LENGTH, ALL_ACCESS);
    host_ready(&h, true, &attr);
    h.conn.start.nudge_due = true;
    assert_true(conn_wants(&h.conn, h.now_us) & CONN_TX);
    assert_false(goes_straight(a_write(mr->key, mr->start, octets, 1, SEG_LAST)));
    assert_false(conn_wants(&h.conn, h.now_us) & CONN_TX);
    assert_true(goes_straight(a_write(mr->key, mr->start, octets, 1, SEG_LAST)));
}

/* A stream whose link changes may lose its order. */
static void reordered(void **state)
{
    static struct reorder reorder;

    (void)state;
    begin(0);
    assert_true(conn_sends_straight(&h.conn));
    conn_attach_reorder(&h.conn, &reorder);
    assert_false(conn_sends_straight(&h.conn));
    h.conn.reorder = NULL;
}

/* The first delay is of what is sent. Once it is over it is over for good. */
static void first_delay(void **state)
{
    struct conn_attr attr = host_attr();
    struct rddp_sge piece;

    (void)state;
    next_connection();
    attr.first_delay_us = 1000;
    mr = engine_region(&h.engine, LENGTH, ALL_ACCESS);
    piece = piece_of(mr, 0, LENGTH);
    host_ready(&h, true, &attr);
    assert_true(goes_straight(a_write(mr->key, mr->start, octets, LENGTH, SEG_LAST)));
    assert_false(conn_sends_straight(&h.conn));
    assert_int_equal(post_remote(&h.side, 1, RDDP_WR_RDMA_WRITE, 0, &piece, 1, 1, 0), 0);
    host_pump(&h);
    expect_seg(&h, SEG_WRITE);
    assert_true(conn_sends_straight(&h.conn));
}

/* A full CQ ends the connection, and what follows in the same octets is not placed. */
static void full_cq(void **state)
{
    uint8_t stream[512];
    size_t n;

    (void)state;
    begin(2);
    h.side.recv_cq.cqe = 1;
    n = peer_frames(&h, a_send(1, 0, octets, 1, SEG_LAST), stream);
    n += peer_frames(&h, a_send(2, 0, octets, 1, SEG_LAST), stream + n);
    n += peer_frames(&h, a_write(mr->key, mr->start, octets, LENGTH, SEG_LAST), stream + n);
    host_hear(&h, stream, n);
    assert_false(h.conn.is_straight);
    assert_int_equal(h.conn.life.note.fault, FAULT_CQ_FULL);
    assert_memory_not_equal(mr->base, octets, LENGTH);
}

/* What follows in the same octets comes too late to be the reason, be it wrong or the peer's own end. */
static void full_cq_first(void **state)
{
    const struct seg terminate = {
        .op = SEG_TERMINATE, .flags = SEG_LAST, .msg = 1, .data = (const uint8_t[4]){0}, .length = 4};
    uint8_t stream[512];
    size_t n;

    (void)state;
    for (unsigned is_terminate = 0; is_terminate < 2; is_terminate++) {
        begin(2);
        h.side.recv_cq.cqe = 1;
        n = peer_frames(&h, a_send(1, 0, octets, 1, SEG_LAST), stream);
        n += peer_frames(&h, a_send(2, 0, octets, 1, SEG_LAST), stream + n);
        n += peer_frames(&h, is_terminate ? terminate : a_write(mr->key, mr->start, octets, 1, SEG_LAST), stream + n);
        stream[n - 1] ^= !is_terminate;
        host_hear(&h, stream, n);
        expect_end(&h, FAULT_CQ_FULL);
        expect_terminate(&h, 0x0000);
        assert_int_equal(h.conn.life.peer_term, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(solicited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cut_unit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(posts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nudge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nudge_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reordered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(first_delay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_cq, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_cq_first, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
