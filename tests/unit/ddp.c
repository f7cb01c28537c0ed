/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ddp.c - DDP and RDMAP headers: the vectors decoded and encoded, and every wrong field with its fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/lib/vectors.h"
#include "wire/ddp.h"

enum { BUFFER = 2048 };

/* Encodes header and payload of `seg`, as a wire sends them. */
static size_t encode(uint8_t *out, const struct seg *seg, unsigned version)
{
    uint8_t *p = ddp_encode(out, seg, version);

    return (size_t)(put_bytes(p, seg->data, seg->length) - out);
}

static void check_same_read(const struct seg_read *a, const struct seg_read *b)
{
    assert_int_equal(a->sink_key, b->sink_key);
    assert_int_equal(a->sink_offset, b->sink_offset);
    assert_int_equal(a->source_key, b->source_key);
    assert_int_equal(a->source_offset, b->source_offset);
    assert_int_equal(a->length, b->length);
}

static void check_same_atomic(const struct seg_atomic *a, const struct seg_atomic *b)
{
    assert_int_equal(a->op, b->op);
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->key, b->key);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->data, b->data);
    assert_int_equal(a->mask, b->mask);
    assert_int_equal(a->compare, b->compare);
    assert_int_equal(a->compare_mask, b->compare_mask);
}

static void check_same(const struct seg *a, const struct seg *b)
{
    assert_int_equal(a->op, b->op);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->msg, b->msg);
    assert_int_equal(a->key, b->key);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->invalidate, b->invalidate);
    assert_int_equal(a->immediate, b->immediate);
    if (a->op == SEG_ATOMIC_REQ || a->op == SEG_ATOMIC_RESP)
        check_same_atomic(&a->atomic, &b->atomic);
    else
        check_same_read(&a->read, &b->read);
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->data, b->data, a->length);
}

/* --- the vectors --------------------------------------------------------------------------------------------- */

/* DDP-4.1-01 DDP-4.2-01 DDP-4.3-01 DDP-5.2-03 DDP-5.4-01 RDMAP-3-01 RDMAP-4.1-01 RDMAP-4.1-03 RDMAP-4.4-01: each vector
 * is decoded, and the result is encoded to the same octets. */
static void vectors_both_ways(void **state)
{
    json_t *file = vectors_load("mpa"), *entry;
    size_t i, known = 0;

    (void)state;
    vectors_each(file, "ddp_rdmap", i, entry) {
        uint8_t ulpdu[BUFFER], again[BUFFER];
        size_t n = vector_hex(entry, "hex", ulpdu, BUFFER);
        enum fault fault;
        struct seg seg;

        assert_int_equal(n, vector_number(entry, "ulpdu_length"));
        fault = ddp_decode(&seg, ulpdu, n, 1);
        assert_int_equal(fault, FAULT_NONE);
        assert_ptr_equal(seg.head, ulpdu);
        assert_int_equal(seg.head_length + seg.length, n);
        assert_int_equal(encode(again, &seg, 1), n);
        assert_memory_equal(again, ulpdu, n);
        known++;
    }
    assert_int_equal(known, 46);
    json_decref(file);
}

static struct seg from_vector(json_t *file, const char *id, uint8_t *buffer)
{
    struct seg seg;
    size_t n = vector_hex(vectors_find(file, "ddp_rdmap", id), "hex", buffer, BUFFER);

    assert_int_equal(ddp_decode(&seg, buffer, n, 1), FAULT_NONE);
    return seg;
}

