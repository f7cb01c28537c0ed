/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.c - specific to connections over a device: early placement, refused calls, lingering, and the kernel's TCP as
 * the other end in either role. */
#include <errno.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/suite/lib/network.h"
#include "tests/suite/lib/pair.h"

enum { LENGTH = 1 << 20, ROUNDS = 12 };

static struct pair *of(void **state)
{
    if (!(*(struct pair **)state)->row->packet)
        skip();
    return *state;
}

static struct rddp_device_attr attr_of(struct sockaddr_storage *own, uint32_t net)
{
    struct rddp_device_attr attr;

    network_address(own, net, 2, 0);
    rddp_device_attr_init(&attr);
    attr.address = (struct sockaddr *)own;
    return attr;
}

static void write_and_say(struct pair *pair, unsigned round)
{
    pair_pattern(pair->client.buffer, LENGTH, round);
    pair_receive(&pair->server, round, LENGTH, 1);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, round, 0, LENGTH, 0, 0), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, round, 0, 1, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(pair->server.buffer, LENGTH, round));
}

/* Behind a loss nothing distinguishable waits, MPA-5.1-03 MPA-5.2-09, and no more is kept than a few segments; the Send
 * behind the Write shows when it is complete, MPA-5.1-08 MPA-5.2-11. Without a CRC everything waits. The order is that
 * of stream positions. MPA-3.2-05 MPA-4-02 MPA-5.1-02 MPA-5.1-07 MPA-5.2-10 MPA-13-01 */
static void placed_early(void **state)
{
    struct pair *pair = of(state);
    bool can = (pair->row->aligned || pair->row->server_markers || pair->row->wire == RDDP_WIRE_RDMATCP);
    struct rddp_qp_info info;

    for (unsigned i = 0; i < ROUNDS; i++)
        write_and_say(pair, i);
    assert_int_equal(rddp_query_qp(pair->server.qp, &info), 0);
    assert_int_equal(info.emss, 1500 - 40 - 12);
    if (pair->row->lose && can)
        assert_true(info.placed_early > 100000);
    if (!can)
        assert_int_equal(info.placed_early, 0);
    if (pair->row->lose && can)
        assert_true(info.kept_max < 32768);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_true(!pair->row->lose || info.sent_again);
}

/* Opens a socket that gets each packet that the kernel sends to any device. */
static int watch_packets(void)
{
    struct timeval limit = {.tv_sec = 0, .tv_usec = 100000};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)), size = 8 << 20, on = 1;

    assert_true(fd >= 0);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
    return fd;
}

static void check_fpdus(const uint8_t *p, size_t n, size_t each)
{
    for (size_t length; n; p += length, n -= length) {
        length = n < each ? n : each;
        assert_int_equal(length, (2 + get16(p) + 3) / 4 * 4 + 4);
    }
}

