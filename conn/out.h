/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* out.h - what waits for the link: units in stream order, in spans of a private room and of registered memory. */
#ifndef RDDP_CONN_OUT_H
#define RDDP_CONN_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "core/mr.h"
#include "wire/wire.h"

enum {
    /* Gathered for one call to the socket. Copies of more would leave the cache before they are sent. */
    OUT_OCTETS = 1 << 19,
    /* So that everything gathered can also be copied in, and a Terminate behind it. */
    OUT_ROOM = OUT_OCTETS + 2 * WIRE_UNIT_MAX,
    OUT_SPANS = 96,
    OUT_UNITS = 4096,
    OUT_UNIT_SPANS = 2 + WIRE_SPANS_MAX, /* of one unit: head, payload, tail */
};

struct out {
    uint8_t *buffer;   /* OUT_ROOM octets, the host's */
    uint32_t used;     /* of the room */
    uint32_t octets;   /* that wait, wherever they lie */
    uint32_t borrowed; /* of them in registered memory */
    uint32_t first, spans;
    struct span span[OUT_SPANS];
    struct mr *region[OUT_SPANS]; /* of a span of registered memory; NULL for the room */
    uint32_t open;                /* octets of the unit that is being added */
    uint32_t unit_first, units;
    bool torn;                /* the beginning of the first unit has left */
    uint32_t unit[OUT_UNITS]; /* octets of each, of the first those that are left */
};

/* One unit, for a link that sends it as a packet. */
struct out_unit {
    struct span span[OUT_UNIT_SPANS];
    uint32_t spans, octets;
    bool torn; /* it is the rest of one */
};

/* Where out_next_unit() is: all 0 at the first. */
struct out_cursor {
    uint32_t units, span, offset;
};

void out_init(struct out *out, uint8_t *buffer);

/* Is there room for one more unit of any wire, and a Terminate behind it? That may need a span of its own: what
 * out_own() has copied does not go on where the last unit ended. */
bool out_has_room(const struct out *out);

/* Where the next unit can be written: WIRE_UNIT_MAX octets, if out_has_room(). out_commit() adds what was written
 * there. */
uint8_t *out_space(struct out *out);
void out_commit(struct out *out, size_t octets);

/* Adds a span of registered memory, which must stay until it has left or out_own() was called. */
void out_borrow(struct out *out, struct span span, struct mr *region);

/* What was added since the last time is a unit. */
void out_end_unit(struct out *out);

/* The units one after the other, however many of their octets lie in one span. False: there are no more. What leaves of
 * them is told to out_sent(), and then a cursor says nothing any more. */
bool out_next_unit(const struct out *out, struct out_cursor *at, struct out_unit *unit);

/* `octets` have left. */
void out_sent(struct out *out, size_t octets);

/* Copies whatever still lies in registered memory into the room: nobody else's memory is needed any more. */
void out_own(struct out *out);

/* Does anything wait that RDDP_ACCESS_VOLATILE says may go away? */
bool out_is_volatile(const struct out *out);

/* Does anything of `region` still wait? */
bool out_uses(const struct out *out, const struct mr *region);

/* Drops everything. */
void out_drop(struct out *out);

#endif
