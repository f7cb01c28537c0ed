/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send_recv.c - the smallest conversation: one message in each direction. Both ends are in this process, on
 * loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <rddp/rddp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64 };

/* One end: a queue pair, its completion queue, and two buffers in a registered region. */
struct end {
    struct rddp_cq *cq;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    char text[2][SIZE]; /* to send; received */
    struct rddp_sge sge[2];
};

static void *check(void *object, const char *what)
{
    if (!object) {
        perror(what);
        exit(1);
    }
    return object;
}

static void must(int result, const char *what)
{
    errno = -result;
    check(result ? NULL : &errno, what);
}

/* Post the receive before the peer can send: RDMA has no flow control of its own. */
static void open_end(struct end *end, struct rddp_context *context, struct rddp_pd *pd)
{
    struct rddp_qp_attr attr;
    struct rddp_recv_wr wr = {.sg_list = &end->sge[1], .num_sge = 1};

    end->cq = check(rddp_create_cq(context, 16, NULL, NULL), "rddp_create_cq");
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = end->cq;
    end->qp = check(rddp_create_qp(pd, &attr), "rddp_create_qp");
    end->mr = check(rddp_reg_mr(pd, end->text, sizeof(end->text), RDDP_ACCESS_LOCAL_WRITE), "rddp_reg_mr");
    for (int i = 0; i < 2; i++)
        end->sge[i] = (struct rddp_sge){(uintptr_t)end->text[i], SIZE, rddp_mr_key(end->mr)};
    must(rddp_post_recv(end->qp, &wr, NULL), "rddp_post_recv");
}

static void close_end(struct end *end)
{
    rddp_destroy_qp(end->qp);
    rddp_destroy_cq(end->cq);
    rddp_dereg_mr(end->mr);
}

static void connect_both(struct rddp_event_channel *events, struct rddp_qp *client, struct rddp_qp *server)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage addr;
    struct rddp_listener *listener;
    struct rddp_event *event;

    listener = check(rddp_listen(events, (struct sockaddr *)&any, sizeof(any), 1, NULL, NULL), "rddp_listen");
    rddp_listener_addr(listener, &addr);
    must(rddp_connect(client, events, (struct sockaddr *)&addr, sizeof(any), NULL), "rddp_connect");
    for (int established = 0; established < 2; rddp_ack_event(event)) {
        must(rddp_get_event(events, &event), "rddp_get_event");
        must(event->status, rddp_event_str(event->type));
        if (event->type == RDDP_EVENT_CONNECT_REQUEST)
            must(rddp_accept(event->request, server, NULL), "rddp_accept");
        established += event->type == RDDP_EVENT_ESTABLISHED;
    }
    rddp_destroy_listener(listener);
}

static void send_text(struct end *end, const char *text)
{
    struct rddp_send_wr wr = {.sg_list = &end->sge[0], .num_sge = 1, .opcode = RDDP_WR_SEND};

    snprintf(end->text[0], SIZE, "%s", text);
    must(rddp_post_send(end->qp, &wr, NULL), "rddp_post_send");
}

/* Waits for the receive. The Send was not signalled, so it completes only if it fails. */
static void receive(struct end *end)
{
    struct rddp_wc wc;

    while (rddp_poll_cq(end->cq, 1, &wc) == 0)
        continue;
    must(wc.status == RDDP_WC_SUCCESS ? 0 : -EIO, rddp_wc_status_str(wc.status));
    printf("got: %s\n", end->text[1]);
}

int main(void)
{
    struct rddp_context *context = check(rddp_open(NULL), "rddp_open");
    struct rddp_event_channel *events = check(rddp_create_event_channel(context), "rddp_create_event_channel");
    struct rddp_pd *pd = check(rddp_alloc_pd(context), "rddp_alloc_pd");
    struct end client, server;

    open_end(&client, context, pd);
    open_end(&server, context, pd);
    connect_both(events, client.qp, server.qp);
    send_text(&client, "hello"); /* the side that connects must send first (RFC 5044 7.1.2) */
    receive(&server);
    send_text(&server, "hello yourself");
    receive(&client);

    close_end(&client);
    close_end(&server);
    rddp_dealloc_pd(pd);
    rddp_destroy_event_channel(events);
    must(rddp_close(context), "rddp_close");
    return strcmp(client.text[1], "hello yourself") != 0;
}
