/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.c [ROUNDS [SECONDS [MTU [WORD]]]] - RoCE between two processes that poll, beside UDP in the same batches with no
 * transport, and iWARP with its CRC. Each round runs every job once; a line has medians, and the median, least and
 * greatest of the quotients with what it is compared to in the same round. With an MTU the processes are in two network
 * namespaces with a veth pair of it between them; without one, or with 0, they use loopback. WORD: jobs with it in
 * their name, and what they are compared to. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rddp/rddp.h>

#include "base/container.h"
#include "bench/lib/ends.h"
#include "bench/lib/path.h"
#include "bench/lib/raw_udp.h"
#include "loop/udp.h"
#include "roce/bth.h"

enum { SMALL = 8, SOURCE = 64 /* where the small ones lie */, LARGE = 1 << 20 };
enum { UNDER_WAY = 16, SIGNAL_EVERY = 64, LIST = 32, WINDOW = 256, DEPTH = 512, CQ_DEPTH = 2048 };
enum { WRITE_OCTETS = BTH_OCTETS + RETH_OCTETS + SMALL + ICRC_OCTETS /* of a packet */ };
enum { RAW_AHEAD = 64, RAW_ANSWER = 16, RAW_PORT = 40791, IWARP_PORT = 40792, RAW_PEER_PORT = 40793 };

enum traffic { RAW, RAW_TRIP, RAW_CONNECTED, RAW_PAIRS, WRITE, SEND, READ, WRITES, ONE_WRITE, TRIP, SIGNALLED_TRIP };

static const struct roce_job {
    const char *name;
    enum traffic traffic;
    enum rddp_wire wire;
    uint32_t octets;
    int beside; /* the job that it is compared to, or -1 */
    enum { GBPS, MICROSECONDS, MILLIONS } unit;
} jobs[] = {
    {"UDP in batches", RAW, RDDP_WIRE_ROCE, 0, -1, GBPS},
    {"iWARP Write 1 MiB", WRITE, RDDP_WIRE_IWARP, LARGE, 0, GBPS},
    {"RoCE Write 1 MiB", WRITE, RDDP_WIRE_ROCE, LARGE, 0, GBPS},
    {"the same", WRITE, RDDP_WIRE_ROCE, LARGE, 1, GBPS},
    {"RoCE Send 1 MiB", SEND, RDDP_WIRE_ROCE, LARGE, 0, GBPS},
    {"RoCE Read 1 MiB", READ, RDDP_WIRE_ROCE, LARGE, 0, GBPS},
    {"RoCE Writes 8, lists", WRITES, RDDP_WIRE_ROCE, SMALL, -1, MILLIONS},
    {"RoCE Writes 8, singly", ONE_WRITE, RDDP_WIRE_ROCE, SMALL, -1, MILLIONS},
    {"UDP half trip 8", RAW_TRIP, RDDP_WIRE_ROCE, SMALL, -1, MICROSECONDS},
    {"UDP, acknowledged", RAW_PAIRS, RDDP_WIRE_ROCE, WRITE_OCTETS, 8, MICROSECONDS},
    {"RoCE half trip 8", TRIP, RDDP_WIRE_ROCE, SMALL, 8, MICROSECONDS},
    {"signalled", SIGNALLED_TRIP, RDDP_WIRE_ROCE, SMALL, 8, MICROSECONDS},
    {"the same", SIGNALLED_TRIP, RDDP_WIRE_ROCE, SMALL, 9, MICROSECONDS},
    /* What no end of RoCE can have over IPv4: identifications count in a socket that is connected. */
    {"UDP, connected", RAW_CONNECTED, RDDP_WIRE_ROCE, SMALL, -1, MICROSECONDS},
    {"UDP, acknowledged", RAW_PAIRS, RDDP_WIRE_ROCE, WRITE_OCTETS, 13, MICROSECONDS},
    {"signalled", SIGNALLED_TRIP, RDDP_WIRE_ROCE, SMALL, 13, MICROSECONDS},
};
static const char *const unit_names[] = {"GB/s", "us", "million/s"};

