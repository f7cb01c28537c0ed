/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled_closed.c - while a polled socket is out of the epoll set the process forks, or the program closes all
 * descriptors and uses their numbers for its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive/thread.h"
#include "endpoint/objects.h"
#include "tcp/io/link_tcp.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/manual.h"

enum {
    WAIT_US = PAIR_WAIT_MS * 1000,
    POLLS = 200, /* after a message: enough for a socket to leave */
    LATE = 5000, /* polls in vain: enough to see that all is over */
    FDS = 64,    /* that a process of this test has */
    CHILD_SECONDS = 60,
    GONE_MS = 20, /* the thread has looked by then */
    TIMES = 3,    /* each way to call, since chance decides who is first */
    OCTETS = 8,
};

static struct hands h;
static struct hand *speaker = &h.end[0], *polled = &h.end[1];
static unsigned under_way; /* messages of the speaker whose completions were not taken */

/* On a busy machine, completions may be as many messages late as fit into the queue. */
static void say(void)
{
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;
    int taken;

    while ((taken = rddp_poll_cq(speaker->cq, 1, &wc)) || under_way == HAND_DEPTH) {
        under_way -= (unsigned)taken;
        assert_true(reactor_now_us() - began_us < WAIT_US);
    }
    under_way++;
    hand_receive(polled, 0, 0, OCTETS);
    hand_post(speaker, polled, RDDP_WR_SEND, 0, OCTETS, 0);
}

static void open_hands(bool manual)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.manual_progress = manual;
    under_way = 0;
    hands_open_with(&h, RDDP_QPT_RC, "127.0.0.1", &attr);
    hands_make(&h);
    hands_connect(&h);
}

static void poll_until_out(void)
{
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;

    while (!polled->context->loop->resting) {
        assert_true(reactor_now_us() - began_us < WAIT_US);
        say();
        while (!rddp_poll_cq(polled->cq, 1, &wc))
            assert_true(reactor_now_us() - began_us < WAIT_US);
        for (int i = 0; i < POLLS; i++)
            assert_int_equal(rddp_poll_cq(polled->cq, 1, &wc), 0);
    }
}

/* --- fork() ------------------------------------------------------------------------------------------------------- */

/* A queue pair of the child whose peer does not exist: only timers bring its completion. */
static int await_timers(void)
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED}, *bad;
    uint64_t began_us;
    struct rddp_wc wc;

    polled->cq = rddp_create_cq(polled->context, 4, NULL, NULL);
    if (!polled->cq)
        return 1;
    hands_make(&h);
    h.ib.timeout = 8; /* 1 ms */
    h.ib.retry_cnt = 2;
    hand_connect(&h, 1, 0x123456);
    if (rddp_post_send(polled->qp, &wr, &bad))
        return 2;
    for (began_us = reactor_now_us(); rddp_poll_cq(polled->cq, 1, &wc) != 1; poll(NULL, 0, 1))
        if (reactor_now_us() - began_us > WAIT_US)
            return 3;
    return wc.status != RDDP_WC_RETRY_EXC_ERR;
}

static void timers_of_a_child(bool manual)
{
    int status;
    pid_t child;

    hands_skip_without_threads_in_children();
    open_hands(manual);
    poll_until_out();
    child = fork_apart(CHILD_SECONDS);
    if (!child)
        _exit(await_timers());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    hands_close(&h);
}

static void timers_run_in_a_child(void **state)
{
    (void)state;
    timers_of_a_child(true);
    timers_of_a_child(false);
}

/* --- descriptors that are the program's --------------------------------------------------------------------------- */

/* Descriptors in this epoll set. */
static int count_watched(int set)
{
    char path[64], line[256];
    int count = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        count += !strncmp(line, "tfd:", 4);
    if (file)
        fclose(file);
    return file ? count : -1;
}

static void call_nothing(void)
{
    poll(NULL, 0, GONE_MS); /* the thread looks, if there is one */
}

static void call_poll(void)
{
    struct rddp_wc wc;

    for (int i = 0; i < POLLS; i++)
        rddp_poll_cq(polled->cq, 1, &wc);
}

static void call_progress(void)
{
    rddp_progress(polled->context, 0);
}

static void call_progress_fd(void)
{
    if (rddp_progress_fd(polled->context) != -EBADF)
        _exit(1);
}

static void call_destroy(void)
{
    rddp_destroy_qp(polled->qp);
}

