/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mw.c - memory windows: what they may be bound to, in the order of the queue, and never while a reader uses what they
 * were bound to before. */
#include <errno.h>
#include <string.h>

#include "core/mw.h"
#include "core/packets.h"
#include "tests/lib/engine.h"

enum { PLACES = 2, LENGTH = 256, AT = 40, OCTETS = 100, KEY = 0xabcd00, REMOTE_WRITE = RDDP_ACCESS_REMOTE_WRITE };

static struct engine e;
static struct side s, t;
static struct epoch_reader place[PLACES];
static struct mr *region, *fixed, *zero, *unwritable, *stable, *foreign, *source, *joined;
static struct mr first, second, alien; /* windows of type 1, 2, and of another domain */

static void make_window(struct mr *window, enum mr_kind kind, struct pd *pd, uint32_t key)
{
    *window = (struct mr){.pd = pd, .kind = kind};
    assert_true(mr_insert_window(&e.mrs, window, key));
}

static int set_up(void **state)
{
    (void)state;
    engine_init(&e);
    joined = NULL;
    memset(place, 0, sizeof(place));
    epochs_init(&e.mrs.epochs, place, PLACES);
    region = engine_region(&e, LENGTH, LOCAL | RDDP_ACCESS_MW_BIND);
    fixed = engine_region(&e, LENGTH, ALL_ACCESS);
    zero = engine_region(&e, LENGTH, ALL_ACCESS | RDDP_ACCESS_MW_BIND | RDDP_ACCESS_ZERO_BASED);
    unwritable = engine_region(&e, LENGTH, RDDP_ACCESS_MW_BIND);
    stable = engine_region(&e, LENGTH, LOCAL | RDDP_ACCESS_MW_BIND | RDDP_ACCESS_STABLE);
    foreign = engine_region(&e, LENGTH, LOCAL | RDDP_ACCESS_MW_BIND);
    foreign->pd = &e.other_pd;
    source = engine_region(&e, LENGTH, ALL_ACCESS);
    make_window(&first, MR_WINDOW, &e.pd, KEY + 1);
    make_window(&second, MR_WINDOW_OF_QP, &e.pd, 2 * KEY + 1);
    make_window(&alien, MR_WINDOW_OF_QP, &e.other_pd, 3 * KEY + 1);
    side_open(&s, &e, NULL);
    side_open(&t, &e, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    side_fini(&s);
    side_fini(&t);
    foreign->pd = &e.pd;
    engine_fini(&e);
    return 0;
}

/* AT, OCTETS of the region, for writing. */
static struct mw_bind usual(uint32_t key)
{
    return (struct mw_bind){
        .key = key, .to = {.addr = region->start + AT, .length = OCTETS, .lkey = region->key, .access = REMOTE_WRITE}};
}

static enum fault bind(const struct mw_bind *what)
{
    return mw_bind(&e.mrs, &e.pd, s.qp.user, what, &joined);
}

static void post_bind(struct side *side, uint64_t wr_id, const struct mw_bind *what)
{
    struct rddp_send_wr wr = {.wr_id = wr_id,
                              .opcode = RDDP_WR_BIND_MW,
                              .send_flags = RDDP_SEND_SIGNALED,
                              .rkey = what->key,
                              .bind = &what->to};

    assert_int_equal(qp_post_send(&side->qp, &wr), 0);
}

static enum fault write_to(struct side *side, uint32_t key, uint64_t offset, uint32_t length)
{
    static const uint8_t data[LENGTH] = "written";

    return arrive(side, a_write(key, offset, data, length, SEG_LAST));
}

/* --- what it may be bound to ----------------------------------------------------------------------------------- */

static void exactly_there(void **state)
{
    const struct mw_bind what = usual(KEY + 7);

    (void)state;
    assert_int_equal(write_to(&s, KEY + 1, 0, 1), FAULT_KEY); /* not bound yet */
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_int_equal(write_to(&s, KEY + 1, what.to.addr, 1), FAULT_KEY);
    assert_int_equal(write_to(&s, KEY + 7, what.to.addr, OCTETS), FAULT_NONE);
    assert_string_equal((const char *)region->base + AT, "written");
    assert_int_equal(write_to(&s, KEY + 7, what.to.addr, OCTETS + 1), FAULT_BOUNDS);
    assert_int_equal(write_to(&s, KEY + 7, what.to.addr - 1, 1), FAULT_BOUNDS);
    assert_int_equal(write_to(&s, region->key, what.to.addr, 1), FAULT_RIGHT); /* its own key lets no peer in */
    assert_int_equal(region->parts, 1);
    assert_int_equal(first.valid, true);
}

static void zero_based(void **state)
{
    struct mw_bind what = usual(2 * KEY + 2);

    (void)state;
    what.to.access |= RDDP_ACCESS_ZERO_BASED;
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_int_equal(write_to(&s, 2 * KEY + 2, 0, OCTETS), FAULT_NONE);
    assert_string_equal((const char *)region->base + AT, "written");
    assert_int_equal(write_to(&s, 2 * KEY + 2, 1, OCTETS), FAULT_BOUNDS);
}

/* What is wrong with a bind, one thing in each row; nothing changes. */
static void refused(void **state)
{
    enum { TYPE_1 = KEY + 2, TYPE_2 = 2 * KEY + 2 };
    const struct {
        const char *why;
        uint32_t key;
        const struct mr *of;
        int64_t at;
        uint64_t length;
        unsigned access;
    } rows[] = {
        {"no window has that key", 5 * KEY, region, 0, 8, REMOTE_WRITE},
        {"the key of a region", fixed->key, region, 0, 8, REMOTE_WRITE},
        {"a window of another domain", 3 * KEY + 2, region, 0, 8, REMOTE_WRITE},
        {"a region of another domain", TYPE_1, foreign, 0, 8, REMOTE_WRITE},
        {"no right to bind", TYPE_1, fixed, 0, 8, REMOTE_WRITE},
        {"zero-based region", TYPE_1, zero, 0, 8, REMOTE_WRITE},
        {"cannot be written", TYPE_1, unwritable, 0, 8, REMOTE_WRITE},
        {"cannot be changed", TYPE_1, unwritable, 0, 8, RDDP_ACCESS_REMOTE_ATOMIC},
        {"is promised not to change", TYPE_1, stable, 0, 8, REMOTE_WRITE},
        {"in front of it", TYPE_1, region, -1, 8, REMOTE_WRITE},
        {"one octet behind it", TYPE_1, region, LENGTH - 7, 8, REMOTE_WRITE},
        {"far behind it", TYPE_1, region, LENGTH + 1, 8, REMOTE_WRITE},
        {"wraps", TYPE_1, region, 8, UINT64_MAX - 4, REMOTE_WRITE},
        {"zero-based window of type 1", TYPE_1, region, 0, 8, REMOTE_WRITE | RDDP_ACCESS_ZERO_BASED},
        {"a local right", TYPE_1, region, 0, 8, LOCAL},
        {"an unknown right", TYPE_1, region, 0, 8, 1u << 31},
        {"nothing, type 2", TYPE_2, region, 0, 0, REMOTE_WRITE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct mw_bind what = {.key = rows[i].key,
                                     .to = {.addr = rows[i].of->start + (uint64_t)rows[i].at,
                                            .length = rows[i].length,
                                            .lkey = rows[i].of->key,
                                            .access = rows[i].access}};
        if (bind(&what) != FAULT_LOCAL_KEY)
            fail_msg("%s: bound", rows[i].why);
        assert_int_equal(rows[i].of->parts, 0);
    }
    assert_false(first.valid || second.valid || alien.valid || joined);
    assert_int_equal(first.key, KEY + 1);
}

/* Peers that use the window do not notice. */
static void refused_leaves_it_bound(void **state)
{
    const struct mw_bind what = usual(KEY + 2);
    struct mw_bind wrong = usual(KEY + 3);
    uint32_t parts;

    (void)state;
    assert_int_equal(bind(&what), FAULT_NONE);
    parts = region->parts;
    wrong.to.length = LENGTH - AT + 1;
    assert_int_equal(bind(&wrong), FAULT_LOCAL_KEY);
    wrong = usual(KEY + 3);
    wrong.to.access |= RDDP_ACCESS_ZERO_BASED;
    assert_int_equal(bind(&wrong), FAULT_LOCAL_KEY);
    wrong = usual(KEY + 3);
    wrong.to.lkey = fixed->key;
    assert_int_equal(bind(&wrong), FAULT_LOCAL_KEY);
    assert_int_equal(write_to(&s, KEY + 2, what.to.addr, OCTETS), FAULT_NONE);
    assert_int_equal(region->parts, parts);
}

static void not_to_what_goes(void **state)
{
    const struct mw_bind what = usual(KEY + 2);

    (void)state;
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_false(mr_close(region)); /* it has a part */
    mr_unbind(&e.mrs, &first);
    assert_true(mr_close(region));
    assert_int_equal(bind(&what), FAULT_NOT_NOW);
    mr_open(region);
    assert_int_equal(bind(&what), FAULT_NONE);
}

/* --- whose it is ------------------------------------------------------------------------------------------------ */

static void type_2_has_one_user(void **state)
{
    const struct mw_bind one = usual(KEY + 2), two = usual(2 * KEY + 2);
    uint64_t epoch;

    (void)state;
    assert_int_equal(bind(&one), FAULT_NONE);
    assert_int_equal(bind(&two), FAULT_NONE);
    assert_int_equal(write_to(&t, KEY + 2, one.to.addr, 8), FAULT_NONE);
    assert_int_equal(write_to(&t, 2 * KEY + 2, two.to.addr, 8), FAULT_DOMAIN);
    assert_int_equal(mr_invalidate_for(&e.mrs, &e.pd, t.qp.user, 2 * KEY + 2, &epoch), FAULT_INVALIDATE);
    assert_int_equal(write_to(&s, 2 * KEY + 2, two.to.addr, 8), FAULT_NONE);
    assert_int_equal(mr_invalidate_for(&e.mrs, &e.pd, s.qp.user, KEY + 2, &epoch),
                     FAULT_INVALIDATE); /* type 1: never */
    assert_int_equal(mr_invalidate_for(&e.mrs, &e.pd, s.qp.user, 2 * KEY + 2, &epoch), FAULT_NONE);
    assert_int_equal(write_to(&s, 2 * KEY + 2, two.to.addr, 8), FAULT_KEY);
    assert_int_equal(region->parts, 1);
}

static void no_key_for_local_memory(void **state)
{
    struct mw_bind what = usual(KEY + 2);
    struct rddp_sge sge = {.addr = what.to.addr, .length = 8, .lkey = what.key};
    struct emit emit;

    (void)state;
    what.to.access = RDDP_ACCESS_REMOTE_READ | REMOTE_WRITE;
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &sge, 1), 0);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    expect_wc(&s.send_cq, 1, RDDP_WC_LOC_PROT_ERR);
}