/* What an end tells the other. */
struct roce_name {
    uint64_t at;
    uint32_t key, number, psn;
};

/* Shared by the two processes. */
static struct roce_board {
    _Atomic unsigned step;
    _Atomic bool over;
    struct roce_name name[2];
    double value, cpu_s;
    uint64_t resent;
} * board;

struct roce_side {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_event_channel *events;
    struct rddp_qp *qp;
    struct rddp_mr *mr;
    uint8_t *memory;
    const struct roce_name *peer;
    uint32_t mtu;
};

static double duration_s = 1;
static uint32_t path_octets; /* MTU of the path; 0: loopback */
static int namespaces[2];    /* network namespaces of the active and the passive process */

static double results[countof(jobs)][ENDS_ROUNDS_MAX], cpus[countof(jobs)][ENDS_ROUNDS_MAX];
static double again[countof(jobs)][ENDS_ROUNDS_MAX];

static struct sockaddr_in roce_address_of(bool passive, uint16_t port)
{
    struct sockaddr_in address = path_address(77, passive ? 2 : 1, port);

    if (!path_octets)
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void await_step(unsigned step)
{
    while (board->step < step)
        sched_yield();
}

static bool is_over(uint64_t begun_ns)
{
    return (double)(ends_now_ns() - begun_ns) >= duration_s * 1e9;
}

static uint32_t raw_packet(void)
{
    uint32_t payload = BTH_MTU_MAX, space = path_octets ? path_octets - 28 - BTH_HEAD_MAX - ICRC_OCTETS : UINT16_MAX;

    while (payload > space)
        payload /= 2;
    return payload + BTH_OCTETS + ICRC_OCTETS;
}

/* --- queue pairs ------------------------------------------------------------------------------------------------- */

static void side_open(struct roce_side *side, enum rddp_wire wire, bool passive)
{
    struct rddp_context_attr options;
    struct rddp_qp_attr attr;

    rddp_context_attr_init(&options);
    options.manual_progress = true; /* two that poll leave no processor for other threads */
    *side = (struct roce_side){.context = rddp_open(&options), .peer = &board->name[!passive]};
    side->pd = rddp_alloc_pd(side->context);
    side->cq = rddp_create_cq(side->context, CQ_DEPTH, NULL, NULL);
    side->events = rddp_create_event_channel(side->context);
    side->memory = aligned_alloc(4096, LARGE);
    memset(side->memory, 0, LARGE);
    side->mr = rddp_reg_mr(side->pd, side->memory, LARGE,
                           RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ);
    rddp_qp_attr_init(&attr);
    attr.type = wire == RDDP_WIRE_ROCE ? RDDP_QPT_RC : RDDP_QPT_CONNECTED;
    attr.send_cq = attr.recv_cq = side->cq;
    attr.max_send_wr = attr.max_recv_wr = DEPTH;
    side->qp = rddp_create_qp(side->pd, &attr);
    if (!side->qp)
        ends_fail("rddp_create_qp", 0);
    board->name[passive] = (struct roce_name){(uintptr_t)side->memory, rddp_mr_key(side->mr), rddp_qp_num(side->qp),
                                              (uint32_t)ends_now_ns() & BTH_MASK24};
}

static void side_connect_by_hand(struct roce_side *side, bool passive)
{
    struct sockaddr_in peer = roce_address_of(!passive, 0);
    struct rddp_ib_attr attr;
    int error = 0;

    rddp_ib_attr_init(&attr);
    memcpy(&attr.peer, &peer, sizeof(peer));
    attr.peer_qpn = side->peer->number;
    attr.rq_psn = side->peer->psn;
    attr.sq_psn = board->name[passive].psn;
    for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTS && !error; attr.state++)
        error = rddp_modify_qp(side->qp, &attr);
    if (error)
        ends_fail("rddp_modify_qp", error);
}

static struct rddp_event *side_event(const struct roce_side *side, enum rddp_event_type type)
{
    struct rddp_event *event;
    int error = rddp_get_event(side->events, &event);

    if (error || event->type != type)
        ends_fail("event", error);
    return event;
}

