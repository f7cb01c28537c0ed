/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared_receive.c - one queue of receives for many connections: a server that keeps few buffers for many clients, and
 * posts more when an asynchronous event says that they run low. Both ends are in this process, on loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rddp/rddp.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS = 3, MESSAGES = 8, RECEIVES = 16, LIMIT = 6, SIZE = 64 };

struct server {
    struct rddp_cq *cq;
    struct rddp_srq *srq;
    struct rddp_async_channel *low;
    struct rddp_qp *qp[CLIENTS];
    struct rddp_mr *mr;
    char text[RECEIVES][SIZE];
    int free[RECEIVES], frees; /* buffers without a receive */
    int refills;
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

/* Posts a receive for each free buffer, and asks for an event when fewer than LIMIT are left. */
static void refill(struct server *server)
{
    while (server->frees) {
        int i = server->free[--server->frees];
        struct rddp_sge sge = {(uintptr_t)server->text[i], SIZE, rddp_mr_key(server->mr)};
        struct rddp_recv_wr wr = {.wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1};

        must(rddp_post_srq_recv(server->srq, &wr, NULL), "rddp_post_srq_recv");
    }
    must(rddp_set_srq_limit(server->srq, LIMIT), "rddp_set_srq_limit");
}

/* Each queue pair has a name of the server's. What arrives on any of them takes a receive of the shared queue. */
static void open_server(struct server *server, struct rddp_context *context, struct rddp_pd *pd)
{
    static char name[CLIENTS][SIZE];
    struct rddp_qp_attr attr;

    server->cq = check(rddp_create_cq(context, RECEIVES + CLIENTS, NULL, NULL), "rddp_create_cq");
    server->srq = check(rddp_create_srq(pd, RECEIVES, 1), "rddp_create_srq");
    server->low = check(rddp_create_async_channel(context), "rddp_create_async_channel");
    must(rddp_watch_srq(server->srq, server->low, server), "rddp_watch_srq");
    fcntl(rddp_async_channel_fd(server->low), F_SETFL, O_NONBLOCK);
    server->mr = check(rddp_reg_mr(pd, server->text, sizeof(server->text), RDDP_ACCESS_LOCAL_WRITE), "rddp_reg_mr");
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = server->cq;
    attr.srq = server->srq;
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(name[i], SIZE, "client %d", i);
        attr.user = name[i];
        server->qp[i] = check(rddp_create_qp(pd, &attr), "rddp_create_qp");
    }
    for (server->frees = 0; server->frees < RECEIVES; server->frees++)
        server->free[server->frees] = server->frees;
    refill(server);
}

static void connect_all(struct rddp_event_channel *events, struct rddp_qp **client, struct rddp_qp **server)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage addr;
    struct rddp_listener *listener;
    struct rddp_event *event;
    int accepted = 0;

    listener = check(rddp_listen(events, (struct sockaddr *)&any, sizeof(any), CLIENTS, NULL, NULL), "rddp_listen");
    rddp_listener_addr(listener, &addr);
    for (int i = 0; i < CLIENTS; i++)
        must(rddp_connect(client[i], events, (struct sockaddr *)&addr, sizeof(any), NULL), "rddp_connect");
    for (int established = 0; established < 2 * CLIENTS; rddp_ack_event(event)) {
        must(rddp_get_event(events, &event), "rddp_get_event");
        must(event->status, rddp_event_str(event->type));
        if (event->type == RDDP_EVENT_CONNECT_REQUEST)
            must(rddp_accept(event->request, server[accepted++], NULL), "rddp_accept");
        established += event->type == RDDP_EVENT_ESTABLISHED;
    }
    rddp_destroy_listener(listener);
}

/* The text is copied by the post: it needs no region and may change afterwards. */
static void say(struct rddp_qp *qp, int number)
{
    char text[SIZE];
    int n = snprintf(text, SIZE, "message %d", number);
    struct rddp_sge sge = {.addr = (uintptr_t)text, .length = (uint32_t)n + 1};
    struct rddp_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_INLINE | RDDP_SEND_SIGNALED};

    must(rddp_post_send(qp, &wr, NULL), "rddp_post_send");
}

static const char *name_of(const struct server *server, uint32_t qp_num)
{
    for (int i = 0; i < CLIENTS; i++)
        if (rddp_qp_num(server->qp[i]) == qp_num)
            return rddp_qp_user(server->qp[i]);
    return "unknown";
}

static void refill_if_low(struct server *server)
{
    struct rddp_async_event event;

    while (rddp_get_async_event(server->low, &event) == 0) {
        printf("%s: posting %d again\n", rddp_async_event_str(event.type), server->frees);
        rddp_ack_async_event(&event);
        refill(server);
        server->refills++;
    }
}

/* A completion names the queue pair on which the message came, and its wr_id the buffer. */
static void receive(struct server *server)
{
    struct rddp_wc wc;

    while (rddp_poll_cq(server->cq, 1, &wc) == 0)
        continue;
    must(wc.status == RDDP_WC_SUCCESS ? 0 : -EIO, rddp_wc_status_str(wc.status));
    printf("%s: %s\n", name_of(server, wc.qp_num), server->text[wc.wr_id]);
    server->free[server->frees++] = (int)wc.wr_id;
    refill_if_low(server);
}

static void await_sent(struct rddp_cq *cq)
{
    struct rddp_wc wc;

    while (rddp_poll_cq(cq, 1, &wc) == 0)
        continue;
    must(wc.status == RDDP_WC_SUCCESS ? 0 : -EIO, rddp_wc_status_str(wc.status));
}

static void close_server(struct server *server)
{
    for (int i = 0; i < CLIENTS; i++)
        rddp_destroy_qp(server->qp[i]);
    must(rddp_destroy_srq(server->srq), "rddp_destroy_srq");
    must(rddp_destroy_async_channel(server->low), "rddp_destroy_async_channel");
    rddp_destroy_cq(server->cq);
    rddp_dereg_mr(server->mr);
}

int main(void)
{
    struct rddp_context *context = check(rddp_open(NULL), "rddp_open");
    struct rddp_event_channel *events = check(rddp_create_event_channel(context), "rddp_create_event_channel");
    struct rddp_pd *pd = check(rddp_alloc_pd(context), "rddp_alloc_pd");
    struct rddp_cq *cq = check(rddp_create_cq(context, 2 * CLIENTS, NULL, NULL), "rddp_create_cq");
    static struct server server;
    struct rddp_qp *client[CLIENTS];
    struct rddp_qp_attr attr;

    open_server(&server, context, pd);
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = cq;
    for (int i = 0; i < CLIENTS; i++)
        client[i] = check(rddp_create_qp(pd, &attr), "rddp_create_qp");
    connect_all(events, client, server.qp);
    for (int n = 0; n < MESSAGES; n++)
        for (int i = 0; i < CLIENTS; i++) {
            say(client[i], n);
            receive(&server);
            await_sent(cq);
        }
    for (int i = 0; i < CLIENTS; i++)
        rddp_destroy_qp(client[i]);
    close_server(&server);
    rddp_destroy_cq(cq);
    rddp_dealloc_pd(pd);
    rddp_destroy_event_channel(events);
    must(rddp_close(context), "rddp_close");
    return server.refills == 0; /* 24 messages do not fit into 16 receives */
}
