/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.c - which accesses get a pointer and which do not: DDP-7.1-02, DDP-8-01, DDP-8-02, DDP-8-03, RDMAP-7.2-01,
 * RDMAP-8-01. */
#include <string.h>

#include "base/container.h"
#include "tests/lib/engine.h"

static struct pd pd, other_pd;

/* The expected result, computed in arithmetic that does not wrap at 2^64. */
__extension__ typedef unsigned __int128 wide;

static enum fault expected(const struct mr *mr, uint64_t offset, uint64_t length)
{
    wide end = (wide)offset + length;

    if (end >> 64)
        return FAULT_WRAP;
    return offset < mr->start || end > (wide)mr->start + mr->length ? FAULT_BOUNDS : FAULT_NONE;
}

static void check_one(const struct mr_table *table, const struct mr *mr, uint64_t offset, uint64_t length)
{
    uint8_t untouched, *at = &untouched;
    struct mr *found = NULL;
    enum fault fault = mr_check(table, &pd, mr->key, offset, length, 0, &at, &found);

    assert_int_equal(fault, expected(mr, offset, length));
    if (fault) {
        assert_ptr_equal(at, &untouched);
        assert_null(found);
    } else {
        assert_ptr_equal(at, mr->base + (offset - mr->start));
        assert_ptr_equal(found, mr);
    }
}

/* Every offset of a null region leads to its first octet: of the zeroes, or of the sink if it is to be written. */
static void test_null(void **state)
{
    static const uint64_t offset[] = {0, 1, 1ULL << 32, UINT64_MAX - MR_NULL_OCTETS};
    struct mr_slot slot[4 + 1] = {{0, NULL}};
    struct mr_table table;
    uint8_t zeroes, sink, *at;
    struct mr mr = {.pd = &pd, .base = &zeroes, .sink = &sink, .access = RDDP_ACCESS_LOCAL_WRITE}, *found;

    (void)state;
    mr_table_init(&table, slot, 4);
    assert_true(mr_insert(&table, &mr, 77));
    for (size_t i = 0; i < countof(offset); i++) {
        found = NULL;
        assert_int_equal(mr_check(&table, &pd, 77, offset[i], MR_NULL_OCTETS, 0, &at, &found), FAULT_NONE);
        assert_ptr_equal(at, &zeroes);
        assert_ptr_equal(found, &mr);
        assert_int_equal(mr_check(&table, &pd, 77, offset[i], 1, RDDP_ACCESS_LOCAL_WRITE, &at, NULL), FAULT_NONE);
        assert_ptr_equal(at, &sink);
    }
    assert_int_equal(mr_check(&table, &pd, 77, 0, MR_NULL_OCTETS + 1, 0, &at, NULL), FAULT_BOUNDS);
    assert_int_equal(mr_check(&table, &pd, 77, UINT64_MAX, 1, 0, &at, NULL), FAULT_WRAP);
    assert_int_equal(mr_check(&table, &other_pd, 77, 0, 1, 0, &at, NULL), FAULT_DOMAIN);
    assert_int_equal(mr_check(&table, &pd, 77, 0, 1, RDDP_ACCESS_REMOTE_READ, &at, NULL), FAULT_RIGHT);
}

/* Every edge and its neighbours as offset, with every length that ends at an edge or next to one. */
static void test_bounds(void **state)
{
    static const struct mr regions[] = {
        {.start = 0, .length = 4096}, /* zero-based */
        {.start = 0x10000, .length = 4096},
        {.start = 0x10000, .length = 1},
        {.start = 0x10000, .length = 0},
        {.start = 0, .length = 1ULL << 46},
        {.start = 1, .length = 1ULL << 46},
        {.start = UINT64_MAX - 4096, .length = 4096},
        {.start = UINT64_MAX - 4095, .length = 4096}, /* ends at 2^64 */
        {.start = 0x7fffffffffffffff, .length = 0x1000},
        {.start = 0xffffffff, .length = 2},
    };

    (void)state;
    for (size_t i = 0; i < countof(regions); i++) {
        struct mr_slot slot[4 + 1] = {{0, NULL}};
        struct mr_table table;
        struct mr mr = regions[i];
        uint64_t edge[] = {0,          mr.start,  mr.start + mr.length / 2, mr.start + mr.length, 1ULL << 32,
                           1ULL << 63, UINT64_MAX};

        mr.pd = &pd;
        mr.base = (uint8_t *)(uintptr_t)0x1000; /* never dereferenced here */
        mr_table_init(&table, slot, countof(slot) - 1);
        assert_true(mr_insert(&table, &mr, 0x12345678));
        for (size_t from = 0; from < countof(edge) * 5; from++) {
            uint64_t offset = edge[from / 5] + from % 5 - 2;

            for (size_t to = 0; to < countof(edge) * 5; to++)
                check_one(&table, &mr, offset, edge[to / 5] + to % 5 - 2 - offset);
            for (uint64_t length = 0; length < 3; length++)
                check_one(&table, &mr, offset, length);
            check_one(&table, &mr, offset, UINT64_MAX);
            check_one(&table, &mr, offset, UINT32_MAX);
        }
    }
}

