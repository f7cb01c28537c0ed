/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_captures.c - what Linux 6.1 kernels with rxe sent to each other: each packet is verified, decoded, and encoded
 * again to the same octets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "roce/bth.h"
#include "tests/lib/roce_capture.h"

enum { PACKET_MAX = 9000 };

static struct tally {
    unsigned ops[BTH_NOTIFY + 1];
    unsigned ipv6, datagrams, immediate, invalidate;
    unsigned naks[NAK_REASONS], rnr;
} tally;

static struct icrc_space space;

static void count(const struct roce_captured *packet, const struct bth *b)
{
    tally.ops[b->op]++;
    tally.ipv6 += packet->path.ipv6;
    tally.datagrams += b->service == BTH_UD;
    tally.immediate += !!(b->flags & BTH_IMMEDIATE);
    tally.invalidate += !!(b->flags & BTH_INVALIDATE);
    if (b->op != BTH_ACKNOWLEDGE)
        return;
    if ((b->syndrome & AETH_KIND) == AETH_NAK)
        tally.naks[b->syndrome & AETH_VALUE]++;
    tally.rnr += (b->syndrome & AETH_KIND) == AETH_RNR_NAK;
}

/* ROCE-PKT-01, ROCE-PKT-02, ROCE-PKT-07, ROCE-PKT-08, ROCE-REQ-01, ROCE-RSP-13 */
static void take(const struct roce_captured *packet)
{
    uint8_t again[PACKET_MAX];
    uint32_t head, crc, body = packet->octets - ICRC_OCTETS;
    struct bth b;

    assert_true(icrc_is_exact(&packet->path, packet->identification, packet->at, packet->octets));
    assert_true(icrc_is_right(&packet->path, packet->at, packet->octets, &space));
    assert_int_equal(bth_decode(&b, packet->at, packet->octets), BTH_OK);
    assert_int_equal(b.qpn, bth_destination(packet->at));
    count(packet, &b);
    head = bth_encode(&b, again);
    assert_int_equal(head, bth_head(&b));
    assert_int_equal(head + b.length + bth_pad(b.length), body);
    memcpy(again + head, b.data, b.length);
    memset(again + head + b.length, 0, bth_pad(b.length));
    crc = icrc_head(icrc_begin(&packet->path, packet->identification, packet->octets), again, head);
    put32le(again + body, crc32(crc, again + head, body - head));
    assert_memory_equal(again, packet->at, packet->octets);
}

static void run(const char *name, unsigned packets)
{
    tally = (struct tally){0};
    assert_int_equal(roce_capture_each(name, take), packets);
}

static void connected(void **state)
{
    (void)state;
    run("rcpp", 24);
    assert_true(tally.ops[BTH_SEND] == 18 && tally.ops[BTH_ACKNOWLEDGE] == 6);
    run("read", 30);
    assert_true(tally.ops[BTH_READ_REQUEST] == 5 && tally.ops[BTH_READ_RESPONSE] == 25);
    run("atomic", 10);
    assert_true(tally.ops[BTH_FETCH_ADD] == 5 && tally.ops[BTH_ATOMIC_ACKNOWLEDGE] == 5);
    run("write_R", 107);
    assert_int_equal(tally.ops[BTH_WRITE], 25);
}

static void with_losses(void **state)
{
    (void)state;
    run("loss-rc", 202);
    assert_true(tally.naks[NAK_SEQUENCE] > 0);
    run("loss-read", 264);
    assert_int_equal(tally.ops[BTH_READ_REQUEST], 31);
    run("loss-atomic", 172);
    assert_int_equal(tally.ops[BTH_FETCH_ADD], 89);
}

static void mistakes(void **state)
{
    (void)state;
    run("nak", 60);
    assert_true(tally.naks[NAK_INVALID_REQUEST] && tally.naks[NAK_REMOTE_ACCESS] &&
                tally.naks[NAK_REMOTE_OPERATIONAL] && tally.rnr);
    assert_true(tally.immediate && tally.invalidate);
}

static void rdma_cm(void **state)
{
    (void)state;
    run("rping", 41);
    assert_true(tally.datagrams == 5 && !tally.ipv6);
    run("rping6", 29);
    assert_int_equal(tally.ipv6, 29);
    run("reject", 2);
    run("udaddy", 8);
    assert_true(tally.datagrams == 8 && tally.immediate == 6);
    run("udpp", 6);
}

static void nfs(void **state)
{
    (void)state;
    run("nfs3", 510);
    assert_true(tally.invalidate == 6 && tally.ops[BTH_WRITE] == 297);
}

/* --- a bit on the way ------------------------------------------------------------------------------------------ */

