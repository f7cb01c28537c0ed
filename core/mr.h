/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.h - protection domains and memory regions; mr_check() is the only way to a pointer into one. */
#ifndef RDDP_CORE_MR_H
#define RDDP_CORE_MR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rddp/wr.h>

#include "core/fault.h"
#include "core/epoch.h"

/* A protection domain is an identity: a queue pair can use a region only if both have the same. */
struct pd {
    _Atomic uint32_t users; /* regions and queues; a domain in use is not freed */
};

/* A window is a key of its own that a request in a queue binds to a part of a region: see mw.h. */
enum mr_kind {
    MR_REGION,
    MR_WINDOW,      /* type 1: bound again and again, for all queue pairs of its domain */
    MR_WINDOW_OF_QP /* type 2: for the queue pair that binds it, once until it is invalidated */
};

/* Octets behind a null region: no request, and no entry of one, has more. */
#define MR_NULL_OCTETS (UINT64_C(1) << 32)

/* A registered region. The creator owns the memory and keeps it after mr_remove() until it is out of use: all readers
 * that could have looked it up have left (see epoch.h), and then no span of it is lent any more. */
struct mr {
    struct pd *pd;
    uint8_t *base;
    uint64_t start; /* the offset of the first octet: 0 if zero-based, otherwise its address or another number */
    uint64_t length;
    _Atomic uint32_t key;     /* STag; the local and the remote key are the same. That of a window changes */
    unsigned access;          /* enum rddp_access */
    uint8_t *sink;            /* of a null region, whose base is zeroes and whose length is 0; otherwise NULL */
    struct mr *parent;        /* for a part of a region, and outlives it; otherwise NULL */
    _Atomic uint32_t parts;   /* how many parts of it are in the table, or bound; MR_CLOSED: there can be no more */
    _Atomic bool used;        /* RDDP_ACCESS_ONE_SHOT: a Read uses it or has used it as its sink */
    _Atomic bool valid;       /* false after an invalidation, and when it was removed */
    _Atomic uint32_t sending; /* spans of this region, or of parts of it, that are queued for a socket */
    enum mr_kind kind;
    _Atomic bool claimed;     /* a window: it is being bound or unbound, or it was removed */
    uint64_t user;            /* a window: the queue pair that may use it; 0: all of its domain */
    _Atomic uint64_t retired; /* a window: the epoch in which it was invalidated last; 0: never */
};

/* An open-addressed hash table of regions by key. A removed key stays as a tombstone until the table is moved, and is
 * not used again before that. */
struct mr_slot {
    _Atomic uint32_t key;    /* written last, so that a reader that finds it finds the region */
    _Atomic(struct mr *) mr; /* NULL with a key: a tombstone */
};

enum {
    MR_TAGS = 0xff,       /* the bits of a window's key that its binder chooses */
    MR_CLOSED = INT32_MAX /* of `parts` */
};

/* Copies to and from memory that may not be there, of regions with RDDP_ACCESS_ON_DEMAND. Returns false if some of the
 * octets are not there, or may not be read or written: any of the others may have been copied. The last octet is stored
 * last. */
struct mr_copier {
    bool (*fetch)(uint8_t *to, const uint8_t *from, uint32_t octets);
    bool (*store)(uint8_t *to, const uint8_t *from, uint32_t octets);
};

struct mr_slots {
    uint32_t count; /* a power of two */
    struct mr_slot slot[];
};

/* Look-ups need no lock. Changes to the table are serialised by its owner (rddp_context.mrs_lock). */
struct mr_table {
    _Atomic(struct mr_slots *) slots;
    uint32_t used; /* live regions and tombstones */
    uint32_t live;
    _Atomic uint64_t users; /* queue pairs that were made: each is the user of this number */
    struct epochs epochs;   /* the threads that may be looking up now */
    /* The owner's, set before any region with RDDP_ACCESS_ON_DEMAND is entered. */
    const struct mr_copier *copier;
};

/* Returns the octets for `count` slots, aligned for any type: at most count + 1 times the size of a slot. */
size_t mr_slots_size(uint32_t count);

/* Initialises the table with `buffer`: zeroed, for `count` slots (a power of two). The memory stays the caller's. If
 * other threads will look up, call epochs_init() next. */
void mr_table_init(struct mr_table *table, void *buffer, uint32_t count);

/* Is there room for one more region at a load that keeps look-ups short? If not, call mr_table_move() first. */
bool mr_table_has_space(const struct mr_table *table);

/* Moves the live regions to `buffer` (zeroed, for at least 2 * (live + 1) slots). Returns the old memory, which may be
 * freed when no look-up can still be using it. */
void *mr_table_move(struct mr_table *table, void *buffer, uint32_t count);

/* Enters `mr` (pd, base, start, length, access filled in) under `key`, 32 random bits drawn by the caller. Returns
 * false if the key is 0, in use, or a tombstone: draw again. The creator counts the region in pd->users. */
bool mr_insert(struct mr_table *table, struct mr *mr, uint32_t key);

