/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rawip.c - packets of connections that were handed off leave and come many a call. The system calls are counted. */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/container.h"
#include "tcp/io/rawip.h"
#include "tcp/packet.h"
#include "tests/suite/lib/pair.h"

enum { PORT = 7070, PACKETS = 24, OCTETS = 700, MTU = 1500, LENGTH = 2 << 20, WAIT_MS = 30000 };

/* The linker puts these between the library and the C library. Only packets of some length are counted: no one has a
 * choice about acknowledgements that answer one packet each. */
int __real_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags);
int __real_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *timeout);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *timeout);

static _Atomic unsigned calls_out, packets_out, calls_in;

int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
    int sent = __real_sendmmsg(fd, m, n, flags);
    unsigned full = 0;

    for (int i = 0; i < sent; i++)
        full += m[i].msg_len > MTU / 4;
    packets_out += full;
    calls_out += full || sent < 0;
    return sent;
}

int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *timeout)
{
    calls_in++;
    return __real_recvmmsg(fd, m, n, flags, timeout);
}

static void set_mtu(int mtu)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_mtu = mtu};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, SIOCSIFMTU, &request), 0);
    close(fd);
}

/* --- the sockets alone -------------------------------------------------------------------------------------------- */

static struct utcp_name name_of(uint16_t port)
{
    struct utcp_name name = {.port = port};

    name.ip[10] = name.ip[11] = 0xff;
    name.ip[12] = 127;
    name.ip[15] = 1;
    return name;
}

/* Writes packets whose first octet of payload is their number. The one in the middle has `middle` octets. */
static int send_numbered(const struct rawip *r, uint32_t middle)
{
    static uint8_t payload[PACKETS][2 * MTU];
    struct utcp_name from = name_of(PORT + 1), to = name_of(PORT);
    struct utcp_head head = {.flags = UTCP_ACK};
    struct rawip_packet packet[PACKETS];
    struct utcp_packet p[PACKETS];
    struct iovec piece[PACKETS][2];

    for (uint32_t i = 0; i < PACKETS; i++) {
        uint32_t octets = i == PACKETS / 2 ? middle : OCTETS;

        payload[i][0] = (uint8_t)i;
        p[i] = (struct utcp_packet){.span = {{payload[i], octets}}, .spans = 1, .length = octets};
        utcp_packet_write(&p[i], &from, &to, &head);
        piece[i][0] = (struct iovec){p[i].head, p[i].head_length};
        piece[i][1] = (struct iovec){payload[i], octets};
        packet[i] = (struct rawip_packet){piece[i], 2};
    }
    calls_out = packets_out = calls_in = 0;
    return rawip_send(r, packet, PACKETS, 0);
}

/* Receives `packets` packets, which must be in order; the one with number `without` must not come. */
static void receive_numbered(const struct rawip *r, int packets, int without)
{
    struct pollfd in = {.fd = r->in[RAWIP_V4], .events = POLLIN};
    struct rawip_arrival arrival[RAWIP_READ];

    for (int got = 0, number = 0; got < packets;) {
        int n;

        assert_int_equal(poll(&in, 1, WAIT_MS), 1);
        n = rawip_recv(r, in.fd, arrival);
        assert_true(n > 0);
        for (int i = 0; i < n; i++, number++) {
            struct utcp_segment s;
            struct utcp_too_big big;

            number += number == without;
            assert_int_equal(utcp_packet_read(arrival[i].at, arrival[i].octets, arrival[i].checked, 0, &s, &big),
                             UTCP_KIND_SEGMENT);
            assert_int_equal(s.payload[0], number);
        }
        got += n;
    }
}

/* Until as many packets wait at the socket. Loopback may deliver after the call that sent. */
static void await_packets(const struct rawip *r, uint32_t packets)
{
    struct tpacket_stats more;
    socklen_t length = sizeof(more);

    for (uint32_t waiting = 0; waiting < packets; waiting += more.tp_packets) {
        assert_int_equal(poll(&(struct pollfd){.fd = r->in[RAWIP_V4], .events = POLLIN}, 1, WAIT_MS), 1);
        assert_int_equal(getsockopt(r->in[RAWIP_V4], SOL_PACKET, PACKET_STATISTICS, &more, &length), 0);
    }
}

static void open_alone(struct rawip *r)
{
    set_mtu(MTU);
    assert_int_equal(rawip_open(r), 0);
    assert_int_equal(rawip_add_port(r, PORT), 0);
}

static bool is_first_row(void **state)
{
    const struct row *row = (*(struct pair **)state)->row;

    return row->hand_off && row->aligned;
}

static void few_calls(void **state)
{
    struct rawip r;

    if (!is_first_row(state))
        skip();
    open_alone(&r);
    assert_int_equal(send_numbered(&r, OCTETS), 0);
    assert_int_equal(calls_out, 1);
    assert_int_equal(packets_out, PACKETS);
    await_packets(&r, PACKETS);
    receive_numbered(&r, PACKETS, -1);
    assert_int_equal(calls_in, (PACKETS + RAWIP_READ - 1) / RAWIP_READ);
    rawip_close(&r);
}

/* One that the way does not take is the only one that is lost. */
static void one_too_long(void **state)
{
    struct rawip r;

    if (!is_first_row(state))
        skip();
    open_alone(&r);
    assert_int_equal(send_numbered(&r, MTU), -EMSGSIZE);
    assert_int_equal(packets_out, PACKETS - 1);
    assert_int_equal(calls_out, 3); /* those before it, it alone, those behind it */
    receive_numbered(&r, PACKETS - 1, PACKETS / 2);
    rawip_close(&r);
}

/* --- a connection --------------------------------------------------------------------------------------------- */

/* An acknowledgement lets two segments leave at least, and the first window has ten. */
static void write_in_calls(void **state)
{
    struct pair *pair = *(struct pair **)state;

    if (!pair->row->hand_off || pair->row->lose)
        skip();
    set_mtu(MTU);
    pair_connect(pair);
    pair_pattern(pair->client.buffer, LENGTH, 1);
    pair_receive(&pair->server, 1, LENGTH, 1);
    calls_out = packets_out = 0;
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, 1, 0, LENGTH, 0, 0), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 2, 0, 1, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    print_message("%u packets in %u calls\n", packets_out, calls_out);
    assert_true(packets_out >= LENGTH / MTU);
    assert_true(packets_out >= 2 * calls_out);
}

int main(void)
{
    static const struct pair_test tests[] = {PAIR_TEST(few_calls), PAIR_TEST(one_too_long), PAIR_TEST(write_in_calls)};

    return pair_run("rawip", tests, countof(tests), false);
}
