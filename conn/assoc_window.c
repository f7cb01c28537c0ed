/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_window.c - a ring of the chunks behind a gap in the sequence of an association, and a tree of their tags. */
#include "conn/assoc_window.h"

#include <assert.h>
#include <string.h>

#include "wire/sctpddp.h"

static_assert(WINDOW_CHUNKS < UINT16_MAX, "a link of the tree is 16 bits wide");

static struct window_slot *slot_at(const struct window *window, uint64_t pos)
{
    return &window->slot[pos & (window->size - 1)];
}

void window_init(struct window *window, struct window_slot *slot, uint32_t size, uint32_t origin)
{
    *window = (struct window){.slot = slot, .size = size, .origin = origin};
}

void window_widen(struct window *window, struct window_slot *slot)
{
    assert(!window->tags && window->size <= WINDOW_CHUNKS);
    for (uint64_t pos = window->next; pos < window->next + window->size; pos++)
        slot[pos % WINDOW_CHUNKS] = *slot_at(window, pos);
    window->slot = slot;
    window->size = WINDOW_CHUNKS;
}

enum fault window_find(const struct window *window, uint32_t sequence, uint64_t *pos)
{
    uint32_t ahead = sequence - (uint32_t)(window->origin + window->next);

    if (ahead > 0x80000000u)
        return FAULT_CHUNK_AGAIN;
    if (ahead >= window->size)
        return FAULT_CHUNK_AHEAD;
    *pos = window->next + ahead;
    return slot_at(window, *pos)->state == WINDOW_ABSENT ? FAULT_NONE : FAULT_CHUNK_AGAIN;
}

/* --- tags ---------------------------------------------------------------------------------------------------- */

/* A link is the index of a slot, and 1; 0 leads nowhere. */
static uint16_t link_to(const struct window *window, uint64_t pos)
{
    return (uint16_t)((pos & (window->size - 1)) + 1);
}

static uint64_t position_of(const struct window *window, uint16_t name)
{
    return window->next + ((name - 1 - window->next) & (window->size - 1));
}

/* The tree has a slot for each tag that waits: that of the last chunk placed by it. It is a digital search tree: at
 * depth d, tags whose bit d is set are on one side, the others on the other. So no path has more slots than a tag has
 * bits, and one, whatever tags a peer chooses. Returns the link to the slot of this tag, or the empty link where it
 * would be. */
static uint16_t *find_tag(struct window_slot *slot, uint16_t *root, uint32_t tag)
{
    uint16_t *link = root;

    for (uint32_t rest = tag; *link && slot[*link - 1].value != tag; rest >>= 1)
        link = &slot[*link - 1].child[rest & 1];
    return link;
}

/* Puts the slot called `name` where the link's is. */
static void replace_tag(struct window_slot *slot, uint16_t *link, uint16_t name)
{
    memcpy(slot[name - 1].child, slot[*link - 1].child, sizeof(slot->child));
    *link = name;
}

static void add_tag(struct window *window, uint64_t pos)
{
    uint16_t *link = find_tag(window->slot, &window->tags, slot_at(window, pos)->value);

    if (!*link)
        *link = link_to(window, pos);
    else if (position_of(window, *link) < pos)
        replace_tag(window->slot, link, link_to(window, pos));
}

/* Any slot below may take the place: its tag has the same bits up to there. */
static void remove_tag(struct window *window, uint64_t pos)
{
    uint16_t *link = find_tag(window->slot, &window->tags, slot_at(window, pos)->value), *at = link, leaf;

    if (*link != link_to(window, pos))
        return;
    for (uint16_t *child = slot_at(window, pos)->child; child[0] || child[1]; child = window->slot[*at - 1].child)
        at = &child[!child[0]];
    leaf = *at;
    *at = 0;
    if (leaf != link_to(window, pos))
        replace_tag(window->slot, link, leaf);
}

/* Of the chunks with a tag only the last can release it, since each of them has passed this check. */
enum fault window_check_release(const struct window *window, uint64_t pos, uint32_t tag, bool releases)
{
    uint16_t root = window->tags, name;

    if (!releases && !window->releases)
        return FAULT_NONE;
    name = *find_tag(window->slot, &root, tag);
    if (!name)
        return FAULT_NONE;
    if (position_of(window, name) < pos)
        releases = window->slot[name - 1].flags & SCTPDDP_RELEASE;
    return releases ? FAULT_CHUNK_RELEASED : FAULT_NONE;
}

/* --- the sequence -------------------------------------------------------------------------------------------- */

void window_keep(struct window *window, uint64_t pos, uint32_t name)
{
    struct window_slot *slot = slot_at(window, pos);

    assert(slot->state == WINDOW_ABSENT && pos - window->next < window->size);
    *slot = (struct window_slot){.value = name, .state = WINDOW_KEPT};
    window->ahead++;
}

void window_place(struct window *window, uint64_t pos, uint32_t tag, bool tagged, uint8_t flags)
{
    struct window_slot *slot = slot_at(window, pos);

    assert(slot->state != WINDOW_PLACED && pos - window->next < window->size);
    window->ahead += slot->state == WINDOW_ABSENT;
    window->releases += (flags & SCTPDDP_RELEASE) != 0;
    *slot = (struct window_slot){.value = tag, .state = WINDOW_PLACED, .flags = flags, .tagged = tagged};
    if (tagged)
        add_tag(window, pos);
}

bool window_pop(struct window *window, struct window_slot *slot)
{
    struct window_slot *at = slot_at(window, window->next);

    if (at->state != WINDOW_PLACED)
        return false;
    if (at->tagged)
        remove_tag(window, window->next);
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
