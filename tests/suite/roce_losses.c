/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_losses.c - two processes of ours whose packets a relay loses, repeats, damages and holds back, over sockets of
 * UDP: each octet arrives where it belongs, each request completes once and in order, each atomic is executed once, and
 * the counters tell of it. ROCE-REQ-08, 09, 12, 19; ROCE-RSP-01, 02, 03, 04, 12; ROCE-PKT-07, 08.
 *
 * RDDP_SEED=0x1234 sets the seed of the relay and of what is posted, which a failed run prints. RDDP_HARMLESS=1: the
 * relay does nothing to packets, for tests that look at them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/container.h"
#include "roce/bth.h"
#include "roce/icrc.h"
#include "tests/lib/rng.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

enum { OPS = 120, LENGTH_MAX = 4000, SOURCE = 65536, UNDER_WAY = 32, RUN_S = 120 };
/* Where things lie in the region of an end. */
enum { WORD_AT = 256 << 10, SINK_AT = 512 << 10, TARGET_AT = 1024 << 10, RECEIVE_AT = 1536 << 10 };
/* Of the relay: chances of a thousand, and packets that it may hold. */
enum { LOSE = 20, REPEAT = 20, DAMAGE = 10, HOLD_BACK = 20, HELD_US = 1500, HELD_MAX = 1024, PACKET_MAX = 2048 };
/* Numbers that name no port, so that packets go to port 4791 of the relay. */
enum { RELAY_QPN = 0x11 };

static const char *const address[2] = {"127.0.0.1", "127.0.0.2"}; /* of the ends */
static const char *const face[2] = {"127.0.0.3", "127.0.0.4"};    /* what the relay has for them */
static uint64_t seed = 1;
static bool harmless;

struct end_name {
    uint32_t qpn, key;
};

/* --- what an end does ----------------------------------------------------------------------------------------------
 */

struct op {
    enum rddp_wr_opcode opcode;
    uint32_t at, length; /* in the source: of the peer, for Reads */
    uint32_t place;      /* in the target, the sink or the receives */
};

struct plan {
    struct op op[OPS];
    uint32_t target, sink, receive, sends, atomics;
};

/* Both ends know what either will do. */
static void make_plan(struct plan *plan, unsigned end)
{
    static const enum rddp_wr_opcode opcodes[] = {RDDP_WR_RDMA_WRITE, RDDP_WR_SEND, RDDP_WR_RDMA_READ,
                                                  RDDP_WR_ATOMIC_FETCH_AND_ADD};
    struct rng rng;

    rng = (struct rng){seed + end};
    *plan = (struct plan){.target = TARGET_AT, .sink = SINK_AT, .receive = RECEIVE_AT};
    for (unsigned i = 0; i < OPS; i++) {
        struct op *op = &plan->op[i];
        uint32_t *next;

        op->opcode = opcodes[rng_below(&rng, countof(opcodes))];
        op->length = op->opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD ? 8 : rng_below(&rng, LENGTH_MAX + 1);
        op->at = rng_below(&rng, SOURCE - LENGTH_MAX);
        next = op->opcode == RDDP_WR_RDMA_WRITE ? &plan->target
               : op->opcode == RDDP_WR_SEND     ? &plan->receive
                                                : &plan->sink;
        *next = (*next + 7) & ~7u;
        op->place = *next;
        *next += op->opcode == RDDP_WR_SEND ? LENGTH_MAX : op->length;
        plan->sends += op->opcode == RDDP_WR_SEND;
        plan->atomics += op->opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD;
    }
}

static void post_op(struct hand *hand, const struct op *op, uint32_t number, uint32_t peer_key)
{
    bool outward = op->opcode == RDDP_WR_RDMA_WRITE || op->opcode == RDDP_WR_SEND;
    struct rddp_sge sge = {outward ? op->at : op->place, op->length, rddp_mr_key(hand->mr)};
    struct rddp_send_wr wr = {
        .wr_id = number,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = op->opcode,
        .send_flags = RDDP_SEND_SIGNALED,
        .remote_addr = op->opcode == RDDP_WR_RDMA_WRITE  ? op->place
                       : op->opcode == RDDP_WR_RDMA_READ ? op->at
                                                         : WORD_AT,
        .rkey = peer_key,
        .compare_add = 1,
    };

    assert_int_equal(rddp_post_send(hand->qp, &wr, NULL), 0);
}

