/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_talk.c - is one end of an association over our own SCTP, for tests with tshark and other implementations of
 * SCTP. As usrsctp_talk it is over usrsctp.
 *
 *     sctp_talk listen|connect ADDRESS SCTP-PORT UDP-PORT INDICATION [WRONG [MODE]]
 *
 * Each end writes its whole buffer into the peer's (tag 0x1234, or stream 3 of DDP), signals that the data are there
 * and checks what it received. Then the end that connected shuts down. WRONG makes an end break a rule instead: `mode
 * N`, `tag` or `offset`. Prints one line: "ok", "aborted: FAULT" or "aborted by the peer: REASON". */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sctp/io/osctp_provider.h"
#include "tests/lib/sctp_end.h"

enum { OCTETS = 200000, TAG = 0x1234, STREAM = 3, SECONDS = 60, DONE = 4, QUEUE = 16 };

struct talk {
    bool active;
    enum sctpddp_adaptation adaptation;
    struct sctp_socket *port;
    struct sctp_conn conn;
    struct qp qp;
    struct cq send_cq, recv_cq;
    struct cq_entry send_ring[64], recv_ring[64];
    struct pd pd;
    struct mr_table mrs;
    struct mr_slot table[16];
    struct mr target, source, small;
    uint8_t in[OCTETS], out[OCTETS], word[2 * DONE];
    unsigned news;
    bool notified;
};

static const struct sctp_provider *const stack = &osctp;
static struct talk t;

static uint8_t octet_at(uint32_t i, bool active)
{
    return (uint8_t)(i * 7 + (i >> 8) + (active ? 1 : 2));
}

static void give_up(const char *why)
{
    fprintf(stderr, "sctp_talk: %s\n", why);
    exit(1);
}

static void add_region(struct mr *mr, void *base, uint32_t length, unsigned access, uint32_t key)
{
    *mr = (struct mr){.base = base, .length = length, .pd = &t.pd, .access = access};
    if (!mr_insert(&t.mrs, mr, key))
        give_up("no region");
}

static void prepare(void)
{
    const struct qp_attr attr = {
        .pd = &t.pd,
        .mrs = &t.mrs,
        .send_cq = &t.send_cq,
        .recv_cq = &t.recv_cq,
        .send_depth = QUEUE,
        .recv_depth = QUEUE,
        .send_sge = 1,
        .recv_sge = 1,
        .ird = 1,
        .ord = 1,
        .window = QUEUE,
    };
    struct rddp_sge sge = {.addr = DONE, .length = DONE, .lkey = 3};
    const struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

    mr_table_init(&t.mrs, t.table, 16);
    for (uint32_t i = 0; i < OCTETS; i++)
        t.out[i] = octet_at(i, t.active);
    memcpy(t.word, "done", DONE);
    add_region(&t.target, t.in, OCTETS, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE, TAG);
    add_region(&t.source, t.out, OCTETS, 0, 2);
    add_region(&t.small, t.word, sizeof(t.word), RDDP_ACCESS_LOCAL_WRITE, 3);
    cq_init(&t.send_cq, t.send_ring, 64, 64, NULL);
    cq_init(&t.recv_cq, t.recv_ring, 64, 64, NULL);
    qp_init(&t.qp, &attr, calloc(1, qp_size(&attr)));
    qp_post_recv(&t.qp, &wr);
}

static void open_all(char **argv)
{
    const struct sctp_attr attr = {
        .indication = t.adaptation, .udp_port = (uint16_t)atoi(argv[4]), .connect_ms = 20000};
    const struct assoc_attr own = {
        .adaptation = t.adaptation,
        .write_flags = SCTPDDP_NOTIFY,
        .seed = 1,
        .limits = {.startup_us = 30000000, .stall_us = 30000000, .close_us = 10000000},
    };
    struct sockaddr_in local = {.sin_family = AF_INET}, peer = {.sin_family = AF_INET};
    const char *why;

    if (inet_pton(AF_INET, argv[2], t.active ? &peer.sin_addr : &local.sin_addr) != 1)
        give_up("not an address");
    local.sin_port = t.active ? 0 : htons(attr.udp_port);
    peer.sin_port = htons((uint16_t)atoi(argv[3]));
    if (stack->open((struct sockaddr *)&local, sizeof(local), &attr, &t.port, &why))
        give_up("no socket");
    if (t.active) {
        if (sctp_conn_init_active(&t.conn, &own, &t.qp, NULL, 0, reactor_now_us()) ||
            sctp_end_connect(&t.conn, t.port, &peer))
            give_up("no association");
    } else {
        sctp_conn_init_passive(&t.conn, &own, reactor_now_us());
        if (stack->listen(t.port, ntohs(peer.sin_port)))
            give_up("cannot listen");
        fprintf(stderr, "listening\n");
    }
    assoc_bind(&t.conn.assoc, STREAM, TAG);
}

