/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mw_region.c - memory windows and their regions: what a window has of its region, and until when. */
#include "core/mw.h"
#include "tests/lib/engine.h"

enum { LENGTH = 256, AT = 40, OCTETS = 100, KEY = 0xabcd00, BINDABLE = LOCAL | RDDP_ACCESS_MW_BIND };

static struct engine e;
static struct side s, t;
static struct epoch_reader place;
static struct mr *region, *joined;
static struct mr first, second; /* windows of type 1 and 2 */

static void make_window(struct mr *window, enum mr_kind kind, uint32_t key)
{
    *window = (struct mr){.pd = &e.pd, .kind = kind};
    assert_true(mr_insert_window(&e.mrs, window, key));
}

static int set_up(void **state)
{
    (void)state;
    engine_init(&e);
    joined = NULL;
    epochs_init(&e.mrs.epochs, &place, 1);
    region = engine_region(&e, LENGTH, BINDABLE);
    make_window(&first, MR_WINDOW, KEY + 1);
    make_window(&second, MR_WINDOW_OF_QP, 2 * KEY + 1);
    side_open(&s, &e, NULL);
    side_open(&t, &e, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    side_fini(&s);
    side_fini(&t);
    engine_fini(&e);
    return 0;
}

/* OCTETS at AT, for reading. */
static struct mw_bind bind_to(const struct mr *mr, uint32_t key)
{
    return (struct mw_bind){
        .key = key,
        .to = {.addr = mr->start + AT, .length = OCTETS, .lkey = mr->key, .access = RDDP_ACCESS_REMOTE_READ}};
}

static enum fault bind(const struct mw_bind *what)
{
    return mw_bind(&e.mrs, &e.pd, s.qp.user, what, &joined);
}

static enum fault read_by(uint32_t key)
{
    uint8_t *at;

    return mr_check(&e.mrs, &e.pd, key, region->start + AT, OCTETS, RDDP_ACCESS_REMOTE_READ, &at, NULL);
}

/* A part goes with its key, and a window leads elsewhere when it is bound again. */
static void not_to_a_key_of_another_kind(void **state)
{
    struct mr part;
    struct mw_bind what;

    (void)state;
    assert_true(mr_part(&part, region, region->base, LENGTH, BINDABLE));
    assert_true(mr_insert(&e.mrs, &part, 4 * KEY));
    what = bind_to(&part, KEY + 2);
    assert_int_equal(bind(&what), FAULT_LOCAL_KEY);
    what = bind_to(region, 2 * KEY + 2);
    assert_int_equal(bind(&what), FAULT_NONE);
    second.access |= BINDABLE;
    what = bind_to(region, KEY + 2);
    what.to.lkey = second.key;
    assert_int_equal(bind(&what), FAULT_LOCAL_KEY);
    mr_remove(&e.mrs, &part);
}

/* What its region's owner says of the memory is true of the window's, too. */
static void memory_stays_what_it_is(void **state)
{
    const struct mr *fleeting = engine_region(&e, LENGTH, BINDABLE | RDDP_ACCESS_VOLATILE);
    const struct mr *stable = engine_region(&e, LENGTH, BINDABLE | RDDP_ACCESS_STABLE);
    struct mw_bind what = bind_to(fleeting, KEY + 2);

    (void)state;
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_int_equal(first.access, RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_VOLATILE);
    what = bind_to(stable, KEY + 3);
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_int_equal(first.access, RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_STABLE);
}

/* One that was invalidated is no part of its region any more, and takes none with it. */
static void goes_once(void **state)
{
    const struct mw_bind one = bind_to(region, KEY + 2), two = bind_to(region, 2 * KEY + 2);
    uint64_t epoch;

    (void)state;
    assert_int_equal(bind(&one), FAULT_NONE);
    assert_int_equal(bind(&two), FAULT_NONE);
    assert_int_equal(mr_invalidate(&e.mrs, &e.pd, two.key, false, &epoch), FAULT_NONE);
    assert_int_equal(region->parts, 1);
    mr_remove(&e.mrs, &second);
    assert_int_equal(region->parts, 1);
    mr_remove(&e.mrs, &first);
    assert_int_equal(region->parts, 0);
}

/* A Read was let in, and the window is another's before it is answered. */
static void answers_no_other_user(void **state)
{
    const struct mw_bind what = bind_to(region, 2 * KEY + 2);
    const struct seg_read read = {
        .sink_key = 1, .source_key = what.key, .source_offset = what.to.addr, .length = OCTETS};
    struct emit emit;
    uint64_t epoch;

    (void)state;
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_int_equal(arrive(&s, a_read_request(1, &read)), FAULT_NONE);
    assert_true(qp_emit(&s.qp, &emit, OCTETS / 2, 1000));
    assert_int_equal(mr_invalidate(&e.mrs, &e.pd, what.key, false, &epoch), FAULT_NONE);
    assert_int_equal(mw_bind(&e.mrs, &e.pd, t.qp.user, &what, &joined), FAULT_NONE);
    assert_false(qp_emit(&s.qp, &emit, OCTETS / 2, 1000));
    assert_int_equal(s.qp.state, QP_ERROR);
    assert_int_equal(s.qp.note.fault, FAULT_DOMAIN);
}

/* What was right when the old binding went stays so: the region cannot go. If it was invalidated the key is dead. */
static void region_stays_meanwhile(void **state)
{
    const struct mw_bind what = bind_to(region, KEY + 2), again = bind_to(region, KEY + 3);
    uint64_t epoch;

    (void)state;
    assert_int_equal(bind(&what), FAULT_NONE);
    epoch_enter(&e.mrs.epochs, &place);
    assert_int_equal(bind(&again), FAULT_NOT_NOW);
    assert_ptr_equal(joined, region);
    assert_false(mr_close(region));
    assert_int_equal(mr_invalidate(&e.mrs, &e.pd, region->key, false, &epoch), FAULT_NONE);
    epoch_leave(&place);
    assert_int_equal(bind(&again), FAULT_NONE);
    assert_true(first.valid && first.key == KEY + 3);
    assert_int_equal(region->parts, 1);
    assert_int_equal(read_by(KEY + 3), FAULT_KEY);
    assert_null(joined);
}

/* Where the region goes before it is joined, the window is as it was. */
static void region_goes_first(void **state)
{
    struct mr *other = engine_region(&e, LENGTH, BINDABLE);
    const struct mw_bind what = bind_to(region, KEY + 2), again = bind_to(other, KEY + 3);

    (void)state;
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_true(mr_close(other));
    assert_int_equal(bind(&again), FAULT_NOT_NOW);
    other->valid = false;
    assert_int_equal(bind(&again), FAULT_LOCAL_KEY);
    assert_int_equal(read_by(KEY + 2), FAULT_NONE);
    assert_int_equal(region->parts, 1);
    mr_open(other);
}

/* Where the window goes, or one of type 2 is bound by another, the region has that part no longer. */
static void window_goes_meanwhile(void **state)
{
    const struct mw_bind what = bind_to(region, 2 * KEY + 2), again = bind_to(region, 2 * KEY + 3);
    struct mr *none = NULL;
    uint64_t epoch;

    (void)state;
    assert_int_equal(bind(&what), FAULT_NONE);
    assert_int_equal(mr_invalidate(&e.mrs, &e.pd, what.key, false, &epoch), FAULT_NONE);
    second.sending++;
    assert_int_equal(bind(&again), FAULT_NOT_NOW);
    assert_int_equal(region->parts, 1);
    second.sending--;
    assert_int_equal(mw_bind(&e.mrs, &e.pd, t.qp.user, &what, &none), FAULT_NONE);
    assert_int_equal(region->parts, 2);
    assert_int_equal(bind(&again), FAULT_LOCAL_KEY);
    assert_int_equal(region->parts, 1);
    assert_true(second.valid && second.key == what.key);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(not_to_a_key_of_another_kind), TEST(memory_stays_what_it_is), TEST(goes_once),
        TEST(answers_no_other_user),        TEST(region_stays_meanwhile),  TEST(region_goes_first),
        TEST(window_goes_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
