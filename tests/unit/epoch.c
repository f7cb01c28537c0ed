/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* epoch.c - an invalidation completes only after every reader that may use the region has left: RDMAP-5.3-03. */
#include <string.h>

#include "tests/lib/engine.h"

enum { PLACES = 3 };

static struct engine e;
static struct side s;
static struct epoch_reader place[PLACES];
static struct mr *mr, *other;

static int set_up(void **state)
{
    (void)state;
    engine_init(&e);
    memset(place, 0, sizeof(place));
    epochs_init(&e.mrs.epochs, place, PLACES);
    mr = engine_region(&e, 64, ALL_ACCESS);
    other = engine_region(&e, 64, ALL_ACCESS);
    side_open(&s, &e, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    side_fini(&s);
    engine_fini(&e);
    return 0;
}

static void enter(uint32_t i)
{
    epoch_enter(&e.mrs.epochs, &place[i]);
}

/* --- readers -------------------------------------------------------------------------------------------------- */

static void only_those_before(void **state)
{
    uint64_t epoch, later;

    (void)state;
    assert_true(epoch_is_over(&e.mrs.epochs, 0));
    epoch = epoch_advance(&e.mrs.epochs);
    assert_true(epoch_is_over(&e.mrs.epochs, epoch)); /* there is no reader */
    enter(0);
    assert_true(epoch_is_over(&e.mrs.epochs, epoch)); /* a later reader does not count */
    later = epoch_advance(&e.mrs.epochs);
    assert_false(epoch_is_over(&e.mrs.epochs, later));
    enter(1);
    epoch_leave(&place[0]);
    assert_true(epoch_is_over(&e.mrs.epochs, later));
    assert_true(epoch_is_over(&e.mrs.epochs, epoch));
    epoch_leave(&place[1]);
}

static void one_who_stays_may_renew(void **state)
{
    uint64_t epoch;

    (void)state;
    enter(2);
    epoch = epoch_advance(&e.mrs.epochs);
    assert_false(epoch_is_over(&e.mrs.epochs, epoch));
    epoch_renew(&e.mrs.epochs, NULL);
    assert_false(epoch_is_over(&e.mrs.epochs, epoch));
    epoch_renew(&e.mrs.epochs, &place[2]);
    assert_true(epoch_is_over(&e.mrs.epochs, epoch));
    assert_false(epoch_is_over(&e.mrs.epochs, epoch_advance(&e.mrs.epochs)));
    epoch_leave(&place[2]);
}

/* Take every shared place, then one more. */
static void places_for_anybody(void **state)
{
    (void)state;
    assert_ptr_equal(epoch_enter_any(&e.mrs.epochs, 1, 0), &place[1]);
    assert_ptr_equal(epoch_enter_any(&e.mrs.epochs, 1, 0), &place[2]);
    assert_null(epoch_enter_any(&e.mrs.epochs, 1, 0)); /* place 0 is not shared */
    epoch_leave(&place[1]);
    assert_ptr_equal(epoch_enter_any(&e.mrs.epochs, 1, 0), &place[1]);
    epoch_leave(&place[1]);
    epoch_leave(&place[2]);
}

/* Readers with different wishes get different places, and go round where theirs is taken. */
static void places_by_wish(void **state)
{
    (void)state;
    assert_ptr_equal(epoch_enter_any(&e.mrs.epochs, 1, 3), &place[2]);
    assert_ptr_equal(epoch_enter_any(&e.mrs.epochs, 1, 1), &place[1]);
    epoch_leave(&place[2]);
    assert_ptr_equal(epoch_enter_any(&e.mrs.epochs, 1, 0), &place[2]);
    assert_null(epoch_enter_any(&e.mrs.epochs, 1, 7));
    epoch_leave(&place[1]);
    epoch_leave(&place[2]);
}

/* --- LOCAL_INV ------------------------------------------------------------------------------------------------- */

static void invalidate(uint64_t wr_id, const struct mr *what)
{
    struct rddp_send_wr wr = {
        .wr_id = wr_id,
        .opcode = RDDP_WR_LOCAL_INV,
        .send_flags = RDDP_SEND_SIGNALED,
        .invalidate_rkey = what->key,
    };

    assert_int_equal(qp_post_send(&s.qp, &wr), 0);
}

static void write_some(uint64_t wr_id)
{
    struct rddp_sge sge = piece_of(other, 0, 8);

    assert_int_equal(post_remote(&s, wr_id, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, &sge, 1, 1, 0), 0);
}

/* Requests behind a LOCAL_INV are sent while it waits, and complete after it. */
static void completes_when_they_have_left(void **state)
{
    struct emit emit;

    (void)state;
    enter(0);
    write_some(1);
    invalidate(2, mr);
    write_some(3);
    for (int i = 0; i < 2; i++) {
        assert_true(qp_emit(&s.qp, &emit, 1000, 1000));
        qp_queued(&s.qp, (uint64_t)i + 1);
    }
    assert_false(mr->valid);
    qp_sent(&s.qp, 2);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    expect_quiet(&s.send_cq);
    assert_true(qp_waits(&s.qp));
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_quiet(&s.send_cq);
    epoch_leave(&place[0]);
    enter(1); /* a later reader does not delay the LOCAL_INV */
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    expect_wc(&s.send_cq, 3, RDDP_WC_SUCCESS);
    expect_quiet(&s.send_cq);
    assert_false(qp_waits(&s.qp));
    epoch_leave(&place[1]);
}

static void alone_it_is_told_at_once(void **state)
{
    struct emit emit;

    (void)state;
    invalidate(1, mr);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    assert_false(qp_waits(&s.qp));
}

static void two_wait_for_two(void **state)
{
    struct emit emit;

    (void)state;
    enter(0);
    invalidate(1, mr);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    enter(1);
    invalidate(2, other);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    epoch_leave(&place[0]);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    expect_quiet(&s.send_cq);
    assert_true(qp_waits(&s.qp));
    epoch_leave(&place[1]);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
}

/* A span that is queued for a socket keeps its region in use as a reader does, also when its reader has left, and when
 * it is of a part of the region. */
static void waits_for_spans(void **state)
{
    struct mr part;
    struct emit emit;

    (void)state;
    assert_true(mr_part(&part, mr, mr->base, 8, 0));
    assert_true(mr_insert(&e.mrs, &part, 5));
    mr_lend(&part);
    invalidate(1, mr);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_quiet(&s.send_cq);
    assert_true(qp_waits_for_spans(&s.qp));
    mr_give_back(&part);
    assert_false(qp_waits_for_spans(&s.qp));
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    mr_remove(&e.mrs, &part);
}

/* A request that sends nothing is executed whatever else is being sent, but not before those posted before it. */
static void local_work_needs_no_peer(void **state)
{
    const struct seg_read read = {.sink_key = 7, .source_key = other->key, .source_offset = other->start, .length = 64};
    struct emit emit;

    (void)state;
    assert_int_equal(arrive(&s, a_read_request(1, &read)), FAULT_NONE);
    assert_true(qp_emit(&s.qp, &emit, 8, 1000)); /* the response has begun */
    write_some(1);
    invalidate(2, mr);
    assert_false(qp_has_local(&s.qp));
    qp_do_local(&s.qp);
    assert_true(mr->valid);
    for (int i = 0; i < 8; i++) /* the rest of it, and the Write */
        assert_true(qp_emit(&s.qp, &emit, 8, 1000));
    assert_int_equal(arrive(&s, a_read_request(2, &read)), FAULT_NONE);
    assert_true(qp_has_local(&s.qp));
    qp_do_local(&s.qp);
    assert_false(mr->valid);
    assert_false(qp_has_local(&s.qp));
}

/* A flushed LOCAL_INV completes without waiting for readers. */
static void failure_flushes_it(void **state)
{
    struct emit emit;

    (void)state;
    enter(0);
    invalidate(1, mr);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_LOST});
    expect_wc(&s.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    assert_false(qp_waits(&s.qp));
    epoch_leave(&place[0]);
}

