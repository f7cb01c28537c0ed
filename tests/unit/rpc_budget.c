/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_budget.c - the memory of a responder's calls: one below the budget, at it, one above, and the sizes of blocks. */
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

/* What all together have, whoever asks. */
static void limit_of_all(void **state)
{
    static const struct {
        uint64_t reserved, size;
        enum budget_answer answer;
    } row[] = {
        {MAX - 100, 99, BUDGET_GRANTED}, {MAX - 100, 100, BUDGET_GRANTED},
        {MAX - 100, 101, BUDGET_FULL},   {MAX, 1, BUDGET_FULL},
        {1, MAX, BUDGET_FULL},           {1, UINT64_MAX, BUDGET_FULL},
        {MAX + 5, 1, BUDGET_FULL},       {0, MAX + 1, BUDGET_GRANTED},
        {0, MAX, BUDGET_GRANTED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        budget_init(&budget, MAX);
        budget_overdraw(&budget, row[i].reserved);
        assert_int_equal(budget_reserve(&budget, row[i].size, 0), row[i].answer);
        assert_int_equal(budget.reserved, row[i].reserved + (row[i].answer == BUDGET_GRANTED ? row[i].size : 0));
    }
}

/* What one connection has. Its only call gets what it wants. */
static void limit_of_one(void **state)
{
    static const struct {
        uint64_t held, size;
        enum budget_answer answer;
    } row[] = {
        {SHARE - 10, 9, BUDGET_GRANTED}, {SHARE - 10, 10, BUDGET_GRANTED}, {SHARE - 10, 11, BUDGET_SHARE},
        {1, SHARE, BUDGET_SHARE},        {1, UINT64_MAX, BUDGET_SHARE},    {SHARE, 1, BUDGET_SHARE},
        {0, SHARE + 1, BUDGET_GRANTED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        budget_init(&budget, MAX);
        budget_overdraw(&budget, row[i].held);
        assert_int_equal(budget_reserve(&budget, row[i].size, row[i].held), row[i].answer);
    }
}

/* At least what was asked for, at most a quarter more, and every octet may be written. */
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
        budget_overdraw(&budget, size);
        block = budget_get(&budget, n);
        assert_non_null(block);
        block[0] = block[n - 1] = 1;
        budget_put(&budget, block, n);
        budget_return(&budget, size);
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

/* What is kept for later gives way to what is needed now. */
static void kept_blocks_give_way(void **state)
{
    void *block[8];

    (void)state;
    budget_init(&budget, MAX);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(budget_reserve(&budget, 65536, 0), BUDGET_GRANTED);
        block[i] = budget_get(&budget, 65536);
    }
    for (int i = 0; i < 8; i++) {
        budget_put(&budget, block[i], 65536);
        budget_return(&budget, 65536);
    }
    assert_int_equal(budget.reserved, 0);
    assert_int_equal(budget.kept, MAX / 2);
    assert_int_equal(budget_reserve(&budget, MAX - 65536, 0), BUDGET_GRANTED);
    assert_int_equal(budget.kept, 65536);
    budget_return(&budget, MAX - 65536);
    budget_fini(&budget);
    assert_int_equal(budget.kept, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limit_of_all),
        cmocka_unit_test(limit_of_one),
        cmocka_unit_test(sizes),
        cmocka_unit_test(kept_blocks_give_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
