/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_udaddy.c - plays the other end of udaddy, with messages, over rddp.h: a service of datagrams is found by its
 * name, and queue pairs that know each other from then on exchange datagrams.
 *
 *   roce_udaddy [-s] OWN PEER COUNT MESSAGES OCTETS
 *
 * -s: we are the server. As udaddy does, the client sends MESSAGES of OCTETS to each of COUNT queue pairs, then the
 * server answers with as many. Exit code 0: all of them came. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rddp/rddp.h>

enum { QKEY = 0x01234567 /* RDMA_UDP_QKEY */, PORT = 7174, MESSAGES_MAX = 64, LIMIT_S = 30, GRH = RDDP_GRH_OCTETS };

/* A queue pair, and the one at the other end. */
struct node {
    struct rddp_qp *qp;
    struct rddp_resolution *resolution;
    struct rddp_ah *ah;
    uint32_t qpn, qkey;
};

static struct talk {
    bool server;
    struct sockaddr_in own, peer;
    uint32_t count, messages, octets;
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_event_channel *channel;
    struct rddp_mr *mr;
    uint8_t *memory;
    struct node node[MESSAGES_MAX];
} talk;

static void quit(const char *what, int error)
{
    fprintf(stderr, "roce_udaddy: %s: %s\n", what, strerror(error < 0 ? -error : error));
    exit(1);
}

static struct sockaddr_in address_of(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};

    if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
        quit(text, 22);
    return address;
}

static void talk_open(void)
{
    uint32_t octets = talk.octets + GRH;

    talk.context = rddp_open(NULL);
    talk.pd = rddp_alloc_pd(talk.context);
    talk.cq = rddp_create_cq(talk.context, 4096, NULL, NULL);
    talk.channel = rddp_create_event_channel(talk.context);
    talk.memory = calloc(1, octets);
    talk.mr = rddp_reg_mr(talk.pd, talk.memory, octets, RDDP_ACCESS_LOCAL_WRITE);
    if (!talk.mr || !talk.channel)
        quit("rddp_open", 12);
}

static void node_receive(struct node *node)
{
    struct rddp_sge sge = {(uintptr_t)talk.memory, talk.octets + GRH, rddp_mr_key(talk.mr)};
    struct rddp_recv_wr wr = {.wr_id = (uintptr_t)node, .sg_list = &sge, .num_sge = 1};

    if (rddp_post_recv(node->qp, &wr, NULL))
        quit("rddp_post_recv", 12);
}

static void node_open(struct node *node)
{
    struct rddp_ib_attr ib;
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.type = RDDP_QPT_UD;
    attr.send_cq = attr.recv_cq = talk.cq;
    attr.max_send_wr = attr.max_recv_wr = MESSAGES_MAX;
    node->qp = rddp_create_qp(talk.pd, &attr);
    if (!node->qp)
        quit("rddp_create_qp", 12);
    rddp_ib_attr_init(&ib);
    ib.qkey = QKEY;
    for (ib.state = RDDP_IB_INIT; ib.state <= RDDP_IB_RTS; ib.state++)
        if (rddp_modify_qp(node->qp, &ib))
            quit("rddp_modify_qp", 22);
    for (uint32_t i = 0; i < talk.messages; i++)
        node_receive(node);
}

static void node_send(struct node *node)
{
    struct rddp_sge sge = {(uintptr_t)talk.memory, talk.octets, rddp_mr_key(talk.mr)};
    struct rddp_send_wr wr = {.sg_list = &sge,
                              .num_sge = 1,
                              .opcode = RDDP_WR_SEND_WITH_IMM,
                              .imm_data = htonl(rddp_qp_num(node->qp)),
                              .ah = node->ah,
                              .remote_qpn = node->qpn,
                              .remote_qkey = node->qkey};

    for (uint32_t i = 0; i < talk.messages; i++)
        if (rddp_post_send(node->qp, &wr, NULL))
            quit("rddp_post_send", 22);
}

static struct rddp_event next_event(enum rddp_event_type type)
{
    struct rddp_event *event, copy;
    int error = rddp_get_event(talk.channel, &event);

    if (error || event->type != type)
        quit(error ? "rddp_get_event" : rddp_event_str(event->type), error ? error : event->status);
    copy = *event;
    rddp_ack_event(event);
    return copy;
}

/* --- who knows of each other ---------------------------------------------------------------------------------------
 */