/* --- keys ------------------------------------------------------------------------------------------------------- */

/* No region has a key that a window may have, and the other way round. */
static void keys_are_apart(void **state)
{
    struct mr mr = {.pd = &e.pd, .base = region->base, .length = 8};
    struct mr window = {.pd = &e.pd, .kind = MR_WINDOW};

    (void)state;
    for (uint32_t tag = 0; tag <= MR_TAGS; tag++) {
        assert_false(mr_insert(&e.mrs, &mr, KEY | tag));
        assert_false(mr_insert_window(&e.mrs, &window, KEY | tag));
    }
    assert_false(mr_insert_window(&e.mrs, &window, fixed->key ^ 3));
    assert_false(mr_insert_window(&e.mrs, &window, 7)); /* 24 bits of 0 */
    assert_true(mr_insert(&e.mrs, &mr, KEY + MR_TAGS + 1));
    mr_remove(&e.mrs, &mr);
}

/* --- in the queue ----------------------------------------------------------------------------------------------- */

static void write_some(uint64_t wr_id)
{
    struct rddp_sge sge = piece_of(source, 0, 8);

    assert_int_equal(post_remote(&s, wr_id, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, &sge, 1, 1, 0), 0);
}

/* A bind that replaces another waits until that one is out of use, and all behind it wait, too. */
static void waits_for_those_before(void **state)
{
    struct mw_bind what = usual(KEY + 2);
    struct emit emit;

    (void)state;
    post_bind(&s, 1, &what);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    assert_int_equal(expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS).opcode, RDDP_WC_BIND_MW);
    epoch_enter(&e.mrs.epochs, &place[0]);
    what = usual(KEY + 3);
    what.to.addr++;
    post_bind(&s, 2, &what);
    write_some(3);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    expect_quiet(&s.send_cq);
    assert_false(qp_has_output(&s.qp)); /* and it is not called in a circle */
    assert_true(qp_waits(&s.qp));
    assert_false(first.valid);
    assert_int_equal(region->parts, 1); /* what is about to be bound */
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    assert_true(qp_waits(&s.qp));
    epoch_leave(&place[0]);
    mr_lend(&first); /* a span that is queued for a socket counts as well */
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    assert_true(qp_waits_for_spans(&s.qp));
    mr_give_back(&first);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    assert_false(qp_waits(&s.qp));
    assert_true(first.valid && first.key == KEY + 3 && first.base == region->base + AT + 1);
    assert_true(qp_has_output(&s.qp));
    assert_true(qp_emit(&s.qp, &emit, 1000, 1000));
    assert_int_equal(emit.seg.op, SEG_WRITE);
}

