/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_numbered.c - queue pairs of type RC that the connection manager connects: under their own number, and with the
 * states of queue pairs that are connected by hand. ROCE-CM-05, ROCE-CM-07. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>

#include "roce/io/roce_port.h"
#include "tests/suite/lib/by_hand.h"

enum { OCTETS = 100000 };

static struct hands h;
static struct rddp_event_channel *channel[2];
static struct rddp_listener *listener;
static struct sockaddr_storage address;

static int open_ends(void **state)
{
    struct rddp_wire_attr wire;

    (void)state;
    hands_open(&h, RDDP_QPT_RC, "127.0.0.1");
    hands_make(&h);
    rddp_wire_attr_init(&wire);
    wire.wire = RDDP_WIRE_ROCE;
    for (unsigned i = 0; i < 2; i++)
        channel[i] = rddp_create_event_channel(h.end[i].context);
    listener = rddp_listen(channel[1], (struct sockaddr *)&h.address, sizeof(h.address), 8, &wire, NULL);
    assert_non_null(listener);
    assert_int_equal(rddp_listener_addr(listener, &address), 0);
    return 0;
}

static int close_ends(void **state)
{
    struct rddp_event *event;

    (void)state;
    assert_int_equal(rddp_destroy_listener(listener), 0);
    for (unsigned i = 0; i < 2; i++) {
        if (h.end[i].qp)
            assert_int_equal(rddp_destroy_qp(h.end[i].qp), 0);
        h.end[i].qp = NULL;
        fcntl(rddp_event_channel_fd(channel[i]), F_SETFL, O_NONBLOCK);
        while (!rddp_get_event(channel[i], &event))
            rddp_ack_event(event);
        assert_int_equal(rddp_destroy_event_channel(channel[i]), 0);
    }
    hands_close(&h);
    return 0;
}

static struct rddp_event next_event(unsigned end, enum rddp_event_type type)
{
    struct pollfd fd = {rddp_event_channel_fd(channel[end]), POLLIN, 0};
    struct rddp_event *event, copy;

    assert_int_equal(poll(&fd, 1, HAND_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(channel[end], &event), 0);
    copy = *event;
    rddp_ack_event(event);
    if (copy.type != type)
        fail_msg("\"%s\" (%d), not \"%s\"", rddp_event_str(copy.type), copy.status, rddp_event_str(type));
    return copy;
}

static int call(enum rddp_wire wire)
{
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire.wire = wire;
    return rddp_connect(h.end[0].qp, channel[0], (struct sockaddr *)&address, sizeof(address), &attr);
}

static int step(unsigned end, enum rddp_ib_state to)
{
    struct rddp_ib_attr attr = h.ib;

    attr.state = to;
    attr.peer = h.address;
    attr.peer_qpn = rddp_qp_num(h.end[!end].qp);
    return rddp_modify_qp(h.end[end].qp, &attr);
}

static struct rddp_ib_attr shown(unsigned end)
{
    struct rddp_ib_attr attr;

    assert_int_equal(rddp_query_ib(h.end[end].qp, &attr), 0);
    return attr;
}

static void establish(void)
{
    assert_int_equal(call(RDDP_WIRE_ROCE), 0);
    assert_int_equal(rddp_accept(next_event(1, RDDP_EVENT_CONNECT_REQUEST).request, h.end[1].qp, NULL), 0);
    next_event(0, RDDP_EVENT_ESTABLISHED);
    next_event(1, RDDP_EVENT_ESTABLISHED);
}

static void exchange(void)
{
    hand_fill(h.end[0].buffer, OCTETS, 7);
    hand_receive(&h.end[1], 1, OCTETS, OCTETS);
    hand_post(&h.end[0], &h.end[1], RDDP_WR_SEND, 0, OCTETS, 0);
    assert_int_equal(hand_completion(&h.end[1]).status, RDDP_WC_SUCCESS);
    assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
    hand_check(h.end[1].buffer + OCTETS, OCTETS, 7);
    hand_post(&h.end[1], &h.end[0], RDDP_WR_RDMA_READ, 0, OCTETS, 0);
    assert_int_equal(hand_completion(&h.end[1]).status, RDDP_WC_SUCCESS);
    hand_check(h.end[1].buffer, OCTETS, 7);
}

/* Each end names the number that its queue pair had from the beginning, whether it is in RESET or in INIT. */
static void has_its_number(void **state)
{
    (void)state;
    assert_int_equal(step(1, RDDP_IB_INIT), 0);
    establish();
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(shown(i).state, RDDP_IB_RTS);
        assert_int_equal(shown(i).peer_qpn, rddp_qp_num(h.end[!i].qp));
    }
    assert_int_equal(shown(0).rq_psn, shown(1).sq_psn);
    assert_int_equal(shown(1).rq_psn, shown(0).sq_psn);
    exchange();
    assert_int_equal(rddp_disconnect(h.end[0].qp), 0);
    assert_int_equal(next_event(0, RDDP_EVENT_DISCONNECTED).status, 0);
    assert_int_equal(next_event(1, RDDP_EVENT_DISCONNECTED).status, 0);
    assert_int_equal(shown(0).state, RDDP_IB_ERR);
}

/* What the manager has connected takes the steps of RTS alone. */
static void steps(void **state)
{
    (void)state;
    establish();
    assert_int_equal(step(0, RDDP_IB_INIT), -EINVAL);
    assert_int_equal(step(0, RDDP_IB_RTR), -EINVAL);
    assert_int_equal(step(0, RDDP_IB_RTS), 0);
    assert_int_equal(call(RDDP_WIRE_ROCE), -EINVAL);
    exchange();
    assert_int_equal(step(0, RDDP_IB_ERR), 0);
    next_event(0, RDDP_EVENT_DISCONNECTED);
    next_event(1, RDDP_EVENT_DISCONNECTED);
    assert_int_equal(shown(0).state, RDDP_IB_ERR);
}