/* The meaning of the vectors, field by field. RDMAP-5.1-01 RDMAP-5.2-02 DDP-4.2-02 */
static void vector_fields(void **state)
{
    static const uint8_t hello[] = "hello";
    static const struct {
        const char *id;
        struct seg seg;
    } want[] = {
        {"DDP-V-write",
         {.op = SEG_WRITE,
          .flags = SEG_LAST,
          .key = 0x11223344,
          .offset = 0x0102030405060708,
          .data = (const uint8_t *)"data",
          .length = 4}},
        {"DDP-V-write-0", {.op = SEG_WRITE, .flags = SEG_LAST, .key = 1}},
        {"DDP-V-write-notlast", {.op = SEG_WRITE, .key = 5, .data = (const uint8_t *)"part", .length = 4}},
        {"DDP-V-rreq",
         {.op = SEG_READ_REQ, .flags = SEG_LAST, .msg = 1, .read = {0xaaaa0001, 0x1000, 0xbbbb0002, 0x2000, 0x1000}}},
        {"DDP-V-rreq-0", {.op = SEG_READ_REQ, .flags = SEG_LAST, .msg = 2, .read = {1, 0, 1, 0, 0}}},
        {"DDP-V-rresp",
         {.op = SEG_READ_RESP,
          .flags = SEG_LAST,
          .key = 0xaaaa0001,
          .offset = 0x1000,
          .data = (const uint8_t *)"abcd",
          .length = 4}},
        {"DDP-V-rresp-0", {.op = SEG_READ_RESP, .flags = SEG_LAST, .key = 1}},
        {"DDP-V-send", {.op = SEG_SEND, .flags = SEG_LAST, .msg = 1, .data = hello, .length = 5}},
        {"DDP-V-send-0", {.op = SEG_SEND, .flags = SEG_LAST, .msg = 1}},
        {"DDP-V-sendinv",
         {.op = SEG_SEND,
          .flags = SEG_LAST | SEG_INVALIDATE,
          .msg = 2,
          .invalidate = 0xaaaa0001,
          .data = hello,
          .length = 5}},
        {"DDP-V-sendse", {.op = SEG_SEND, .flags = SEG_LAST | SEG_SOLICITED, .msg = 3, .data = hello, .length = 5}},
        {"DDP-V-sendseinv",
         {.op = SEG_SEND,
          .flags = SEG_LAST | SEG_SOLICITED | SEG_INVALIDATE,
          .msg = 4,
          .invalidate = 0xaaaa0001,
          .data = hello,
          .length = 5}},
        {"DDP-V-imm", {.op = SEG_IMMEDIATE, .flags = SEG_LAST, .msg = 5, .immediate = 0x00c0ffee00000000}},
        {"DDP-V-fadd",
         {.op = SEG_ATOMIC_REQ,
          .flags = SEG_LAST,
          .msg = 3,
          .atomic = {SEG_FETCH_ADD, 0x77, 0xaaaa0001, 0x1000, 1, 0, 0, UINT64_MAX}}},
        {"DDP-V-msn-wrap-a",
         {.op = SEG_SEND, .flags = SEG_LAST, .msg = 0xffffffff, .data = (const uint8_t *)"x", .length = 1}},
        {"DDP-V-msn-wrap-b", {.op = SEG_SEND, .flags = SEG_LAST, .msg = 0, .data = (const uint8_t *)"x", .length = 1}},
    };
    json_t *file = vectors_load("mpa");
    uint8_t buffer[BUFFER];

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct seg seg = from_vector(file, want[i].id, buffer);

        check_same(&seg, &want[i].seg);
    }
    json_decref(file);
}

/* DDP-4.1-02 DDP-4.3-02 DDP-5.2-02: RFC 5041's example of a message cut into two segments. */
static void vector_segments(void **state)
{
    static const char *const id[] = {"DDP-V-seg-u0", "DDP-V-seg-u1", "DDP-V-seg-t0", "DDP-V-seg-t1"};
    json_t *file = vectors_load("mpa");
    uint8_t buffer[BUFFER];

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        json_t *fields = json_object_get(vectors_find(file, "ddp_rdmap", id[i]), "fields");
        struct seg seg = from_vector(file, id[i], buffer);

        assert_int_equal(seg.offset, vector_number(fields, i < 2 ? "MO" : "TO"));
        assert_int_equal(seg.length, vector_number(fields, "payload"));
        assert_int_equal(seg.flags, vector_number(fields, "L") ? SEG_LAST : 0);
        assert_int_equal(seg.op, i < 2 ? SEG_SEND : SEG_WRITE);
    }
    json_decref(file);
}

/* --- wrong headers ------------------------------------------------------------------------------------------- */

/* A change of one good ULPDU, and the fault that the receiver must report. */
struct change {
    const char *id;
    size_t at, octets; /* the position and number of the octets that become `value` */
    uint32_t value;
    int grow; /* the number of octets that are then added, or cut off if negative */
    enum fault fault;
    enum seg_op op;
};

#define WRITE "DDP-V-write"
#define SEND "DDP-V-send"
#define READ "DDP-V-rreq"
#define RESP "DDP-V-rresp"
#define TERM "TERM-V-llp-2"
#define IMM "DDP-V-imm"
#define FADD "DDP-V-fadd"

