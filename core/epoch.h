/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* epoch.h - epochs of readers: an object that was removed is out of use when every reader that entered in an earlier
 * epoch has left. */
#ifndef RDDP_CORE_EPOCH_H
#define RDDP_CORE_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The slot of one reader, initially zeroed. It has its own cache line because it is written in every turn. */
struct epoch_reader {
    _Alignas(64) _Atomic uint64_t epoch; /* when the reader entered; 0: outside */
};

/* All slots. With no slots, only the calling thread may look up, as in a test or a simulator. */
struct epochs {
    _Atomic uint64_t now;        /* the current epoch: counts removals */
    struct epoch_reader *reader; /* owned by the creator */
    uint32_t count;
};

/* `slots` points to `count` zeroed slots, which stay the caller's. */
void epochs_init(struct epochs *epochs, struct epoch_reader *slots, uint32_t count);

/* Between epoch_enter() and epoch_leave() the reader may look up and use what it finds. No other reader may use the
 * slot. */
void epoch_enter(struct epochs *epochs, struct epoch_reader *reader);
void epoch_leave(struct epoch_reader *reader);

/* Like epoch_enter() for a reader without its own slot: takes a free one from index `first` on. It looks first at
 * the one with the number `wish` among them, or with what is left of that number: readers with different wishes do not
 * write to each other's cache lines. Returns NULL if none is free. */
struct epoch_reader *epoch_enter_any(struct epochs *epochs, uint32_t first, uint32_t wish);

/* For a reader that currently uses nothing: leaves and enters again. `reader` may be NULL. */
void epoch_renew(struct epochs *epochs, struct epoch_reader *reader);

/* An object was just removed from where it is looked up. Begins an epoch and returns it for epoch_is_over(); never 0.
 */
uint64_t epoch_advance(struct epochs *epochs);

/* Have all readers left that entered before `epoch` began? Once true it stays true, and their writes are visible. An
 * `epoch` of 0 means that nothing was removed: true. */
bool epoch_is_over(const struct epochs *epochs, uint64_t epoch);

#endif
