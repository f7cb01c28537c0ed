/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_chaos.c - two threads with a hundred associations each over our own SCTP, aborted at random
 * during transfers: none harms another, and nothing is left behind. Also a flood of INITs. RDDP_LONG=1 runs it for a
 * minute. */
#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sctp/io/osctp_provider.h"
#include "base/bytes.h"
#include "loop/reactor.h"
#include "sctp/packet.h"
#include "tests/lib/descriptors.h"
#include "tests/lib/engine.h"
#include "tests/lib/sctp_end.h"

enum {
    PAIRS = 50,
    THREADS = 2,
    OCTETS = 20000,
    OPENED = 4 * PAIRS,
    PATIENCE_S = 100,
    LONG_S = 30,
    FLOOD = 3000,
    FLOOD_FIRST = 1000, /* INITs before memory is measured */
    SLACK = 1 << 20
};
#define BOTH SCTPDDP_RDMA_AND_NEGOTIATION

static const struct sctp_provider *const stack = &osctp;

struct end {
    struct sctp_conn conn;
    struct qp qp;
    void *buffer;
    struct cq cq;
    struct cq_entry ring[64];
    uint32_t written;
    bool used;
};

/* The state of a thread: one listening socket, one connecting socket, and their ends. */
struct world {
    struct sctp_socket *port[2];
    struct end *ends; /* 2 * PAIRS: the connecting ones first */
    struct pd pd;
    struct mr_table mrs;
    struct mr_slot table[16];
    struct mr source, target;
    uint8_t *memory; /* OCTETS, a guard, OCTETS, a guard */
    uint32_t seed, opened, completed, aborted, closed;
    uint16_t sctp_port;
    const char *trouble;
};

static const struct life_limits limits = {.startup_us = 5000000, .stall_us = 5000000, .close_us = 500000};

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* --- ends ---------------------------------------------------------------------------------------------------- */

static void open_end(struct world *w, struct end *e, bool active)
{
    const struct assoc_attr own = {
        .adaptation = BOTH, .batches = true, .ird = 1, .ord = 1, .seed = 1, .limits = limits};
    const struct qp_attr attr = {
        .pd = &w->pd,
        .mrs = &w->mrs,
        .send_cq = &e->cq,
        .recv_cq = &e->cq,
        .send_depth = 8,
        .recv_depth = 8,
        .send_sge = 1,
        .recv_sge = 1,
        .ird = 1,
        .ord = 1,
        .window = 8,
    };

    memset(e, 0, sizeof(*e));
    e->buffer = calloc(1, qp_size(&attr));
    cq_init(&e->cq, e->ring, 64, 64, NULL);
    qp_init(&e->qp, &attr, e->buffer);
    e->used = true;
    if (active)
        assert_int_equal(sctp_conn_init_active(&e->conn, &own, &e->qp, NULL, 0, reactor_now_us()), 0);
    else
        sctp_conn_init_passive(&e->conn, &own, reactor_now_us());
}

static void close_end(struct end *e)
{
    if (e->conn.assoc.life.state != CONN_OVER)
        assoc_lost(&e->conn.assoc, FAULT_LOST);
    sctp_conn_fini(&e->conn);
    qp_fini(&e->qp);
    free(e->buffer);
    e->used = false;
}

static struct end *find_free(struct world *w, unsigned from)
{
    for (unsigned i = from; i < from + PAIRS; i++)
        if (!w->ends[i].used)
            return &w->ends[i];
    return NULL;
}

static void connect_one(struct world *w)
{
    struct sockaddr_in to = loopback(w->sctp_port);
    struct end *e = find_free(w, 0);

    if (!e)
        return;
    open_end(w, e, true);
    if (sctp_end_connect(&e->conn, w->port[0], &to)) {
        w->trouble = "no association can be made";
        qp_fini(&e->qp);
        free(e->buffer);
        e->used = false;
        return;
    }
    w->opened++;
}

static void accept_all(struct world *w)
{
    struct sctp_assoc *sctp;

    while ((sctp = stack->accept(w->port[1]))) {
        struct end *e = find_free(w, PAIRS);

        if (!e) {
            stack->close(sctp);
            continue;
        }
        open_end(w, e, false);
        sctp_conn_attach(&e->conn, w->port[1], sctp);
    }
}

