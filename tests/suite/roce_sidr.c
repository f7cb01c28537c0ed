/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_sidr.c - services of datagrams over loopback: found by their names, refused, silent, given up and misused, in
 * this process and in others. ROCE-CM-10. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/suite/lib/datagrams.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/network.h"

enum { ASKED_MAX = 180, ANSWERED_MAX = 136, MANY = 200, SOON_MS = 300, SERVER_S = 60, CHILD_OK = 42 };

static struct rddp_event_channel *channel[2];
static char octets[512];

static int open_ends(void **state)
{
    (void)state;
    datagrams_open("127.0.0.1");
    for (unsigned i = 0; i < 2; i++)
        channel[i] = rddp_create_event_channel(h.end[i].context);
    for (unsigned i = 0; i < sizeof(octets); i++)
        octets[i] = (char)(i + 1);
    return 0;
}

static int close_ends(void **state)
{
    struct rddp_event *event;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        fcntl(rddp_event_channel_fd(channel[i]), F_SETFL, O_NONBLOCK);
        assert_int_equal(rddp_get_event(channel[i], &event), -EAGAIN);
        assert_int_equal(rddp_destroy_event_channel(channel[i]), 0);
    }
    datagrams_close();
    return 0;
}

static struct rddp_listener *listen_on(const char *text, uint16_t port, bool datagrams)
{
    struct sockaddr_storage address = hand_address(text, port);
    struct rddp_wire_attr wire;

    rddp_wire_attr_init(&wire);
    wire.wire = RDDP_WIRE_ROCE;
    wire.datagrams = datagrams;
    return rddp_listen(channel[1], (struct sockaddr *)&address, sizeof(address), 64, &wire, &octets[1]);
}

static struct rddp_resolution *ask_with(const char *text, uint16_t port, const struct rddp_resolve_attr *attr)
{
    struct sockaddr_storage to = hand_address(text, port);

    return rddp_resolve(channel[0], (struct sockaddr *)&to, sizeof(to), attr, &octets[0]);
}

static struct rddp_resolution *ask(const char *text, uint16_t port)
{
    struct rddp_resolution *resolution = ask_with(text, port, NULL);

    assert_non_null(resolution);
    return resolution;
}

static struct rddp_qp *make_connected(void)
{
    struct rddp_qp *qp;

    h.qp.type = RDDP_QPT_CONNECTED;
    h.qp.send_cq = h.qp.recv_cq = h.end[0].cq;
    qp = rddp_create_qp(h.end[0].pd, &h.qp);
    assert_non_null(qp);
    return qp;
}

/* Asks for a connection. */
static int call(struct rddp_qp *qp, uint16_t port, bool datagrams)
{
    struct sockaddr_storage address = hand_address("127.0.0.1", port);
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire.wire = RDDP_WIRE_ROCE;
    attr.wire.datagrams = datagrams;
    return rddp_connect(qp, channel[0], (struct sockaddr *)&address, sizeof(address), &attr);
}

/* Waits for the next event; its private data are those that `octets` has, and zeros. */
static struct rddp_event next_event(unsigned end, enum rddp_event_type type, uint16_t length, uint16_t given)
{
    struct pollfd fd = {rddp_event_channel_fd(channel[end]), POLLIN, 0};
    struct rddp_event *event, copy;

