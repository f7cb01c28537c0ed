/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.c - a process with memory that anybody may write to, connections to it, and statistics of many rounds. */
#include "bench/lib/ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIST = 64, INLINE = 64, BACKLOG = 16 };

struct memory_name {
    int port;
    uint32_t key;
    uint64_t at;
};

void ends_fail(const char *what, int error)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(error < 0 ? -error : errno));
    exit(1);
}

void ends_arguments(int argc, char **argv, int *rounds, double *seconds)
{
    *rounds = argc > 1 ? atoi(argv[1]) : 5;
    *seconds = argc > 2 ? atof(argv[2]) : 1;
    if (*rounds < 1 || *rounds > ENDS_ROUNDS_MAX || *seconds <= 0)
        exit(2);
}

uint64_t ends_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

double ends_cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double ends_at(double *values, size_t n, double part)
{
    size_t at = (size_t)((double)n * part);

    if (!n)
        return 0;
    qsort(values, n, sizeof(*values), compare);
    return values[at < n ? at : n - 1];
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void open_objects(struct end *end, struct rddp_context *context, uint32_t loops)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.loops = loops;
    attr.manual_progress = !loops;
    end->context = context ? context : rddp_open(&attr);
    if (!end->context)
        ends_fail("rddp_open", 0);
    end->pd = rddp_alloc_pd(end->context);
    end->cq = rddp_create_cq(end->context, 2 * ENDS_DEPTH, NULL, NULL);
    end->events = rddp_create_event_channel(end->context);
    end->memory = aligned_alloc(4096, ENDS_OCTETS);
    if (!end->pd || !end->cq || !end->events || !end->memory)
        ends_fail("objects", 0);
    memset(end->memory, 0, ENDS_OCTETS);
    end->mr = rddp_reg_mr(end->pd, end->memory, ENDS_OCTETS,
                          RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ);
    if (!end->mr)
        ends_fail("rddp_reg_mr", 0);
}

static struct rddp_qp *make_qp(struct end *end)
{
    struct rddp_qp_attr attr;
    struct rddp_qp *qp;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = end->cq;
    attr.max_send_wr = ENDS_DEPTH;
    qp = rddp_create_qp(end->pd, &attr);
    if (!qp)
        ends_fail("rddp_create_qp", 0);
    return qp;
}

/* --- the other process ------------------------------------------------------------------------------------------- */

static void answer_first(struct end *end, int from, void (*answer)(struct end *))
{
    struct memory_name name;

    if (!answer || read(from, &name, sizeof(name)) != sizeof(name))
        return;
    end->peer_at = name.at;
    end->peer_key = name.key;
    answer(end);
}

_Noreturn static void accept_all(int from, int to, void (*answer)(struct end *))
{
    struct sockaddr_in addr = loopback(0);
    struct sockaddr_storage bound;
    struct rddp_listener *listener;
    struct rddp_wire_attr wire;
    struct memory_name name;
    struct rddp_event *event;
    struct end end = {.every = 1};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_objects(&end, NULL, 1);
    rddp_wire_attr_init(&wire);
    wire.first_delay_ms = 0;
    listener = rddp_listen(end.events, (struct sockaddr *)&addr, sizeof(addr), BACKLOG, &wire, NULL);
    if (!listener)
        ends_fail("rddp_listen", 0);
    rddp_listener_addr(listener, &bound);
    name = (struct memory_name){ntohs(((struct sockaddr_in *)&bound)->sin_port), rddp_mr_key(end.mr),
                                (uint64_t)(uintptr_t)end.memory};
    if (write(to, &name, sizeof(name)) != sizeof(name))
        exit(1);
    while (rddp_get_event(end.events, &event) == 0) {
        if (event->type == RDDP_EVENT_CONNECT_REQUEST)
            rddp_accept(event->request, end.qp = make_qp(&end), NULL);
        else if (event->type == RDDP_EVENT_ESTABLISHED)
            answer_first(&end, from, answer);
        rddp_ack_event(event);
    }
    exit(1);
}