static void (*const calls[])(void) = {call_nothing, call_poll, call_progress, call_progress_fd, call_destroy};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* All numbers that the library had are those of files like these from now on. */
static void give_numbers_to_eventfds(void)
{
    while (eventfd(0, 0) < FDS)
        continue;
}

/* Sockets of the program at which a receive that may block does. */
static void give_numbers_to_sockets(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd;

    do {
        fd = socket(AF_INET, SOCK_DGRAM, 0);
        if (bind(fd, (const struct sockaddr *)&any, sizeof(any)))
            _exit(1);
    } while (fd < FDS);
}

/* Its own epoll set gets the number of ours. With `ready` there is an event in it, whose data are no watch of ours, and
 * which is shown once: to the program, unless a call of its own asks the set. */
static void run_closer(void (*call)(void), bool manual, bool ready)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 0x4141414141414141};
    int set, own;

    open_hands(manual);
    set = polled->context->loop->reactor.epoll_fd;
    poll_until_out();
    closefrom(STDERR_FILENO + 1);
    own = epoll_create1(0);
    if (own != set && dup2(own, set) != set)
        _exit(1);
    if (ready && epoll_ctl(set, EPOLL_CTL_ADD, eventfd(1, 0), &event))
        _exit(1);
    give_numbers_to_eventfds();
    call();
    for (int i = 0; i < LATE / POLLS && manual && call == call_poll && polled->context->home != CONTEXT_CLOSED; i++)
        call();
    if (manual && call == call_poll && polled->context->home != CONTEXT_CLOSED)
        _exit(1);
    _exit(count_watched(set) != ready || (call == call_nothing && epoll_wait(set, &event, 1, 0) != ready));
}

static void run_closer_with_sockets(int way)
{
    open_hands(way & 1);
    poll_until_out();
    closefrom(STDERR_FILENO + 1);
    give_numbers_to_sockets();
    call_poll();
    _exit(0);
}

static struct itimerspec an_hour = {.it_value.tv_sec = 3600};

static void give_number_to_timer(int fd)
{
    if (timerfd_create(CLOCK_MONOTONIC, 0) != fd || timerfd_settime(fd, 0, &an_hour, NULL))
        _exit(1);
}

/* Timers of the program that are set, and sockets that are connected; the other end of each goes above. */
static void give_numbers_to_timers_and_pairs(void)
{
    int pair[2];

    for (int fd = STDERR_FILENO + 1; fd < FDS; fd++) {
        if (fd % 2) {
            give_number_to_timer(fd);
        } else if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pair[0] != fd || dup2(pair[1], FDS + fd) < 0 ||
                   close(pair[1])) {
            _exit(1);
        }
    }
}

static bool are_timers_untouched(void)
{
    struct itimerspec left;

    for (int fd = STDERR_FILENO + 1; fd < FDS; fd++)
        if (!timerfd_gettime(fd, &left) && left.it_value.tv_sec < an_hour.it_value.tv_sec - CHILD_SECONDS)
            return false;
    return true;
}

/* The other ends see nothing, not even an end. */
static bool are_pairs_untouched(void)
{
    char octet;

    for (int fd = STDERR_FILENO + 2; fd < FDS; fd += 2)
        if (recv(FDS + fd, &octet, 1, MSG_DONTWAIT) >= 0)
            return false;
    return true;
}

/* What ends a stream, and what sets timers, is not for those. */
static void run_ender(bool destroys)
{
    manual_open(NULL);
    closefrom(STDERR_FILENO + 1);
    give_numbers_to_timers_and_pairs();
    if (destroys)
        rddp_destroy_qp(here.qp);
    else
        rddp_disconnect(here.qp);
    _exit(!are_timers_untouched() || !are_pairs_untouched());
}

/* A post sets the timer for what is not acknowledged. */
static void run_poster(void)
{
    open_hands(true);
    closefrom(STDERR_FILENO + 1);
    for (int fd = STDERR_FILENO + 1; fd < FDS; fd++)
        give_number_to_timer(fd);
    hand_post(speaker, polled, RDDP_WR_SEND, 0, OCTETS, 0);
    _exit(!are_timers_untouched());
}