static void write_one(struct world *w, struct end *e)
{
    uint32_t at = chance(&w->seed) % OCTETS, length = chance(&w->seed) % (OCTETS - at + 1);
    struct rddp_sge sge = {.addr = at, .length = length, .lkey = 2};
    const struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_WRITE,
                                    .send_flags = RDDP_SEND_SIGNALED,
                                    .sg_list = &sge,
                                    .num_sge = 1,
                                    .rkey = 1,
                                    .remote_addr = at};

    qp_post_send(&e->qp, &wr);
}

static void turn_end(struct world *w, struct end *e)
{
    struct assoc_signal signal;
    struct rddp_wc wc;
    uint64_t now_us = reactor_now_us();

    sctp_end_serve(&e->conn);
    while (assoc_signal(&e->conn.assoc, &signal, now_us))
        ;
    if (e->conn.assoc.life.state == CONN_WAIT_ANSWER)
        assoc_accept(&e->conn.assoc, &e->qp, 1, 1, NULL, 0);
    if (e->conn.assoc.life.state == CONN_READY && chance(&w->seed) % 4 == 0)
        write_one(w, e);
    while (cq_poll(&e->cq, &wc, 1))
        w->completed += wc.status == RDDP_WC_SUCCESS;
    if (e->conn.assoc.life.state == CONN_OVER) {
        close_end(e);
        w->closed++;
    }
}

/* Ends one of them at random: by an abort, regularly, or by dropping it. */
static void befall(struct world *w)
{
    struct end *e = &w->ends[chance(&w->seed) % (2 * PAIRS)];
    const struct fault_note note = {.fault = FAULT_BOUNDS, .op = SEG_WRITE};

    if (!e->used)
        return;
    switch (chance(&w->seed) % 4) {
    case 0:
        qp_fail(&e->qp, &note); /* the association notices it and aborts */
        w->aborted++;
        break;
    case 1:
        assoc_close(&e->conn.assoc, reactor_now_us());
        break;
    case 2:
        close_end(e);
        w->aborted++;
        break;
    default:
        break;
    }
}

static void turn(struct world *w)
{
    struct pollfd fds[2] = {{w->port[0]->fd, POLLIN, 0}, {w->port[1]->fd, POLLIN, 0}};

    poll(fds, 2, 1);
    for (unsigned i = 0; i < 2; i++)
        stack->drive(w->port[i]);
    accept_all(w);
    for (unsigned i = 0; i < 2 * PAIRS; i++)
        if (w->ends[i].used)
            turn_end(w, &w->ends[i]);
}

/* --- a thread ------------------------------------------------------------------------------------------------ */

static struct sctp_socket *open_port(uint16_t udp_port)
{
    const struct sctp_attr attr = {.indication = BOTH, .udp_port = udp_port};
    struct sockaddr_in any = loopback(0);
    struct sctp_socket *port = NULL;
    const char *why;

    return stack->open((struct sockaddr *)&any, sizeof(any), &attr, &port, &why) ? NULL : port;
}

static uint16_t udp_port_of(struct sctp_socket *port)
{
    struct sockaddr_in local;
    socklen_t length = sizeof(local);

    assert_int_equal(getsockname(port->fd, (struct sockaddr *)&local, &length), 0);
    return ntohs(local.sin_port);
}

static void open_world(struct world *w, unsigned number)
{
    memset(w, 0, sizeof(*w));
    w->seed = 17 + number;
    w->sctp_port = (uint16_t)(5100 + number);
    w->memory = malloc(4 * OCTETS);
    memset(w->memory, 0x5a, 4 * OCTETS);
    mr_table_init(&w->mrs, w->table, 16);
    w->target = (struct mr){.base = w->memory, .length = OCTETS, .pd = &w->pd, .access = ALL_ACCESS};
    w->source = (struct mr){.base = w->memory + 2 * OCTETS, .length = OCTETS, .pd = &w->pd, .access = LOCAL};
    mr_insert(&w->mrs, &w->target, 1);
    mr_insert(&w->mrs, &w->source, 2);
    w->ends = calloc(2 * PAIRS, sizeof(*w->ends));
    w->port[1] = open_port(0);
    w->port[0] = w->port[1] ? open_port(udp_port_of(w->port[1])) : NULL;
    if (!w->ends || !w->port[0] || stack->listen(w->port[1], w->sctp_port))
        w->trouble = "no port";
}