static struct flips {
    unsigned tried, missed, exempt;
} flips;

/* Each bit that the ICRC covers. Without the identification one change in 65,536 looks like another identification. */
static void flip_bits(const struct roce_captured *packet)
{
    uint8_t changed[PACKET_MAX];

    for (uint32_t bit = 0; bit < 8 * packet->octets; bit += bit < 400 ? 1 : 13) {
        bool exempt = bit / 8 == 4, exact;

        memcpy(changed, packet->at, packet->octets);
        changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        exact = icrc_is_exact(&packet->path, packet->identification, changed, packet->octets);
        assert_int_equal(exact, exempt);
        flips.tried++;
        flips.exempt += exempt;
        flips.missed += !exempt && icrc_is_right(&packet->path, changed, packet->octets, &space);
    }
}

/* ROCE-PKT-07, ROCE-PKT-08, ROCE-PKT-11 */
static void flipped(void **state)
{
    (void)state;
    flips = (struct flips){0};
    roce_capture_each("rping", flip_bits);
    roce_capture_each("rcpp", flip_bits);
    assert_true(flips.tried > 20000);
    assert_true(flips.missed < 5);
    flips = (struct flips){0};
    roce_capture_each("rping6", flip_bits);
    assert_true(flips.tried > 5000);
    assert_int_equal(flips.missed, 0);
}

/* Every identification is found, and addresses, ports and length are covered. */
static void identifications(void **state)
{
    struct icrc_path path = {
        .source = {10, 77, 0, 1}, .destination = {10, 77, 0, 2}, .source_port = 50000, .destination_port = ROCE_PORT};
    uint8_t packet[BTH_OCTETS + ICRC_OCTETS + 8] = {4, 0x40, 0xff, 0xff, 0, 0, 0, 17, 0, 0,
                                                    0, 1,    2,    3,    4, 5, 6, 7,  8, 9};
    uint32_t body = sizeof(packet) - ICRC_OCTETS;

    (void)state;
    for (uint32_t id = 0; id <= UINT16_MAX; id++) {
        put32le(packet + body, icrc_head(icrc_begin(&path, (uint16_t)id, sizeof(packet)), packet, body));
        assert_true(icrc_is_right(&path, packet, sizeof(packet), &space));
        assert_true(icrc_is_exact(&path, (uint16_t)id, packet, sizeof(packet)));
        icrc_renumber(packet, sizeof(packet), (uint16_t)id, 0);
        assert_true(icrc_is_exact(&path, 0, packet, sizeof(packet)));
    }
    path.source[3] ^= 1;
    assert_false(icrc_is_right(&path, packet, sizeof(packet), &space));
    path.source[3] ^= 1;
    path.source_port ^= 1;
    assert_false(icrc_is_right(&path, packet, sizeof(packet), &space));
}

/* What a path keeps changes no ICRC, whatever came before; nor does the octet that routers may change. */
static void kept_sums(void **state)
{
    struct icrc_memo memo = {0};
    struct icrc_path path = {
        .source = {10, 77, 0, 1}, .destination = {10, 77, 0, 2}, .source_port = 50000, .destination_port = ROCE_PORT};
    struct icrc_path keeps = path;
    uint8_t packet[200] = {4, 0x40, 0xff, 0xff};

    (void)state;
    keeps.memo = &memo;
    for (unsigned round = 0; round < 8; round++, path.ipv6 = keeps.ipv6 = round / 4, memo = (struct icrc_memo){0})
        for (uint32_t octets = BTH_OCTETS + ICRC_OCTETS; octets <= sizeof(packet); octets += 4)
            for (uint16_t id = 0; id < 64; id++) {
                packet[BTH_OCTETS - 1] = (uint8_t)id;
                packet[4] = (uint8_t)(round % 2 << 7);
                icrc_seal(round & 2 ? &keeps : &path, id, packet, octets);
                assert_true(icrc_is_exact(&keeps, id, packet, octets));
                assert_true(icrc_is_exact(&path, id, packet, octets));
                packet[4] = (uint8_t)(packet[4] ^ 0x40);
                assert_true(icrc_is_exact(&keeps, id, packet, octets));
                packet[octets - ICRC_OCTETS - 1] ^= 1;
                assert_false(icrc_is_exact(&keeps, id, packet, octets));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connected),       cmocka_unit_test(with_losses), cmocka_unit_test(mistakes),
        cmocka_unit_test(rdma_cm),         cmocka_unit_test(nfs),         cmocka_unit_test(flipped),
        cmocka_unit_test(identifications), cmocka_unit_test(kept_sums),
    };

    return cmocka_run_group_tests_name("roce_captures", tests, NULL, NULL);
}
