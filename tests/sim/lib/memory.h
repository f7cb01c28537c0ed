/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.h - regions between guard octets, and what each of their octets must be: as it was, or as it was asked to be.
 */
#ifndef TESTS_SIM_LIB_MEMORY_H
#define TESTS_SIM_LIB_MEMORY_H

#include "core/mr.h"
#include "core/qp.h"
#include "tests/lib/rng.h"

enum area_use {
    AREA_SOURCE, /* stays as it is; others may read it, too */
    AREA_TARGET, /* the first `filled` octets become `octets`, at once or one by one; the others stay */
    AREA_ANY,    /* who writes when is nobody's to say */
};

/* A part of a region that a request needs. Linked into the region: it may not move. */
struct area {
    struct region *region; /* NULL: not claimed */
    struct area *next;
    uint32_t at, length;
    enum area_use use;
    const uint8_t *octets;
    uint32_t filled;
};

struct region {
    struct mr mr;
    uint8_t *room;   /* guard, the octets, guard */
    uint8_t *shadow; /* what the octets are, as far as anybody was told */
    struct area *areas;
    bool doomed; /* about to be invalidated or removed: nothing new */
    bool hot;    /* everybody reads and writes it at once: only its guards are checked */
    bool window; /* may be invalidated */
    bool removed;
};

/* Random octets, registered under a random key. The slots of the table are on the heap. */
void region_init(struct region *r, struct mr_table *table, struct pd *pd, uint32_t length, unsigned access,
                 struct rng *rng);
void region_fini(struct region *r);

/* Out of the table and in again, under another key. */
void region_renew(struct region *r, struct mr_table *table, struct rng *rng);

/* From now on its octets may not change, whatever was asked for. */
void region_freeze(struct region *r);

/* Every octet is what it may be; says what is not, and where, else NULL. */
const char *region_wrong(const struct region *r);

/* Claims some `length` octets of the region. False if no place was found. */
bool area_claim(struct area *a, struct region *r, uint32_t length, enum area_use use, struct rng *rng);

/* The very octets of another one, whatever it is used for. */
void area_share(struct area *a, const struct area *with, enum area_use use);
void area_release(struct area *a);

/* The application writes new octets, where nobody else needs what is there. */
void area_scribble(const struct area *a, struct rng *rng);

/* All of it, one bit of it, nothing of it is as asked? (AREA_TARGET) */
bool area_is_filled(const struct area *a);
bool area_is_untouched(const struct area *a);

/* It was filled: from now on these are its octets. */
void area_settle(const struct area *a);

/* As a request or its peer names it. */
struct rddp_sge area_sge(const struct area *a);
uint64_t area_offset(const struct area *a);
const uint8_t *area_shadow(const struct area *a);

#endif
