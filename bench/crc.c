/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc.c - the speed of each variant of both CRCs, reading and copying, compared with memcpy; one fact a line. */
#define _POSIX_C_SOURCE 200809L

#include "base/crc.h"
#include "base/crc32c.h"
#include "base/crcseg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 7, FACTS_MAX = 80, PIECE = 65536, COLD = 256 << 20, WARM_BYTES = 16 << 20 };

/* One line of output: a variant of a CRC, or memcpy if `variant` is NULL. */
struct fact {
    const char *crc;
    const struct crc_poly *poly;
    const struct crc_variant *variant;
    bool copies;
    size_t size;
    bool cold;
    double gb_per_s[ROUNDS];
};

static struct fact facts[FACTS_MAX];
static unsigned fact_count;
static uint8_t *from, *to;

/* Called through a volatile pointer, so that the compiler cannot remove the copy, which is not read. */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static volatile uint32_t sink;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work(const struct fact *f, size_t at)
{
    if (f->variant)
        sink = f->variant->run(f->poly, ~0u, f->copies ? to + at : NULL, from + at, f->size);
    else
        copy(to + at, from + at, f->size);
}

/* Warm: the same octets again and again. Cold: each octet once, in far more memory than any cache holds. */
static double measure(const struct fact *f)
{
    size_t bytes = f->cold ? COLD : WARM_BYTES / f->size * f->size, done;
    double start;

    if (!f->cold)
        work(f, 0);
    start = now_s();
    for (done = 0; done < bytes; done += f->size)
        work(f, f->cold ? done : 0);
    return 1e-9 * (double)bytes / (now_s() - start);
}

static void add(const char *crc, const struct crc_poly *poly, const struct crc_variant *v, bool copies)
{
    static const size_t sizes[] = {64, 1404, PIECE, PIECE};
    size_t i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (fact_count == FACTS_MAX)
            abort();
        facts[fact_count++] =
            (struct fact){.crc = crc, .poly = poly, .variant = v, .copies = copies, .size = sizes[i], .cold = i == 3};
    }
}

static void add_variants(const char *crc, const struct crc_poly *poly, const struct crc_variant *v)
{
    for (; v->name; v++) {
        if (!crc_variant_runs(v))
            continue;
        add(crc, poly, v, false);
        add(crc, poly, v, true);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print(struct fact *f)
{
    qsort(f->gb_per_s, ROUNDS, sizeof(f->gb_per_s[0]), ascending);
    printf("%s %s %s %zu %s %.1f GB/s (%.1f-%.1f)\n", f->crc, f->variant ? f->variant->name : "libc",
           f->copies ? "copy" : "read", f->size, f->cold ? "cold" : "warm", f->gb_per_s[ROUNDS / 2], f->gb_per_s[0],
           f->gb_per_s[ROUNDS - 1]);
}

int main(void)
{
    unsigned i, round;

    from = aligned_alloc(4096, COLD);
    to = aligned_alloc(4096, COLD);
    if (!from || !to) {
        fprintf(stderr, "crc: cannot allocate twice %d octets\n", COLD);
        return 1;
    }
    memset(from, 0x5a, COLD);
    memset(to, 0, COLD);

    add("memcpy", NULL, NULL, true);
    add_variants("crc32c", &crc32c_poly, crc32c_variants);
    add_variants("crcseg", &crcseg_poly, crcseg_variants);

    /* Measure everything in each round, so that a disturbance of the machine affects all facts alike. */
    for (round = 0; round < ROUNDS; round++)
        for (i = 0; i < fact_count; i++)
            facts[i].gb_per_s[round] = measure(&facts[i]);

    printf("crc32c uses %s, crcseg uses %s\n", crc32c_name(), crcseg_name());
    for (i = 0; i < fact_count; i++)
        print(&facts[i]);
    free(from);
    free(to);
    return 0;
}
