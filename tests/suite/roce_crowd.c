/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_crowd.c - more requests for connections on this host than a listener answers: they wait for it, and nothing else
 * waits for them, not even when the epoll set does not take the listener's queue back. ROCE-CM-12. */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "roce/io/roce_passing.h"
#include "roce/rcm.h"
#include "tests/suite/interposed/full_set.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

enum {
    SHARE = RCM_BACKLOG_MAX / RCM_SHARE, /* requests of an address that a listener keeps */
    CROWD = 3 * SHARE,
    STUCK = 60,     /* requests for a listener that reads none; the system keeps about ten */
    QUIET_MS = 100, /* no request has come for that long: those that have are answered */
    SOON_MS = 5000, /* in time: 8 s after the answers, the manager has something else to do */
    STUCK_PORT = 4000,
};
static const char ours[] = "127.0.0.1", no[] = "no";

static struct hands h;
static struct rddp_event_channel *channel[2];
static struct rddp_listener *listener;
static struct rddp_qp *caller[CROWD];

static int open_crowd(void **state)
{
    struct sockaddr_storage address = hand_address(ours, 0);
    struct rddp_wire_attr wire;

    (void)state;
    hands_open(&h, RDDP_QPT_CONNECTED, ours);
    for (unsigned i = 0; i < 2; i++)
        channel[i] = rddp_create_event_channel(h.end[i].context);
    rddp_wire_attr_init(&wire);
    wire.wire = RDDP_WIRE_ROCE;
    listener = rddp_listen(channel[1], (struct sockaddr *)&address, sizeof(address), 64, &wire, NULL);
    assert_non_null(listener);
    memset(caller, 0, sizeof(caller));
    return 0;
}

static int close_crowd(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CROWD; i++)
        if (caller[i])
            assert_int_equal(rddp_destroy_qp(caller[i]), 0);
    assert_int_equal(rddp_destroy_listener(listener), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rddp_destroy_event_channel(channel[i]), 0);
    hands_close(&h);
    return 0;
}

static void call(unsigned number, uint16_t port)
{
    struct sockaddr_storage address = hand_address(ours, port);
    struct rddp_qp_attr qp = h.qp;
    struct rddp_conn_attr attr;

    qp.max_send_wr = qp.max_recv_wr = 1;
    qp.send_cq = qp.recv_cq = h.end[0].cq;
    caller[number] = rddp_create_qp(h.end[0].pd, &qp);
    assert_non_null(caller[number]);
    rddp_conn_attr_init(&attr);
    attr.wire.wire = RDDP_WIRE_ROCE;
    attr.wire.startup_timeout_ms = 120000;
    assert_int_equal(rddp_connect(caller[number], channel[0], (struct sockaddr *)&address, sizeof(address), &attr), 0);
}

static bool has_event(unsigned end, int timeout_ms)
{
    struct pollfd fd = {rddp_event_channel_fd(channel[end]), POLLIN, 0};

    return poll(&fd, 1, timeout_ms) == 1;
}

static struct rddp_event *next_of(unsigned end, enum rddp_event_type type)
{
    struct rddp_event *event;

    assert_true(has_event(end, HAND_WAIT_MS));
    assert_int_equal(rddp_get_event(channel[end], &event), 0);
    assert_int_equal(event->type, type);
    return event;
}

static struct rddp_request *next_request(void)
{
    struct rddp_event *event = next_of(1, RDDP_EVENT_CONNECT_REQUEST);
    struct rddp_request *request = event->request;

    rddp_ack_event(event);
    return request;
}

static void call_crowd(void)
{
    for (unsigned i = 0; i < CROWD; i++)
        call(i, hand_port(listener));
}

static void answer(struct rddp_request *request)
{
    assert_int_equal(rddp_reject(request, no, sizeof(no)), 0);
}

static void all_are_told(void)
{
    for (unsigned i = 0; i < CROWD; i++) {
        struct rddp_event *event = next_of(0, RDDP_EVENT_REJECTED);

        assert_true(event->private_data_length >= sizeof(no));
        assert_memory_equal(event->private_data, no, sizeof(no));
        rddp_ack_event(event);
    }
}

/* The application takes requests for as long as they come, and answers them only then: none gave way to another. */
static void all_are_answered(void **state)
{
    struct rddp_request *request[CROWD];
    unsigned taken = 0, answered = 0;

    (void)state;
    call_crowd();
    while (answered < CROWD) {
        if (taken < CROWD && has_event(1, QUIET_MS))
            request[taken++] = next_request();
        else
            while (answered < taken)
                answer(request[answered++]);
    }
    all_are_told();
}

/* The listener has answered enough, and the epoll set does not take its queue back: it is asked, although no message
 * comes meanwhile, and taken back later. */
static void the_set_is_full(void **state)
{
    struct rddp_request *request[SHARE];
    unsigned answered = 0;

    (void)state;
    call_crowd();
    for (unsigned i = 0; i < SHARE; i++)
        request[i] = next_request();
    set_refusals = 0;
    set_is_full = true;
    for (; answered < SHARE; answered++)
        answer(request[answered]);
    for (; answered < CROWD; answered++) {
        assert_true(has_event(1, SOON_MS));
        answer(next_request());
        set_is_full = answered < 2 * SHARE;
    }
    assert_true(set_refusals);
    all_are_told();
}

/* A process that listens and has stopped: it is named as a listener is. */
static int open_stuck(void)
{
    const struct roce_address local = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    int fd = roce_passing_listen(rcm_service(RCM_SPACE_TCP, STUCK_PORT), &local);

    assert_true(fd >= 0);
    return fd;
}

static void others_do_not_wait(void **state)
{
    int fd = open_stuck();

    (void)state;
    for (unsigned i = 0; i < STUCK; i++)
        call(i, STUCK_PORT);
    call(STUCK, hand_port(listener));
    answer(next_request());
    rddp_ack_event(next_of(0, RDDP_EVENT_REJECTED));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_are_answered, open_crowd, close_crowd),
        cmocka_unit_test_setup_teardown(the_set_is_full, open_crowd, close_crowd),
        cmocka_unit_test_setup_teardown(others_do_not_wait, open_crowd, close_crowd),
    };

    if (!network_alone()) {
        print_message("no namespace here: the ports may be another program's\n");
        return 77;
    }
    return cmocka_run_group_tests_name("roce_crowd", tests, NULL, NULL);
}
