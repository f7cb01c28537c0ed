/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ids.c - no number is handed out twice, none is lost, and a number that was returned is the last to be reused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/ids.h"
#include "tests/lib/rng.h"

enum { COUNT = 192 };

static void takes_turns(void **state)
{
    uint64_t taken[COUNT / 64] = {0};
    struct ids ids;
    uint32_t id;

    (void)state;
    ids_init(&ids, taken, COUNT, COUNT - 2);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(ids_get(&ids, &id));
        assert_int_equal(id, (COUNT - 2 + i) % COUNT);
    }
    assert_false(ids_get(&ids, &id));
    ids_put(&ids, 77);
    assert_true(ids_get(&ids, &id));
    assert_int_equal(id, 77);
    assert_false(ids_get(&ids, &id));
}

/* The search wraps round several times and skips the numbers that stay in use. */
static void steps_over_the_living(void **state)
{
    static const uint32_t living[] = {0, 63, 64, 100, 191};
    uint64_t taken[COUNT / 64] = {0};
    struct ids ids;
    uint32_t id;

    (void)state;
    ids_init(&ids, taken, COUNT, 0);
    for (uint32_t i = 0, at = 0; i < COUNT; i++) {
        assert_true(ids_get(&ids, &id));
        if (at < 5 && id == living[at])
            at++;
        else
            ids_put(&ids, id);
    }
    for (int i = 0; i < 10 * COUNT; i++) {
        assert_true(ids_get(&ids, &id));
        for (int k = 0; k < 5; k++)
            assert_int_not_equal(id, living[k]);
        ids_put(&ids, id);
    }
}

static void keeps_to_a_model(void **state)
{
    uint64_t taken[COUNT / 64] = {0};
    struct rng rng = {7};
    uint8_t held[COUNT] = {0};
    uint32_t id, count = 0;
    struct ids ids;

    (void)state;
    ids_init(&ids, taken, COUNT, 5);
    for (int i = 0; i < 100000; i++) {
        if (rng_below(&rng, 3) == 2) {
            id = rng_below(&rng, COUNT);
            assert_int_equal(ids_take(&ids, id), !held[id]);
            count += !held[id];
            held[id] = 1;
        } else if (rng_below(&rng, 2)) {
            assert_int_equal(ids_get(&ids, &id), count < COUNT);
            if (count < COUNT) {
                assert_true(id < COUNT && !held[id]);
                held[id] = 1;
                count++;
            }
        } else if (held[id = rng_below(&rng, COUNT)]) {
            ids_put(&ids, id);
            held[id] = 0;
            count--;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_turns),
        cmocka_unit_test(steps_over_the_living),
        cmocka_unit_test(keeps_to_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
