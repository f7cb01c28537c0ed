/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_closed.c - a program closes all descriptors beside networks of streams, with a context or without one, and
 * opens files of its own at their numbers: the streams fail, and none of the files is written, read or closed. A child
 * of it goes on when it ends. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <rddp/rddp.h>

#include "loop/reactor.h"
#include "tests/lib/taken.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/network.h"
#include "tests/suite/lib/stream_path.h"

enum { CHILD_S = 30, WAIT_MS = 100, WAITS_MAX = 100 };

/* When there was a context: before the paths were opened, since, before and not since, or not at all; or before, and
 * the program had closed its descriptors already. */
enum when { BEFORE, SINCE, ONCE, NEVER, LOST };

static struct rddp_context *open_context(bool is_wanted)
{
    struct rddp_context *context = is_wanted ? rddp_open(NULL) : NULL;

    if (is_wanted && !context)
        _exit(4);
    return context;
}

static void close_all(enum when when)
{
    const struct stream_path_attr attr = {.v6 = false};
    struct rddp_context *context = open_context(when == BEFORE || when == ONCE || when == LOST);
    struct stream_path p;

    if (when == ONCE && rddp_close(context))
        _exit(5);
    if (when == LOST)
        closefrom(STDERR_FILENO + 1);
    stream_path_open(&p, &attr);
    if (when == SINCE)
        context = open_context(true);
    if (rddp_stream_write(p.end[0], "octets", 6, 0, NULL))
        _exit(6);
    take_numbers();
    (void)rddp_stream_write(p.end[0], "more", 4, 0, NULL);
    for (int end = 0; end < 2; end++)
        if (rddp_stream_progress(p.net[end], end ? 0 : -1) != -ENODEV || rddp_stream_net_fd(p.net[end]) != -ENODEV)
            _exit(7);
    if (!taken_are_whole())
        _exit(8);
    stream_path_close(&p);
    if (when != ONCE && when != NEVER && rddp_close(context))
        _exit(9);
    _exit(taken_are_whole() ? 0 : 10);
}

/* `closed`: the program was started with its input closed. */
static void run(enum when when, bool closed)
{
    pid_t child = fork_apart(CHILD_S);
    int status;

    if (!child) {
        if (closed)
            close(STDIN_FILENO);
        close_all(when);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void context_before(void **state)
{
    (void)state;
    run(BEFORE, false);
}

static void context_since(void **state)
{
    (void)state;
    run(SINCE, false);
}

static void no_context(void **state)
{
    (void)state;
    run(ONCE, false);
    run(NEVER, false);
}

/* The context that is still there does not pass for one that has the descriptors of the paths. */
static void context_has_lost_its_own(void **state)
{
    (void)state;
    run(LOST, false);
}

/* The library has number 0 then, which is not closed with the others. */
static void no_input(void **state)
{
    (void)state;
    run(BEFORE, true);
    run(NEVER, true);
}

static void *sleep_at(void *net)
{
    int error;

    do
        error = rddp_stream_progress(net, -1);
    while (!error);
    return (void *)(intptr_t)error;
}

/* A thread that sleeps meanwhile is woken. */
static void asleep(void **state)
{
    const struct stream_path_attr attr = {.v6 = false};
    pid_t child = fork_apart(CHILD_S);
    struct stream_path p;
    pthread_t sleeper;
    void *result;
    int status;

    (void)state;
    if (!child) {
        stream_path_open(&p, &attr);
        if (pthread_create(&sleeper, NULL, sleep_at, p.net[0]))
            _exit(4);
        usleep(100000);
        closefrom(STDERR_FILENO + 1);
        pthread_join(sleeper, &result);
        _exit((intptr_t)result == -ENODEV ? 0 : 5);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static struct rddp_stream_net *open_net(void)
{
    struct rddp_stream_net_attr attr;
    struct rddp_stream_net *net;

    rddp_stream_net_attr_init(&attr);
    net = rddp_stream_net_open(&attr);
    if (!net)
        _exit(4);
    return net;
}

/* In a child whose parent, which had a context or (NEVER) the net, has ended. Returns the waits of a second. */
static unsigned outlive_parent(enum when when)
{
    struct rddp_stream_net *net = when == NEVER ? open_net() : NULL;
    pid_t parent = getpid();
    unsigned waits = 0;
    uint64_t end_us;

    (void)open_context(!net);
    if (fork())
        _exit(0);
    alarm(CHILD_S);
    while (getppid() == parent)
        usleep(1000);
    if (!net)
        net = open_net();
    for (end_us = reactor_now_us() + 1000000; reactor_now_us() < end_us; waits++)
        if (rddp_stream_progress(net, WAIT_MS))
            _exit(5);
    return waits;
}

/* A child goes on when its parent ends, as that of daemon(3): its waits last as long as they are to, but for the few
 * packets that the host sends to a device of its own accord. */
static void parent_goes(enum when when)
{
    unsigned waits = 0;
    int report[2];
    pid_t child;

    assert_int_equal(pipe(report), 0);
    child = fork_apart(CHILD_S);
    if (!child) {
        waits = outlive_parent(when);
        _exit(write(report[1], &waits, sizeof(waits)) != sizeof(waits));
    }
    close(report[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(read(report[0], &waits, sizeof(waits)), sizeof(waits));
    assert_in_range(waits, 1, WAITS_MAX);
    close(report[0]);
}

static void orphan(void **state)
{
    (void)state;
    parent_goes(BEFORE);
    parent_goes(NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_before), cmocka_unit_test(context_since),
        cmocka_unit_test(no_context),     cmocka_unit_test(context_has_lost_its_own),
        cmocka_unit_test(no_input),       cmocka_unit_test(asleep),
        cmocka_unit_test(orphan),
    };

    if (!network_own()) {
        print_message("cannot run here: no network namespace, or no TUN device\n");
        return 77;
    }
    return cmocka_run_group_tests_name("stream_closed", tests, NULL, NULL);
}
