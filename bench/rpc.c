/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc.c - RPC-over-RDMA over loopback: calls a second and latency of NULL, octets a second and processor time of READ
 * and WRITE; alternating with `rddp perf` if -x names it. One fact a line. */
#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "rpc/requester.h"
#include "rpc/responder.h"

enum {
    CALL_HEAD = 40,
    REPLY_HEAD = 24,
    SLOTS_MAX = 128,
    SAMPLES_MAX = 1 << 20,
    PROGRAM = 0x20000002,
    SLICES = 20,
    IDLE_MAX = 250
};
enum proc { PROC_NULL, PROC_READ, PROC_WRITE };

static struct {
    double seconds;
    unsigned rounds, idle;
    int spin_us; /* -1: the default of both ends */
    uint32_t size;
    bool processes;
    const char *perf; /* the rddp command to run alternately */
} options = {.seconds = 1, .rounds = 3, .spin_us = -1, .size = 1 << 20};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* --- the responder --------------------------------------------------------------------------------------------- */

struct server {
    struct responder *responder;
    uint8_t *data; /* what READ returns */
    atomic_bool stop;
    pthread_t thread;
    pid_t pid;
};

static void nothing(void *user)
{
    (void)user;
}

static void handle(void *user, struct responder_call *call)
{
    struct server *server = user;
    uint8_t message[REPLY_HEAD + 4], *p = message;
    uint32_t proc = call->length >= CALL_HEAD ? get32(call->payload + 20) : PROC_NULL;
    struct reply reply = {.payload = message, .length = REPLY_HEAD};

    p = put32(put32(put32(p, call->length >= 4 ? get32(call->payload) : 0), 1), 0);
    p = put32(put32(put32(p, 0), 0), 0);
    if (proc == PROC_READ) {
        put32(p, options.size);
        reply.length += 4;
        reply.items = 1;
        reply.item[0] = (struct stream_item){.position = REPLY_HEAD + 4, .length = options.size, .data = server->data};
        reply.release = nothing;
    }
    call_reply(call, &reply);
}

static void *serve(void *user)
{
    struct server *server = user;

    while (!atomic_load(&server->stop))
        responder_run(server->responder, 50);
    return NULL;
}

/* Runs the server in a thread of this process. */
static void server_open(struct server *server, bool crc, struct sockaddr_storage *addr)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct responder_attr attr;

    *server = (struct server){.pid = -1};
    server->data = mmap(NULL, options.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    responder_attr_init(&attr);
    attr.credits = SLOTS_MAX;
    attr.read_max = options.size + 65536;
    attr.wire.crc = crc;
    if (options.spin_us >= 0)
        attr.spin_us = (uint32_t)options.spin_us;
    attr.handle = handle;
    attr.user = server;
    server->responder = responder_open((struct sockaddr *)&v4, sizeof(v4), &attr);
    if (server->data == MAP_FAILED || !server->responder || responder_addr(server->responder, addr) != 0)
        die("rpc: responder");
    if (pthread_create(&server->thread, NULL, serve, server) != 0)
        die("rpc: thread");
}

static void server_close(struct server *server)
{
    atomic_store(&server->stop, true);
    pthread_join(server->thread, NULL);
    responder_close(server->responder);
    munmap(server->data, options.size);
}

static volatile sig_atomic_t stop;

static void on_term(int number)
{
    (void)number;
    stop = 1;
}

/* Runs the server in a child. The child writes its address to a pipe, and runs until SIGTERM. */
static void server_fork(struct server *server, bool crc, struct sockaddr_storage *addr)
{
    int fd[2];

    if (pipe(fd) != 0 || (server->pid = fork()) < 0)
        die("rpc: fork");
    if (server->pid == 0) {
        struct server mine;

        signal(SIGTERM, on_term);
        server_open(&mine, crc, addr);
        if (write(fd[1], addr, sizeof(*addr)) != sizeof(*addr))
            die("rpc: pipe");
        while (!stop)
            usleep(10000);
        server_close(&mine);
        _exit(0);
    }
    if (read(fd[0], addr, sizeof(*addr)) != sizeof(*addr))
        die("rpc: pipe");
    close(fd[0]);
    close(fd[1]);
}

/* --- the requester --------------------------------------------------------------------------------------------- */

