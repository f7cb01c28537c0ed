/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa.c - FPDUs against the figures, the vectors, and every phase, cut and wrong bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "core/fault.h"
#include "tests/lib/vectors.h"
#include "wire/mpa.h"

enum { BUFFER = 1 << 17 };

static uint8_t ulpdu_buffer[BUFFER], wire_buffer[BUFFER], out_buffer[BUFFER];

/* The pattern of the vectors' long ULPDUs; `k` numbers the ULPDU of a stream. */
static void fill(uint8_t *p, size_t n, unsigned k)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(k + i * 11 + (i >> 8));
}

static size_t encode(const struct mpa_half *half, const uint8_t *ulpdu, size_t n)
{
    struct span piece = {.at = ulpdu, .length = (uint32_t)n};

    return mpa_encode(half, out_buffer, &piece, 1);
}

/* Decodes a copy, as decoding closes it up, which is left in wire_buffer. */
static int decode(const struct mpa_half *half, const uint8_t *fpdu, size_t n, struct span *ulpdu, size_t *need)
{
    if (fpdu != wire_buffer)
        memmove(wire_buffer, fpdu, n);
    return mpa_decode(half, wire_buffer, n, ulpdu, need);
}

static void check_decodes(const struct mpa_half *half, const uint8_t *fpdu, size_t n, const uint8_t *ulpdu,
                          size_t length)
{
    struct span got;
    size_t need = 0;

    assert_int_equal(decode(half, fpdu, n, &got, &need), n);
    assert_int_equal(got.length, length);
    assert_memory_equal(got.at, ulpdu, length);
}

static int verdict(const struct mpa_half *half, const uint8_t *fpdu, size_t n)
{
    struct span got;
    size_t need = 0;

    return decode(half, fpdu, n, &got, &need);
}

/* --- the vectors --------------------------------------------------------------------------------------------- */

static size_t vector_ulpdu(const json_t *entry)
{
    size_t n = vector_number(entry, "ulpdu_length");

    if (json_object_get(entry, "ulpdu"))
        return vector_hex(entry, "ulpdu", ulpdu_buffer, BUFFER);
    fill(ulpdu_buffer, n, 0);
    return n;
}

/* Of the longest ones the file has the beginning and the end; the end has the CRC of all of it. */
static void check_octets(const json_t *entry, const uint8_t *fpdu, size_t n)
{
    uint8_t want[BUFFER / 16];
    size_t length;

    if (json_object_get(entry, "hex")) {
        length = vector_hex(entry, "hex", want, sizeof(want));
        assert_int_equal(n, length);
        assert_memory_equal(fpdu, want, n);
        return;
    }
    length = vector_hex(entry, "hex_first_64", want, sizeof(want));
    assert_memory_equal(fpdu, want, length);
    length = vector_hex(entry, "hex_last_32", want, sizeof(want));
    assert_memory_equal(fpdu + n - length, want, length);
}

static void check_markers(const json_t *entry, uint64_t pos, const uint8_t *fpdu)
{
    json_t *marker;
    size_t i;

    json_array_foreach(json_object_get(entry, "markers"), i, marker) {
        const uint8_t *at = fpdu + vector_number(marker, "offset") - pos;

        assert_int_equal(get16(at), 0);
        assert_int_equal(get16(at + 2), vector_number(marker, "fpduptr"));
    }
}

/* MPA-3.2-03 MPA-3.2-06 MPA-5.2-08 MPA-6-01 MPA-6-02 MPA-6-03 MPA-6-05 MPA-6-06 MPA-6-07 MPA-6.1-01 MPA-6.1-02
 * MPA-6.1-04 MPA-7.1-03 MPA-7.1-09 MPA-7.1-12 MPA-7.1-14 MPA-7.1-16 MPA-7.2-01 MPA-7.2-02 MPA-7.2-03 MPA-7.2-04
 * MPA-7.2-05 MPA-7.2-06 MPA-7.2-09 MPA-7.2-10 M44-01 M44-05 */
