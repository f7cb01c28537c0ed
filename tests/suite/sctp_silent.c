/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_silent.c - a peer makes more associations than its address has places for, and says nothing in them: each costs
 * little, the oldest give way, and whoever asks for a connection gets one. */
#include "tests/suite/osctp_peer.h"

#include <malloc.h>

#include "sctp/io/silent.h"
#include "tests/suite/lib/pair.h"

enum { BEYOND = 100, SILENT_OCTETS = 20 << 10 }; /* that one of them may cost the listener */

static struct row row = {.name = "sctp", .wire = RDDP_WIRE_SCTP, .crc = true, .mpa_revision = 2};
static struct pair pair;

static void open_one(uint16_t port)
{
    peer_port = port;
    ask(5, 100);
    send_chunk(our_tag, COOKIE_ECHO, 0, cookie, cookie_octets);
    expect_packet(COOKIE_ACK);
}

static size_t memory_used(void)
{
#ifdef __SANITIZE_ADDRESS__ /* its memory is not of this malloc() */
    return 0;
#else
    return mallinfo2().uordblks + mallinfo2().hblkhd;
#endif
}

static void silent_peers(void **state)
{
    struct sockaddr_in any = loopback(0);
    size_t used;

    (void)state;
    pair_open(&pair, &row);
    used = memory_used();
    to = *(const struct sockaddr_in *)&pair.addr;
    sctp_port = ntohs(to.sin_port);
    to.sin_port = htons(pair_wire(&row, true).sctp_udp_port);
    indication = RDDP_SCTP_RDMA_AND_NEGOTIATION;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof(any)), 0);
    for (uint16_t i = 0; i < SILENT_SHARE + BEYOND; i++)
        open_one((uint16_t)(1 + i));
    for (uint64_t end = reactor_now_us() + PATIENCE_US; aborts < BEYOND;) {
        struct pollfd wait = {fd, POLLIN, 0};

        assert_true(reactor_now_us() < end);
        poll(&wait, 1, 100);
        take_packet();
    }
    assert_int_equal(aborts, BEYOND);
    assert_in_range(memory_used(), used, used + SILENT_SHARE * SILENT_OCTETS);
    pair_connect(&pair);
    pair_close(&pair);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(silent_peers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