/* The table of DDP-7.1-02, one row for each rule: the first broken rule is reported, in the order of mr.h. */
static void test_order_of_checks(void **state)
{
    enum { KEY = 0x1000, WR = RDDP_ACCESS_REMOTE_WRITE };
    static const struct {
        uint64_t key;
        struct pd *pd;
        unsigned rights;
        uint64_t offset, length;
        enum fault fault;
    } rows[] = {
        {KEY, &pd, LOCAL, 0, 64, FAULT_NONE},
        {KEY, &pd, LOCAL, 64, 0, FAULT_NONE},
        {KEY, &pd, LOCAL, 0, 65, FAULT_BOUNDS},
        {KEY, &pd, LOCAL, 65, 0, FAULT_BOUNDS},
        {KEY, &pd, LOCAL, UINT64_MAX, 0, FAULT_BOUNDS},
        {KEY, &pd, LOCAL, UINT64_MAX, 1, FAULT_WRAP},
        {KEY, &pd, LOCAL, 1, UINT64_MAX, FAULT_WRAP},
        {KEY, &pd, WR, UINT64_MAX, 2, FAULT_RIGHT},
        {KEY, &pd, LOCAL | WR, 0, 1, FAULT_RIGHT},
        {KEY, &other_pd, WR, UINT64_MAX, 2, FAULT_DOMAIN},
        {KEY, &other_pd, LOCAL, 0, 64, FAULT_DOMAIN},
        {KEY, NULL, LOCAL, 0, 64, FAULT_DOMAIN},
        {KEY + 1, &other_pd, WR, UINT64_MAX, 2, FAULT_KEY},
        {KEY + 1, &pd, LOCAL, 0, 64, FAULT_KEY},
        {0, &pd, LOCAL, 0, 64, FAULT_KEY},
        {KEY | 1ULL << 32, &pd, LOCAL, 0, 64, FAULT_KEY}, /* not truncated to 32 bits */
        {UINT64_MAX, &pd, LOCAL, 0, 64, FAULT_KEY},
    };
    struct mr_slot slot[4 + 1] = {{0, NULL}};
    struct mr_table table;
    uint8_t memory[64], *at;
    struct mr mr = {.pd = &pd, .base = memory, .length = sizeof(memory), .access = LOCAL};

    (void)state;
    mr_table_init(&table, slot, countof(slot) - 1);
    assert_true(mr_insert(&table, &mr, KEY));
    for (size_t i = 0; i < countof(rows); i++)
        assert_int_equal(
            mr_check(&table, rows[i].pd, rows[i].key, rows[i].offset, rows[i].length, rows[i].rights, &at, NULL),
            rows[i].fault);
}

/* Every set of requested rights against every set of granted rights. */
static void test_rights(void **state)
{
    struct mr_slot slot[4 + 1] = {{0, NULL}};
    struct mr_table table;
    uint8_t memory[8], *at;
    struct mr mr = {.pd = &pd, .base = memory, .length = sizeof(memory)};

    (void)state;
    mr_table_init(&table, slot, countof(slot) - 1);
    assert_true(mr_insert(&table, &mr, 5));
    for (unsigned granted = 0; granted < 8; granted++) {
        for (unsigned wanted = 0; wanted < 8; wanted++) {
            mr.access = granted;
            assert_int_equal(mr_check(&table, &pd, 5, 0, 8, wanted, &at, NULL),
                             wanted & ~granted ? FAULT_RIGHT : FAULT_NONE);
        }
    }
}