static void check_receive(struct hand *hand, const struct plan *theirs, const uint8_t *source, uint32_t number,
                          const struct rddp_wc *wc)
{
    const struct op *op = theirs->op;

    for (uint32_t sends = 0; sends < number || op->opcode != RDDP_WR_SEND; op++)
        sends += op->opcode == RDDP_WR_SEND;
    assert_int_equal(wc->wr_id, number);
    assert_int_equal(wc->byte_len, op->length);
    assert_memory_equal(hand->buffer + op->place, source + op->at, op->length);
}

/* Posts the plan, and takes all completions, its own and those of the peer's Sends. */
static void carry_out(struct hand *hand, const struct plan *ours, const struct plan *theirs, const uint8_t *source,
                      uint32_t peer_key)
{
    uint32_t posted = 0, done = 0, offered = 0, received = 0;

    while (done < OPS || received < theirs->sends) {
        struct rddp_wc wc;

        for (; offered < theirs->sends && offered - received < HAND_DEPTH; offered++)
            hand_receive(hand, offered, RECEIVE_AT + offered * LENGTH_MAX, LENGTH_MAX);
        for (; posted < OPS && posted - done < UNDER_WAY; posted++)
            post_op(hand, &ours->op[posted], posted, peer_key);
        wc = hand_completion(hand);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        if (wc.opcode & RDDP_WC_RECV)
            check_receive(hand, theirs, source, received++, &wc);
        else
            assert_int_equal(wc.wr_id, done++);
    }
}

/* When both ends are done: what the peer wrote, what was read here, and how often the word was counted up. */
static void check_memory(struct hand *hand, const struct plan *ours, const struct plan *theirs, const uint8_t *source)
{
    uint64_t count, old, last = 0;

    for (unsigned i = 0; i < OPS; i++) {
        const struct op *op = &theirs->op[i];

        if (op->opcode == RDDP_WR_RDMA_WRITE)
            assert_memory_equal(hand->buffer + op->place, source + op->at, op->length);
        op = &ours->op[i];
        if (op->opcode == RDDP_WR_RDMA_READ)
            assert_memory_equal(hand->buffer + op->place, source + op->at, op->length);
        if (op->opcode != RDDP_WR_ATOMIC_FETCH_AND_ADD)
            continue;
        memcpy(&old, hand->buffer + op->place, sizeof(old));
        assert_int_equal(old, last++);
    }
    /* The peer has said that it is done; the thread that counted has not. */
    count = __atomic_load_n((const uint64_t *)(const void *)(hand->buffer + WORD_AT), __ATOMIC_ACQUIRE);
    assert_int_equal(count, theirs->atomics);
}

/* --- an end --------------------------------------------------------------------------------------------------------
 */

static void pipe_write(int fd, const void *p, size_t n)
{
    assert_int_equal(write(fd, p, n), n);
}

static void pipe_read(int fd, void *p, size_t n)
{
    assert_int_equal(read(fd, p, n), n);
}

static void connect_through_relay(struct hands *h, unsigned end)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct rddp_ib_attr attr = h->ib;

    inet_aton(face[!end], &in.sin_addr);
    memcpy(&attr.peer, &in, sizeof(in));
    inet_aton(address[end], &in.sin_addr);
    memcpy(&attr.local, &in, sizeof(in));
    attr.path_mtu = 256;
    attr.peer_qpn = RELAY_QPN + !end;
    attr.sq_psn = h->end[end].psn;
    attr.rq_psn = h->end[!end].psn;
    for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTS; attr.state++)
        assert_int_equal(rddp_modify_qp(h->end[0].qp, &attr), 0);
}

