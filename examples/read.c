/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* read.c - the client reads a text from the server's memory; the server's program takes no part in it. */
#include <arpa/inet.h>
#include <rddp/rddp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64 };

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
    if (result) {
        fprintf(stderr, "%s: %s\n", what, strerror(-result));
        exit(1);
    }
}

static struct rddp_qp *open_qp(struct rddp_pd *pd, struct rddp_cq *cq)
{
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = cq;
    return check(rddp_create_qp(pd, &attr), "rddp_create_qp");
}

/* Waits for the next completion, which must have this opcode. */
static void expect(struct rddp_cq *cq, enum rddp_wc_opcode opcode)
{
    struct rddp_wc wc;
    int n;

    while ((n = rddp_poll_cq(cq, 1, &wc)) == 0)
        continue;
    if (n < 0 || wc.status != RDDP_WC_SUCCESS || wc.opcode != opcode) {
        fprintf(stderr, "completion: %s\n", n < 0 ? strerror(-n) : rddp_wc_status_str(wc.status));
        exit(1);
    }
}

/* The server sends the key of its region as private data when it accepts. The region is zero-based: its first octet has
 * offset 0, so the key is all that the client needs. */
static uint32_t connect_both(struct rddp_event_channel *events, struct rddp_qp *client, struct rddp_qp *server,
                             uint32_t key)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint32_t said = htonl(key), heard = 0;
    struct rddp_conn_attr answer;
    struct sockaddr_storage addr;
    struct rddp_listener *listener;
    struct rddp_event *event;

    rddp_conn_attr_init(&answer);
    answer.private_data = &said;
    answer.private_data_length = sizeof(said);
    listener = check(rddp_listen(events, (struct sockaddr *)&any, sizeof(any), 1, NULL, NULL), "rddp_listen");
    rddp_listener_addr(listener, &addr);
    must(rddp_connect(client, events, (struct sockaddr *)&addr, sizeof(any), NULL), "rddp_connect");
    for (int established = 0; established < 2; rddp_ack_event(event)) {
        must(rddp_get_event(events, &event), "rddp_get_event");
        must(event->status, rddp_event_str(event->type));
        if (event->type == RDDP_EVENT_CONNECT_REQUEST)
            must(rddp_accept(event->request, server, &answer), "rddp_accept");
        else if (event->qp == client && event->private_data_length == sizeof(heard))
            memcpy(&heard, event->private_data, sizeof(heard));
        established += event->type == RDDP_EVENT_ESTABLISHED;
    }
    rddp_destroy_listener(listener);
    return ntohl(heard);
}

int main(void)
{
    struct rddp_context *context = check(rddp_open(NULL), "rddp_open");
    struct rddp_event_channel *events = check(rddp_create_event_channel(context), "rddp_create_event_channel");
    struct rddp_pd *pd = check(rddp_alloc_pd(context), "rddp_alloc_pd");
    struct rddp_cq *cq = check(rddp_create_cq(context, 16, NULL, NULL), "rddp_create_cq");
    struct rddp_qp *client = open_qp(pd, cq), *server = open_qp(pd, cq);
    char library[SIZE] = "read from afar", copy[SIZE] = "";
    unsigned readable = RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_ZERO_BASED;
    struct rddp_mr *library_mr = check(rddp_reg_mr(pd, library, SIZE, readable), "rddp_reg_mr");
    struct rddp_mr *copy_mr = check(rddp_reg_mr(pd, copy, SIZE, RDDP_ACCESS_LOCAL_WRITE), "rddp_reg_mr");
    struct rddp_sge sge = {.addr = (uintptr_t)copy, .length = SIZE, .lkey = rddp_mr_key(copy_mr)};
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_READ, .send_flags = RDDP_SEND_SIGNALED, .num_sge = 1};

    wr.sg_list = &sge;
    wr.remote_addr = 0;
    wr.rkey = connect_both(events, client, server, rddp_mr_key(library_mr));
    must(rddp_post_send(client, &wr, NULL), "rddp_post_send");
    expect(cq, RDDP_WC_RDMA_READ); /* completion of a Read means that the data have arrived */
    printf("the server's memory says: %s\n", copy);

    /* Destroy users before what they use. */
    rddp_destroy_qp(client);
    rddp_destroy_qp(server);
    rddp_destroy_cq(cq);
    rddp_dereg_mr(library_mr);
    rddp_dereg_mr(copy_mr);
    rddp_dealloc_pd(pd);
    rddp_destroy_event_channel(events);
    must(rddp_close(context), "rddp_close");
    return strcmp(copy, library) != 0;
}
