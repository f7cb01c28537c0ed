/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spin.c - a spinlock excludes all others, and who waits long for it leaves the processor to others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include "base/spin.h"

enum { THREADS = 4, TURNS = 200000, HELD_MS = 200, LEFT = 3 };

static struct spin spin;
static uint64_t count;

static void *count_up(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        spin_lock(&spin);
        count++;
        spin_unlock(&spin);
    }
    return unused;
}

static void excludes(void **state)
{
    pthread_t thread[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(count, THREADS * TURNS);
}

/* Stores how often this thread left its processor of its own accord. */
static void *wait_once(void *arg)
{
    struct rusage use;
    long *left = arg;

    spin_lock(&spin);
    spin_unlock(&spin);
    getrusage(RUSAGE_THREAD, &use);
    *left = use.ru_nvcsw;
    return NULL;
}

static void leaves_the_processor(void **state)
{
    const struct timespec held = {.tv_nsec = HELD_MS * 1000000L};
    pthread_t thread;
    long left;

    (void)state;
    spin_lock(&spin);
    assert_int_equal(pthread_create(&thread, NULL, wait_once, &left), 0);
    nanosleep(&held, NULL);
    spin_unlock(&spin);
    pthread_join(thread, NULL);
    assert_true(left >= LEFT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(excludes),
        cmocka_unit_test(leaves_the_processor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