/* DDP-8-03, RDMAP-8-01: an invalidated key is dead, and is not drawn again while any party may still hold it. */
static void test_stale_keys(void **state)
{
    struct mr_slot slot[8 + 1] = {{0, NULL}}, wider[16 + 1] = {{0, NULL}};
    struct mr_table table;
    uint8_t memory[3][8], *at;
    struct mr a = {.pd = &pd, .base = memory[0], .length = 8}, b = a, c = a;

    (void)state;
    mr_table_init(&table, slot, countof(slot) - 1);
    assert_false(mr_insert(&table, &a, 0));
    assert_true(mr_insert(&table, &a, 3));
    assert_true(mr_insert(&table, &b, 11)); /* the same slot at first, then the next one */
    assert_false(mr_insert(&table, &c, 3)); /* alive */
    mr_remove(&table, &a);
    assert_int_equal(mr_check(&table, &pd, 3, 0, 1, 0, &at, NULL), FAULT_KEY);
    assert_null(mr_find(&table, 3));
    assert_ptr_equal(mr_find(&table, 11), &b); /* found behind the tombstone */
    assert_false(mr_insert(&table, &c, 3));    /* a tombstone */
    assert_true(mr_insert(&table, &c, 19));
    assert_ptr_equal(mr_find(&table, 19), &c);
    assert_int_equal(table.live, 2);
    assert_int_equal(table.used, 3);
    assert_ptr_equal(mr_table_move(&table, wider, countof(wider) - 1), slot);
    assert_int_equal(table.used, 2);
    assert_ptr_equal(mr_find(&table, 11), &b);
    assert_ptr_equal(mr_find(&table, 19), &c);
    assert_null(mr_find(&table, 3));
    assert_true(mr_insert(&table, &a, 3)); /* rehashed: it may be drawn again */
}

/* Another region under the same key: who found the first one may go on with it, and the key is lent until it is gone.
 */
static void test_replace(void **state)
{
    struct mr_slot slot[8 + 1] = {{0, NULL}};
    struct mr_table table;
    uint8_t memory[8], *at;
    struct mr before = {.pd = &pd, .base = memory, .length = 8}, beside = before, after = before, *found;

    (void)state;
    after.access = RDDP_ACCESS_REMOTE_READ;
    mr_table_init(&table, slot, countof(slot) - 1);
    assert_true(mr_insert(&table, &before, 3));
    assert_true(mr_insert(&table, &beside, 11));
    assert_true(mr_close(&before));
    mr_replace(&table, &before, &after);
    assert_int_equal(mr_check(&table, &pd, 3, 0, 8, RDDP_ACCESS_REMOTE_READ, &at, &found), FAULT_NONE);
    assert_ptr_equal(found, &after);
    assert_true(mr_is_valid(&before));
    assert_true(mr_is_lent(&table, 3));
    mr_give_back(&after);
    assert_false(mr_is_lent(&table, 3));
    assert_int_equal(before.sending, 1); /* who has found it may be about to invalidate it */
    mr_give_back(&before);
    assert_ptr_equal(mr_find(&table, 11), &beside);
    assert_int_equal(table.live, 2);
    assert_int_equal(table.used, 2);
    after.valid = false;
    assert_true(mr_close(&after));
    mr_replace(&table, &after, &before);
    assert_int_equal(mr_check(&table, &pd, 3, 0, 8, 0, &at, NULL), FAULT_KEY);
    mr_remove(&table, &before);
    assert_null(mr_find(&table, 3));
}

/* Random keys inserted, removed and moved, compared with a plain list. The table is at most half full, so probing
 * always ends. */