/* After a reset it can be connected by hand at once. The peer's manager takes a second request for the same number for
 * a duplicate of the first, until that one's time to live is over. */
static void again(void **state)
{
    (void)state;
    establish();
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(step(i, RDDP_IB_RESET), 0);
    assert_int_equal(shown(0).state, RDDP_IB_RESET);
    hands_connect(&h);
    exchange();
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(step(i, RDDP_IB_RESET), 0);
    assert_int_equal(call(RDDP_WIRE_ROCE), 0);
    next_event(0, RDDP_EVENT_CONNECT_ERROR);
    assert_int_equal(shown(0).state, RDDP_IB_ERR);
}

static void refused(void **state)
{
    struct rddp_qp *rc = h.end[0].qp, *uc;

    (void)state;
    assert_int_equal(call(RDDP_WIRE_IWARP), -EINVAL);
    assert_int_equal(call(RDDP_WIRE_RDMATCP), -EINVAL);
    h.qp.type = RDDP_QPT_UC;
    h.qp.send_cq = h.qp.recv_cq = h.end[0].cq;
    h.end[0].qp = uc = rddp_create_qp(h.end[0].pd, &h.qp);
    assert_int_equal(call(RDDP_WIRE_ROCE), -EINVAL);
    h.end[0].qp = rc;
    assert_int_equal(rddp_destroy_qp(uc), 0);
    assert_int_equal(step(0, RDDP_IB_INIT), 0);
    assert_int_equal(step(0, RDDP_IB_RTR), 0);
    assert_int_equal(call(RDDP_WIRE_ROCE), -EINVAL);
    assert_int_equal(step(0, RDDP_IB_RESET), 0);
    /* An acceptor whose queue pair is in use already refuses, and the caller is told. */
    assert_int_equal(step(1, RDDP_IB_INIT), 0);
    assert_int_equal(step(1, RDDP_IB_RTR), 0);
    assert_int_equal(call(RDDP_WIRE_ROCE), 0);
    assert_int_equal(rddp_accept(next_event(1, RDDP_EVENT_CONNECT_REQUEST).request, h.end[1].qp, NULL), -EINVAL);
    next_event(0, RDDP_EVENT_REJECTED);
}

/* The peer of a queue pair that is destroyed without a word is told. */
static void destroyed(void **state)
{
    (void)state;
    establish();
    assert_int_equal(rddp_destroy_qp(h.end[0].qp), 0);
    h.end[0].qp = NULL;
    assert_int_equal(next_event(1, RDDP_EVENT_DISCONNECTED).status, 0);
}

static struct rddp_qp *one_more(void)
{
    struct rddp_qp_attr attr = h.qp;
    struct rddp_qp *qp;

    attr.send_cq = attr.recv_cq = h.end[0].cq;
    qp = rddp_create_qp(h.end[0].pd, &attr);
    assert_non_null(qp);
    return qp;
}

static uint32_t port_of(const struct rddp_qp *qp)
{
    return rddp_qp_num(qp) >> ROCE_SLOT_BITS;
}

/* The number of a queue pair that is gone rests, since its last peer refuses it for a while: its port stays, although
 * none of its queue pairs is in use, and serves the next ones, until all of its numbers rest. */
static void numbers_rest(void **state)
{
    struct rddp_qp *qp[ROCE_SLOTS];
    uint32_t port;

    (void)state;
    for (unsigned i = 0; i < ROCE_SLOTS; i++)
        qp[i] = one_more();
    port = port_of(qp[ROCE_SLOTS - 1]);
    assert_int_not_equal(port, port_of(h.end[0].qp)); /* whose port keeps the host in use */
    for (unsigned i = 0; i < ROCE_SLOTS; i++)
        assert_int_equal(rddp_destroy_qp(qp[i]), 0);
    for (unsigned i = 0; i < ROCE_SLOTS / 2; i++) {
        qp[0] = one_more();
        assert_int_equal(port_of(qp[0]), port);
        assert_int_equal(rddp_destroy_qp(qp[0]), 0);
    }
}

/* Without descriptors for another port, the number that has rested longest is used again. */
static void rest_is_short(void **state)
{
    struct rlimit before, none = {0};
    struct rddp_qp *qp[ROCE_SLOTS - 1];
    uint32_t number[ROCE_SLOTS - 1], oldest = 0;

    (void)state;
    for (unsigned i = 0; i < ROCE_SLOTS - 1; i++) { /* with the queue pair of hands_make() all of the port */
        qp[i] = one_more();
        number[i] = rddp_qp_num(qp[i]);
    }
    for (unsigned i = 0; i < ROCE_SLOTS - 1; i++)
        assert_int_equal(rddp_destroy_qp(qp[i]), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    qp[0] = one_more();
    qp[1] = one_more();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    while (oldest < ROCE_SLOTS - 1 && rddp_qp_num(qp[0]) != number[oldest])
        oldest++;
    assert_true(oldest < ROCE_SLOTS / 2); /* some end in the same microsecond */
    assert_int_not_equal(rddp_qp_num(qp[1]), rddp_qp_num(qp[0]));
    assert_int_equal(rddp_destroy_qp(qp[0]), 0);
    assert_int_equal(rddp_destroy_qp(qp[1]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(has_its_number, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(steps, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(again, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(refused, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(destroyed, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(numbers_rest, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(rest_is_short, open_ends, close_ends),
    };

    return cmocka_run_group_tests_name("roce_numbered", tests, NULL, NULL);
}
