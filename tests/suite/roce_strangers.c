/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_strangers.c - packets that are not for a queue pair, or not from its peer: a bare socket sends them, and nothing
 * is answered to any of them. Numbers that were used rest. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "roce/bth.h"
#include "roce/icrc.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/network.h"

enum { PEER_QPN = 0x11, FIRST_PSN = 0x123456, OCTETS = 16, RECEIVES = 8, PACKET = 128 };
static const char ours[] = "127.0.0.1", theirs[] = "127.0.0.9", another[] = "127.0.0.10";

static struct hands h;
static struct hand *hand = &h.end[0];
static int peer = -1, stranger = -1;
static uint32_t psn; /* of the next packet that is executed */

static struct sockaddr_in at_address(const char *text, uint32_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {inet_addr(text)}};
}

static int open_at(const char *address)
{
    struct sockaddr_in own = at_address(address, ROCE_PORT);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, discover = IP_PMTUDISC_DO;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)), 0);
    if (!bind(fd, (struct sockaddr *)&own, sizeof(own)))
        return fd;
    close(fd);
    return -1;
}

/* A queue pair with this P_Key, whose peer is the bare socket. */
static void open_queue_pair(enum rddp_qp_type type, uint16_t pkey)
{
    struct sockaddr_in address = at_address(theirs, 0), local = at_address(ours, 0);
    struct rddp_ib_attr attr;

    hands_open(&h, type, ours);
    hands_make(&h);
    attr = h.ib;
    memcpy(&attr.peer, &address, sizeof(address));
    memcpy(&attr.local, &local, sizeof(local));
    attr.peer_qpn = PEER_QPN;
    attr.rq_psn = psn = FIRST_PSN;
    attr.pkey = pkey;
    for (attr.state = RDDP_IB_INIT; attr.state <= RDDP_IB_RTS; attr.state++)
        assert_int_equal(rddp_modify_qp(hand->qp, &attr), 0);
    for (unsigned i = 0; i < RECEIVES; i++)
        hand_receive(hand, i, 0, OCTETS);
}

static struct bth a_send(void)
{
    return (struct bth){
        .service = BTH_RC,
        .op = BTH_SEND,
        .flags = BTH_FIRST | BTH_LAST | BTH_MIGRATION | BTH_ACK_REQUEST,
        .pkey = BTH_PKEY_DEFAULT,
        .qpn = rddp_qp_num(hand->qp),
        .psn = psn,
        .length = OCTETS,
    };
}

/* Sends it from this socket, with its ICRC, to the port in our number; `harm` changes a bit of an octet. */
static void sends(int fd, const struct bth *b, int harm)
{
    struct sockaddr_in to = at_address(ours, rddp_qp_num(hand->qp) >> 8), from = at_address(theirs, 0);
    struct icrc_path path = {.source_port = ROCE_PORT, .destination_port = ntohs(to.sin_port)};
    uint8_t p[PACKET] = {0};
    uint32_t n = bth_encode(b, p) + b->length;

    if (fd == stranger)
        from = at_address(another, 0);
    memcpy(path.source, &from.sin_addr, 4);
    memcpy(path.destination, &to.sin_addr, 4);
    put32le(p + n, icrc_head(icrc_begin(&path, 0, n + ICRC_OCTETS), p, n));
    if (harm >= 0)
        p[harm] ^= 1;
    assert_int_equal(sendto(fd, p, n + ICRC_OCTETS, 0, (struct sockaddr *)&to, sizeof(to)), n + ICRC_OCTETS);
}

/* The next packet that we get is the acknowledgement of this PSN: so nothing before was answered. */
static void hears_ack(uint32_t of)
{
    struct pollfd fd = {peer, POLLIN, 0};
    uint8_t p[PACKET];
    struct bth b;

    assert_int_equal(poll(&fd, 1, HAND_WAIT_MS), 1);
    assert_int_equal(bth_decode(&b, p, (uint32_t)recv(peer, p, sizeof(p), 0)), BTH_OK);
    assert_int_equal(b.op, BTH_ACKNOWLEDGE);
    assert_int_equal(b.syndrome, AETH_ACK | AETH_NO_CREDITS);
    assert_int_equal(b.qpn, PEER_QPN);
    assert_int_equal(b.psn, of & BTH_MASK24);
}

/* The peer says the same as it should be, which is executed: so what came before was not. */
static void continues(void)
{
    struct bth b = a_send();

    sends(peer, &b, -1);
    hears_ack(psn);
    assert_int_equal(hand_completion(hand).status, RDDP_WC_SUCCESS);
    psn++;
}

static struct rddp_ib_counters counted(void)
{
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(hand->qp, &info), 0);
    return info.ib;
}

