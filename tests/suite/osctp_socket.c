/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_socket.c - a socket of our own SCTP: packets of no association, a child of fork(), ICMP, owners, when it is
 * due, and SCTP ports. */
#include "tests/suite/osctp_peer.h"

static void strangers(void **state)
{
    (void)state;
    tag = our_tag = 9;
    send_data(1, B | E, 0, 0, "x", 1);
    expect_packet(ABORT);
    assert_int_equal(got[PACKET_COMMON + 1], 1); /* the T bit */
    assert_int_equal(get32(got + 4), 9);
    send_chunk(9, SHUTDOWN_ACK, 0, NULL, 0);
    expect_packet(SHUTDOWN_COMPLETE);
    send_chunk(9, ABORT, 0, NULL, 0);
    send_chunk(9, COOKIE_ACK, 0, NULL, 0);
    send_chunk(9, COOKIE_ECHO, 0, "no cookie of ours", 17);
    expect_silence();
    osctp.unlisten(ours);
    send_init();
    expect_packet(ABORT);
}

/* In a child nothing is sent or received, but all can be closed. */
static void forked(void **state)
{
    struct sctp_assoc *assoc = connect_peer(5, 100);
    int status;
    pid_t child;

    (void)state;
    send_data(100, B | E | U, 0, 0, "mine", 4);
    child = fork();
    if (!child) {
        const struct span span = {(const uint8_t *)"x", 1};
        struct sctp_news news;
        bool bad;

        osctp_abandon(false);
        bad = osctp.drive(ours) || osctp.next(assoc, &news);
        bad |= osctp.enter(ours, true) && osctp.submit(assoc, &span, 1, 0, 0, false) == -1;
        osctp.leave(ours);
        osctp.close(assoc);
        osctp.close_socket(ours);
        _exit(bad);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(take_packet(), -1);
    expect_news(assoc, SCTP_NEWS_MESSAGE, "mine");
    osctp.close(assoc);
    expect_packet(ABORT);
}

/* No one listens at the UDP port. */
static void no_association(void **state)
{
    struct sctp_attr attr = {.alone = true, .udp_port = ntohs(to.sin_port)};
    struct sockaddr_in any = loopback(0), peer = loopback(SCTP_PORT);
    struct sctp_socket *alone;
    const char *why;
    struct sctp_assoc *assoc;
    struct sctp_news news;
    uint64_t end = reactor_now_us() + PATIENCE_US;

    (void)state;
    osctp.close_socket(ours);
    assert_int_equal(osctp.open((const struct sockaddr *)&any, sizeof(any), &attr, &alone, &why), 0);
    assert_int_equal(osctp.connect(alone, (const struct sockaddr *)&peer, &assoc), 0);
    while (!osctp.next(assoc, &news)) {
        assert_true(reactor_now_us() < end);
        poll(NULL, 0, 1);
        osctp.drive(alone);
    }
    assert_int_equal(news.kind, SCTP_NEWS_REFUSED);
    assert_false(osctp.next(assoc, &news));
    osctp.close(assoc);
    ours = alone;
}

/* The owner is reported when there is news, and once. */
static void owners(void **state)
{
    struct sctp_assoc *assoc;
    int owner;

    (void)state;
    ask(5, 100);
    send_chunk(our_tag, COOKIE_ECHO, 0, cookie, cookie_octets);
    expect_packet(COOKIE_ACK);
    assert_null(osctp.ready(ours));
    assoc = osctp.accept(ours);
    assoc->owner = &owner;
    assert_ptr_equal(osctp.ready(ours), &owner);
    assert_null(osctp.ready(ours));
    expect_news(assoc, SCTP_NEWS_UP, NULL);
    send_data(100, B | E | U, 0, 0, "x", 1);
    await_and_drive();
    assert_ptr_equal(osctp.ready(ours), &owner);
    assert_null(osctp.ready(ours));
    osctp.close(assoc);
}

static uint64_t due_in(void)
{
    uint64_t at;

    assert_true(osctp.enter(ours, true));
    at = osctp.due(ours);
    osctp.leave(ours);
    return at == UINT64_MAX ? at : at - reactor_now_us();
}

/* Who has nothing to do is not woken: not without an association, and with an idle one only for its heartbeat. A
 * message that is not acknowledged brings the time forward. */
static void due(void **state)
{
    const struct span span = {(const uint8_t *)"a", 1};
    struct sctp_assoc *assoc;

    (void)state;
    assert_true(due_in() == UINT64_MAX);
    assoc = connect_peer(1, 1000);
    assert_in_range(due_in(), 20000000, 40000000);
    assert_true(osctp.enter(ours, true));
    assert_int_equal(osctp.submit(assoc, &span, 1, 0, 0, false), 0);
    osctp.leave(ours);
    assert_in_range(due_in(), 1, 1000000);
    osctp.close(assoc);
    assert_true(due_in() == UINT64_MAX);
}

/* Returns the TOS of the next packet that the peer gets, which begins with this chunk; -1: another. */
static int tos_of(int type)
{
    char control[256];
    struct iovec iov = {got, sizeof(got)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct pollfd wait = {fd, POLLIN, 0};

    assert_int_equal(poll(&wait, 1, PATIENCE_US / 1000), 1);
    assert_true(recvmsg(fd, &m, 0) > 0);
    assert_int_equal(got[PACKET_COMMON], type);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
            return *CMSG_DATA(c);
    return -1;
}

/* RFC 9260 appendix A, at a socket: DATA leaves with ECT(0), control chunks do not, and CE is read. */
static void ecn(void **state)
{
    enum { ECT0 = 2, CE = 3, ECNE = 12 };
    const struct span span = {(const uint8_t *)"a", 1};
    struct sctp_assoc *assoc;
    int on = 1, ce = CE;

    (void)state;
    is_ecn = true;
    assoc = connect_peer(1, 1000);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)), 0);
    assert_true(osctp.enter(ours, true));
    assert_int_equal(osctp.submit(assoc, &span, 1, 0, 0, false), 0);
    osctp.leave(ours);
    assert_int_equal(tos_of(DATA), ECT0);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_TOS, &ce, sizeof(ce)), 0);
    send_data(1000, B | E | U, 0, 0, "x", 1);
    await_and_drive();
    assert_int_equal(tos_of(ECNE), 0);
    assert_int_equal(get32(got + PACKET_COMMON + 4), 1000);
    assert_int_equal(got[PACKET_COMMON + 8], SACK);
    is_ecn = false;
    osctp.close(assoc);
}

