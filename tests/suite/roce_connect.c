/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_connect.c - connections of RoCE as its connection manager makes them: many at once, listeners at several
 * addresses and in several processes, peers that end without a word, and requests from the network. ROCE-CM-05, 07,
 * 12, 13. */
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
#include "roce/icrc.h"
#include "roce/rcm_message.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/fork_apart.h"
#include "tests/suite/lib/network.h"

enum { MANY = 100, PEER_QPN = 0x11, PEER_ID = 0x1234, TRIES = 50, WAIT_MS = 200, SERVER_S = 60 };

static const char ours[] = "127.0.0.1", theirs[] = "127.0.0.9";

static struct hands h;
static struct rddp_event_channel *channel[2];

static struct rddp_listener *listen_on(const char *text, uint16_t port)
{
    struct sockaddr_storage address = hand_address(text, port);
    struct rddp_wire_attr wire;

    rddp_wire_attr_init(&wire);
    wire.wire = RDDP_WIRE_ROCE;
    return rddp_listen(channel[1], (struct sockaddr *)&address, sizeof(address), 64, &wire, NULL);
}

static void start(struct rddp_qp *qp, uint16_t port)
{
    struct sockaddr_storage address = hand_address(ours, port);
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire.wire = RDDP_WIRE_ROCE;
    assert_int_equal(rddp_connect(qp, channel[0], (struct sockaddr *)&address, sizeof(address), &attr), 0);
}

static struct rddp_event any_event(unsigned end)
{
    struct pollfd fd = {rddp_event_channel_fd(channel[end]), POLLIN, 0};
    struct rddp_event *event, copy;

    assert_int_equal(poll(&fd, 1, HAND_WAIT_MS), 1);
    assert_int_equal(rddp_get_event(channel[end], &event), 0);
    copy = *event;
    rddp_ack_event(event);
    return copy;
}

static struct rddp_event next_event(unsigned end, enum rddp_event_type type)
{
    struct rddp_event event = any_event(end);

    if (event.type != type)
        fail_msg("\"%s\" (%d), not \"%s\"", rddp_event_str(event.type), event.status, rddp_event_str(type));
    return event;
}

static struct rddp_qp *make_qp(unsigned end)
{
    struct rddp_qp *qp;

    h.qp.send_cq = h.qp.recv_cq = h.end[end].cq;
    qp = rddp_create_qp(h.end[end].pd, &h.qp);
    assert_non_null(qp);
    return qp;
}

static int open_ends(void **state)
{
    (void)state;
    hands_open(&h, RDDP_QPT_CONNECTED, ours);
    for (unsigned i = 0; i < 2; i++)
        channel[i] = rddp_create_event_channel(h.end[i].context);
    return 0;
}

static int close_ends(void **state)
{
    struct rddp_event *event;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        if (h.end[i].qp)
            rddp_destroy_qp(h.end[i].qp);
        h.end[i].qp = NULL;
        fcntl(rddp_event_channel_fd(channel[i]), F_SETFL, O_NONBLOCK);
        while (!rddp_get_event(channel[i], &event))
            rddp_ack_event(event);
        assert_int_equal(rddp_destroy_event_channel(channel[i]), 0);
    }
    hands_close(&h);
    return 0;
}

/* --- listeners ---------------------------------------------------------------------------------------------------- */

/* All ask at once, and each carries a message. */
static void many(void **state)
{
    static struct rddp_qp *client[MANY], *server[MANY];
    struct rddp_listener *listener = listen_on("0.0.0.0", 0);
    uint16_t port = hand_port(listener);
    unsigned accepted = 0;

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        client[i] = make_qp(0);
        server[i] = make_qp(1);
        start(client[i], port);
    }
    for (unsigned i = 0; i < 2 * MANY; i++) {
        struct rddp_event event = any_event(1);

        if (event.type == RDDP_EVENT_CONNECT_REQUEST)
            assert_int_equal(rddp_accept(event.request, server[accepted++], NULL), 0);
        else
            assert_int_equal(event.type, RDDP_EVENT_ESTABLISHED);
    }
    assert_int_equal(accepted, MANY);
    for (unsigned i = 0; i < MANY; i++)
        next_event(0, RDDP_EVENT_ESTABLISHED);
    for (unsigned i = 0; i < MANY; i++) {
        h.end[1].qp = server[i];
        hand_receive(&h.end[1], i, 0, 8);
        h.end[0].qp = client[i];
        hand_post(&h.end[0], &h.end[1], RDDP_WR_SEND, 0, 8, 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_SUCCESS);
        assert_int_equal(hand_completion(&h.end[1]).status, RDDP_WC_SUCCESS);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(rddp_disconnect(client[i]), 0);
    for (unsigned i = 0; i < 2 * MANY; i++)
        assert_int_equal(next_event(i % 2, RDDP_EVENT_DISCONNECTED).status, 0);
    h.end[0].qp = h.end[1].qp = NULL;
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(rddp_destroy_qp(client[i]), 0);
        assert_int_equal(rddp_destroy_qp(server[i]), 0);
    }
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

