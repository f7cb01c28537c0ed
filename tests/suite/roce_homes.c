/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_homes.c - the sockets of a port that are bound to one address each: which connections have them, and who else
 * gets packets meanwhile. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "endpoint/objects.h"
#include "roce/icrc.h"
#include "roce/io/roce_port.h"
#include "tests/lib/descriptors.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

enum { PAIRS = ROCE_HOMES + 2, QKEY = 0x11111111, FAR = 1 << 20, MESSAGES = 32, SEALED = 40 };

static struct hands h;
static const char near[] = "127.0.0.1";

static struct roce_port *port_of(unsigned end)
{
    return h.end[end].qp->slot->port;
}

static void connect_at(const char *local)
{
    h.ib.local = hand_address(local, 0);
    hands_connect(&h);
}

static void write_once(unsigned from, uint32_t octets)
{
    hand_fill(h.end[from].buffer, octets, octets);
    hand_post(&h.end[from], &h.end[!from], RDDP_WR_RDMA_WRITE, 0, octets, FAR);
    assert_int_equal(hand_completion(&h.end[from]).status, RDDP_WC_SUCCESS);
    hand_check(h.end[!from].buffer + FAR, octets, octets);
}

static void exchange(void)
{
    for (unsigned from = 0; from < 2; from++)
        write_once(from, 5000 + from);
}

/* A queue pair of RTR at this local address, at the port of end 1, or a step that fails so. */
static struct rddp_qp *another_at(const struct sockaddr_storage *local, int wanted)
{
    struct rddp_ib_attr attr = h.ib;
    struct rddp_qp *qp;

    h.qp.send_cq = h.qp.recv_cq = h.end[1].cq;
    qp = rddp_create_qp(h.end[1].pd, &h.qp);
    assert_non_null(qp);
    assert_ptr_equal(qp->slot->port, port_of(1));
    attr.peer = h.address;
    attr.local = *local;
    attr.state = RDDP_IB_INIT;
    assert_int_equal(rddp_modify_qp(qp, &attr), 0);
    attr.state = RDDP_IB_RTR;
    assert_int_equal(rddp_modify_qp(qp, &attr), wanted);
    return qp;
}

/* The wildcard is no address of a connection: the system selects one, and the others of the port hear of nothing. */
static void wildcard(void **state)
{
    static const char *address[] = {near, "::1"}, *any[] = {"0.0.0.0", "::"};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct sockaddr_storage local = hand_address(any[i], 0);
        struct rddp_ib_attr attr;
        struct rddp_qp *other;

        hands_open(&h, RDDP_QPT_RC, address[i]);
        hands_make(&h);
        other = another_at(&local, 0);
        assert_int_equal(rddp_query_ib(other, &attr), 0);
        ((struct sockaddr_in *)&attr.local)->sin_port = 0; /* at the same place for IPv6 */
        assert_memory_equal(&attr.local, &h.address, sizeof(attr.local));
        connect_at(any[i]);
        exchange();
        assert_int_equal(port_of(1)->homes, 1);
        assert_int_equal(rddp_destroy_qp(other), 0);
        hands_close(&h);
    }
}

/* An address that is not here says nothing of others. */
static void not_here(void **state)
{
    struct sockaddr_storage elsewhere = hand_address("192.0.2.9", 0);
    struct rddp_qp *other;

    (void)state;
    hands_open(&h, RDDP_QPT_RC, near);
    hands_make(&h);
    other = another_at(&elsewhere, 0);
    assert_int_equal(port_of(1)->homes, 0);
    hands_connect(&h);
    exchange();
    assert_int_equal(port_of(1)->homes, 1);
    assert_int_equal(rddp_destroy_qp(other), 0);
    hands_close(&h);
}

