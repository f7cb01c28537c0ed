/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c - one direction of a byte stream in virtual time. */
#include "tests/sim/lib/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void link_init(struct link *l, const struct link_attr *attr, uint64_t seed)
{
    assert(attr->window && attr->window <= LINK_WINDOW_MAX && attr->cut_max);
    *l = (struct link){.attr = *attr, .rng = {seed}, .corrupted_at = UINT64_MAX, .stuck_at = UINT64_MAX};
    l->ring = malloc(LINK_WINDOW_MAX);
    assert(l->ring);
}

void link_fini(struct link *l)
{
    free(l->ring);
}

bool link_is_full(const struct link *l)
{
    return !l->deaf && (l->sent - l->taken >= l->attr.window || l->flights == LINK_FLIGHTS);
}

size_t link_takes(struct link *l)
{
    size_t space = l->attr.window - (size_t)(l->sent - l->taken);

    if (l->deaf)
        return LINK_WINDOW_MAX;
    if (link_is_full(l) || rng_one_in(&l->rng, 8))
        return 0;
    return rng_one_in(&l->rng, 2) ? space : smaller(space, 1 + rng_size(&l->rng, l->attr.window));
}

static uint64_t arrival(struct link *l, uint64_t now_us)
{
    uint64_t at = now_us + l->attr.latency_us + rng_below(&l->rng, l->attr.jitter_us + 1);
    uint64_t last = l->flights ? l->flight[(l->first + l->flights - 1) % LINK_FLIGHTS].at_us : 0;

    return at > last ? at : last;
}

static void put(struct link *l, const uint8_t *p, size_t n)
{
    size_t at = (size_t)(l->sent % LINK_WINDOW_MAX), first = smaller(n, LINK_WINDOW_MAX - at);

    memcpy(l->ring + at, p, first);
    memcpy(l->ring, p + first, n - first);
    if (l->corrupted_at - l->sent < n)
        l->ring[l->corrupted_at % LINK_WINDOW_MAX] ^= l->corrupted_by;
    l->sent += n;
}

void link_send(struct link *l, const struct span *span, size_t n, uint64_t now_us)
{
    struct flight flight = {arrival(l, now_us), (uint32_t)n};

    assert(!l->ended);
    if (l->deaf || !n)
        return;
    l->flight[(l->first + l->flights++) % LINK_FLIGHTS] = flight;
    for (; n; span++) {
        size_t take = smaller(n, span->length);

        put(l, span->at, take);
        n -= take;
    }
}

void link_end(struct link *l, uint64_t now_us)
{
    assert(!l->ended);
    l->ended = true;
    l->end_us = arrival(l, now_us);
}

/* Limits `n`: nothing arrives from the octet on at which the link is stuck, not even the end. */
static size_t unstuck(const struct link *l, size_t n)
{
    uint64_t left = l->stuck_at > l->taken ? l->stuck_at - l->taken : 0;

    return left < n ? (size_t)left : n;
}

size_t link_has(const struct link *l, uint64_t now_us)
{
    size_t n = 0;

    for (uint32_t i = 0; i < l->flights && l->flight[(l->first + i) % LINK_FLIGHTS].at_us <= now_us; i++)
        n += l->flight[(l->first + i) % LINK_FLIGHTS].octets;
    return unstuck(l, n);
}

uint64_t link_next_us(const struct link *l)
{
    if (l->deaf || l->stuck_at <= l->taken)
        return UINT64_MAX;
    if (l->flights)
        return l->flight[l->first].at_us;
    return l->ended && !l->end_told && l->stuck_at == UINT64_MAX ? l->end_us : UINT64_MAX;
}

size_t link_receive(struct link *l, uint8_t *to, size_t space, uint64_t now_us)
{
    size_t most = smaller(space, rng_one_in(&l->rng, 3) ? l->attr.cut_max : 1 + rng_size(&l->rng, l->attr.cut_max - 1));
    size_t n = smaller(link_has(l, now_us), most);
    size_t at = (size_t)(l->taken % LINK_WINDOW_MAX), first = smaller(n, LINK_WINDOW_MAX - at);

    memcpy(to, l->ring + at, first);
    memcpy(to + first, l->ring, n - first);
    link_consume(l, n);
    return n;
}

void link_consume(struct link *l, size_t n)
{
    l->taken += n;
    while (n) {
        struct flight *f = &l->flight[l->first];
        uint32_t take = (uint32_t)smaller(n, f->octets);

        f->octets -= take;
        n -= take;
        if (!f->octets) {
            l->first = (l->first + 1) % LINK_FLIGHTS;
            l->flights--;
        }
    }
}

size_t link_overtake(const struct link *l, uint64_t pos, uint8_t *to, size_t n)
{
    uint64_t end = l->sent < l->stuck_at ? l->sent : l->stuck_at;

    if (l->deaf || pos < l->taken || pos >= end)
        return 0;
    n = smaller(n, (size_t)(end - pos));
    for (size_t i = 0; i < n; i++)
        to[i] = l->ring[(pos + i) % LINK_WINDOW_MAX];
    return n;
}

bool link_is_at_end(struct link *l, uint64_t now_us)
{
    if (l->end_told || l->flights || link_next_us(l) > now_us)
        return false;
    l->end_told = true;
    return true;
}
