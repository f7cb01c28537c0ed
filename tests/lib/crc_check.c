/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc_check.c - compares every variant of a CRC with a bitwise one. */
#define _DEFAULT_SOURCE

#include "tests/lib/crc_check.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum {
    LENGTHS = 601,
    ALIGNMENTS = 16,
    GUARD = 64,
    FIELD = 65536, /* a multiple of every page size that we know */
    BIG = 1 << 20,
    THREADS = 4,
    SPLITS = 2000
};

uint32_t crc_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

void crc_fill(uint8_t *p, size_t n, uint32_t seed)
{
    for (; n > 0; n--)
        *p++ = (uint8_t)(crc_random(&seed) >> 24);
}

/* Returns the register multiplied by x, mod P. */
static uint32_t times_x(const struct crc_poly *poly, uint32_t reg)
{
    return reg & 1 ? reg >> 1 ^ poly->reflected : reg >> 1;
}

uint32_t crc_power_of_x(const struct crc_poly *poly, unsigned k)
{
    uint32_t reg = 0x80000000; /* x^0 */

    for (; k > 0; k--)
        reg = times_x(poly, reg);
    return reg;
}

static uint32_t slow(const struct crc_poly *poly, uint32_t crc, const uint8_t *p, size_t n)
{
    uint32_t reg = ~crc;
    int bit;

    for (; n > 0; n--) {
        reg ^= *p++;
        for (bit = 0; bit < 8; bit++)
            reg = times_x(poly, reg);
    }
    return ~reg;
}

static uint32_t run(const struct crc_subject *s, const struct crc_variant *v, uint32_t crc, uint8_t *dst,
                    const uint8_t *src, size_t n)
{
    return ~v->run(s->poly, ~crc, dst, src, n);
}