/* More addresses than there are sockets for, all of them at once. */
static void many_addresses(void **state)
{
    struct rddp_qp *made[PAIRS][2];

    (void)state;
    hands_open(&h, RDDP_QPT_RC, near);
    for (unsigned i = 0; i < PAIRS; i++) {
        char text[INET_ADDRSTRLEN] = "127.0.0.1";

        text[sizeof("127.0.0.") - 1] = (char)('1' + i);
        hands_make(&h);
        h.address = hand_address(text, 0);
        connect_at(text);
        for (unsigned end = 0; end < 2; end++)
            made[i][end] = h.end[end].qp;
    }
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < PAIRS; i++) {
            for (unsigned end = 0; end < 2; end++)
                h.end[end].qp = made[i][end];
            exchange();
        }
    }
    for (unsigned end = 0; end < 2; end++)
        assert_int_equal(port_of(end)->homes, ROCE_HOMES);
    for (unsigned i = 0; i < PAIRS - 1; i++)
        for (unsigned end = 0; end < 2; end++)
            assert_int_equal(rddp_destroy_qp(made[i][end]), 0);
    hands_close(&h);
}

static int option_of(int level, int option)
{
    int value = -1;
    socklen_t length = sizeof(value);

    assert_int_equal(getsockopt(port_of(0)->home[0].udp.fd, level, option, &value, &length), 0);
    return value;
}

/* All sockets of a port take packets of IPv6 without a checksum of UDP, as rxe sends them, and send none that routers
 * may cut; none shares its port. */
static void options(void **state)
{
    static const char *address[] = {near, "::1"};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        hands_open(&h, RDDP_QPT_RC, address[i]);
        hands_make(&h);
        hands_connect(&h);
        exchange();
        assert_int_equal(port_of(0)->homes, 1);
        assert_int_equal(option_of(SOL_SOCKET, SO_REUSEPORT), 0);
        assert_int_equal(option_of(IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_DO);
        if (i) {
            assert_int_equal(option_of(IPPROTO_IPV6, IPV6_MTU_DISCOVER), IPV6_PMTUDISC_DO);
            assert_int_equal(option_of(SOL_UDP, UDP_NO_CHECK6_RX), 1);
        }
        hands_close(&h);
    }
}

/* What the kernel did not take is counted, by whichever socket. */
static void counted(void **state)
{
    struct rddp_qp_info info;

    (void)state;
    hands_open(&h, RDDP_QPT_RC, near);
    hands_make(&h);
    hands_connect(&h);
    port_of(0)->own.udp.dropped = 100;
    port_of(0)->home[0].udp.dropped = 20;
    assert_int_equal(rddp_query_qp(h.end[0].qp, &info), 0);
    assert_int_equal(info.ib.dropped, 120);
    hands_close(&h);
}

/* --- what others read of it --------------------------------------------------------------------------------------- */

/* Takes all that was captured. Returns how many packets of IPv4 came from this port: the ICRC of each is right for the
 * headers that it had on the way, of which a peer of another make has to know no more. */
static unsigned check_sealed(int fd, uint16_t port)
{
    enum { IP = 20, UDP = 8 };
    uint8_t p[IP + UDP + 2048], *udp = p + IP;
    struct sockaddr_ll from;
    unsigned packets = 0;
    socklen_t length = sizeof(from);

    while (recvfrom(fd, p, sizeof(p), MSG_DONTWAIT, (struct sockaddr *)&from, &length) >= 0) {
        struct icrc_path path = {.source_port = get16(udp), .destination_port = get16(udp + 2)};

        length = sizeof(from);
        if (from.sll_pkttype == PACKET_OUTGOING || p[0] != 0x45 || p[9] != IPPROTO_UDP || path.source_port != port)
            continue;
        memcpy(path.source, p + 12, 4);
        memcpy(path.destination, p + 16, 4);
        assert_true(icrc_is_exact(&path, get16(p + 4), udp + UDP, get16(udp + 4) - UDP));
        packets++;
    }
    return packets;
}

/* However many have left by it: a socket that is connected counts the identifications of IPv4, which the ICRC covers,
 * from a random number on, and our own receiver would accept that. */
