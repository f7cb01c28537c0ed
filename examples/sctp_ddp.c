/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_ddp.c - DDP over SCTP without any negotiation: a stream is a buffer, its number is all that the writer needs. */
#include <arpa/inet.h>
#include <errno.h>
#include <rddp/rddp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 64, STREAM = 3 };

static void *check(void *object, const char *what)
{
    if (!object) {
        perror(what);
        exit(errno == EPROTONOSUPPORT ? 77 : 1);
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

/* What arrives on stream STREAM goes to `board`: the server says so when it accepts. */
static void connect_both(struct rddp_event_channel *events, struct rddp_qp *client, struct rddp_qp *server,
                         struct rddp_mr *board)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_mr *streams[STREAM + 1] = {[STREAM] = board};
    struct sockaddr_storage addr;
    struct rddp_conn_attr attr;
    struct rddp_listener *listener;
    struct rddp_event *event;

    rddp_conn_attr_init(&attr);
    attr.wire.wire = RDDP_WIRE_SCTP;
    attr.wire.sctp_adaptation = RDDP_SCTP_DDP;
    attr.wire.sctp_udp_port = (uint16_t)(20000 + getpid() % 20000); /* so that two of these can run at once */
    attr.sctp_streams = streams;
    attr.sctp_stream_count = STREAM + 1;
    listener = check(rddp_listen(events, (struct sockaddr *)&any, sizeof(any), 1, &attr.wire, NULL), "rddp_listen");
    rddp_listener_addr(listener, &addr);
    must(rddp_connect(client, events, (struct sockaddr *)&addr, sizeof(any), &attr), "rddp_connect");
    for (int established = 0; established < 2; rddp_ack_event(event)) {
        must(rddp_get_event(events, &event), "rddp_get_event");
        must(event->status, rddp_event_str(event->type));
        if (event->type == RDDP_EVENT_CONNECT_REQUEST)
            must(rddp_accept(event->request, server, &attr), "rddp_accept");
        established += event->type == RDDP_EVENT_ESTABLISHED;
    }
    rddp_destroy_listener(listener);
}

int main(void)
{
    struct rddp_context *context = check(rddp_open(NULL), "rddp_open");
    struct rddp_event_channel *events = check(rddp_create_event_channel(context), "rddp_create_event_channel");
    struct rddp_pd *pd = check(rddp_alloc_pd(context), "rddp_alloc_pd");
    struct rddp_cq *client_cq = check(rddp_create_cq(context, 16, NULL, NULL), "rddp_create_cq");
    struct rddp_cq *server_cq = check(rddp_create_cq(context, 16, NULL, NULL), "rddp_create_cq");
    struct rddp_qp *client = open_qp(pd, client_cq), *server = open_qp(pd, server_cq);
    char text[SIZE] = "written to a stream", board[SIZE] = "";
    unsigned writable = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_ZERO_BASED;
    struct rddp_mr *text_mr = check(rddp_reg_mr(pd, text, SIZE, 0), "rddp_reg_mr");
    struct rddp_mr *board_mr = check(rddp_reg_mr(pd, board, SIZE, writable), "rddp_reg_mr");
    struct rddp_sge sge = {.addr = (uintptr_t)text, .length = SIZE, .lkey = rddp_mr_key(text_mr)};
    struct rddp_recv_wr receive = {.num_sge = 0};
    struct rddp_send_wr bell = {.opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_send_wr write = {.opcode = RDDP_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .next = &bell};

    write.rkey = STREAM; /* no key of the server's: offset 0 of whatever the stream leads to */
    must(rddp_post_recv(server, &receive, NULL), "rddp_post_recv");
    connect_both(events, client, server, board_mr);
    must(rddp_post_send(client, &write, NULL), "rddp_post_send");
    expect(client_cq, RDDP_WC_SEND);
    expect(server_cq, RDDP_WC_RECV); /* the message behind the Write: all before it are placed */
    printf("the server's memory says: %s\n", board);
    rddp_destroy_qp(client);
    rddp_destroy_qp(server);
    rddp_destroy_cq(client_cq);
    rddp_destroy_cq(server_cq);
    rddp_dereg_mr(text_mr);
    rddp_dereg_mr(board_mr);
    rddp_destroy_event_channel(events);
    rddp_dealloc_pd(pd);
    must(rddp_close(context), "rddp_close");
    return strcmp(board, text) != 0;
}