/* DDP-4.1-04 DDP-4.1-05 DDP-7.1-01 RDMAP-4.1-01 RDMAP-4.1-02 RDMAP-4.1-03 RDMAP-7.2-01 EXT-08 */
static const struct change changes[] = {
    /* DDP's version, then RDMAP's */
    {WRITE, 0, 1, 0xc0, 0, FAULT_DDP_VERSION, SEG_WRITE},
    {WRITE, 0, 1, 0xc2, 0, FAULT_DDP_VERSION, SEG_WRITE},
    {SEND, 0, 1, 0x40, 0, FAULT_DDP_VERSION, SEG_SEND},
    {SEND, 0, 1, 0x43, 0, FAULT_DDP_VERSION, SEG_SEND},
    {SEND, 0, 2, 0x4003, 0, FAULT_DDP_VERSION, SEG_SEND},
    {SEND, 1, 1, 0x03, 0, FAULT_RDMAP_VERSION, SEG_SEND},
    {WRITE, 1, 1, 0x80, 0, FAULT_RDMAP_VERSION, SEG_WRITE},
    {READ, 1, 1, 0xc1, 0, FAULT_RDMAP_VERSION, SEG_SEND},
    /* reserved bits are ignored: four of DDP, two of RDMAP, and the STag of a Send that does not invalidate */
    {WRITE, 0, 1, 0xfd, 0, FAULT_NONE, SEG_WRITE},
    {SEND, 0, 1, 0x7d, 0, FAULT_NONE, SEG_SEND},
    {SEND, 1, 1, 0x73, 0, FAULT_NONE, SEG_SEND},
    {SEND, 2, 4, 0xffffffff, 0, FAULT_NONE, SEG_SEND},
    {READ, 2, 4, 0xffffffff, 0, FAULT_NONE, SEG_READ_REQ},
    /* opcodes in the wrong buffer model, or undefined */
    {WRITE, 1, 1, 0x43, 0, FAULT_OPCODE, SEG_WRITE},
    {WRITE, 1, 1, 0x41, 0, FAULT_OPCODE, SEG_WRITE},
    {WRITE, 1, 1, 0x47, 0, FAULT_OPCODE, SEG_WRITE},
    {SEND, 1, 1, 0x40, 0, FAULT_OPCODE, SEG_SEND},
    {SEND, 1, 1, 0x42, 0, FAULT_OPCODE, SEG_SEND},
    {WRITE, 1, 1, 0x48, 0, FAULT_OPCODE, SEG_WRITE},
    {WRITE, 1, 1, 0x49, 0, FAULT_OPCODE, SEG_WRITE},
    {WRITE, 1, 1, 0x4a, 0, FAULT_OPCODE, SEG_WRITE},
    {WRITE, 1, 1, 0x4b, 0, FAULT_OPCODE, SEG_WRITE},
    {SEND, 1, 1, 0x4c, 0, FAULT_OPCODE, SEG_SEND},
    {WRITE, 1, 1, 0x4f, 0, FAULT_OPCODE, SEG_WRITE},
    /* queue numbers */
    {SEND, 6, 4, 5, 0, FAULT_QUEUE, SEG_SEND},
    {SEND, 6, 4, 1, 0, FAULT_QUEUE, SEG_SEND},
    {SEND, 6, 4, 0x01000000, 0, FAULT_QUEUE, SEG_SEND},
    {READ, 6, 4, 0, 0, FAULT_QUEUE, SEG_READ_REQ},
    {READ, 6, 4, 2, 0, FAULT_QUEUE, SEG_READ_REQ},
    {TERM, 6, 4, 1, 0, FAULT_QUEUE, SEG_TERMINATE},
    /* lengths: a header cut, a header with something behind it */
    {WRITE, 0, 0, 0, -4, FAULT_NONE, SEG_WRITE},
    {WRITE, 0, 0, 0, -5, FAULT_SHORT, SEG_WRITE},
    {WRITE, 0, 0, 0, -17, FAULT_SHORT, SEG_WRITE},
    {WRITE, 0, 0, 0, -18, FAULT_SHORT, SEG_SEND},
    {RESP, 0, 0, 0, -5, FAULT_SHORT, SEG_WRITE},
    {SEND, 0, 0, 0, -5, FAULT_NONE, SEG_SEND},
    {SEND, 0, 0, 0, -6, FAULT_SHORT, SEG_SEND},
    {SEND, 0, 0, 0, -22, FAULT_SHORT, SEG_SEND},
    {READ, 0, 0, 0, -1, FAULT_SHORT, SEG_READ_REQ},
    {READ, 0, 0, 0, -28, FAULT_SHORT, SEG_READ_REQ},
    {READ, 0, 0, 0, 1, FAULT_SHORT, SEG_READ_REQ},
    {TERM, 0, 0, 0, -1, FAULT_SHORT, SEG_TERMINATE},
    /* Read Request and Terminate are one segment each */
    {READ, 14, 4, 28, 0, FAULT_MO, SEG_READ_REQ},
    {TERM, 14, 4, 4, 0, FAULT_MO, SEG_TERMINATE},
    {READ, 0, 1, 0x01, 0, FAULT_SHORT, SEG_READ_REQ},
    {TERM, 0, 1, 0x01, 0, FAULT_SHORT, SEG_TERMINATE},
    /* EXT-06: Immediate Data are 8 octets, on queue 0, in one segment; no STag is named */
    {IMM, 1, 1, 0x49, 0, FAULT_NONE, SEG_IMMEDIATE},
    {IMM, 2, 4, 0xffffffff, 0, FAULT_NONE, SEG_IMMEDIATE},
    {IMM, 0, 0, 0, -1, FAULT_SHORT, SEG_IMMEDIATE},
    {IMM, 0, 0, 0, -8, FAULT_SHORT, SEG_IMMEDIATE},
    {IMM, 0, 0, 0, 1, FAULT_SHORT, SEG_IMMEDIATE},
    {IMM, 6, 4, 1, 0, FAULT_QUEUE, SEG_IMMEDIATE},
    {IMM, 6, 4, 3, 0, FAULT_QUEUE, SEG_IMMEDIATE},
    {IMM, 14, 4, 8, 0, FAULT_MO, SEG_IMMEDIATE},
    {IMM, 0, 1, 0x01, 0, FAULT_SHORT, SEG_IMMEDIATE},
    {IMM, 1, 1, 0x08, 0, FAULT_RDMAP_VERSION, SEG_SEND},
    /* EXT-01 EXT-04: an Atomic Request is one segment on queue 1, and one of two operations; 28 bits are reserved */
    {FADD, 18, 4, 0xfffffff0, 0, FAULT_NONE, SEG_ATOMIC_REQ},
    {FADD, 18, 4, 2, 0, FAULT_NONE, SEG_ATOMIC_REQ},
    {FADD, 18, 4, 1, 0, FAULT_OPCODE, SEG_ATOMIC_REQ},
    {FADD, 18, 4, 3, 0, FAULT_OPCODE, SEG_ATOMIC_REQ},
    {FADD, 18, 4, 15, 0, FAULT_OPCODE, SEG_ATOMIC_REQ},
    {FADD, 2, 4, 0xffffffff, 0, FAULT_NONE, SEG_ATOMIC_REQ},
    {FADD, 6, 4, 0, 0, FAULT_QUEUE, SEG_ATOMIC_REQ},
    {FADD, 6, 4, 3, 0, FAULT_QUEUE, SEG_ATOMIC_REQ},
    {FADD, 14, 4, 52, 0, FAULT_MO, SEG_ATOMIC_REQ},
    {FADD, 0, 1, 0x01, 0, FAULT_SHORT, SEG_ATOMIC_REQ},
    {FADD, 0, 0, 0, -1, FAULT_SHORT, SEG_ATOMIC_REQ},
    {FADD, 0, 0, 0, 1, FAULT_SHORT, SEG_ATOMIC_REQ},
    /* the header alone cannot show that these are wrong */
    {SEND, 14, 4, 0xffffffff, 0, FAULT_NONE, SEG_SEND},
    {SEND, 10, 4, 0, 0, FAULT_NONE, SEG_SEND},
    {TERM, 10, 4, 2, 0, FAULT_NONE, SEG_TERMINATE},
    {WRITE, 6, 4, 0xffffffff, 0, FAULT_NONE, SEG_WRITE},
};