static void sealed(void **state)
{
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));

    (void)state;
    assert_true(fd >= 0);
    hands_open(&h, RDDP_QPT_RC, near);
    hands_make(&h);
    hands_connect(&h);
    for (unsigned i = 0; i < SEALED; i++)
        write_once(0, 64);
    assert_int_equal(port_of(0)->homes, 1);
    assert_true(check_sealed(fd, port_of(0)->own.number) >= SEALED);
    for (unsigned i = 0; i < SEALED; i++)
        write_once(0, 64);
    assert_true(check_sealed(fd, port_of(1)->own.number) >= SEALED);
    close(fd);
    hands_close(&h);
}

/* --- datagrams beside a connection -------------------------------------------------------------------------------- */

static struct rddp_qp *ud[2];

static void ud_open(void)
{
    struct rddp_qp_attr qp = h.qp;
    struct rddp_ib_attr attr;

    rddp_ib_attr_init(&attr);
    attr.qkey = QKEY;
    qp.type = RDDP_QPT_UD;
    for (unsigned i = 0; i < 2; i++) {
        qp.send_cq = qp.recv_cq = h.end[i].cq;
        ud[i] = rddp_create_qp(h.end[i].pd, &qp);
        assert_non_null(ud[i]);
        for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTS; attr.state++)
            assert_int_equal(rddp_modify_qp(ud[i], &attr), 0);
    }
}

/* Returns how often the receiver had to be polled. */
static unsigned ud_once(unsigned from)
{
    struct rddp_sge sge = {0, 100, rddp_mr_key(h.end[from].mr)};
    struct rddp_sge to = {FAR, RDDP_GRH_OCTETS + 100, rddp_mr_key(h.end[!from].mr)};
    struct rddp_recv_wr receive = {.sg_list = &to, .num_sge = 1};
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED};
    struct rddp_ah_attr attr;
    struct rddp_ah *way;
    struct rddp_wc wc;
    unsigned polls = 1;

    rddp_ah_attr_init(&attr);
    attr.peer = h.address;
    wr.ah = way = rddp_create_ah(h.end[from].pd, &attr);
    assert_non_null(way);
    wr.remote_qpn = rddp_qp_num(ud[!from]);
    wr.remote_qkey = QKEY;
    hand_fill(h.end[from].buffer, 100, from);
    assert_int_equal(rddp_post_recv(ud[!from], &receive, NULL), 0);
    assert_int_equal(rddp_post_send(ud[from], &wr, NULL), 0);
    assert_int_equal(hand_completion(&h.end[from]).status, RDDP_WC_SUCCESS);
    while (!rddp_poll_cq(h.end[!from].cq, 1, &wc))
        assert_true(polls++ < 1000);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    assert_int_equal(wc.byte_len, RDDP_GRH_OCTETS + 100);
    hand_check(h.end[!from].buffer + FAR + RDDP_GRH_OCTETS, 100, from);
    assert_int_equal(rddp_destroy_ah(way), 0);
    return polls;
}

/* They come by the socket of their address, and a poller finds them there, not only when it asks all sockets. */
static void datagrams_beside(void **state)
{
    unsigned polls = 0;

    (void)state;
    hands_open_manual(&h, RDDP_QPT_RC, near);
    hands_make(&h);
    ud_open();
    ud_once(0);
    ud_once(1);
    hands_connect(&h);
    assert_int_equal(port_of(1)->homes, 1);
    assert_ptr_equal(ud[1]->slot->port, port_of(1));
    ud_once(0);
    ud_once(1);
    for (unsigned i = 0; i < MESSAGES; i++)
        polls += ud_once(0);
    assert_true(polls <= 2 * MESSAGES);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rddp_destroy_qp(ud[i]), 0);
    hands_close(&h);
}

/* --- addresses of a link -------------------------------------------------------------------------------------------
 */