static void side_listen(struct roce_side *side)
{
    struct sockaddr_in own = roce_address_of(true, IWARP_PORT);
    struct rddp_wire_attr wire;
    struct rddp_event *event;

    rddp_wire_attr_init(&wire);
    if (!rddp_listen(side->events, (struct sockaddr *)&own, sizeof(own), 1, &wire, NULL))
        ends_fail("rddp_listen", 0);
    board->step = 1;
    event = side_event(side, RDDP_EVENT_CONNECT_REQUEST);
    rddp_accept(event->request, side->qp, NULL);
    rddp_ack_event(event);
    rddp_ack_event(side_event(side, RDDP_EVENT_ESTABLISHED));
}

static void side_connect(struct roce_side *side)
{
    struct sockaddr_in to = roce_address_of(true, IWARP_PORT);
    int error = rddp_connect(side->qp, side->events, (struct sockaddr *)&to, sizeof(to), NULL);

    if (error)
        ends_fail("rddp_connect", error);
    rddp_ack_event(side_event(side, RDDP_EVENT_ESTABLISHED));
}

static void side_post(struct roce_side *side, enum rddp_wr_opcode opcode, uint32_t octets, uint32_t n, bool signalled)
{
    struct rddp_sge sge = {(uintptr_t)side->memory + (octets == SMALL ? SOURCE : 0), octets, rddp_mr_key(side->mr)};
    struct rddp_send_wr wr[LIST];
    int error;

    for (uint32_t i = 0; i < n; i++)
        wr[i] = (struct rddp_send_wr){
            .next = i + 1 < n ? &wr[i + 1] : NULL,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = opcode,
            .send_flags = (signalled ? RDDP_SEND_SIGNALED : 0u) | (octets <= SMALL ? RDDP_SEND_INLINE : 0u),
            .remote_addr = side->peer->at,
            .rkey = side->peer->key,
        };
    error = rddp_post_send(side->qp, wr, NULL);
    if (error)
        ends_fail("rddp_post_send", error);
}

static void side_receive(struct roce_side *side, int n)
{
    struct rddp_sge sge = {(uintptr_t)side->memory, LARGE, rddp_mr_key(side->mr)};
    struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

    while (n-- > 0)
        if (rddp_post_recv(side->qp, &wr, NULL))
            ends_fail("rddp_post_recv", 0);
}

static int side_poll(struct roce_side *side)
{
    struct rddp_wc wc[LIST];
    int n = rddp_poll_cq(side->cq, LIST, wc);

    for (int i = 0; i < n; i++)
        if (wc[i].status != RDDP_WC_SUCCESS)
            ends_fail(rddp_wc_status_str(wc[i].status), -EIO);
    return n;
}

/* --- jobs -------------------------------------------------------------------------------------------------------- */

/* Each end writes when it has seen what the other wrote, and has one Write of `each` signalled. Returns the number of
 * round trips. */
static uint64_t bounce(struct roce_side *side, bool passive, uint64_t each)
{
    _Atomic uint8_t *last = (_Atomic uint8_t *)(side->memory + SMALL - 1);
    uint64_t begun = ends_now_ns(), trips = 0;

    for (uint8_t turn = 1; passive ? !board->over : !is_over(begun); turn++, trips++) {
        memset(side->memory + SOURCE, turn, SMALL);
        if (!passive)
            side_post(side, RDDP_WR_RDMA_WRITE, SMALL, 1, trips % each == 0);
        while (*last != turn && !board->over)
            side_poll(side);
        if (passive && !board->over)
            side_post(side, RDDP_WR_RDMA_WRITE, SMALL, 1, trips % each == 0);
    }
    return trips;
}

static bool is_trip(const struct roce_job *job)
{
    return job->traffic == TRIP || job->traffic == SIGNALLED_TRIP;
}

static uint64_t signal_every(const struct roce_job *job)
{
    return job->traffic == TRIP ? SIGNAL_EVERY : 1;
}