/* --- Send with Invalidate -------------------------------------------------------------------------------------- */

static struct seg a_send_with_invalidate(uint32_t msn)
{
    struct seg seg = a_send(msn, 0, "12345678", 8, SEG_LAST | SEG_INVALIDATE);

    seg.invalidate = mr->key;
    return seg;
}

static void post_receives(uint64_t n)
{
    for (uint64_t i = 1; i <= n; i++)
        assert_int_equal(post_recv(&s, i, (struct rddp_sge[]){piece_of(other, 8 * (uint32_t)i, 8)}, 1), 0);
}

/* A Send behind a waiting Send with Invalidate waits, too; delivering it repeatedly changes nothing. */
static void is_withheld_until_they_have_left(void **state)
{
    struct rddp_wc wc;

    (void)state;
    post_receives(3);
    enter(0);
    assert_int_equal(arrive(&s, a_send_with_invalidate(1)), FAULT_NONE);
    assert_false(mr->valid);
    assert_true(qp_waits(&s.qp));
    expect_quiet(&s.recv_cq);
    for (int i = 0; i < 3; i++)
        assert_int_equal(arrive_at(&s, a_send(2, 0, "abcdefgh", 8, SEG_LAST), s.qp.rx_pos, s.qp.rx_pos + 8),
                         FAULT_NOT_NOW);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    epoch_leave(&place[0]);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    wc = expect_wc(&s.recv_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(wc.wc_flags, RDDP_WC_WITH_INV);
    assert_int_equal(wc.invalidated_rkey, mr->key);
    assert_int_equal(wc.byte_len, 8);
    assert_false(qp_waits(&s.qp));
    assert_int_equal(arrive_at(&s, a_send(2, 0, "abcdefgh", 8, SEG_LAST), s.qp.rx_pos, s.qp.rx_pos + 8), FAULT_NONE);
    expect_wc(&s.recv_cq, 2, RDDP_WC_SUCCESS);
}

static void is_withheld_until_spans_have_left(void **state)
{
    (void)state;
    post_receives(1);
    mr_lend(mr);
    assert_int_equal(arrive(&s, a_send_with_invalidate(1)), FAULT_NONE);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    assert_true(qp_waits_for_spans(&s.qp));
    mr_give_back(mr);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.recv_cq, 1, RDDP_WC_SUCCESS);
}

