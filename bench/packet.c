/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.c - goodput of RDMA Writes over this library's own TCP, for each MTU and loss rate, compared with the
 * kernel's TCP.
 *
 * packet [MIB]: transfers MIB for each line, default 64. It creates its own network namespaces. Own TCP: two devices
 * with the kernel forwarding between them, and a thread for each end, on a processor of its own. Kernel's TCP: two
 * namespaces, and a process that carries packets between their TUN devices with the same loss; with CUBIC, as ours,
 * and with BBR where the kernel has it. `ratio` is relative to the faster of the two. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rddp/rddp.h>

#include "base/container.h"
#include "bench/lib/path.h"
#include "tcp/io/tun.h"
#include "tcp/io/tun_setup.h"

enum { PORT = 700, PIECE = 1 << 20, AHEAD = 8, CHANCES = 100000, RELAY_BATCH = 64 };

static uint8_t *source, *target;

static double seconds(void)
{
    return (double)path_now_us() / 1e6;
}

/* --- ours ---------------------------------------------------------------------------------------------------- */

struct way {
    const char *name;
    enum rddp_wire wire;
    bool aligned, markers;
};

struct end {
    struct rddp_context *context;
    struct rddp_event_channel *events;
    struct rddp_device *device;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
};

static void open_end(struct end *end, uint32_t net, uint32_t mtu, uint32_t lose, void *memory, size_t length)
{
    struct sockaddr_in own = path_address(net, 2, 0), neighbor = path_address(net, 1, 0);
    struct rddp_context_attr context;
    struct rddp_device_attr device;
    struct rddp_qp_attr qp;

    rddp_context_attr_init(&context);
    context.manual_progress = true;
    end->context = rddp_open(&context);
    end->events = rddp_create_event_channel(end->context);
    fcntl(rddp_event_channel_fd(end->events), F_SETFL, O_NONBLOCK);
    end->pd = rddp_alloc_pd(end->context);
    end->cq = rddp_create_cq(end->context, 64, NULL, NULL);
    end->mr = rddp_reg_mr(end->pd, memory, length,
                          RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_ZERO_BASED);
    rddp_qp_attr_init(&qp);
    qp.send_cq = qp.recv_cq = end->cq;
    end->qp = rddp_create_qp(end->pd, &qp);
    rddp_device_attr_init(&device);
    device.address = (struct sockaddr *)&own;
    device.neighbor = (struct sockaddr *)&neighbor;
    device.prefix = 24;
    device.mtu = mtu;
    device.lose = lose;
    end->device = rddp_open_device(end->context, &device);
    if (!end->qp || !end->mr || !end->device)
        path_die("rddp");
}

static void close_end(struct end *end)
{
    rddp_destroy_qp(end->qp);
    rddp_close_device(end->device);
    rddp_dereg_mr(end->mr);
    rddp_destroy_cq(end->cq);
    rddp_destroy_event_channel(end->events);
    rddp_dealloc_pd(end->pd);
    rddp_close(end->context);
}

/* Gives both ends a turn. Returns whether an event of this type has arrived at `of`. */
static bool turn(struct end *both, struct end *of, enum rddp_event_type type, struct rddp_request **request)
{
    struct rddp_event *event;
    bool came = false;

    for (int i = 0; i < 2; i++)
        rddp_progress(both[i].context, 0);
    while (!rddp_get_event(of->events, &event)) {
        came |= event->type == type;
        if (request)
            *request = event->request;
        rddp_ack_event(event);
    }
    return came;
}

static void connect_ends(struct end *both, const struct way *way)
{
    struct sockaddr_in to = path_address(2, 2, PORT);
    struct rddp_request *request = NULL;
    struct rddp_listener *listener;
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire.wire = way->wire;
    attr.wire.aligned = way->aligned;
    attr.wire.markers = way->markers;
    attr.wire.first_delay_ms = 0;
    attr.wire.device = both[1].device;
    listener = rddp_listen(both[1].events, (struct sockaddr *)&to, sizeof(to), 1, &attr.wire, NULL);
    attr.wire.device = both[0].device;
    if (!listener || rddp_connect(both[0].qp, both[0].events, (struct sockaddr *)&to, sizeof(to), &attr))
        path_die("rddp_connect");
    while (!turn(both, &both[1], RDDP_EVENT_CONNECT_REQUEST, &request))
        ;
    rddp_accept(request, both[1].qp, NULL);
    while (!turn(both, &both[0], RDDP_EVENT_ESTABLISHED, NULL))
        ;
    rddp_destroy_listener(listener);
}