/* Maps FIELD octets between two inaccessible pages. */
static uint8_t *fenced(void)
{
    uint8_t *p = mmap(NULL, 3 * FIELD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(mprotect(p + FIELD, FIELD, PROT_READ | PROT_WRITE), 0);
    return p + FIELD;
}

static void unfence(uint8_t *p)
{
    assert_int_equal(munmap(p - FIELD, 3 * FIELD), 0);
}

struct first_call {
    const struct crc_subject *s;
    uint32_t crc;
};

static void *call_first(void *arg)
{
    struct first_call *call = arg;

    call->crc = call->s->crc(0, "123456789", 9);
    return NULL;
}

/* Must run before anything else has used the CRC. Tells more with a thread sanitizer. */
void crc_first_calls_together(void **state)
{
    const struct crc_subject *s = *state;
    struct first_call calls[THREADS];
    pthread_t threads[THREADS];
    int i;

    for (i = 0; i < THREADS; i++) {
        calls[i].s = s;
        assert_int_equal(pthread_create(&threads[i], NULL, call_first, &calls[i]), 0);
    }
    for (i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(calls[i].crc, slow(s->poly, 0, (const uint8_t *)"123456789", 9));
    }
}

void crc_constants(void **state)
{
    static const unsigned bits[FOLD_LAST] = {
        [FOLD_2048] = 2048, [FOLD_1024] = 1024, [FOLD_512] = 512, [FOLD_384] = 384, [FOLD_256] = 256, [FOLD_128] = 128};
    const struct crc_subject *s = *state;
    uint64_t product = 0;
    unsigned i;

    for (i = 0; i < FOLD_LAST; i++) {
        assert_int_equal(s->poly->fold[i][0], crc_power_of_x(s->poly, bits[i] + 31));
        assert_int_equal(s->poly->fold[i][1], crc_power_of_x(s->poly, bits[i] - 33));
    }
    assert_int_equal(s->poly->fold[FOLD_LAST][0], 0);
    assert_int_equal(s->poly->fold[FOLD_LAST][1], 0);

    assert_int_equal(s->poly->modulus, (uint64_t)s->poly->reflected << 1 | 1);
    for (i = 0; i < 64; i++)
        product ^= s->poly->inverse >> i & 1 ? s->poly->modulus << i : 0;
    assert_int_equal(product, 1);
}

void crc_tables(void **state)
{
    const struct crc_subject *s = *state;
    unsigned rows, i, bit;

    for (i = 0; i < 256; i++) {
        uint32_t reg = i;

        for (rows = 0; rows < 16; rows++) {
            for (bit = 0; bit < 8; bit++)
                reg = times_x(s->poly, reg);
            assert_int_equal(s->poly->table[rows][i], reg);
        }
    }
}

void crc_calls_use_first_variant_that_runs(void **state)
{
    const struct crc_subject *s = *state;
    const struct crc_variant *v = s->variants;
    uint8_t octets[1000], to[1000];
    uint32_t expected;

    while (!crc_variant_runs(v))
        v++;
    assert_string_equal(s->name(), v->name);

    crc_fill(octets, sizeof(octets), 5);
    expected = slow(s->poly, 0x12345678, octets, sizeof(octets));
    assert_int_equal(s->crc(0x12345678, octets, sizeof(octets)), expected);
    assert_int_equal(s->copy(0x12345678, to, octets, sizeof(octets)), expected);
    assert_memory_equal(to, octets, sizeof(octets));
    assert_int_equal(s->crc(0x12345678, NULL, 0), 0x12345678);
    assert_int_equal(s->copy(0x12345678, NULL, NULL, 0), 0x12345678);
}

void crc_every_length_and_alignment(void **state)
{
    const struct crc_subject *s = *state;
    uint8_t octets[LENGTHS + ALIGNMENTS];
    const struct crc_variant *v;
    size_t n, align;

    crc_fill(octets, sizeof(octets), 7);
    for (align = 0; align < ALIGNMENTS; align++) {
        uint32_t expected = 0xfedcba98;

        for (n = 0; n < LENGTHS; n++) {
            for (v = s->variants; v->name; v++)
                if (crc_variant_runs(v) && run(s, v, 0xfedcba98, NULL, octets + align, n) != expected)
                    fail_msg("%s: wrong for %zu octets at alignment %zu", v->name, n, align);
            expected = slow(s->poly, expected, octets + align + n, 1);
        }
    }
}

/* All alignments of source and destination against each other; the octets around the destination must not change. */
void crc_copy_at_every_length_and_alignment(void **state)
{
    const struct crc_subject *s = *state;
    uint8_t octets[LENGTHS + ALIGNMENTS], to[GUARD + LENGTHS + ALIGNMENTS + GUARD], like[sizeof(to)];
    const struct crc_variant *v;
    size_t n, i;

    crc_fill(octets, sizeof(octets), 11);
    memset(like, 0xa5, sizeof(like));
    for (n = 0; n < LENGTHS; n++) {
        for (i = 0; i < ALIGNMENTS; i++) {
            const uint8_t *src = octets + (n + 3 * i) % ALIGNMENTS;
            uint32_t expected = slow(s->poly, 1, src, n);

            memcpy(like + GUARD + i, src, n);
            for (v = s->variants; v->name; v++) {
                if (!crc_variant_runs(v))
                    continue;
                memset(to, 0xa5, sizeof(to));
                if (run(s, v, 1, to + GUARD + i, src, n) != expected)
                    fail_msg("%s: wrong for a copy of %zu octets to alignment %zu", v->name, n, i);
                if (memcmp(to, like, sizeof(to)) != 0)
                    fail_msg("%s: bad copy of %zu octets to alignment %zu", v->name, n, i);
            }
            memset(like + GUARD + i, 0xa5, n);
        }
    }
}

/* Puts both ends of source and destination next to memory that faults when it is accessed. */
void crc_nothing_outside_is_touched(void **state)
{
    const struct crc_subject *s = *state;
    uint8_t *src = fenced(), *dst = fenced();
    const struct crc_variant *v;
    size_t n;

    crc_fill(src, FIELD, 13);
    for (n = 0; n < LENGTHS; n++) {
        uint8_t *src_end = src + FIELD - n, *dst_end = dst + FIELD - n;
        uint32_t low = slow(s->poly, 0, src, n), high = slow(s->poly, 0, src_end, n);

        for (v = s->variants; v->name; v++) {
            if (!crc_variant_runs(v))
                continue;
            assert_int_equal(run(s, v, 0, NULL, src, n), low);
            assert_int_equal(run(s, v, 0, NULL, src_end, n), high);
            assert_int_equal(run(s, v, 0, dst_end, src, n), low);
            assert_int_equal(run(s, v, 0, dst, src_end, n), high);
        }
    }
    unfence(src);
    unfence(dst);
}

/* A thread sanitizer delays signals, so this test would never finish. */
#if defined(__SANITIZE_THREAD__)
#define SIGNALS_WAIT 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIGNALS_WAIT 1
#endif
#endif

#if defined(__x86_64__) && !defined(SIGNALS_WAIT)
static uint8_t restless[LENGTHS];

static void change_all(int sig)
{
    size_t i;

    (void)sig;
    for (i = 0; i < LENGTHS; i++)
        restless[i]++;
}

/* If the source changes meanwhile, the result must be the CRC of the octets at the destination. Here the whole source
 * changes after each instruction: the processor's trap flag makes every instruction raise SIGTRAP. */
void crc_source_may_change(void **state)
{
    static const size_t lengths[] = {1, 3, 4, 7, 8, 15, 16, 21, 31, 63, 64, 67, 100, 127, 191, 192, 257, 334, 600};
    const unsigned long long trap_flag = 0x100;
    const struct crc_subject *s = *state;
    struct sigaction change = {.sa_handler = change_all}, before;
    const struct crc_variant *v;
    uint8_t to[LENGTHS];
    size_t i;

    assert_int_equal(sigaction(SIGTRAP, &change, &before), 0);
    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const size_t n = lengths[i];

        for (v = s->variants; v->name; v++) {
            uint32_t crc;

            if (!crc_variant_runs(v))
                continue;
            __writeeflags(__readeflags() | trap_flag);
            crc = run(s, v, 0, to, restless, n);
            __writeeflags(__readeflags() & ~trap_flag);
            if (crc != slow(s->poly, 0, to, n))
                fail_msg("%s: of %zu octets some were read twice", v->name, n);
        }
    }
    assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
}
#else
void crc_source_may_change(void **state)
{
    (void)state;
    skip(); /* no way to single-step the code from inside */
}
#endif

