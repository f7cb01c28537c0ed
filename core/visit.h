/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* visit.h - visitors: a removed object is out of use when all visitors that entered before its removal have left. */
#ifndef RDDP_CORE_VISIT_H
#define RDDP_CORE_VISIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The slot of one visitor, initially zeroed. It has its own cache line because it is written in every turn. */
struct visit {
    _Alignas(64) _Atomic uint64_t since; /* the epoch when the visitor entered; 0: outside */
};

/* All slots. With none only the caller itself may look up, as in a test or a simulator. */
struct visits {
    _Atomic uint64_t now; /* the current epoch: counts removals */
    struct visit *visit;  /* owned by the creator */
    uint32_t count;
};

/* `slots` points to `count` zeroed slots, which stay the caller's. */
void visits_init(struct visits *visits, struct visit *slots, uint32_t count);

/* Between visit_enter() and visit_leave() the visitor may look up and use what it finds. No other visitor may use the
 * slot. */
void visit_enter(struct visits *visits, struct visit *visit);
void visit_leave(struct visit *visit);

/* Like visit_enter() for a visitor without its own slot: takes a free one from index `first` on. Returns NULL if none
 * is free. */
struct visit *visit_enter_any(struct visits *visits, uint32_t first);

/* For a visitor that currently uses nothing: leaves and enters again. `visit` may be NULL. */
void visit_renew(struct visits *visits, struct visit *visit);

/* An object was just removed from where it is looked up. Returns the moment of that for visits_are_over(), never 0. */
uint64_t visits_part(struct visits *visits);

/* Have all visitors left that entered before `moment`? Once true it stays true, and their writes are visible. A
 * `moment` of 0 means that nothing was removed: true. */
bool visits_are_over(const struct visits *visits, uint64_t moment);

#endif