/* The server says something. Its packet acknowledges all that came before it. */
static void say_back(struct pair *pair)
{
    pair_receive(&pair->client, 0, 2 * LENGTH, 1);
    assert_int_equal(pair_post(&pair->server, &pair->client, RDDP_WR_SEND, 0, 2 * LENGTH, 1, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
}

/* Is this a packet of the client behind the server's answer? What was sent before it may come again. */
static bool is_news(const uint8_t *ip, const uint8_t *tcp, uint32_t *from, bool *answered)
{
    if (ip[17] == 1 && !*answered) { /* to 10.1.0.2, the client */
        *from = get32(tcp + 8);
        *answered = true;
    }
    return ip[17] == 2 && *answered && (int32_t)(get32(tcp + 4) - *from) >= 0;
}

/* Reads what was sent behind the server's answer. A packet may stand for segments of equal length, into which the
 * device cuts it. None is longer than `mtu`, and if `framed`, each is one FPDU without markers. Returns the number of
 * packets with data. */
static uint32_t check_segments(int fd, uint32_t mtu, bool framed)
{
    static struct {
        struct virtio_net_hdr is;
        uint8_t octets[65536];
    } packet;
    struct sockaddr_ll from;
    socklen_t length = sizeof(from);
    uint32_t packets = 0, begin = 0;
    bool answered = false;
    ssize_t n;

    while ((n = recvfrom(fd, &packet, sizeof(packet), 0, (struct sockaddr *)&from, &length)) > 0) {
        const uint8_t *ip = packet.octets;
        size_t octets = (size_t)n - sizeof(packet.is), head = (ip[0] & 15) * 4U + (ip[32] >> 4) * 4U;
        size_t each = packet.is.gso_type ? packet.is.gso_size : octets - head;

        length = sizeof(from);
        if (from.sll_pkttype != PACKET_OUTGOING || ip[0] >> 4 != 4 || ip[9] != IPPROTO_TCP || octets == head ||
            !is_news(ip, ip + (ip[0] & 15) * 4U, &begin, &answered))
            continue;
        packets++;
        assert_true(head + each <= mtu);
        if (framed)
            check_fpdus(ip + head, octets - head, each);
    }
    return packets;
}

/* The kernel says that the path takes less than the device: the EMSS follows, FPDUs follow the EMSS by the formula, and
 * what was in flight is cut again. MPA-4-03 MPA-5.1-01 MPA-5.1-02 */
static void narrower(void **state)
{
    static const uint32_t mtus[] = {1400, 576};
    struct pair *pair = of(state);
    bool framed = pair->row->aligned && !pair->row->client_markers;
    struct rddp_qp_info info;

    for (size_t i = 0; i < sizeof(mtus) / sizeof(*mtus); i++) {
        unsigned round = (unsigned)(2 * i);
        int fd;

        pair_pattern(pair->client.buffer, LENGTH, round);
        pair_receive(&pair->server, round, LENGTH, 1);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, round, 0, LENGTH, 0, 0), 0);
        assert_true(network_narrow(false, 2, mtus[i]));
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, round, 0, LENGTH, 0, 0), 0);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, round, 0, 1, 0, RDDP_SEND_SIGNALED), 0);
        assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
        assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
        assert_true(pair_is_pattern(pair->server.buffer, LENGTH, round));
        assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
        assert_int_equal(info.emss, mtus[i] - 40 - 12);
        fd = watch_packets();
        say_back(pair);
        write_and_say(pair, round + 1);
        assert_true(check_segments(fd, mtus[i], framed) > 0); /* what there is space for */
        close(fd);
    }
}

static void refuses(const struct pair *pair, const struct rddp_device_attr *attr)
{
    errno = 0;
    assert_null(rddp_open_device(pair->client.context, attr));
    assert_int_equal(errno, EINVAL);
}

/* MPA-13-07 MPA-13-08: no window that is too small for an FPDU. */
static void refused(void **state)
{
    struct pair *pair = of(state);
    struct sockaddr_storage own, v6 = {.ss_family = AF_INET6};
    struct rddp_device_attr attr = attr_of(&own, 3);
    struct rddp_wire_attr wire = pair_wire(pair->row, false);

    attr.mtu = 1279;
    refuses(pair, &attr);
    attr.mtu = 65536;
    refuses(pair, &attr);
    attr = attr_of(&own, 3);
    attr.window = 4095;
    refuses(pair, &attr);
    attr = attr_of(&own, 3);
    attr.connections = 0;
    refuses(pair, &attr);
    attr = attr_of(&own, 3);
    attr.lose = 100001;
    refuses(pair, &attr);
    attr = attr_of(&own, 3);
    attr.name = "a-name-that-is-too-long";
    refuses(pair, &attr);
    attr = attr_of(&own, 3);
    attr.neighbor = (struct sockaddr *)&v6;
    refuses(pair, &attr);
    attr.address = NULL;
    refuses(pair, &attr);
    /* Used by a queue pair, or by a listener; of another context; without a socket. */
    assert_int_equal(rddp_close_device(pair->client.device), -EBUSY);
    assert_int_equal(rddp_close_device(pair->server.device), -EBUSY);
    wire.device = pair->client.device;
    assert_null(rddp_listen(pair->server.events, (struct sockaddr *)&own, sizeof(own), 1, &wire, NULL));
    assert_null(rddp_listen_fd(pair->client.events, -1, &wire, NULL));
    assert_int_equal(rddp_close(pair->client.context), -EBUSY);
}

static void ports(void **state)
{
    struct pair *pair = of(state);
    struct rddp_wire_attr wire = pair_wire(pair->row, true);
    struct sockaddr_storage any, bound;
    struct rddp_listener *listener;

    wire.device = pair->client.device;
    network_address(&any, 0, 0, 0);
    ((struct sockaddr_in *)&any)->sin_addr.s_addr = INADDR_ANY;
    listener = rddp_listen(pair->client.events, (struct sockaddr *)&any, sizeof(any), 1, &wire, NULL);
    assert_non_null(listener);
    assert_int_equal(rddp_listener_addr(listener, &bound), 0);
    assert_true(((struct sockaddr_in *)&bound)->sin_port);
    assert_null(rddp_listen(pair->client.events, (struct sockaddr *)&bound, sizeof(bound), 1, &wire, NULL));
    assert_int_equal(errno, EADDRINUSE);
    assert_int_equal(rddp_destroy_listener(listener), 0);
}