static void turn(void)
{
    struct pollfd fd = {t.port->fd, POLLIN, 0};
    struct assoc_signal signal;

    poll(&fd, 1, 5);
    if (!sctp_end_turn(&t.conn, t.port))
        return;
    while (assoc_signal(&t.conn.assoc, &signal, reactor_now_us()))
        t.notified |= signal.flags & SCTPDDP_NOTIFY;
    if (t.conn.assoc.life.state == CONN_WAIT_ANSWER)
        assoc_accept(&t.conn.assoc, &t.qp, 1, 1, NULL, 0);
    t.news |= t.conn.assoc.life.news;
    t.conn.assoc.life.news = 0;
}

static void wait_until(bool (*so)(void))
{
    uint64_t end = reactor_now_us() + SECONDS * 1000000ull;

    while (!so() && t.conn.assoc.life.state != CONN_OVER) {
        if (reactor_now_us() > end)
            give_up("too slow");
        turn();
    }
}

static bool is_ready(void)
{
    return t.conn.assoc.life.state == CONN_READY;
}

static bool is_told(void)
{
    return t.conn.assoc.negotiates ? !cq_is_empty(&t.recv_cq) : t.notified;
}

static bool is_over(void)
{
    return t.conn.assoc.life.state == CONN_OVER;
}

/* Waits until the association is over, then prints how it ended. */
static int finish(bool good)
{
    static char reason[NEG_REASON_MAX];
    const struct life *l = &t.conn.assoc.life;

    if (good && t.active)
        assoc_close(&t.conn.assoc, reactor_now_us());
    wait_until(is_over);
    for (unsigned i = 0; i < 20; i++) /* let the last packets leave */
        turn();
    if (l->note.fault == FAULT_NONE && good)
        printf("ok\n");
    else if (l->note.fault == FAULT_TERMINATED)
        printf("aborted by the peer: %s\n", l->peer_term_text);
    else
        printf("aborted: %s %.*s\n", fault_name(l->note.fault), (int)assoc_reason(&t.conn.assoc, reason), reason);
    sctp_conn_fini(&t.conn);
    stack->close_socket(t.port);
    return 0;
}

static int exchange(void)
{
    struct rddp_sge sge = {.length = OCTETS, .lkey = 2};
    struct rddp_send_wr wr = {
        .opcode = RDDP_WR_RDMA_WRITE,
        .sg_list = &sge,
        .num_sge = 1,
        .rkey = t.conn.assoc.own == SCTPDDP_DDP ? STREAM : TAG,
    };
    bool good = true, places = t.adaptation != SCTPDDP_RDMA_NEGOTIATION;

    if (places && qp_post_send(&t.qp, &wr))
        give_up("no Write");
    sge = (struct rddp_sge){.length = DONE, .lkey = 3};
    wr.opcode = RDDP_WR_SEND;
    if (t.conn.assoc.negotiates && qp_post_send(&t.qp, &wr))
        give_up("no Send");
    wait_until(is_told);
    for (uint32_t i = 0; places && i < OCTETS; i++)
        good &= t.in[i] == octet_at(i, !t.active);
    if (!good && t.conn.assoc.life.state != CONN_OVER)
        give_up("not the octets that were sent");
    return finish(good);
}

/* Sends one chunk that every peer must refuse. */
static int be_wrong(const char *how, const char *mode)
{
    struct sctpddp_chunk chunk = {.mode = SCTPDDP_MODE_RDMA, .tag = TAG, .aws = (uint32_t)t.conn.assoc.tx_pos};
    uint8_t p[SCTPDDP_HEAD_MAX + 1] = {0};
    struct span span = {p, 0};

    if (t.adaptation < SCTPDDP_RDMA_ONLY)
        chunk.mode = (uint32_t)t.adaptation;
    if (mode)
        chunk.mode = (uint32_t)atoi(mode);
    chunk.tag += strcmp(how, "tag") == 0;
    chunk.offset = strcmp(how, "offset") == 0 ? OCTETS : 0;
    span.length = (uint32_t)sctpddp_encode(t.adaptation, &chunk, p) + 1;
    stack->enter(t.port, true);
    if (stack->submit(t.conn.sctp, &span, 1, 0, 0, false))
        give_up("it does not leave");
    stack->leave(t.port);
    return finish(false);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: sctp_talk listen|connect ADDRESS SCTP-PORT UDP-PORT INDICATION [WRONG [MODE]]\n");
        return 2;
    }
    t.active = strcmp(argv[1], "connect") == 0;
    t.adaptation = (enum sctpddp_adaptation)(atoi(argv[5]) % SCTPDDP_ADAPTATIONS);
    prepare();
    open_all(argv);
    wait_until(is_ready);
    if (is_over())
        return finish(false);
    if (argc > 6)
        return be_wrong(argv[6], argc > 7 ? argv[7] : NULL);
    return exchange();
}