    assert_int_equal(poll(&fd, 1, HAND_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(channel[end], &event), 0);
    if (event->type != type)
        fail_msg("\"%s\" (%d), not \"%s\"", rddp_event_str(event->type), event->status, rddp_event_str(type));
    assert_int_equal(event->private_data_length, length);
    if (length) {
        assert_memory_equal(event->private_data, octets, given);
        for (unsigned i = given; i < length; i++)
            assert_int_equal(((const char *)event->private_data)[i], 0);
    }
    assert_ptr_equal(event->user, &octets[end]);
    assert_null(event->qp);
    copy = *event;
    rddp_ack_event(event);
    return copy;
}

static struct rddp_request *asked(uint16_t given)
{
    return next_event(1, RDDP_EVENT_CONNECT_REQUEST, ASKED_MAX, given).request;
}

static struct rddp_answer answer_of(uint16_t length)
{
    return (struct rddp_answer){
        .qpn = rddp_qp_num(h.end[1].qp), .qkey = QKEY, .private_data = octets, .private_data_length = length};
}

/* --- found -------------------------------------------------------------------------------------------------------- */

/* A datagram to where the service is said to be. */
static void send_there(const struct rddp_event *event)
{
    struct rddp_send_wr *wr = datagram(0, 100);

    hand_receive(&h.end[1], 1, AT, GRH + 100);
    wr->remote_qpn = event->qpn;
    wr->remote_qkey = event->qkey;
    datagram_send(0, wr);
    assert_int_equal(hand_completion(&h.end[1]).byte_len, GRH + 100);
}

static void find(const char *text, const char *at, uint16_t asks, uint16_t answers)
{
    struct rddp_listener *listener = listen_on(at, 0, true);
    struct rddp_answer answer = answer_of(answers);
    struct rddp_resolution *resolution;
    struct sockaddr_storage local;
    struct rddp_resolve_attr attr;
    struct rddp_request *request;
    struct rddp_event event;

    rddp_resolve_attr_init(&attr);
    attr.private_data = octets;
    attr.private_data_length = asks;
    resolution = ask_with(text, hand_port(listener), &attr);
    assert_non_null(resolution);
    request = asked(asks);
    assert_int_equal(rddp_request_local_addr(request, &local), 0);
    assert_int_equal(local.ss_family, strchr(text, ':') ? AF_INET6 : AF_INET);
    assert_int_equal(ntohs(((struct sockaddr_in *)&local)->sin_port), hand_port(listener));
    assert_int_equal(rddp_answer(request, &answer), 0);
    event = next_event(0, RDDP_EVENT_RESOLVED, ANSWERED_MAX, answers);
    assert_ptr_equal(event.resolution, resolution);
    assert_int_equal(event.status, 0);
    assert_int_equal(event.qpn, rddp_qp_num(h.end[1].qp));
    assert_int_equal(event.qkey, QKEY);
    send_there(&event);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

static void found(void **state)
{
    (void)state;
    find("127.0.0.1", "127.0.0.1", 0, 0);
    find("127.0.0.1", "0.0.0.0", 1, 1);
    find("127.0.0.1", "::", ASKED_MAX, ANSWERED_MAX);
    find("::1", "::1", ASKED_MAX, ANSWERED_MAX);
}

/* All at once, in any order, each with its own answer. */
static void many(void **state)
{
    static struct rddp_resolution *resolution[MANY];
    struct rddp_listener *listener = listen_on("127.0.0.1", 0, true);
    uint8_t seen[MANY] = {0};

    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        resolution[i] = ask("127.0.0.1", hand_port(listener));
    for (unsigned i = 0; i < MANY; i++) {
        struct rddp_answer answer = {.qpn = 0x100 + i, .qkey = i};

        assert_int_equal(rddp_answer(asked(0), &answer), 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        struct rddp_event event = next_event(0, RDDP_EVENT_RESOLVED, ANSWERED_MAX, 0);

        assert_in_range(event.qkey, 0, MANY - 1);
        assert_int_equal(event.qpn, 0x100 + event.qkey);
        assert_int_equal(seen[event.qkey]++, 0);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(rddp_destroy_resolution(resolution[i]), 0);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

/* --- not found ---------------------------------------------------------------------------------------------------- */

static void unreachable(const char *text, uint16_t port, int status)
{
    struct rddp_resolution *resolution = ask(text, port);

    assert_int_equal(next_event(0, RDDP_EVENT_UNREACHABLE, 0, 0).status, status);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
}

/* Ports of connections are not ports of datagrams. */
static void no_one(void **state)
{
    struct rddp_listener *connections = listen_on("127.0.0.1", 0, false), *datagrams;
    struct rddp_qp *qp = make_connected();
    struct rddp_event *event;

    (void)state;
    unreachable("127.0.0.1", 9, -ECONNREFUSED);
    unreachable("127.0.0.1", hand_port(connections), -ECONNREFUSED);
    datagrams = listen_on("127.0.0.1", hand_port(connections), true);
    assert_non_null(datagrams);
    assert_null(listen_on("127.0.0.1", hand_port(datagrams), true));
    assert_int_equal(errno, EADDRINUSE);
    assert_int_equal(rddp_destroy_listener(connections), 0);
    assert_int_equal(call(qp, hand_port(datagrams), false), 0);
    assert_int_equal(rddp_get_event(channel[0], &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_UNREACHABLE);
    assert_int_equal(event->status, -ECONNREFUSED);
    rddp_ack_event(event);
    assert_int_equal(rddp_destroy_qp(qp), 0);
    assert_int_equal(rddp_destroy_listener(datagrams), 0);
}

static void rejected(void **state)
{
    struct rddp_listener *listener = listen_on("127.0.0.1", 0, true);
    struct rddp_resolution *resolution = ask("127.0.0.1", hand_port(listener));

    (void)state;
    assert_int_equal(rddp_reject(asked(0), octets, ANSWERED_MAX), 0);
    assert_int_equal(next_event(0, RDDP_EVENT_REJECTED, ANSWERED_MAX, ANSWERED_MAX).status, -ECONNREFUSED);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);

    /* Its listener goes before the application has seen the request. */
    resolution = ask("127.0.0.1", hand_port(listener));
    poll(&(struct pollfd){rddp_event_channel_fd(channel[1]), POLLIN, 0}, 1, HAND_WAIT_MS);
    assert_int_equal(rddp_destroy_listener(listener), 0);
    assert_int_equal(next_event(0, RDDP_EVENT_REJECTED, ANSWERED_MAX, 0).status, -ECONNREFUSED);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
}

/* The service takes its time: the question ends, and the answer that comes later does no harm. */
static void late(void **state)
{
    struct rddp_listener *listener = listen_on("127.0.0.1", 0, true);
    struct rddp_answer answer = answer_of(0);
    struct rddp_resolution *resolution;
    struct rddp_resolve_attr attr;
    struct rddp_request *request;

    (void)state;
    rddp_resolve_attr_init(&attr);
    attr.timeout_ms = SOON_MS;
    resolution = ask_with("127.0.0.1", hand_port(listener), &attr);
    request = asked(0);
    assert_int_equal(next_event(0, RDDP_EVENT_UNREACHABLE, 0, 0).status, -ETIMEDOUT);
    assert_int_equal(rddp_answer(request, &answer), 0);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
    find("127.0.0.1", "127.0.0.1", 0, 0);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

/* Questions that are destroyed while they wait for an answer, and with their event not taken. */
static void given_up(void **state)
{
    struct rddp_listener *listener = listen_on("127.0.0.1", 0, true);
    struct rddp_resolution *resolution = ask("127.0.0.1", hand_port(listener));
    struct rddp_answer answer = answer_of(0);
    struct rddp_request *request = asked(0);

    (void)state;
    assert_int_equal(rddp_destroy_event_channel(channel[0]), -EBUSY);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
    assert_int_equal(rddp_answer(request, &answer), 0);

    resolution = ask("127.0.0.1", hand_port(listener));
    assert_int_equal(rddp_answer(asked(0), &answer), 0);
    assert_int_equal(poll(&(struct pollfd){rddp_event_channel_fd(channel[0]), POLLIN, 0}, 1, HAND_WAIT_MS), 1);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

static void migrated(void **state)
{
    struct rddp_event_channel *other = rddp_create_event_channel(h.end[0].context), *first = channel[0];
    struct rddp_listener *listener = listen_on("127.0.0.1", 0, true);
    struct rddp_resolution *resolution = ask("127.0.0.1", hand_port(listener));
    struct rddp_answer answer = answer_of(0);

    (void)state;
    assert_int_equal(rddp_migrate_resolution(resolution, channel[1]), -EINVAL);
    assert_int_equal(rddp_migrate_resolution(resolution, other), 0);
    assert_int_equal(rddp_answer(asked(0), &answer), 0);
    channel[0] = other;
    next_event(0, RDDP_EVENT_RESOLVED, ANSWERED_MAX, 0);
    assert_int_equal(rddp_destroy_event_channel(first), 0);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

static void expect_errno(const char *text, uint16_t port, const struct rddp_resolve_attr *attr, int error)
{
    errno = 0;
    assert_null(ask_with(text, port, attr));
    assert_int_equal(errno, error);
}

static void wrong_questions(void **state)
{
    struct sockaddr_storage v6 = hand_address("::1", 0), foreign = hand_address("192.0.2.1", 0),
                            unknown = {.ss_family = 99};
    struct rddp_resolve_attr attr;
    struct rddp_wire_attr wire;

    (void)state;
    rddp_resolve_attr_init(&attr);
    attr.private_data = octets;
    attr.private_data_length = ASKED_MAX + 1;
    expect_errno("127.0.0.1", 7, &attr, EINVAL);
    rddp_resolve_attr_init(&attr);
    attr.timeout_ms = 0;
    expect_errno("127.0.0.1", 7, &attr, EINVAL);
    rddp_resolve_attr_init(&attr);
    attr.local = (struct sockaddr *)&v6;
    expect_errno("127.0.0.1", 7, &attr, EADDRNOTAVAIL);
    attr.local = (struct sockaddr *)&foreign;
    expect_errno("127.0.0.1", 7, &attr, EADDRNOTAVAIL);
    assert_null(rddp_resolve(channel[0], (struct sockaddr *)&unknown, sizeof(unknown), NULL, NULL));
    assert_int_equal(errno, EAFNOSUPPORT);
    rddp_wire_attr_init(&wire);
    wire.datagrams = true;
    assert_null(rddp_listen(channel[1], (struct sockaddr *)&h.address, sizeof(h.address), 1, &wire, NULL));
    assert_int_equal(errno, EINVAL);
}

static void turned_away(struct rddp_resolution *resolution)
{
    assert_int_equal(next_event(0, RDDP_EVENT_REJECTED, ANSWERED_MAX, 0).status, -ECONNREFUSED);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
}

static void wrong_answers(void **state)
{
    struct rddp_listener *listener = listen_on("127.0.0.1", 0, true);
    struct rddp_answer answer = answer_of(ANSWERED_MAX + 1);
    struct rddp_resolution *resolution = ask("127.0.0.1", hand_port(listener));

    (void)state;
    assert_int_equal(rddp_answer(asked(0), &answer), -EINVAL);
    turned_away(resolution);
    answer = answer_of(0);
    answer.qpn = 1 << 24;
    resolution = ask("127.0.0.1", hand_port(listener));
    assert_int_equal(rddp_answer(asked(0), &answer), -EINVAL);
    turned_away(resolution);
    resolution = ask("127.0.0.1", hand_port(listener));
    assert_int_equal(rddp_reject(asked(0), octets, ANSWERED_MAX + 1), -EINVAL);
    turned_away(resolution);
    resolution = ask("127.0.0.1", hand_port(listener));
    assert_int_equal(rddp_accept(asked(0), h.end[1].qp, NULL), -EINVAL);
    turned_away(resolution);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

/* A request for a connection cannot be answered so. */
static void wrong_kind(void **state)
{
    struct rddp_listener *listener = listen_on("127.0.0.1", 0, false);
    struct rddp_answer answer = answer_of(0);
    struct rddp_qp *qp = make_connected();
    struct rddp_event *event;

    (void)state;
    assert_int_equal(call(qp, hand_port(listener), true), -EINVAL);
    assert_int_equal(call(qp, hand_port(listener), false), 0);
    assert_int_equal(rddp_get_event(channel[1], &event), 0);
    assert_int_equal(rddp_answer(event->request, &answer), -EINVAL);
    rddp_ack_event(event);
    assert_int_equal(rddp_get_event(channel[0], &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_REJECTED);
    rddp_ack_event(event);
    assert_int_equal(rddp_destroy_qp(qp), 0);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

/* --- other processes ---------------------------------------------------------------------------------------------- */

static void serve(int to)
{
    struct rddp_listener *listener;
    struct rddp_answer answer;
    uint16_t port;

    open_ends(NULL);
    listener = listen_on("127.0.0.1", 0, true);
    port = hand_port(listener);
    answer = answer_of(5);
    if (write(to, &port, sizeof(port)) != sizeof(port) || write(to, &answer.qpn, sizeof(answer.qpn)) < 0)
        _exit(1);
    for (;;)
        rddp_answer(asked(0), &answer);
}

static void of_another_process(void **state)
{
    struct rddp_resolution *resolution;
    struct rddp_event event;
    uint32_t qpn;
    uint16_t port;
    int end[2];
    pid_t pid;

    (void)state;
    hands_skip_without_threads_in_children();
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    pid = fork_apart(SERVER_S);
    if (!pid)
        serve(end[1]);
    close(end[1]);
    assert_int_equal(read(end[0], &port, sizeof(port)), sizeof(port));
    assert_int_equal(read(end[0], &qpn, sizeof(qpn)), sizeof(qpn));
    resolution = ask("127.0.0.1", port);
    event = next_event(0, RDDP_EVENT_RESOLVED, ANSWERED_MAX, 5);
    assert_int_equal(event.qpn, qpn);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
    unreachable("127.0.0.1", port, -ECONNREFUSED);
    close(end[0]);
}

/* A child of fork() has no part in the question, and the parent's goes on. */
static void in_a_child(void **state)
{
    struct rddp_listener *listener;
    struct rddp_resolution *resolution;
    struct rddp_answer answer = answer_of(0);
    struct rddp_request *request;
    int status;
    pid_t pid;

    (void)state;
    hands_skip_without_threads_in_children();
    listener = listen_on("127.0.0.1", 0, true);
    resolution = ask("127.0.0.1", hand_port(listener));
    request = asked(0);
    pid = fork_apart(SERVER_S);
    if (!pid) {
        if (next_event(0, RDDP_EVENT_UNREACHABLE, 0, 0).status != -ECONNABORTED ||
            rddp_answer(request, &answer) != -ECONNABORTED || rddp_destroy_resolution(resolution) ||
            rddp_destroy_listener(listener))
            _exit(1);
        _exit(CHILD_OK);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CHILD_OK);
    assert_int_equal(rddp_answer(request, &answer), 0);
    next_event(0, RDDP_EVENT_RESOLVED, ANSWERED_MAX, 0);
    assert_int_equal(rddp_destroy_resolution(resolution), 0);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

#define SIDR_TEST(function) cmocka_unit_test_setup_teardown(function, open_ends, close_ends)

int main(void)
{
    // clang-format off
    const struct CMUnitTest tests[] = {
        SIDR_TEST(found), SIDR_TEST(many), SIDR_TEST(no_one), SIDR_TEST(rejected), SIDR_TEST(late),
        SIDR_TEST(given_up), SIDR_TEST(migrated), SIDR_TEST(wrong_questions), SIDR_TEST(wrong_answers),
        SIDR_TEST(wrong_kind), SIDR_TEST(in_a_child), SIDR_TEST(of_another_process),
    };
    // clang-format on

    (void)network_alone();
    return cmocka_run_group_tests_name("roce_sidr", tests, NULL, NULL);
}
