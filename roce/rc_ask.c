/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_ask.c - which packets of a requester ask for an acknowledgement. */
#include "roce/rc_requester.h"

/* A large window is acknowledged in parts, so that it need not wait until all of it is. */
uint64_t rc_ask_next(const struct rc_requester *q)
{
    uint32_t part = q->congestion.window / RC_ASKS;

    return q->asked + (part > RC_ASK_MIN ? part : RC_ASK_MIN);
}

/* The window is full, and no acknowledgement is on its way. If one is, the last packet need not ask for another: each
 * would make room for as few packets as it is about, and so would those that they ask for. */
static bool requester_is_stuck(const struct rc_requester *q, uint64_t now_us)
{
    return q->asked <= q->una && !rc_requester_may_send(q, now_us);
}

/* Nothing is lost by now, the send queue has places left, and it is known when to ask at last. Of a message that leaves
 * in parts the rest would leave after the caller had asked. */
static bool may_ask_late(const struct rc_requester *q, const struct rc_request *r)
{
    bool is_sound = q->next > q->max && !q->gap && !q->skip.to && !q->before.max;

    return r->ask == RC_ASK_LATE && r->packets == 1 && is_sound && q->head - q->tail <= q->mask / 2 &&
           q->rtt.smooth_us && q->attr.timeout_us;
}

bool rc_ask(struct rc_requester *q, const struct rc_request *r, bool last, uint64_t now_us)
{
    bool is_end = q->next == q->end, asks;

    if (r->kind != RC_MESSAGE) { /* the response says as much */
        q->is_silent = false;
        return false;
    }
    asks = q->asks || (last && r->ask == RC_ASK_ALWAYS) || (is_end && !may_ask_late(q, r)) ||
           q->next >= rc_ask_next(q) || requester_is_stuck(q, now_us);
    q->is_silent = !asks && is_end;
    q->asks = false;
    if (asks)
        q->asked = q->next;
    return asks;
}

void rc_requester_ask(struct rc_requester *q)
{
    if (!q->is_silent || q->una == q->max)
        return;
    q->is_silent = false;
    q->asks = true;
    q->next--;
    q->cursor--;
}

uint32_t rc_requester_unasked(const struct rc_requester *q)
{
    return q->is_silent ? q->head - q->tail : 0;
}