/* Checks the guards around the memory that the peer may write. */
static void close_world(struct world *w)
{
    for (unsigned i = 0; i < 2 * PAIRS; i++)
        if (w->ends[i].used)
            close_end(&w->ends[i]);
    for (unsigned i = 0; i < 2; i++)
        stack->close_socket(w->port[i]);
    for (uint32_t i = OCTETS; i < 2 * OCTETS; i++)
        if (w->memory[i] != 0x5a)
            w->trouble = "an octet outside of the region was changed";
    free(w->ends);
    free(w->memory);
}

/* Runs until enough has happened, and for half a minute if requested. */
static void *live(void *user)
{
    struct world *w = user;
    uint64_t begun = reactor_now_us(), least = begun + (getenv("RDDP_LONG") ? LONG_S * 1000000ull : 0);

    while (!w->trouble &&
           (reactor_now_us() < least || w->opened < OPENED || w->completed < OPENED || w->aborted < PAIRS)) {
        if (reactor_now_us() > begun + PATIENCE_S * 1000000ull)
            w->trouble = "nothing happens";
        connect_one(w);
        turn(w);
        befall(w);
    }
    return NULL;
}

static void one_life(struct world *worlds)
{
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        open_world(&worlds[i], i);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, live, &worlds[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++)
        close_world(&worlds[i]);
    malloc_trim(0);
}

/* The first life leaves what the stack never frees; the second must add nothing to it. */
static void aborted_at_random(void **state)
{
    static struct world worlds[THREADS];
    unsigned fds = count_descriptors();
    size_t used;

    (void)state;
    one_life(worlds);
    used = mallinfo2().uordblks;
    one_life(worlds);
    for (unsigned i = 0; i < THREADS; i++) {
        printf("sctp_chaos: %u opened, %u aborted, %u closed, %u Writes\n", worlds[i].opened, worlds[i].aborted,
               worlds[i].closed, worlds[i].completed);
        if (worlds[i].trouble)
            fail_msg("%s", worlds[i].trouble);
    }
    assert_true(mallinfo2().uordblks < used + SLACK);
    assert_int_equal(count_descriptors(), fds);
}

/* --- a flood ------------------------------------------------------------------------------------------------- */

/* Writes an INIT to our port, from any address. */
static size_t write_init(uint8_t *to, uint16_t sctp_port)
{
    uint8_t p[32] = {0}, *q = put16(put16(p, 999), sctp_port);

    q = put32(put32(q, 0), 0);
    q = put16(put8(put8(q, 1), 0), 20);
    q = put32(put32(q, 7), 100000);
    put32(put16(put16(q, 4), 4), 1);
    packet_seal(to, p, sizeof(p));
    return sizeof(p);
}

/* From more addresses than are remembered: memory is bounded, and serious peers still connect. */
static void flood(void **state)
{
    static struct world w;
    uint8_t packet[32];
    size_t n, used = 0;
    struct sockaddr_in to;

    (void)state;
    open_world(&w, 7);
    assert_null(w.trouble);
    to = loopback(udp_port_of(w.port[1]));
    n = write_init(packet, w.sctp_port);
    for (unsigned i = 0; i < FLOOD; i++) {
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(sendto(fd, packet, n, 0, (struct sockaddr *)&to, sizeof(to)), n);
        close(fd);
        stack->drive(w.port[1]);
        if (i == FLOOD_FIRST)
            used = mallinfo2().uordblks;
    }
    assert_true(mallinfo2().uordblks < used + SLACK);
    connect_one(&w);
    for (uint64_t end = reactor_now_us() + 10000000; w.ends[0].conn.assoc.life.state != CONN_READY;) {
        assert_true(reactor_now_us() < end);
        turn(&w);
    }
    close_world(&w);
    assert_null(w.trouble);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aborted_at_random),
        cmocka_unit_test(flood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
