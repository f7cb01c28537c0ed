/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_forged.c - our own SCTP at a socket, and what comes from elsewhere than its peers: packets to a broadcast
 * address, ICMP errors that quote what a forger guesses, and an INIT where we have called. */
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

#include "tests/suite/osctp_peer.h"

enum { QUOTE_MAX = 128 };

/* RFC 9260 8.4: out of the blue to an address that is not one host's. The answer would come from every listener. */
static void broadcast(void **state)
{
    struct sctp_attr attr = {.indication = 4};
    struct sockaddr_in any = {.sin_family = AF_INET}, here;
    socklen_t length = sizeof(here);
    const char *why;
    int on = 1;

    (void)state;
    osctp.close_socket(ours);
    assert_int_equal(osctp.open((const struct sockaddr *)&any, sizeof(any), &attr, &ours, &why), 0);
    assert_int_equal(osctp.listen(ours, SCTP_PORT), 0);
    assert_int_equal(getsockname(ours->fd, (struct sockaddr *)&here, &length), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)), 0);
    to = here;
    to.sin_addr.s_addr = htonl(0x7fffffff);
    tag = 5;
    send_init();
    send_chunk(9, SHUTDOWN_ACK, 0, NULL, 0);
    expect_silence();
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ask(5, 100);
}

static uint16_t sum(const uint8_t *p, size_t n)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i += 2)
        sum += get16(p + i);
    sum = (sum >> 16) + (sum & 0xffff);
    return (uint16_t) ~(sum + (sum >> 16));
}

/* Sends "destination unreachable" that quotes a UDP packet from this port to `to`, and `n` octets of SCTP. */
static void send_icmp(int raw, uint8_t code, uint16_t from, const uint8_t *sctp, uint32_t n)
{
    uint8_t p[8 + 20 + 8 + QUOTE_MAX] = {ICMP_DEST_UNREACH, code};
    uint8_t *ip = p + 8, *udp = ip + 20;
    struct sockaddr_in here = loopback(0);
    size_t octets = 8 + 20 + 8 + n;

    put16(put8(put8(ip, 0x45), 0), 200);
    put8(put8(ip + 8, 64), IPPROTO_UDP);
    memcpy(ip + 12, &here.sin_addr, 4);
    memcpy(ip + 16, &to.sin_addr, 4);
    put16(put16(put16(udp, from), ntohs(to.sin_port)), 180);
    memcpy(udp + 8, sctp, n);
    put16(p + 2, sum(p, octets + octets % 2));
    assert_int_equal(sendto(raw, p, octets, 0, (const struct sockaddr *)&here, sizeof(here)), octets);
}

/* Our end believes nothing of it, and has taken what the socket had to say. It may send its INIT again meanwhile. */
static void expect_no_news(struct sctp_assoc *assoc)
{
    struct pollfd error = {.fd = ours->fd};
    struct sctp_news news;

    for (unsigned i = 0; i < 10; i++) {
        poll(NULL, 0, 1);
        osctp.drive(ours);
    }
    assert_false(osctp.next(assoc, &news));
    assert_int_equal(poll(&error, 1, 0), 0);
}

