/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_bundle.c - which packets are joined, on arrival for the stack and on departure: the same chunks in the same
 * order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "sctp/io/usctp_bundle.h"
#include "sctp/io/usctp_pack.h"
#include "sctp/packet.h"

enum { HEAD = 16, BUFFER = 4096 };

static uint8_t buffer[BUFFER];

/* Appends a DATA chunk with `octets` of data, each of the TSN's lowest octet. Returns the end, padding included. */
static uint8_t *put_data(uint8_t *q, uint32_t tsn, uint32_t octets)
{
    uint8_t *end = q + ((HEAD + octets + 3) & ~3u);

    memset(q, 0, (size_t)(end - q));
    q = put16(put8(put8(q, 0), 7), (uint16_t)(HEAD + octets));
    put32(q, tsn);
    memset(q + HEAD - 4, (int)(tsn & 0xff), octets);
    return end;
}

static uint8_t *put_head(uint8_t *q, uint32_t tag)
{
    return put32(put32(put16(put16(q, 1), 2), tag), 0);
}

/* A packet with one chunk at `at`; returns its octets. */
static uint32_t packet(uint8_t *at, uint32_t tag, uint32_t tsn, uint32_t octets)
{
    return (uint32_t)(put_data(put_head(at, tag), tsn, octets) - at);
}

/* Ten packets, of which some have two chunks; TSNs pass 2^32. */
static void joined(void **state)
{
    uint8_t want[BUFFER], *q = put_head(want, 7), *at = buffer;
    struct bundle b = {0};
    uint32_t tsn = 0xfffffffa;

    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        uint8_t *end = put_data(put_head(at, 7), tsn, 33 + i);

        q = put_data(q, tsn++, 33 + i);
        if (i % 3 == 0) {
            end = put_data(end, tsn, 1 + i);
            q = put_data(q, tsn++, 1 + i);
        }
        assert_true(bundle_add(&b, at, (uint32_t)(end - at)));
        at = end;
    }
    assert_int_equal(b.packets, 10);
    assert_int_equal(b.octets, q - want);
    assert_memory_equal(b.at, want, b.octets);
    packet_ask_ack(b.at);
    assert_int_equal(b.at[PACKET_COMMON + 1], 0x0f);
    want[PACKET_COMMON + 1] |= 0x08;
    assert_memory_equal(b.at, want, b.octets);
}

/* What cannot follow leaves the bundle as it is. */
static void refused(void **state)
{
    static const struct {
        uint32_t tag, tsn;
        uint8_t type, cut;
    } rows[] = {
        {7, 12, 0, 0},  /* a TSN is missing */
        {7, 10, 0, 0},  /* a TSN comes again */
        {8, 11, 0, 0},  /* another association */
        {7, 11, 3, 0},  /* not DATA */
        {7, 11, 64, 0}, /* I-DATA */
        {7, 11, 0, 4},  /* cut off */
    };
    struct bundle b = {0};
    uint32_t n = packet(buffer, 7, 10, 100), more;

    (void)state;
    assert_true(bundle_add(&b, buffer, n));
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        more = packet(buffer + n, rows[i].tag, rows[i].tsn, 100);
        buffer[n + PACKET_COMMON] = rows[i].type;
        assert_false(bundle_add(&b, buffer + n, more - rows[i].cut));
        assert_int_equal(b.packets, 1);
        assert_int_equal(b.octets, n);
    }
    more = packet(buffer + n, 7, 11, 100);
    assert_true(bundle_add(&b, buffer + n, more));
}

/* A chunk shorter than its header, without data, or behind which octets remain. */
static void not_data(void **state)
{
    uint32_t tsn, next, n = packet(buffer, 7, 10, 20);

    (void)state;
    assert_true(packet_read_data(buffer, n, &tsn, &next));
    assert_int_equal(tsn, 10);
    assert_int_equal(next, 11);
    assert_false(packet_read_data(buffer, n + 4, &tsn, &next));
    assert_false(packet_read_data(buffer, PACKET_COMMON, &tsn, &next));
    for (uint16_t length = 0; length <= HEAD; length++) {
        put16(buffer + PACKET_COMMON + 2, length);
        assert_false(packet_read_data(buffer, n, &tsn, &next));
    }
    put16(buffer + PACKET_COMMON + 2, 0xffff);
    assert_false(packet_read_data(buffer, n, &tsn, &next));
}