/* The same where packets are numbered. */
static void packets_wait_for_those_before(void **state)
{
    const struct mw_bind what = usual(KEY + 2), again = usual(KEY + 3);
    struct seg seg;
    uint32_t at;

    (void)state;
    qp_use_packets(&s.qp);
    assert_int_equal(bind(&what), FAULT_NONE);
    epoch_enter(&e.mrs.epochs, &place[0]);
    post_bind(&s, 1, &again);
    write_some(2);
    assert_false(qp_take_request(&s.qp, &at, &seg));
    assert_false(qp_has_request(&s.qp));
    expect_quiet(&s.send_cq);
    epoch_leave(&place[0]);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    assert_true(qp_has_request(&s.qp));
    assert_true(qp_take_request(&s.qp, &at, &seg));
    assert_int_equal(seg.op, SEG_WRITE);
}

/* While a window is being bound, or removed, by another. */
static void waits_for_another_binder(void **state)
{
    const struct mw_bind what = usual(2 * KEY + 2);

    (void)state;
    assert_true(mr_claim(&second));
    assert_int_equal(bind(&what), FAULT_NOT_NOW);
    mr_release(&second);
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_true(mr_claim(&second));
    mr_remove(&e.mrs, &second);
    assert_int_equal(bind(&what), FAULT_LOCAL_KEY);
    assert_int_equal(region->parts, 0);
}

