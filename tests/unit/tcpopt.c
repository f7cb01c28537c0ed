/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpopt.c - the TCP RDMA option: its vectors; both segmentation tables of the document, octet by octet; random
 * segmentation, which describes each octet once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/lib/rng.h"
#include "tests/lib/vectors.h"
#include "tcp/packet.h"
#include "wire/tcpopt_map.h"
#include <rddp/stream.h>

enum { RID = 0x0a0b0c0d, SECTIONS = 64, STREAM = 3000 };

static const struct {
    const char *words;
    enum tcpopt_fault fault;
} faults[] = {
    {"ok", TCPOPT_GOOD},
    {"reject:illegal length", TCPOPT_BAD_LENGTH},
    {"reject:misaligned", TCPOPT_MISPLACED},
    {"reject:data_offset>payload", TCPOPT_DATA_OFFSET},
    {"reject:data past end of segment", TCPOPT_DATA_LENGTH},
    {"reject:buffer offset wraps", TCPOPT_WRAP},
    {"reject:past total", TCPOPT_PAST_TOTAL},
    /* The decoder knows neither the buffer of the receiver nor earlier options. */
    {"reject:past end of buffer", TCPOPT_GOOD},
    {"reject:total length changed", TCPOPT_GOOD},
    {"reject:truncated", TCPOPT_BAD_LENGTH},
};

static enum tcpopt_fault expected(const json_t *entry)
{
    const char *words = vector_text(entry, "expect");

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (strncmp(words, faults[i].words, strlen(faults[i].words)) == 0)
            return faults[i].fault;
    fail_msg("%s: %s", vector_text(entry, "id"), words);
    return TCPOPT_GOOD;
}

static void same_fields(const struct tcpopt *o, const json_t *f)
{
    assert_int_equal(o->length, vector_number(f, "length"));
    if (o->length >= TCPOPT_MARK)
        assert_int_equal(o->aligned, vector_number(f, "A"));
    if (!tcpopt_transfers(o))
        return;
    assert_int_equal(o->unsolicited, vector_number(f, "U"));
    assert_true(o->rid == vector_number(f, "rid"));
    assert_int_equal(o->buffer_offset, vector_number(f, "buffer_offset"));
    assert_int_equal(o->data_offset, vector_number(f, "data_offset"));
    assert_int_equal(o->data_length, vector_number(f, "data_length"));
    assert_int_equal(o->total, vector_number_or(f, "total_length", 0));
}

/* TCPOPT-2-02 TCPOPT-3.1-01 TCPOPT-3.1-03 TCPOPT-3.1.1-03 TCPOPT-3.1.2-01 TCPOPT-3.1.2-03 TCPOPT-3.1.3-01
 * TCPOPT-3.1.3-03 TCPOPT-3.1.3-04 TCPOPT-3.1.4-05 TCPOPT-3.1.6-02 TCPOPT-3.1.6-04 TCPOPT-3.1.7-02 TCPOPT-3.1.8-03
 * TCPOPT-3.2-02 TCPOPT-5.1.1-01 TCPOPT-5.2.1-01 TCPOPT-5.3.1-01 */
static void options(void **state)
{
    json_t *file = vectors_load("tcpopt"), *entry;
    size_t i, good = 0;

    (void)state;
    vectors_each(file, "options", i, entry) {
        const json_t *context = json_object_get(entry, "context"), *fields = json_object_get(entry, "fields");
        uint8_t octets[64], again[64];
        size_t n = vector_hex(entry, "hex", octets, sizeof(octets));
        struct tcpopt o;
        enum tcpopt_fault fault;

        fault = tcpopt_decode(&o, octets,
                              (uint32_t)n == octets[1] ? (uint32_t)n
                              : octets[1] > n          ? 0
                                                       : octets[1],
                              (uint32_t)vector_number_or(context, "opt_offset", 32),
                              (uint32_t)vector_number_or(context, "payload_len", 65535));
        if (fault != expected(entry))
            fail_msg("%s: fault %d", vector_text(entry, "id"), (int)fault);
        if (fault)
            continue;
        good++;
        same_fields(&o, fields);
        if (o.length == TCPOPT_MARK && (octets[2] & 0x7f || octets[3]))
            continue; /* the encoder writes reserved bits as zeros */
        assert_ptr_equal(tcpopt_encode(again, &o), again + n);
        assert_memory_equal(again, octets, n);
    }
    assert_true(good > 80);
    json_decref(file);
}