static void ask_all(void)
{
    struct rddp_resolve_attr attr;
    struct rddp_ah_attr way;

    rddp_resolve_attr_init(&attr);
    talk.own.sin_port = 0;
    attr.local = (struct sockaddr *)&talk.own;
    for (uint32_t i = 0; i < talk.count; i++) {
        node_open(&talk.node[i]);
        talk.node[i].resolution =
            rddp_resolve(talk.channel, (struct sockaddr *)&talk.peer, sizeof(talk.peer), &attr, &talk.node[i]);
        if (!talk.node[i].resolution)
            quit("rddp_resolve", 22);
    }
    for (uint32_t i = 0; i < talk.count; i++) {
        struct rddp_event event = next_event(RDDP_EVENT_RESOLVED);
        struct node *node = event.user;

        rddp_ah_attr_init(&way);
        memcpy(&way.peer, &talk.peer, sizeof(talk.peer));
        node->ah = rddp_create_ah(talk.pd, &way);
        node->qpn = event.qpn;
        node->qkey = event.qkey;
        if (!node->ah || rddp_destroy_resolution(event.resolution))
            quit("rddp_create_ah", 22);
    }
}

static void answer_all(void)
{
    struct rddp_wire_attr wire;

    rddp_wire_attr_init(&wire);
    wire.wire = RDDP_WIRE_ROCE;
    wire.datagrams = true;
    if (!rddp_listen(talk.channel, (struct sockaddr *)&talk.own, sizeof(talk.own), 16, &wire, NULL))
        quit("rddp_listen", 98);
    printf("listening\n");
    fflush(stdout);
    for (uint32_t i = 0; i < talk.count; i++) {
        struct rddp_request *request = next_event(RDDP_EVENT_CONNECT_REQUEST).request;
        struct rddp_answer answer = {.qkey = QKEY};
        int error;

        node_open(&talk.node[i]);
        answer.qpn = rddp_qp_num(talk.node[i].qp);
        error = rddp_answer(request, &answer);
        if (error)
            quit("rddp_answer", error);
    }
}

/* --- messages ------------------------------------------------------------------------------------------------------
 */

/* The way back, as the first message of a peer says it. */
static void learn_way(struct node *node, const struct rddp_wc *wc)
{
    struct rddp_ah_attr way;

    if (rddp_ah_attr_from_wc(wc, talk.memory, &way))
        quit("rddp_ah_attr_from_wc", 22);
    node->ah = rddp_create_ah(talk.pd, &way);
    node->qpn = wc->src_qp;
    node->qkey = QKEY;
    if (!node->ah)
        quit("rddp_create_ah", 22);
}

static void receive_all(void)
{
    time_t begun = time(NULL);
    struct rddp_wc wc;

    for (uint32_t received = 0; received < talk.count * talk.messages;) {
        struct node *node;

        if (time(NULL) > begun + LIMIT_S) {
            printf("roce_udaddy: %u messages of %u\n", received, talk.count * talk.messages);
            exit(1);
        }
        if (!rddp_poll_cq(talk.cq, 1, &wc))
            continue;
        if (wc.status != RDDP_WC_SUCCESS)
            quit(rddp_wc_status_str(wc.status), 5);
        if (!(wc.opcode & RDDP_WC_RECV))
            continue;
        if (wc.byte_len != talk.octets + GRH || !(wc.wc_flags & RDDP_WC_GRH) || !(wc.wc_flags & RDDP_WC_WITH_IMM))
            quit("a message is not as it was sent", 5);
        received++;
        node = (struct node *)(uintptr_t)wc.wr_id;
        if (!node->ah)
            learn_way(node, &wc);
    }
}

static void send_all(void)
{
    for (uint32_t i = 0; i < talk.count; i++)
        node_send(&talk.node[i]);
}

int main(int argc, char **argv)
{
    struct rddp_qp_info info;

    talk.server = argc > 1 && !strcmp(argv[1], "-s");
    if (argc - talk.server != 6) {
        fprintf(stderr, "usage: roce_udaddy [-s] OWN PEER COUNT MESSAGES OCTETS\n");
        return 2;
    }
    argv += talk.server;
    talk.own = address_of(argv[1]);
    talk.peer = address_of(argv[2]);
    talk.count = (uint32_t)atoi(argv[3]) % MESSAGES_MAX;
    talk.messages = (uint32_t)atoi(argv[4]) % MESSAGES_MAX;
    talk.octets = (uint32_t)atoi(argv[5]);
    talk_open();
    if (talk.server) {
        answer_all();
        receive_all();
        send_all();
        sleep(1); /* what was posted leaves */
    } else {
        ask_all();
        send_all();
        receive_all();
    }
    rddp_query_qp(talk.node[0].qp, &info);
    printf("roce_udaddy: %u messages each way with each of %u, wrong ICRC %llu\n", talk.messages, talk.count,
           (unsigned long long)info.ib.wrong_icrc);
    return 0;
}
