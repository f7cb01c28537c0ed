/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timewait.c - a program made for rdma_cm that waits until its connections have rested: RDMA_CM_EVENT_TIMEWAIT_EXIT.
 *
 *   timewait [-d] -s ADDRESS PORT         a server for one connection
 *   timewait [-d] ADDRESS PORT            its client
 *
 * The end with -d disconnects first, the other one when it has seen that. Each prints how long it has rested. Exit code
 * 0: the connection has come to TIMEWAIT_EXIT, and not before its peer's packets are old. */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

enum { LIMIT_MS = 20000, LEAST_MS = 100 /* the time that a packet may live, at least */ };

static struct rdma_event_channel *channel;

static void check(bool is_well, const char *what)
{
    if (is_well)
        return;
    perror(what);
    exit(1);
}

static long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for an event, which must be this one. Returns its id. */
static struct rdma_cm_id *await(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;

    check(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    if (event->event != type) {
        fprintf(stderr, "timewait: %s (%d), not %s\n", rdma_event_str(event->event), event->status,
                rdma_event_str(type));
        exit(1);
    }
    id = event->id;
    rdma_ack_cm_event(event);
    return id;
}

static void make_queue_pair(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};

    check(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static struct rdma_cm_id *call(struct sockaddr_in *peer)
{
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    struct rdma_cm_id *id;

    check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_resolve_addr(id, NULL, (struct sockaddr *)peer, LIMIT_MS), "rdma_resolve_addr");
    await(RDMA_CM_EVENT_ADDR_RESOLVED);
    check(!rdma_resolve_route(id, LIMIT_MS), "rdma_resolve_route");
    await(RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_queue_pair(id);
    check(!rdma_connect(id, &param), "rdma_connect");
    return id;
}

static struct rdma_cm_id *take_call(void)
{
    struct rdma_cm_id *id = await(RDMA_CM_EVENT_CONNECT_REQUEST);

    make_queue_pair(id);
    check(!rdma_accept(id, NULL), "rdma_accept");
    return id;
}

static void open_listener(struct sockaddr_in *own)
{
    struct rdma_cm_id *id;

    check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_bind_addr(id, (struct sockaddr *)own), "rdma_bind_addr");
    check(!rdma_listen(id, 1), "rdma_listen");
}

static void rest(struct rdma_cm_id *id, bool is_first)
{
    long began_ms, ms;

    await(RDMA_CM_EVENT_ESTABLISHED);
    if (is_first)
        check(!rdma_disconnect(id), "rdma_disconnect");
    await(RDMA_CM_EVENT_DISCONNECTED);
    began_ms = now_ms();
    if (!is_first)
        check(!rdma_disconnect(id), "rdma_disconnect");
    if (await(RDMA_CM_EVENT_TIMEWAIT_EXIT) != id)
        exit(1);
    ms = now_ms() - began_ms;
    printf("rested %ld ms\n", ms);
    if (ms < LEAST_MS)
        exit(1);
    rdma_destroy_qp(id);
    check(!rdma_destroy_id(id), "rdma_destroy_id");
}

int main(int argc, char **argv)
{
    struct sockaddr_in server = {.sin_family = AF_INET};
    bool is_first = false, is_server = false;
    int option;

    while ((option = getopt(argc, argv, "ds")) > 0) {
        is_first |= option == 'd';
        is_server |= option == 's';
    }
    if (argc - optind != 2 || inet_pton(AF_INET, argv[optind], &server.sin_addr) != 1)
        return 2;
    server.sin_port = htons((uint16_t)atoi(argv[optind + 1]));
    channel = rdma_create_event_channel();
    check(channel, "rdma_create_event_channel");
    if (is_server)
        open_listener(&server);
    rest(is_server ? take_call() : call(&server), is_first);
    return 0;
}
