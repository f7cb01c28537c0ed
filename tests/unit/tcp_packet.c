/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_packet.c - headers both ways, truncated packets and flipped bits; options of every length; ICMP messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/container.h"
#include "base/siphash.h"
#include "tcp/checksum.h"
#include "tcp/packet.h"
#include "tests/lib/rng.h"
#include "tests/lib/tcpnet.h"

enum { BUFFER = 256, KIND = 25 };

static struct utcp_name name_of(bool v6, uint8_t last, uint16_t port)
{
    struct utcp_name name = {.port = port};

    name.ip[v6 ? 0 : 10] = v6 ? 0xfd : 0xff;
    name.ip[v6 ? 1 : 11] = v6 ? 0 : 0xff;
    name.ip[15] = last;
    return name;
}

/* Build a packet with a timestamp, the option KIND, and a payload of odd length in two spans, the first of odd
 * length. */
static uint32_t make(uint8_t *octets, bool v6, bool partial)
{
    static const uint8_t payload[] = "seven and seventy octets";
    struct utcp_name from = name_of(v6, 1, 4000), to = name_of(v6, 2, 5000);
    struct utcp_head h = {.seq = 0x01020304, .ack = 0xfffffff0, .window = 4321, .flags = UTCP_ACK | UTCP_PSH};
    struct utcp_packet p = {.span = {{payload, 7}, {payload + 7, 14}}, .spans = 2, .length = 21, .partial = partial};
    uint8_t *q = h.option;

    q = put32(put32(put32(q, 0x0101080a), 7), 8);
    q = put32(q, KIND << 24 | 4 << 16 | 0x8000);
    h.options = (uint32_t)(q - h.option);
    utcp_packet_write(&p, &from, &to, &h);
    assert_int_equal(p.ip_length, v6 ? 40 : 20);
    q = put_bytes(put_bytes(octets, p.head, p.head_length), payload, 21);
    return (uint32_t)(q - octets);
}

static void both_ways(void **state)
{
    (void)state;
    for (int v6 = 0; v6 < 2; v6++) {
        uint8_t octets[BUFFER];
        uint32_t n = make(octets, v6, false);
        struct utcp_segment s;
        struct utcp_too_big b;
        struct utcp_name from = name_of(v6, 1, 4000), to = name_of(v6, 2, 5000);

        assert_int_equal(utcp_packet_read(octets, n, false, KIND, &s, &b), UTCP_KIND_SEGMENT);
        assert_true(utcp_same_name(&s.from, &from) && utcp_same_name(&s.to, &to) && utcp_is_v4(&s.to) == !v6);
        assert_int_equal(s.seq, 0x01020304);
        assert_int_equal(s.ack, 0xfffffff0);
        assert_int_equal(s.window, 4321);
        assert_int_equal(s.flags, UTCP_ACK | UTCP_PSH);
        assert_int_equal(s.length, 21);
        assert_memory_equal(s.payload, "seven and seventy octets", 21);
        assert_true(s.opt.has_stamp && s.opt.stamp == 7 && s.opt.echo == 8 && !s.opt.has_mss);
        assert_true(s.opt.extra && s.opt.extra_length == 4 && s.opt.extra_at == 32 && s.opt.extra[2] == 0x80);
        /* The reader ignores octets behind the IP packet, such as Ethernet padding. */
        assert_int_equal(utcp_packet_read(octets, n + 9, false, KIND, &s, &b), UTCP_KIND_SEGMENT);
        assert_int_equal(s.length, 21);
    }
}

/* If a device finishes the checksum, the checksum field holds the sum of the pseudo-header. */
static void partial(void **state)
{
    uint8_t whole[BUFFER], part[BUFFER];
    uint32_t n = make(whole, false, false);
    struct utcp_segment s;
    struct utcp_too_big b;
    struct utcp_sum sum = {0};

    (void)state;
    make(part, false, true);
    assert_int_equal(utcp_packet_read(part, n, false, 0, &s, &b), UTCP_KIND_BAD_CHECKSUM);
    assert_int_equal(utcp_packet_read(part, n, true, 0, &s, &b), UTCP_KIND_SEGMENT);
    utcp_sum_add(&sum, part + 20, n - 20);
    put16(part + 36, (uint16_t)~utcp_sum_fold(&sum));
    assert_memory_equal(part, whole, n);
}

static void every_cut_and_bit(void **state)
{
    (void)state;
    for (int v6 = 0; v6 < 2; v6++) {
        uint8_t octets[BUFFER], cut[BUFFER];
        uint32_t n = make(octets, v6, false), passed = 0;
        struct utcp_segment s;
        struct utcp_too_big b;

        for (uint32_t k = 0; k < n; k++) {
            memcpy(cut, octets, k);
            assert_int_not_equal(utcp_packet_read(octets, k, false, KIND, &s, &b), UTCP_KIND_SEGMENT);
        }
        for (uint32_t bit = 0; bit < 8 * n; bit++) {
            memcpy(cut, octets, n);
            cut[bit / 8] ^= (uint8_t)(1 << bit % 8);
            passed += utcp_packet_read(cut, n, false, KIND, &s, &b) == UTCP_KIND_SEGMENT;
        }
        /* The IPv6 header has no checksum: traffic class, flow label and hop limit may have any value. */
        assert_int_equal(passed, v6 ? 8 + 20 + 8 : 0);
    }
}

