/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdmatcp.c - RDMA/TCP segments: decoding and encoding of the vectors, faults of wrong fields, and framing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crcseg.h"
#include "tests/lib/vectors.h"
#include "wire/wire.h"

enum { BUFFER = 66000 };

static const uint64_t id = 0x0123456789abcdef;
static uint8_t buffer[BUFFER], again[BUFFER], payload[BUFFER];

static enum fault decode(struct seg *seg, uint8_t *p, size_t n)
{
    struct wire_state agreed = {.crc = true};
    size_t need;
    int eaten = wire_rdmatcp.decode(&agreed, seg, p, n, &need);

    if (eaten <= 0)
        return fault_of(eaten);
    assert_int_equal(eaten, n);
    assert_int_equal(agreed.rx_pos, n);
    assert_true(agreed.id_known);
    assert_int_equal(agreed.connection_id, id);
    return FAULT_NONE;
}

/* Frame the segment as a whole, and check that wrap() makes the same head and tail around the payload. */
static size_t encode(const struct seg *seg, uint8_t *out)
{
    struct wire_state agreed = {.crc = true, .connection_id = id}, v = agreed;
    const struct span span[2] = {{seg->data, seg->length / 3},
                                 {seg->data + seg->length / 3, seg->length - seg->length / 3}};
    size_t n = wire_rdmatcp.frame(&agreed, seg, span, 2, out), head_length, tail_length;
    uint8_t head[WIRE_HEAD_MAX], tail[WIRE_TAIL_MAX];

    assert_int_equal(agreed.tx_pos, n);
    if (seg->control_length)
        return n;
    wire_rdmatcp.wrap(&v, seg, span, 2, head, &head_length, tail, &tail_length);
    assert_int_equal(v.tx_pos, n);
    assert_memory_equal(head, out, head_length);
    assert_memory_equal(tail, out + head_length + seg->length, tail_length);
    return n;
}

/* --- the vectors --------------------------------------------------------------------------------------------- */

/* A rule and the octets at both ends define the two largest vectors. */
static size_t octets_of(const json_t *entry, const json_t *fields)
{
    size_t head = vector_number(fields, "type") == 1 ? 32 : 24, n = vector_number(fields, "payload_length");

    if (!json_object_get(entry, "payload_rule"))
        return vector_hex(entry, "hex", buffer, BUFFER);
    memset(buffer, 0, BUFFER);
    vector_hex(entry, "hex_first_64", buffer, BUFFER);
    for (size_t i = 0; i < n; i++)
        buffer[head + i] = (uint8_t)(i * 7 + (i >> 8));
    n = vector_number(fields, "wire_length");
    vector_hex(entry, "hex_last_16", buffer + n - 16, 16);
    return n;
}

static void check_fields(const struct seg *seg, const json_t *f)
{
    static const enum seg_op ops[] = {SEG_SEND, SEG_WRITE, SEG_READ_REQ, SEG_READ_RESP};
    bool is_request = seg->op == SEG_READ_REQ;

    assert_int_equal(seg->op, ops[vector_number(f, "type")]);
    assert_int_equal(!!(seg->flags & SEG_FIRST), vector_number(f, "B"));
    assert_int_equal(!!(seg->flags & SEG_LAST), vector_number(f, "E"));
    assert_int_equal(seg->msg, vector_number(f, "message_number"));
    assert_int_equal(seg->order, vector_number(f, "order"));
    assert_int_equal(seg->reserved, vector_number(f, "res4") << 8 | vector_number(f, "res8"));
    assert_int_equal(seg->control_length, 4 * vector_number(f, "clen"));
    assert_int_equal(seg->length, vector_number(f, "payload_length"));
    assert_int_equal(is_request ? seg->read.source_key : seg->key, vector_number_or(f, "buffer_id", 0));
    assert_int_equal(is_request ? seg->read.source_offset : seg->offset,
                     vector_number_or(f, "buffer_offset", vector_number_or(f, "data_offset", 0)));
    assert_int_equal(is_request ? seg->read.length : seg->total, vector_number_or(f, "rdma_length", 0));
    if (json_object_get(f, "payload")) {
        assert_int_equal(vector_hex(f, "payload", payload, BUFFER), seg->length);
        assert_memory_equal(seg->data, payload, seg->length);
    }
    assert_int_equal(vector_hex(f, "control", payload, BUFFER), seg->control_length);
    assert_memory_equal(seg->control, payload, seg->control_length);
}

