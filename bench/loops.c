/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loops.c - Writes of 8 octets by several workers, each of which drives both ends of a connection of its own.
 *
 * loops measure [SECONDS [LIST]]: JSON: messages a second of one worker and of two, and how long a cache line takes
 * from one processor to the other. loops trace LOOPS own|one TURNS LIST: the workers take turns, for bench/loops.py,
 * which reads their memory accesses and says what several processors would have had to pass to each other.
 *
 * `own`: each worker has CQs of its own; `one`: all share one at each end; `apart`: contexts of its own, too. */
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/spin.h"
#include "bench/lib/ends.h"
#include "drive/loops.h"

enum { WORKERS_MAX = 16, LIST_MAX = 32, OCTETS = 64, LINE = 64, SETTLE_US = 500 };

/* One end of all connections of a context. */
struct hub {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_event_channel *events;
};

struct worker {
    _Alignas(2 * LINE) struct rddp_cq *cq[2];
    struct rddp_qp *qp[2];
    struct rddp_mr *mr[2];
    uint8_t *memory[2];
    _Atomic uint32_t completed; /* by whichever worker polled it */
    uint32_t posted;
    uint64_t messages;
    unsigned number;
    sem_t go;
    struct worker *before, *next; /* whose turn it was, and is then */
    pid_t id;
    pthread_t thread;
};

static struct worker workers[WORKERS_MAX];
static unsigned turns;
static uint32_t list = LIST_MAX;
static _Atomic bool over;

/* A store to mark[i * LINE] says that worker i begins, one to mark[WORKERS_MAX * LINE] that none runs. The address is
 * fixed, for what reads the trace. */
#define MARK_AT 0x200000000
static volatile char *mark;

static void hub_open(struct hub *hub, uint32_t loops, bool one)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.loops = loops;
    *hub = (struct hub){.context = rddp_open(&attr)};
    if (!hub->context)
        ends_fail("rddp_open", 0);
    hub->pd = rddp_alloc_pd(hub->context);
    hub->events = rddp_create_event_channel(hub->context);
    hub->cq = one ? rddp_create_cq(hub->context, 4096, NULL, NULL) : NULL;
}

static void worker_open(struct worker *worker, struct hub *hub, int end)
{
    struct rddp_qp_attr attr;

    worker->cq[end] = hub->cq ? hub->cq : rddp_create_cq(hub->context, 4 * LIST_MAX, NULL, NULL);
    worker->memory[end] = aligned_alloc(4096, 4096);
    memset(worker->memory[end], 0, 4096);
    worker->mr[end] =
        rddp_reg_mr(hub->pd, worker->memory[end], 4096, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = worker->cq[end];
    worker->qp[end] = rddp_create_qp(hub->pd, &attr);
    if (!worker->mr[end] || !worker->qp[end])
        ends_fail("objects", 0);
}

static struct rddp_event *hub_event(struct hub *hub, enum rddp_event_type type)
{
    struct rddp_event *event;
    int error = rddp_get_event(hub->events, &event);

    if (error || event->type != type)
        ends_fail("event", error);
    return event;
}

/* One after the other, so that worker i has the i-th loop at both ends. */
static void connect_workers(struct hub hub[2], unsigned first, unsigned n)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_listener *listener =
        rddp_listen(hub[1].events, (struct sockaddr *)&any, sizeof(any), WORKERS_MAX, NULL, NULL);
    struct sockaddr_storage bound;

    if (!listener)
        ends_fail("rddp_listen", 0);
    rddp_listener_addr(listener, &bound);
    for (unsigned i = first; i < first + n; i++) {
        struct rddp_event *event;

        worker_open(&workers[i], &hub[0], 0);
        worker_open(&workers[i], &hub[1], 1);
        if (rddp_connect(workers[i].qp[0], hub[0].events, (struct sockaddr *)&bound, sizeof(any), NULL))
            ends_fail("rddp_connect", 0);
        event = hub_event(&hub[1], RDDP_EVENT_CONNECT_REQUEST);
        rddp_accept(event->request, workers[i].qp[1], NULL);
        rddp_ack_event(event);
        rddp_ack_event(hub_event(&hub[0], RDDP_EVENT_ESTABLISHED));
        rddp_ack_event(hub_event(&hub[1], RDDP_EVENT_ESTABLISHED));
    }
}