/* The same for a window, of which `pd` and `kind` are filled in: it is invalid until mw_bind(). The lowest 8 bits of
 * its key may change, and no other region or window gets a key with the same upper 24 bits. */
bool mr_insert_window(struct mr_table *table, struct mr *window, uint32_t key);

/* May no more parts of the region be made? Returns false if there are some. mr_open() undoes it. */
bool mr_close(struct mr *mr);
void mr_open(struct mr *mr);

/* Fills in *part, a region over `length` octets of `parent` from `at` on, for mr_insert(). It is looked up like any
 * other, becomes invalid with its parent, and has only rights of the parent; RDDP_ACCESS_STABLE, _VOLATILE and
 * _ON_DEMAND are the parent's. Returns false if it is not inside the parent, asks for more rights, or if the parent is
 * invalid or a part itself. Remove the parts before their parent. */
bool mr_part(struct mr *part, struct mr *parent, uint8_t *at, uint64_t length, unsigned access);

/* Enters `mr` in place of `before`, a region without parts, under the same key: a look-up finds one of them. Who has
 * found `before` may go on, so it stays as valid as it is until its owner says otherwise. Both count as lent, so that
 * no invalidation is complete before it counts for `mr`: call mr_give_back() for `before` when it has no more readers,
 * and for `mr` when that is settled. The creator counts the region in pd->users. */
void mr_replace(struct mr_table *table, struct mr *before, struct mr *mr);

/* Returns false if the region or its parent was invalidated. */
bool mr_is_valid(const struct mr *mr);

/* Removes the region: look-ups that begin later do not find it. A window has been claimed, for good. */
void mr_remove(struct mr_table *table, struct mr *mr);

/* Returns the region of `key`, valid or not, or NULL. For keys of local requests, not for keys that a peer sent. */
struct mr *mr_find(const struct mr_table *table, uint64_t key);

/* Returns the window whose key has the same upper 24 bits, or NULL. */
struct mr *mr_find_window(const struct mr_table *table, uint32_t key) __attribute__((noinline));

/* Finds the region of `key` and checks key, domain, rights, wrap and bounds, in this order, for `length` octets at
 * `offset`. `rights` are the enum rddp_access bits that must all be granted (0: local read). Returns FAULT_NONE with
 * the address of the first octet in *at and the region in *found (unless `found` is NULL); or FAULT_KEY, FAULT_DOMAIN,
 * FAULT_RIGHT, FAULT_WRAP or FAULT_BOUNDS, and leaves both unchanged. A length of 0 is checked like any other; callers
 * that exempt empty messages do not call. A null region has octets at every offset: zeroes, or for
 * RDDP_ACCESS_LOCAL_WRITE its sink. The key of a window is good for remote rights alone; the caller compares
 * its user. Whether the octets of a region with RDDP_ACCESS_ON_DEMAND are there is not checked: nothing but the table's
 * copier touches them. */
enum fault mr_check(const struct mr_table *table, const struct pd *pd, uint64_t key, uint64_t offset, uint64_t length,
                    unsigned rights, uint8_t **at, struct mr **found);

/* Is its memory for the copier alone? */
static inline bool mr_is_on_demand(const struct mr *mr)
{
    return mr->access & RDDP_ACCESS_ON_DEMAND;
}

/* Invalidates a region on behalf of a peer (`remote`: the region must grant a remote right) or of the owner. Returns
 * FAULT_INVALIDATE if the key is unknown, of another domain, of a window of type 1, already invalid, or not the
 * peer's to invalidate.
 * Otherwise stores in *epoch the argument for mr_is_unused(): until that is true, earlier readers may still use the
 * region, or spans of it are lent, and the application may not be told of the invalidation. */
enum fault mr_invalidate(struct mr_table *table, const struct pd *pd, uint64_t key, bool remote, uint64_t *epoch);

/* The same for the peer of a queue pair, the table's `user`: the window of another is not the peer's. */
enum fault mr_invalidate_for(struct mr_table *table, const struct pd *pd, uint64_t user, uint64_t key, uint64_t *epoch);

/* Who binds, unbinds or removes a window claims it. mr_claim() returns false if another has done so. mr_unbind():
 * a window that was bound is invalid, in the epoch `retired`, and no part of its region any more. */
bool mr_claim(struct mr *window);
void mr_release(struct mr *window);
void mr_unbind(struct mr_table *table, struct mr *window);

/* A reader queues a span of the region for a socket: it may leave, and the span stays a reader of the memory until
 * mr_give_back(), which is the last use of the region. */
void mr_lend(struct mr *mr);
void mr_give_back(struct mr *mr);

/* Is a span of this region lent? False if the key is unknown. Once epoch_is_over() no more are lent. */
bool mr_is_lent(const struct mr_table *table, uint64_t key);

/* The region of `key` was invalidated at `epoch`: have its readers left, and is no span of it lent? Once true it stays
 * true. An `epoch` of 0 means that nothing was invalidated: true. */
bool mr_is_unused(const struct mr_table *table, uint64_t key, uint64_t epoch);

#endif
