/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_ports.c - many processes behind UDP port 4791, and a peer of another make that knows this port alone: a bare
 * socket at an address of its own. ROCE-PORT-01, ROCE-PORT-04. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "roce/bth.h"
#include "roce/icrc.h"
#include "roce/io/roce_passing.h"
#include "roce/io/roce_port.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

enum {
    PROCESSES = 50,
    SOURCES = 6,     /* ports that the peer sends from: the system selects a process by them */
    PEER_QPN = 0x11, /* of the first process; no port of ours */
    OCTETS = 8,      /* of a message */
    TRIES = 100,
    WAIT_MS = 200,
    RECEIVES = HAND_DEPTH, /* that each process posts */
};
static const char ours[] = "127.0.0.1", theirs[] = "127.0.0.9";

static struct process {
    pid_t pid;
    int to, from; /* pipes: an octet asks it for its counters, which it writes */
    uint32_t qpn;
    uint32_t psn; /* of the next message to it */
} processes[PROCESSES];
static int source[SOURCES], answers; /* sockets of the peer */

/* --- a process ------------------------------------------------------------------------------------------------------
 */

static void run_process(unsigned number, int from, int to)
{
    struct sockaddr_in peer = {.sin_family = AF_INET};
    struct rddp_qp_info info;
    struct rddp_ib_attr attr;
    struct hands h;
    char command;

    hands_open(&h, RDDP_QPT_RC, ours);
    hands_make(&h);
    assert_int_equal(rddp_destroy_qp(h.end[1].qp), 0); /* one socket at port 4791 is enough */
    h.end[1].qp = NULL;
    attr = h.ib;
    inet_aton(theirs, &peer.sin_addr);
    memcpy(&attr.peer, &peer, sizeof(peer));
    peer.sin_addr.s_addr = inet_addr(ours);
    memcpy(&attr.local, &peer, sizeof(peer));
    attr.peer_qpn = PEER_QPN + number;
    for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTS; attr.state++)
        if (rddp_modify_qp(h.end[0].qp, &attr))
            _exit(1);
    for (unsigned i = 0; i < RECEIVES; i++)
        hand_receive(&h.end[0], i, 0, OCTETS);
    info.ib.passed = rddp_qp_num(h.end[0].qp);
    while (write(to, &info.ib, sizeof(info.ib)) == sizeof(info.ib) && read(from, &command, 1) == 1)
        rddp_query_qp(h.end[0].qp, &info);
    hands_close(&h);
    _exit(0);
}

static struct rddp_ib_counters ask(const struct process *p)
{
    struct rddp_ib_counters counters;

    assert_int_equal(write(p->to, "?", 1), 1);
    assert_int_equal(read(p->from, &counters, sizeof(counters)), sizeof(counters));
    return counters;
}

static void start_process(unsigned number)
{
    struct process *p = &processes[number];
    struct rddp_ib_counters first;
    int down[2], up[2];

    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    *p = (struct process){.pid = fork(), .to = down[1], .from = up[0]};
    assert_true(p->pid >= 0);
    if (!p->pid) {
        for (unsigned i = 0; i <= number; i++) { /* or none sees the end of its pipe */
            close(i == number ? down[1] : processes[i].to);
            close(i == number ? up[0] : processes[i].from);
        }
        run_process(number, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    assert_int_equal(read(p->from, &first, sizeof(first)), sizeof(first));
    p->qpn = (uint32_t)first.passed;
}

/* Its pipe is closed: it ends by itself, without a memory that is not freed. */
static void end_process(struct process *p, int wanted)
{
    int status;

    if (!p->pid)
        return;
    close(p->to);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), wanted);
    close(p->from);
    p->pid = 0;
}

/* --- the peer --------------------------------------------------------------------------------------------------------
 */

static int open_socket(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {inet_addr(theirs)}};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, discover = IP_PMTUDISC_DO;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)), 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a))) {
        close(fd);
        return -1;
    }
    return fd;
}

static uint16_t port_of_socket(int fd)
{
    struct sockaddr_in a;
    socklen_t length = sizeof(a);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &length), 0);
    return ntohs(a.sin_port);
}

