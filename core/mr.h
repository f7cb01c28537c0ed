/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.h - protection domains and memory regions; mr_check() is the only way to a pointer into one. */
#ifndef RDDP_CORE_MR_H
#define RDDP_CORE_MR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"
#include "core/visit.h"

/* A protection domain is an identity: a region and a queue pair meet only if theirs is the same. */
struct pd {
    _Atomic uint32_t users; /* regions, queues: a domain in use is not freed */
};

/* A registered region. The creator gives the room and keeps it until it has called mr_remove() and then seen every
 * placement and emission end that could have looked before. */
struct mr {
    struct pd *pd;
    uint8_t *base;
    uint64_t start; /* the offset of the first octet: 0 if zero-based, else its address */
    uint64_t length;
    uint32_t key;             /* STag; local and remote key are one */
    unsigned access;          /* enum rddp_access */
    struct mr *parent;        /* of a part of a region, which outlives it; else NULL */
    _Atomic uint32_t parts;   /* of a region: how many are in the table */
    _Atomic bool used;        /* RDDP_ACCESS_ONE_SHOT: a Read has it as its sink, or had */
    _Atomic bool valid;       /* false after an invalidation */
    _Atomic uint32_t sending; /* spans of this region that are queued for a socket */
};

/* Keys are found in an open-addressed table of regions. A removed key stays in it as a tombstone until the table is
 * rehashed, and is not drawn again while it does. */
struct mr_slot {
    _Atomic uint32_t key;    /* written last, so that whoever finds it finds the region */
    _Atomic(struct mr *) mr; /* NULL with a key: a tombstone */
};

struct mr_slots {
    uint32_t count; /* a power of two */
    struct mr_slot slot[];
};

/* A look-up needs no lock, whatever else goes on. All that changes the table does: one thread at a time. */
struct mr_table {
    _Atomic(struct mr_slots *) slots;
    uint32_t used; /* live and tombstones */
    uint32_t live;
    struct visits visits; /* who may be looking up just now: see visit.h */
};

/* Octets of room for `count` slots, aligned for any type: no more than count + 1 times the size of a slot. */
size_t mr_slots_room(uint32_t count);

/* Gives the table its room: zeroed, for `count` (a power of two) slots. The caller keeps ownership of the memory. If
 * others than the caller are ever to look up, visits_init() comes next. */
void mr_table_init(struct mr_table *table, void *buffer, uint32_t count);

/* Is there room for one more at a load that keeps look-ups short? If not, the owner calls mr_table_move() first. */
bool mr_table_has_room(const struct mr_table *table);

/* Moves the live regions into new room (zeroed, for at least 2 * (live + 1) slots) and returns the old room, to free
 * when no look-up can be in it any more. */
void *mr_table_move(struct mr_table *table, void *buffer, uint32_t count);

/* Enters `mr` (pd, base, start, length, access filled in) under `key`, 32 random bits drawn by the caller.
 * False if the key is 0, alive, or a tombstone: draw again. The creator counts the region into pd->users. */
bool mr_insert(struct mr_table *table, struct mr *mr, uint32_t key);

/* Fills in a region over `length` octets of `parent` from `at` on, for mr_insert(). It is looked up as any other, but
 * dies with its parent, and has no rights that are not the parent's; what is said of the memory itself
 * (RDDP_ACCESS_STABLE, _VOLATILE) it has from there. False: it does not lie inside, asks for more, or the parent is
 * invalid or a part itself. A parent is not to be removed before its parts. */
bool mr_part(struct mr *part, struct mr *parent, uint8_t *at, uint64_t length, unsigned access);

/* Neither it nor its parent has been invalidated. */
bool mr_is_valid(const struct mr *mr);

/* Takes the region out: a look-up that begins from here on does not find it. */
void mr_remove(struct mr_table *table, struct mr *mr);

/* The region that `key` names, valid or not, or NULL. For owners of regions, not for peers' keys. */
struct mr *mr_find(const struct mr_table *table, uint64_t key);

/* Finds the region of `key` and checks key, domain, rights and bounds, in this order, for `length` octets at `offset`.
 * `rights` are those enum rddp_access bits that must all be granted (0: local read). Returns FAULT_NONE with where the
 * first octet is and (if `found` is not NULL) the region; or FAULT_KEY, FAULT_DOMAIN, FAULT_RIGHT, FAULT_WRAP,
 * FAULT_BOUNDS and touches neither. A length of 0 is checked like any other here; wires that exempt empty messages do
 * not call. */
enum fault mr_check(const struct mr_table *table, const struct pd *pd, uint64_t key, uint64_t offset, uint64_t length,
                    unsigned rights, uint8_t **at, struct mr **found);

/* Invalidates on behalf of a peer (`remote`: the region must grant a remote right) or of the owner.
 * FAULT_INVALIDATE if the key is unknown, of another domain, already invalid, or not the peer's to invalidate. Else
 * *moment (for visits_are_over()): somebody who looked it up before may use it until then, and nobody is to hear of it.
 */
enum fault mr_invalidate(struct mr_table *table, const struct pd *pd, uint64_t key, bool remote, uint64_t *moment);

#endif
