/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_window.h - which chunks of an association have been placed, and what is held until all before them have been:
 * signals, and chunks that wait for their turn. */
#ifndef RDDP_CONN_ASSOC_WINDOW_H
#define RDDP_CONN_ASSOC_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/fault.h"

enum { WINDOW_CHUNKS = 4096 }; /* that may be held behind a gap */

enum window_state {
    WINDOW_ABSENT, /* it has not come */
    WINDOW_KEPT,   /* it waits for its turn; `value` is the host's name for it */
    WINDOW_PLACED, /* `value` is its tag */
};

struct window_slot {
    uint32_t value;
    uint8_t state; /* enum window_state */
    uint8_t flags; /* enum sctpddp_flag: signals that are held */
    bool tagged;   /* it was placed by its tag */
};

/* Positions are sequence numbers (AWS or TSN) unwrapped to 64 bits. */
struct window {
    struct window_slot *slot; /* the creator's room: WINDOW_CHUNKS slots, all 0 */
    uint64_t next;            /* everything before has been placed */
    uint32_t ahead;           /* slots behind `next` that are not WINDOW_ABSENT */
    uint32_t releases;        /* of them, with a release that is held */
    uint32_t origin;          /* the sequence number of position 0 */
};

void window_init(struct window *w, struct window_slot *slot, uint32_t origin);

/* The position of a sequence number. FAULT_CHUNK_AGAIN: it was here. FAULT_CHUNK_AHEAD: it is more than WINDOW_CHUNKS
 * ahead, 2^31 included. */
enum fault window_find(const struct window *w, uint32_t sequence, uint64_t *pos);

/* May a chunk with this tag be placed at `pos`? Not behind a release of the tag that is held, nor may a release come
 * before chunks of its tag that are here already: FAULT_CHUNK_RELEASED. */
enum fault window_check_release(const struct window *w, uint64_t pos, uint32_t tag, bool releases);

/* The chunk at `pos` waits for its turn; `name` is what window_due() will say. */
void window_keep(struct window *w, uint64_t pos, uint32_t name);

/* The chunk at `pos` has been placed, its signals are held; a kept one is not kept any more. */
void window_place(struct window *w, uint64_t pos, uint32_t tag, bool tagged, uint8_t flags);

/* The chunk at `next`, if it has been placed, is done with: *slot is what was held. False if it has not. */
bool window_pop(struct window *w, struct window_slot *slot);

/* Is the chunk whose turn it is a kept one? Then *name. */
bool window_due(const struct window *w, uint32_t *name);

#endif