static void roce_passive(const struct roce_job *job)
{
    struct roce_side side;

    side_open(&side, job->wire, true);
    if (job->wire == RDDP_WIRE_IWARP) {
        side_listen(&side);
    } else {
        board->step = 1;
        await_step(2);
        side_connect_by_hand(&side, true);
    }
    if (job->traffic == SEND)
        side_receive(&side, 2 * UNDER_WAY);
    board->step = 3;
    if (is_trip(job))
        (void)bounce(&side, true, signal_every(job));
    while (!board->over) {
        int n = side_poll(&side);

        if (job->traffic == SEND)
            side_receive(&side, n);
    }
}

/* Returns the number of requests that completed. */
static uint64_t stream_requests(struct roce_side *side, const struct roce_job *job)
{
    static const enum rddp_wr_opcode opcodes[] = {[WRITE] = RDDP_WR_RDMA_WRITE,
                                                  [SEND] = RDDP_WR_SEND,
                                                  [READ] = RDDP_WR_RDMA_READ,
                                                  [WRITES] = RDDP_WR_RDMA_WRITE,
                                                  [ONE_WRITE] = RDDP_WR_RDMA_WRITE};
    uint32_t list = job->traffic == WRITES ? LIST : 1, window = job->octets > SMALL ? UNDER_WAY : WINDOW, ahead = 0;
    uint64_t begun = ends_now_ns(), done = 0;

    while (!is_over(begun)) {
        uint32_t n;

        for (; ahead + list <= window; ahead += list)
            side_post(side, opcodes[job->traffic], job->octets, list, true);
        n = (uint32_t)side_poll(side);
        ahead -= n;
        done += n;
    }
    return done;
}

static void roce_active(const struct roce_job *job)
{
    struct rddp_qp_info info;
    struct roce_side side;
    uint64_t begun, done;
    double s;

    side_open(&side, job->wire, false);
    if (job->wire == RDDP_WIRE_IWARP) {
        side_connect(&side);
    } else {
        board->step = 2;
        side_connect_by_hand(&side, false);
    }
    await_step(3);
    begun = ends_now_ns();
    done = is_trip(job) ? bounce(&side, false, signal_every(job)) : stream_requests(&side, job);
    s = (double)(ends_now_ns() - begun) / 1e9;
    rddp_query_qp(side.qp, &info);
    board->resent = info.sent_again;
    if (job->unit == MICROSECONDS)
        board->value = s / (double)done / 2 * 1e6;
    else if (job->unit == MILLIONS)
        board->value = (double)done / s / 1e6;
    else
        board->value = (double)done * job->octets / s / 1e9;
}

/* --- rounds ------------------------------------------------------------------------------------------------------ */

/* Packets of an answer, and of what it answers on a trip: a request, and the acknowledgement that leaves with it. */
static uint32_t batch_of_trip(const struct roce_job *job)
{
    return job->traffic == RAW_PAIRS ? 2 : 1;
}

static void raw_is_ready(void)
{
    board->step = 1;
}

static void run_passive(const struct roce_job *job)
{
    struct sockaddr_in own = roce_address_of(true, RAW_PORT), peer = roce_address_of(false, RAW_PEER_PORT);

    if (job->traffic == RAW_CONNECTED)
        raw_udp_echo(&own, &peer, raw_is_ready, &board->over);
    else if (job->traffic <= RAW_PAIRS)
        raw_udp_answer(&own, job->traffic == RAW ? RAW_ANSWER : job->octets, batch_of_trip(job), raw_is_ready,
                       &board->over);
    else
        roce_passive(job);
    _exit(0);
}

static void run_active(const struct roce_job *job)
{
    struct sockaddr_in own = roce_address_of(false, RAW_PEER_PORT), to = roce_address_of(true, RAW_PORT);
    uint32_t packets = UDP_BATCH_OCTETS / raw_packet();
    double cpu = ends_cpu_s();

    packets = packets < UDP_BATCH_PACKETS ? packets : UDP_BATCH_PACKETS;
    await_step(1);
    if (job->traffic == RAW)
        board->value = raw_udp_batches(&own, &to, raw_packet(), packets, RAW_AHEAD, 0, duration_s) * raw_packet() *
                       packets / duration_s / 1e9;
    else if (job->traffic == RAW_CONNECTED)
        board->value = duration_s / raw_udp_ping(&own, &to, job->octets, duration_s) / 2 * 1e6;
    else if (job->traffic <= RAW_PAIRS)
        board->value = duration_s * batch_of_trip(job) /
                       raw_udp_batches(&own, &to, job->octets, batch_of_trip(job), 1, 0, duration_s) / 2 * 1e6;
    else
        roce_active(job);
    board->cpu_s = ends_cpu_s() - cpu;
    board->over = true;
    _exit(0);
}

