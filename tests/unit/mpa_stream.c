/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa_stream.c - records of every size at every place of a stream, however TCP cuts it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/lib/rng.h"
#include "wire/mpa.h"

enum { BUFFER = 1 << 17 };

static uint8_t ulpdu_buffer[BUFFER], wire_buffer[BUFFER], out_buffer[BUFFER];

/* `k` numbers the record of a stream. */
static void fill(uint8_t *p, size_t n, unsigned k)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(k + i * 11 + (i >> 8));
}

/* Decodes a copy, as decoding closes it up. */
static void check_decodes(const struct mpa_half *half, const uint8_t *fpdu, size_t n, size_t length)
{
    struct span got;
    size_t need = 0;

    memcpy(wire_buffer, fpdu, n);
    assert_int_equal(mpa_decode(half, wire_buffer, n, &got, &need), n);
    assert_int_equal(got.length, length);
    assert_memory_equal(got.at, ulpdu_buffer, length);
}

/* The encoder once more and as simply as can be, octet after octet. */
static size_t simple_encode(uint64_t pos, bool markers, const uint8_t *ulpdu, size_t n, uint8_t *out)
{
    static uint8_t body[BUFFER];
    size_t octets = 2 + n + (-(2 + n) & 3), at = 0, i;
    uint64_t header = pos + (markers && pos % 512 == 0 ? 4 : 0);

    memset(body, 0, octets);
    put16(body, (uint16_t)n);
    memcpy(body + 2, ulpdu, n);
    for (i = 0; i <= octets; i++) {
        if (markers && (pos + at) % 512 == 0) {
            put16(put16(out + at, 0), pos + at < header ? 0 : (uint16_t)(pos + at - header));
            at += 4;
        }
        if (i < octets)
            out[at++] = body[i];
    }
    put32le(out + at, crc32c(0, out, at));
    return at + 4;
}

/* MPA-2-02 MPA-5.2-01 MPA-7.1-15 MPA-7.3-01 MPA-7.3-08: random records, sizes, phases (position 2^32 among them),
 * pieces. */
static void random_records(void **state)
{
    struct rng rng = {20021025};

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        struct mpa_half half = {.markers = rng_one_in(&rng, 2), .crc = true};
        uint32_t length = rng_below(&rng, round % 100 ? 1500 : MPA_ULPDU_MAX + 1), cut = rng_below(&rng, length + 1);
        size_t n;
        static uint8_t want[BUFFER];
        struct span piece[3];

        half.pos = rng_below(&rng, 4096) * 4 + (round % 3 ? (1ULL << 32) - 8192 : 0);
        rng_fill(&rng, ulpdu_buffer, length);
        piece[0] = (struct span){ulpdu_buffer, cut};
        piece[1] = (struct span){ulpdu_buffer + cut, (length - cut) / 2};
        piece[2] = (struct span){piece[1].at + piece[1].length, length - cut - piece[1].length};
        n = mpa_encode(&half, out_buffer, piece, 3);
        assert_int_equal(n, simple_encode(half.pos, half.markers, ulpdu_buffer, length, want));
        assert_memory_equal(out_buffer, want, n);
        check_decodes(&half, out_buffer, n, length);
    }
}

/* Reads a stream of the records `k` in turns of `step` octets (0: random), as a socket would hand them out. */
static void feed(const uint8_t *stream, size_t n, size_t step, const uint32_t *length, unsigned records)
{
    struct mpa_half half = {.markers = true, .crc = true};
    size_t have = 0, at = 0, need = 0;
    struct rng rng = {n};
    unsigned k = 0;
    struct span got;

    while (k < records) {
        size_t now = step ? step : rng_below(&rng, 1500);
        int eaten;

        now = now < n - at ? now : n - at;
        memcpy(wire_buffer + have, stream + at, now);
        have += now;
        at += now;
        while ((eaten = mpa_decode(&half, wire_buffer, have, &got, &need)) > 0) {
            assert_int_equal(got.length, length[k]);
            fill(ulpdu_buffer, length[k], k);
            assert_memory_equal(got.at, ulpdu_buffer, length[k]);
            half.pos += (unsigned)eaten;
            have -= (unsigned)eaten;
            memmove(wire_buffer, wire_buffer + eaten, have);
            k++;
        }
        assert_int_equal(eaten, 0);
        assert_true(at < n || k == records);
    }
    assert_int_equal(have, 0);
}

/* MPA-7.3-06, MPA-2-01, MPA-3.1-01, MPA-7.4.1-01, MPA-7.4.1-02, MPA-7.4.1-03, M44-08: how TCP cut the stream does not
 * matter. */
static void cuts(void **state)
{
    static const size_t steps[] = {1, 3, 511, 513, 65536, 0};
    static const uint32_t length[] = {100, 300, 700, 1, 128, 5, 1442, 30, 27, 26, 6, 9000, 0, 20000, 508, 504};
    enum { RECORDS = sizeof(length) / sizeof(length[0]) };
    static uint8_t stream[BUFFER];
    struct mpa_half half = {.markers = true, .crc = true};
    size_t n = 0;

    (void)state;
    for (unsigned k = 0; k < RECORDS; k++) {
        fill(ulpdu_buffer, length[k], k);
        half.pos = n;
        n += mpa_encode(&half, stream + n, &(struct span){ulpdu_buffer, length[k]}, 1);
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        feed(stream, n, steps[i], length, RECORDS);
}

/* MPA-3.1-03: a payload full of what looks like markers, headers and whole FPDUs is payload. */
static void fake_markers(void **state)
{
    (void)state;
    for (uint64_t pos = 0; pos < MPA_INTERVAL; pos += 4) {
        struct mpa_half half = {.pos = pos, .markers = true, .crc = true};
        size_t n;

        for (size_t i = 0; i + 16 <= 4096; i += 16)
            put32le(put32(put32(put32(ulpdu_buffer + i, 0), (uint32_t)i + 2), 0x00040000), 0xc74b6748);
        n = mpa_encode(&half, out_buffer, &(struct span){ulpdu_buffer, 4096}, 1);
        check_decodes(&half, out_buffer, n, 4096);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_records),
        cmocka_unit_test(cuts),
        cmocka_unit_test(fake_markers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