/* SCTP ports of associations and listeners do not meet; limits of the MTU. */
static void ports(void **state)
{
    struct sctp_attr attr = {.mtu = SCTP_MTU_MIN - 1};
    struct sockaddr_in any = loopback(0), peer = loopback(SCTP_PORT);
    struct sctp_assoc *assoc[200];
    struct sockaddr_storage local, remote;
    struct sctp_socket *other;
    bool seen[65536] = {false};
    const char *why;

    (void)state;
    assert_int_equal(osctp.listen(ours, 1), -EADDRINUSE);
    assert_int_equal(osctp.open((const struct sockaddr *)&any, sizeof(any), &attr, &other, &why), -EINVAL);
    attr.mtu = SCTP_MTU_MIN;
    attr.udp_port = ntohs(to.sin_port);
    assert_int_equal(osctp.open((const struct sockaddr *)&any, sizeof(any), &attr, &other, &why), 0);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(osctp.connect(other, (const struct sockaddr *)&peer, &assoc[i]), 0);
        osctp.names(assoc[i], &local, &remote);
        assert_int_equal(sctp_port_of(&remote), SCTP_PORT);
        assert_true(sctp_port_of(&local) >= OSCTP_PORT_FIRST);
        assert_false(seen[sctp_port_of(&local)]);
        seen[sctp_port_of(&local)] = true;
    }
    assert_int_equal(osctp.listen(other, sctp_port_of(&local)), -EADDRINUSE);
    assert_int_equal(osctp.listen(other, 0), 0);
    osctp.local(other, &local);
    assert_false(seen[sctp_port_of(&local)]);
    for (unsigned i = 0; i < 200; i++)
        osctp.close(assoc[i]);
    osctp.close_socket(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(strangers), TEST(forked), TEST(no_association), TEST(owners), TEST(due), TEST(ecn), TEST(ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
