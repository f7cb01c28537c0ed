/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagrams.c - a question and its answer as datagrams of RoCE: no connection, an address handle for each message, and
 * a header in front of each receive that says where to answer. Both ends are in this process, on loopback. A datagram
 * may be lost, so the client asks again. */
#include <arpa/inet.h>
#include <errno.h>
#include <rddp/rddp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 256, QKEY = 0x11223344, ASK_AGAIN_MS = 200, TRIES = 50 };

struct end {
    struct rddp_pd *pd;
    struct rddp_cq *sent, *received;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    struct {
        char out[SIZE];
        uint8_t grh[RDDP_GRH_OCTETS]; /* in front of what is received */
        char in[SIZE];
    } memory;
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

static void post_receive(struct end *end)
{
    struct rddp_sge sge = {(uintptr_t)end->memory.grh, RDDP_GRH_OCTETS + SIZE, rddp_mr_key(end->mr)};
    struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

    must(rddp_post_recv(end->qp, &wr, NULL), "rddp_post_recv");
}

static void open_end(struct end *end, struct rddp_context *context)
{
    struct rddp_qp_attr attr;
    struct rddp_ib_attr ib;

    end->pd = check(rddp_alloc_pd(context), "rddp_alloc_pd");
    end->sent = check(rddp_create_cq(context, 16, NULL, NULL), "rddp_create_cq");
    end->received = check(rddp_create_cq(context, 16, NULL, NULL), "rddp_create_cq");
    rddp_qp_attr_init(&attr);
    attr.type = RDDP_QPT_UD;
    attr.send_cq = end->sent;
    attr.recv_cq = end->received;
    end->qp = check(rddp_create_qp(end->pd, &attr), "rddp_create_qp");
    end->mr = check(rddp_reg_mr(end->pd, &end->memory, sizeof(end->memory), RDDP_ACCESS_LOCAL_WRITE), "rddp_reg_mr");
    rddp_ib_attr_init(&ib);
    ib.qkey = QKEY;
    for (ib.state = RDDP_IB_INIT; ib.state <= RDDP_IB_RTS; ib.state++)
        must(rddp_modify_qp(end->qp, &ib), "rddp_modify_qp");
    post_receive(end);
}

static void close_end(struct end *end)
{
    rddp_destroy_qp(end->qp);
    rddp_destroy_cq(end->sent);
    rddp_destroy_cq(end->received);
    rddp_dereg_mr(end->mr);
    rddp_dealloc_pd(end->pd);
}

/* Sends a text, and waits until it has left: the memory is ours again. */
static void send_text(struct end *end, const struct rddp_ah_attr *to, uint32_t qpn, const char *text)
{
    struct rddp_ah *ah = check(rddp_create_ah(end->pd, to), "rddp_create_ah");
    struct rddp_sge sge = {(uintptr_t)end->memory.out, SIZE, rddp_mr_key(end->mr)};
    struct rddp_send_wr wr = {.sg_list = &sge,
                              .num_sge = 1,
                              .opcode = RDDP_WR_SEND,
                              .send_flags = RDDP_SEND_SIGNALED,
                              .ah = ah,
                              .remote_qpn = qpn,
                              .remote_qkey = QKEY};
    struct rddp_wc wc;

    snprintf(end->memory.out, SIZE, "%s", text);
    must(rddp_post_send(end->qp, &wr, NULL), "rddp_post_send");
    while (rddp_poll_cq(end->sent, 1, &wc) == 0)
        continue;
    must(wc.status == RDDP_WC_SUCCESS ? 0 : -EIO, rddp_wc_status_str(wc.status));
    rddp_destroy_ah(ah);
}

/* Waits for a message for some time. Returns false if none comes. */
static bool receive(struct end *end, int ms, struct rddp_wc *wc)
{
    for (; rddp_poll_cq(end->received, 1, wc) == 0; ms--) {
        if (ms <= 0)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    must(wc->status == RDDP_WC_SUCCESS ? 0 : -EIO, rddp_wc_status_str(wc->status));
    return true;
}

/* Answers a question, if one has come, to where it came from. */
static void serve(struct end *server)
{
    struct rddp_ah_attr back;
    struct rddp_wc wc;

    if (!receive(server, ASK_AGAIN_MS, &wc))
        return;
    must(rddp_ah_attr_from_wc(&wc, server->memory.grh, &back), "rddp_ah_attr_from_wc");
    printf("asked by queue pair %u: %s\n", wc.src_qp, server->memory.in);
    send_text(server, &back, wc.src_qp, "an answer");
    post_receive(server);
}

int main(void)
{
    struct rddp_context *context = check(rddp_open(NULL), "rddp_open");
    static struct end client, server;
    struct rddp_ah_attr to;
    struct rddp_wc wc;
    bool answered = false;

    open_end(&client, context);
    open_end(&server, context);
    rddp_ah_attr_init(&to);
    *(struct sockaddr_in *)&to.peer =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < TRIES && !answered; i++) {
        send_text(&client, &to, rddp_qp_num(server.qp), "a question");
        serve(&server);
        answered = receive(&client, ASK_AGAIN_MS, &wc);
    }
    printf("got: %s\n", client.memory.in);
    close_end(&client);
    close_end(&server);
    must(rddp_close(context), "rddp_close");
    return strcmp(client.memory.in, "an answer") != 0;
}
