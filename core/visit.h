/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* visit.h - who may be using what he has looked up: what has gone is out of use when all who came before have left. */
#ifndef RDDP_CORE_VISIT_H
#define RDDP_CORE_VISIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The place of one visitor; zeroed, nobody is inside. On a cache line of its own: it is written in every turn. */
struct visit {
    _Alignas(64) _Atomic uint64_t since; /* when he came in; 0: he is outside */
};

/* All places. Nobody else than the caller ever looks where there are none: a test, a simulator. */
struct visits {
    _Atomic uint64_t now; /* counts departures of what could be looked up */
    struct visit *visit;  /* the creator's room */
    uint32_t count;
};

/* `room` is `count` zeroed places. */
void visits_init(struct visits *visits, struct visit *room, uint32_t count);

/* From here until visit_leave() the visitor may look up and use what he finds. He has the place to himself. */
void visit_enter(struct visits *visits, struct visit *visit);
void visit_leave(struct visit *visit);

/* The same for one who has no place of his own: takes a free one of those from `first` on. NULL: there is none. */
struct visit *visit_enter_any(struct visits *visits, uint32_t first);

/* A visitor who has nothing in his hands just now: as if he had left and come in again. NULL: he is none. */
void visit_renew(struct visits *visits, struct visit *visit);

/* Something has just gone from where it was looked up. Returns the moment, never 0, for visits_are_over(). */
uint64_t visits_part(struct visits *visits);

/* Has everybody left who came in before that moment? It stays true. 0: there was none. What they did is then seen. */
bool visits_are_over(const struct visits *visits, uint64_t moment);

#endif
