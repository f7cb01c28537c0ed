/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.c - regions between guard octets, and the allowed value of each octet. */
#include "tests/sim/lib/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 512, GUARD_OCTET = 0xa5, TRIES = 6 };

static uint8_t *octets_of(const struct region *r)
{
    return r->buffer + GUARD;
}

static void enter(struct region *r, struct mr_table *table, struct rng *rng)
{
    uint32_t slots = table->slots->count;

    r->mr.valid = true;
    if (!mr_table_has_space(table))
        free(mr_table_move(table, calloc(1, mr_slots_size(slots)), slots));
    while (!mr_insert(table, &r->mr, (uint32_t)rng_next(rng)))
        ;
}

void region_init(struct region *r, struct mr_table *table, struct pd *pd, uint32_t length, unsigned access,
                 struct rng *rng)
{
    *r = (struct region){.mr = {.pd = pd, .length = length, .access = access}};
    r->buffer = malloc(2 * (size_t)GUARD + length);
    r->shadow = malloc(length + 1);
    assert(r->buffer && r->shadow);
    memset(r->buffer, GUARD_OCTET, 2 * (size_t)GUARD + length);
    rng_fill(rng, octets_of(r), length);
    memcpy(r->shadow, octets_of(r), length);
    r->mr.base = octets_of(r);
    r->mr.start = access & RDDP_ACCESS_ZERO_BASED ? 0 : (uint64_t)(uintptr_t)r->mr.base;
    enter(r, table, rng);
}

void region_fini(struct region *r)
{
    free(r->buffer);
    free(r->shadow);
}

void region_renew(struct region *r, struct mr_table *table, struct rng *rng)
{
    mr_remove(table, &r->mr);
    r->doomed = false;
    enter(r, table, rng);
}

void region_freeze(struct region *r)
{
    memcpy(r->shadow, octets_of(r), r->mr.length);
    for (struct area *a = r->areas; a; a = a->next)
        a->use = AREA_SOURCE;
}

static bool is_guard(const uint8_t *p)
{
    for (int i = 0; i < GUARD; i++)
        if (p[i] != GUARD_OCTET)
            return false;
    return true;
}

/* May octet `at` have its value, although that has changed? */
static bool is_asked_for(const struct region *r, uint32_t at)
{
    for (const struct area *a = r->areas; a; a = a->next) {
        if (at < a->at || at - a->at >= a->length)
            continue;
        if (a->use == AREA_ANY)
            return true;
        if (a->use == AREA_TARGET && at - a->at < a->filled && a->octets[at - a->at] == octets_of(r)[at])
            return true;
    }
    return false;
}

const char *region_wrong(const struct region *r)
{
    static char text[80];

    if (!is_guard(r->buffer))
        return "an octet in front of a region was touched";
    if (!is_guard(octets_of(r) + r->mr.length))
        return "an octet behind a region was touched";
    if (r->hot || !memcmp(octets_of(r), r->shadow, r->mr.length))
        return NULL;
    for (uint32_t i = 0; i < r->mr.length; i++) {
        if (octets_of(r)[i] == r->shadow[i] || is_asked_for(r, i))
            continue;
        snprintf(text, sizeof(text), "octet %u of a region of %u is neither old nor new", i, (unsigned)r->mr.length);
        return text;
    }
    return NULL;
}

/* --- areas --------------------------------------------------------------------------------------------------- */

static bool overlap(const struct area *a, const struct area *b)
{
    return a->at < b->at + b->length && b->at < a->at + a->length;
}

static bool is_free(const struct area *a)
{
    for (const struct area *b = a->region->areas; b; b = b->next)
        if (b != a && overlap(a, b) && (a->use != AREA_SOURCE || b->use != AREA_SOURCE))
            return false;
    return true;
}

static void link_in(struct area *a)
{
    a->link = &a->region->areas;
    a->next = *a->link;
    *a->link = a;
    if (a->next)
        a->next->link = &a->next;
}

bool area_claim(struct area *a, struct region *r, uint32_t length, enum area_use use, struct rng *rng)
{
    if (r->doomed || r->removed || length > r->mr.length)
        return false;
    for (int i = 0; i < TRIES; i++) {
        *a = (struct area){.region = r, .length = length, .use = use};
        a->at = rng_below(rng, (uint32_t)r->mr.length - length + 1);
        if (r->hot || is_free(a)) {
            link_in(a);
            return true;
        }
    }
    a->region = NULL;
    return false;
}

void area_share(struct area *a, const struct area *with, enum area_use use)
{
    *a = (struct area){.region = with->region, .at = with->at, .length = with->length, .use = use};
    link_in(a);
}

void area_release(struct area *a)
{
    if (!a->region)
        return;
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
    a->region = NULL;
}

static uint8_t *memory_of(const struct area *a)
{
    return octets_of(a->region) + a->at;
}

void area_scribble(const struct area *a, struct rng *rng)
{
    for (const struct area *b = a->region->areas; b; b = b->next)
        if (b != a && overlap(a, b))
            return;
    rng_fill(rng, memory_of(a), a->length);
    memcpy(a->region->shadow + a->at, memory_of(a), a->length);
}

bool area_is_filled(const struct area *a)
{
    return !memcmp(memory_of(a), a->octets, a->filled) &&
           !memcmp(memory_of(a) + a->filled, area_shadow(a) + a->filled, a->length - a->filled);
}

bool area_is_untouched(const struct area *a)
{
    return !memcmp(memory_of(a), area_shadow(a), a->length);
}

void area_settle(const struct area *a)
{
    memcpy(a->region->shadow + a->at, memory_of(a), a->length);
}

uint64_t area_offset(const struct area *a)
{
    return a->region->mr.start + a->at;
}

struct rddp_sge area_sge(const struct area *a)
{
    return (struct rddp_sge){.addr = area_offset(a), .length = a->length, .lkey = a->region->mr.key};
}

const uint8_t *area_shadow(const struct area *a)
{
    return a->region->shadow + a->at;
}