static bool add_link_local(struct sockaddr_storage *address)
{
    struct in6_ifreq request = {.ifr6_prefixlen = 64, .ifr6_ifindex = (int)if_nametoindex("lo")};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done;

    if (fd < 0)
        return false;
    *address = hand_address("fe80::1", 0);
    ((struct sockaddr_in6 *)address)->sin6_scope_id = (uint32_t)request.ifr6_ifindex;
    request.ifr6_addr = ((struct sockaddr_in6 *)address)->sin6_addr;
    done = !ioctl(fd, SIOCSIFADDR, &request) || errno == EEXIST;
    for (int i = 0; i < 1000 && done && bind(fd, (struct sockaddr *)address, sizeof(*address)); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* the kernel is not done with the new address */
    close(fd);
    return done;
}

/* Several links may have the same one: their packets come to the socket of all addresses, which says from where, and
 * others of the port have theirs all the same. */
static void of_a_link(void **state)
{
    struct sockaddr_storage address;

    (void)state;
    if (!add_link_local(&address))
        skip();
    hands_open(&h, RDDP_QPT_RC, near);
    hands_make(&h);
    h.address = address;
    hands_connect(&h);
    exchange();
    assert_int_equal(port_of(0)->homes, 0);
    assert_false(port_of(0)->has_no_more);
    hands_close(&h);
}

/* --- what stays behind -------------------------------------------------------------------------------------------- */

/* Can a socket have this port at `near`? */
static bool is_free(uint16_t port)
{
    struct sockaddr_storage address = hand_address(near, port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool free = !bind(fd, (struct sockaddr *)&address, sizeof(struct sockaddr_in));

    close(fd);
    return free;
}

static void closed(void **state)
{
    unsigned before = count_descriptors();

    (void)state;
    hands_open(&h, RDDP_QPT_RC, near);
    hands_make(&h);
    connect_at(near);
    exchange();
    hands_close(&h);
    assert_int_equal(count_descriptors(), before);
}

/* A child gives up its copies at its first call. */
static void left_to_the_parent(void **state)
{
    int from[2], to[2], status;
    struct rddp_qp_info info;
    uint16_t number;
    char octet;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(from), 0);
    assert_int_equal(pipe(to), 0);
    hands_open(&h, RDDP_QPT_RC, near);
    hands_make(&h);
    connect_at(near);
    exchange();
    number = port_of(0)->own.number;
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        for (unsigned i = 0; i < 2; i++)
            rddp_query_qp(h.end[i].qp, &info);
        if (write(from[1], "", 1) != 1 || read(to[0], &octet, 1) != 1)
            _exit(1);
        _exit(0);
    }
    assert_int_equal(read(from[0], &octet, 1), 1);
    exchange();
    hands_close(&h);
    assert_true(is_free(number));
    assert_int_equal(write(to[1], "", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (unsigned i = 0; i < 2; i++) {
        close(from[i]);
        close(to[i]);
    }
}

/* --- another network -----------------------------------------------------------------------------------------------
 */

static bool has_moved;

static void *connect_elsewhere(void *arg)
{
    (void)arg;
    has_moved = network_alone();
    if (has_moved)
        connect_at(near);
    return NULL;
}

/* A thread that has moved to another network connects: what it opens there would hear nothing. */
static void from_elsewhere(void **state)
{
    pthread_t thread;

    (void)state;
    hands_open(&h, RDDP_QPT_RC, near);
    hands_make(&h);
    assert_int_equal(pthread_create(&thread, NULL, connect_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    if (has_moved) {
        exchange();
        assert_int_equal(port_of(0)->homes, 0);
        assert_true(port_of(0)->has_no_more);
    }
    hands_close(&h);
    if (!has_moved)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wildcard),       cmocka_unit_test(not_here), cmocka_unit_test(many_addresses),
        cmocka_unit_test(options),        cmocka_unit_test(counted),  cmocka_unit_test(datagrams_beside),
        cmocka_unit_test(of_a_link),      cmocka_unit_test(closed),   cmocka_unit_test(left_to_the_parent),
        cmocka_unit_test(from_elsewhere), cmocka_unit_test(sealed),
    };

    if (!network_alone()) {
        print_message("no namespace with addresses of its own here\n");
        return 77;
    }
    return cmocka_run_group_tests_name("roce_homes", tests, NULL, NULL);
}
