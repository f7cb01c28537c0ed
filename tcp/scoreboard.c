/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scoreboard.c - a segment is in flight, lost, or known to have arrived; every change keeps the counters right. */
#include "tcp/scoreboard.h"

#include <assert.h>

void utcp_scoreboard_init(struct utcp_scoreboard *b, struct utcp_sent *slots, uint32_t segments)
{
    assert(segments && (segments & (segments - 1)) == 0);
    *b = (struct utcp_scoreboard){.ring = slots, .capacity = segments};
    utcp_scoreboard_clear(b);
}

void utcp_scoreboard_clear(struct utcp_scoreboard *b)
{
    b->head = b->count = b->lost = b->sacked = b->lost_from = 0;
    b->oldest = b->newest = UTCP_BOARD_NONE;
    b->flight = 0;
}

struct utcp_sent *utcp_scoreboard_at(const struct utcp_scoreboard *b, uint32_t i)
{
    return &b->ring[(b->head + i) & (b->capacity - 1)];
}

uint32_t utcp_scoreboard_find(const struct utcp_scoreboard *b, uint64_t number)
{
    uint32_t low = 0, high = b->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const struct utcp_sent *s = utcp_scoreboard_at(b, middle);

        if (s->from + s->length > number)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void link_newest(struct utcp_scoreboard *b, struct utcp_sent *s)
{
    uint32_t slot = (uint32_t)(s - b->ring);

    s->older = b->newest;
    s->newer = UTCP_BOARD_NONE;
    if (b->newest != UTCP_BOARD_NONE)
        b->ring[b->newest].newer = slot;
    else
        b->oldest = slot;
    b->newest = slot;
    b->flight += s->length;
}

static void link_oldest(struct utcp_scoreboard *b, struct utcp_sent *s)
{
    uint32_t slot = (uint32_t)(s - b->ring);

    s->newer = b->oldest;
    s->older = UTCP_BOARD_NONE;
    if (b->oldest != UTCP_BOARD_NONE)
        b->ring[b->oldest].older = slot;
    else
        b->newest = slot;
    b->oldest = slot;
    b->flight += s->length;
}

static void unlink_sent(struct utcp_scoreboard *b, struct utcp_sent *s)
{
    if (s->older != UTCP_BOARD_NONE)
        b->ring[s->older].newer = s->newer;
    else
        b->oldest = s->newer;
    if (s->newer != UTCP_BOARD_NONE)
        b->ring[s->newer].older = s->older;
    else
        b->newest = s->older;
    b->flight -= s->length;
}

void utcp_scoreboard_add(struct utcp_scoreboard *b, uint64_t from, uint32_t length, uint8_t flags, uint64_t now_us)
{
    struct utcp_sent *s = utcp_scoreboard_at(b, b->count);

    assert(b->count < b->capacity && length);
    *s = (struct utcp_sent){.from = from, .length = length, .flags = flags, .at_us = now_us};
    b->count++;
    link_newest(b, s);
}

static void scoreboard_forget(struct utcp_scoreboard *b, struct utcp_sent *s)
{
    if (s->flags & UTCP_SENT_SACKED)
        b->sacked--;
    else if (s->flags & UTCP_SENT_LOST)
        b->lost--;
    else
        unlink_sent(b, s);
}

void utcp_scoreboard_remove(struct utcp_scoreboard *b)
{
    assert(b->count);
    scoreboard_forget(b, utcp_scoreboard_at(b, 0));
    b->head++;
    b->count--;
    b->lost_from -= b->lost_from ? 1 : 0;
}

void utcp_scoreboard_take_back(struct utcp_scoreboard *b)
{
    assert(b->count);
    scoreboard_forget(b, utcp_scoreboard_at(b, --b->count));
    if (b->lost_from > b->count)
        b->lost_from = b->count;
}

void utcp_scoreboard_mark_sacked(struct utcp_scoreboard *b, struct utcp_sent *s)
{
    if (s->flags & UTCP_SENT_SACKED)
        return;
    scoreboard_forget(b, s);
    s->flags = (uint8_t)((s->flags & ~UTCP_SENT_LOST) | UTCP_SENT_SACKED);
    b->sacked++;
}

void utcp_scoreboard_mark_lost(struct utcp_scoreboard *b, struct utcp_sent *s)
{
    uint32_t i = ((uint32_t)(s - b->ring) - b->head) & (b->capacity - 1);

    if (s->flags & (UTCP_SENT_SACKED | UTCP_SENT_LOST))
        return;
    unlink_sent(b, s);
    s->flags |= UTCP_SENT_LOST;
    b->lost++;
    if (i < b->lost_from)
        b->lost_from = i;
}

void utcp_scoreboard_mark_sent(struct utcp_scoreboard *b, struct utcp_sent *s, uint64_t now_us)
{
    if (s->flags & UTCP_SENT_SACKED)
        return;
    scoreboard_forget(b, s);
    s->flags = (uint8_t)((s->flags & ~UTCP_SENT_LOST) | UTCP_SENT_RETRANS);
    s->at_us = now_us;
    link_newest(b, s);
}

void utcp_scoreboard_renege(struct utcp_scoreboard *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        struct utcp_sent *s = utcp_scoreboard_at(b, i);

        scoreboard_forget(b, s);
        s->flags = (uint8_t)((s->flags & ~UTCP_SENT_SACKED) | UTCP_SENT_LOST);
        b->lost++;
    }
    b->lost_from = 0;
}

void utcp_scoreboard_regain(struct utcp_scoreboard *b)
{
    for (uint32_t i = b->count; b->lost && i--;) {
        struct utcp_sent *s = utcp_scoreboard_at(b, i);

        if (!(s->flags & UTCP_SENT_LOST))
            continue;
        s->flags = (uint8_t)(s->flags & ~UTCP_SENT_LOST);
        b->lost--;
        link_oldest(b, s);
    }
}

struct utcp_sent *utcp_scoreboard_lost(struct utcp_scoreboard *b)
{
    if (!b->lost)
        return 0;
    while (!(utcp_scoreboard_at(b, b->lost_from)->flags & UTCP_SENT_LOST))
        b->lost_from++;
    return utcp_scoreboard_at(b, b->lost_from);
}
