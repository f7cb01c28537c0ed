/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connections.c - many connections that do nothing: how fast they come, what each takes of the heap, and what one that
 * works loses beside them. connections [COUNT [WIRE [ROUNDS [SECONDS]]]]: iwarp or roce. Prints a JSON object.
 *
 * The queues of the idle ones are the smallest there are, one request each, so that what is counted is the connection.
 * One that works beside COUNT idle ones takes turns with one that is alone, in contexts and processes of its own. */
#include <arpa/inet.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/lib/ends.h"

enum { COUNT_MAX = 100000, AT_ONCE = 64, LARGE = 64 << 10, LIST = 32, SMALL_WINDOW = 256, LARGE_WINDOW = 16 };

/* What the server says of itself: at first, and when it is asked again. */
struct server_name {
    int port;
    uint32_t key;
    uint64_t at;
    double octets;
};

struct crowd_end {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq, *idle_cq;
    struct rddp_event_channel *events;
    struct rddp_mr *mr;
    uint8_t *memory;
    struct rddp_qp *active, **idle;
    uint32_t count;
};

struct crowd {
    struct crowd_end end;
    struct server_name name;
    pid_t pid;
    int to, from;
    double connects_per_second, octets, server_octets;
};

static enum rddp_wire wire = RDDP_WIRE_IWARP;

/* Of all arenas, and what was mapped for itself. */
static double heap_octets(void)
{
    struct mallinfo2 info = mallinfo2();

    return (double)info.uordblks + (double)info.hblkhd;
}

static void pin(size_t processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static struct rddp_qp *crowd_qp(struct crowd_end *end, bool works)
{
    struct rddp_qp_attr attr;
    struct rddp_qp *qp;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = works ? end->cq : end->idle_cq;
    if (works) {
        attr.max_send_wr = SMALL_WINDOW + LIST;
    } else {
        attr.max_send_wr = attr.max_recv_wr = attr.max_send_sge = attr.max_recv_sge = 1;
        attr.max_inline_data = 0;
        attr.max_rd_atomic = 1;
    }
    qp = rddp_create_qp(end->pd, &attr);
    if (!qp)
        ends_fail("rddp_create_qp", 0);
    return qp;
}

static void crowd_open(struct crowd_end *end, uint32_t count)
{
    *end = (struct crowd_end){.context = rddp_open(NULL), .count = count};
    if (!end->context)
        ends_fail("rddp_open", 0);
    end->pd = rddp_alloc_pd(end->context);
    end->cq = rddp_create_cq(end->context, 4 * SMALL_WINDOW, NULL, NULL);
    end->idle_cq = rddp_create_cq(end->context, 16, NULL, NULL);
    end->events = rddp_create_event_channel(end->context);
    end->memory = aligned_alloc(4096, LARGE);
    end->idle = calloc(count, sizeof(struct rddp_qp *));
    if (!end->pd || !end->cq || !end->idle_cq || !end->events || !end->memory || !end->idle)
        ends_fail("objects", 0);
    memset(end->memory, 0, LARGE);
    end->mr = rddp_reg_mr(end->pd, end->memory, LARGE,
                          RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ);
    if (!end->mr)
        ends_fail("rddp_reg_mr", 0);
}

static void wire_attr(struct rddp_wire_attr *attr)
{
    rddp_wire_attr_init(attr);
    attr->wire = wire;
    attr->first_delay_ms = 0;
}

/* --- the server --------------------------------------------------------------------------------------------------- */

static void tell(int to, const struct server_name *name)
{
    if (write(to, name, sizeof(*name)) != sizeof(*name))
        exit(1);
}

static int crowd_listen(struct crowd_end *end)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage bound;
    struct rddp_listener *listener;
    struct rddp_wire_attr attr;

    wire_attr(&attr);
    listener = rddp_listen(end->events, (struct sockaddr *)&any, sizeof(any), SOMAXCONN, &attr, NULL);
    if (!listener)
        ends_fail("rddp_listen", 0);
    rddp_listener_addr(listener, &bound);
    return ntohs(((struct sockaddr_in *)&bound)->sin_port);
}