static void be_spoken_to(void)
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_WRITE, .remote_addr = (uintptr_t)there.memory}, *bad;
    struct rddp_wc wc;

    wr.rkey = rddp_mr_key(there.mr);
    if (rddp_post_send(here.qp, &wr, &bad)) /* the initiator speaks first (RFC 5044 7.1.2) */
        _exit(1);
    manual_send(&there, &here);
    while (rddp_poll_cq(here.cq, 1, &wc) != 1)
        continue;
}

static int connect_another(void)
{
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_qp_attr attr;
    struct rddp_qp *qp;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = here.cq;
    qp = rddp_create_qp(here.pd, &attr);
    return qp ? rddp_connect(qp, here.events, (struct sockaddr *)&peer, sizeof(peer), NULL) : -ENOMEM;
}

/* A set of the program has the number of ours, and watches a file that has the number of a stream. That is found to be
 * no stream by the next poll; nothing is to leave the set, or to come into it. */
static void run_closer_of_a_stream(bool connects)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct rddp_wc wc;
    int set, own, fd;

    manual_open(NULL);
    be_spoken_to();
    set = here.context->loop->reactor.epoll_fd;
    fd = link_tcp_fd(here.qp->endpoint->link);
    closefrom(STDERR_FILENO + 1);
    own = epoll_create1(0);
    if (own != set && dup2(own, set) != set)
        _exit(1);
    give_numbers_to_eventfds();
    if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
        _exit(1);
    if (connects && connect_another() != -EBADF)
        _exit(1);
    for (int i = 0; i < POLLS; i++)
        rddp_poll_cq(here.cq, 1, &wc);
    _exit(count_watched(set) != 1);
}

/* Each way in a child, which says by its exit code whether it went well. */
static void run_in_children(void (*run)(int way), int ways)
{
    hands_skip_without_threads_in_children();
    for (int way = 0; way < ways; way++) {
        pid_t child = fork_apart(CHILD_SECONDS);
        int status;

        if (!child)
            run(way);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void close_beside_sets(int way)
{
    run_closer(calls[way / 4 % CALLS], way & 1, way & 2);
}

static void the_set_is_the_programs(void **state)
{
    (void)state;
    run_in_children(close_beside_sets, 4 * CALLS * TIMES);
}

static void the_sockets_are_the_programs(void **state)
{
    (void)state;
    run_in_children(run_closer_with_sockets, 2 * TIMES);
}

static void close_beside_a_watch(int way)
{
    run_closer_of_a_stream(way);
}

static void what_the_program_watches_is_its_own(void **state)
{
    (void)state;
    run_in_children(close_beside_a_watch, 2);
}

static void close_beside_timers(int way)
{
    if (way % 3 == 2)
        run_poster();
    run_ender(way % 3);
}

static void timers_and_pairs_are_the_programs(void **state)
{
    (void)state;
    run_in_children(close_beside_timers, 3 * TIMES);
}

/* --- a timer that is due ------------------------------------------------------------------------------------------ */

static void ring_nothing(struct timer *timer, uint64_t now_us)
{
    (void)timer;
    (void)now_us;
}

/* A timer that is due is not looked for in a file of the program that has the number of ours: reading there takes what
 * is the program's, or does not end. */
static void run_closer_with_timer(int way)
{
    static struct timer timer = {.fire = ring_nothing};
    bool manual = way & 1;
    struct reactor *reactor;
    uint64_t count = 0;
    int fd;

    open_hands(manual);
    reactor = &polled->context->loop->reactor;
    if (reactor_add_timer(reactor, &timer))
        _exit(1);
    poll_until_out();
    fd = reactor->timer_fd;
    closefrom(STDERR_FILENO + 1);
    for (int each; (each = eventfd(7, EFD_NONBLOCK)) < FDS;)
        if (each < 0)
            _exit(1);
    reactor_set_timer(reactor, &timer, reactor_now_us());
    call_poll();
    _exit(read(fd, &count, sizeof(count)) != sizeof(count) || count != 7 ? 2 : 0);
}

static void a_timer_is_due(void **state)
{
    (void)state;
    run_in_children(run_closer_with_timer, 2 * TIMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_is_due),
        cmocka_unit_test(timers_run_in_a_child),
        cmocka_unit_test(the_set_is_the_programs),
        cmocka_unit_test(the_sockets_are_the_programs),
        cmocka_unit_test(what_the_program_watches_is_its_own),
        cmocka_unit_test(timers_and_pairs_are_the_programs),
    };

    return cmocka_run_group_tests_name("polled_closed", tests, NULL, NULL);
}
