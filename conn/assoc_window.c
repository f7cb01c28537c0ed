/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_window.c - a ring of the chunks behind a gap in the sequence of an association. */
#include "conn/assoc_window.h"

#include <assert.h>

#include "wire/sctpddp.h"

static struct window_slot *slot_at(const struct window *window, uint64_t pos)
{
    return &window->slot[pos % WINDOW_CHUNKS];
}

void window_init(struct window *window, struct window_slot *slot, uint32_t origin)
{
    *window = (struct window){.slot = slot, .origin = origin};
}

enum fault window_find(const struct window *window, uint32_t sequence, uint64_t *pos)
{
    uint32_t ahead = sequence - (uint32_t)(window->origin + window->next);

    if (ahead > 0x80000000u)
        return FAULT_CHUNK_AGAIN;
    if (ahead >= WINDOW_CHUNKS)
        return FAULT_CHUNK_AHEAD;
    *pos = window->next + ahead;
    return slot_at(window, *pos)->state == WINDOW_ABSENT ? FAULT_NONE : FAULT_CHUNK_AGAIN;
}

enum fault window_check_release(const struct window *window, uint64_t pos, uint32_t tag, bool releases)
{
    uint32_t left = window->ahead;

    if (!left || (!releases && !window->releases))
        return FAULT_NONE;
    for (uint64_t at = window->next; left; at++) {
        const struct window_slot *slot = slot_at(window, at);

        if (slot->state == WINDOW_ABSENT)
            continue;
        left--;
        if (slot->state == WINDOW_PLACED && slot->tagged && slot->value == tag &&
            (at < pos ? (slot->flags & SCTPDDP_RELEASE) != 0 : releases))
            return FAULT_CHUNK_RELEASED;
    }
    return FAULT_NONE;
}

void window_keep(struct window *window, uint64_t pos, uint32_t name)
{
    struct window_slot *slot = slot_at(window, pos);

    assert(slot->state == WINDOW_ABSENT && pos - window->next < WINDOW_CHUNKS);
    *slot = (struct window_slot){.value = name, .state = WINDOW_KEPT};
    window->ahead++;
}

void window_place(struct window *window, uint64_t pos, uint32_t tag, bool tagged, uint8_t flags)
{
    struct window_slot *slot = slot_at(window, pos);

    assert(slot->state != WINDOW_PLACED && pos - window->next < WINDOW_CHUNKS);
    window->ahead += slot->state == WINDOW_ABSENT;
    window->releases += (flags & SCTPDDP_RELEASE) != 0;
    *slot = (struct window_slot){.value = tag, .state = WINDOW_PLACED, .flags = flags, .tagged = tagged};
}

bool window_pop(struct window *window, struct window_slot *slot)
{
    struct window_slot *at = slot_at(window, window->next);

    if (at->state != WINDOW_PLACED)
        return false;
    *slot = *at;
    *at = (struct window_slot){.state = WINDOW_ABSENT};
    window->next++;
    window->ahead--;
    window->releases -= (slot->flags & SCTPDDP_RELEASE) != 0;
    return true;
}

bool window_due(const struct window *window, uint32_t *name)
{
    const struct window_slot *slot = slot_at(window, window->next);

    *name = slot->value;
    return slot->state == WINDOW_KEPT;
}
