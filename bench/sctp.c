/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp.c [MTU [SECONDS]] - RDMA Writes over an association of rddp's own SCTP, on loopback, between two processes,
 * compared with kernel TCP doing the same work: a header and a payload of the same size, 32 of them in a call, read
 * into a region. One fact a line. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/reactor.h"
#include "sctp/io/osctp_provider.h"
#include "tests/lib/sctp_end.h"

enum { REGION = 4 << 20, DEPTH = 512, SCTP_PORT = 5001, BATCH = 32, SECOND_US = 1000000, HEAD = SCTPDDP_RDMA_HEAD };

/* What one side has transferred, and the time it took. */
struct result {
    double octets, messages, seconds, cpu_seconds;
};

static const struct sctp_provider *const stack = &osctp;
static uint8_t *memory;
static unsigned mtu = 1500, seconds = 2;

static double cpu_now(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void give_up(const char *what)
{
    fprintf(stderr, "sctp: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* --- an end of an association -------------------------------------------------------------------------------- */

struct end {
    struct sctp_socket *port;
    struct sctp_conn conn;
    struct qp qp;
    struct cq cq;
    struct cq_entry ring[4096];
    struct pd pd;
    struct mr_table mrs;
    struct mr_slot table[16];
    struct mr mr;
};

static struct end end;

static void open_end(bool active, uint16_t udp_port)
{
    const struct sctp_attr attr = {
        .indication = SCTPDDP_RDMA_AND_NEGOTIATION, .mtu = (uint16_t)mtu, .udp_port = udp_port};
    const struct assoc_attr own = {
        .adaptation = SCTPDDP_RDMA_AND_NEGOTIATION,
        .batches = true,
        .ird = 16,
        .ord = 16,
        .seed = 1,
        .limits = {.startup_us = 5 * SECOND_US, .stall_us = 5 * SECOND_US, .close_us = SECOND_US},
    };
    const struct qp_attr queues = {
        .pd = &end.pd,
        .mrs = &end.mrs,
        .send_cq = &end.cq,
        .recv_cq = &end.cq,
        .send_depth = DEPTH,
        .recv_depth = DEPTH,
        .send_sge = 1,
        .recv_sge = 1,
        .ird = 16,
        .ord = 16,
        .window = 256,
    };
    struct sockaddr_in any = loopback(0), to = loopback(SCTP_PORT);
    const char *why;

    mr_table_init(&end.mrs, end.table, 16);
    end.mr = (struct mr){.base = memory, .length = REGION, .pd = &end.pd, .access = 7};
    mr_insert(&end.mrs, &end.mr, 0x1234);
    cq_init(&end.cq, end.ring, 4096, 4096, NULL);
    qp_init(&end.qp, &queues, calloc(1, qp_size(&queues)));
    if (stack->open((struct sockaddr *)&any, sizeof(any), &attr, &end.port, &why))
        give_up("open");
    if (active) {
        if (sctp_conn_init_active(&end.conn, &own, &end.qp, NULL, 0, reactor_now_us()) ||
            sctp_end_connect(&end.conn, end.port, &to))
            give_up("connect");
    } else {
        sctp_conn_init_passive(&end.conn, &own, reactor_now_us());
        if (stack->listen(end.port, SCTP_PORT))
            give_up("listen");
    }
}

static void turn(bool wait)
{
    struct pollfd fd = {end.port->fd, POLLIN, 0};
    struct assoc_signal signal;

    if (wait)
        poll(&fd, 1, 1);
    if (!sctp_end_turn(&end.conn, end.port))
        return;
    while (assoc_signal(&end.conn.assoc, &signal, reactor_now_us()))
        ;
    if (end.conn.assoc.life.state == CONN_WAIT_ANSWER)
        assoc_accept(&end.conn.assoc, &end.qp, 16, 16, NULL, 0);
}

/* --- the two sides ------------------------------------------------------------------------------------------- */

static uint16_t own_port(void)
{
    struct sockaddr_in local;
    socklen_t length = sizeof(local);

    if (getsockname(end.port->fd, (struct sockaddr *)&local, &length))
        give_up("getsockname");
    return ntohs(local.sin_port);
}

static void receive_sctp(int out)
{
    struct result r = {0};
    uint16_t port;
    double begun = 0;

    open_end(false, 0);
    port = own_port();
    if (write(out, &port, sizeof(port)) != sizeof(port))
        give_up("write");
    while (end.conn.assoc.life.state != CONN_OVER) {
        turn(true);
        if (begun <= 0 && end.qp.rx_octets)
            begun = cpu_now();
    }
    r.octets = (double)end.qp.rx_octets;
    r.cpu_seconds = cpu_now() - begun;
    if (write(out, &r, sizeof(r)) != sizeof(r))
        give_up("write");
}

static void send_sctp(uint16_t port, uint32_t length, bool reads, struct result *r)
{
    struct rddp_sge sge = {.addr = 0, .length = length, .lkey = 0x1234};
    struct rddp_send_wr wr = {
        .opcode = reads ? RDDP_WR_RDMA_READ : RDDP_WR_RDMA_WRITE,
        .send_flags = RDDP_SEND_SIGNALED,
        .sg_list = &sge,
        .num_sge = 1,
        .rkey = 0x1234,
    };
    struct rddp_wc wc[64];
    uint64_t begun, done = 0;
    double cpu;
    bool wait = false;

    open_end(true, port);
    while (end.conn.assoc.life.state != CONN_READY) {
        if (end.conn.assoc.life.state == CONN_OVER)
            give_up("no association");
        turn(true);
    }
    begun = reactor_now_us();
    cpu = cpu_now();
    while (reactor_now_us() - begun < (uint64_t)seconds * SECOND_US && end.conn.assoc.life.state == CONN_READY) {
        uint32_t n;

        while (qp_post_send(&end.qp, &wr) == 0)
            ;
        turn(wait);
        n = cq_poll(&end.cq, wc, 64);
        wait = n == 0;
        for (; n; n = cq_poll(&end.cq, wc, 64))
            done += n;
    }
    r->seconds = 1e-6 * (double)(reactor_now_us() - begun);
    r->messages = (double)done;
    r->octets = (double)done * length;
    r->cpu_seconds = cpu_now() - cpu;
    assoc_close(&end.conn.assoc, reactor_now_us());
    while (end.conn.assoc.life.state != CONN_OVER)
        turn(true);
}

/* --- kernel TCP ---------------------------------------------------------------------------------------------- */

static void receive_tcp(int out)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
    struct sockaddr_in any = loopback(0);
    socklen_t length = sizeof(any);
    uint32_t payload;
    static uint8_t heads[BATCH][HEAD];
    struct iovec iov[2 * BATCH];
    struct result r = {0};
    double begun;
    ssize_t n;

    if (bind(listener, (struct sockaddr *)&any, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&any, &length))
        give_up("TCP");
    length = ntohs(any.sin_port);
    if (write(out, &(uint16_t){(uint16_t)length}, 2) != 2)
        give_up("write");
    fd = accept(listener, NULL, NULL);
    if (recv(fd, &payload, sizeof(payload), MSG_WAITALL) != sizeof(payload))
        give_up("recv");
    for (unsigned i = 0; i < BATCH; i++) {
        iov[2 * i] = (struct iovec){heads[i], HEAD};
        iov[2 * i + 1] = (struct iovec){memory + (size_t)i * payload, payload};
    }
    begun = cpu_now();
    while ((n = readv(fd, iov, 2 * BATCH)) > 0)
        r.octets += (double)n * payload / (payload + HEAD);
    r.cpu_seconds = cpu_now() - begun;
    if (write(out, &r, sizeof(r)) != sizeof(r))
        give_up("write");
}

static void send_tcp(uint16_t port, uint32_t payload, struct result *r)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = loopback(port);
    static uint8_t heads[BATCH][HEAD];
    struct iovec iov[2 * BATCH];
    uint64_t begun;
    double cpu;

    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) || write(fd, &payload, sizeof(payload)) != sizeof(payload))
        give_up("connect");
    for (unsigned i = 0; i < BATCH; i++) {
        iov[2 * i] = (struct iovec){heads[i], HEAD};
        iov[2 * i + 1] = (struct iovec){memory + (size_t)i * payload, payload};
    }
    begun = reactor_now_us();
    cpu = cpu_now();
    while (reactor_now_us() - begun < (uint64_t)seconds * SECOND_US) {
        ssize_t n = writev(fd, iov, 2 * BATCH);

        if (n <= 0)
            give_up("writev");
        r->octets += (double)n * payload / (payload + HEAD);
    }
    r->seconds = 1e-6 * (double)(reactor_now_us() - begun);
    r->messages = r->octets / payload;
    r->cpu_seconds = cpu_now() - cpu;
    close(fd);
}