static void fpdus_both_ways(void **state)
{
    json_t *file = vectors_load("mpa"), *entry;
    size_t i, seen = 0;

    (void)state;
    vectors_each(file, "fpdus", i, entry) {
        struct mpa_half half = {.pos = vector_number(entry, "stream_offset"),
                                .markers = vector_flag(entry, "markers_on")};
        size_t length, n;

        if (!json_object_get(entry, "ulpdu_length"))
            continue;
        half.crc = strcmp(vector_text(entry, "id"), "MPA-V-crc-off") != 0;
        length = vector_ulpdu(entry);
        n = encode(&half, ulpdu_buffer, length);
        assert_int_equal(n, vector_number(entry, "fpdu_length"));
        assert_int_equal(n, mpa_fpdu_octets(&half, (uint32_t)length));
        check_octets(entry, out_buffer, n);
        check_markers(entry, half.pos, out_buffer);
        check_decodes(&half, out_buffer, n, ulpdu_buffer, length);
        seen++;
    }
    assert_int_equal(seen, 32);
    json_decref(file);
}

/* Without markers it is the same whatever part of the ULPDU was written in place before. */
static void ready_in_place(void **state)
{
    static uint8_t whole[2048];

    (void)state;
    fill(ulpdu_buffer, 1400, 3);
    for (size_t n = 0; n <= 1400; n += n < 70 ? 1 : 133) {
        const struct mpa_half half = {.crc = n % 2 == 0};
        size_t octets = encode(&half, ulpdu_buffer, n);

        memcpy(whole, out_buffer, octets);
        for (size_t ready = 0; ready <= n; ready += ready < 70 ? 1 : 133) {
            struct span rest = {ulpdu_buffer + ready, (uint32_t)(n - ready)};

            memset(out_buffer, 0xaa, sizeof(whole));
            memcpy(out_buffer + MPA_LENGTH, ulpdu_buffer, ready);
            assert_int_equal(mpa_complete(half.crc, out_buffer, (uint32_t)ready, &rest, 1), octets);
            assert_memory_equal(out_buffer, whole, octets);
            assert_int_equal(out_buffer[octets], 0xaa);
        }
    }
}

/* MPA-7.1-06: a marker that falls between two FPDUs is the following one's. */
static void marker_between(void **state)
{
    json_t *file = vectors_load("mpa"), *entry = vectors_find(file, "fpdus", "MPA-V-mk-between");
    json_t *ulpdus = json_object_get(entry, "ulpdus");
    struct mpa_half half = {.pos = vector_number(entry, "stream_offset"), .markers = true, .crc = true};
    uint8_t want[256];
    size_t n = vector_hex(entry, "hex", want, sizeof(want)), at = 0;

    (void)state;
    for (size_t i = 0; i < json_array_size(ulpdus); i++) {
        ptrdiff_t length = hex_decode(json_string_value(json_array_get(ulpdus, i)), ulpdu_buffer, BUFFER);
        size_t octets = encode(&half, ulpdu_buffer, (size_t)length);

        assert_int_equal(octets, json_integer_value(json_array_get(json_object_get(entry, "fpdu_lengths"), i)));
        assert_memory_equal(out_buffer, want + at, octets);
        check_decodes(&half, want + at, octets, ulpdu_buffer, (size_t)length);
        half.pos += octets;
        at += octets;
    }
    assert_int_equal(at, n);
    json_decref(file);
}

static void check_stream(const json_t *entry)
{
    json_t *fpdus = json_object_get(entry, "fpdus"), *fpdu, *marker;
    uint32_t start = (uint32_t)vector_number(entry, "seq_start");
    static uint8_t want[BUFFER];
    size_t n = vector_hex(entry, "hex", want, sizeof(want)), i, k;

    json_array_foreach(fpdus, i, fpdu) {
        uint32_t at = (uint32_t)vector_number(fpdu, "offset");
        size_t octets = vector_number(fpdu, "length"), length = vector_number(fpdu, "ulpdu_length");
        struct mpa_half half = {.pos = at, .markers = true, .crc = true};

        assert_int_equal((uint32_t)(start + at), vector_number(fpdu, "seq"));
        fill(ulpdu_buffer, length, (unsigned)i);
        assert_int_equal(encode(&half, ulpdu_buffer, length), octets);
        assert_memory_equal(out_buffer, want + at, octets);
        check_decodes(&half, want + at, octets, ulpdu_buffer, length);
        json_array_foreach(json_object_get(fpdu, "markers"), k, marker) {
            uint32_t seq = (uint32_t)vector_number(marker, "seq");
            uint16_t pointer = (uint16_t)vector_number(marker, "fpduptr");

            assert_int_equal(mpa_next_marker((uint32_t)(seq - start)), (uint32_t)(seq - start));
            assert_int_equal(get16(want + (uint32_t)(seq - start) + 2), pointer);
        }
        n -= octets;
    }
    assert_int_equal(n, 0);
}

