/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* placed.c - RPC messages with and without placed parts, cut at any octet, with right and wrong transfer identifiers:
 * the message and its item together always equal the message that was sent. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nfs/placed.h"
#include "rpc/xdrbytes.h"
#include "tests/lib/rng.h"
#include <rddp/stream.h>

enum { XID = 0x01020304, HEAD = 40, DATA = 1001, TOTAL = HEAD + 4 + DATA + 3, ROUNDS = 3000, CUTS = 6 };

static uint8_t message[TOTAL], stream[TOTAL + RECORD_MARK], buffer[DATA];

static void make_message(struct rng *r)
{
    struct xdr_out out = {.at = message, .left = TOTAL};

    rng_fill(r, message, TOTAL);
    xdr_put32(&out, XID);
    out = (struct xdr_out){.at = message + HEAD, .left = 4};
    xdr_put32(&out, DATA);
    memset(message + TOTAL - 3, 0, 3);
    record_mark(stream, TOTAL);
    memcpy(stream + RECORD_MARK, message, TOTAL);
}

/* The item is taken into a message of several fragments, whose memory has no room for it; what would be more than a
 * message may be is refused when its mark comes: octets that stay in their buffer count. */
static void owned(void **state)
{
    struct rng r = {23};
    struct stream_item item;
    size_t eaten, length, first = HEAD + 4 + DATA;
    uint8_t mark[RECORD_MARK], *taken;

    (void)state;
    for (int fits = 0; fits < 2; fits++) {
        struct placed_rx p = {.rx.max = fits ? TOTAL : TOTAL - 1};

        make_message(&r);
        record_mark(mark, first);
        mark[0] &= 0x7f; /* not the last fragment */
        assert_int_equal(record_eat(&p.rx, mark, RECORD_MARK, &eaten), 0);
        assert_int_equal(record_eat(&p.rx, message, HEAD + 4, &eaten), 0);
        assert_int_equal(placed_eat(&p, message + HEAD + 4, DATA, XID, &eaten), 0);
        record_mark(mark, 3);
        assert_int_equal(record_eat(&p.rx, mark, RECORD_MARK, &eaten), fits ? 0 : -EMSGSIZE);
        if (fits) {
            p.rx.capacity = p.rx.length + p.rx.left; /* as tight as can be */
            assert_true(placed_own(&p));
            assert_int_equal(record_eat(&p.rx, message + first, 3, &eaten), 1);
            taken = placed_take(&p, &length, &item);
            assert_int_equal(length, TOTAL);
            assert_memory_equal(taken, message, TOTAL);
            free(taken);
        }
        record_fini(&p.rx);
    }
}

/* Check that the message and its item, joined, equal the message that was sent. */
static void check(struct placed_rx *p, bool with_item)
{
    struct stream_item item;
    uint8_t whole[TOTAL], *taken;
    size_t length;

    taken = placed_take(p, &length, &item);
    assert_non_null(taken);
    assert_int_equal(item.length, with_item ? DATA : 0);
    assert_int_equal(stream_length(length, &item, item.length > 0), TOTAL);
    stream_join(whole, taken, length, &item, item.length > 0);
    assert_memory_equal(whole, message, TOTAL);
    free(taken);
}

/* TCPOPT-5.1.1-06: data of this transfer stays in the buffer it was placed in, and data of any other transfer is
 * copied. */
static void transfers(void **state)
{
    static const struct {
        uint64_t rid;
        bool item;
    } rows[] = {
        {XID, true}, {XID + 1, false}, {XID | 1ULL << 32, false}, {XID | 1ULL << 40, false}, {XID | 1ULL << 45, false}};
    struct placed_rx p = {.rx.max = RECORD_MAX};
    struct rng r = {3};
    size_t eaten, head = RECORD_MARK + HEAD + 4;

    (void)state;
    make_message(&r);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memcpy(buffer, message + HEAD + 4, DATA);
        assert_int_equal(record_eat(&p.rx, stream, head, &eaten), 0);
        assert_int_equal(placed_eat(&p, buffer, 100, rows[i].rid, &eaten), 0);
        assert_int_equal(placed_eat(&p, buffer + 100, DATA - 100, rows[i].rid, &eaten), 0);
        assert_int_equal(record_eat(&p.rx, stream + head + DATA, 3, &eaten), 1);
        check(&p, rows[i].item);
    }
}