/* --- both ---------------------------------------------------------------------------------------------------- */

enum job { JOB_TCP, JOB_WRITE, JOB_READ };

static struct result run(enum job job, const char *name, uint32_t length)
{
    struct result tx = {0}, rx = {0};
    uint16_t port;
    int ends[2];
    pid_t child = -1;

    if (pipe(ends) || (child = fork()) < 0)
        give_up("fork");
    if (!child) {
        if (job == JOB_TCP)
            receive_tcp(ends[1]);
        else
            receive_sctp(ends[1]);
        _exit(0);
    }
    if (read(ends[0], &port, sizeof(port)) != sizeof(port))
        give_up("read");
    if (job == JOB_TCP)
        send_tcp(port, length, &tx);
    else
        send_sctp(port, length, job == JOB_READ, &tx);
    if (read(ends[0], &rx, sizeof(rx)) != sizeof(rx))
        give_up("read");
    waitpid(child, NULL, 0);
    printf("%-7s %-5s MTU %5u  %8u octets  %7.0f MB/s  %9.0f messages/s  %6.0f MB per CPU second here  %6.0f there\n",
           job == JOB_TCP ? "kernel" : "own", name, mtu, length, 1e-6 * tx.octets / tx.seconds,
           tx.messages / tx.seconds, 1e-6 * tx.octets / tx.cpu_seconds, 1e-6 * tx.octets / rx.cpu_seconds);
    fflush(stdout);
    return tx;
}

/* Runs each job in its own process, so that none finds the memory of another. */
static void apart(enum job job, const char *name, uint32_t length)
{
    pid_t child = fork();
    int status = 1;

    if (!child) {
        run(job, name, length);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (status)
        exit(1);
}

int main(int argc, char **argv)
{
    mtu = argc > 1 ? (unsigned)atoi(argv[1]) : mtu;
    seconds = argc > 2 ? (unsigned)atoi(argv[2]) : seconds;
    if (argc > 3 || mtu < SCTP_MTU_MIN || mtu > SCTP_MTU_MAX || !seconds || seconds > 600) {
        fprintf(stderr, "usage: sctp [MTU [SECONDS]]\n");
        return 2;
    }
    memory = aligned_alloc(4096, REGION);
    if (!memory)
        give_up("memory");
    memset(memory, 1, REGION);
    apart(JOB_TCP, "TCP", mtu - 20 - 8 - 12 - 16 - HEAD);
    apart(JOB_WRITE, "Write", 65536);
    apart(JOB_READ, "Read", 65536);
    apart(JOB_WRITE, "Write", 64);
    return 0;
}