static void post_list(struct worker *worker, uint8_t number)
{
    struct rddp_sge sge = {(uintptr_t)worker->memory[0], 8, rddp_mr_key(worker->mr[0])};
    struct rddp_send_wr wr[LIST_MAX];
    int error;

    worker->memory[0][0] = number;
    for (uint32_t i = 0; i < list; i++)
        wr[i] = (struct rddp_send_wr){
            .wr_id = worker->number,
            .next = i + 1 < list ? &wr[i + 1] : NULL,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = RDDP_WR_RDMA_WRITE,
            .send_flags = RDDP_SEND_SIGNALED | RDDP_SEND_INLINE,
            .remote_addr = (uintptr_t)worker->memory[1] + i % (4096 / OCTETS) * OCTETS,
            .rkey = rddp_mr_key(worker->mr[1]),
        };
    error = rddp_post_send(worker->qp[0], wr, NULL);
    if (error)
        ends_fail("rddp_post_send", error);
    worker->posted += list;
}

static void poll_end(struct worker *worker, int end)
{
    struct rddp_wc wc[LIST_MAX];

    for (int i = 0, n = rddp_poll_cq(worker->cq[end], LIST_MAX, wc); i < n; i++) {
        if (wc[i].status)
            ends_fail(rddp_wc_status_str(wc[i].status), 0);
        atomic_fetch_add_explicit(&workers[wc[i].wr_id].completed, 1, memory_order_relaxed);
    }
}

/* A list, until it is complete here and has arrived there. */
static void work(struct worker *worker, uint8_t number)
{
    const volatile uint8_t *last = &worker->memory[1][(list - 1) * OCTETS];

    post_list(worker, number);
    while (*last != number || worker->completed != worker->posted) {
        poll_end(worker, 1);
        poll_end(worker, 0);
    }
    worker->messages += list;
}

/* --- trace -------------------------------------------------------------------------------------------------------- */

/* Waits until a worker sleeps in sem_wait(), where it touches no memory. */
static void await_sleep(const struct worker *worker)
{
    char path[64], text[128];
    unsigned long number = 0, address = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", worker->id);
    while (number != SYS_futex || address - (uintptr_t)&worker->go >= sizeof(worker->go)) {
        FILE *file = fopen(path, "r");

        if (!file || !fgets(text, sizeof(text), file))
            ends_fail(path, 0);
        fclose(file);
        if (sscanf(text, "%lu %lx", &number, &address) != 2)
            number = 0; /* it is running */
        usleep(SETTLE_US);
    }
}

/* Between the two marks nothing else runs. */
static void *take_turns(void *arg)
{
    struct worker *worker = arg;

    worker->id = (pid_t)syscall(SYS_gettid);
    for (unsigned i = 0; i < turns; i++) {
        sem_wait(&worker->go);
        if (worker->before != worker && (i || worker->number))
            await_sleep(worker->before);
        mark[worker->number * LINE] = 1;
        work(worker, (uint8_t)(i + 1));
        mark[WORKERS_MAX * LINE] = 1;
        sem_post(&worker->next->go);
    }
    sem_wait(&worker->go); /* others are watched until the end */
    return NULL;
}

static void trace(unsigned loops, bool one)
{
    struct hub hub[2];

    hub_open(&hub[0], loops, one);
    hub_open(&hub[1], loops, one);
    connect_workers(hub, 0, loops);
    for (int end = 0; end < 2; end++)
        loops_stop(hub[end].context); /* the workers alone are traced: they drive what they poll */
    mark =
        mmap((void *)MARK_AT, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mark == MAP_FAILED)
        ends_fail("mmap", 0);
    for (unsigned i = 0; i < loops; i++) {
        sem_init(&workers[i].go, 0, 0);
        workers[i].next = &workers[(i + 1) % loops];
        workers[i].before = &workers[(i + loops - 1) % loops];
        if (pthread_create(&workers[i].thread, NULL, take_turns, &workers[i]))
            ends_fail("pthread_create", 0);
    }
    sem_post(&workers[0].go);
    pthread_join(workers[0].thread, NULL); /* woken once more by the last of all */
    _exit(0);
}