/* Writes a Send with one octet `fill` in all places, sealed for a source and port. */
static uint32_t make_packet(uint8_t *p, uint32_t qpn, uint32_t psn, uint16_t from, uint16_t to)
{
    struct bth b = {.service = BTH_RC,
                    .op = BTH_SEND,
                    .flags = BTH_FIRST | BTH_LAST | BTH_MIGRATION | BTH_ACK_REQUEST,
                    .pkey = BTH_PKEY_DEFAULT,
                    .qpn = qpn,
                    .psn = psn,
                    .length = OCTETS};
    struct icrc_path path = {.source_port = from, .destination_port = to};
    uint32_t n = bth_encode(&b, p);
    uint32_t source_address = inet_addr(theirs), destination = inet_addr(ours);

    memcpy(path.source, &source_address, 4);
    memcpy(path.destination, &destination, 4);
    memset(p + n, 0x5a, OCTETS);
    n += OCTETS;
    put32le(p + n, icrc_head(icrc_begin(&path, 0, n + ICRC_OCTETS), p, n));
    return n + ICRC_OCTETS;
}

static void send_to(unsigned from, uint32_t qpn, uint32_t psn)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT), .sin_addr = {inet_addr(ours)}};
    uint8_t packet[128];
    uint32_t n = make_packet(packet, qpn, psn, port_of_socket(source[from]), ROCE_PORT);

    assert_int_equal(sendto(source[from], packet, n, 0, (struct sockaddr *)&to, sizeof(to)), n);
}

/* Waits for the acknowledgement of this message. Returns false if it does not come soon. */
static bool is_acknowledged(uint32_t peer_qpn, uint32_t psn)
{
    struct pollfd fd = {answers, POLLIN, 0};
    uint8_t packet[2048];
    struct bth b;
    ssize_t n;

    while (poll(&fd, 1, WAIT_MS) == 1) {
        n = recv(answers, packet, sizeof(packet), 0);
        assert_true(n > 0);
        assert_int_equal(bth_decode(&b, packet, (uint32_t)n), BTH_OK);
        if (b.op == BTH_ACKNOWLEDGE && b.qpn == peer_qpn && b.psn == psn && (b.syndrome & AETH_KIND) == AETH_ACK)
            return true;
    }
    return false;
}

/* One message to a process from each source: whichever process gets it, the right one answers. */
static void talk_to(unsigned number)
{
    struct process *p = &processes[number];

    for (unsigned from = 0; from < SOURCES; from++, p->psn++) {
        unsigned tries = 0;

        do {
            assert_true(tries++ < TRIES);
            send_to(from, p->qpn, p->psn);
        } while (!is_acknowledged(PEER_QPN + number, p->psn));
    }
}

static int open_peer(void **state)
{
    (void)state;
    answers = open_socket(ROCE_PORT);
    for (unsigned i = 0; i < SOURCES; i++)
        source[i] = open_socket(0);
    return 0;
}

static int close_peer(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROCESSES; i++)
        if (processes[i].pid > 0)
            kill(processes[i].pid, SIGKILL);
    close(answers);
    for (unsigned i = 0; i < SOURCES; i++)
        close(source[i]);
    return 0;
}

/* --- tests -----------------------------------------------------------------------------------------------------------
 */

static uint64_t sum(uint64_t (*count)(const struct rddp_ib_counters *))
{
    uint64_t all = 0;

    for (unsigned i = 0; i < PROCESSES; i++) {
        struct rddp_ib_counters counters;

        if (processes[i].pid) {
            counters = ask(&processes[i]);
            all += count(&counters);
        }
    }
    return all;
}

static uint64_t passed(const struct rddp_ib_counters *c)
{
    return c->passed;
}

static uint64_t handed(const struct rddp_ib_counters *c)
{
    return c->handed;
}

static uint64_t unowned(const struct rddp_ib_counters *c)
{
    return c->unowned;
}

/* All are reached, also after the first of them was killed; what is for the one that is gone is counted, and passed on
 * once at most. */
static void processes_share(void **state)
{
    uint64_t before;

    (void)state;
    if (answers < 0)
        skip(); /* another user, or the kernel's rxe, has the port */
    for (unsigned i = 0; i < PROCESSES; i++)
        start_process(i);
    for (unsigned i = 0; i < PROCESSES; i++)
        talk_to(i);
    assert_true(sum(handed) > 0); /* six sources for all of them: some came to others */

    assert_int_equal(kill(processes[0].pid, SIGKILL), 0);
    end_process(&processes[0], SIGKILL);
    for (unsigned i = 1; i < PROCESSES; i++)
        talk_to(i);

    before = sum(passed);
    assert_true(sum(unowned) == 0);
    for (unsigned from = 0; from < SOURCES; from++)
        send_to(from, processes[0].qpn, 0);
    for (unsigned i = 1; i < PROCESSES; i++)
        talk_to(i); /* behind which those have arrived, whoever got them */
    for (unsigned tries = 0; sum(unowned) < SOURCES && tries < TRIES; tries++)
        usleep(10000);
    assert_int_equal(sum(unowned), SOURCES);
    assert_true(sum(passed) >= before + SOURCES);
    for (unsigned i = 1; i < PROCESSES; i++)
        end_process(&processes[i], 0);
}