static void expect_listener(uint16_t port, const struct rddp_listener *listener)
{
    struct rddp_event event;

    h.end[0].qp = make_qp(0);
    start(h.end[0].qp, port);
    event = next_event(1, RDDP_EVENT_CONNECT_REQUEST);
    assert_ptr_equal(event.listener, listener);
    assert_int_equal(rddp_reject(event.request, NULL, 0), 0);
    next_event(0, RDDP_EVENT_REJECTED);
    assert_int_equal(rddp_destroy_qp(h.end[0].qp), 0);
    h.end[0].qp = NULL;
}

/* Of the listeners of a port the one takes a request that names its address, then its family, then any. */
static void addresses(void **state)
{
    struct rddp_listener *exact = listen_on(ours, 0), *any, *any_ipv4;
    uint16_t port = hand_port(exact);

    (void)state;
    any = listen_on("::", port);
    any_ipv4 = listen_on("0.0.0.0", port);
    assert_true(any && any_ipv4);
    assert_null(listen_on(ours, port));
    assert_int_equal(errno, EADDRINUSE);
    assert_null(listen_on("192.0.2.1", port));
    assert_int_equal(errno, EADDRNOTAVAIL);
    expect_listener(port, exact);
    assert_int_equal(rddp_destroy_listener(exact), 0);
    expect_listener(port, any_ipv4);
    assert_int_equal(rddp_destroy_listener(any_ipv4), 0);
    expect_listener(port, any);
    assert_int_equal(rddp_destroy_listener(any), 0);
    h.end[0].qp = make_qp(0);
    start(h.end[0].qp, port);
    assert_int_equal(next_event(0, RDDP_EVENT_UNREACHABLE).status, -ECONNREFUSED);
}

/* --- other processes ---------------------------------------------------------------------------------------------- */

static void serve(int to)
{
    struct rddp_listener *listener;
    uint16_t port;

    open_ends(NULL);
    listener = listen_on("0.0.0.0", 0);
    port = hand_port(listener);
    if (write(to, &port, sizeof(port)) != sizeof(port))
        _exit(1);
    for (;;) {
        struct rddp_event event = any_event(1);

        if (event.type == RDDP_EVENT_CONNECT_REQUEST)
            rddp_accept(event.request, make_qp(1), NULL);
    }
}

/* A server in another process. */
static pid_t start_server(uint16_t *port)
{
    int end[2];
    pid_t pid;

#ifdef __SANITIZE_THREAD__
    print_message("the sanitizer allows no thread in a process made by fork() beside others\n");
    skip();
#endif
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    pid = fork_apart(SERVER_S);
    assert_true(pid >= 0);
    if (!pid)
        serve(end[1]);
    close(end[1]);
    assert_int_equal(read(end[0], port, sizeof(*port)), sizeof(*port));
    close(end[0]);
    return pid;
}

static void kill_server(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ROCE-CM-07: nothing tells that a peer was killed but a request that it does not answer. */
static void killed(void **state)
{
    uint16_t port;
    pid_t pid = start_server(&port);

    (void)state;
    h.end[0].qp = make_qp(0);
    start(h.end[0].qp, port);
    next_event(0, RDDP_EVENT_ESTABLISHED);
    kill_server(pid);
    hand_post(&h.end[0], &h.end[0], RDDP_WR_RDMA_WRITE, 0, 8, 0);
    assert_int_equal(hand_completion(&h.end[0]).status, RDDP_WC_RETRY_EXC_ERR);
    assert_int_equal(next_event(0, RDDP_EVENT_DISCONNECTED).status, -ETIMEDOUT);
}

/* --- from the network --------------------------------------------------------------------------------------------- */

static int open_socket(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {inet_addr(theirs)}};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, discover = IP_PMTUDISC_DO;

    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
    if (!bind(fd, (struct sockaddr *)&a, sizeof(a)))
        return fd;
    close(fd);
    return -1;
}

