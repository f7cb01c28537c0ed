/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cycles.c - connections come and go, and leave neither memory nor descriptors behind: accepted ones with a message,
 * rejected ones, and some whose client goes without a word. RDDP_LONG=1 makes ten thousand of them. */
#include <arpa/inet.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/descriptors.h"
#include "tests/verbs/lib/ids.h"

enum {
    CYCLES = 300,
    LONG_CYCLES = 10000,
    WARM_UP = 30,
    SLACK = 4096, /* octets that may differ: a table may have grown once */
};

struct ends {
    struct rdma_event_channel *client_events, *server_events;
    struct rdma_cm_id *listener, *client, *server;
    struct sockaddr_in address;
    struct ibv_mr *mr;
    char buffer[64];
};

static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;

    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(event->event, type);
    id = event->id;
    rdma_ack_cm_event(event);
    return id;
}

static void begin(struct ends *ends)
{
    ends->client_events = rdma_create_event_channel();
    ends->server_events = rdma_create_event_channel();
    ends->address.sin_family = AF_INET;
    ends->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(rdma_create_id(ends->server_events, &ends->listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(ends->listener, (struct sockaddr *)&ends->address), 0);
    assert_int_equal(rdma_listen(ends->listener, 0), 0);
    ends->address.sin_port = rdma_get_src_port(ends->listener);
}

static void start_client(struct ends *ends)
{
    struct ibv_qp_init_attr attr = ids_queues();

    assert_int_equal(rdma_create_id(ends->client_events, &ends->client, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(ends->client, NULL, (struct sockaddr *)&ends->address, WAIT_MS), 0);
    expect(ends->client_events, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(ends->client, WAIT_MS), 0);
    expect(ends->client_events, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_int_equal(rdma_create_qp(ends->client, NULL, &attr), 0);
    ends->mr = ibv_reg_mr(ends->client->pd, ends->buffer, sizeof(ends->buffer), IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(ends->mr);
    assert_int_equal(rdma_connect(ends->client, NULL), 0);
    ends->server = expect(ends->server_events, RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void destroy(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static void accept_and_send(struct ends *ends)
{
    struct ibv_qp_init_attr attr = ids_queues();

    assert_int_equal(rdma_create_qp(ends->server, NULL, &attr), 0);
    assert_int_equal(rdma_post_recv(ends->server, NULL, ends->buffer, sizeof(ends->buffer), ends->mr), 0);
    assert_int_equal(rdma_accept(ends->server, NULL), 0);
    expect(ends->client_events, RDMA_CM_EVENT_ESTABLISHED);
    expect(ends->server_events, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(rdma_post_send(ends->client, NULL, ends->buffer, 8, ends->mr, 0), 0);
    assert_int_equal(ids_completion(ends->server->recv_cq).status, IBV_WC_SUCCESS);
}

/* iWARP's connection manager has no TIMEWAIT_EXIT: DISCONNECTED is the last event of an id. */
static void run_cycle(struct ends *ends, int cycle)
{
    bool is_rejected = cycle % 3 == 1, is_dropped = cycle % 3 == 2;

    start_client(ends);
    if (is_rejected) {
        assert_int_equal(rdma_reject(ends->server, NULL, 0), 0);
        expect(ends->client_events, RDMA_CM_EVENT_REJECTED);
    } else {
        accept_and_send(ends);
    }
    if (!is_rejected && !is_dropped) {
        assert_int_equal(rdma_disconnect(ends->client), 0);
        expect(ends->client_events, RDMA_CM_EVENT_DISCONNECTED);
    }
    destroy(ends->client);
    if (!is_rejected) {
        expect(ends->server_events, RDMA_CM_EVENT_DISCONNECTED);
        assert_int_equal(rdma_disconnect(ends->server), 0);
    }
    destroy(ends->server);
    assert_int_equal(ibv_dereg_mr(ends->mr), 0);
}

/* Connections that were closed end in the background, a moment later. */
static bool is_back(unsigned descriptors, size_t octets)
{
    for (int ms = 0; ms < WAIT_MS; ms++) {
        if (count_descriptors() <= descriptors && mallinfo2().uordblks <= octets + SLACK)
            return true;
        usleep(1000);
    }
    print_error("%u descriptors instead of %u, %zu octets instead of %zu\n", count_descriptors(), descriptors,
                mallinfo2().uordblks, octets);
    return false;
}

static void test_nothing_left(void **state)
{
    int cycles = getenv("RDDP_LONG") ? LONG_CYCLES : CYCLES;
    unsigned descriptors;
    struct ends ends = {0};
    size_t octets;
    (void)state;

    begin(&ends);
    for (int i = 0; i < WARM_UP; i++)
        run_cycle(&ends, i);
    descriptors = count_descriptors();
    octets = mallinfo2().uordblks;
    for (int i = 0; i < cycles; i++)
        run_cycle(&ends, i);
    assert_true(is_back(descriptors, octets));
    rdma_destroy_id(ends.listener);
    rdma_destroy_event_channel(ends.client_events);
    rdma_destroy_event_channel(ends.server_events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_left)};

    mallopt(M_ARENA_MAX, 1); /* mallinfo2() tells of the main arena alone; CMakeLists.txt turns off what threads keep */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