/* MPA-7.1-01 MPA-7.1-05 MPA-7.1-10 MPA-7.1-11 MPA-7.1-13 MPA-5.2-01 MPA-7.1-15 MPA-8.1-03: MPA-S-seq11, -wrap, -small.
 */
static void streams(void **state)
{
    json_t *file = vectors_load("mpa"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "streams", i, entry)
        check_stream(entry);
    json_decref(file);
}

/* MPA-6-04 MPA-6.1-03 MPA-7.1-08 MPA-7.2-08 MPA-7.4-01 MPA-7.4-03 MPA-7.4-05 MPA-8.1-01 MPA-9-01 MPA-9-04 MPA-9-05
 * MPA-9-07 */
static void negative(void **state)
{
    json_t *file = vectors_load("mpa"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "negative", i, entry) {
        struct mpa_half half = {.pos = vector_number(entry, "stream_offset"),
                                .markers = vector_flag(entry, "markers_on")};
        const char *expect = vector_text(entry, "expect");
        size_t n = vector_hex(entry, "hex", out_buffer, BUFFER);
        int got;

        half.crc = true;
        got = verdict(&half, out_buffer, n);
        if (!strncmp(expect, "error 2", 7))
            assert_int_equal(got, -FAULT_CRC);
        else if (!strncmp(expect, "error 3", 7))
            assert_int_equal(got, -FAULT_MARKER);
        else
            assert_int_equal(got, strcmp(expect, "ok") ? 0 : (int)n);
    }
    json_decref(file);
}

/* M44-07, MPA-5.2-04, MPA-5.2-07, MPA-7.3.1-01, MPA-7.3.1-02, MPA-7.3.1-05, MPA-7.3.1-06, MPA-4-02, M44-06 */
static void mulpdu(void **state)
{
    json_t *file = vectors_load("mpa"), *entry, *limit = json_object_get(file, "mulpdu_limit_derivation");
    size_t i;

    (void)state;
    vectors_each(file, "mulpdu", i, entry) {
        uint32_t emss = (uint32_t)vector_number(entry, "emss");

        assert_int_equal(mpa_mulpdu(emss, true), vector_number(entry, "with_markers_clamped"));
        assert_int_equal(mpa_mulpdu(emss, false), vector_number(entry, "no_markers_clamped"));
    }
    assert_int_equal(MPA_ULPDU_MAX, vector_number(limit, "rounded_down_to_128"));
    for (uint32_t emss = 0; emss < 134; emss++)
        assert_int_equal(mpa_mulpdu(emss, false), MPA_MULPDU_MIN);
    assert_int_equal(mpa_mulpdu(UINT32_MAX, true), MPA_ULPDU_MAX);
    json_decref(file);
}

/* MPA-7.3.1-03 MPA-3.2-10: whatever the phase, an FPDU of MULPDU octets fits EMSS, and the worst phase leaves room for
 * less than a marker and a word. (The formula counts a marker too many where EMSS is just above a multiple of 512.) */
static void mulpdu_fits_in_every_phase(void **state)
{
    (void)state;
    for (uint32_t emss = 140; emss <= 9000; emss++) {
        uint32_t with = mpa_mulpdu(emss, true), without = mpa_mulpdu(emss, false);
        struct mpa_half half = {.markers = false};
        size_t longest = 0;

        assert_int_equal(mpa_fpdu_octets(&half, without), emss - emss % 4);
        assert_int_equal(with % 4, 2);
        half.markers = true;
        for (half.pos = 0; half.pos < MPA_INTERVAL; half.pos += 4) {
            size_t octets = mpa_fpdu_octets(&half, with);

            if (octets > longest)
                longest = octets;
        }
        assert_true(longest <= emss && longest + 8 > emss);
    }
}