/* ROCE-PKT-04: the lower 15 bits are equal, and not both ends are limited members. */
static void partitions(void **state)
{
    struct bth b;

    (void)state;
    open_queue_pair(RDDP_QPT_RC, BTH_PKEY_DEFAULT);
    b = a_send();
    b.pkey = 0xfffe;
    sends(peer, &b, -1);
    b.pkey = 0x7ffe;
    sends(peer, &b, -1);
    continues();
    b = a_send();
    b.pkey = 0x7fff; /* a limited member, and ours is full */
    sends(peer, &b, -1);
    hears_ack(psn++);
    hands_close(&h);

    open_queue_pair(RDDP_QPT_RC, 0x7fff);
    b = a_send();
    b.pkey = 0x7fff;
    sends(peer, &b, -1);
    continues();
    hands_close(&h);
}

/* ROCE-PKT-12 */
static void not_the_peer(void **state)
{
    struct bth b;
    uint8_t p;

    (void)state;
    open_queue_pair(RDDP_QPT_RC, BTH_PKEY_DEFAULT);
    b = a_send();
    sends(stranger, &b, -1);
    continues();
    assert_int_equal(counted().wrong_peer, 1);
    assert_int_equal(recv(stranger, &p, 1, MSG_DONTWAIT), -1);
    hands_close(&h);
}

/* ROCE-PKT-13 */
static void no_such_queue_pair(void **state)
{
    uint64_t before;
    struct bth b;

    (void)state;
    open_queue_pair(RDDP_QPT_RC, BTH_PKEY_DEFAULT);
    before = counted().unowned;
    b = a_send();
    b.qpn ^= 1;
    sends(peer, &b, -1);
    continues();
    assert_int_equal(counted().unowned, before + 1);
    hands_close(&h);
}

/* ROCE-PKT-03, ROCE-PKT-05, ROCE-PKT-07, ROCE-PKT-10 */
static void not_a_packet(void **state)
{
    struct bth b;

    (void)state;
    open_queue_pair(RDDP_QPT_RC, BTH_PKEY_DEFAULT);
    b = a_send();
    sends(peer, &b, 1); /* another version */
    for (int octet = BTH_OCTETS; octet < BTH_OCTETS + OCTETS + ICRC_OCTETS; octet++)
        sends(peer, &b, octet);
    b.service = BTH_UC;
    b.flags &= ~(unsigned)BTH_ACK_REQUEST;
    sends(peer, &b, -1);
    b = a_send();
    b.op = BTH_NOTIFY;
    b.service = BTH_CNP;
    b.flags = BTH_FIRST | BTH_LAST;
    b.length = 0;
    sends(peer, &b, -1); /* a congestion notification */
    continues();
    assert_int_equal(counted().wrong_icrc, OCTETS + ICRC_OCTETS);
    hands_close(&h);
}

/* ROCE-PKT-14: the bit that a request asks for comes to the peer with its last packet, and wakes who waits for it. */
static void solicited(void **state)
{
    struct pollfd fd = {peer, POLLIN, 0};
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SOLICITED};
    uint8_t p[PACKET];
    struct bth b;

    (void)state;
    open_queue_pair(RDDP_QPT_RC, BTH_PKEY_DEFAULT);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rddp_post_send(hand->qp, &wr, NULL), 0);
        do {
            assert_int_equal(poll(&fd, 1, HAND_WAIT_MS), 1);
            assert_int_equal(bth_decode(&b, p, (uint32_t)recv(peer, p, sizeof(p), 0)), BTH_OK);
            assert_int_equal(b.op, BTH_SEND);
        } while (b.psn != ((h.ib.sq_psn + i) & BTH_MASK24)); /* one may come twice */
        assert_int_equal(!!(b.flags & BTH_SOLICITED), !i);
        wr.send_flags = 0;
    }
    hands_close(&h);
}

/* ROCE-PORT-05: a port has 256 numbers, and none of them comes again soon. */
static void numbers_rest(void **state)
{
    enum { TIMES = 300 };
    uint32_t numbers[TIMES];

    (void)state;
    hands_open(&h, RDDP_QPT_RC, ours);
    hands_make(&h);
    h.qp.send_cq = h.qp.recv_cq = hand->cq;
    for (unsigned i = 0; i < TIMES; i++) {
        struct rddp_qp *qp = rddp_create_qp(hand->pd, &h.qp);

        assert_non_null(qp);
        numbers[i] = rddp_qp_num(qp);
        assert_int_equal(rddp_destroy_qp(qp), 0);
        for (unsigned old = 0; old < i; old++)
            assert_int_not_equal(numbers[i], numbers[old]);
    }
    hands_close(&h);
}

static int close_sockets(void **state)
{
    (void)state;
    close(peer);
    close(stranger);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions),   cmocka_unit_test(not_the_peer), cmocka_unit_test(no_such_queue_pair),
        cmocka_unit_test(not_a_packet), cmocka_unit_test(solicited),    cmocka_unit_test(numbers_rest),
    };

    (void)network_alone(); /* where packets to port 4791 come to this test alone */
    peer = open_at(theirs);
    stranger = open_at(another);
    if (peer < 0 || stranger < 0) {
        print_message("roce_strangers: cannot run here: UDP port %u is another user's or the kernel's\n", ROCE_PORT);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, close_sockets);
}
