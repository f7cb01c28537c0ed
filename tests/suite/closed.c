/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closed.c - the program closes all descriptors that it finds, as one that becomes a daemon. Connections end with an
 * error, the threads end, and the files that get the numbers next are neither written nor closed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/taken.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/pair.h"

enum { CHILD_S = 60 };

static unsigned threads_at_first;

static unsigned count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    unsigned count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* Not by the descriptor, which is a file now. */
static int get_event(struct side *side, struct rddp_event **event)
{
    const struct timespec step = {.tv_nsec = 1000000};
    int error = -EAGAIN;

    for (int ms = 0; ms < PAIR_WAIT_MS && (error = rddp_get_event(side->events, event)) == -EAGAIN; ms++)
        nanosleep(&step, NULL);
    return error;
}

/* What the peer's socket says when it is closed first may be seen before the loss. */
static void expect_end(struct side *side)
{
    struct rddp_event *event;
    struct rddp_qp_info info;

    assert_int_equal(get_event(side, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_DISCONNECTED);
    if (event->status != -EBADF)
        assert_int_equal(event->status, -ECONNRESET);
    rddp_ack_event(event);
    assert_int_equal(get_event(side, &event), -EBADF);
    assert_int_equal(rddp_event_channel_fd(side->events), -EBADF);
    assert_int_equal(rddp_progress(side->context, 1), -EBADF);
    assert_int_equal(rddp_query_qp(side->qp, &info), 0);
    assert_int_equal(info.state, RDDP_QP_ERROR);
    assert_true(pair_said(side, "the program has closed the library's descriptors"));
}

static void expect_no_threads(void)
{
    const struct timespec step = {.tv_nsec = 1000000};

    for (int ms = 0; ms < PAIR_WAIT_MS && count_threads() > threads_at_first; ms++)
        nanosleep(&step, NULL);
    assert_in_range(count_threads(), 1, threads_at_first);
}

static void test_idle(void **state)
{
    struct pair *pair = *state;
    struct rddp_wc wc;

    pair_receive(&pair->server, 1, 0, 100);
    pair_receive(&pair->client, 2, 0, 100);
    take_numbers();
    wc = pair_completion(&pair->server);
    assert_int_equal(wc.status, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_WR_FLUSH_ERR);
    expect_end(&pair->server);
    expect_end(&pair->client);
    expect_no_threads();
    assert_true(taken_are_whole());
}

/* Requests are on their way, and others are posted after the end. */
static void test_busy(void **state)
{
    struct pair *pair = *state;
    struct rddp_wc wc[PAIR_DEPTH];

    for (int i = 0; i < PAIR_DEPTH; i++)
        assert_int_equal(
            pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, 0, 0, PAIR_BUFFER, 0, RDDP_SEND_SIGNALED), 0);
    take_numbers();
    pair_completions(&pair->client, wc, PAIR_DEPTH);
    assert_int_equal(wc[PAIR_DEPTH - 1].status, RDDP_WC_WR_FLUSH_ERR);
    expect_end(&pair->client);
    expect_end(&pair->server);
    assert_int_equal(pair_post(&pair->server, &pair->client, RDDP_WR_RDMA_WRITE, 0, 0, 100, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_WR_FLUSH_ERR);
    assert_true(taken_are_whole());
}

/* What was made before the loss goes after a new context was opened, whose descriptors stay. */
static void test_again(void **state)
{
    struct pair *pair = *state;
    struct rddp_context *other;
    struct rddp_event_channel *events;

    take_numbers();
    close_taken();
    other = rddp_open(NULL);
    assert_non_null(other);
    events = rddp_create_event_channel(other);
    assert_non_null(events);
    expect_end(&pair->client);
    pair_close(pair);
    assert_true(fcntl(rddp_event_channel_fd(events), F_GETFD) >= 0);
    assert_int_equal(rddp_progress(other, 0), 0);
    assert_int_equal(rddp_destroy_event_channel(events), 0);
    assert_int_equal(rddp_close(other), 0);
    pair_open(pair, pair->row);
}

/* A child that closes what it has inherited, before it calls the library. */
static void test_child(void **state)
{
    struct pair *pair = *state;
    struct rddp_event *event;
    pid_t child;
    int status;

    fflush(NULL);
    child = fork_apart(CHILD_S);
    if (!child) {
        take_numbers();
        if (rddp_destroy_qp(pair->client.qp) || rddp_get_event(pair->client.events, &event) != -EBADF ||
            rddp_destroy_event_channel(pair->client.events) || rddp_destroy_listener(pair->listener) ||
            !rddp_open(NULL) || rddp_destroy_comp_channel(pair->server.channel) != -EBUSY)
            _exit(2);
        _exit(taken_are_whole() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pair_receive(&pair->server, 1, 0, 100);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 2, 0, 100, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
}

int main(void)
{
    const struct pair_test tests[] = {
        PAIR_TEST(test_child),
        PAIR_TEST(test_idle),
        PAIR_TEST(test_busy),
        PAIR_TEST(test_again),
    };

#ifdef __SANITIZE_THREAD__
    puts("cannot run here: a program that closes the library's descriptors races with its threads, as intended");
    return 77;
#endif
    threads_at_first = count_threads();
    return pair_run("closed", tests, sizeof(tests) / sizeof(tests[0]), true);
}