struct slot {
    struct request request;
    uint8_t call[CALL_HEAD + 4], reply[256], *data;
    double started;
};

struct run {
    enum proc proc;
    unsigned outstanding;
    struct requester *requester;
    struct slot slot[SLOTS_MAX];
    uint64_t calls;
    float *sample;
    uint32_t samples;
    float rate[SLICES]; /* calls a second in each slice: a pause of the machine spoils only one of them */
    unsigned rates;
};

static void start(struct run *run, struct slot *slot)
{
    struct request *q = &slot->request;
    uint8_t *p = put32(put32(put32(slot->call, requester_xid(run->requester)), 0), 2);

    p = put32(put32(put32(p, PROGRAM), 1), run->proc);
    p = put32(put32(put32(put32(p, 0), 0), 0), 0);
    *q = (struct request){.call = slot->call, .call_length = (size_t)(p - slot->call), .timeout_ms = 10000};
    q->reply = slot->reply;
    q->reply_size = REPLY_HEAD + 4;
    if (run->proc == PROC_READ) {
        q->results = 1;
        q->result[0] = (struct request_item){.data = slot->data, .length = options.size};
    } else if (run->proc == PROC_WRITE) {
        put32(p, options.size);
        q->call_length += 4;
        q->arguments = 1;
        q->argument[0] = (struct request_item){.position = CALL_HEAD + 4, .length = options.size, .data = slot->data};
    }
    slot->started = now_s();
    requester_start(run->requester, q);
}

static void finish(struct run *run, struct slot *slot)
{
    const struct request *q = &slot->request;

    if (q->status != REQUEST_OK || (run->proc == PROC_READ && q->result[0].used != options.size)) {
        fprintf(stderr, "rpc: a call failed: %s\n", request_status_str(q->status));
        exit(1);
    }
    if (run->samples < SAMPLES_MAX)
        run->sample[run->samples++] = (float)(now_s() - slot->started);
    run->calls++;
}

/* Keeps `outstanding` calls under way for this time, then waits for them to end. */
static void keep_going(struct run *run, double seconds)
{
    double slice = now_s(), until = slice + seconds;
    unsigned under_way = run->outstanding;
    uint64_t calls = 0;

    run->calls = run->samples = run->rates = 0;
    for (unsigned i = 0; i < run->outstanding; i++)
        start(run, &run->slot[i]);
    while (under_way) {
        double now = now_s();
        bool more = now < until;

        if (run->rates < SLICES && now - slice > seconds / SLICES) {
            run->rate[run->rates++] = (float)((double)(run->calls - calls) / (now - slice));
            calls = run->calls;
            slice = now;
        }
        requester_wait(run->requester, 1000);
        for (unsigned i = 0; i < run->outstanding; i++) {
            struct slot *slot = &run->slot[i];

            if (slot->request.state != REQUEST_DONE)
                continue;
            finish(run, slot);
            slot->request.state = REQUEST_IDLE;
            if (more)
                start(run, slot);
            else
                under_way--;
        }
    }
}

/* Processor time of this process and of its children that have ended. */
static double processor_s(void)
{
    double sum = 0;

    for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
        struct rusage u;

        getrusage(who, &u);
        sum += (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec);
        sum += 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    }
    return sum;
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static void print(struct run *run, bool crc, double processor)
{
    static const char *const name[] = {"NULL", "READ", "WRITE"};
    double octets = (double)run->calls * options.size;

    double rate;

    qsort(run->sample, run->samples, sizeof(*run->sample), ascending);
    qsort(run->rate, run->rates, sizeof(*run->rate), ascending);
    rate = (double)run->rate[run->rates / 2];
    printf("%s outstanding %u crc %s: %.0f calls/s, p50 %.1f us", name[run->proc], run->outstanding, crc ? "on" : "off",
           rate, 1e6 * (double)run->sample[run->samples / 2]);
    if (run->proc == PROC_NULL)
        printf(", %.2f processor us/call\n", 1e6 * processor / (double)run->calls);
    else
        printf(", %.3f GB/s, %.3f processor s/GB\n", 1e-9 * rate * options.size, processor / (1e-9 * octets));
    fflush(stdout);
}

