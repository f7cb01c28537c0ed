/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event_driven.c - an echo server and its client in one loop around poll(), which sleeps while there is nothing to
 * do. */
#include <arpa/inet.h>
#include <poll.h>
#include <rddp/rddp.h>
#include <stdio.h>
#include <stdlib.h>

static struct rddp_qp *client, *server;
static int rounds_left = 1000;

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "event_driven: failed: %s\n", what);
        exit(1);
    }
}

/* The messages have no data, so no memory has to be registered. */
static void post_receive(struct rddp_qp *qp)
{
    struct rddp_recv_wr wr = {.wr_id = (uintptr_t)qp};

    must(!rddp_post_recv(qp, &wr, NULL), "rddp_post_recv");
}

/* The Send is not signalled: it completes silently, unless it fails. */
static void send_message(struct rddp_qp *qp)
{
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND};

    must(!rddp_post_send(qp, &wr, NULL), "rddp_post_send");
}

static void message_came(struct rddp_qp *qp)
{
    post_receive(qp); /* post the receive for the answer before sending */
    if (qp == server || --rounds_left > 0)
        send_message(qp);
    else
        must(!rddp_disconnect(qp), "rddp_disconnect");
}

static void take_completions(struct rddp_comp_channel *channel)
{
    struct rddp_cq *cq;
    struct rddp_wc wc;

    must(!rddp_get_cq_event(channel, &cq, NULL), "rddp_get_cq_event");
    /* Arm first, then empty the queue: whatever arrives after the last poll causes an event. */
    must(!rddp_req_notify_cq(cq, false), "rddp_req_notify_cq");
    while (rddp_poll_cq(cq, 1, &wc) > 0) {
        if (wc.status == RDDP_WC_SUCCESS)
            message_came((struct rddp_qp *)(uintptr_t)wc.wr_id);
        else /* at the end, the unused receives are flushed */
            must(wc.status == RDDP_WC_WR_FLUSH_ERR, rddp_wc_status_str(wc.status));
    }
    rddp_ack_cq_events(cq, 1);
}

/* Returns true when the connection of one side has ended. */
static bool take_event(struct rddp_event_channel *channel)
{
    struct rddp_event *event;
    bool over;

    must(!rddp_get_event(channel, &event), "rddp_get_event");
    must(!event->status, rddp_event_str(event->type));
    if (event->type == RDDP_EVENT_CONNECT_REQUEST)
        must(!rddp_accept(event->request, server, NULL), "rddp_accept");
    else if (event->type == RDDP_EVENT_ESTABLISHED && event->qp == client)
        send_message(client);
    over = event->type == RDDP_EVENT_DISCONNECTED;
    rddp_ack_event(event);
    return over;
}

int main(void)
{
    struct rddp_context *context = rddp_open(NULL);
    must(context, "rddp_open");
    struct rddp_event_channel *events = rddp_create_event_channel(context);
    struct rddp_comp_channel *completions = rddp_create_comp_channel(context);
    struct rddp_pd *pd = rddp_alloc_pd(context);
    struct rddp_cq *cq = rddp_create_cq(context, 64, NULL, completions);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_listener *listener = rddp_listen(events, (struct sockaddr *)&any, sizeof(any), 1, NULL, NULL);
    struct sockaddr_storage addr;
    struct rddp_qp_attr attr;

    must(events && completions && pd && cq && listener, "set-up");
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = cq;
    client = rddp_create_qp(pd, &attr);
    server = rddp_create_qp(pd, &attr);
    must(client && server, "rddp_create_qp");
    post_receive(client);
    post_receive(server);
    must(!rddp_req_notify_cq(cq, false), "rddp_req_notify_cq");
    rddp_listener_addr(listener, &addr);
    must(!rddp_connect(client, events, (struct sockaddr *)&addr, sizeof(any), NULL), "rddp_connect");
    struct pollfd fds[] = {{.fd = rddp_event_channel_fd(events), .events = POLLIN},
                           {.fd = rddp_comp_channel_fd(completions), .events = POLLIN}};
    for (int over = 0; over < 2 && poll(fds, 2, -1) > 0;) {
        if (fds[0].revents)
            over += take_event(events);
        if (fds[1].revents)
            take_completions(completions);
    }
    puts(rounds_left ? "the connection ended early" : "every message came back");
    rddp_destroy_listener(listener);
    rddp_destroy_qp(client);
    rddp_destroy_qp(server);
    rddp_destroy_cq(cq);
    rddp_dealloc_pd(pd);
    rddp_destroy_comp_channel(completions);
    rddp_destroy_event_channel(events);
    return rddp_close(context) || rounds_left;
}
