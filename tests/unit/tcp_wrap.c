/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_wrap.c - more octets than sequence numbers, each way over one connection: positions go on where the numbers of
 * the wire begin again, also beside gaps and losses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/lib/tcpnet.h"

enum { SENTS = 64, RANGES = 16, EACH = 60000, SCALE = 10, GAP = 97, LOSS = 101 };
enum { ISN = 0x12345678, IRS = 0x7654321 };

#define OCTETS (9ULL << 30) /* twice all numbers, and more */

static struct utcp tcp;
static struct utcp_sent sent[SENTS];
static struct utcp_ooo_range ooo[RANGES];
static uint64_t received, to_send, acked, now_us;

static uint32_t cut(void *user, uint64_t position, uint32_t ready, uint32_t space)
{
    (void)user;
    (void)position;
    return ready < space ? ready : space;
}

static void fetch(void *user, uint64_t position, uint32_t length, struct utcp_piece *piece)
{
    static const uint8_t octets[EACH];

    (void)user;
    assert_true(position >= acked && position + length <= to_send && length <= EACH);
    piece->spans = 1;
    piece->span[0] = (struct span){octets, length};
}

static struct utcp_verdict arrived(void *user, const struct utcp_arrival *a)
{
    (void)user;
    assert_true(a->position == received + (a->early ? EACH : 0) && a->length == EACH);
    return (struct utcp_verdict){a->length, 0};
}

static void begin(void)
{
    static const struct utcp_user user = {cut, fetch, arrived};
    const struct utcp_buffers buffers = {sent, SENTS, ooo, RANGES};
    const struct utcp_handshake h = {.local = tcpnet_name(0, false),
                                     .remote = tcpnet_name(1, false),
                                     .send_next = ISN + 1,
                                     .receive_next = IRS + 1,
                                     .window = 1 << 24,
                                     .mss = EACH,
                                     .scale = SCALE,
                                     .own_scale = SCALE,
                                     .sack = true,
                                     .edge = 1 << 24};
    struct utcp_attr attr;

    utcp_attr_default(&attr);
    attr.isn = ISN;
    attr.window = attr.window_max = 1 << 24;
    attr.mtu = 65000;
    attr.partial = true; /* no time is spent on checksums */
    attr.keep_idle_us = 0;
    now_us = 1000000;
    utcp_open(&tcp, &attr, &buffers, &user, NULL);
    utcp_adopt(&tcp, &h, now_us);
}

/* The peer sends octets from `position` on; `missing`: it lacks those before the last ones that we sent. */
static void come_in(uint64_t position, uint32_t length, bool missing)
{
    static const uint8_t octets[EACH];
    const struct utcp_segment s = {
        .from = tcp.remote,
        .to = tcp.local,
        .flags = UTCP_ACK,
        .seq = IRS + 1 + (uint32_t)position,
        .payload = octets,
        .length = length,
        .ack = ISN + 1 + (uint32_t)acked,
        .window = UINT16_MAX,
        .opt = {.sacks = missing, .sack = {{ISN + 1 + (uint32_t)(acked + EACH), ISN + 1 + (uint32_t)to_send}}},
    };

    utcp_input(&tcp, &s, now_us);
}

/* All that leaves now are the octets from `from` to `to`, and acknowledgements of all that came. */
static void expect_out(uint64_t from, uint64_t to)
{
    struct utcp_packet p;

    while (utcp_output(&tcp, &p, now_us)) {
        const uint8_t *head = p.head + p.ip_length;

        assert_int_equal(get32(head + 8), IRS + 1 + (uint32_t)received);
        if (!p.length)
            continue;
        assert_int_equal(get32(head + 4), ISN + 1 + (uint32_t)from);
        from += p.length;
    }
    assert_true(from == to);
}

static void receive_some(bool gap)
{
    if (gap)
        come_in(received + EACH, EACH, false);
    assert_true(utcp_received(&tcp) == received && utcp_has(&tcp, received + EACH, received + 2 * EACH) == gap);
    come_in(received, EACH, false);
    received += gap ? 2 * EACH : EACH;
    assert_true(utcp_received(&tcp) == received && utcp_highest(&tcp) == received);
}

static void send_some(bool loss)
{
    utcp_send(&tcp, to_send += 2 * EACH);
    expect_out(acked, to_send);
    now_us += 500;
    if (loss) {
        come_in(received, 0, true);
        now_us += 500; /* as long as it may be late */
        utcp_timeout(&tcp, now_us);
        expect_out(acked, acked + EACH);
    }
    acked = to_send;
    come_in(received, 0, false);
    assert_true(utcp_acked(&tcp) == acked);
}

static void twice_all_numbers(void **state)
{
    uint64_t lost = 0;

    (void)state;
    begin();
    for (uint32_t i = 0; received < OCTETS || acked < OCTETS; i++) {
        bool loss = i % LOSS == LOSS - 1;

        receive_some(i % GAP == 0);
        send_some(loss);
        lost += loss;
        now_us += 500;
    }
    assert_true(received >= OCTETS && acked >= OCTETS);
    assert_int_equal(tcp.count.sent_again, lost);
    assert_int_equal(tcp.count.timeouts, 0);
    assert_int_equal(tcp.count.bad_acks + tcp.count.out_of_window + tcp.count.duplicates, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(twice_all_numbers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
