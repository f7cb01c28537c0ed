/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork_signal.c - a signal handler of the program forks, whatever call of the library it interrupts: neither end waits
 * for a lock that the interrupted thread has. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <rddp/rddp.h>

#include "tests/suite/lib/fork_apart.h"

enum { FORKS = 700, CHILD_S = 60, SOON_US = 1000, TOLD = 8, STRANGE = 9 };

static volatile sig_atomic_t forks, told; /* told: children that cannot use the context */
static struct rddp_context *context;
static struct rddp_cq *cq;

/* The child can use what was not interrupted, and is told what was. It may have interrupted the allocator, too. */
static void use_and_exit(void)
{
    struct rddp_wc wc;
    int error;

    alarm(CHILD_S);
    error = rddp_poll_cq(cq, 0, &wc);
    _exit(error == -EDEADLK ? TOLD : error ? STRANGE : 0);
}

/* One at a time, so that the interrupted call goes on. */
static void expect_signal(void)
{
    const struct itimerval soon = {.it_value.tv_usec = SOON_US}; /* of processor time */

    if (setitimer(ITIMER_PROF, &soon, NULL))
        _exit(STRANGE);
}

static void fork_at_signal(int number)
{
    pid_t child = fork();
    int status;

    (void)number;
    if (!child)
        use_and_exit();
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) == STRANGE)
        _exit(STRANGE);
    forks++;
    told += WEXITSTATUS(status) == TOLD;
    expect_signal();
}

static void open_and_close(void)
{
    struct rddp_context_attr attr;
    struct rddp_context *other;

    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    other = rddp_open(&attr);
    if (!other || rddp_close(other))
        _exit(1);
}

/* Until a handler has met a lock of the context, for which the fork waits for some seconds. */
static void make_and_destroy(void)
{
    if (rddp_destroy_cq(rddp_create_cq(context, 1, NULL, NULL)))
        _exit(1);
    if (told)
        _exit(0);
}

/* No thread of the library runs beside it: the process has no lock but those of this thread. */
static void interrupt(void (*call)(void))
{
    const struct sigaction action = {.sa_handler = fork_at_signal, .sa_flags = SA_RESTART};
    pid_t child = fork_apart(CHILD_S);
    struct rddp_context_attr attr;
    int status;

    if (!child) {
        rddp_context_attr_init(&attr);
        attr.manual_progress = true;
        context = rddp_open(&attr);
        cq = context ? rddp_create_cq(context, 1, NULL, NULL) : NULL;
        if (!cq)
            _exit(2);
        sigaction(SIGPROF, &action, NULL);
        expect_signal();
        while (forks < FORKS)
            call();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void opens(void **state)
{
    (void)state;
    interrupt(open_and_close);
}

static void objects(void **state)
{
    (void)state;
    interrupt(make_and_destroy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens),
        cmocka_unit_test(objects),
    };

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    print_message("cannot run here: a handler that forks may have interrupted the allocator\n");
    return 77;
#endif
    return cmocka_run_group_tests_name("fork_signal", tests, NULL, NULL);
}
