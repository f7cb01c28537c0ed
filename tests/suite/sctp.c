/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp.c - associations over our own SCTP, on loopback in this process: every pair of indications,
 * errors of a peer, and the end. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sctp/io/osctp_provider.h"
#include "loop/reactor.h"
#include "loop/udp.h"
#include "tests/lib/engine.h"
#include "tests/lib/sctp_end.h"

enum { OCTETS = 1 << 20, SCTP_PORT = 5001, PATIENCE_MS = 20000, READS = 4 };
#define BOTH SCTPDDP_RDMA_AND_NEGOTIATION

/* One end, from its socket to its queue pair. */
struct end {
    struct sctp_socket *port;
    struct sctp_conn conn;
    struct side side;
    struct assoc_signal signal;
    uint32_t signals;
    unsigned news;
};

static const struct sctp_provider *const stack = &osctp;

static struct engine engine;
static struct end ends[2];
static bool batches = true; /* each end says that it sends them */
static const struct life_limits limits = {.startup_us = 5000000, .stall_us = 5000000, .close_us = 2000000};

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static struct sctp_socket *open_port(const struct sctp_attr *attr)
{
    struct sockaddr_in any = loopback(0);
    struct sctp_socket *port = NULL;
    const char *why;

    assert_int_equal(stack->open((const struct sockaddr *)&any, sizeof(any), attr, &port, &why), 0);
    return port;
}

static uint16_t udp_port_of(struct sctp_socket *port)
{
    struct sockaddr_in local;
    socklen_t length = sizeof(local);

    assert_int_equal(getsockname(port->fd, (struct sockaddr *)&local, &length), 0);
    return ntohs(local.sin_port);
}

static struct assoc_attr attr_of(enum sctpddp_adaptation adaptation)
{
    return (struct assoc_attr){
        .adaptation = adaptation, .batches = batches, .ird = READS, .ord = READS, .seed = 7, .limits = limits};
}

static void open_end(struct end *e, bool active, enum sctpddp_adaptation adaptation, uint16_t udp_port)
{
    struct sctp_attr attr = {.indication = adaptation, .udp_port = udp_port};
    struct assoc_attr own = attr_of(adaptation);
    struct qp_attr qp = side_attr(&engine);
    struct sockaddr_in to = loopback(SCTP_PORT);

    memset(e, 0, sizeof(*e));
    side_init(&e->side, &qp);
    e->port = open_port(&attr);
    if (active) {
        assert_int_equal(sctp_conn_init_active(&e->conn, &own, &e->side.qp, NULL, 0, reactor_now_us()), 0);
        assert_int_equal(sctp_end_connect(&e->conn, e->port, &to), 0);
    } else {
        sctp_conn_init_passive(&e->conn, &own, reactor_now_us());
        assert_int_equal(stack->listen(e->port, SCTP_PORT), 0);
    }
}

static void close_end(struct end *e)
{
    sctp_conn_fini(&e->conn);
    stack->close_socket(e->port);
    side_fini(&e->side);
}

static void turn_end(struct end *e)
{
    if (!sctp_end_turn(&e->conn, e->port))
        return;
    while (assoc_signal(&e->conn.assoc, &e->signal, reactor_now_us()))
        e->signals++;
    if (e->conn.assoc.life.state == CONN_WAIT_ANSWER)
        assert_int_equal(assoc_accept(&e->conn.assoc, &e->side.qp, READS, READS, NULL, 0), 0);
    e->news |= e->conn.assoc.life.news;
    e->conn.assoc.life.news = 0;
}

/* Between the two ends, if it is used: loses or changes one packet of `each`, and keeps batches otherwise. `near` is
 * where end 0 sends to, `far` sends to end 1. */
static struct relay {
    struct udp near, far;
    struct sockaddr_storage active, passive;
    uint32_t each, seed, harmed, batched;
} relay;

static void relay_pass(struct udp *from, struct udp *to, const struct sockaddr_storage *address)
{
    static uint8_t buffer[UDP_BUFFERS * UDP_BUFFER_OCTETS];
    const struct udp_stage stage = {buffer};
    struct udp_batch batch[UDP_BUFFERS];
    int n = udp_recv(from, &stage, batch);

    for (int i = 0; i < n; i++) {
        if (from == &relay.near)
            relay.active = batch[i].from;
        relay.batched += batch[i].octets > batch[i].each;
        for (uint32_t at = 0; at < batch[i].octets; at += batch[i].each) {
            uint32_t left = batch[i].octets - at, octets = left < batch[i].each ? left : batch[i].each;

            bool harmed = chance(&relay.seed) % relay.each == 0;
            uint8_t *packet;

            relay.harmed += harmed;
            if (harmed && relay.harmed % 2)
                continue;
            packet = udp_buffer(to, address, octets);
            memcpy(packet, batch[i].at + at, octets);
            packet[octets / 2] ^= (uint8_t)harmed;
            udp_put(to, octets);
        }
    }
    udp_flush(to);
}

