/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.h - regions between guard octets, and the allowed value of each octet: the old one, or one that was
 * requested. */
#ifndef TESTS_SIM_LIB_MEMORY_H
#define TESTS_SIM_LIB_MEMORY_H

#include "core/mr.h"
#include "core/qp.h"
#include "tests/lib/rng.h"

enum area_use {
    AREA_SOURCE, /* must not change; others may read it, too */
    AREA_TARGET, /* the first `filled` octets become `octets`, in any order; the others must not change */
    AREA_ANY,    /* concurrent writers: any value is allowed */
};

/* A part of a region that a request uses. It is linked into the region and must not move. */
struct area {
    struct region *region;     /* NULL: not claimed */
    struct area *next, **link; /* link: what points to this area */
    uint32_t at, length;
    enum area_use use;
    const uint8_t *octets;
    uint32_t filled;
};

struct region {
    struct mr mr;
    uint8_t *buffer; /* guard, octets, guard */
    uint8_t *shadow; /* the octets as far as they are known */
    struct area *areas;
    bool doomed; /* will be invalidated or removed soon: do not use it for new requests */
    bool hot;    /* everybody reads and writes it at once: only its guards are checked */
    bool window; /* may be invalidated */
    bool removed;
};

/* Fills a region with random octets and registers it under a random key. The table's slots are on the heap. */
void region_init(struct region *r, struct mr_table *table, struct pd *pd, uint32_t length, unsigned access,
                 struct rng *rng);
void region_fini(struct region *r);

/* Registers it again under another key. */
void region_renew(struct region *r, struct mr_table *table, struct rng *rng);

/* From now on its octets must not change, whatever was requested. */
void region_freeze(struct region *r);

/* Returns NULL if every octet is allowed; otherwise what is wrong, and where. */
const char *region_wrong(const struct region *r);

/* Claims `length` octets somewhere in the region. Returns false if no place was found. */
bool area_claim(struct area *a, struct region *r, uint32_t length, enum area_use use, struct rng *rng);

/* Claims exactly the octets of another area, whatever they are used for. */
void area_share(struct area *a, const struct area *with, enum area_use use);
void area_release(struct area *a);

/* The application writes new octets, where no other area needs the old ones. */
void area_scribble(const struct area *a, struct rng *rng);

/* Is all of it, or none of it, as requested? (AREA_TARGET) */
bool area_is_filled(const struct area *a);
bool area_is_untouched(const struct area *a);

/* It was filled: these are its octets from now on. */
void area_settle(const struct area *a);

/* As a request or the peer names it. */
struct rddp_sge area_sge(const struct area *a);
uint64_t area_offset(const struct area *a);
const uint8_t *area_shadow(const struct area *a);

#endif