/* The first connection works, the others are idle. */
_Noreturn static void serve(int from, int to, uint32_t count)
{
    uint32_t asked = 0, established = 0;
    struct server_name name;
    struct rddp_event *event;
    struct crowd_end end;
    double before;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1);
    crowd_open(&end, count);
    name = (struct server_name){crowd_listen(&end), rddp_mr_key(end.mr), (uintptr_t)end.memory, 0};
    tell(to, &name);
    before = heap_octets();
    while (established < count + 1 && rddp_get_event(end.events, &event) == 0) {
        if (event->type == RDDP_EVENT_CONNECT_REQUEST) {
            if (rddp_accept(event->request, crowd_qp(&end, !asked), NULL))
                ends_fail("rddp_accept", 0);
            asked++;
        } else if (event->type != RDDP_EVENT_ESTABLISHED) {
            ends_fail("connection", event->status);
        } else if (++established == 1) {
            before = heap_octets();
        }
        rddp_ack_event(event);
    }
    name.octets = (heap_octets() - before) / (count ? count : 1);
    tell(to, &name);
    (void)!read(from, &name, sizeof(name)); /* until the client ends */
    exit(0);
}

static void start_server(struct crowd *crowd, uint32_t count)
{
    int to[2], from[2];

    if (pipe(to) || pipe(from))
        ends_fail("pipe", 0);
    crowd->pid = fork();
    if (!crowd->pid) {
        close(to[1]);
        close(from[0]);
        serve(to[0], from[1], count);
    }
    close(to[0]);
    close(from[1]);
    crowd->to = to[1];
    crowd->from = from[0];
    if (crowd->pid < 0 || read(crowd->from, &crowd->name, sizeof(crowd->name)) != sizeof(crowd->name))
        ends_fail("the server", 0);
}

/* --- the client --------------------------------------------------------------------------------------------------- */

static void crowd_connect(struct crowd *crowd, struct rddp_qp *qp)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)crowd->name.port)};
    struct rddp_conn_attr attr;
    int error;

    rddp_conn_attr_init(&attr);
    wire_attr(&attr.wire);
    error = rddp_connect(qp, crowd->end.events, (struct sockaddr *)&to, sizeof(to), &attr);
    if (error)
        ends_fail("rddp_connect", error);
}

static void await_established(struct crowd *crowd)
{
    struct rddp_event *event;
    int error = rddp_get_event(crowd->end.events, &event);

    if (error || event->type != RDDP_EVENT_ESTABLISHED)
        ends_fail("connection", error ? error : event->status);
    rddp_ack_event(event);
}

/* The crowd is there when the server has said so, too. */
static void crowd_begin(struct crowd *crowd, uint32_t count)
{
    struct crowd_end *end = &crowd->end;
    uint64_t begun_ns;
    double before;

    crowd_open(end, count);
    crowd_connect(crowd, end->active = crowd_qp(end, true));
    await_established(crowd);
    before = heap_octets();
    begun_ns = ends_now_ns();
    for (uint32_t begun = 0, established = 0; established < count; established++) {
        for (; begun < count && begun - established < AT_ONCE; begun++)
            crowd_connect(crowd, end->idle[begun] = crowd_qp(end, false));
        await_established(crowd);
    }
    if (read(crowd->from, &crowd->name, sizeof(crowd->name)) != sizeof(crowd->name))
        ends_fail("the server", 0);
    crowd->connects_per_second = count / ((double)(ends_now_ns() - begun_ns) / 1e9);
    crowd->octets = (heap_octets() - before) / (count ? count : 1);
    crowd->server_octets = crowd->name.octets;
}

static void crowd_post(struct crowd *crowd, enum rddp_wr_opcode opcode, uint32_t length, uint32_t n)
{
    struct rddp_sge sge = {(uintptr_t)crowd->end.memory, length, rddp_mr_key(crowd->end.mr)};
    struct rddp_send_wr wr[LIST];
    int error;

    for (uint32_t i = 0; i < n; i++)
        wr[i] = (struct rddp_send_wr){
            .next = i + 1 < n ? &wr[i + 1] : NULL,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = opcode,
            .send_flags = RDDP_SEND_SIGNALED,
            .remote_addr = crowd->name.at,
            .rkey = crowd->name.key,
        };
    error = rddp_post_send(crowd->end.active, wr, NULL);
    if (error)
        ends_fail("rddp_post_send", error);
}