void ends_start(struct ends_peer *peer, void (*answer)(struct end *end))
{
    struct memory_name name;
    int to[2], from[2];

    if (pipe(to) || pipe(from))
        ends_fail("pipe", 0);
    peer->pid = fork();
    if (!peer->pid)
        accept_all(to[0], from[1], answer);
    if (peer->pid < 0 || read(from[0], &name, sizeof(name)) != sizeof(name))
        ends_fail("the other process", 0);
    close(to[0]);
    close(from[1]);
    peer->to = to[1];
    peer->from = from[0];
    peer->port = name.port;
    peer->key = name.key;
    peer->at = name.at;
}

void ends_stop(struct ends_peer *peer)
{
    kill(peer->pid, SIGKILL);
    waitpid(peer->pid, NULL, 0);
    close(peer->to);
    close(peer->from);
}

/* --- this one ---------------------------------------------------------------------------------------------------- */

void ends_open(struct end *end, const struct ends_peer *peer, struct rddp_context *context, uint32_t loops)
{
    struct sockaddr_in addr = loopback(peer->port);
    struct rddp_conn_attr attr;
    struct rddp_event *event;
    int error;

    *end = (struct end){.peer_at = peer->at, .peer_key = peer->key, .every = 1};
    open_objects(end, context, loops);
    end->qp = make_qp(end);
    rddp_conn_attr_init(&attr);
    attr.wire.first_delay_ms = 0;
    error = rddp_connect(end->qp, end->events, (struct sockaddr *)&addr, sizeof(addr), &attr);
    if (error)
        ends_fail("rddp_connect", error);
    error = rddp_get_event(end->events, &event);
    if (error || event->type != RDDP_EVENT_ESTABLISHED)
        ends_fail("connection", error);
    rddp_ack_event(event);
}

void ends_tell(const struct end *end, const struct ends_peer *peer)
{
    struct memory_name name = {0, rddp_mr_key(end->mr), (uint64_t)(uintptr_t)end->memory};

    if (write(peer->to, &name, sizeof(name)) != sizeof(name))
        ends_fail("pipe", 0);
}

void ends_close(struct end *end, bool context_too)
{
    rddp_destroy_qp(end->qp);
    rddp_dereg_mr(end->mr);
    rddp_destroy_cq(end->cq);
    rddp_destroy_event_channel(end->events);
    rddp_dealloc_pd(end->pd);
    if (context_too)
        rddp_close(end->context);
    free(end->memory);
}

void ends_write(struct end *end, uint32_t n, uint32_t length)
{
    struct rddp_sge sge = {(uintptr_t)end->memory, length, rddp_mr_key(end->mr)};
    struct rddp_send_wr wr[LIST], *bad;
    int error;

    for (uint32_t i = 0; i < n; i++)
        wr[i] = (struct rddp_send_wr){
            .next = i + 1 < n ? &wr[i + 1] : NULL,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = RDDP_WR_RDMA_WRITE,
            .send_flags =
                (++end->posted % end->every ? 0 : RDDP_SEND_SIGNALED) | (length <= INLINE ? RDDP_SEND_INLINE : 0),
            .remote_addr = end->peer_at,
            .rkey = end->peer_key,
        };
    error = rddp_post_send(end->qp, wr, &bad);
    if (error)
        ends_fail("rddp_post_send", error);
}

int ends_poll(struct end *end, int n)
{
    struct rddp_wc wc[LIST];
    int got = rddp_poll_cq(end->cq, n, wc);

    if (got < 0)
        ends_fail("rddp_poll_cq", got);
    for (int i = 0; i < got; i++)
        if (wc[i].status != RDDP_WC_SUCCESS)
            ends_fail(rddp_wc_status_str(wc[i].status), -EIO);
    return got;
}

void ends_poll_always(struct end *end)
{
    while (true)
        ends_poll(end, LIST);
}

uint64_t ends_write_for(struct end *end, uint32_t list, uint32_t length, double seconds)
{
    uint64_t end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9), done = 0;

    while (ends_now_ns() < end_ns) {
        while (end->posted - done + list <= ENDS_UNDER_WAY)
            ends_write(end, list, length);
        done += (uint64_t)ends_poll(end, LIST) * end->every;
    }
    return done;
}
