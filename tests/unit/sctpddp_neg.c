/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpddp_neg.c - negotiation messages both ways, every field that can be wrong, and the reason text of an ABORT. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/lib/vectors.h"
#include "wire/sctpddp_neg.h"

static const uint8_t hi[] = "hi";

/* The messages of doc/sctp-negotiation.md. */
static const struct {
    struct neg neg;
    const char *hex;
} messages[] = {
    {{.type = NEG_HELLO, .ird = 0x10, .ord = 0x0203, .data = hi, .data_length = 2},
     "010100000000000000100203"
     "6869"},
    {{.type = NEG_HELLO, .flags = NEG_REPLY | NEG_REJECT}, "010100030000000000000000"},
    {{.type = NEG_HELLO, .flags = NEG_REPLY | NEG_BATCHES}, "010100050000000000000000"},
    {{.type = NEG_SEND,
      .flags = NEG_LAST | NEG_INVALIDATE,
      .id = 7,
      .offset = 1400,
      .value = 0x01020304,
      .data = hi,
      .data_length = 2},
     "01020005000000070000057801020304"
     "6869"},
    {{.type = NEG_SEND, .flags = NEG_LAST | NEG_IMMEDIATE | NEG_WRITTEN, .id = 8, .value = 0xdeadbeef},
     "0102001900000008"
     "00000000deadbeef"},
    {{.type = NEG_READ_REQUEST,
      .id = 1,
      .source_tag = 0x11223344,
      .sink_tag = 0x55667788,
      .source_offset = 0x0102030405060708,
      .length = 65536},
     "0103000000000001"
     "1122334455667788"
     "010203040506070800010000"},
    {{.type = NEG_PLACED, .aws = 0xfffffffe}, "0104000000000000fffffffe"},
};
enum { MESSAGES = sizeof(messages) / sizeof(messages[0]) };

static size_t octets_of(unsigned i, uint8_t *p)
{
    size_t n = neg_encode(&messages[i].neg, p);

    return (size_t)(put_bytes(p + n, messages[i].neg.data, messages[i].neg.data_length) - p);
}

static void both_ways(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MESSAGES; i++) {
        uint8_t p[64], want[64];
        size_t n = octets_of(i, p);
        struct neg back;

        assert_int_equal(hex_decode(messages[i].hex, want, sizeof(want)), n);
        assert_memory_equal(p, want, n);
        assert_int_equal(neg_decode(&back, p, n), FAULT_NONE);
        assert_int_equal(back.data_length, messages[i].neg.data_length);
        back.data = messages[i].neg.data;
        assert_memory_equal(&back, &messages[i].neg, offsetof(struct neg, data));
    }
}

/* A message truncated anywhere before its data is too short; a message truncated at its data is valid. */
static void cut_off(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MESSAGES; i++) {
        uint32_t data = messages[i].neg.data_length;
        uint8_t p[64];
        size_t n = octets_of(i, p);
        struct neg back;

        for (size_t k = 0; k < n - data; k++)
            assert_int_equal(neg_decode(&back, p, k), FAULT_NEG_SHORT);
        assert_int_equal(neg_decode(&back, p, n - data), FAULT_NONE);
    }
}

static enum fault changed(unsigned i, unsigned at, uint8_t to, size_t more)
{
    uint8_t p[1024] = {0};
    size_t n = octets_of(i, p);
    struct neg back;

    p[at] = to;
    return neg_decode(&back, p, n + more);
}

static void wrong_fields(void **state)
{
    (void)state;
    assert_int_equal(changed(0, 0, 0, 0), FAULT_NEG_VERSION);
    assert_int_equal(changed(0, 0, 2, 0), FAULT_NEG_VERSION);
    assert_int_equal(changed(0, 1, 0, 0), FAULT_NEG_TYPE);
    assert_int_equal(changed(0, 1, 5, 0), FAULT_NEG_TYPE);
    assert_int_equal(changed(0, 3, NEG_REJECT, 0), FAULT_NEG_FIELD); /* a request must not have the reject flag */
    assert_int_equal(changed(0, 3, 8, 0), FAULT_NEG_FIELD);          /* an unknown flag */
    assert_int_equal(changed(0, 2, 1, 0), FAULT_NEG_FIELD);
    assert_int_equal(changed(3, 3, NEG_INVALIDATE | NEG_IMMEDIATE, 0), FAULT_NEG_FIELD);
    assert_int_equal(changed(3, 3, 32, 0), FAULT_NEG_FIELD);
    assert_int_equal(changed(4, 3, NEG_WRITTEN | NEG_LAST, 0), FAULT_NEG_FIELD);
    assert_int_equal(changed(4, 3, NEG_WRITTEN | NEG_IMMEDIATE, 0), FAULT_NEG_FIELD);
    assert_int_equal(changed(4, 3, NEG_IMMEDIATE | NEG_LAST, 0), FAULT_NONE);
    assert_int_equal(changed(4, 11, 1, 0), FAULT_NEG_FIELD); /* an offset without data */
    assert_int_equal(changed(4, 0, 1, 1), FAULT_NEG_FIELD);  /* data in a message with NEG_WRITTEN */
    assert_int_equal(changed(5, 3, 1, 0), FAULT_NEG_FIELD);
    assert_int_equal(changed(5, 0, 1, 1), FAULT_NEG_FIELD); /* longer than a Read request */
    assert_int_equal(changed(6, 0, 1, 1), FAULT_NEG_FIELD);
    /* 511, 512 and 513 octets of private data */
    assert_int_equal(changed(1, 0, 1, NEG_PRIVATE_MAX - 1), FAULT_NONE);
    assert_int_equal(changed(1, 0, 1, NEG_PRIVATE_MAX), FAULT_NONE);
    assert_int_equal(changed(1, 0, 1, NEG_PRIVATE_MAX + 1), FAULT_NEG_FIELD);
}

static void reasons(void **state)
{
    struct fault_note note = {.fault = FAULT_BOUNDS, .op = SEG_WRITE};
    char reason[NEG_REASON_MAX];
    struct wire_blame blame;
    size_t n = neg_reason(&note, reason);

    (void)state;
    assert_memory_equal(reason, "RDDP0213 outside the buffer", n);
    neg_explain(reason, n, &blame);
    assert_int_equal(blame.code, 0x213);
    assert_int_equal(blame.op, SEG_WRITE);
    assert_true(blame.access);
    assert_string_equal(blame.text, "outside the buffer");
    for (unsigned fault = FAULT_NONE; fault < FAULTS; fault++) {
        note = (struct fault_note){.fault = (enum fault)fault, .op = SEG_READ_REQ};
        n = neg_reason(&note, reason);
        assert_in_range(n, 10, NEG_REASON_MAX);
        neg_explain(reason, n, &blame);
        assert_int_equal(blame.op, SEG_READ_REQ);
        assert_string_not_equal(blame.text, "the peer aborted the association");
    }
    /* A truncated or unknown reason has no code, and the parser reads no octet behind it. */
    for (size_t k = 0; k < 8; k++) {
        neg_explain(reason, k, &blame);
        assert_int_equal(blame.code, 0);
        assert_int_equal(blame.op, SEG_OPS);
    }
    neg_explain("RDDP02G3 outside", 16, &blame);
    assert_int_equal(blame.code, 0);
    neg_explain("RDDPff77", 8, &blame);
    assert_int_equal(blame.op, SEG_OPS);
    assert_string_equal(blame.text, "another error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways),
        cmocka_unit_test(cut_off),
        cmocka_unit_test(wrong_fields),
        cmocka_unit_test(reasons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
