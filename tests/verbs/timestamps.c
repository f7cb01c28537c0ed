/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timestamps.c - the times in completions: when they were made, by the clock that a program can ask, and by the wall
 * clock. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "tests/verbs/lib/looped.h"

enum { ALL = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, MESSAGES = 5 };

static struct looped looped;
static char memory[64];

static uint64_t raw_clock(void)
{
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

    assert_int_equal(ibv_query_rt_values_ex(looped.context, &values), 0);
    assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
    assert_int_equal(values.raw_clock.tv_sec, 0); /* all of it, as other devices say it */
    return (uint64_t)values.raw_clock.tv_nsec;
}

static uint64_t wall_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Sends a message, and returns when both completions are known to be made, whose event is taken. */
static void exchange(struct ibv_mr *mr)
{
    struct ibv_cq *cq = ibv_cq_ex_to_cq(looped.cq);
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey};
    void *user;

    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    looped_receive(looped.qp[1], 1, (uintptr_t)memory + 32, 8, mr->lkey);
    looped_post(looped.qp[0], IBV_WR_SEND, sge, 0, 0);
    assert_int_equal(ibv_get_cq_event(looped.channel, &cq, &user), 0);
    ibv_ack_cq_events(cq, 1);
}

/* A time is that of the completion, not that of the poll, which comes a while later here. */
static void test_when_it_was_made(void **state)
{
    struct ibv_poll_cq_attr attr = {0};
    uint64_t before, wall_before, after, stamp, last = 0;
    struct ibv_mr *mr;

    (void)state;
    looped_open(&looped, ALL);
    mr = ibv_reg_mr(looped.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    for (int i = 0; i < MESSAGES; i++) {
        before = raw_clock();
        wall_before = wall_clock();
        exchange(mr); /* one completion of two is there, at least */
        after = raw_clock();
        usleep(20000);
        assert_int_equal(ibv_start_poll(looped.cq, &attr), 0);
        assert_int_equal(looped.cq->status, IBV_WC_SUCCESS);
        stamp = ibv_wc_read_completion_ts(looped.cq);
        assert_in_range(stamp, before, after);
        assert_true(stamp >= last);
        last = stamp;
        /* The wall clock may be adjusted meanwhile, by far less than a second. */
        assert_in_range(ibv_wc_read_completion_wallclock_ns(looped.cq), wall_before - 1000000000,
                        wall_clock() + 1000000000);
        ibv_end_poll(looped.cq);
        looped_completion(&looped);
    }
    assert_int_equal(ibv_dereg_mr(mr), 0);
    looped_close(&looped);
}

static void test_wall_clock_of_a_sleeper(void **state)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_mr *mr;
    uint64_t made;

    (void)state;
    looped_open(&looped, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
    mr = ibv_reg_mr(looped.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    exchange(mr);
    sleep(1);
    assert_int_equal(ibv_start_poll(looped.cq, &attr), 0);
    made = ibv_wc_read_completion_wallclock_ns(looped.cq);
    assert_in_range(wall_clock() - made, 900000000, 20000000000);
    ibv_end_poll(looped.cq);
    looped_completion(&looped);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    looped_close(&looped);
}

static void test_what_the_device_says(void **state)
{
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = 1, .wc_flags = IBV_WC_EX_WITH_CVLAN};
    struct ibv_values_ex values = {.comp_mask = 0};
    struct ibv_device_attr_ex attr;

    (void)state;
    looped_open(&looped, 0);
    assert_int_equal(ibv_query_device_ex(looped.context, NULL, &attr), 0);
    assert_true(attr.completion_timestamp_mask == UINT64_MAX);
    assert_int_equal(attr.hca_core_clock, 1000000); /* kHz: a tick is a nanosecond */
    assert_int_equal(ibv_query_rt_values_ex(looped.context, &values), 0);
    values.comp_mask = IBV_VALUES_MASK_RESERVED;
    assert_int_equal(ibv_query_rt_values_ex(looped.context, &values), EINVAL);
    assert_null(ibv_create_cq_ex(looped.context, &cq_attr));
    assert_int_equal(errno, EOPNOTSUPP);
    looped_close(&looped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_it_was_made),
        cmocka_unit_test(test_wall_clock_of_a_sleeper),
        cmocka_unit_test(test_what_the_device_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