static void lengths(void **state)
{
    uint8_t octets[BUFFER] = {0};
    struct utcp_options o;

    (void)state;
    for (uint32_t length = 0; length < 256; length++) {
        octets[0] = KIND;
        octets[1] = (uint8_t)length;
        utcp_options_read(&o, octets, 40, KIND);
        assert_int_equal(o.broken, length < 2 || length > 40);
        assert_int_equal(o.extra != NULL, length >= 2 && length <= 40);
    }
    octets[0] = KIND;
    utcp_options_read(&o, octets, 1, KIND);
    assert_true(o.broken && !o.extra);
    utcp_options_read(&o, octets, 0, KIND);
    assert_false(o.broken);
    /* The reader returns the first option of the kind, and none behind the end of the list. */
    put32(put32(octets, KIND << 24 | 4 << 16 | 1), KIND << 24 | 4 << 16 | 2);
    utcp_options_read(&o, octets, 8, KIND);
    assert_ptr_equal(o.extra, octets);
    put32(put32(octets, 0), KIND << 24 | 4 << 16);
    utcp_options_read(&o, octets, 8, KIND);
    assert_null(o.extra);
}

/* The sum over pieces of any length and alignment equals the sum over the whole. */
static void pieces(void **state)
{
    struct rng r = {3};
    uint8_t octets[300];

    (void)state;
    rng_fill(&r, octets, sizeof(octets));
    for (int run = 0; run < 2000; run++) {
        uint32_t from = rng_below(&r, 20), to = from + rng_below(&r, 280), at = from;
        struct utcp_sum whole = {0}, some = {0};
        uint32_t plain = 0;

        utcp_sum_add(&whole, octets + from, to - from);
        while (at < to) {
            uint32_t n = 1 + rng_below(&r, to - at);

            utcp_sum_add(&some, octets + at, n);
            at += n;
        }
        for (uint32_t i = from; i < to; i++)
            plain += (i - from) % 2 ? octets[i] : (uint32_t)octets[i] << 8;
        while (plain >> 16)
            plain = (plain & 0xffff) + (plain >> 16);
        assert_int_equal(utcp_sum_fold(&whole), plain);
        assert_int_equal(utcp_sum_fold(&some), plain);
    }
}

/* MPA-10.1-03: the reader finds the quoted packet in a Packet Too Big message and refuses a wrong checksum. */
static void too_big(void **state)
{
    (void)state;
    for (int v6 = 0; v6 < 2; v6++) {
        uint8_t ours[BUFFER], octets[BUFFER] = {0}, *icmp = octets + (v6 ? 40 : 20);
        uint32_t quoted = v6 ? 48 : 28, n;
        struct utcp_name from = name_of(v6, 1, 4000), to = name_of(v6, 2, 5000);
        struct utcp_segment s;
        struct utcp_too_big b;
        struct utcp_sum sum = {0};
        uint8_t tail[8] = {[3] = (uint8_t)(8 + quoted), [7] = 58};

        make(ours, v6, false);
        memcpy(octets, ours, v6 ? 40 : 20);
        icmp[0] = v6 ? 2 : 3;
        icmp[1] = v6 ? 0 : 4;
        put32(icmp + 4, 1300);
        memcpy(icmp + 8, ours, quoted);
        n = (uint32_t)(icmp - octets) + 8 + quoted;
        if (v6) {
            put16(octets + 4, (uint16_t)(n - 40));
            octets[6] = 58;
            utcp_sum_add(&sum, octets + 8, 32);
            utcp_sum_add(&sum, tail, 8);
        } else {
            put16(octets + 2, (uint16_t)n);
            octets[9] = 1;
            put16(octets + 10, 0);
            utcp_sum_add(&sum, octets, 20);
            put16(octets + 10, (uint16_t)~utcp_sum_fold(&sum));
            sum = (struct utcp_sum){0};
        }
        utcp_sum_add(&sum, icmp, 8 + quoted);
        put16(icmp + 2, (uint16_t)~utcp_sum_fold(&sum));
        assert_int_equal(utcp_packet_read(octets, n, false, 0, &s, &b), UTCP_KIND_TOO_BIG);
        assert_true(utcp_same_name(&b.from, &from) && utcp_same_name(&b.to, &to));
        assert_int_equal(b.seq, 0x01020304);
        assert_int_equal(b.mtu, 1300);
        icmp[7] ^= 1;
        assert_int_equal(utcp_packet_read(octets, n, false, 0, &s, &b), UTCP_KIND_BAD_CHECKSUM);
    }
}

/* The vectors of the SipHash paper: key 00..0f, input 00, 01, 02 ... */
static void known_hashes(void **state)
{
    static const struct {
        uint32_t length;
        uint64_t hash;
    } known[] = {{0, 0x726fdb47dd0e0e31}, {1, 0x74f839c593dc67fd}, {8, 0x93f5f5799a932462}, {15, 0xa129ca6149be45e5}};
    const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    uint8_t octets[16];

    (void)state;
    for (uint8_t i = 0; i < 16; i++)
        octets[i] = i;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        assert_true(siphash(key, octets, known[i].length) == known[i].hash);
}