static void wrong_headers(void **state)
{
    json_t *file = vectors_load("mpa");

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const struct change *c = &changes[i];
        uint8_t buffer[BUFFER] = {0}, *ulpdu;
        size_t n = vector_hex(vectors_find(file, "ddp_rdmap", c->id), "hex", buffer, BUFFER);
        struct seg seg;
        enum fault fault;

        for (size_t k = 0; k < c->octets; k++)
            buffer[c->at + k] = (uint8_t)(c->value >> 8 * (c->octets - 1 - k));
        n = (size_t)((int)n + c->grow);
        ulpdu = test_malloc(n + 1); /* exactly as long, so that a sanitizer sees an access behind the ULPDU */
        memcpy(ulpdu, buffer, n);
        fault = ddp_decode(&seg, ulpdu, n, 1);
        if (fault != c->fault || seg.op != c->op)
            fail_msg("change %zu of %s: fault %d, op %d", i, c->id, (int)fault, (int)seg.op);
        assert_ptr_equal(seg.head, ulpdu);
        assert_int_equal(seg.head_length + seg.length, n);
        assert_ptr_equal(seg.data, ulpdu + seg.head_length);
        test_free(ulpdu);
    }
    json_decref(file);
}

/* RDMAP-4.1-03: an STag in a message that has none is ignored. */
static void stray_invalidate(void **state)
{
    json_t *file = vectors_load("mpa");
    uint8_t buffer[BUFFER];
    struct seg seg = from_vector(file, SEND, buffer);

    (void)state;
    put32(buffer + 2, 0x12345678);
    assert_int_equal(ddp_decode(&seg, buffer, seg.head_length + seg.length, 1), FAULT_NONE);
    assert_int_equal(seg.invalidate, 0);
    seg.invalidate = 0x12345678;
    ddp_encode(buffer, &seg, 1);
    assert_int_equal(get32(buffer + 2), 0);
    json_decref(file);
}

