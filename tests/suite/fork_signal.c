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

enum { FORKS = 500, CHILD_S = 60, OFTEN_US = 1000, STRANGE = 9 };

static volatile sig_atomic_t forks;
static struct rddp_context *context;
static struct rddp_cq *cq;

/* The child can use what was not interrupted, and is told what was. It may have interrupted the allocator, too. */
static void use_and_exit(void)
{
    struct rddp_wc wc;
    int error;

    alarm(CHILD_S);
    error = rddp_poll_cq(cq, 0, &wc);
    _exit(!error || error == -EDEADLK ? 0 : STRANGE);
}

static void fork_at_signal(int number)
{
    pid_t child = fork();
    int status;

    (void)number;
    if (!child)
        use_and_exit();
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        _exit(STRANGE);
    forks++;
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

/* No thread of the library runs beside it: the process has no lock but those of this thread. */
static void interrupt(void (*call)(void))
{
    const struct sigaction action = {.sa_handler = fork_at_signal, .sa_flags = SA_RESTART};
    const struct itimerval often = {.it_interval.tv_usec = OFTEN_US, .it_value.tv_usec = OFTEN_US};
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
        setitimer(ITIMER_PROF, &often, NULL);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens),
    };

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    print_message("cannot run here: a handler that forks may have interrupted the allocator\n");
    return 77;
#endif
    return cmocka_run_group_tests_name("fork_signal", tests, NULL, NULL);
}
