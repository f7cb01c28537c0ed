/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.c - the order rule: the specification's example, the vectors, and wraps of the message numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/order.h"
#include "core/seg.h"
#include "tests/lib/vectors.h"

/* SEG-3.4-17 SEG-3.4-18 SEG-3.4-20 */
static void rule(void **state)
{
    json_t *file = vectors_load("segment"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "order_rule", i, entry) {
        uint32_t next = (uint32_t)vector_number(entry, "next_unprocessed");
        uint32_t number = (uint32_t)vector_number(entry, "message_number");

        assert_int_equal(order_ready(next, number, (uint16_t)vector_number(entry, "order")),
                         vector_flag(entry, "may_execute"));
    }
    json_decref(file);
}

/* Execute the waiting messages that are ready, lowest number first, and return their count. */
static uint32_t execute(struct order *o, uint32_t number[], uint16_t order[], uint32_t *waiting, uint32_t *executed)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < *waiting;) {
        uint32_t low = i;

        for (uint32_t k = 0; k < *waiting; k++)
            if (order_ready(o->next, number[k], order[k]) &&
                (!order_ready(o->next, number[low], order[low]) || order_before(number[k], number[low])))
                low = k;
        if (!order_ready(o->next, number[low], order[low]))
            break;
        order_done(o, number[low]);
        executed[n++] = number[low];
        --*waiting;
        number[low] = number[*waiting];
        order[low] = order[*waiting];
        i = 0;
    }
    return n;
}

/* SEG-3.4-17 SEG-3.4-21: the simulation as specified, and shifted across the wrap of the numbers (SEG-3.4-13). */
static void simulation(void **state)
{
    static const uint32_t shifts[] = {0, 0u - 10, 0u - 12, 0u - 13, 0u - 15, 0x7ffffff0};
    json_t *file = vectors_load("segment"), *table = json_object_get(file, "order_simulation"), *step;
    size_t i;

    (void)state;
    for (size_t k = 0; k < sizeof(shifts) / sizeof(shifts[0]); k++) {
        struct order o = {.next = (uint32_t)vector_number(table, "first_message") + shifts[k]};
        uint32_t number[8], executed[8], waiting = 0;
        uint16_t order[8];

        vectors_each(table, "steps", i, step) {
            const json_t *want = json_object_get(step, "executed");

            number[waiting] = (uint32_t)vector_number(step, "arrives") + shifts[k];
            order[waiting++] = (uint16_t)vector_number(step, "order");
            assert_int_equal(execute(&o, number, order, &waiting, executed), json_array_size(want));
            for (size_t n = 0; n < json_array_size(want); n++)
                assert_int_equal(executed[n], (uint32_t)json_integer_value(json_array_get(want, n)) + shifts[k]);
            assert_int_equal(o.next, (uint32_t)vector_number(step, "next_unprocessed") + shifts[k]);
        }
        assert_int_equal(waiting, 0);
    }
    json_decref(file);
}

static void expect_none(const struct order *o)
{
    for (uint32_t i = 0; i < ORDER_WINDOW / 64; i++)
        assert_int_equal(o->done[i], 0);
}

/* order_done() ignores a number behind the window and a number that is already done. The whole window can be done
 * before its first number. */
static void window(void **state)
{
    struct order o = {.next = UINT32_MAX - 10};

    (void)state;
    order_done(&o, o.next + ORDER_WINDOW);
    order_done(&o, o.next - 1);
    expect_none(&o);
    for (uint32_t i = 1; i < ORDER_WINDOW; i++)
        order_done(&o, UINT32_MAX - 10 + i);
    assert_int_equal(o.next, UINT32_MAX - 10);
    order_done(&o, o.next);
    assert_int_equal(o.next, UINT32_MAX - 10 + ORDER_WINDOW);
    expect_none(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule),
        cmocka_unit_test(simulation),
        cmocka_unit_test(window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
