/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rq.c - a shared receive queue changes its size and keeps what is posted; its limit is reported once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/qp_inner.h"

enum { SGES = 2, DEPTH_MAX = 9, SPACE = 4096 };

static unsigned reported;

static void note_low(struct rq *rq)
{
    (void)rq;
    reported++;
}

static int post(struct rq *rq, uint64_t id)
{
    struct rddp_sge sge[SGES] = {{.addr = id, .length = 1}, {.addr = id + 1, .length = 2}};

    return rq_post(rq, &(struct rddp_recv_wr){.wr_id = id, .sg_list = sge, .num_sge = SGES});
}

static void expect(struct rq *rq, uint64_t id)
{
    struct rddp_sge sge[SGES];
    struct recv got = {.sge = sge};

    assert_true(rq_take(rq, &got));
    assert_int_equal(got.wr_id, id);
    assert_int_equal(got.sge[0].addr, id);
    assert_int_equal(got.sge[1].addr, id + 1);
    assert_int_equal(got.capacity, 3);
    rq->taken--; /* its completion is polled */
}

/* From every depth to every other, with every number of receives, wherever the ring has its end. */
static void every_size(void **state)
{
    static _Alignas(16) uint8_t space[2][SPACE];
    struct pd pd = {0};

    (void)state;
    assert_true(rq_size(DEPTH_MAX, SGES) <= SPACE);
    for (uint32_t from = 1; from < DEPTH_MAX; from++)
        for (uint32_t to = 1; to <= DEPTH_MAX; to++)
            for (uint32_t posted = 0; posted <= from; posted++) {
                uint64_t next = 0;
                void *old;
                struct rq rq;

                rq_init(&rq, &pd, from, SGES, space[0]);
                rq.head = rq.tail = UINT32_MAX - from / 2;
                for (uint32_t i = 0; i < posted; i++)
                    assert_int_equal(post(&rq, i), 0);
                old = rq_resize(&rq, to, space[1]);
                assert_ptr_equal(old, posted <= to ? space[0] : NULL);
                assert_int_equal(rq_state(&rq).depth, posted <= to ? to : from);
                for (uint64_t i = posted; i < rq_state(&rq).depth; i++)
                    assert_int_equal(post(&rq, i), 0);
                assert_int_equal(post(&rq, 99), -ENOMEM);
                while (next < rq_state(&rq).depth)
                    expect(&rq, next++);
                assert_int_equal(rq_state(&rq).posted, 0);
            }
}

/* A receive that was taken keeps its place until its completion is polled. */
static void taken_places_count(void **state)
{
    static _Alignas(16) uint8_t space[2][SPACE];
    struct rddp_sge sge[SGES];
    struct recv got = {.sge = sge};
    struct pd pd = {0};
    struct rq rq;

    (void)state;
    rq_init(&rq, &pd, 3, SGES, space[0]);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(post(&rq, i), 0);
    assert_true(rq_take(&rq, &got));
    assert_null(rq_resize(&rq, 2, space[1]));
    rq.taken--;
    assert_ptr_equal(rq_resize(&rq, 2, space[1]), space[0]);
    assert_int_equal(post(&rq, 3), -ENOMEM);
}

static void limit(void **state)
{
    static _Alignas(16) uint8_t space[2][SPACE];
    struct pd pd = {0};
    struct rq rq;

    (void)state;
    reported = 0;
    rq_init(&rq, &pd, 4, SGES, space[0]);
    rq.low = note_low;
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(post(&rq, i), 0);
    assert_true(rq_set_limit(&rq, 3));
    assert_false(rq_set_limit(&rq, 5));
    assert_int_equal(rq_state(&rq).limit, 3);
    assert_null(rq_resize(&rq, 2, space[1]));
    expect(&rq, 0);
    assert_int_equal(reported, 0);
    expect(&rq, 1);
    assert_int_equal(reported, 1);
    assert_int_equal(rq_state(&rq).limit, 0);
    expect(&rq, 2);
    assert_int_equal(reported, 1);
    assert_true(rq_set_limit(&rq, 1));
    assert_int_equal(reported, 1);
    assert_true(rq_set_limit(&rq, 4)); /* as many as fit, but fewer are posted */
    assert_int_equal(reported, 2);
    assert_true(rq_set_limit(&rq, 1));
    assert_true(rq_set_limit(&rq, 0));
    expect(&rq, 3);
    assert_int_equal(reported, 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size),
        cmocka_unit_test(taken_places_count),
        cmocka_unit_test(limit),
    };

    return cmocka_run_group_tests_name("rq", tests, NULL, NULL);
}