/* The peer gets the end, and what was sent before, although the queue pair is gone. */
static void lingers(void **state)
{
    struct pair *pair = of(state);

    for (unsigned i = 0; i < 8; i++)
        pair_receive(&pair->server, i, (size_t)i * 100000, 100000);
    pair_pattern(pair->client.buffer, 100000, 7);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, i, 0, 100000, 0, 0), 0);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(pair->server.buffer + 700000, 100000, 7));
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
}

/* No such address, no such port. */
static void unreachable(void **state)
{
    struct pair *pair = of(state);
    struct rddp_qp_attr attr = pair->qp_attr;
    struct rddp_conn_attr conn;
    struct sockaddr_storage to;
    struct rddp_event event;
    struct rddp_qp *qp;

    attr.send_cq = attr.recv_cq = pair->client.cq;
    qp = rddp_create_qp(pair->client.pd, &attr);
    assert_non_null(qp);
    rddp_conn_attr_init(&conn);
    conn.wire.device = pair->client.device;
    network_address(&to, 2, 2, 9);
    assert_int_equal(rddp_connect(qp, pair->client.events, (struct sockaddr *)&to, sizeof(to), &conn), 0);
    event = pair_event(&pair->client, RDDP_EVENT_UNREACHABLE);
    assert_int_equal(event.status, -ECONNREFUSED);
    assert_int_equal(rddp_destroy_qp(qp), 0);
}

/* The buffers of a connection need a descriptor while they are mapped; it is said what was missing, and nothing is left
 * behind. */
static void without_descriptors(void **state)
{
    struct pair *pair = of(state);
    struct rddp_qp_attr attr = pair->qp_attr;
    struct rddp_conn_attr conn;
    struct rlimit all, none;
    struct rddp_qp *qp;
    int lowest = dup(0), error;

    assert_int_equal(close(lowest), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = all.rlim_max};
    attr.send_cq = attr.recv_cq = pair->client.cq;
    qp = rddp_create_qp(pair->client.pd, &attr);
    assert_non_null(qp);
    rddp_conn_attr_init(&conn);
    conn.wire.device = pair->client.device;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    error = rddp_connect(qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &conn);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    assert_int_equal(error, -EMFILE);
    assert_int_equal(dup(0), lowest);
    assert_int_equal(close(lowest), 0);
    assert_int_equal(rddp_destroy_qp(qp), 0);
    write_and_say(pair, 1);
}

/* The device is taken away from below: connections end, no more can be made, and no thread spins on what is left of it.
 */
static void removed(void **state)
{
    struct pair *pair = of(state);
    struct timespec a_while = {.tv_nsec = 400000000}, begun, ended;
    struct rddp_wire_attr wire = pair_wire(pair->row, true);
    struct rddp_conn_attr attr;
    struct rddp_qp *qp = pair->client.qp;

    assert_true(network_remove(1));
    assert_int_equal(pair_event(&pair->client, RDDP_EVENT_DISCONNECTED).status, -ECONNRESET);
    assert_true(pair_said(&pair->client, "the device is gone"));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
    nanosleep(&a_while, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    assert_true((ended.tv_sec - begun.tv_sec) * 1000 + (ended.tv_nsec - begun.tv_nsec) / 1000000 < 100);
    assert_int_equal(rddp_reset_qp(qp), 0);
    rddp_conn_attr_init(&attr);
    attr.wire.device = pair->client.device;
    assert_int_equal(rddp_connect(qp, pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), &attr),
                     -ENODEV);
    wire.device = pair->client.device;
    assert_null(rddp_listen(pair->client.events, (struct sockaddr *)&pair->addr, sizeof(pair->addr), 1, &wire, NULL));
    assert_int_equal(errno, ENODEV);
}

int main(void)
{
    static const struct pair_test tests[] = {PAIR_TEST(removed),      PAIR_TEST(without_descriptors),
                                             PAIR_TEST(placed_early), PAIR_TEST(refused),
                                             PAIR_TEST(ports),        PAIR_TEST(narrower),
                                             PAIR_TEST(lingers),      PAIR_TEST(unreachable)};

    return pair_run("packet", tests, sizeof(tests) / sizeof(*tests), true);
}
