/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* out.h - octets that wait for the link: units in stream order, in spans of a private buffer and of registered
 * memory. */
#ifndef RDDP_CONN_OUT_H
#define RDDP_CONN_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "core/mr.h"
#include "wire/wire.h"

enum {
    /* Octets gathered for one call to the socket. Copies of more would leave the cache before they are sent. */
    OUT_OCTETS = 1 << 19,
    /* The buffer can hold a copy of everything gathered, and a Terminate behind it. */
    OUT_BUFFER = OUT_OCTETS + 2 * WIRE_UNIT_MAX,
    OUT_SPANS = 96,
    OUT_UNITS = 4096,
    OUT_UNIT_SPANS = 2 + WIRE_SPANS_MAX, /* spans of one unit: head, payload, tail */
};

struct out {
    uint8_t *buffer;   /* OUT_BUFFER octets, owned by the host */
    uint32_t used;     /* octets of `buffer` in use */
    uint32_t octets;   /* octets that wait, in the buffer or in registered memory */
    uint32_t borrowed; /* how many of them are in registered memory */
    uint32_t first, spans;
    struct span span[OUT_SPANS];
    struct mr *region[OUT_SPANS]; /* region of a span in registered memory; NULL: the span is in the buffer */
    uint32_t open;                /* octets of the unit that is being added */
    uint32_t unit_first, units;
    bool torn;                /* part of the first unit has been sent */
    uint32_t unit[OUT_UNITS]; /* octets left of each unit */
};

/* One unit, for a link that sends it as a packet. */
struct out_unit {
    struct span span[OUT_UNIT_SPANS];
    uint32_t spans, octets;
    bool torn; /* it is the rest of a unit */
};

/* Position of out_next_unit(): zeroed at first. */
struct out_cursor {
    uint32_t units, span, offset;
};

void out_init(struct out *out, uint8_t *buffer);

/* Is there room for one more unit of any wire, and for a Terminate behind it? The Terminate may need its own span,
 * because what out_own() copied does not continue the last unit. */
static inline bool out_has_space(const struct out *out)
{
    return out->octets < OUT_OCTETS && out->used + out->borrowed + 2 * WIRE_UNIT_MAX <= OUT_BUFFER &&
           out->first + out->spans + OUT_UNIT_SPANS + 1 <= OUT_SPANS && out->unit_first + out->units + 2 <= OUT_UNITS;
}

/* Returns where to write the next unit: WIRE_UNIT_MAX octets if out_has_space(). out_commit() adds what was written
 * there, out_commit_unit() a whole unit. */
static inline uint8_t *out_space(const struct out *out)
{
    return out->buffer + out->used;
}

void out_commit(struct out *out, size_t octets);
void out_commit_unit(struct out *out, size_t octets);

/* Where another WIRE_UNIT_MAX octets may be used until the next unit is added: those that a Terminate would need. */
static inline uint8_t *out_spare(const struct out *out)
{
    return out_space(out) + WIRE_UNIT_MAX;
}

/* Adds a span of registered memory, which must stay until it was sent or out_own() was called: see mr_lend(). */
void out_borrow(struct out *out, struct span span, struct mr *region);

/* The octets added since the last call form a unit. */
void out_end_unit(struct out *out);

/* Returns the waiting units one by one; a unit may span several spans. False: there are no more. out_sent() invalidates
 * all cursors. */
bool out_next_unit(const struct out *out, struct out_cursor *at, struct out_unit *unit);

/* The first `octets` were sent. */
void out_sent(struct out *out, size_t octets);

/* Copies the spans of registered memory into the buffer, so that no other memory is needed. */
void out_own(struct out *out);

/* The same if one of them is of a region that was invalidated or removed. */
void out_own_invalid(struct out *out);

/* Does a waiting span belong to a region with RDDP_ACCESS_VOLATILE? */
bool out_is_volatile(const struct out *out);

/* Drops everything. */
void out_drop(struct out *out);

#endif
