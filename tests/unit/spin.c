/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spin.c - a spinlock excludes all others, and who waits long for it leaves the processor to others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/spin.h"

enum { THREADS = 4, TURNS = 200000, HELD_MAX_MS = 20000, LEFT = 3 };

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

static void *wait_once(void *arg)
{
    _Atomic pid_t *id = arg;

    *id = gettid();
    spin_lock(&spin);
    spin_unlock(&spin);
    return NULL;
}

/* Returns how often a thread of this process has left its processor of its own accord. */
static long times_left(pid_t id)
{
    char path[64], line[128];
    long left = -1;
    FILE *status;

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)id);
    status = fopen(path, "r");
    assert_non_null(status);
    while (fgets(line, sizeof(line), status))
        sscanf(line, "voluntary_ctxt_switches: %ld", &left);
    fclose(status);
    return left;
}

/* However late the waiter gets a processor, it leaves it while the lock is held. */
static void leaves_the_processor(void **state)
{
    const struct timespec while_held = {.tv_nsec = 1000000};
    _Atomic pid_t id = 0;
    pthread_t thread;
    long left = 0;

    (void)state;
    spin_lock(&spin);
    assert_int_equal(pthread_create(&thread, NULL, wait_once, (void *)&id), 0);
    for (int i = 0; i < HELD_MAX_MS && left < LEFT; i++) {
        nanosleep(&while_held, NULL);
        if (id)
            left = times_left(id);
    }
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
