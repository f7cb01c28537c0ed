/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* key_table.c - when the table of keys grows, the old one is freed only after every look-up that may be in it. */
#include <pthread.h>
#include <time.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum { REGIONS = MR_SLOTS, GRACE_MS = 100 };

static struct rddp_mr *region[REGIONS];
static uint8_t memory[64];
static atomic_bool done;

static void *register_many(void *pd)
{
    for (int i = 0; i < REGIONS; i++)
        region[i] = rddp_reg_mr(pd, memory, sizeof(memory), 0);
    done = true;
    return NULL;
}

static void growing_waits(void **state)
{
    struct rddp_context *context = rddp_open(NULL);
    struct rddp_pd *pd = rddp_alloc_pd(context);
    struct mr_slots *old = context->mrs.slots;
    struct epoch_reader *reader = epoch_enter_any(&context->mrs.epochs, context->loops, 0);
    pthread_t thread;

    (void)state;
    assert_non_null(reader);
    assert_int_equal(pthread_create(&thread, NULL, register_many, pd), 0);
    while (context->mrs.slots == old)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = GRACE_MS * 1000000L}, NULL);
    assert_false(done);
    assert_int_equal(old->count, MR_SLOTS); /* still there to be read */
    epoch_leave(reader);
    pthread_join(thread, NULL);
    for (int i = 0; i < REGIONS; i++) {
        assert_non_null(region[i]);
        assert_int_equal(rddp_dereg_mr(region[i]), 0);
    }
    assert_int_equal(rddp_dealloc_pd(pd), 0);
    assert_int_equal(rddp_close(context), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(growing_waits)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
