/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* idle_memory.c - what a connection that does nothing takes of the heap at each end, with queues of one request. */
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite/lib/pair.h"

enum { CONNECTIONS = 100, EACH_MAX = 8 << 10 };

static struct rddp_qp *qps[2][CONNECTIONS];

static double heap_octets(void)
{
    struct mallinfo2 info = mallinfo2();

    return (double)info.uordblks + (double)info.hblkhd;
}

static struct rddp_qp *small_qp(struct side *side)
{
    struct rddp_qp_attr attr;
    struct rddp_qp *qp;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = side->cq;
    attr.max_send_wr = attr.max_recv_wr = attr.max_send_sge = attr.max_recv_sge = 1;
    attr.max_rd_atomic = 1;
    attr.max_inline_data = 0;
    qp = rddp_create_qp(side->pd, &attr);
    assert_non_null(qp);
    return qp;
}

static void accept_next(struct side *side, struct rddp_qp *qp)
{
    struct pollfd fd = {rddp_event_channel_fd(side->events), POLLIN, 0};
    struct rddp_event *event;

    assert_int_equal(poll(&fd, 1, PAIR_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(side->events, &event), 0);
    assert_int_equal(event->type, RDDP_EVENT_CONNECT_REQUEST);
    assert_int_equal(rddp_accept(event->request, qp, NULL), 0);
    rddp_ack_event(event);
}

static void connect_one(struct pair *pair, unsigned i)
{
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire = pair_wire(pair->row, false);
    qps[0][i] = small_qp(&pair->client);
    qps[1][i] = small_qp(&pair->server);
    assert_int_equal(
        rddp_connect(qps[0][i], pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr), 0);
    accept_next(&pair->server, qps[1][i]);
    pair_event(&pair->client, RDDP_EVENT_ESTABLISHED);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
}

/* The first connection makes what all share: pools, the heap of timers. */
static void measure(const struct row *row)
{
    struct pair pair;
    double before, each;

    pair_open(&pair, row);
    connect_one(&pair, 0);
    before = heap_octets();
    for (unsigned i = 1; i < CONNECTIONS; i++)
        connect_one(&pair, i);
    each = (heap_octets() - before) / (CONNECTIONS - 1) / 2;
    print_message("%s: %.0f octets of heap an end\n", row->name, each);
    assert_true(each > sizeof(struct rddp_event)); /* it was counted */
    assert_true(each <= EACH_MAX);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        assert_int_equal(rddp_destroy_qp(qps[0][i]), 0);
        assert_int_equal(rddp_destroy_qp(qps[1][i]), 0);
    }
    pair_close(&pair);
}

/* A sanitizer has a heap of its own, of which mallinfo2() knows nothing. */
static bool is_counted(void)
{
    double before = heap_octets();
    void *volatile p = malloc(EACH_MAX);
    bool grew = heap_octets() >= before + EACH_MAX;

    free(p);
    return grew;
}

static void iwarp(void **state)
{
    const struct row row = {.name = "iWARP", .wire = RDDP_WIRE_IWARP, .crc = true, .mpa_revision = 2};

    (void)state;
    if (!is_counted())
        skip();
    measure(&row);
}

#ifndef RDDP_WITHOUT_ROCE
static void roce(void **state)
{
    const struct row row = {.name = "RoCE", .wire = RDDP_WIRE_ROCE, .crc = true};

    (void)state;
    if (!is_counted())
        skip();
    measure(&row);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iwarp),
#ifndef RDDP_WITHOUT_ROCE
        cmocka_unit_test(roce),
#endif
    };

    return cmocka_run_group_tests_name("idle_memory", tests, NULL, NULL);
}
