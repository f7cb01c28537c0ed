/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scarce_descriptors.c - descriptors run out while connections wait to be accepted: the listener pauses, and takes them
 * by itself when there are some again. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/reactor.h"
#include "tests/suite/lib/pair.h"

enum {
    PEERS = 3,
    TRIES = 3,      /* to accept, while there is no descriptor */
    PAUSE_MS = 100, /* between two of them */
};

static const char request[] = "MPA ID Req Frame\0\1\0";
static atomic_uint tries;

static void note_line(void *user, enum rddp_log_level level, const char *line)
{
    (void)user;
    if (level == RDDP_LOG_ERROR && strstr(line, "cannot accept connections for now"))
        atomic_fetch_add(&tries, 1);
}

static uint64_t now_ms(void)
{
    return reactor_now_us() / 1000;
}

/* Returns how many there have been then. */
static unsigned await_tries(unsigned least)
{
    uint64_t began_ms = now_ms();
    unsigned count;

    while ((count = atomic_load(&tries)) < least) {
        assert_true(now_ms() - began_ms < PAIR_WAIT_MS);
        poll(NULL, 0, 1);
    }
    return count;
}

/* This process can open no more of them. Returns the limit as it was. */
static struct rlimit take_descriptors(void)
{
    struct rlimit before, none;
    int next = dup(STDERR_FILENO);

    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){(rlim_t)next, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    return before;
}

/* Peers connect, and say who they are; they say no more, so nothing but time makes the listener try again. */
static void dial(const int *fd, const struct sockaddr_storage *to)
{
    for (unsigned i = 0; i < PEERS; i++) {
        assert_int_equal(connect(fd[i], (const struct sockaddr *)to, sizeof(struct sockaddr_in)), 0);
        assert_int_equal(write(fd[i], request, 20), 20);
    }
}

static void take_requests(struct rddp_event_channel *channel)
{
    struct pollfd fd = {rddp_event_channel_fd(channel), POLLIN, 0};
    struct rddp_event *event;

    for (unsigned i = 0; i < PEERS; i++) {
        assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
        assert_int_equal(rddp_get_event(channel, &event), 0);
        assert_int_equal(event->type, RDDP_EVENT_CONNECT_REQUEST);
        assert_int_equal(rddp_reject(event->request, NULL, 0), 0);
        rddp_ack_event(event);
    }
}

static void accepted_later(void **state)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_event_channel *channel;
    struct rddp_listener *listener;
    struct rddp_context_attr attr;
    struct rddp_context *context;
    struct sockaddr_storage addr;
    struct rlimit before;
    uint64_t began_ms;
    int fd[PEERS];
    unsigned tried;

    (void)state;
    rddp_context_attr_init(&attr);
    attr.log = note_line;
    attr.log_level = RDDP_LOG_ERROR;
    context = rddp_open(&attr);
    assert_non_null(context);
    channel = rddp_create_event_channel(context);
    listener = rddp_listen(channel, (struct sockaddr *)&any, sizeof(any), PEERS, NULL, NULL);
    assert_non_null(listener);
    assert_int_equal(rddp_listener_addr(listener, &addr), 0);
    for (unsigned i = 0; i < PEERS; i++)
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    before = take_descriptors();
    began_ms = now_ms();
    dial(fd, &addr);
    tried = await_tries(TRIES);
    assert_in_range(tried, TRIES, 1 + (now_ms() - began_ms) / PAUSE_MS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    take_requests(channel);
    for (unsigned i = 0; i < PEERS; i++)
        close(fd[i]);
    assert_int_equal(rddp_destroy_listener(listener), 0);
    assert_int_equal(rddp_destroy_event_channel(channel), 0);
    assert_int_equal(rddp_close(context), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(accepted_later)};

    return cmocka_run_group_tests_name("scarce_descriptors", tests, NULL, NULL);
}