/* Type 2: LOCAL_INV, or an error. */
static void type_2_is_invalidated_first(void **state)
{
    struct rddp_send_wr wr = {
        .wr_id = 2, .opcode = RDDP_WR_LOCAL_INV, .send_flags = RDDP_SEND_SIGNALED, .invalidate_rkey = 2 * KEY + 2};
    const struct mw_bind one = usual(2 * KEY + 2), again = usual(2 * KEY + 3), third = usual(2 * KEY + 4);
    struct emit emit;

    (void)state;
    post_bind(&s, 1, &one);
    assert_int_equal(qp_post_send(&s.qp, &wr), 0);
    post_bind(&s, 3, &again);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    expect_wc(&s.send_cq, 3, RDDP_WC_SUCCESS);
    post_bind(&s, 4, &third);
    write_some(5);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    expect_wc(&s.send_cq, 4, RDDP_WC_MW_BIND_ERR);
    expect_wc(&s.send_cq, 5, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(s.qp.state, QP_ERROR);
    assert_true(second.valid && second.key == 2 * KEY + 3); /* as it was */
}

static void type_1_is_taken_back(void **state)
{
    struct mw_bind what = usual(KEY + 2);
    struct rddp_send_wr wr = {.wr_id = 3, .opcode = RDDP_WR_LOCAL_INV, .invalidate_rkey = KEY + 3};
    struct emit emit;

    (void)state;
    post_bind(&s, 1, &what);
    what.key++;
    what.to = (struct rddp_mw_bind){0};
    post_bind(&s, 2, &what);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    assert_false(first.valid);
    assert_int_equal(region->parts, 0);
    assert_int_equal(qp_post_send(&s.qp, &wr), 0);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    expect_wc(&s.send_cq, 3, RDDP_WC_LOC_PROT_ERR); /* no LOCAL_INV for type 1 */
}

static void posts_are_checked(void **state)
{
    const struct mw_bind what = usual(KEY + 2);
    struct rddp_send_wr wr = {.opcode = RDDP_WR_BIND_MW, .rkey = what.key};

    (void)state;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL); /* to what? */
    wr.bind = &what.to;
    wr.send_flags = RDDP_SEND_INLINE;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL);
    expect_quiet(&s.send_cq);
}

static void failure_flushes_it(void **state)
{
    const struct mw_bind what = usual(KEY + 2), again = usual(KEY + 3);
    struct emit emit;

    (void)state;
    assert_int_equal(bind(&what), FAULT_NONE);
    epoch_enter(&e.mrs.epochs, &place[0]);
    post_bind(&s, 1, &again);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_LOST});
    expect_wc(&s.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    assert_false(qp_waits(&s.qp));
    assert_int_equal(region->parts, 0);
    epoch_leave(&place[0]);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(exactly_there),
        TEST(zero_based),
        TEST(refused),
        TEST(refused_leaves_it_bound),
        TEST(not_to_what_goes),
        TEST(type_2_has_one_user),
        TEST(no_key_for_local_memory),
        TEST(keys_are_apart),
        TEST(waits_for_those_before),
        TEST(packets_wait_for_those_before),
        TEST(waits_for_another_binder),
        TEST(type_2_is_invalidated_first),
        TEST(type_1_is_taken_back),
        TEST(posts_are_checked),
        TEST(failure_flushes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