static void run_end(unsigned end, int from, int to)
{
    static struct plan plan[2];
    static uint8_t source[SOURCE];
    struct rddp_qp_info info;
    struct end_name name;
    struct hands h;
    char go;

    hands_open(&h, RDDP_QPT_RC, address[end]);
    hands_make(&h);
    assert_int_equal(rddp_destroy_qp(h.end[1].qp), 0);
    h.end[1].qp = NULL;
    make_plan(&plan[0], end);
    make_plan(&plan[1], !end);
    hand_fill(h.end[0].buffer, SOURCE, end);
    hand_fill(source, SOURCE, !end);
    connect_through_relay(&h, end);
    name = (struct end_name){rddp_qp_num(h.end[0].qp), rddp_mr_key(h.end[0].mr)};
    pipe_write(to, &name, sizeof(name));
    pipe_read(from, &name, sizeof(name));
    carry_out(&h.end[0], &plan[0], &plan[1], source, name.key);
    assert_int_equal(rddp_query_qp(h.end[0].qp, &info), 0);
    pipe_write(to, &info.ib, sizeof(info.ib));
    pipe_read(from, &go, 1);
    check_memory(&h.end[0], &plan[0], &plan[1], source);
    hands_close(&h);
    _exit(0);
}

/* --- the relay -----------------------------------------------------------------------------------------------------
 */

struct held {
    uint64_t due_us;
    unsigned to;
    uint32_t octets;
    uint8_t packet[PACKET_MAX];
};

static struct relay {
    struct rng rng;
    int fd[2]; /* what end I is sent by: at the address that stands for the other one */
    uint32_t qpn[2];
    struct held held[HELD_MAX];
    uint32_t count;
    uint64_t lost;
} relay;

static uint64_t relay_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static struct sockaddr_in address_at(const char *text, uint32_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {inet_addr(text)}};
}

