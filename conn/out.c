/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* out.c - the spans and units of struct out. */
#include "conn/out.h"

#include <assert.h>
#include <rddp/wr.h>
#include <string.h>

void out_init(struct out *out, uint8_t *buffer)
{
    out->buffer = buffer;
    out->used = out->octets = out->borrowed = out->first = out->spans = 0;
    out->open = out->unit_first = out->units = 0;
    out->torn = false;
}

static void out_append(struct out *out, struct span span, struct mr *region)
{
    assert(out->first + out->spans < OUT_SPANS);
    out->span[out->first + out->spans] = span;
    out->region[out->first + out->spans] = region;
    out->spans++;
    out->octets += span.length;
    out->open += span.length;
}

static inline void out_add(struct out *out, size_t octets)
{
    uint8_t *at = out_space(out);
    struct span *last = out->spans ? &out->span[out->first + out->spans - 1] : NULL;

    assert(octets <= OUT_BUFFER - out->used);
    out->used += (uint32_t)octets;
    if (last && last->at + last->length == at && !out->region[out->first + out->spans - 1]) {
        last->length += (uint32_t)octets;
        out->octets += (uint32_t)octets;
        out->open += (uint32_t)octets;
    } else if (octets) {
        out_append(out, (struct span){at, (uint32_t)octets}, NULL);
    }
}

static inline void end_unit(struct out *out)
{
    assert(out->unit_first + out->units < OUT_UNITS);
    if (out->open)
        out->unit[out->unit_first + out->units++] = out->open;
    out->open = 0;
}

void out_commit(struct out *out, size_t octets)
{
    out_add(out, octets);
}

void out_end_unit(struct out *out)
{
    end_unit(out);
}

void out_commit_unit(struct out *out, size_t octets)
{
    out_add(out, octets);
    end_unit(out);
}

void out_borrow(struct out *out, struct span span, struct mr *region)
{
    if (!span.length)
        return;
    out_append(out, span, region);
    if (region) {
        mr_lend(region);
        out->borrowed += span.length;
    }
}

bool out_next_unit(const struct out *out, struct out_cursor *at, struct out_unit *unit)
{
    uint32_t left;

    if (at->units == out->units)
        return false;
    left = out->unit[out->unit_first + at->units];
    *unit = (struct out_unit){.octets = left, .torn = !at->units && out->torn};
    for (at->units++; left; unit->spans++) {
        const struct span *span = &out->span[out->first + at->span];
        uint32_t rest = span->length - at->offset, take = rest < left ? rest : left;

        assert(unit->spans < OUT_UNIT_SPANS);
        unit->span[unit->spans] = (struct span){span->at + at->offset, take};
        left -= take;
        at->offset = take == rest ? 0 : at->offset + take;
        at->span += take == rest;
    }
    return true;
}

/* Accounts `octets` that were sent to the units. */
static void leave_units(struct out *out, uint32_t octets)
{
    if (!out->octets) { /* all of it */
        out->open = out->unit_first = out->units = 0;
        out->torn = false;
        return;
    }
    while (octets && out->units) {
        uint32_t *first = &out->unit[out->unit_first], take = octets < *first ? octets : *first;

        *first -= take;
        octets -= take;
        out->torn = *first;
        out->unit_first += !*first;
        out->units -= !*first;
    }
    out->open -= octets;
    if (!out->units)
        out->unit_first = 0;
}

static void release_first(struct out *out)
{
    struct mr *region = out->region[out->first];

    if (region)
        mr_give_back(region);
    out->first++;
    out->spans--;
    if (!out->spans)
        out->first = out->used = 0;
}

void out_sent(struct out *out, size_t octets)
{
    assert(octets <= out->octets);
    out->octets -= (uint32_t)octets;
    leave_units(out, (uint32_t)octets);
    while (octets) {
        struct span *span = &out->span[out->first];
        uint32_t take = octets < span->length ? (uint32_t)octets : span->length;

        if (out->region[out->first])
            out->borrowed -= take;
        span->at += take;
        span->length -= take;
        octets -= take;
        if (!span->length)
            release_first(out);
    }
}

void out_own(struct out *out)
{
    for (uint32_t i = out->first; i < out->first + out->spans; i++) {
        struct span *span = &out->span[i];

        if (!out->region[i])
            continue;
        assert(span->length <= OUT_BUFFER - out->used);
        memcpy(out_space(out), span->at, span->length);
        span->at = out_space(out);
        out->used += span->length;
        mr_give_back(out->region[i]);
        out->region[i] = NULL;
    }
    out->borrowed = 0;
}

bool out_is_volatile(const struct out *out)
{
    for (uint32_t i = out->first; i < out->first + out->spans; i++)
        if (out->region[i] && out->region[i]->access & RDDP_ACCESS_VOLATILE)
            return true;
    return false;
}

void out_own_invalid(struct out *out)
{
    for (uint32_t i = out->first; i < out->first + out->spans; i++)
        if (out->region[i] && !mr_is_valid(out->region[i])) {
            out_own(out);
            return;
        }
}

void out_drop(struct out *out)
{
    while (out->spans)
        release_first(out);
    out->octets = out->borrowed = 0;
    out->open = out->unit_first = out->units = 0;
    out->torn = false;
}
