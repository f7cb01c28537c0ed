/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sequence_early.c - messages in one sequence on an unordered link: what is placed and delivered behind a gap. */
#include <string.h>

#include "tests/lib/sequence.h"

/* SEG-1-04 SEG-3.4-18 SEG-3.4-35 SEG-5-03: the receiver places a Write before the missing segments come, and only
 * once. */
static void early_write(void **state)
{
    (void)state;
    assert_int_equal(unit(1, write_(1, 0, 10, 10, WHOLE, SEG_ORDER_ANY)), FAULT_NOT_NOW); /* no first number */
    assert_int_equal(unit(0, write_(0, 0, 10, 10, WHOLE, 0)), FAULT_NONE);
    assert_int_equal(unit(3, write_(2, 60, 10, 30, 0, SEG_ORDER_ANY)), FAULT_NONE); /* a middle segment */
    assert_int_equal(unit(3, write_(2, 60, 10, 30, 0, SEG_ORDER_ANY)), FAULT_NONE);
    assert_memory_equal(remote->base + 60, data + 60, 10);
    assert_int_equal(unit(5, write_(3, 0, 10, 10, WHOLE, 0)), FAULT_NOT_NOW);
    assert_int_equal(unit(5, write_(3, 0, 10, 10, WHOLE, 1)), FAULT_NOT_NOW);
    assert_int_equal(unit(5, write_(3, 0, 10, 10, WHOLE, 2)), FAULT_NONE); /* message 1 is missing */
    assert_int_equal(unit(9, write_(ORDER_WINDOW + 1, 0, 10, 10, WHOLE, SEG_ORDER_ANY)), FAULT_NOT_NOW);
    memset(remote->base, 0x33, 100); /* the application overwrites the placed octets */
    engine_remember(&e);
    assert_int_equal(unit(1, write_(1, 20, 0, 0, WHOLE, 0)), FAULT_NONE);
    assert_int_equal(unit(2, write_(2, 50, 10, 30, SEG_FIRST, SEG_ORDER_ANY)), FAULT_NONE);
    assert_int_equal(unit(3, write_(2, 60, 10, 30, 0, SEG_ORDER_ANY)), FAULT_NONE);
    assert_int_equal(unit(4, write_(2, 70, 10, 30, SEG_LAST, SEG_ORDER_ANY)), FAULT_NONE);
    assert_int_equal(unit(5, write_(3, 0, 10, 10, WHOLE, 2)), FAULT_NONE);
    memcpy(want_of(&e, remote) + 50, data + 50, 10);
    memcpy(want_of(&e, remote) + 70, data + 70, 10);
    engine_expect(&e);
    assert_int_equal(s.qp.rx_pos, 6 * STEP);
    assert_int_equal(s.qp.rx_octets, 50);
}

/* SEG-3.4-19: of two Writes of order 0 to the same octets, the later one in the sequence stays, in any order of
 * arrival. */
static void early_order_zero(void **state)
{
    struct seg last = write_(2, 0, 10, 10, WHOLE, 0);

    (void)state;
    last.data = data + 100;
    assert_int_equal(unit(0, write_(0, 40, 10, 10, WHOLE, 0)), FAULT_NONE);
    assert_int_equal(unit(3, last), FAULT_NOT_NOW);
    assert_int_equal(unit(2, write_(1, 5, 5, 10, SEG_LAST, 0)), FAULT_NONE); /* one Write: any order */
    assert_int_equal(unit(1, write_(1, 0, 5, 10, SEG_FIRST, 0)), FAULT_NONE);
    assert_int_equal(unit(2, write_(1, 5, 5, 10, SEG_LAST, 0)), FAULT_NONE);
    assert_memory_equal(remote->base, data, 10);
    assert_int_equal(unit(3, last), FAULT_NONE);
    assert_memory_equal(remote->base, data + 100, 10);
}

/* SEG-3.4-21, gap 22: a Send overtakes another if its sender and its receiver allow it. It takes the next receive. */
static void early_send(void **state)
{
    (void)state;
    sequence_again(true);
    post_buffers(4);
    assert_int_equal(unit(0, send_(0, 0, 1, WHOLE, 0)), FAULT_NONE);
    received(0, 1);
    assert_int_equal(unit(2, send_(2, 0, 2, WHOLE, 0)), FAULT_NOT_NOW);
    assert_int_equal(unit(2, send_(2, 0, 2, WHOLE, 1)), FAULT_NONE);
    received(1, 2);
    assert_int_equal(unit(4, send_(3, 10, 10, SEG_LAST, 2)), FAULT_NONE); /* offset 0 is missing */
    expect_quiet(&s.recv_cq);
    assert_int_equal(unit(3, send_(3, 0, 10, SEG_FIRST, 2)), FAULT_NONE);
    received(2, 20);
    assert_int_equal(unit(1, send_(1, 0, 3, WHOLE, 0)), FAULT_NONE);
    received(3, 3);
    assert_int_equal(unit(2, send_(2, 0, 2, WHOLE, 1)), FAULT_NONE);
    assert_int_equal(unit(3, send_(3, 0, 10, SEG_FIRST, 2)), FAULT_NONE);
    assert_int_equal(unit(4, send_(3, 10, 10, SEG_LAST, 2)), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    assert_int_equal(s.qp.rx_pos, 5 * STEP);

    sequence_again(false); /* the receiver does not allow another order */
    post_buffers(4);
    assert_int_equal(unit(0, send_(0, 0, 1, WHOLE, 0)), FAULT_NONE);
    assert_int_equal(unit(2, send_(2, 0, 2, WHOLE, SEG_ORDER_ANY)), FAULT_NOT_NOW);
}

/* SEG-4-05 SEG-3.4-43: the responses to two Reads come in reverse order. */
static void early_response(void **state)
{
    struct seg seg[4];

    (void)state;
    read_into(0);
    read_into(1);
    for (uint32_t i = 0; i < 4; i++) {
        seg[i] = a_read_response(0, i % 2 * 32, data + 32 * i, 32, i % 2 ? SEG_LAST : SEG_FIRST);
        seg[i].msg = first + i / 2;
    }
    for (uint32_t i = 3; i; i--)
        assert_int_equal(unit(i, seg[i]), FAULT_NONE);
    assert_memory_equal(local->base + 32, data + 32, 96);
    expect_quiet(&s.send_cq);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(unit(i, seg[i]), FAULT_NONE);
    expect_wc(&s.send_cq, 0, RDDP_WC_SUCCESS);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    assert_memory_equal(local->base, data, 128);
}

/* A thousand packets come while packet 1 is missing. */
static void early_many(void **state)
{
    (void)state;
    assert_int_equal(unit(0, write_(0, 0, 1, 1, WHOLE, 0)), FAULT_NONE);
    for (uint32_t i = 1000; i >= 1; i--)
        assert_int_equal(unit(i, write_(i, i % 400, 1, 1, WHOLE, i % 2 ? SEG_ORDER_ANY : 1000)), FAULT_NONE);
    assert_memory_equal(remote->base, data, 400);
    for (uint32_t i = 2; i <= 1000; i++)
        assert_int_equal(unit(i, write_(i, i % 400, 1, 1, WHOLE, SEG_ORDER_ANY)), FAULT_NONE);
    assert_int_equal(s.qp.rx_pos, 1001 * STEP);
    assert_int_equal(s.qp.sequence->order.next, first + 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEQUENCE_TEST(early_write),    SEQUENCE_TEST(early_order_zero), SEQUENCE_TEST(early_send),
        SEQUENCE_TEST(early_response), SEQUENCE_TEST(early_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
