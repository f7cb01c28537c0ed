/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_window.c - a ring of the chunks behind a gap in the sequence of an association. */
#include "conn/assoc_window.h"

#include <assert.h>

#include "wire/sctpddp.h"

static struct window_slot *slot_at(const struct window *w, uint64_t pos)
{
    return &w->slot[pos % WINDOW_CHUNKS];
}

void window_init(struct window *w, struct window_slot *slot, uint32_t origin)
{
    *w = (struct window){.slot = slot, .origin = origin};
}

enum fault window_find(const struct window *w, uint32_t sequence, uint64_t *pos)
{
    uint32_t ahead = sequence - (uint32_t)(w->origin + w->next);

    if (ahead > 0x80000000u)
        return FAULT_CHUNK_AGAIN;
    if (ahead >= WINDOW_CHUNKS)
        return FAULT_CHUNK_AHEAD;
    *pos = w->next + ahead;
    return slot_at(w, *pos)->state == WINDOW_ABSENT ? FAULT_NONE : FAULT_CHUNK_AGAIN;
}

enum fault window_check_release(const struct window *w, uint64_t pos, uint32_t tag, bool releases)
{
    uint32_t left = w->ahead;

    if (!left || (!releases && !w->releases))
        return FAULT_NONE;
    for (uint64_t at = w->next; left; at++) {
        const struct window_slot *slot = slot_at(w, at);

        if (slot->state == WINDOW_ABSENT)
            continue;
        left--;
        if (slot->state == WINDOW_PLACED && slot->tagged && slot->value == tag &&
            (at < pos ? (slot->flags & SCTPDDP_RELEASE) != 0 : releases))
            return FAULT_CHUNK_RELEASED;
    }
    return FAULT_NONE;
}

void window_keep(struct window *w, uint64_t pos, uint32_t name)
{
    struct window_slot *slot = slot_at(w, pos);

    assert(slot->state == WINDOW_ABSENT && pos - w->next < WINDOW_CHUNKS);
    *slot = (struct window_slot){.value = name, .state = WINDOW_KEPT};
    w->ahead++;
}

void window_place(struct window *w, uint64_t pos, uint32_t tag, bool tagged, uint8_t flags)
{
    struct window_slot *slot = slot_at(w, pos);

    assert(slot->state != WINDOW_PLACED && pos - w->next < WINDOW_CHUNKS);
    w->ahead += slot->state == WINDOW_ABSENT;
    w->releases += (flags & SCTPDDP_RELEASE) != 0;
    *slot = (struct window_slot){.value = tag, .state = WINDOW_PLACED, .flags = flags, .tagged = tagged};
}

bool window_pop(struct window *w, struct window_slot *slot)
{
    struct window_slot *at = slot_at(w, w->next);

    if (at->state != WINDOW_PLACED)
        return false;
    *slot = *at;
    *at = (struct window_slot){.state = WINDOW_ABSENT};
    w->next++;
    w->ahead--;
    w->releases -= (slot->flags & SCTPDDP_RELEASE) != 0;
    return true;
}

bool window_due(const struct window *w, uint32_t *name)
{
    const struct window_slot *slot = slot_at(w, w->next);

    *name = slot->value;
    return slot->state == WINDOW_KEPT;
}