static void measure(enum proc proc, unsigned outstanding, bool crc)
{
    struct run *run = calloc(1, sizeof(*run));
    struct sockaddr_storage addr;
    struct requester_attr attr;
    struct server server;
    struct requester *idle[IDLE_MAX];
    double processor;

    run->proc = proc;
    run->outstanding = outstanding;
    run->sample = calloc(SAMPLES_MAX, sizeof(*run->sample));
    if (options.processes)
        server_fork(&server, crc, &addr);
    else
        server_open(&server, crc, &addr);
    requester_attr_init(&attr);
    attr.wire.crc = crc;
    attr.wire.first_delay_ms = 0;
    attr.credits = SLOTS_MAX;
    if (options.spin_us >= 0)
        attr.spin_us = (uint32_t)options.spin_us;
    run->requester = requester_open((struct sockaddr *)&addr, sizeof(addr), &attr, 10000);
    if (!run->requester)
        die("rpc: requester");
    for (unsigned i = 0; i < options.idle; i++)
        if (!(idle[i] = requester_open((struct sockaddr *)&addr, sizeof(addr), &attr, 10000)))
            die("rpc: idle requester");
    for (unsigned i = 0; proc != PROC_NULL && i < outstanding; i++) {
        run->slot[i].data = malloc(options.size);
        memset(run->slot[i].data, 0x5a, options.size);
    }
    keep_going(run, 0.1);
    processor = processor_s();
    keep_going(run, options.seconds);
    requester_close(run->requester);
    for (unsigned i = 0; i < options.idle; i++)
        requester_close(idle[i]);
    if (options.processes) {
        kill(server.pid, SIGTERM);
        waitpid(server.pid, NULL, 0);
    } else {
        server_close(&server);
    }
    processor = processor_s() - processor;
    print(run, crc, processor);
    for (unsigned i = 0; i < outstanding; i++)
        free(run->slot[i].data);
    free(run->sample);
    free(run);
}

/* --- all of them in turn --------------------------------------------------------------------------------------- */

static void perf(const char *what, bool crc)
{
    char command[512], line[512];
    FILE *from;

    if (!options.perf)
        return;
    snprintf(command, sizeof(command), "%s perf --loopback --bw -s %u -t %g %s %s", options.perf, options.size,
             options.seconds, crc ? "" : "--no-crc", what);
    from = popen(command, "r");
    while (from && fgets(line, sizeof(line), from))
        if (strncmp(line, what, strlen(what)) == 0)
            printf("perf crc %s: %s", crc ? "on" : "off", line);
    if (!from || pclose(from) != 0)
        die("rpc: perf");
    fflush(stdout);
}

static void measure_all(const char *what)
{
    bool all = strcmp(what, "all") == 0;

    if (all || strcmp(what, "null") == 0) {
        measure(PROC_NULL, 1, true);
        measure(PROC_NULL, 32, true);
    }
    for (int crc = 1; crc >= 0; crc--) {
        if (all || strcmp(what, "read") == 0) {
            perf("write", crc);
            measure(PROC_READ, 8, crc);
        }
        if (all || strcmp(what, "write") == 0) {
            perf("read", crc);
            measure(PROC_WRITE, 8, crc);
        }
    }
}

int main(int argc, char **argv)
{
    int c;

    while ((c = getopt(argc, argv, "t:r:s:i:S:Px:")) != -1)
        if (c == 't')
            options.seconds = atof(optarg);
        else if (c == 'r')
            options.rounds = (unsigned)atoi(optarg);
        else if (c == 's')
            options.size = (uint32_t)atoi(optarg);
        else if (c == 'i')
            options.idle = (unsigned)atoi(optarg);
        else if (c == 'S')
            options.spin_us = atoi(optarg);
        else if (c == 'P')
            options.processes = true;
        else if (c == 'x')
            options.perf = optarg;
        else
            return fprintf(
                       stderr,
                       "usage: rpc [-t SECONDS] [-r ROUNDS] [-s OCTETS] [-i IDLE CONNECTIONS] [-S SPIN US] [-P (two "
                       "processes)] [-x RDDP] "
                       "[null|read|write|all]\n"),
                   2;
    if (options.idle > IDLE_MAX)
        options.idle = IDLE_MAX;
    for (unsigned i = 0; i < options.rounds; i++)
        measure_all(optind < argc ? argv[optind] : "all");
    return 0;
}