/* TCPOPT-3.1-02 TCPOPT-3.3-01: whole option blocks of a TCP header. */
static void blocks(void **state)
{
    json_t *file = vectors_load("tcpopt"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "option_blocks", i, entry) {
        const json_t *first = json_object_get(entry, "first_rdma");
        uint8_t octets[64];
        size_t n = vector_hex(entry, "hex", octets, sizeof(octets));
        struct utcp_options seen;
        struct tcpopt o;

        utcp_options_read(&seen, octets, (uint32_t)n, TCPOPT_KIND);
        assert_int_equal(seen.broken, json_is_string(first));
        assert_int_equal(seen.extra != NULL, json_is_object(first));
        if (!seen.extra)
            continue;
        assert_int_equal(seen.extra_at, vector_number(first, "offset_in_tcp_header"));
        assert_int_equal(seen.extra_length, vector_number(first, "length"));
        if (tcpopt_decode(&o, seen.extra, seen.extra_length, seen.extra_at, 1000) == TCPOPT_GOOD)
            same_fields(&o, first);
        else
            assert_true(seen.extra_at % 4 != 0);
    }
    json_decref(file);
}

/* TCPOPT-5.1.1-01 TCPOPT-5.2.1-01 TCPOPT-5.3.1-01: RIDs with fields at their limits. */
static void rids(void **state)
{
    (void)state;
    assert_true(rddp_rid_nfs(0xffffffff, 0xff) == 0xffffffffff);
    assert_true(rddp_rid_http(0xffffffff) == 0xffffffff);
    assert_true(rddp_rid_cifs(0xfffe, 0xfffd, 2) == 0x2fffefffd);
}

static void add(struct tcpopt_map *m, bool message, bool data, uint32_t buffer_offset, uint64_t length, bool total)
{
    struct tcpopt_section s = {.message = message,
                               .data = data,
                               .rid = RID,
                               .buffer_offset = buffer_offset,
                               .total = total ? 4000 : 0,
                               .has_total = total};

    assert_true(tcpopt_map_add(m, &s, length));
}

/* The two tables of section 4, with the payload lengths, which the document leaves open. */
static const struct row {
    uint32_t sequence, buffer_offset, data_offset, data_length, payload;
    bool aligned;
} first[] =
    {
        {0, 0, 100, 900, 1000, true},       {1000, 900, 0, 1000, 1000, false},  {2000, 1900, 0, 100, 200, false},
        {2200, 2000, 100, 900, 1000, true}, {3200, 2900, 0, 1000, 1000, false}, {4200, 3900, 0, 100, 100, false},
},
  second[] = {
      {0, 0, 100, 900, 1000, true},       {1000, 900, 0, 1000, 1000, false},  {2000, 1900, 0, 100, 300, false},
      {2300, 2000, 0, 1000, 1000, false}, {3300, 3000, 0, 1000, 1000, false},
};

static void check_row(const struct tcpopt_map *m, const struct row *row, bool total)
{
    uint32_t option = total ? TCPOPT_LONG : TCPOPT_SHORT, ready = (uint32_t)(m->end - row->sequence);
    uint8_t octets[20], want[20] = {TCPOPT_KIND, (uint8_t)option, row->aligned ? 0x80 : 0, 0, 0x0a, 0x0b, 0x0c, 0x0d};
    struct tcpopt o;

    put32(put16(put16(put32(want + 8, row->buffer_offset), (uint16_t)row->data_offset), (uint16_t)row->data_length),
          4000);
    assert_int_equal(tcpopt_map_cut(m, row->sequence, ready, 1000 + option), row->payload);
    assert_true(tcpopt_map_describe(m, row->sequence, row->payload, &o));
    assert_ptr_equal(tcpopt_encode(octets, &o), octets + option);
    assert_memory_equal(octets, want, option);
}

/* The stream of section 4: header, data, trailer, header, data. TCPOPT-2-01 TCPOPT-3.1.4-01 TCPOPT-4-01 TCPOPT-4-02
 * TCPOPT-4-03 TCPOPT-4-04 TCPOPT-4-05 TCPOPT-3.1.4-02 TCPOPT-3.1.6-01 TCPOPT-3.3-02 TCPOPT-3.3-03 */