/* Invalidating an invalid key is a fault, with or without a reader. */
static void twice_is_a_fault(void **state)
{
    (void)state;
    post_receives(3);
    enter(0);
    assert_int_equal(arrive(&s, a_send_with_invalidate(1)), FAULT_NONE);
    epoch_leave(&place[0]);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.recv_cq, 1, RDDP_WC_SUCCESS);
    enter(0);
    assert_int_equal(arrive(&s, a_send_with_invalidate(2)), FAULT_INVALIDATE);
    epoch_leave(&place[0]);
}

/* A Send that came early completes after the waiting Send with Invalidate before it. */
static void holds_up_what_was_early(void **state)
{
    (void)state;
    post_receives(3);
    enter(0);
    assert_int_equal(arrive_at(&s, a_send(2, 0, "abcdefgh", 8, SEG_LAST), 100, 200), FAULT_NONE);
    assert_int_equal(arrive_at(&s, a_send_with_invalidate(1), 0, 100), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    assert_int_equal(qp_advance(&s.qp, 200), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    epoch_leave(&place[0]);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.recv_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&s.recv_cq, 2, RDDP_WC_SUCCESS);
    expect_quiet(&s.recv_cq);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_those_before),
        TEST(one_who_stays_may_renew),
        TEST(places_for_anybody),
        TEST(places_by_wish),
        TEST(completes_when_they_have_left),
        TEST(alone_it_is_told_at_once),
        TEST(two_wait_for_two),
        TEST(waits_for_spans),
        TEST(local_work_needs_no_peer),
        TEST(is_withheld_until_spans_have_left),
        TEST(failure_flushes_it),
        TEST(is_withheld_until_they_have_left),
        TEST(twice_is_a_fault),
        TEST(holds_up_what_was_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