/* Posts a piece to one of AHEAD places; a Send follows the last one. */
static void post(struct end *both, uint32_t piece, bool last)
{
    struct rddp_sge sge = {.length = PIECE, .lkey = rddp_mr_key(both[0].mr)};
    struct rddp_send_wr say = {.num_sge = 0, .opcode = RDDP_WR_SEND};
    struct rddp_send_wr wr = {.sg_list = &sge,
                              .num_sge = 1,
                              .opcode = RDDP_WR_RDMA_WRITE,
                              .send_flags = RDDP_SEND_SIGNALED,
                              .remote_addr = (uint64_t)(piece % AHEAD) * PIECE,
                              .rkey = rddp_mr_key(both[1].mr),
                              .next = last ? &say : NULL};

    if (rddp_post_send(both[0].qp, &wr, NULL))
        path_die("rddp_post_send");
}

struct sending {
    struct end *both;
    uint32_t pieces;
    atomic_bool over;
};

/* Counts completions of this kind. */
static uint32_t completed(struct end *end, enum rddp_wc_opcode opcode)
{
    uint32_t count = 0;
    struct rddp_wc wc;

    rddp_progress(end->context, 0);
    while (rddp_poll_cq(end->cq, 1, &wc) > 0) {
        if (wc.status)
            path_die(rddp_wc_status_str(wc.status));
        count += wc.opcode == opcode;
    }
    return count;
}

static void *send_all(void *of)
{
    struct sending *s = of;
    uint32_t posted = 0, done = 0;

    path_pin(0);
    while (!s->over) {
        for (; posted < s->pieces && posted - done < AHEAD; posted++)
            post(s->both, posted, posted + 1 == s->pieces);
        done += completed(&s->both[0], RDDP_WC_RDMA_WRITE);
    }
    return NULL;
}

static double carry(struct end *both, uint32_t pieces)
{
    struct sending sending = {.both = both, .pieces = pieces};
    struct rddp_recv_wr receive = {.num_sge = 0};
    double start, took;
    pthread_t thread;

    rddp_post_recv(both[1].qp, &receive, NULL);
    start = seconds();
    if (pthread_create(&thread, NULL, send_all, &sending))
        path_die("pthread_create");
    path_pin(1);
    while (!completed(&both[1], RDDP_WC_RECV))
        ;
    took = seconds() - start;
    sending.over = true;
    pthread_join(thread, NULL);
    path_unpin();
    return took;
}