/* MPA-7.1-10 MPA-7.1-11 */
static void marker_positions(void **state)
{
    json_t *file = vectors_load("mpa"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "marker_positions", i, entry) {
        uint32_t start = (uint32_t)vector_number(entry, "seq_start"), seq = (uint32_t)vector_number(entry, "seq");

        assert_int_equal((uint32_t)(start + mpa_next_marker((uint32_t)(seq - start))),
                         vector_number(entry, "first_marker_at_or_after"));
    }
    json_decref(file);
}

/* MPA-7.1-02 MPA-7.1-04 MPA-7.1-05 MPA-7.1-07 MPA-7.1-08 */
static void fpdu_from_marker(void **state)
{
    json_t *file = vectors_load("mpa"), *entry;
    size_t i;

    (void)state;
    vectors_each(file, "fpdu_from_marker", i, entry) {
        uint64_t marker = vector_number(entry, "marker_seq");

        assert_int_equal((uint32_t)mpa_header_of(marker, (uint16_t)vector_number(entry, "fpduptr")),
                         vector_number(entry, "header_seq"));
    }
    json_decref(file);
}

/* --- what the vectors do not say ----------------------------------------------------------------------------- */

static void repair_crc(uint8_t *fpdu, size_t n)
{
    put32le(fpdu + n - MPA_CRC, crc32c(0, fpdu, n - MPA_CRC));
}

/* M44-01, and the other reading of mpa.txt 7.1: pointers that count from the leading marker are taken too, others are
 * not. */
static void both_pointer_bases(void **state)
{
    struct mpa_half half = {.pos = 1024, .markers = true, .crc = true};
    size_t n;

    (void)state;
    fill(ulpdu_buffer, 1442, 0);
    for (unsigned add = 0; add <= 16; add += 4) {
        n = encode(&half, ulpdu_buffer, 1442);
        for (size_t at = 512; at < n; at += 512)
            put16(out_buffer + at + 2, (uint16_t)(get16(out_buffer + at + 2) + add));
        repair_crc(out_buffer, n);
        if (add <= 4)
            check_decodes(&half, out_buffer, n, ulpdu_buffer, 1442);
        else
            assert_int_equal(verdict(&half, out_buffer, n), -FAULT_MARKER);
    }
}

/* MPA-7.2-07 MPA-9-05 MPA-9-07: each marker of an FPDU is checked, with the CRC and without; the CRC speaks first. */
static void every_marker_is_checked(void **state)
{
    struct mpa_half half = {.pos = 100, .markers = true, .crc = true}, unchecked = {.pos = 100, .markers = true};
    size_t n;

    (void)state;
    fill(ulpdu_buffer, 5000, 0);
    for (size_t at = 412; at < 5000; at += 512) {
        for (unsigned bit = 2; bit < 16; bit++) {
            n = encode(&half, ulpdu_buffer, 5000);
            put16(out_buffer + at + 2, (uint16_t)(get16(out_buffer + at + 2) ^ 1U << bit));
            assert_int_equal(verdict(&half, out_buffer, n), -FAULT_CRC);
            assert_int_equal(verdict(&unchecked, out_buffer, n), -FAULT_MARKER);
            repair_crc(out_buffer, n);
            assert_int_equal(verdict(&half, out_buffer, n), -FAULT_MARKER);
        }
        n = encode(&half, ulpdu_buffer, 5000);
        put16(out_buffer + at, 0xffff);
        put16(out_buffer + at + 2, get16(out_buffer + at + 2) | 3);
        repair_crc(out_buffer, n);
        check_decodes(&half, out_buffer, n, ulpdu_buffer, 5000);
    }
}

/* MPA-5.2-05 MPA-5.2-06 MPA-5.2-07, and an FPDU that claims more than any sender may: known as soon as the length is.
 */
