/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorbell.c - a doorbell has one holder at a time, no ring is lost, and a thread that waits becomes the holder. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>

#include "loop/doorbell.h"
#include "tests/lib/engine.h"

static void test_alone(void **state)
{
    struct doorbell bell = {0};

    (void)state;
    assert_false(doorbell_is_held(&bell));
    assert_true(doorbell_try(&bell));
    assert_true(doorbell_is_held(&bell));
    assert_false(doorbell_try(&bell));
    assert_true(doorbell_release(&bell)); /* there was no ring */
    assert_true(doorbell_ring(&bell));    /* now held, and not rung: the work is the caller's */
    assert_true(doorbell_release(&bell));
    assert_true(doorbell_ring(&bell));
    assert_false(doorbell_ring(&bell));
    assert_false(doorbell_ring(&bell));
    assert_false(doorbell_release(&bell)); /* the two rings make one piece of work */
    assert_true(doorbell_is_held(&bell));
    assert_false(doorbell_ring(&bell)); /* a ring during the work */
    assert_false(doorbell_release(&bell));
    assert_true(doorbell_release(&bell));
    assert_false(doorbell_is_held(&bell));
}

/* Producers add work and ring; the holder of the doorbell takes all that was added. At the end nothing is left,
 * although no thread looks again. */
enum { PRODUCERS = 3, RUN = 30000 };

static struct doorbell shared;
static atomic_uint added;
static unsigned taken, inside; /* guarded by the bell, which ThreadSanitizer checks */

static void work(void)
{
    assert(inside++ == 0);
    taken += atomic_exchange(&added, 0);
    inside--;
}

static void *produce(void *unused)
{
    for (unsigned i = 0; i < RUN; i++) {
        atomic_fetch_add(&added, 1);
        if (doorbell_ring(&shared))
            do
                work();
            while (!doorbell_release(&shared));
    }
    return unused;
}

/* Waits for the doorbell again and again, as a driver does, and is always woken. */
static void *hold(void *unused)
{
    for (unsigned i = 0; i < RUN / 300; i++) {
        doorbell_hold(&shared);
        assert(inside++ == 0);
        sched_yield();
        inside--;
        while (!doorbell_release(&shared))
            work();
    }
    return unused;
}

static void test_threads(void **state)
{
    pthread_t thread[PRODUCERS + 2];

    (void)state;
    for (int i = 0; i < PRODUCERS + 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, i < PRODUCERS ? produce : hold, NULL), 0);
    for (int i = 0; i < PRODUCERS + 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_false(doorbell_is_held(&shared));
    assert_int_equal(taken, PRODUCERS * RUN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone), cmocka_unit_test(test_threads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