/* A request for this port of a peer of another make. */
static void ask(int fd, uint16_t port, uint32_t id, uint8_t mtu)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT), .sin_addr = {inet_addr(ours)}}, from;
    uint8_t mad[RCM_MAD_OCTETS], packet[RCM_PACKET_OCTETS + ICRC_OCTETS], data[RCM_IP_OCTETS];
    struct rcm_message m = {.attribute = RCM_REQ,
                            .transaction = 7,
                            .local_id = id,
                            .service = rcm_service(RCM_SPACE_TCP, port),
                            .terms = {.qpn = PEER_QPN + id, .mtu = mtu, .pkey = BTH_PKEY_DEFAULT},
                            .local_timeout = 20,
                            .cm_retries = 15,
                            .data = data,
                            .octets = sizeof(data)};
    struct icrc_path path = {.destination_port = ROCE_PORT};
    struct rcm_ip ip = {.port = 1};
    socklen_t length = sizeof(from);

    rcm_ip_encode(&ip, data);
    assert_true(rcm_encode(&m, mad));
    rcm_packet(packet, mad, id);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &length), 0);
    path.source_port = ntohs(from.sin_port);
    memcpy(path.source, &from.sin_addr, 4);
    memcpy(path.destination, &to.sin_addr, 4);
    put32le(packet + RCM_PACKET_OCTETS, icrc_head(icrc_begin(&path, 0, sizeof(packet)), packet, RCM_PACKET_OCTETS));
    assert_int_equal(sendto(fd, packet, sizeof(packet), 0, (struct sockaddr *)&to, sizeof(to)), sizeof(packet));
}

/* Waits for the answer to a request. Returns false if none comes soon. */
static bool is_answered(int fd, uint32_t id, struct rcm_message *m)
{
    static uint8_t packet[2048];
    struct pollfd p = {fd, POLLIN, 0};
    struct bth b;
    ssize_t n;

    while (poll(&p, 1, WAIT_MS) == 1) {
        n = recv(fd, packet, sizeof(packet), 0);
        if (bth_decode(&b, packet, (uint32_t)n) == BTH_OK && rcm_is_packet(&b) &&
            rcm_decode(m, b.data, b.length) == RCM_OK && m->remote_id == id)
            return true;
    }
    return false;
}

static struct rcm_message answer_to(int fd, int answers, uint16_t port, uint32_t id, uint8_t mtu)
{
    struct rcm_message m;
    unsigned tries = 0;

    do {
        assert_true(tries++ < TRIES);
        ask(fd, port, id, mtu);
    } while (!is_answered(answers, id, &m));
    return m;
}

/* Whichever process gets a request at the common port, the one answers that listens; or one of them, that none does. */
static void from_the_network(void **state)
{
    int answers = open_socket(ROCE_PORT), source;
    uint16_t port[2];
    pid_t pid[2] = {start_server(&port[0]), start_server(&port[1])};
    struct rddp_listener *listener = listen_on(ours, 0);
    struct rcm_message m;

    (void)state;
    if (answers < 0)
        skip(); /* the kernel's rxe, or another user, has the port */
    for (uint32_t i = 0; i < 12; i++) {
        source = open_socket(0); /* by which the system selects the process */
        m = answer_to(source, answers, port[i % 2], PEER_ID + i, 3);
        assert_int_equal(m.attribute, RCM_REP);
        m = answer_to(source, answers, 9, PEER_ID + 100 + i, 3);
        assert_int_equal(m.attribute, RCM_REJ);
        assert_int_equal(m.reason, RCM_NO_SERVICE);
        m = answer_to(source, answers, port[i % 2], PEER_ID + 200 + i, 6);
        assert_int_equal(m.reason, RCM_WRONG_MTU);
        close(source);
    }
    for (unsigned i = 0; i < 2; i++)
        kill_server(pid[i]);
    assert_int_equal(rddp_destroy_listener(listener), 0);
    close(answers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(addresses, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(killed, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(from_the_network, open_ends, close_ends),
    };

    (void)network_alone(); /* where packets to port 4791 come to this test alone */
    return cmocka_run_group_tests_name("roce_connect", tests, NULL, NULL);
}