static void test_table_model(void **state)
{
    enum { MRS = 100 };
    static struct mr mr[MRS];
    static struct mr_slot slots[2][512 + 1];
    struct mr_table table;
    uint32_t seed = 77, next = 0;
    bool in[MRS] = {false};

    (void)state;
    mr_table_init(&table, slots[0], 4);
    assert_null(mr_find(&table, 1));
    for (int step = 0; step < 20000; step++) {
        uint32_t i = chance(&seed) % MRS;

        if (!mr_table_has_space(&table)) {
            next = !next;
            memset(slots[next], 0, sizeof(slots[next]));
            mr_table_move(&table, slots[next], 512);
            assert_true(mr_table_has_space(&table));
        }
        if (in[i]) {
            mr_remove(&table, &mr[i]);
            in[i] = false;
        } else {
            in[i] = mr_insert(&table, &mr[i], chance(&seed) % 1021); /* few keys: many meetings */
        }
        for (i = 0; i < MRS; i += 7)
            if (in[i])
                assert_ptr_equal(mr_find(&table, mr[i].key), &mr[i]);
    }
}

static void test_size(void **state)
{
    struct mr_slot slot[8 + 1] = {{0, NULL}};
    struct mr_table table;
    struct mr mr[4] = {{.length = 0}};

    (void)state;
    mr_table_init(&table, slot, countof(slot) - 1);
    for (uint32_t i = 0; i < countof(mr); i++) {
        assert_true(mr_table_has_space(&table));
        assert_true(mr_insert(&table, &mr[i], 8 * i + 7)); /* all of them in the last slot: probing goes round */
    }
    assert_false(mr_table_has_space(&table));
    for (uint32_t i = 0; i < countof(mr); i++)
        assert_ptr_equal(mr_find(&table, 8 * i + 7), &mr[i]);
    mr_remove(&table, &mr[0]);
    assert_false(mr_table_has_space(&table)); /* a tombstone still takes room */
}

/* RDMAP-5.3-03: the peer may invalidate a key in its own domain on which it has a right, once. */
static void test_invalidate(void **state)
{
    uint64_t epoch;
    struct mr_slot slot[4 + 1] = {{0, NULL}};
    struct mr_table table;
    uint8_t memory[8], *at;
    struct mr mr = {.pd = &pd, .base = memory, .length = sizeof(memory), .access = LOCAL};

    (void)state;
    mr_table_init(&table, slot, countof(slot) - 1);
    assert_true(mr_insert(&table, &mr, 9));
    assert_int_equal(mr_invalidate(&table, &pd, 10, true, &epoch), FAULT_INVALIDATE);
    assert_int_equal(mr_invalidate(&table, &pd, 9 | 1ULL << 40, true, &epoch), FAULT_INVALIDATE);
    assert_int_equal(mr_invalidate(&table, &other_pd, 9, false, &epoch), FAULT_INVALIDATE);
    assert_int_equal(mr_invalidate(&table, &pd, 9, true, &epoch), FAULT_INVALIDATE); /* no remote right */
    assert_true(mr.valid);
    mr.access = RDDP_ACCESS_REMOTE_READ;
    assert_int_equal(mr_invalidate(&table, &other_pd, 9, true, &epoch), FAULT_INVALIDATE);
    assert_int_equal(mr_check(&table, &pd, 9, 0, 8, 0, &at, NULL), FAULT_NONE);
    assert_int_equal(mr_invalidate(&table, &pd, 9, true, &epoch), FAULT_NONE);
    assert_int_equal(mr_check(&table, &pd, 9, 0, 8, 0, &at, NULL), FAULT_KEY);
    assert_ptr_equal(mr_find(&table, 9), &mr); /* its owner still finds it */
    assert_int_equal(mr_invalidate(&table, &pd, 9, true, &epoch), FAULT_INVALIDATE);
    assert_int_equal(mr_invalidate(&table, &pd, 9, false, &epoch), FAULT_INVALIDATE);
    mr.valid = true;
    mr.access = LOCAL | RDDP_ACCESS_REMOTE_WRITE;
    assert_int_equal(mr_invalidate(&table, &pd, 9, true, &epoch), FAULT_NONE);
    mr.valid = true;
    mr.access = 0;
    assert_int_equal(mr_invalidate(&table, &pd, 9, false, &epoch), FAULT_NONE); /* the owner needs no right */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_order_of_checks), cmocka_unit_test(test_rights),
        cmocka_unit_test(test_stale_keys), cmocka_unit_test(test_table_model),     cmocka_unit_test(test_size),
        cmocka_unit_test(test_invalidate), cmocka_unit_test(test_replace),         cmocka_unit_test(test_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
