/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* part.c - keys over a part of a region: they never exceed the region's bounds and rights, and become invalid with the
 * region or after their Read: DDP-7.1-02, RDMAP-8-01, RDMAP-7.2-01. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/engine.h"

enum { LENGTH = 256, FIRST = 40, OCTETS = 100 };

static struct engine e;
static struct side s;
static struct mr *whole;
static struct mr part;
static uint32_t next_key;

static int set_up(void **state)
{
    (void)state;
    engine_init(&e);
    whole = engine_region(&e, LENGTH, ALL_ACCESS);
    side_open(&s, &e, NULL);
    next_key = 77;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    side_fini(&s);
    engine_fini(&e);
    return 0;
}

/* Make `part` and insert it into the table. Return false if mr_part() refuses it. */
static bool make(struct mr *of, uint32_t at, uint64_t length, unsigned access)
{
    if (!mr_part(&part, of, of->base + at, length, access | RDDP_ACCESS_ZERO_BASED))
        return false;
    assert_true(mr_insert(&e.mrs, &part, next_key++));
    return true;
}

static enum fault check(uint64_t offset, uint64_t length, unsigned rights)
{
    uint8_t *at = NULL;
    struct mr *found = NULL;
    enum fault fault = mr_check(&e.mrs, &e.pd, part.key, offset, length, rights, &at, &found);

    if (!fault) {
        assert_ptr_equal(at, part.base + (offset - part.start));
        assert_true(at >= part.parent->base && at + length <= part.parent->base + part.parent->length);
        assert_ptr_equal(found, &part);
    }
    return fault;
}

/* --- where it lies --------------------------------------------------------------------------------------------- */