/* RFC 9260 10: only who has seen our INIT can know its tag. The peer here is mute: nothing but ICMP answers. */
static void icmp(void **state)
{
    struct sctp_attr attr = {.alone = true};
    struct sockaddr_in any = loopback(0), peer = loopback(SCTP_PORT), here;
    socklen_t length = sizeof(to);
    struct sctp_assoc *assoc;
    struct sctp_news news;
    uint8_t init[QUOTE_MAX];
    const char *why;
    int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

    (void)state;
    if (raw < 0)
        skip();
    assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &length), 0);
    attr.udp_port = ntohs(to.sin_port);
    osctp.close_socket(ours);
    assert_int_equal(osctp.open((const struct sockaddr *)&any, sizeof(any), &attr, &ours, &why), 0);
    assert_int_equal(osctp.connect(ours, (const struct sockaddr *)&peer, &assoc), 0);
    expect_packet(INIT);
    memcpy(init, got, got_octets);
    length = sizeof(here);
    assert_int_equal(getsockname(ours->fd, (struct sockaddr *)&here, &length), 0);
    for (uint32_t n = 0; n < 20; n++) {
        send_icmp(raw, ICMP_PORT_UNREACH, ntohs(here.sin_port), init, n);
        expect_no_news(assoc);
    }
    for (uint32_t at = 0; at < 20; at++) { /* all but the checksum, the flags and the length */
        if ((at >= 8 && at < 12) || (at > 12 && at < 16))
            continue;
        init[at] ^= 1;
        send_icmp(raw, ICMP_PORT_UNREACH, ntohs(here.sin_port), init, 20);
        expect_no_news(assoc);
        init[at] ^= 1;
    }
    for (uint8_t code = 0; code <= NR_ICMP_UNREACH; code++) {
        if (code == ICMP_PORT_UNREACH || code == ICMP_FRAG_NEEDED) /* that would change the route for all here */
            continue;
        send_icmp(raw, code, ntohs(here.sin_port), init, 20);
        expect_no_news(assoc);
    }
    send_icmp(raw, ICMP_PORT_UNREACH, ntohs(here.sin_port), init, 20);
    for (uint64_t end = reactor_now_us() + PATIENCE_US; !osctp.next(assoc, &news);) {
        assert_true(reactor_now_us() < end);
        osctp.drive(ours);
    }
    assert_int_equal(news.kind, SCTP_NEWS_REFUSED);
    osctp.close(assoc);
    close(raw);
}

/* RFC 9260 5.2.1: both ends have called. Each answers the other's INIT, and the cookies make one association; after
 * that the peer begins no other where we have called. Before it the peer may still wait for the end of an older one at
 * these ports (8.5.1 E). */
static void both_call(void **state)
{
    struct sctp_attr attr = {.alone = true};
    struct sockaddr_in any = loopback(0), peer = loopback(PEER_PORT);
    socklen_t length = sizeof(to);
    struct sctp_assoc *assoc;
    const char *why;
    uint32_t itag;

    (void)state;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &length), 0);
    attr.udp_port = ntohs(to.sin_port);
    osctp.close_socket(ours);
    assert_int_equal(osctp.open((const struct sockaddr *)&any, sizeof(any), &attr, &ours, &why), 0);
    assert_int_equal(osctp.connect(ours, (const struct sockaddr *)&peer, &assoc), 0);
    assert_int_equal(getsockname(ours->fd, (struct sockaddr *)&to, &length), 0);
    expect_packet(INIT);
    itag = get32(got + PACKET_COMMON + 4);
    sctp_port = get16(got);
    send_chunk(99, SHUTDOWN_ACK, 0, NULL, 0);
    expect_packet(SHUTDOWN_COMPLETE);
    assert_int_equal(get32(got + 4), 99);
    assert_int_equal(got[PACKET_COMMON + 1], 1); /* the T bit */
    ask(5, 100);
    assert_int_equal(our_tag, itag);
    send_chunk(our_tag, COOKIE_ECHO, 0, cookie, cookie_octets);
    expect_packet(COOKIE_ACK);
    expect_news(assoc, SCTP_NEWS_UP, NULL);
    send_data(100, B | E | U, 0, 0, "first", 5);
    expect_news(assoc, SCTP_NEWS_MESSAGE, "first");
    tag = 6;
    send_init();
    expect_packet(SACK);
    expect_silence();
    send_data(101, B | E | U, 0, 0, "second", 6);
    expect_news(assoc, SCTP_NEWS_MESSAGE, "second");
    osctp.close(assoc);
    sctp_port = SCTP_PORT;
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(broadcast), TEST(icmp), TEST(both_call)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
