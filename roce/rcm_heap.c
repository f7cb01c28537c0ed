/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_heap.c - a pairing heap of deadlines: it needs no memory but its nodes. */
#include <stddef.h>

#include "roce/rcm_inner.h"

/* Returns the root of both; the later one becomes its first child. */
static struct rcm_timer *meld(struct rcm_timer *a, struct rcm_timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->due_us < a->due_us)
        return meld(b, a);
    b->before = a;
    b->next = a->child;
    if (b->next)
        b->next->before = b;
    a->child = b;
    a->next = a->before = NULL;
    return a;
}

/* Melds siblings in pairs, then all pairs. */
static struct rcm_timer *meld_siblings(struct rcm_timer *sibling)
{
    struct rcm_timer *pairs = NULL, *root = NULL;

    while (sibling) {
        struct rcm_timer *a = sibling, *b = a->next, *pair;

        sibling = b ? b->next : NULL;
        a->next = a->before = NULL;
        if (b)
            b->next = b->before = NULL;
        pair = meld(a, b);
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs) {
        struct rcm_timer *pair = pairs;

        pairs = pair->next;
        pair->next = NULL;
        root = meld(root, pair);
    }
    return root;
}

static void timer_take_out(struct rcm_timer **first, struct rcm_timer *timer)
{
    struct rcm_timer *below = meld_siblings(timer->child);

    if (*first == timer) {
        *first = below;
    } else {
        if (timer->before->child == timer)
            timer->before->child = timer->next;
        else
            timer->before->next = timer->next;
        if (timer->next)
            timer->next->before = timer->before;
        *first = meld(*first, below);
    }
    timer->child = timer->next = timer->before = NULL;
}

void rcm_timer_set(struct rcm_timer **first, struct rcm_timer *timer, uint64_t due_us)
{
    if (timer->due_us != RCM_NEVER)
        timer_take_out(first, timer);
    timer->due_us = due_us;
    if (due_us != RCM_NEVER)
        *first = meld(*first, timer);
}
