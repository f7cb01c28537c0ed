/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* inflight.c - a heap by arrival time. */
#include "tests/lib/inflight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static bool before(const struct inflight_packet *a, const struct inflight_packet *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->number < b->number);
}

void inflight_push(struct inflight *f, struct inflight_packet p)
{
    uint32_t i = f->count++;

    p.number = f->number++;
    if (f->count > f->space) {
        f->space = f->space ? 2 * f->space : 64;
        f->heap = realloc(f->heap, f->space * sizeof(*f->heap));
        assert_non_null(f->heap);
    }
    for (; i && before(&p, &f->heap[(i - 1) / 2]); i = (i - 1) / 2)
        f->heap[i] = f->heap[(i - 1) / 2];
    f->heap[i] = p;
}

struct inflight_packet inflight_pop(struct inflight *f)
{
    struct inflight_packet first = f->heap[0], last = f->heap[--f->count];
    uint32_t i = 0, child;

    for (; (child = 2 * i + 1) < f->count; i = child) {
        if (child + 1 < f->count && before(&f->heap[child + 1], &f->heap[child]))
            child++;
        if (!before(&f->heap[child], &last))
            break;
        f->heap[i] = f->heap[child];
    }
    if (f->count)
        f->heap[i] = last;
    return first;
}

uint64_t inflight_next_us(const struct inflight *f)
{
    return f->count ? f->heap[0].at_us : UINT64_MAX;
}

void inflight_fini(struct inflight *f)
{
    while (f->count)
        free(f->heap[--f->count].octets);
    free(f->heap);
    f->heap = NULL;
}