static void sacks(void **state)
{
    uint8_t p[28] = {0};
    bool gaps = true;

    (void)state;
    p[PACKET_COMMON] = 3;
    assert_true(packet_read_sack(p, sizeof(p), &gaps));
    assert_false(gaps);
    put16(p + PACKET_COMMON + 12, 1);
    assert_true(packet_read_sack(p, sizeof(p), &gaps));
    assert_true(gaps);
    assert_false(packet_read_sack(p, sizeof(p) - 1, &gaps));
    p[PACKET_COMMON] = 0;
    assert_false(packet_read_sack(p, sizeof(p), &gaps));
}

/* Packets of one to three chunks go into packs of every size that holds the largest: no chunk is lost, changed, cut or
 * overtaken, each pack has one header, and none ends while the next chunk would fit. */
static void packed(void **state)
{
    (void)state;
    for (uint32_t size = 120; size < 400; size++) {
        uint8_t memory[400] = {0}, want[BUFFER], got[BUFFER], *q = want;
        struct pack pack = {.at = memory, .size = size};
        uint32_t tsn = 100, received = 0;

        for (uint32_t i = 0; i < 20; i++) {
            uint8_t *end = put_head(buffer, 7);
            uint32_t at = PACKET_COMMON;

            for (uint32_t k = 0; k <= i % 3; k++)
                end = put_data(end, tsn++, 1 + (i * 7 + k) % 20);
            memcpy(q, buffer + PACKET_COMMON, (size_t)(end - buffer) - PACKET_COMMON);
            q += end - buffer - PACKET_COMMON;
            assert_true(pack_takes(&pack, buffer));
            while ((at = pack_fill(&pack, buffer, (uint32_t)(end - buffer), at)) < end - buffer) {
                assert_memory_equal(memory, buffer, PACKET_COMMON);
                assert_true(pack.octets <= size && pack.octets + ((get16(buffer + at + 2) + 3u) & ~3u) > size);
                memcpy(got + received, memory + PACKET_COMMON, pack.octets - PACKET_COMMON);
                received += pack.octets - PACKET_COMMON;
                pack.octets = 0;
            }
            assert_true(pack.octets <= size);
        }
        memcpy(got + received, memory + PACKET_COMMON, pack.octets - PACKET_COMMON);
        received += pack.octets - PACKET_COMMON;
        assert_int_equal(received, q - want);
        assert_memory_equal(got, want, received);
    }
}

/* Ports and tag decide; a pack is full when the smallest chunk does not fit. */
static void who_is_packed(void **state)
{
    uint8_t memory[BUFFER];
    struct pack pack = {.at = memory, .size = 200};
    uint32_t n = packet(buffer, 7, 10, 64);

    (void)state;
    assert_true(pack_takes(&pack, buffer) && !pack_is_full(&pack));
    assert_int_equal(pack_fill(&pack, buffer, n, PACKET_COMMON), n);
    assert_int_equal(pack.octets, n);
    packet(buffer, 8, 11, 64);
    assert_false(pack_takes(&pack, buffer));
    packet(buffer, 7, 11, 64);
    assert_true(pack_takes(&pack, buffer));
    pack.size = n + PACK_CHUNK_MIN;
    assert_false(pack_is_full(&pack));
    pack.size--;
    assert_true(pack_is_full(&pack));
    assert_int_equal(pack_fill(&pack, buffer, n, PACKET_COMMON), PACKET_COMMON);
    assert_int_equal(pack.octets, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined), cmocka_unit_test(refused), cmocka_unit_test(not_data),
        cmocka_unit_test(sacks),  cmocka_unit_test(packed),  cmocka_unit_test(who_is_packed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
