/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* woken.c - a sleeper that is woken asks the connection that spoke last, and not the epoll set, and does not ask in
 * vain before it sleeps again; all others are served in time. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/manual.h"

enum { MESSAGES = 160, MESSAGES_MAX = 1000000 };

/* The epoll set of `here`, while a test counts the rounds at it: the thread of `there` runs on when `here` is gone. */
static atomic_int watched = -1;
static atomic_uint rounds;
static struct rddp_listener *door;
static struct rddp_qp *second;
static struct rddp_conn_attr to_second;

int epoll_wait(int fd, struct epoll_event *event, int events, int timeout_ms)
{
    static _Atomic(void *) real;
    int (*call)(int, struct epoll_event *, int, int);

    if (!real)
        real = dlsym(RTLD_NEXT, "epoll_wait");
    *(void **)&call = real;
    if (fd == watched)
        rounds++;
    return call(fd, event, events, timeout_ms);
}

/* Sleeps until the message is here. Only rddp_progress() drives the loop. */
static void sleep_for_message(void)
{
    struct rddp_wc wc;

    manual_send(&there, &here);
    while (!cq_poll(&here.cq->cq, &wc, 1))
        assert_int_equal(rddp_progress(here.context, -1), 0);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
}

static int set_up(void **state)
{
    struct rddp_send_wr first = {.opcode = RDDP_WR_RDMA_WRITE}, *bad;

    manual_open(state);
    first.remote_addr = (uintptr_t)there.memory; /* until the initiator has sent something, the responder may not */
    first.rkey = rddp_mr_key(there.mr);
    assert_int_equal(rddp_post_send(here.qp, &first, &bad), 0);
    sleep_for_message();
    return 0;
}

static void without_the_epoll_set(void **state)
{
    (void)state;
    watched = here.context->loop->reactor.epoll_fd;
    rounds = 0;
    for (unsigned i = 0; i < MESSAGES; i++)
        sleep_for_message();
    watched = -1;
    assert_in_range(rounds, MESSAGES / 16, MESSAGES / 2);
}

/* Polls once, with nothing to find. Returns whether it left the sockets alone. */
static bool poll_asks_nothing(void)
{
    unsigned turns = here.context->loop->asking.turns;
    struct rddp_wc wc;

    assert_int_equal(rddp_poll_cq(here.cq, 1, &wc), 0);
    return here.context->loop->asking.turns == turns;
}

/* Between two sleeps there is nothing to find: most of the first polls ask nothing, and of those that follow all do. */
static void no_poll_in_vain(void **state)
{
    unsigned left_out = 0;

    (void)state;
    for (unsigned i = 0; i < MESSAGES; i++) {
        sleep_for_message();
        left_out += poll_asks_nothing();
        assert_false(poll_asks_nothing());
    }
    assert_in_range(left_out, MESSAGES / 2, MESSAGES - MESSAGES / 16);
}

/* What comes between a sleep and a poll is found without another sleep. */
static void polls_find_all(void **state)
{
    struct rddp_wc wc;

    (void)state;
    for (unsigned i = 0; i < MESSAGES; i++) {
        sleep_for_message();
        manual_send(&there, &here);
        while (!rddp_poll_cq(here.cq, 1, &wc))
            continue;
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    }
}

static void call_from_there(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_qp_attr attr;
    struct sockaddr_storage addr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = there.cq;
    second = rddp_create_qp(there.pd, &attr);
    assert_non_null(second);
    rddp_conn_attr_init(&to_second);
    to_second.wire.first_delay_ms = 0;
    door = rddp_listen(here.events, (struct sockaddr *)&any, sizeof(any), 1, &to_second.wire, NULL);
    assert_non_null(door);
    rddp_listener_addr(door, &addr);
    assert_int_equal(rddp_connect(second, there.events, (struct sockaddr *)&addr, sizeof(any), &to_second), 0);
}

/* While messages come all the time, another end connects. */
static void others_too(void **state)
{
    struct rddp_event *event = NULL;
    int error = -EAGAIN;

    (void)state;
    call_from_there();
    assert_int_equal(fcntl(rddp_event_channel_fd(here.events), F_SETFL, O_NONBLOCK), 0);
    for (int i = 0; error == -EAGAIN && i < MESSAGES_MAX; i++) {
        sleep_for_message();
        error = rddp_get_event(here.events, &event);
    }
    assert_int_equal(error, 0);
    assert_int_equal(event->type, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_reject(event->request, NULL, 0), 0);
    rddp_ack_event(event);
    rddp_destroy_qp(second);
    rddp_destroy_listener(door);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_the_epoll_set, set_up, manual_close),
        cmocka_unit_test_setup_teardown(no_poll_in_vain, set_up, manual_close),
        cmocka_unit_test_setup_teardown(polls_find_all, set_up, manual_close),
        cmocka_unit_test_setup_teardown(others_too, set_up, manual_close),
    };

    return cmocka_run_group_tests_name("woken", tests, NULL, NULL);
}