static void table(const struct row *row, size_t rows, bool fold, bool total)
{
    struct tcpopt_section slots[SECTIONS];
    struct tcpopt_map m;

    tcpopt_map_init(&m, slots, SECTIONS);
    m.fold = fold;
    add(&m, true, false, 0, 100, total);
    add(&m, false, true, 0, 2000, total);
    add(&m, false, false, 0, 100, total);
    add(&m, true, false, 0, 100, total);
    add(&m, false, true, 2000, 2000, total);
    for (size_t i = 0; i < rows; i++) {
        assert_int_equal(row[i].sequence, i ? row[i - 1].sequence + row[i - 1].payload : 0);
        check_row(&m, &row[i], total);
        tcpopt_map_trim(&m, row[i].sequence + row[i].payload);
    }
    assert_int_equal(row[rows - 1].sequence + row[rows - 1].payload, 4300);
}

static void tables(void **state)
{
    (void)state;
    for (int total = 0; total < 2; total++) {
        table(first, sizeof(first) / sizeof(first[0]), false, total);
        table(second, sizeof(second) / sizeof(second[0]), true, total);
    }
}

/* A transfer of zero octets (TCPOPT-5.1.2-02); a message without a transfer (TCPOPT-3.1.6-03). */
static void nothing_to_move(void **state)
{
    struct tcpopt_section slots[4], empty = {.data = true, .has_total = true, .rid = 5}, text = {.message = true};
    struct tcpopt_map m;
    struct tcpopt o;

    (void)state;
    tcpopt_map_init(&m, slots, 4);
    assert_true(tcpopt_map_add(&m, &text, 10));
    assert_true(tcpopt_map_add(&m, &empty, 0));
    text.message = false;
    assert_true(tcpopt_map_add(&m, &text, 5));
    assert_int_equal(tcpopt_map_cut(&m, 0, 15, 100), 15);
    assert_true(tcpopt_map_describe(&m, 0, 15, &o));
    assert_true(o.length == TCPOPT_LONG && o.aligned && o.rid == 5 && o.data_offset == 10 && !o.data_length &&
                !o.total);
    text.message = true;
    assert_true(tcpopt_map_add(&m, &text, 7));
    assert_int_equal(tcpopt_map_cut(&m, 15, 7, 100), 7);
    assert_true(tcpopt_map_describe(&m, 15, 7, &o) && o.length == TCPOPT_MARK && o.aligned);
    assert_false(tcpopt_map_describe(&m, 16, 6, &o));
    /* When the ring is full, a section of the last kind extends the last entry; another kind does not fit. */
    text.message = false;
    assert_true(tcpopt_map_add(&m, &text, 1));
    assert_false(tcpopt_map_add(&m, &empty, 1));
    tcpopt_map_trim(&m, 15);
    assert_true(tcpopt_map_add(&m, &empty, 1));
}

/* The last octet of a piece may have the last offset that the field can hold, and none may lie behind it. */
static void last_offset(void **state)
{
    static const struct {
        uint32_t offset;
        uint16_t length;
        enum tcpopt_fault fault;
    } rows[] = {{UINT32_MAX, 1, TCPOPT_GOOD},
                {UINT32_MAX, 2, TCPOPT_WRAP},
                {UINT32_MAX - 1, 2, TCPOPT_GOOD},
                {UINT32_MAX - 1, 3, TCPOPT_WRAP},
                {UINT32_MAX, 0, TCPOPT_GOOD}};
    uint8_t octets[TCPOPT_LONG];
    struct tcpopt o;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        o = (struct tcpopt){.length = TCPOPT_SHORT, .buffer_offset = rows[i].offset, .data_length = rows[i].length};
        tcpopt_encode(octets, &o);
        assert_int_equal(tcpopt_decode(&o, octets, TCPOPT_SHORT, 20, 100), rows[i].fault);
    }
}

