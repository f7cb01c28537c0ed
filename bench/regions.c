/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* regions.c [CONNECTIONS...] - the cost of registering and deregistering memory with this many idle connections in the
 * same context (default: 1, 100 and 5000). One line each: medians in microseconds. */
#include <netinet/in.h>
#include <poll.h>
#include <rddp/rddp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { SAMPLES = 2001, SMALL = 4096, LARGE = 1 << 20, BACKLOG = 1024, WAIT_MS = 20000 };

static struct {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_event_channel *events;
    struct rddp_listener *listener;
    struct sockaddr_storage addr;
    struct rddp_qp **qp;
    unsigned qps;
} b;

static void *need(void *object, const char *what)
{
    if (!object) {
        perror(what);
        exit(1);
    }
    return object;
}

static void need_zero(int error, const char *what)
{
    if (error) {
        fprintf(stderr, "%s: %s\n", what, strerror(-error));
        exit(1);
    }
}

static struct rddp_qp *new_qp(void)
{
    struct rddp_qp_attr attr;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = b.cq;
    attr.max_send_wr = attr.max_recv_wr = attr.max_rd_atomic = 1;
    return b.qp[b.qps++] = need(rddp_create_qp(b.pd, &attr), "rddp_create_qp");
}

/* Connects two queue pairs of this process. */
static void connect_one(void)
{
    struct pollfd fd = {.fd = rddp_event_channel_fd(b.events), .events = POLLIN};
    struct rddp_conn_attr attr;
    struct rddp_event *event;

    rddp_conn_attr_init(&attr);
    attr.wire.first_delay_ms = 0;
    need_zero(rddp_connect(new_qp(), b.events, (struct sockaddr *)&b.addr, sizeof(struct sockaddr_in), &attr),
              "rddp_connect");
    for (unsigned established = 0; established < 2;) {
        if (poll(&fd, 1, WAIT_MS) != 1 || rddp_get_event(b.events, &event))
            need(NULL, "rddp_get_event");
        if (event->type == RDDP_EVENT_CONNECT_REQUEST)
            need_zero(rddp_accept(event->request, new_qp(), NULL), "rddp_accept");
        else if (event->type == RDDP_EVENT_ESTABLISHED)
            established++;
        else
            need_zero(event->status ? event->status : -1, rddp_event_str(event->type));
        rddp_ack_event(event);
    }
}

static void set_up(unsigned connections)
{
    struct rddp_context_attr attr;

    memset(&b, 0, sizeof(b));
    b.addr.ss_family = AF_INET;
    b.qp = need(calloc(2 * (size_t)connections, sizeof(struct rddp_qp *)), "calloc");
    rddp_context_attr_init(&attr);
    b.context = need(rddp_open(&attr), "rddp_open");
    b.pd = need(rddp_alloc_pd(b.context), "rddp_alloc_pd");
    b.cq = need(rddp_create_cq(b.context, 65536, NULL, NULL), "rddp_create_cq");
    b.events = need(rddp_create_event_channel(b.context), "rddp_create_event_channel");
    b.listener =
        need(rddp_listen(b.events, (struct sockaddr *)&b.addr, sizeof(struct sockaddr_in), BACKLOG, NULL, NULL),
             "rddp_listen");
    rddp_listener_addr(b.listener, &b.addr);
    for (unsigned i = 0; i < connections; i++)
        connect_one();
}

static void tear_down(void)
{
    for (unsigned i = 0; i < b.qps; i++)
        rddp_destroy_qp(b.qp[i]);
    rddp_destroy_listener(b.listener);
    rddp_destroy_event_channel(b.events);
    rddp_destroy_cq(b.cq);
    rddp_dealloc_pd(b.pd);
    rddp_close(b.context);
    free(b.qp);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *c)
{
    double x = *(const double *)a, y = *(const double *)c;

    return (x > y) - (x < y);
}

static double median(double *sample)
{
    qsort(sample, SAMPLES, sizeof(*sample), compare);
    return sample[SAMPLES / 2];
}

static void measure(unsigned connections, uint8_t *memory, size_t octets, unsigned access, const char *what)
{
    static double reg[SAMPLES], dereg[SAMPLES];

    for (int i = 0; i < SAMPLES; i++) {
        double before = now_us(), between;
        struct rddp_mr *mr = need(rddp_reg_mr(b.pd, memory, octets, access), "rddp_reg_mr");

        between = now_us();
        rddp_dereg_mr(mr);
        reg[i] = between - before;
        dereg[i] = now_us() - between;
    }
    printf("%u connections, %zu octets %s: register %.2f us, deregister %.2f us\n", connections, octets, what,
           median(reg), median(dereg));
    fflush(stdout);
}

static void run(unsigned connections)
{
    uint8_t *memory = need(aligned_alloc(4096, LARGE), "aligned_alloc");
    struct rlimit files;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    memset(memory, 1, LARGE);
    set_up(connections);
    measure(connections, memory, SMALL, RDDP_ACCESS_REMOTE_READ, "to read");
    measure(connections, memory, SMALL, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE, "to write");
    measure(connections, memory, LARGE, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE, "to write");
    tear_down();
    free(memory);
}

int main(int argc, char **argv)
{
    static const unsigned usual[] = {1, 100, 5000};

    for (int i = 1; i < argc; i++)
        run((unsigned)strtoul(argv[i], NULL, 10));
    for (size_t i = 0; argc == 1 && i < sizeof(usual) / sizeof(usual[0]); i++)
        run(usual[i]);
    return 0;
}
