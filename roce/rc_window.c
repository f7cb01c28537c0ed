/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_window.c - adapts the window of a requester to acknowledgements and losses. */
#include "roce/rc_requester.h"

static uint32_t small_window(const struct rc_requester *q)
{
    return q->rtt.least_us < RC_NEAR_US ? RC_SMALL_NEAR : RC_SMALL;
}

/* The window fits into the path, as far as the newest round trips say. A path that loses packets at random would keep
 * it at a few packets otherwise; larger windows follow losses as TCP's do, down to small_window(). */
static bool is_small(const struct rc_requester *q)
{
    return q->congestion.window <= small_window(q) && !rc_rtt_has_queue(&q->rtt);
}

/* What is left of the window after a loss. */
static uint32_t remainder_of(const struct rc_requester *q)
{
    uint32_t window = q->congestion.window, most = small_window(q), small = window < most ? window : most;
    uint32_t part = small - small / RC_STEP;

    return rc_rtt_has_queue(&q->rtt) || part < window / 2 ? window / 2 : part;
}

/* A window that is not used up says nothing about the path (RFC 7661): it stays as it is. */
void rc_window_grow(struct rc_requester *q, uint64_t packets)
{
    if (q->max - q->una < q->congestion.window / 2)
        return;
    if (q->congestion.window < q->congestion.threshold) {
        q->congestion.window += (uint32_t)packets;
    } else {
        uint32_t step = is_small(q) ? q->congestion.window / RC_STEP : 0, more;

        q->congestion.partial += (uint32_t)packets * (step ? step : 1);
        more = q->congestion.partial / q->congestion.window;
        q->congestion.partial %= q->congestion.window;
        q->congestion.window += more;
    }
    if (q->congestion.window > q->attr.window)
        q->congestion.window = q->attr.window;
}

/* The packets that were in flight with the lost one are the same event. */
void rc_window_shrink(struct rc_requester *q, uint32_t to)
{
    uint32_t less;

    if (q->una < q->congestion.recover)
        return;
    q->congestion.recover = q->max;
    less = to ? q->congestion.window / 2 : remainder_of(q);
    q->congestion.threshold = less > RC_WINDOW_MIN ? less : RC_WINDOW_MIN;
    q->congestion.window = to && to < q->congestion.threshold ? to : q->congestion.threshold;
    q->congestion.partial = 0;
}

/* What the peer is known to keep is not under way: as many packets may follow it as may follow what is sent again to a
 * peer that keeps nothing, if it can keep them, too. */
uint64_t rc_window_end_behind(const struct rc_requester *q)
{
    uint64_t end = q->una + q->congestion.window, behind = q->skip.to + q->congestion.window;
    uint64_t kept = q->una + RC_KEEP_SPAN + 1;

    behind = behind < kept ? behind : kept;
    return behind > end ? behind : end;
}