static void turn(void)
{
    struct pollfd fds[4] = {{ends[0].port->fd, POLLIN, 0},
                            {ends[1].port->fd, POLLIN, 0},
                            {relay.near.fd, POLLIN, 0},
                            {relay.far.fd, POLLIN, 0}};

    poll(fds, relay.each ? 4 : 2, 1);
    if (relay.each) {
        relay_pass(&relay.near, &relay.far, &relay.passive);
        relay_pass(&relay.far, &relay.near, &relay.active);
    }
    turn_end(&ends[0]);
    turn_end(&ends[1]);
}

/* Drives both ends until the condition holds; fails the test otherwise. */
#define until(condition) \
    for (uint64_t end_ = reactor_now_us() + 1000u * PATIENCE_MS; !(condition);) { \
        assert_true(reactor_now_us() < end_); \
        turn(); \
    }

static bool is_established(const struct end *e)
{
    return e->news & CONN_NEWS_ESTABLISHED;
}

static uint16_t open_relay(uint16_t to)
{
    struct sockaddr_in any = loopback(0), passive = loopback(to);
    struct sockaddr_storage local;

    if (!relay.each)
        return to;
    assert_int_equal(udp_open(&relay.near, (const struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(udp_open(&relay.far, (const struct sockaddr *)&any, sizeof(any)), 0);
    memset(&relay.passive, 0, sizeof(relay.passive));
    memcpy(&relay.passive, &passive, sizeof(passive));
    udp_local(&relay.near, &local);
    return ntohs(((const struct sockaddr_in *)&local)->sin_port);
}

static void open_both(enum sctpddp_adaptation active, enum sctpddp_adaptation passive)
{
    engine_init(&engine);
    open_end(&ends[1], false, passive, 0);
    open_end(&ends[0], true, active, open_relay(udp_port_of(ends[1].port)));
    until(is_established(&ends[0]) && is_established(&ends[1]));
}

static void close_both(void)
{
    close_end(&ends[0]);
    close_end(&ends[1]);
    engine_fini(&engine);
}

static void expect_done(struct cq *cq, uint64_t wr_id)
{
    until(!cq_is_empty(cq));
    expect_wc(cq, wr_id, RDDP_WC_SUCCESS);
}

/* --- every pair of indications ------------------------------------------------------------------------------- */

static void write_and_check(unsigned from, uint32_t wr_id)
{
    struct mr *source = engine_region(&engine, OCTETS, LOCAL), *target = engine_region(&engine, OCTETS, ALL_ACCESS);
    struct rddp_sge sge = piece_of(source, 0, OCTETS);
    bool by_stream = ends[from].conn.assoc.own == SCTPDDP_DDP;

    pattern(source->base, OCTETS, wr_id);
    assert_int_equal(assoc_bind(&ends[!from].conn.assoc, 3, target->key), 0);
    engine_remember(&engine);
    assert_int_equal(post_remote(&ends[from].side, wr_id, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, &sge, 1,
                                 by_stream ? 3 : target->key, target->start),
                     0);
    expect_done(&ends[from].side.send_cq, wr_id);
    until(memcmp(target->base, source->base, OCTETS) == 0);
    memcpy(want_of(&engine, target), source->base, OCTETS);
    engine_expect(&engine);
}

static void send_and_check(unsigned from, uint32_t length)
{
    struct mr *source = engine_region(&engine, OCTETS, LOCAL), *target = engine_region(&engine, OCTETS, LOCAL);
    struct rddp_sge sge = piece_of(target, 0, OCTETS);

    assert_int_equal(post_recv(&ends[!from].side, 8, &sge, 1), 0);
    pattern(source->base, OCTETS, length);
    sge = piece_of(source, 0, length);
    assert_int_equal(post(&ends[from].side, 9, RDDP_WR_SEND, RDDP_SEND_SIGNALED, &sge, 1), 0);
    expect_done(&ends[from].side.send_cq, 9);
    expect_done(&ends[!from].side.recv_cq, 8);
    assert_memory_equal(target->base, source->base, length);
}

static void read_and_check(unsigned to)
{
    struct mr *source = engine_region(&engine, OCTETS, RDDP_ACCESS_REMOTE_READ);
    struct mr *sink = engine_region(&engine, OCTETS, LOCAL);
    struct rddp_sge sge = piece_of(sink, 0, OCTETS);

    pattern(source->base, OCTETS, 99);
    assert_int_equal(
        post_remote(&ends[to].side, 10, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, source->key, source->start), 0);
    expect_done(&ends[to].side.send_cq, 10);
    assert_memory_equal(sink->base, source->base, OCTETS);
}

/* SCTP-2.1-01 SCTP-2.2-03 SCTP-2.2-07 SCTP-3.1-01 SCTP-3.1-02 SCTP-3.1-03 SCTP-3.1-05 */
static void indications(void **state)
{
    static const enum sctpddp_adaptation pairs[][2] = {
        {SCTPDDP_DDP, SCTPDDP_DDP},
        {SCTPDDP_DDP_WITH_TAG, SCTPDDP_DDP_WITH_TAG},
        {SCTPDDP_RDMA_ONLY, SCTPDDP_RDMA_ONLY},
        {BOTH, BOTH},
        {SCTPDDP_RDMA_NEGOTIATION, SCTPDDP_RDMA_NEGOTIATION},
        {SCTPDDP_PLAIN, SCTPDDP_PLAIN},
        {SCTPDDP_PLAIN, BOTH},
        {SCTPDDP_DDP, SCTPDDP_RDMA_ONLY},
        {BOTH, SCTPDDP_DDP_WITH_TAG},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        open_both(pairs[i][0], pairs[i][1]);
        for (unsigned from = 0; from < 2; from++) {
            enum sctpddp_adaptation own = ends[from].conn.assoc.own;

            assert_int_equal(ends[from].conn.assoc.peer, ends[!from].conn.assoc.own);
            if (own != SCTPDDP_PLAIN && own != SCTPDDP_RDMA_NEGOTIATION)
                write_and_check(from, 1 + from);
            if (own != SCTPDDP_RDMA_ONLY)
                send_and_check(from, ends[from].conn.assoc.negotiates ? OCTETS : 1000);
            if (own == BOTH && ends[from].conn.assoc.negotiates)
                read_and_check(from);
        }
        close_both();
    }
}

/* --- the end ------------------------------------------------------------------------------------------------- */

static void closed_well(void **state)
{
    (void)state;
    open_both(BOTH, BOTH);
    send_and_check(0, OCTETS);
    assoc_close(&ends[0].conn.assoc, reactor_now_us());
    until(ends[0].conn.assoc.life.state == CONN_OVER && ends[1].conn.assoc.life.state == CONN_OVER);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ends[i].conn.assoc.life.note.fault, FAULT_NONE);
        assert_true(ends[i].news & CONN_NEWS_DISCONNECTED);
    }
    close_both();
}

/* The reason arrives, and the wrong request gets its status. SCTP-3.2.1-09 */
static void refused(void **state)
{
    struct mr *mr;
    struct rddp_sge sge;

    (void)state;
    open_both(BOTH, BOTH);
    mr = engine_region(&engine, 100, LOCAL);
    sge = piece_of(mr, 0, 100);
    assert_int_equal(post_remote(&ends[0].side, 1, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, mr->key, mr->start),
                     0);
    until(ends[0].conn.assoc.life.state == CONN_OVER);
    expect_wc(&ends[0].side.send_cq, 1, RDDP_WC_REM_ACCESS_ERR);
    assert_int_equal(ends[0].conn.assoc.life.peer_term, 0x312);
    assert_int_equal(ends[1].conn.assoc.life.note.fault, FAULT_RIGHT);
    close_both();
}

/* A peer breaks each rule and is told which. SCTP-3.2.1-R1 SCTP-3.2.1-R2 SCTP-3.2.1-R3 SCTP-3.2.1-R4 */
static void rules(void **state)
{
    static const struct {
        enum sctpddp_adaptation peer;
        uint32_t mode;
        const char *reason;
    } rows[] = {
        {SCTPDDP_RDMA_ONLY, SCTPDDP_NO_PLACEMENT, "RDDP0101 R1"},
        {SCTPDDP_RDMA_ONLY, SCTPDDP_MODE_DDP, "RDDP0202 R2"},
        {SCTPDDP_DDP, SCTPDDP_MODE_TAG, "RDDP0203 R3"},
        {SCTPDDP_DDP, SCTPDDP_MODE_RDMA, "RDDP0204 R4"},
        {SCTPDDP_DDP_WITH_TAG, SCTPDDP_MODE_TAG, "RDDP0210 no such tag"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sctpddp_chunk chunk = {.mode = rows[i].mode, .tag = 5};
        uint8_t p[SCTPDDP_HEAD_MAX + 1];
        struct span span = {p, 0};
        struct sctp_news news = {.kind = SCTP_NEWS_UP};

        open_both(rows[i].peer, SCTPDDP_DDP);
        span.length = (uint32_t)sctpddp_encode(rows[i].peer, &chunk, p) + 1;
        p[span.length - 1] = 0;
        assert_true(stack->enter(ends[0].port, true));
        assert_int_equal(stack->submit(ends[0].conn.sctp, &span, 1, 0, 0, false), 0);
        stack->leave(ends[0].port);
        for (uint64_t end = reactor_now_us() + 1000u * PATIENCE_MS; !stack->next(ends[0].conn.sctp, &news);) {
            assert_true(reactor_now_us() < end);
            stack->drive(ends[0].port);
            turn_end(&ends[1]);
        }
        assert_int_equal(news.kind, SCTP_NEWS_ABORTED);
        assert_true(news.octets > strlen(rows[i].reason));
        assert_memory_equal(news.data, rows[i].reason, strlen(rows[i].reason));
        sctp_news_free(&news);
        close_both();
    }
}

/* No peer is there: given up after about the time requested. */
static void unreachable(void **state)
{
    struct sctp_attr attr = {.indication = BOTH, .connect_ms = 1000};
    struct sctp_socket *silent, *port;
    struct sockaddr_in to = loopback(SCTP_PORT);
    struct sctp_news news = {.kind = SCTP_NEWS_UP};
    struct sctp_assoc *sctp;
    uint64_t begun = reactor_now_us();

    (void)state;
    silent = open_port(&attr);
    attr.udp_port = udp_port_of(silent);
    port = open_port(&attr);
    assert_int_equal(stack->connect(port, (const struct sockaddr *)&to, &sctp), 0);
    while (!stack->next(sctp, &news)) {
        assert_true(reactor_now_us() < begun + 1000u * PATIENCE_MS);
        poll(NULL, 0, 5);
        stack->drive(port);
    }
    assert_int_equal(news.kind, SCTP_NEWS_LOST);
    assert_true(reactor_now_us() - begun >= 900000);
    stack->close(sctp);
    stack->close_socket(port);
    stack->close_socket(silent);
}

/* SCTP-1-02. Batches, of which packets are lost or changed, with one acknowledgement for a batch and without:
 * everything arrives, and each end knows whether the other sends batches. */
static void lossy(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        relay = (struct relay){.each = UINT32_MAX, .seed = 5};
        batches = i == 0;
        open_both(BOTH, BOTH);
        relay.each = 60;
        for (uint32_t k = 0; k < 4; k++) {
            write_and_check(k % 2, 1 + k);
            send_and_check(k % 2, OCTETS - k);
        }
        read_and_check(0);
        assert_true(relay.harmed > 20 && relay.batched > 20);
        assert_int_equal(ends[0].conn.reported, batches);
        assert_int_equal(ends[1].conn.reported, batches);
        close_both();
        udp_close(&relay.near);
        udp_close(&relay.far);
    }
    relay.each = 0;
    batches = true;
}

/* A packet with a wrong checksum, or that is none, is dropped. SCTP-1-02 */
static void garbage(void **state)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to;
    uint8_t p[1400];

    (void)state;
    open_both(BOTH, BOTH);
    to = loopback(udp_port_of(ends[1].port));
    for (unsigned i = 0; i < 3000; i++) {
        pattern(p, sizeof(p), i);
        sendto(fd, p, i % sizeof(p), 0, (const struct sockaddr *)&to, sizeof(to));
        if (i % 100 == 0)
            turn();
    }
    send_and_check(0, OCTETS);
    close(fd);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indications), cmocka_unit_test(closed_well), cmocka_unit_test(refused),
        cmocka_unit_test(rules),       cmocka_unit_test(unreachable), cmocka_unit_test(lossy),
        cmocka_unit_test(garbage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