/* SEG-1-02, SEG-3.4-03, SEG-3.4-06, SEG-3.4-07, SEG-3.4-29, SEG-3.4-33, SEG-3.4-36, SEG-1-03, SEG-2-01, SEG-2-03,
 * SEG-3-01, SEG-3.4-01, SEG-3.4-04, SEG-3.4-10, SEG-3.4-13, SEG-3.4-14, SEG-3.4-16, SEG-3.4-23, SEG-3.4-24,
 * SEG-3.4-26, SEG-3.4-28, SEG-3.4-31, SEG-3.4-34, SEG-3.4-37, SEG-3.4-38, SEG-3.4-39: each vector decodes to its
 * fields, and the decoded segment encodes to the same octets, except for a pad that is not zero. */
static void vectors_both_ways(void **state)
{
    json_t *file = vectors_load("segment"), *entry;
    size_t i, seen = 0;

    (void)state;
    vectors_each(file, "segments", i, entry) {
        const json_t *fields = json_object_get(entry, "fields");
        size_t n = octets_of(entry, fields);
        struct seg seg;

        assert_int_equal(n, vector_number(fields, "wire_length"));
        assert_int_equal(decode(&seg, buffer, n), FAULT_NONE);
        check_fields(&seg, fields);
        assert_int_equal(encode(&seg, again), n);
        if (strcmp(vector_text(entry, "id"), "SEG-V-pad-nonzero"))
            assert_memory_equal(again, buffer, n);
        else
            assert_memory_equal(again, buffer, n - 4 - vector_number(fields, "pad"));
        seen++;
    }
    assert_int_equal(seen, 42);
    json_decref(file);
}

/* SEG-1-05, SEG-3.3-01, SEG-3.3-02, SEG-3.4-02, SEG-3.4-08, SEG-3.4-27, SEG-3.4-38, SEG-3.4-41: each malformed vector
 * fails with the fault of its wrong field, and the truncated one needs more octets. */
static void malformed_vectors(void **state)
{
    static const struct {
        const char *id;
        enum fault fault;
    } want[] = {
        {"SEG-X-version0", FAULT_SEG_VERSION},
        {"SEG-X-version2", FAULT_SEG_VERSION},
        {"SEG-X-len-23", FAULT_SEG_LENGTH},
        {"SEG-X-len-31", FAULT_SEG_LENGTH},
        {"SEG-X-len-0", FAULT_SEG_LENGTH},
        {"SEG-X-clen", FAULT_SEG_CLEN},
        {"SEG-X-crc", FAULT_SEG_CRC},
        {"SEG-X-pad", FAULT_SEG_CRC},
        {"SEG-X-rreq-payload", FAULT_SEG_LENGTH},
        {"SEG-X-rreq-notE", FAULT_SEG_BEGIN},
        {"SEG-X-first-offset", FAULT_SEG_OFFSET},
        {"SEG-X-trunc", FAULT_NONE},
    };
    json_t *file = vectors_load("segment");

    (void)state;
    assert_int_equal(json_array_size(vectors_list(file, "malformed")), sizeof(want) / sizeof(want[0]));
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        size_t n = vector_hex(vectors_find(file, "malformed", want[i].id), "hex", buffer, BUFFER), need = 0;
        struct wire_state agreed = {.crc = true};
        struct seg seg;

        assert_int_equal(wire_rdmatcp.decode(&agreed, &seg, buffer, n, &need), -(int)want[i].fault);
        assert_int_equal(agreed.rx_pos, 0);
        assert_false(agreed.id_known);
        if (!want[i].fault)
            assert_int_equal(need, n + 1);
    }
    json_decref(file);
}

/* SEG-3.4-39 SEG-3.4-40: the CRC vectors in wire order. */
static void crc_vectors(void **state)
{
    json_t *file = vectors_load("segment"), *crc = json_object_get(file, "crc"), *entry;
    uint8_t got[4], want[4];
    size_t i, n;

    (void)state;
    put32le(got, crcseg(0, "123456789", 9));
    vector_hex(json_object_get(crc, "check_123456789"), "chosen_reflected_LE", want, 4);
    assert_memory_equal(got, want, 4);
    vectors_each(crc, "more", i, entry) {
        n = vector_hex(entry, "hex", buffer, BUFFER);
        put32le(got, crcseg(0, buffer, n));
        vector_hex(entry, "crc_octets", want, 4);
        assert_memory_equal(got, want, 4);
    }
    json_decref(file);
}