/* A fragment is no segment, neither the first, which looks like one, nor a later one; Don't Fragment alone is fine. */
static void fragments(void **state)
{
    static const struct {
        uint16_t field;
        enum utcp_kind kind;
    } rows[] = {{0, UTCP_KIND_SEGMENT},
                {0x4000, UTCP_KIND_SEGMENT},
                {0x2000, UTCP_KIND_OTHER},
                {0x0001, UTCP_KIND_OTHER},
                {0x1fff, UTCP_KIND_OTHER}};
    struct utcp_name from = tcpnet_name(0, false), to = tcpnet_name(1, false);
    struct utcp_head head = {.flags = UTCP_ACK};

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        struct utcp_packet p = {0};
        struct utcp_segment s;
        struct utcp_too_big b;
        uint32_t sum;

        utcp_packet_write(&p, &from, &to, &head);
        put16(p.head + 6, rows[i].field);
        sum = get16(p.head + 10) + 0x4000U + (uint16_t)~rows[i].field; /* RFC 1624; it was 0x4000 */
        sum = (sum & 0xffff) + (sum >> 16);
        put16(p.head + 10, (uint16_t)((sum & 0xffff) + (sum >> 16)));
        assert_int_equal(utcp_packet_read(p.head, p.head_length, false, 0, &s, &b), rows[i].kind);
    }
}

/* RFC 7323 2.3: a shift of more than 14 is taken for 14. */
static void scales(void **state)
{
    (void)state;
    for (uint32_t scale = 0; scale <= UINT8_MAX; scale++) {
        const uint8_t octets[] = {3, 3, (uint8_t)scale, 0};
        struct utcp_options o;

        utcp_options_read(&o, octets, sizeof(octets), 0);
        assert_true(o.has_wscale && o.wscale == (scale < 14 ? scale : 14));
    }
}

/* The two bits of congestion notification in both versions of IP. */
static void marks(void **state)
{
    (void)state;
    for (int v6 = 0; v6 < 2; v6++)
        for (uint8_t ecn = 0; ecn < 4; ecn++) {
            struct utcp_name from = tcpnet_name(0, v6), to = tcpnet_name(1, v6);
            struct utcp_head head = {.flags = UTCP_ACK | UTCP_ECE | UTCP_CWR, .ecn = ecn};
            struct utcp_packet p = {0};
            struct utcp_segment s;
            struct utcp_too_big b;

            utcp_packet_write(&p, &from, &to, &head);
            assert_int_equal(utcp_packet_read(p.head, p.head_length, false, 0, &s, &b), UTCP_KIND_SEGMENT);
            assert_true(s.ecn == ecn && s.flags == head.flags);
        }
}

/* The time to live in both versions of IP; where none is given it is 64, as RFC 1700 has it. */
static void lives(void **state)
{
    static const uint8_t given[] = {0, 1, 64, 255};

    (void)state;
    for (int v6 = 0; v6 < 2; v6++)
        for (size_t i = 0; i < countof(given); i++) {
            struct utcp_name from = tcpnet_name(0, v6), to = tcpnet_name(1, v6);
            struct utcp_head head = {.flags = UTCP_ACK, .hops = given[i]};
            struct utcp_packet p = {0};
            struct utcp_segment s;
            struct utcp_too_big b;

            utcp_packet_write(&p, &from, &to, &head);
            assert_int_equal(utcp_packet_read(p.head, p.head_length, false, 0, &s, &b), UTCP_KIND_SEGMENT);
            assert_int_equal(p.head[v6 ? 7 : 8], given[i] ? given[i] : 64);
        }
}

/* A connection gives all of its packets its own. */
static void connection_lives(void **state)
{
    static const struct utcp_user user;
    struct utcp_sent sent[4];
    struct utcp_ooo_range ooo[4];
    const struct utcp_buffers buffers = {sent, 4, ooo, 4};
    struct utcp_name from = tcpnet_name(0, false), to = tcpnet_name(1, false);
    struct utcp_packet p = {0};
    struct utcp_attr attr;
    struct utcp t;

    (void)state;
    utcp_attr_default(&attr);
    attr.hops = 255;
    utcp_open(&t, &attr, &buffers, &user, NULL);
    utcp_connect(&t, &from, &to);
    assert_true(utcp_output(&t, &p, 1));
    assert_int_equal(p.head[8], 255);
    utcp_abort(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways),    cmocka_unit_test(partial),   cmocka_unit_test(every_cut_and_bit),
        cmocka_unit_test(lengths),      cmocka_unit_test(pieces),    cmocka_unit_test(too_big),
        cmocka_unit_test(known_hashes), cmocka_unit_test(fragments), cmocka_unit_test(scales),
        cmocka_unit_test(marks),        cmocka_unit_test(lives),     cmocka_unit_test(connection_lives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
