/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* instructions.c - messages between two contexts of one thread, for tests/instructions.sh to count what each end
 * executes. instructions OPERATION OCTETS LIST TIMES: TIMES lists of LIST messages of OCTETS octets, by write, send or
 * read, or by scatter: a Send to a receive of two pieces; over RoCE by roce-write and so on. No clock, no second thread
 * and no empty poll decides about the count. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/ends.h"

enum { LIST_MAX = 32, REGION = 1 << 16, INLINE = 64, HEAD = 64 };

struct side {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_event_channel *events;
    struct rddp_mr *mr;
    struct rddp_qp *qp;
    uint8_t memory[LIST_MAX][REGION];
};

static struct side client, server;
static enum rddp_wr_opcode opcode;
static uint32_t octets, list, front; /* front: of the first piece of a receive */
static enum rddp_wire wire = RDDP_WIRE_IWARP;

static void check(int error, const char *what)
{
    if (error)
        ends_fail(what, error);
}

static void open_side(struct side *side)
{
    struct rddp_context_attr attr;
    struct rddp_qp_attr qp;

    rddp_context_attr_init(&attr);
    attr.manual_progress = true;
    side->context = rddp_open(&attr);
    if (!side->context)
        ends_fail("rddp_open", 0);
    side->pd = rddp_alloc_pd(side->context);
    side->cq = rddp_create_cq(side->context, 4 * LIST_MAX, NULL, NULL);
    side->events = rddp_create_event_channel(side->context);
    side->mr = rddp_reg_mr(side->pd, side->memory, sizeof(side->memory),
                           RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ);
    rddp_qp_attr_init(&qp);
    qp.send_cq = qp.recv_cq = side->cq;
    side->qp = rddp_create_qp(side->pd, &qp);
    if (!side->mr || !side->events || !side->qp)
        ends_fail("objects", 0);
}

static bool take_event(struct side *side, enum rddp_event_type type)
{
    struct rddp_event *event;

    check(rddp_progress(side->context, 1), "rddp_progress");
    if (rddp_get_event(side->events, &event))
        return false;
    if (event->type != type)
        ends_fail("connection", event->status);
    if (type == RDDP_EVENT_CONNECT_REQUEST)
        check(rddp_accept(event->request, side->qp, NULL), "rddp_accept");
    rddp_ack_event(event);
    return true;
}

static void connect_sides(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage bound;
    struct rddp_listener *listener;
    bool asked = false, up = false;
    struct rddp_conn_attr conn;
    struct rddp_wire_attr attr;

    rddp_wire_attr_init(&attr);
    rddp_conn_attr_init(&conn);
    attr.wire = conn.wire.wire = wire;
    listener = rddp_listen(server.events, (struct sockaddr *)&any, sizeof(any), 1, &attr, NULL);

    if (!listener)
        ends_fail("rddp_listen", 0);
    for (struct side *side = &client; side; side = side == &client ? &server : NULL)
        check(fcntl(rddp_event_channel_fd(side->events), F_SETFL, O_NONBLOCK), "fcntl");
    rddp_listener_addr(listener, &bound);
    check(rddp_connect(client.qp, client.events, (struct sockaddr *)&bound, sizeof(any), &conn), "rddp_connect");
    while (!up) {
        asked = asked || take_event(&server, RDDP_EVENT_CONNECT_REQUEST);
        up = take_event(&client, RDDP_EVENT_ESTABLISHED);
    }
    while (!take_event(&server, RDDP_EVENT_ESTABLISHED))
        continue;
}

/* --- what is counted ---------------------------------------------------------------------------------------------- */

/* Posts a list, and leaves it to the socket. */
__attribute__((noinline)) static void client_posts(void)
{
    struct rddp_sge sge[LIST_MAX];
    struct rddp_send_wr wr[LIST_MAX], *bad;

    for (uint32_t i = 0; i < list; i++) {
        sge[i] = (struct rddp_sge){(uintptr_t)client.memory[i], octets, rddp_mr_key(client.mr)};
        wr[i] = (struct rddp_send_wr){
            .next = i + 1 < list ? &wr[i + 1] : NULL,
            .sg_list = &sge[i],
            .num_sge = 1,
            .opcode = opcode,
            .send_flags = RDDP_SEND_SIGNALED | (octets <= INLINE && opcode != RDDP_WR_RDMA_READ ? RDDP_SEND_INLINE : 0),
            .remote_addr = (uintptr_t)server.memory[i],
            .rkey = rddp_mr_key(server.mr),
        };
    }
    check(rddp_post_send(client.qp, wr, &bad), "rddp_post_send");
}

static uint32_t poll_side(struct side *side)
{
    struct rddp_wc wc[LIST_MAX];
    int n = rddp_poll_cq(side->cq, LIST_MAX, wc);

    if (n < 0)
        ends_fail("rddp_poll_cq", n);
    for (int i = 0; i < n; i++)
        if (wc[i].status)
            ends_fail(rddp_wc_status_str(wc[i].status), 0);
    return (uint32_t)n;
}

__attribute__((noinline)) static uint32_t client_polls(void)
{
    return poll_side(&client);
}

__attribute__((noinline)) static uint32_t server_polls(void)
{
    return poll_side(&server);
}

__attribute__((noinline)) static void server_posts(void)
{
    uint32_t key = rddp_mr_key(server.mr);
    struct rddp_sge sge[] = {{(uintptr_t)server.memory, front, key},
                             {(uintptr_t)server.memory + front, octets - front, key}};
    struct rddp_recv_wr wr = {.sg_list = sge, .num_sge = front < octets ? 2 : 1}, *bad;

    for (uint32_t i = 0; i < list; i++)
        check(rddp_post_recv(server.qp, &wr, &bad), "rddp_post_recv");
}

/* ------------------------------------------------------------------------------------------------------------------ */

static bool has_arrived(uint8_t number, uint32_t received)
{
    const volatile uint8_t *last = &server.memory[list - 1][octets - 1];

    switch (opcode) {
    case RDDP_WR_RDMA_WRITE:
        return *last == number;
    case RDDP_WR_SEND:
        return received == list;
    default:
        return true; /* the completion of a Read is the client's */
    }
}

static void turn(uint8_t number)
{
    uint32_t completed = 0, received = 0;

    client.memory[list - 1][octets - 1] = number;
    if (opcode == RDDP_WR_SEND)
        server_posts();
    client_posts();
    while (completed < list || !has_arrived(number, received)) {
        completed += client_polls();
        received += server_polls();
    }
}

int main(int argc, char **argv)
{
    const char *operation;
    int times;

    if (argc != 5 || (octets = (uint32_t)atoi(argv[2])) - 1 >= REGION ||
        (list = (uint32_t)atoi(argv[3])) - 1 >= LIST_MAX)
        return 2;
    operation = argv[1];
    if (!strncmp(operation, "roce-", 5)) {
        wire = RDDP_WIRE_ROCE;
        operation += 5;
    }
    opcode = *operation == 'w' ? RDDP_WR_RDMA_WRITE : *operation == 's' ? RDDP_WR_SEND : RDDP_WR_RDMA_READ;
    front = !strcmp(operation, "scatter") && octets > HEAD ? HEAD : octets;
    times = atoi(argv[4]);
    open_side(&client);
    open_side(&server);
    connect_sides();
    for (int i = 0; i < times; i++)
        turn((uint8_t)(i + 1));
    return 0;
}