/* Data that does not go on where the last ended, in the same buffer of the same length, is a section of its own. */
static void sections_of_their_own(void **state)
{
    static const struct {
        struct tcpopt_section second;
        uint32_t sections;
    } rows[] = {
        {{.data = true, .rid = 5, .has_total = true, .buffer_offset = 10, .total = 100}, 1},
        {{.data = true, .rid = 5, .has_total = true, .buffer_offset = 11, .total = 100}, 2},
        {{.data = true, .rid = 5, .has_total = true, .buffer_offset = 9, .total = 100}, 2},
        {{.data = true, .rid = 5, .has_total = true, .buffer_offset = 10, .total = 101}, 2},
        {{.data = true, .rid = 5, .buffer_offset = 10, .total = 100}, 2},
        {{.data = true, .rid = 6, .has_total = true, .buffer_offset = 10, .total = 100}, 2},
        {{.data = true, .rid = 5, .has_total = true, .buffer_offset = 10, .total = 100, .unsolicited = true}, 2},
        {{.data = true, .rid = 5, .has_total = true, .buffer_offset = 10, .total = 100, .message = true}, 2},
    };
    const struct tcpopt_section before = {.data = true, .rid = 5, .has_total = true, .total = 100};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tcpopt_section slots[4];
        struct tcpopt_map m;

        tcpopt_map_init(&m, slots, 4);
        assert_true(tcpopt_map_add(&m, &before, 10));
        assert_true(tcpopt_map_add(&m, &rows[i].second, 10));
        assert_int_equal(m.count, rows[i].sections);
    }
}

/* TCPOPT-3.1.4-03 TCPOPT-3.1.2-02 TCPOPT-3.1.3-02 TCPOPT-3.1.8-01 TCPOPT-3.1.1-01: for any sections and any room,
 * the option of each segment describes exactly the data octets of that segment, also when the room changes. */
static void any_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct rng r = {seed};
        struct tcpopt_section slots[SECTIONS];
        struct tcpopt_map m;
        uint64_t rid[STREAM] = {0};
        uint32_t at[STREAM] = {0}, width = 24 + rng_size(&r, 1500), offset = 0;

        tcpopt_map_init(&m, slots, SECTIONS);
        m.fold = rng_one_in(&r, 2);
        while (m.end < STREAM) {
            uint32_t length = 1 + rng_size(&r, 900);
            struct tcpopt_section s = {.message = rng_one_in(&r, 3),
                                       .data = rng_one_in(&r, 2),
                                       .rid = 1 + rng_below(&r, 3),
                                       .has_total = rng_one_in(&r, 2),
                                       .total = STREAM,
                                       .buffer_offset = offset};

            length = length < STREAM - m.end ? length : (uint32_t)(STREAM - m.end);
            for (uint32_t i = 0; s.data && i < length; i++) {
                rid[m.end + i] = s.rid;
                at[m.end + i] = offset + i;
            }
            s.total = s.has_total ? STREAM : 0;
            offset += s.data ? length : 0;
            if (!tcpopt_map_add(&m, &s, length))
                break;
        }
        for (uint64_t position = 0; position < m.end;) {
            uint32_t ready = (uint32_t)(m.end - position), length,
                     now = rng_one_in(&r, 4) ? 24 + rng_size(&r, 100) : width;
            uint8_t octets[20];
            struct tcpopt o, again;
            bool has;

            length = tcpopt_map_cut(&m, position, ready, now);
            assert_true(length > 0 && length <= ready);
            has = tcpopt_map_describe(&m, position, length, &o);
            assert_true(length + (has ? o.length : 0U) <= now);
            if (has) {
                tcpopt_encode(octets, &o);
                assert_int_equal(tcpopt_decode(&again, octets, o.length, 32, length), TCPOPT_GOOD);
            }
            for (uint32_t i = 0; i < length; i++) {
                bool told = tcpopt_transfers(&o) && i >= o.data_offset && i - o.data_offset < o.data_length;

                assert_int_equal(told, rid[position + i] != 0);
                if (told)
                    assert_true(o.rid == rid[position + i] && o.buffer_offset + i - o.data_offset == at[position + i]);
            }
            position += length;
            if (rng_one_in(&r, 2))
                tcpopt_map_trim(&m, position);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),
        cmocka_unit_test(blocks),
        cmocka_unit_test(rids),
        cmocka_unit_test(tables),
        cmocka_unit_test(nothing_to_move),
        cmocka_unit_test(last_offset),
        cmocka_unit_test(sections_of_their_own),
        cmocka_unit_test(any_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
