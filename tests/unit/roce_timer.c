/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_timer.c - how long a queue pair waits for an acknowledgement, by the code that its program names
 * (ROCE-REQ-08). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/rc_requester.h"

/* As long as the code says, or up to four times as long while that is at most half a second, and at least 10 ms: a
 * process that answers may wait for a processor. */
static void patience(void **state)
{
    static const struct {
        unsigned code;
        uint64_t timeout_us, patience_us;
    } codes[] = {
        {0, 0, 0},
        {1, 8, 10000},
        {8, 1048, 10000},
        {9, 2097, 10000},
        {10, 4194, 16776},
        {14, 67108, 268432},
        {15, 134217, 500000},
        {16, 268435, 500000},
        {17, 536870, 536870},
        {18, 1073741, 1073741},
        {31, 8796093022, 8796093022},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        assert_int_equal(rc_timeout_us(codes[i].code), codes[i].timeout_us);
        assert_int_equal(rc_patience_us(codes[i].code), codes[i].patience_us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(patience)};

    return cmocka_run_group_tests_name("roce_timer", tests, NULL, NULL);
}