static bool open_face(unsigned end)
{
    struct sockaddr_in own = address_at(face[!end], ROCE_PORT);
    int on = 1, discover = IP_PMTUDISC_DO, octets = 4 << 20;

    relay.fd[end] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(relay.fd[end], SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    setsockopt(relay.fd[end], SOL_SOCKET, SO_RCVBUF, &octets, sizeof(octets));
    setsockopt(relay.fd[end], IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
    return !bind(relay.fd[end], (struct sockaddr *)&own, sizeof(own));
}

/* The addresses, ports and the queue pair number are others behind the relay, and so is the ICRC. */
static void seal_again(struct held *held)
{
    struct sockaddr_in from = address_at(face[!held->to], ROCE_PORT), to = address_at(address[held->to], 0);
    struct icrc_path path = {.source_port = ROCE_PORT, .destination_port = (uint16_t)(relay.qpn[held->to] >> 8)};
    uint32_t rest = held->octets - ICRC_OCTETS;

    memcpy(path.source, &from.sin_addr, sizeof(from.sin_addr));
    memcpy(path.destination, &to.sin_addr, sizeof(to.sin_addr));
    put32(held->packet + 4, (get32(held->packet + 4) & ~BTH_MASK24) | relay.qpn[held->to]);
    put32le(held->packet + rest, icrc_head(icrc_begin(&path, 0, held->octets), held->packet, rest));
}

static void relay_keep(const struct held *held, uint32_t delay_us)
{
    if (relay.count == HELD_MAX)
        return;
    relay.held[relay.count] = *held;
    relay.held[relay.count++].due_us = relay_now_us() + delay_us;
}

static bool happens(uint32_t chance)
{
    return rng_below(&relay.rng, 1000) < chance && !harmless;
}

static void relay_take(unsigned from)
{
    struct held held = {.to = !from};
    ssize_t n;

    /* What an end sends comes to the face of the other. */
    while ((n = recv(relay.fd[from], held.packet, sizeof(held.packet), 0)) >= BTH_OCTETS + ICRC_OCTETS) {
        struct rng *rng = &relay.rng;

        held.octets = (uint32_t)n;
        seal_again(&held);
        if (happens(LOSE)) {
            relay.lost++;
            continue;
        }
        if (happens(REPEAT))
            relay_keep(&held, rng_below(rng, HELD_US));
        if (happens(DAMAGE))
            held.packet[rng_below(rng, held.octets)] ^= (uint8_t)(1 << rng_below(rng, 8));
        relay_keep(&held, happens(HOLD_BACK) ? rng_below(rng, HELD_US) : 0);
    }
}

/* Sends what is due, in the order in which it came. */
static void relay_send(void)
{
    uint64_t now_us = relay_now_us();
    uint32_t kept = 0;

    for (uint32_t i = 0; i < relay.count; i++) {
        struct held *held = &relay.held[i];
        struct sockaddr_in to = address_at(address[held->to], relay.qpn[held->to] >> 8);

        if (held->due_us <= now_us)
            sendto(relay.fd[held->to], held->packet, held->octets, 0, (struct sockaddr *)&to, sizeof(to));
        else
            relay.held[kept++] = *held;
    }
    relay.count = kept;
}

/* Until both ends have written `octets` to their pipes: into `said`, one behind the other. */
static void relay_until(const int from[2], uint8_t *said, size_t octets)
{
    uint64_t end_us = relay_now_us() + (uint64_t)RUN_S * 1000000;
    struct pollfd fds[4] = {
        {relay.fd[0], POLLIN, 0}, {relay.fd[1], POLLIN, 0}, {from[0], POLLIN, 0}, {from[1], POLLIN, 0}};

    while (fds[2].fd >= 0 || fds[3].fd >= 0) {
        assert_true(relay_now_us() < end_us);
        assert_true(poll(fds, 4, relay.count ? 1 : 100) >= 0);
        for (unsigned i = 0; i < 2; i++) {
            relay_take(i);
            if (!(fds[2 + i].revents & (POLLIN | POLLHUP)))
                continue;
            pipe_read(from[i], said + i * octets, octets);
            fds[2 + i] = (struct pollfd){.fd = -1};
        }
        relay_send();
    }
}

/* --- both ----------------------------------------------------------------------------------------------------------
 */

static int to_end[2], from_end[2];
static pid_t pid[2];

static void start_end(unsigned end)
{
    int down[2], up[2];

    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    pid[end] = fork();
    assert_true(pid[end] >= 0);
    if (!pid[end]) {
        close(down[1]);
        close(up[0]);
        alarm(2 * RUN_S);
        run_end(end, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    to_end[end] = down[1];
    from_end[end] = up[0];
}

static void through_losses(void **state)
{
    struct rddp_ib_counters c[2];
    struct end_name name[2];
    int status;

    (void)state;
    for (unsigned end = 0; end < 2; end++)
        if (!open_face(end))
            skip(); /* port 4791 is another user's */
    for (unsigned end = 0; end < 2; end++) {
        start_end(end);
        pipe_read(from_end[end], &name[end], sizeof(name[end]));
        relay.qpn[end] = name[end].qpn;
    }
    for (unsigned end = 0; end < 2; end++)
        pipe_write(to_end[end], &name[!end], sizeof(name[end]));
    relay_until(from_end, (uint8_t *)c, sizeof(c[0]));
    for (unsigned end = 0; end < 2; end++)
        pipe_write(to_end[end], "g", 1);
    for (unsigned end = 0; end < 2; end++) {
        assert_int_equal(waitpid(pid[end], &status, 0), pid[end]);
        assert_int_equal(status, 0);
        assert_int_equal(c[end].wrong_peer, 0);
        assert_int_equal(c[end].wrong_icrc > 0, !harmless);
        assert_true(harmless || (c[end].resent && c[end].naks && c[end].gaps && c[end].duplicates));
    }
    assert_int_equal(relay.lost > 0, !harmless);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(through_losses),
    };
    const char *text = getenv("RDDP_SEED");
    int failed;

    harmless = getenv("RDDP_HARMLESS"); /* for a reader who captures it, and is alone already */
    if (!harmless)
        (void)network_alone(); /* where packets to port 4791 come to this test alone */
    seed = text ? strtoull(text, NULL, 0) : 1;
    relay.rng = (struct rng){seed + 2};
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        fprintf(stderr, "roce_losses: RDDP_SEED=%#llx\n", (unsigned long long)seed);
    return failed;
}