static void lies_inside(void **state)
{
    static const struct {
        int64_t at;
        uint64_t length;
        bool fits;
    } rows[] = {
        {0, LENGTH - 1, true},  {0, LENGTH, true},       {0, LENGTH + 1, false},     {-1, 1, false},
        {-1, LENGTH, false},    {1, LENGTH - 2, true},   {1, LENGTH - 1, true},      {1, LENGTH, false},
        {LENGTH - 1, 1, true},  {LENGTH - 1, 2, false},  {LENGTH, 0, true},          {LENGTH, 1, false},
        {LENGTH + 1, 0, false}, {8, UINT64_MAX, false},  {8, UINT64_MAX - 7, false}, {0, UINT64_MAX, false},
        {-8, 8, false},         {-8, UINT64_MAX, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(mr_part(&part, whole, whole->base + rows[i].at, rows[i].length, LOCAL), rows[i].fits);
}

static void ends_where_it_ends(void **state)
{
    (void)state;
    assert_true(make(whole, FIRST, OCTETS, LOCAL));
    assert_int_equal(check(0, OCTETS - 1, LOCAL), FAULT_NONE);
    assert_int_equal(check(0, OCTETS, LOCAL), FAULT_NONE);
    assert_int_equal(check(0, OCTETS + 1, LOCAL), FAULT_BOUNDS);
    assert_int_equal(check(OCTETS, 0, LOCAL), FAULT_NONE);
    assert_int_equal(check(OCTETS, 1, LOCAL), FAULT_BOUNDS);
    assert_int_equal(check(OCTETS + 1, 0, LOCAL), FAULT_BOUNDS);
    assert_int_equal(check(UINT64_MAX, 1, LOCAL), FAULT_WRAP);
    mr_remove(&e.mrs, &part);
    assert_int_equal(check(0, 1, LOCAL), FAULT_KEY);
}

/* A part that is not zero-based uses the addresses of this process, whatever addresses its parent uses. */
static void has_addresses_of_its_own(void **state)
{
    uint8_t *at = whole->base + FIRST;

    (void)state;
    assert_true(mr_part(&part, whole, at, OCTETS, LOCAL));
    assert_true(mr_insert(&e.mrs, &part, 5));
    assert_int_equal(check((uintptr_t)at, OCTETS, LOCAL), FAULT_NONE);
    assert_int_equal(check((uintptr_t)at - 1, 2, LOCAL), FAULT_BOUNDS);
    assert_int_equal(check((uintptr_t)at + 1, OCTETS, LOCAL), FAULT_BOUNDS);
    assert_int_equal(check(0, 1, LOCAL), FAULT_BOUNDS);
    mr_remove(&e.mrs, &part);
}

/* --- what it allows ---------------------------------------------------------------------------------------------- */

static void is_never_wider(void **state)
{
    const unsigned own = RDDP_ACCESS_ZERO_BASED | RDDP_ACCESS_ONE_SHOT;

    (void)state;
    for (unsigned granted = 0; granted <= ALL_ACCESS; granted++) {
        whole->access = granted;
        for (unsigned asked = 0; asked <= ALL_ACCESS; asked++) {
            assert_int_equal(mr_part(&part, whole, whole->base, 8, asked | own), !(asked & ~granted));
            if (!(asked & ~granted))
                assert_int_equal(part.access, asked | own);
        }
    }
    whole->access = ALL_ACCESS;
    assert_false(mr_part(&part, whole, whole->base, 8, 1u << 20));
    assert_false(mr_part(&part, whole, whole->base, 8, RDDP_ACCESS_STABLE));
    whole->access = LOCAL | RDDP_ACCESS_STABLE;
    assert_true(mr_part(&part, whole, whole->base, 8, LOCAL));
    assert_int_equal(part.access, LOCAL | RDDP_ACCESS_STABLE);
    whole->access = RDDP_ACCESS_VOLATILE;
    assert_true(mr_part(&part, whole, whole->base, 8, 0));
    assert_int_equal(part.access, RDDP_ACCESS_VOLATILE);
}

static void is_of_the_same_domain(void **state)
{
    uint8_t *at;

    (void)state;
    assert_true(make(whole, 0, 8, LOCAL));
    assert_int_equal(mr_check(&e.mrs, &e.other_pd, part.key, 0, 8, 0, &at, NULL), FAULT_DOMAIN);
    mr_remove(&e.mrs, &part);
}

/* --- when it dies ------------------------------------------------------------------------------------------------ */

static void dies_with_its_parent(void **state)
{
    struct mr nested;
    uint64_t epoch;

    (void)state;
    assert_true(make(whole, FIRST, OCTETS, LOCAL));
    assert_int_equal(whole->parts, 1);
    assert_false(mr_part(&nested, &part, part.base, 1, 0)); /* a part cannot have parts */
    assert_int_equal(check(0, 1, LOCAL), FAULT_NONE);
    assert_int_equal(mr_invalidate(&e.mrs, &e.pd, whole->key, false, &epoch), FAULT_NONE);
    assert_int_equal(check(0, 1, LOCAL), FAULT_KEY);
    assert_false(mr_is_valid(&part));
    assert_false(mr_part(&nested, whole, whole->base, 1, 0));
    mr_remove(&e.mrs, &part);
    assert_int_equal(whole->parts, 0);
}

static void dies_alone(void **state)
{
    uint64_t epoch;
    uint8_t *at;

    (void)state;
    assert_true(make(whole, FIRST, OCTETS, LOCAL));
    assert_int_equal(mr_invalidate(&e.mrs, &e.pd, part.key, true, &epoch), FAULT_INVALIDATE); /* no remote right */
    assert_int_equal(mr_invalidate(&e.mrs, &e.pd, part.key, false, &epoch), FAULT_NONE);
    assert_int_equal(check(0, 1, LOCAL), FAULT_KEY);
    assert_int_equal(mr_check(&e.mrs, &e.pd, whole->key, whole->start, LENGTH, LOCAL, &at, NULL), FAULT_NONE);
    mr_remove(&e.mrs, &part);
}

/* --- against a model --------------------------------------------------------------------------------------------- */

/* Compare mr_check() for random octets and rights of a random part with the model. */
static void model(void **state)
{
    uint32_t seed = 4711;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint32_t at = chance(&seed) % (LENGTH + 2), n = chance(&seed) % (LENGTH + 2);
        unsigned granted = chance(&seed) % (ALL_ACCESS + 1), asked = granted & chance(&seed) & ALL_ACCESS;
        uint64_t from = chance(&seed) % (LENGTH + 2), length = chance(&seed) % (LENGTH + 2);
        unsigned rights = chance(&seed) & ALL_ACCESS;
        bool fits = at + n <= LENGTH;
        enum fault want = rights & ~asked ? FAULT_RIGHT : from + length > n || from > n ? FAULT_BOUNDS : FAULT_NONE;

        whole->access = granted;
        next_key += 1 + chance(&seed) % 50;
        if (!mr_table_has_space(&e.mrs)) {
            struct mr_slot *slots = calloc(1, mr_slots_size(ENGINE_SLOTS));

            memcpy(slots, e.slot, mr_slots_size(ENGINE_SLOTS));
            memset(e.slot, 0, sizeof(e.slot));
            atomic_store(&e.mrs.slots, (struct mr_slots *)(void *)slots);
            mr_table_move(&e.mrs, e.slot, ENGINE_SLOTS);
            free(slots);
        }
        assert_int_equal(make(whole, at, n, asked), fits);
        if (!fits)
            continue;
        assert_int_equal(check(from, length, rights), want);
        mr_remove(&e.mrs, &part);
    }
}

/* --- one shot ---------------------------------------------------------------------------------------------------- */

static void read_to(uint64_t wr_id, uint32_t length)
{
    struct rddp_sge sge = {.addr = 0, .length = length, .lkey = part.key};

    assert_int_equal(post_remote(&s, wr_id, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, 1, 0), 0);
}

/* The sink of a Read needs no remote right and gives none. */
static void good_for_one_read(void **state)
{
    struct emit emit;

    (void)state;
    assert_true(make(whole, FIRST, OCTETS, LOCAL | RDDP_ACCESS_ONE_SHOT));
    read_to(1, OCTETS);
    emit = leave(&s, 1000);
    assert_int_equal(emit.seg.read.sink_key, part.key);
    assert_int_equal(emit.seg.read.sink_offset, 0);
    engine_remember(&e);
    pattern(want_of(&e, whole) + FIRST, OCTETS, 9);
    assert_int_equal(arrive_at(&s, a_write(part.key, 0, want_of(&e, whole), 8, SEG_LAST), 500, 600), FAULT_RIGHT);
    assert_int_equal(arrive(&s, a_read_response(part.key, 0, want_of(&e, whole) + FIRST, 60, 0)), FAULT_NONE);
    assert_true(mr_is_valid(&part));
    assert_int_equal(arrive(&s, a_read_response(part.key, 60, want_of(&e, whole) + FIRST + 60, OCTETS - 60, SEG_LAST)),
                     FAULT_NONE);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    assert_false(mr_is_valid(&part));
    assert_int_equal(check(0, 1, LOCAL), FAULT_KEY);
    engine_expect(&e);
    mr_remove(&e.mrs, &part);
}

static void not_for_two(void **state)
{
    struct emit emit;

    (void)state;
    assert_true(make(whole, FIRST, OCTETS, LOCAL | RDDP_ACCESS_ONE_SHOT));
    read_to(1, 8);
    read_to(2, 8);
    leave(&s, 1000);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    expect_wc(&s.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    expect_wc(&s.send_cq, 2, RDDP_WC_LOC_PROT_ERR);
    assert_false(mr_is_valid(&part)); /* a failed Read also invalidates its sink */
    mr_remove(&e.mrs, &part);
}

/* A Read that never left does not invalidate its one-shot sink. */
static void not_used_by_what_never_left(void **state)
{
    (void)state;
    assert_true(make(whole, FIRST, OCTETS, LOCAL | RDDP_ACCESS_ONE_SHOT));
    read_to(1, 8);
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_LOST});
    expect_wc(&s.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    assert_true(mr_is_valid(&part));
    mr_remove(&e.mrs, &part);
}

static void a_read_too_long_is_refused(void **state)
{
    struct emit emit;

    (void)state;
    assert_true(make(whole, FIRST, OCTETS, LOCAL | RDDP_ACCESS_ONE_SHOT));
    read_to(1, OCTETS + 1);
    assert_false(qp_emit(&s.qp, &emit, 1000, 1000));
    expect_wc(&s.send_cq, 1, RDDP_WC_LOC_PROT_ERR);
    mr_remove(&e.mrs, &part);
}

/* The Read completes after all readers that may use the key have left, as with every invalidation. */
static void waits_for_others(void **state)
{
    static struct epoch_reader place[1];

    (void)state;
    epochs_init(&e.mrs.epochs, place, 1);
    assert_true(make(whole, FIRST, OCTETS, ALL_ACCESS | RDDP_ACCESS_ONE_SHOT));
    read_to(1, 8);
    leave(&s, 1000);
    epoch_enter(&e.mrs.epochs, place);
    assert_int_equal(arrive(&s, a_read_response(part.key, 0, "12345678", 8, SEG_LAST)), FAULT_NONE);
    expect_quiet(&s.send_cq);
    epoch_leave(place);
    assert_int_equal(qp_resume(&s.qp), FAULT_NONE);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    mr_remove(&e.mrs, &part);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lies_inside),
        TEST(ends_where_it_ends),
        TEST(has_addresses_of_its_own),
        TEST(is_never_wider),
        TEST(is_of_the_same_domain),
        TEST(dies_with_its_parent),
        TEST(dies_alone),
        TEST(model),
        TEST(good_for_one_read),
        TEST(not_for_two),
        TEST(not_used_by_what_never_left),
        TEST(a_read_too_long_is_refused),
        TEST(waits_for_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