/* --- measure ------------------------------------------------------------------------------------------------------ */

static void pin(unsigned processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void *run(void *arg)
{
    struct worker *worker = arg;

    pin(worker->number);
    for (uint8_t number = 1; !over; number++)
        work(worker, number);
    return NULL;
}

/* In a process of its own, so that nothing is left of the row before. */
static double measure(unsigned n, unsigned loops, bool one, bool apart, double seconds)
{
    double value = 0;
    int fds[2];

    if (pipe(fds))
        ends_fail("pipe", 0);
    fflush(NULL);
    if (!fork()) {
        struct hub hub[WORKERS_MAX][2];
        uint64_t messages = 0, begun;

        for (unsigned i = 0; i < (apart ? n : 1); i++) {
            hub_open(&hub[i][0], loops, one);
            hub_open(&hub[i][1], loops, one);
            connect_workers(hub[i], i, apart ? 1 : n);
        }
        begun = ends_now_ns();
        for (unsigned i = 0; i < n; i++)
            pthread_create(&workers[i].thread, NULL, run, &workers[i]);
        usleep((useconds_t)(seconds * 1e6));
        over = true;
        for (unsigned i = 0; i < n; i++) {
            pthread_join(workers[i].thread, NULL);
            messages += workers[i].messages;
        }
        value = (double)messages / ((double)(ends_now_ns() - begun) / 1e9);
        _exit(write(fds[1], &value, sizeof(value)) != sizeof(value));
    }
    close(fds[1]);
    if (read(fds[0], &value, sizeof(value)) != sizeof(value))
        ends_fail("a row", 0);
    close(fds[0]);
    return value;
}

static _Atomic uint32_t ball __attribute__((aligned(2 * LINE)));
enum { BOUNCES = 200000 };

static void *bounce(void *arg)
{
    pin(1);
    (void)arg;
    for (uint32_t i = 1; i < 2 * BOUNCES; i += 2) {
        while (ball != i)
            spin_pause();
        ball = i + 1;
    }
    return NULL;
}

/* A bounce is one line read by the other side, and its copy there made the only one: two moves. */
static double line_ns(void)
{
    pthread_t thread;
    uint64_t begun;

    ball = 0;
    pin(0);
    if (pthread_create(&thread, NULL, bounce, NULL))
        ends_fail("pthread_create", 0);
    begun = ends_now_ns();
    for (uint32_t i = 0; i < 2 * BOUNCES; i += 2) {
        ball = i + 1;
        while (ball != i + 2)
            spin_pause();
    }
    begun = ends_now_ns() - begun;
    pthread_join(thread, NULL);
    return (double)begun / (2 * BOUNCES) / 2;
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? atof(argv[2]) : 0.5;
    unsigned loops;

    for (unsigned i = 0; i < WORKERS_MAX; i++)
        workers[i].number = i;
    if (argc == 6 && !strcmp(argv[1], "trace")) {
        loops = (unsigned)atoi(argv[2]);
        turns = (unsigned)atoi(argv[4]);
        list = (uint32_t)atoi(argv[5]);
        if (loops - 1 >= WORKERS_MAX || turns > 200 || list - 1 >= LIST_MAX)
            return 2;
        trace(loops, !strcmp(argv[3], "one"));
    }
    list = argc > 3 ? (uint32_t)atoi(argv[3]) : LIST_MAX;
    if (argc < 2 || strcmp(argv[1], "measure") || seconds <= 0 || list - 1 >= LIST_MAX)
        return 2;
    printf("{\"line_ns\": %.1f", line_ns());
    printf(", \"one_worker\": %.6g", measure(1, 1, false, false, seconds));
    printf(", \"two_own\": %.6g", measure(2, 2, false, false, seconds));
    printf(", \"two_one_cq\": %.6g", measure(2, 2, true, false, seconds));
    printf(", \"two_one_loop\": %.6g", measure(2, 1, false, false, seconds));
    printf(", \"two_apart\": %.6g}\n", measure(2, 1, false, true, seconds));
    return 0;
}