/* --- framing --------------------------------------------------------------------------------------------------- */

/* SEG-1-03 SEG-2-05 SEG-4-05 SEG-5-01 SEG-5-02: the decoder finds the segments wherever the stream is cut. */
static void stream(void **state)
{
    json_t *file = vectors_load("segment"), *table = json_object_get(file, "stream"), *entry;
    size_t n = vector_hex(table, "hex", buffer, BUFFER), i, from = 0;
    struct wire_state agreed = {.crc = true};
    struct seg seg;

    (void)state;
    vectors_each(table, "segments", i, entry) {
        size_t length = vector_number(entry, "wire_length"), need = 0;

        assert_int_equal(from, vector_number(entry, "offset"));
        for (size_t have = 0; have < length; have++) {
            assert_int_equal(wire_rdmatcp.decode(&agreed, &seg, buffer + from, have, &need), 0);
            assert_true(need > have && need <= length);
        }
        assert_int_equal(wire_rdmatcp.decode(&agreed, &seg, buffer + from, n - from, &need), length);
        assert_int_equal(seg.begin, from);
        assert_int_equal(seg.end, from + length);
        from += length;
    }
    assert_int_equal(from, n);
    json_decref(file);
}

/* --- wrong fields ---------------------------------------------------------------------------------------------- */

/* Encode a Write of 8 octets, set one octet, correct the CRC, and decode the result. */
static enum fault changed(size_t at, uint8_t v, struct seg *seg)
{
    const struct seg write = {.op = SEG_WRITE,
                              .flags = SEG_FIRST | SEG_LAST,
                              .msg = 7,
                              .key = 0x1234,
                              .offset = 0x100,
                              .total = 8,
                              .data = (const uint8_t *)"payload!",
                              .length = 8};
    size_t n = encode(&write, buffer);

    buffer[at] = v;
    put32le(buffer + n - 4, crcseg(0, buffer, n - 4));
    return decode(seg, buffer, n);
}

/* SEG-3.4-12 SEG-3.4-30 SEG-3.4-34: fields that contradict each other, and the ID of another connection. */
static void wrong_fields(void **state)
{
    struct wire_state agreed = {.crc = true, .id_known = true, .connection_id = id ^ 1};
    struct seg seg;
    size_t need;

    (void)state;
    assert_int_equal(changed(31, 8, &seg), FAULT_NONE);
    assert_int_equal(wire_rdmatcp.decode(&agreed, &seg, buffer, 44, &need), -FAULT_SEG_ID);
    assert_int_equal(changed(31, 7, &seg), FAULT_SEG_TOTAL);
    assert_int_equal(changed(31, 9, &seg), FAULT_SEG_TOTAL); /* B and E are set, but the total is longer */
    assert_int_equal(changed(24, 0xff, &seg), FAULT_NONE);
    memset(buffer + 25, 0xff, 3); /* gap 14: the segment ends after the last possible offset */
    put32le(buffer + 40, crcseg(0, buffer, 40));
    assert_int_equal(decode(&seg, buffer, 44), FAULT_SEG_PLACE);
    assert_int_equal(changed(3, 39, &seg), FAULT_SEG_TOTAL);
    assert_int_equal(changed(19, 3, &seg), FAULT_SEG_CLEN);
}

/* SEG-2-04: the largest payload of each type fits the link's segment, and four octets more do not. */
static void payload_fits(void **state)
{
    struct wire_state agreed = {.crc = true};

    (void)state;
    for (uint32_t emss = 128; emss < 70000; emss += 7) {
        uint32_t send = wire_rdmatcp.payload_max(&agreed, false, emss),
                 write = wire_rdmatcp.payload_max(&agreed, true, emss);
        uint32_t limit = emss < 65536 ? emss : 65536;

        assert_true(((24 + send + 3) & ~3u) + 4 <= limit && ((32 + write + 3) & ~3u) + 4 <= limit);
        assert_true(24 + send + 4 + 4 > limit && 32 + write + 4 + 4 > limit);
    }
    assert_true(wire_rdmatcp.payload_max(&agreed, false, 0) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_both_ways), cmocka_unit_test(malformed_vectors),
        cmocka_unit_test(crc_vectors),       cmocka_unit_test(stream),
        cmocka_unit_test(wrong_fields),      cmocka_unit_test(payload_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