/* Pieces of random lengths, read or copied, each by a random variant, give the same result as the whole. */
void crc_chaining(void **state)
{
    const struct crc_subject *s = *state;
    static uint8_t octets[65536], to[65536];
    const struct crc_variant *runs[8];
    const struct crc_variant *v;
    uint32_t seed = 17, count = 0;
    int i;

    for (v = s->variants; v->name; v++)
        if (crc_variant_runs(v) && count < 8)
            runs[count++] = v;
    crc_fill(octets, sizeof(octets), 19);
    for (i = 0; i < SPLITS; i++) {
        size_t n = crc_random(&seed) % 4096, start = crc_random(&seed) % (sizeof(octets) - n), at, piece;
        uint32_t crc = 0;

        for (at = start; at < start + n; at += piece) {
            piece = 1 + crc_random(&seed) % (start + n - at);
            v = runs[crc_random(&seed) % count];
            crc = run(s, v, crc, crc_random(&seed) & 0x10000 ? to + at : NULL, octets + at, piece);
        }
        if (crc != slow(s->poly, 0, octets + start, n))
            fail_msg("round %d of seed 17: %zu octets in pieces differ", i, n);
    }
}

void crc_big(void **state)
{
    const struct crc_subject *s = *state;
    uint8_t *octets = malloc(BIG), *to = malloc(BIG);
    const struct crc_variant *v;
    uint32_t expected;

    assert_non_null(octets);
    assert_non_null(to);
    crc_fill(octets, BIG, 23);
    expected = slow(s->poly, 0, octets, BIG);
    for (v = s->variants; v->name; v++) {
        if (!crc_variant_runs(v))
            continue;
        assert_int_equal(run(s, v, 0, NULL, octets, BIG), expected);
        memset(to, 0, BIG);
        assert_int_equal(run(s, v, 0, to, octets, BIG), expected);
        assert_memory_equal(to, octets, BIG);
    }
    free(octets);
    free(to);
}