/* What is passed on is read within its bounds, and the name of a port has one owner. */
static void passing(void **state)
{
    struct roce_run run = {.octets = 48, .each = 20, .from_port = 7, .to_port = 8, .scope = 9}, got;
    struct roce_passing p;
    uint8_t octets[48];
    uint32_t at = 0, total;
    int fd;

    (void)state;
    memset(octets, 0x3c, sizeof(octets));
    run.at = octets;
    memset(&run.from, 1, sizeof(run.from));
    memset(&run.to, 2, sizeof(run.to));
    assert_int_equal(roce_passing_init(&p), 0);
    roce_passing_put(&p, 900, &run);
    roce_passing_put(&p, 900, &run);
    total = p.octets;
    assert_int_equal(total, 2 * (PASSING_HEAD + sizeof(octets)));
    for (unsigned i = 0; i < 2; i++) {
        assert_true(roce_passing_read(p.out, total, &at, &got));
        assert_memory_equal(got.at, octets, sizeof(octets));
        assert_memory_equal(&got.from, &run.from, sizeof(run.from));
        assert_memory_equal(&got.to, &run.to, sizeof(run.to));
        assert_int_equal(got.from_port, 7);
        assert_int_equal(got.to_port, 8);
        assert_int_equal(got.scope, 9);
        assert_int_equal(got.each, 20);
    }
    assert_false(roce_passing_read(p.out, total, &at, &got));
    for (uint32_t cut = 0; cut < PASSING_HEAD + sizeof(octets); cut++) {
        at = 0;
        assert_false(roce_passing_read(p.out, cut, &at, &got));
    }
    p.out[PASSING_HEAD - 2] = p.out[PASSING_HEAD - 1] = 0; /* packets of no octets */
    at = 0;
    assert_false(roce_passing_read(p.out, total, &at, &got));
    roce_passing_flush(&p);
    assert_int_equal(p.unowned, 6);
    fd = roce_passing_open(900);
    assert_true(fd >= 0);
    assert_int_equal(roce_passing_open(900), -EADDRINUSE);
    for (unsigned i = 0; i < 2000; i++) { /* whose owner does not read: bounded, and counted */
        roce_passing_put(&p, 900, &run);
        roce_passing_flush(&p);
    }
    assert_true(p.lost > 0);
    close(fd);
    roce_passing_fini(&p);
}

enum { ANOTHER_USER = 65534, CANNOT = 2 };

/* Passes packets on in a process of its own, which is this user's or another's. Returns false: it cannot be another's.
 */
static bool hand_in(const char *what, uid_t user)
{
    struct roce_run run = {.at = (const uint8_t *)what, .octets = (uint32_t)strlen(what), .each = 4};
    struct roce_passing p;
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (!pid) {
        if (setresuid(user, user, user))
            _exit(CANNOT);
        if (roce_passing_init(&p))
            _exit(1);
        roce_passing_put(&p, 901, &run);
        roce_passing_flush(&p);
        _exit(p.unowned || p.lost);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    return WEXITSTATUS(status) != CANNOT;
}

static void other_users_cannot_pass(void **state)
{
    uint8_t got[128];
    int fd = roce_passing_open(901);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(roce_passing_receive(fd, got, sizeof(got)), -1);
    assert_true(hand_in("of our own", getuid()));
    assert_int_equal(roce_passing_receive(fd, got, sizeof(got)), PASSING_HEAD + 10);
    if (hand_in("of another's", ANOTHER_USER))
        assert_int_equal(roce_passing_receive(fd, got, sizeof(got)), 0);
    else
        print_message("left out: another user's packets, since no process can become another user here\n");
    assert_int_equal(roce_passing_receive(fd, got, sizeof(got)), -1);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(processes_share, open_peer, close_peer),
        cmocka_unit_test(passing),
        cmocka_unit_test(other_users_cannot_pass),
    };

    if (!network_alone()) {
        print_message("no namespace here: packets to port 4791 would come to other tests, too\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