static double cpu_seconds(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void run_ours(const struct way *way, uint32_t mtu, uint32_t lose, uint32_t pieces, double kernel)
{
    double gb = (double)pieces * PIECE / 1e9, took, cpu = cpu_seconds();
    struct rddp_qp_info in, out;
    struct end both[2];

    memset(target, 0, (size_t)AHEAD * PIECE);
    open_end(&both[0], 1, mtu, lose, source, PIECE);
    open_end(&both[1], 2, mtu, 0, target, (size_t)AHEAD * PIECE);
    connect_ends(both, way);
    took = carry(both, pieces);
    cpu = cpu_seconds() - cpu;
    for (uint32_t i = 0; i < AHEAD && i < pieces; i++)
        if (memcmp(target + (size_t)i * PIECE, source, PIECE) != 0)
            path_die("wrong data");
    rddp_query_qp(both[1].qp, &in);
    rddp_query_qp(both[0].qp, &out);
    printf("%-16s %6u %6.1f %8.2f %8.2f %8.2f %9.1f %10llu %8llu\n", way->name, mtu, lose / 1000.0, gb * 8 / took,
           gb * 8 / took / kernel, cpu / gb, (double)in.placed_early / 1e6, (unsigned long long)in.kept_max,
           (unsigned long long)out.sent_again);
    fflush(stdout);
    close_end(&both[0]);
    close_end(&both[1]);
}

/* --- the kernel's -------------------------------------------------------------------------------------------- */

static int open_tun(uint32_t net, uint32_t mtu)
{
    struct sockaddr_in own = path_address(net, 1, 0);
    int fd = tun_set_up(NULL, (struct sockaddr *)&own, 8, mtu, 0, NULL); /* the other end is in the same prefix */

    if (fd < 0) {
        errno = -fd;
        path_die("tun_set_up");
    }
    return fd;
}

static void carry_packets(int from, int to, uint32_t lose)
{
    static uint8_t packet[TUN_PACKET_MAX];
    static uint64_t random = 1;
    struct iovec whole = {packet, sizeof(packet)};
    struct tun_note note = {.partial = false};
    ssize_t n;

    for (int i = 0; i < RELAY_BATCH && (n = tun_recv(from, &whole, 1, &note)) > 0; i++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        if ((random >> 33) % CHANCES >= lose)
            (void)tun_send(to, &(struct span){packet, (uint32_t)n}, 1, &(struct tun_note){.partial = false});
    }
}

static _Noreturn void serve(void)
{
    struct sockaddr_in here = path_address(2, 1, PORT);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
    ssize_t n;

    if (bind(listener, (struct sockaddr *)&here, sizeof(here)) || listen(listener, 1))
        path_die("listen");
    fd = accept(listener, NULL, NULL);
    while ((n = read(fd, target, PIECE)) > 0)
        ;
    if (n < 0 || write(fd, "", 1) != 1)
        path_die("read");
    pause();
    exit(0);
}

/* A namespace with the other end, and the process that carries packets to it. It ends with its parent. */
static _Noreturn void relay(uint32_t mtu, uint32_t lose, int ready)
{
    int fd[2];

    fd[0] = open_tun(1, mtu);
    if (unshare(CLONE_NEWNET))
        path_die("unshare");
    fd[1] = open_tun(2, mtu);
    if (!fork())
        serve();
    if (write(ready, "", 1) != 1)
        path_die("write");
    for (;;) {
        struct pollfd polled[2] = {{fd[0], POLLIN, 0}, {fd[1], POLLIN, 0}};

        poll(polled, 2, -1);
        carry_packets(fd[0], fd[1], lose);
        carry_packets(fd[1], fd[0], lose);
    }
}

/* Returns the goodput; 0: the kernel has no such congestion control for us. */
static double run_kernel(const char *control, uint32_t mtu, uint32_t lose, uint32_t pieces)
{
    struct sockaddr_in to = path_address(2, 1, PORT);
    int ready[2], fd = socket(AF_INET, SOCK_STREAM, 0);
    bool usable = !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control));
    double start, took, gb = (double)pieces * PIECE / 1e9;
    uint8_t byte;
    pid_t pid;

    close(fd);
    if (!usable)
        return 0;
    if (pipe(ready) || (pid = fork()) < 0)
        path_die("fork");
    if (!pid) {
        setpgid(0, 0);
        relay(mtu, lose, ready[1]);
    }
    if (read(ready[0], &byte, 1) != 1)
        path_die("the relay process has ended");
    for (int i = 0; i < 100; i++, usleep(10000)) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control));
        if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
            break;
        close(fd);
    }
    start = seconds();
    for (uint32_t i = 0; i < pieces; i++)
        if (send(fd, source, PIECE, 0) != PIECE)
            path_die("send");
    shutdown(fd, SHUT_WR);
    if (read(fd, &byte, 1) != 1)
        path_die("read");
    took = seconds() - start;
    printf("kernel, %-8s %6u %6.1f %8.2f\n", control, mtu, lose / 1000.0, gb * 8 / took);
    fflush(stdout);
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(fd);
    close(ready[0]);
    close(ready[1]);
    return gb * 8 / took;
}

int main(int argc, char **argv)
{
    static const struct way ways[] = {
        {.name = "iWARP, aligned", .aligned = true},
        {.name = "iWARP, markers", .markers = true},
        {.name = "RDMA/TCP", .wire = RDDP_WIRE_RDMATCP},
        {.name = "iWARP, in order"},
    };
    static const uint32_t mtus[] = {1500, 9000, 65000}, losses[] = {0, 100, 1000, 5000};
    uint32_t pieces = argc > 1 ? (uint32_t)atoi(argv[1]) : 64;
    int fd;

    if ((unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET)) ||
        (fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY)) < 0 || write(fd, "1", 1) != 1)
        path_die("a network namespace");
    source = malloc(PIECE);
    target = malloc((size_t)AHEAD * PIECE);
    if (!source || !target)
        path_die("malloc");
    for (uint32_t i = 0; i < PIECE; i++)
        source[i] = (uint8_t)(i * 7 + i / 253);
    printf("                    MTU loss %%     Gb/s    ratio cpu s/GB  early MB   kept max    again\n");
    for (size_t m = 0; m < countof(mtus); m++)
        for (size_t l = 0; l < countof(losses); l++) {
            double cubic = run_kernel("cubic", mtus[m], losses[l], pieces);
            double bbr = run_kernel("bbr", mtus[m], losses[l], pieces), kernel = cubic > bbr ? cubic : bbr;

            for (size_t w = 0; w < countof(ways); w++)
                run_ours(&ways[w], mtus[m], losses[l], pieces, kernel);
        }
    return 0;
}