/* Messages a second. */
static double work(struct crowd *crowd, enum rddp_wr_opcode opcode, uint32_t length, uint32_t window, double seconds)
{
    uint64_t begun_ns = ends_now_ns(), end_ns = begun_ns + (uint64_t)(seconds * 1e9), posted = 0, done = 0;
    uint32_t list = window < LIST ? 1 : LIST;
    struct rddp_wc wc[LIST];

    while (done < posted || ends_now_ns() < end_ns) {
        for (; posted - done + list <= window && ends_now_ns() < end_ns; posted += list)
            crowd_post(crowd, opcode, length, list);
        for (int i = 0, n = rddp_poll_cq(crowd->end.cq, LIST, wc); i < n; i++, done++)
            if (wc[i].status != RDDP_WC_SUCCESS)
                ends_fail(rddp_wc_status_str(wc[i].status), 0);
    }
    return (double)done / ((double)(ends_now_ns() - begun_ns) / 1e9);
}

static void crowd_end(struct crowd *crowd)
{
    kill(crowd->pid, SIGKILL);
    waitpid(crowd->pid, NULL, 0);
}

/* --- both in turn ------------------------------------------------------------------------------------------------- */

static const struct kind_of_work {
    const char *name;
    enum rddp_wr_opcode opcode;
    uint32_t length, window;
    double unit; /* what a message counts */
} kinds[] = {
    {"write_8_per_second", RDDP_WR_RDMA_WRITE, 8, SMALL_WINDOW, 1},
    {"write_64k_bytes_per_second", RDDP_WR_RDMA_WRITE, LARGE, LARGE_WINDOW, LARGE},
    {"read_8_per_second", RDDP_WR_RDMA_READ, 8, 1, 1},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* The order changes from round to round. */
static void take_turns(struct crowd *alone, struct crowd *beside, int rounds, double seconds)
{
    double ratio[ENDS_ROUNDS_MAX], value[2][ENDS_ROUNDS_MAX];

    for (int k = 0; k < KINDS; k++) {
        const struct kind_of_work *kind = &kinds[k];

        for (int round = -1; round < rounds; round++) { /* the first warms up */
            for (int i = 0; i < 2; i++) {
                int which = (round + i) & 1, at = round < 0 ? 0 : round;

                value[which][at] =
                    kind->unit * work(which ? beside : alone, kind->opcode, kind->length, kind->window, seconds);
            }
            if (round >= 0)
                ratio[round] = value[1][round] / value[0][round];
        }
        printf(", \"%s\": %.6g, \"beside_%s\": %.6g", kind->name, ends_at(value[0], (size_t)rounds, 0.5), kind->name,
               ends_at(value[1], (size_t)rounds, 0.5));
        printf(", \"ratio_%s\": %.4f", kind->name, ends_at(ratio, (size_t)rounds, 0.5));
    }
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 100;
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    double seconds = argc > 4 ? atof(argv[4]) : 0.5;
    static struct crowd alone, beside;
    struct rlimit limit;

    if (count - 1 >= COUNT_MAX || rounds < 0 || rounds > ENDS_ROUNDS_MAX || seconds <= 0)
        return 2;
    if (argc > 2 && !strcmp(argv[2], "roce"))
        wire = RDDP_WIRE_ROCE;
    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (rounds)
        start_server(&alone, 0);
    start_server(&beside, count);
    pin(0);
    if (rounds)
        crowd_begin(&alone, 0);
    crowd_begin(&beside, count);
    printf("{\"connections\": %u, \"connects_per_second\": %.1f, \"client_octets\": %.1f, \"server_octets\": %.1f",
           count, beside.connects_per_second, beside.octets, beside.server_octets);
    if (rounds)
        take_turns(&alone, &beside, rounds, seconds);
    printf("}\n");
    if (rounds)
        crowd_end(&alone);
    crowd_end(&beside);
    return 0;
}
