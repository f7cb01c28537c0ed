/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_budget.c - the memory budget for a responder's calls: each limit one below, at, and one above; and block sizes.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/budget.h"

enum { MAX = 1 << 20, SHARE = MAX / BUDGET_SHARES };

static struct budget budget;

/* The limit of all connections, for a connection that holds nothing. */
static void limit_of_all(void **state)
{
    static const struct {
        uint64_t reserved, size;
        bool granted;
    } row[] = {
        {MAX - 100, 99, true},  {MAX - 100, 100, true}, {MAX - 100, 101, false}, {MAX, 1, false}, {1, MAX, false},
        {1, UINT64_MAX, false}, {MAX + 5, 1, false},    {0, MAX + 1, true},      {0, MAX, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        uint64_t held = 0;

        budget_init(&budget, MAX);
        budget_overdraw(&budget, row[i].reserved, NULL);
        assert_int_equal(budget_reserve(&budget, row[i].size, &held), row[i].granted);
        assert_int_equal(held, row[i].granted ? row[i].size : 0);
        assert_int_equal(budget.reserved, row[i].reserved + held);
    }
}

/* The limit of one connection. A connection that holds nothing may exceed it. */
static void limit_of_one(void **state)
{
    static const struct {
        uint64_t held, size;
        bool granted;
    } row[] = {
        {SHARE - 10, 9, true},  {SHARE - 10, 10, true}, {SHARE - 10, 11, false}, {1, SHARE, false},
        {1, UINT64_MAX, false}, {SHARE, 1, false},      {0, SHARE + 1, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        uint64_t held = 0;

        budget_init(&budget, MAX);
        budget_overdraw(&budget, row[i].held, &held);
        assert_int_equal(budget_reserve(&budget, row[i].size, &held), row[i].granted);
    }
}

/* A connection that holds nothing may use the last part of the budget, and a connection that holds memory may not. */
static void reserve(void **state)
{
    enum { COMMON = MAX - MAX / BUDGET_RESERVE };

    (void)state;
    for (int more = -1; more <= 1; more++) {
        uint64_t held = 0, none = 0;

        budget_init(&budget, MAX);
        budget_overdraw(&budget, (uint64_t)(COMMON - 20 + more), NULL);
        budget_overdraw(&budget, 10, &held);
        assert_int_equal(budget_reserve(&budget, 10, &held), more <= 0);
        assert_true(budget_reserve(&budget, 10, &none));
    }
}

/* The share of each connection shrinks with the number of connections that hold memory. budget_forget() uncounts one.
 * */
static void shares_shrink(void **state)
{
    enum { HOLDERS = 2 * BUDGET_SHARES, EACH = MAX / BUDGET_RESERVE / HOLDERS };
    uint64_t held[HOLDERS] = {0};

    (void)state;
    budget_init(&budget, MAX);
    for (int i = 0; i < HOLDERS; i++)
        assert_true(budget_reserve(&budget, 1, &held[i]));
    assert_int_equal(budget.holders, HOLDERS);
    assert_false(budget_reserve(&budget, EACH, &held[0]));
    assert_true(budget_reserve(&budget, EACH - 1, &held[0]));
    assert_false(budget_reserve(&budget, 1, &held[0]));
    for (int i = 1; i < HOLDERS; i++)
        assert_true(budget_reserve(&budget, EACH - 1, &held[i]));
    budget_forget(&budget, &held[1]);
    budget_return(&budget, EACH, NULL);
    budget_forget(&budget, &held[1]);
    assert_int_equal(budget.holders, HOLDERS - 1);
    assert_true(budget_reserve(&budget, 1, &held[0]));
    budget_return(&budget, EACH + 1, &held[0]);
    assert_int_equal(held[0], 0);
    assert_int_equal(budget.holders, HOLDERS - 2);
    budget_return(&budget, 0, &held[0]);
    assert_int_equal(budget.holders, HOLDERS - 2);
}

/* A block has at least the requested size and at most a quarter more, and its first and last octet are writable. */
static void sizes(void **state)
{
    (void)state;
    budget_init(&budget, (uint64_t)1 << 30);
    assert_int_equal(budget_size(0), 0);
    assert_int_equal(budget_size(1), 4096);
    assert_int_equal(budget_size(4096), 4096);
    assert_int_equal(budget_size(4097), 5120);
    assert_int_equal(budget_size((1 << 20) + 64), (1 << 20) + (1 << 18));
    for (size_t n = 4096; n < (size_t)40 << 20; n += n / 7 + 1) {
        uint64_t size = budget_size(n);
        uint8_t *block;

        assert_true(size >= n && size - n <= n / 4 + 1);
        assert_int_equal(budget_size(size), size);
        budget_overdraw(&budget, size, NULL);
        block = budget_get(&budget, n);
        assert_non_null(block);
        block[0] = block[n - 1] = 1;
        budget_put(&budget, block, n);
        budget_return(&budget, size, NULL);
        if (size <= (uint64_t)28 << 20)
            assert_ptr_equal(budget_get(&budget, (size_t)size), block);
        else
            continue;
        budget_put(&budget, block, n);
    }
    budget_fini(&budget);
    assert_int_equal(budget.kept, 0);
    assert_int_equal(budget.reserved, 0);
}

/* Blocks kept for later are freed when a reservation needs their memory. */
static void kept_blocks_give_way(void **state)
{
    uint64_t held[8] = {0};
    void *block[8];

    (void)state;
    budget_init(&budget, MAX);
    for (int i = 0; i < 8; i++) {
        assert_true(budget_reserve(&budget, 65536, &held[i]));
        block[i] = budget_get(&budget, 65536);
    }
    for (int i = 0; i < 8; i++) {
        budget_put(&budget, block[i], 65536);
        budget_return(&budget, 65536, &held[i]);
    }
    assert_int_equal(budget.reserved, 0);
    assert_int_equal(budget.kept, MAX / 2);
    assert_true(budget_reserve(&budget, MAX - 65536, &held[0]));
    assert_int_equal(budget.kept, 65536);
    budget_return(&budget, MAX - 65536, &held[0]);
    budget_fini(&budget);
    assert_int_equal(budget.kept, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limit_of_all),  cmocka_unit_test(limit_of_one), cmocka_unit_test(reserve),
        cmocka_unit_test(shares_shrink), cmocka_unit_test(sizes),        cmocka_unit_test(kept_blocks_give_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