static void run_job(const struct roce_job *job, double *value, double *cpu, double *resent)
{
    int status;
    pid_t child[2];

    memset(board, 0, sizeof(*board));
    for (int passive = 1; passive >= 0; passive--) {
        child[passive] = fork();
        if (child[passive] < 0)
            ends_fail("fork", 0);
        if (child[passive])
            continue;
        if (path_octets && setns(namespaces[passive], CLONE_NEWNET))
            ends_fail("setns", 0);
        path_pin((unsigned)passive);
        if (passive)
            run_passive(job);
        else
            run_active(job);
    }
    for (int passive = 0; passive < 2; passive++)
        if (waitpid(child[passive], &status, 0) < 0 || status)
            exit(1);
    *value = board->value;
    *cpu = board->cpu_s / (board->value * duration_s); /* of the active end; the other one polls as long */
    *resent = (double)board->resent;
}

static double median_of(const double *values, size_t n)
{
    double copy[ENDS_ROUNDS_MAX];

    memcpy(copy, values, n * sizeof(*values));
    return ends_at(copy, n, 0.5);
}

static void report_ratio(unsigned at, size_t n)
{
    unsigned beside = (unsigned)jobs[at].beside;
    double ratio[ENDS_ROUNDS_MAX], median;

    for (size_t i = 0; i < n; i++)
        ratio[i] = results[at][i] / results[beside][i];
    median = ends_at(ratio, n, 0.5);
    printf("  %.2f (%.2f-%.2f) of %s", median, ratio[0], ratio[n - 1], jobs[beside].name);
}

static void roce_report(unsigned at, size_t n)
{
    const struct roce_job *job = &jobs[at];

    printf("%-20s %7.3f %-9s", job->name, median_of(results[at], n), unit_names[job->unit]);
    if (job->unit == GBPS)
        printf("  %5.2f CPU s/GB", median_of(cpus[at], n));
    if (job->traffic > RAW_PAIRS && job->wire == RDDP_WIRE_ROCE)
        printf("  %6.0f sent again", median_of(again[at], n));
    if (job->beside >= 0)
        report_ratio(at, n);
    printf("\n");
}

static void run_rounds(int rounds, const char *word)
{
    bool wanted[countof(jobs)] = {false};

    for (unsigned at = 0; at < countof(jobs); at++)
        if (strstr(jobs[at].name, word))
            wanted[at] = wanted[jobs[at].beside < 0 ? at : (unsigned)jobs[at].beside] = true;
    for (int round = 0; round < rounds; round++)
        for (unsigned at = 0; at < countof(jobs); at++)
            if (wanted[at])
                run_job(&jobs[at], &results[at][round], &cpus[at][round], &again[at][round]);
    for (unsigned at = 0; at < countof(jobs); at++)
        if (wanted[at])
            roce_report(at, (size_t)rounds);
}

int main(int argc, char **argv)
{
    int rounds;

    ends_arguments(argc, argv, &rounds, &duration_s);
    path_octets = argc > 3 ? (uint32_t)atoi(argv[3]) : 0;
    if (argc > 5 || (path_octets && (path_octets < 1280 || path_octets > 65535))) {
        fprintf(stderr, "usage: roce [ROUNDS [SECONDS [MTU [WORD]]]]\n");
        return 2;
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        ends_fail("mmap", 0);
    if (path_octets)
        path_make_namespaces(77, path_octets, namespaces);
    run_rounds(rounds, argc > 4 ? argv[4] : "");
    return 0;
}
