/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_window.h - which chunks of an association have been placed, and what waits until every chunk before it has been
 * placed: signals, and kept chunks. */
#ifndef RDDP_CONN_ASSOC_WINDOW_H
#define RDDP_CONN_ASSOC_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/fault.h"

enum {
    WINDOW_CHUNKS = 4096, /* chunks that may wait behind a gap; a power of two, as is the next */
    WINDOW_EARLY = 16,    /* the same while the peer has asked for nothing yet */
};

enum window_state {
    WINDOW_ABSENT, /* not received */
    WINDOW_KEPT,   /* received, waits for its turn; `value` is the host's name for it */
    WINDOW_PLACED, /* `value` is its tag */
};

struct window_slot {
    uint32_t value;
    uint16_t child[2]; /* in the tree of tags: indices of slots + 1, 0: none */
    uint8_t state;     /* enum window_state */
    uint8_t flags;     /* enum sctpddp_flag: signals that wait */
    bool tagged;       /* it was placed by its tag */
};

/* The window of an association. Positions are sequence numbers (AWS or TSN) unwrapped to 64 bits. */
struct window {
    struct window_slot *slot; /* zeroed at first; the creator of the association owns them */
    uint32_t size;            /* how many: WINDOW_CHUNKS or WINDOW_EARLY */
    uint64_t next;            /* every chunk before this position has been placed and reported */
    uint32_t ahead;           /* slots from `next` on that are not WINDOW_ABSENT */
    uint32_t releases;        /* how many of those have a SCTPDDP_RELEASE that waits */
    uint32_t origin;          /* the sequence number of position 0 */
    uint16_t tags;            /* the root of the tree of tags */
};

void window_init(struct window *window, struct window_slot *slot, uint32_t size, uint32_t origin);

/* Goes on with WINDOW_CHUNKS other slots, zeroed. Nothing that was placed by a tag waits. */
void window_widen(struct window *window, struct window_slot *slot);

/* Returns the position of a sequence number in *pos. FAULT_CHUNK_AGAIN: it was received before. FAULT_CHUNK_AHEAD: it
 * is `size` or more ahead; exactly 2^31 counts as ahead. */
enum fault window_find(const struct window *window, uint32_t sequence, uint64_t *pos);

/* May a chunk with this tag be placed at `pos`? Returns FAULT_CHUNK_RELEASED if a chunk before it releases the tag, or
 * if the chunk releases the tag and a later chunk with the tag has been placed. Whatever is placed by its tag must have
 * passed. */
enum fault window_check_release(const struct window *window, uint64_t pos, uint32_t tag, bool releases);

/* Records that the chunk at `pos` waits for its turn; window_due() will return `name`. */
void window_keep(struct window *window, uint64_t pos, uint32_t name);

/* Records that the chunk at `pos` was placed and that its signals wait. The chunk may have been a kept one. */
void window_place(struct window *window, uint64_t pos, uint32_t tag, bool tagged, uint8_t flags);

/* Removes the chunk at `next` if it has been placed and copies its slot to *slot. Returns false otherwise. */
bool window_pop(struct window *window, struct window_slot *slot);

/* Is the chunk at `next` a kept one? Then *name is its name. */
bool window_due(const struct window *window, uint32_t *name);

#endif