static void longest(void **state)
{
    static uint8_t fpdu[BUFFER];
    size_t need = 0;
    struct span got;

    (void)state;
    for (unsigned markers = 0; markers < 2; markers++) {
        struct mpa_half half = {.pos = 4096, .markers = markers, .crc = true};
        uint8_t *length = fpdu + (markers ? MPA_MARKER : 0);
        size_t head = (size_t)(length - fpdu) + MPA_LENGTH;

        memset(fpdu, 0, sizeof(fpdu));
        put16(length, MPA_ULPDU_MAX);
        assert_int_equal(mpa_decode(&half, fpdu, head, &got, &need), 0);
        assert_int_equal(need, mpa_fpdu_octets(&half, MPA_ULPDU_MAX));
        put16(length, MPA_ULPDU_MAX + 1);
        assert_int_equal(mpa_decode(&half, fpdu, head, &got, &need), -FAULT_LENGTH);
        put16(length, 0xffff);
        assert_int_equal(mpa_decode(&half, fpdu, sizeof(fpdu), &got, &need), -FAULT_LENGTH);
        assert_int_equal(mpa_decode(&half, fpdu, head - 1, &got, &need), 0);
    }
}

/* MPA-7.4-05 MPA-7.4.1-01: as long as octets are missing nothing happens, and `need` is right: exact once the length is
 * there. */
static void need_is_exact(void **state)
{
    (void)state;
    for (uint64_t pos = 0; pos < MPA_INTERVAL; pos += 4) {
        for (size_t length = 0; length < 1200; length += 37) {
            struct mpa_half half = {.pos = pos, .markers = true, .crc = true};
            size_t n, known = (pos ? 0 : MPA_MARKER) + MPA_LENGTH;

            fill(ulpdu_buffer, length, 9);
            n = encode(&half, ulpdu_buffer, length);
            memcpy(wire_buffer, out_buffer, n);
            for (size_t k = 0; k < n; k += k < 16 || k + 16 > n ? 1 : 13) {
                size_t need = 0;
                struct span got;

                assert_int_equal(mpa_decode(&half, wire_buffer, k, &got, &need), 0);
                assert_true(need > k && need <= n);
                assert_true(k < known || need == n);
            }
            assert_memory_equal(wire_buffer, out_buffer, n);
            check_decodes(&half, wire_buffer, n, ulpdu_buffer, length);
        }
    }
}

/* RFC 5044 4.3: where the FPDU of the first marker begins, if it does within these octets; a pointer that leads before
 * the stream, or before them, is none. */
static void finds_by_a_marker(void **state)
{
    enum { POS = 8, OCTETS = 600, MARKER = 512 };
    static const struct {
        uint16_t pointer;
        size_t found;
    } rows[] = {
        {8, MARKER - POS - 8},    {0, MARKER - POS}, /* the marker is in front of the header */
        {MARKER - POS, 0},                           /* all of it */
        {MARKER, OCTETS},                            /* begins before these octets */
        {MARKER + 4, OCTETS},                        /* before the stream */
        {UINT16_MAX - 3, OCTETS},                    /* far before it */
    };
    struct mpa_half half = {.markers = true, .pos = POS};
    uint8_t octets[OCTETS] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        put16(octets + MARKER - POS + 2, rows[i].pointer);
        assert_int_equal(mpa_find(&half, octets, OCTETS), rows[i].found);
    }
    put16(octets + MARKER - POS + 2, 8);
    assert_int_equal(mpa_find(&half, octets, MARKER - POS + MPA_MARKER - 1), MARKER - POS + MPA_MARKER - 1);
    assert_int_equal(mpa_find(&half, octets, MARKER - POS + MPA_MARKER), MARKER - POS - 8);
    half.markers = false;
    assert_int_equal(mpa_find(&half, octets, OCTETS), OCTETS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_by_a_marker),
        cmocka_unit_test(fpdus_both_ways),
        cmocka_unit_test(marker_between),
        cmocka_unit_test(streams),
        cmocka_unit_test(negative),
        cmocka_unit_test(mulpdu),
        cmocka_unit_test(mulpdu_fits_in_every_phase),
        cmocka_unit_test(marker_positions),
        cmocka_unit_test(fpdu_from_marker),
        cmocka_unit_test(both_pointer_bases),
        cmocka_unit_test(every_marker_is_checked),
        cmocka_unit_test(longest),
        cmocka_unit_test(need_is_exact),
        cmocka_unit_test(ready_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
