/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_taken.c - another program has UDP port 4791: one line says so, and queue pairs, connections and services of this
 * host are reached all the same. ROCE-PORT-03. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roce/bth.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

enum { OCTETS = 100000, SKIPPED = 77 };

static struct hands h;
static unsigned lines;

static void on_line(void *user, enum rddp_log_level level, const char *line)
{
    (void)user;
    if (strstr(line, "UDP port 4791 cannot be used")) {
        assert_int_equal(level, RDDP_LOG_WARN);
        lines++;
    }
}

/* The usual contexts, whose log is counted. */
static void open_logged(enum rddp_qp_type type)
{
    struct rddp_context_attr attr;

    lines = 0;
    rddp_context_attr_init(&attr);
    attr.log = on_line;
    attr.log_level = RDDP_LOG_WARN;
    hands_open_with(&h, type, "127.0.0.1", &attr);
}

static void by_hand(void **state)
{
    (void)state;
    open_logged(RDDP_QPT_RC);
    hands_make(&h);
    assert_int_equal(lines, 2); /* each context has a socket of its own */
    hands_connect(&h);
    hand_fill(h.end[0].buffer, OCTETS, 7);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_RDMA_WRITE, 0, OCTETS, 0);
    assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    hand_check(h.end[1].buffer, OCTETS, 7);
    hand_post(&h.end[1], &h.end[0], RDDP_WR_RDMA_READ, OCTETS, OCTETS, 0);
    assert_int_equal(hand_completion(&h.end[1]).status, RDDP_WC_SUCCESS);
    hand_check(h.end[1].buffer + OCTETS, OCTETS, 7);
    assert_int_equal(lines, 2);
    hands_close(&h);
}

static struct rddp_event take_event(struct rddp_event_channel *channel, enum rddp_event_type type)
{
    struct rddp_event *event, copy;

    assert_int_equal(rddp_get_event(channel, &event), 0);
    copy = *event;
    rddp_ack_event(event);
    assert_int_equal(copy.type, type);
    return copy;
}

static void by_name(void **state)
{
    struct rddp_event_channel *channel[2];
    struct sockaddr_storage address;
    struct rddp_resolution *resolution;
    struct rddp_answer answer = {.qpn = 5, .qkey = 6};
    struct rddp_listener *listener;
    struct rddp_wire_attr wire;
    struct rddp_event event;

    (void)state;
    open_logged(RDDP_QPT_UD);
    for (unsigned i = 0; i < 2; i++)
        channel[i] = rddp_create_event_channel(h.end[i].context);
    rddp_wire_attr_init(&wire);
    wire.wire = RDDP_WIRE_ROCE;
    wire.datagrams = true;
    listener = rddp_listen(channel[1], (struct sockaddr *)&h.address, sizeof(h.address), 1, &wire, NULL);
    assert_non_null(listener);
    assert_int_equal(rddp_listener_addr(listener, &address), 0);
    resolution = rddp_resolve(channel[0], (struct sockaddr *)&address, sizeof(address), NULL, NULL);
    assert_non_null(resolution);
    assert_int_equal(rddp_answer(take_event(channel[1], RDDP_EVENT_CONNECT_REQUEST).request, &answer), 0);
    event = take_event(channel[0], RDDP_EVENT_RESOLVED);
    assert_int_equal(event.qpn, 5);
    assert_int_equal(event.qkey, 6);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
    assert_int_equal(rddp_destroy_listener(listener), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rddp_destroy_event_channel(channel[i]), 0);
    hands_close(&h);
}

/* As the kernel's rxe has it: alone. */
static bool take_port(void)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(ROCE_PORT)};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && !bind(fd, (struct sockaddr *)&any, sizeof(any));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(by_name)};

    if (!network_alone() || !take_port()) {
        print_message("no namespace here with a port 4791 that is free\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests_name("roce_taken", tests, NULL, NULL);
}
