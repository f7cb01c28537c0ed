/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa_crc.c - what the CRC of an FPDU finds, and what it is like to do without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "core/fault.h"
#include "tests/lib/rng.h"
#include "wire/mpa.h"

static uint8_t ulpdu_buffer[1024], out_buffer[2048], wire_buffer[2048];

static void fill(size_t n)
{
    for (size_t i = 0; i < n; i++)
        ulpdu_buffer[i] = (uint8_t)(i * 11 + 1);
}

static size_t encode(const struct mpa_half *half, size_t n)
{
    fill(n);
    return mpa_encode(half, out_buffer, &(struct span){ulpdu_buffer, (uint32_t)n}, 1);
}

/* Decodes a copy, as decoding closes it up. */
static int decode(const struct mpa_half *half, const uint8_t *fpdu, size_t n, struct span *ulpdu)
{
    size_t need = 0;

    memcpy(wire_buffer, fpdu, n);
    return mpa_decode(half, wire_buffer, n, ulpdu, &need);
}

/* M44-05: without CRC the field exists, is sent as zero, and is ignored by the receiver. */
static void crc_off(void **state)
{
    struct mpa_half half = {.pos = 512, .markers = true};
    struct span got;
    size_t n;

    (void)state;
    n = encode(&half, 700);
    assert_int_equal(get32(out_buffer + n - MPA_CRC), 0);
    put32(out_buffer + n - MPA_CRC, 0xdeadbeef);
    out_buffer[20] ^= 1;
    ulpdu_buffer[20 - 6] ^= 1;
    assert_int_equal(decode(&half, out_buffer, n, &got), n);
    assert_int_equal(got.length, 700);
    assert_memory_equal(got.at, ulpdu_buffer, 700);
}

static void flip(uint8_t *p, size_t bit)
{
    p[bit / 8] ^= (uint8_t)(1U << bit % 8);
}

/* A wrong length is found by itself or makes the receiver wait; whatever it is, no ULPDU comes out. */
static bool detected(const struct mpa_half *half, const uint8_t *fpdu, size_t n)
{
    struct span ulpdu;

    return decode(half, fpdu, n, &ulpdu) <= 0;
}

/* MPA-3.2-09 MPA-10.1-02: all 1, 2 and 3 bit errors of a short FPDU, the length and the CRC themselves included. */
static void crc_finds_three_bits(void **state)
{
    struct mpa_half half = {.pos = 4, .markers = true, .crc = true};
    uint8_t fpdu[64];
    size_t n, bits;

    (void)state;
    n = encode(&half, 18);
    bits = 8 * n;
    memcpy(fpdu, out_buffer, n);
    for (size_t a = 0; a < bits; a++) {
        flip(fpdu, a);
        assert_true(detected(&half, fpdu, n));
        for (size_t b = a + 1; b < bits; b++) {
            flip(fpdu, b);
            assert_true(detected(&half, fpdu, n));
            for (size_t c = b + 1; c < bits; c++) {
                flip(fpdu, c);
                if (!detected(&half, fpdu, n))
                    fail_msg("bits %zu, %zu, %zu went unseen", a, b, c);
                flip(fpdu, c);
            }
            flip(fpdu, b);
        }
        flip(fpdu, a);
    }
}

/* MPA-3.2-09: bursts of up to 32 bits, in the order in which the CRC takes them: octet by octet, low bit first. */
static void crc_finds_bursts(void **state)
{
    struct mpa_half half = {.pos = 480, .markers = true, .crc = true};
    struct rng rng = {32};
    uint8_t fpdu[256];
    size_t n;

    (void)state;
    n = encode(&half, 100);
    for (size_t at = 0; at < 8 * n; at++) {
        for (unsigned length = 1; length <= 32 && at + length <= 8 * n; length++) {
            for (unsigned sample = 0; sample < 8; sample++) {
                uint64_t inner = sample ? rng_next(&rng) : ~0ULL;

                memcpy(fpdu, out_buffer, n);
                for (unsigned bit = 0; bit < length; bit++)
                    if (bit == 0 || bit == length - 1 || inner >> bit & 1)
                        flip(fpdu, at + bit);
                if (!detected(&half, fpdu, n))
                    fail_msg("a burst of %u bits at %zu went unseen", length, at);
            }
        }
    }
}

/* MPA-7.4-02 MPA-7.4-04 (a chain of lengths): the FPDU behind a bad one is never reached, as its place is not known. */
static void bad_fpdu_stops_the_chain(void **state)
{
    struct mpa_half half = {.pos = 0, .markers = true, .crc = true};
    struct span got;
    size_t n, need = 0;

    (void)state;
    n = encode(&half, 40);
    memcpy(wire_buffer, out_buffer, n);
    wire_buffer[10] ^= 0x20;
    half.pos = n;
    n += mpa_encode(&half, wire_buffer + n, &(struct span){ulpdu_buffer, 40}, 1);
    half.pos = 0;
    assert_int_equal(mpa_decode(&half, wire_buffer, n, &got, &need), -FAULT_CRC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_off),
        cmocka_unit_test(crc_finds_three_bits),
        cmocka_unit_test(crc_finds_bursts),
        cmocka_unit_test(bad_fpdu_stops_the_chain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