/* Place random parts of the stream, with the right transfer identifier or a wrong one; at times the memory they lie in
 * is taken away before the message is whole. */
static void any_part(void **state)
{
    struct rng r = {17};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct placed_rx p = {.rx.max = RECORD_MAX};
        struct stream_item item;
        uint8_t copy[TOTAL + RECORD_MARK], *taken, whole[TOTAL];
        size_t at = 0, length;
        int got = 0;

        make_message(&r);
        memcpy(copy, stream, sizeof(copy));
        while (!got) {
            size_t left = sizeof(stream) - at, n = rng_one_in(&r, CUTS) ? left : 1 + rng_below(&r, (uint32_t)left),
                   eaten;
            uint64_t rid = rng_one_in(&r, 3) ? XID + 1 : XID;

            got = rng_one_in(&r, 2) ? record_eat(&p.rx, stream + at, n, &eaten)
                                    : placed_eat(&p, copy + at, n, rid, &eaten);
            at += eaten;
            if (rng_one_in(&r, 6)) {
                assert_true(placed_own(&p));
                memset(copy, 0xdd, at);
            }
        }
        assert_int_equal(got, 1);
        assert_int_equal(at, sizeof(stream));
        taken = placed_take(&p, &length, &item);
        assert_non_null(taken);
        assert_int_equal(stream_length(length, &item, item.length > 0), TOTAL);
        stream_join(whole, taken, length, &item, item.length > 0);
        assert_memory_equal(whole, message, TOTAL);
        free(taken);
    }
}

/* Octets of the transfer that do not lie behind those before them: a gap is no matter, since the octets are told in
 * their order; a lap has overwritten what was told before. */
static void gaps_and_laps(void **state)
{
    static const int shifts[] = {-100, -99, -1, 1, 50};
    static uint8_t memory[DATA + 200];
    struct rng r = {5};
    size_t eaten, head = RECORD_MARK + HEAD + 4;

    (void)state;
    for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
        struct placed_rx p = {.rx.max = RECORD_MAX};
        uint8_t *second = memory + 100 + shifts[i];

        make_message(&r);
        memcpy(memory, message + HEAD + 4, 100);
        assert_int_equal(record_eat(&p.rx, stream, head, &eaten), 0);
        assert_int_equal(placed_eat(&p, memory, 100, XID, &eaten), 0);
        memcpy(second, message + HEAD + 4 + 100, DATA - 100);
        assert_int_equal(placed_eat(&p, second, DATA - 100, XID, &eaten), shifts[i] < 0 ? -EBADMSG : 0);
        if (shifts[i] > 0) {
            assert_int_equal(record_eat(&p.rx, stream + head + DATA, 3, &eaten), 1);
            check(&p, false);
        }
        record_fini(&p.rx);
    }
}

/* The length in front of the item has to be the item's: else the octets are no opaque, and are joined. */
static void wrong_length(void **state)
{
    static const int differences[] = {-1, 1, 2, 3};
    struct rng r = {29};
    size_t eaten, head = RECORD_MARK + HEAD + 4;

    (void)state;
    for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
        struct placed_rx p = {.rx.max = RECORD_MAX};
        struct xdr_out out = {.at = message + HEAD, .left = 4};

        make_message(&r);
        xdr_put32(&out, (uint32_t)(DATA + differences[i]));
        memcpy(stream + RECORD_MARK, message, TOTAL);
        memcpy(buffer, message + HEAD + 4, DATA);
        assert_int_equal(record_eat(&p.rx, stream, head, &eaten), 0);
        assert_int_equal(placed_eat(&p, buffer, DATA, XID, &eaten), 0);
        assert_int_equal(record_eat(&p.rx, stream + head + DATA, 3, &eaten), 1);
        check(&p, false);
    }
}

static void errors(void **state)
{
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff}, empty[] = {0, 0, 0, 0};
    struct placed_rx p = {.rx.max = 100};
    size_t eaten;

    (void)state;
    assert_int_equal(placed_eat(&p, huge, 4, XID, &eaten), -EMSGSIZE);
    record_fini(&p.rx);
    assert_int_equal(placed_eat(&p, empty, 4, XID, &eaten), -EBADMSG);
    record_fini(&p.rx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transfers),     cmocka_unit_test(any_part),     cmocka_unit_test(owned),
        cmocka_unit_test(gaps_and_laps), cmocka_unit_test(wrong_length), cmocka_unit_test(errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