/* M44-20, M44-21: version 0 gives the octets 40 03 of the figures, and each version refuses the other. */
static void versions(void **state)
{
    struct seg seg = {.op = SEG_SEND, .flags = SEG_LAST, .msg = 1}, got;
    uint8_t buffer[DDP_HEAD_MAX];

    (void)state;
    assert_int_equal(encode(buffer, &seg, 0), 18);
    assert_int_equal(get16(buffer), 0x4003);
    assert_int_equal(ddp_decode(&got, buffer, 18, 0), FAULT_NONE);
    assert_int_equal(ddp_decode(&got, buffer, 18, 1), FAULT_DDP_VERSION);
    encode(buffer, &seg, 1);
    assert_int_equal(get16(buffer), 0x4143);
    assert_int_equal(ddp_decode(&got, buffer, 18, 0), FAULT_DDP_VERSION);
}

/* The first two octets of everything that can be sent (RFC 5040 figure 4). */
static void control_octets(void **state)
{
    static const struct {
        enum seg_op op;
        unsigned flags;
        uint16_t octets;
    } want[] = {
        {SEG_WRITE, SEG_LAST, 0xc140},
        {SEG_WRITE, 0, 0x8140},
        {SEG_READ_REQ, SEG_LAST, 0x4141},
        {SEG_READ_RESP, SEG_LAST, 0xc142},
        {SEG_READ_RESP, 0, 0x8142},
        {SEG_SEND, SEG_LAST, 0x4143},
        {SEG_SEND, 0, 0x0143},
        {SEG_SEND, SEG_LAST | SEG_INVALIDATE, 0x4144},
        {SEG_SEND, SEG_LAST | SEG_SOLICITED, 0x4145},
        {SEG_SEND, SEG_LAST | SEG_SOLICITED | SEG_INVALIDATE, 0x4146},
        {SEG_SEND, SEG_SOLICITED | SEG_INVALIDATE, 0x0146},
        {SEG_TERMINATE, SEG_LAST, 0x4147},
        {SEG_IMMEDIATE, SEG_LAST, 0x4148},
        {SEG_ATOMIC_REQ, SEG_LAST, 0x414a},
        {SEG_ATOMIC_RESP, SEG_LAST, 0x414b},
        {SEG_IMMEDIATE, SEG_LAST | SEG_SOLICITED, 0x4149},
    };
    uint8_t buffer[DDP_HEAD_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct seg seg = {.op = want[i].op, .flags = want[i].flags};

        ddp_encode(buffer, &seg, 1);
        assert_int_equal(get16(buffer), want[i].octets);
        assert_int_equal(ddp_op(buffer, 2), want[i].op);
    }
    assert_int_equal(ddp_op(buffer, 1), SEG_OPS);
    put16(buffer, 0xc143);
    assert_int_equal(ddp_op(buffer, 2), SEG_OPS);
    put16(buffer, 0x414c);
    assert_int_equal(ddp_op(buffer, 2), SEG_OPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_both_ways), cmocka_unit_test(vector_fields),    cmocka_unit_test(vector_segments),
        cmocka_unit_test(wrong_headers),     cmocka_unit_test(stray_invalidate), cmocka_unit_test(versions),
        cmocka_unit_test(control_octets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
