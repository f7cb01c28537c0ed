/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path_mtu.c - the MTU of the path without messages about it (RFC 4821, RFC 8899): it falls when long segments vanish,
 * and rises again by a probe, one segment that is longer than the others. */
#include "tcp/inner.h"

enum {
    RAISE_US = 600000000, /* RFC 8899 5.1.1 */
    HOLE_RTOS = 3,        /* time-outs in a row that make long segments suspect */
    HOLE_MTU = 1280,      /* the first guess then, of segments above it: tunnels have it */
    LOW_RTOS = 5,         /* the same for those below, which are seldom too long: more often the peer is silent */
    AGAIN_US = 100000,    /* when there was nothing long enough to send */
    SEARCH_ENDS = 64,     /* octets that are not worth another probe; half of them are more than an option */
};

_Static_assert((int)SEARCH_ENDS / 2 > (int)UTCP_OPTION_SPACE, "a probe is longer than others whatever its option");

void utcp_path_begin(struct utcp *t)
{
    t->path = (struct utcp_path){.most = t->attr.mtu, .next_us = UTCP_NEVER};
    t->timer.path_us = UTCP_NEVER;
}

/* The segments in flight do not fit any more: they are cut again, from the first octet that the peer may lack. */
static void cut_again(struct utcp *t)
{
    utcp_scoreboard_clear(&t->scoreboard);
    t->tx.next = t->tx.una;
    t->recovery.on = t->undo.on = false;
    t->tlp = (struct utcp_tlp){0};
    t->path.size = 0;
    t->timer.rto_us = t->timer.probe_us = t->timer.reorder_us = t->timer.path_us = UTCP_NEVER;
    if (t->cubic.cwnd < t->tx.mss)
        t->cubic.cwnd = t->tx.mss;
}

static void use_mtu(struct utcp *t, uint32_t mtu)
{
    uint32_t before = t->tx.mss;

    t->attr.mtu = mtu;
    if (!utcp_synchronized(t))
        return;
    t->tx.mss = utcp_mss_of(t, mtu);
    t->cubic.mss = t->tx.mss;
    if (t->tx.mss < before)
        cut_again(t);
}

void utcp_set_mtu(struct utcp *t, uint32_t mtu)
{
    t->path.most = mtu;
    t->path.bad = 0;
    use_mtu(t, mtu);
}

void utcp_path_narrowed(struct utcp *t, uint32_t mtu)
{
    uint32_t least = utcp_is_v4(&t->remote) ? UTCP_MTU_V4_MIN : UTCP_MTU_V6_MIN;

    if (mtu < least)
        mtu = least;
    if (mtu >= t->attr.mtu)
        return;
    t->path.bad = 0;
    t->path.next_us = t->tx.last_us + RAISE_US;
    use_mtu(t, mtu);
}

void utcp_too_big(struct utcp *t, uint32_t seq, uint32_t mtu)
{
    int64_t number = utcp_number(t->tx.una, t->attr.isn, seq);

    /* A message about octets that are not in flight is forged (RFC 5927 4.1). */
    if (number >= (int64_t)t->tx.una && number < (int64_t)t->tx.max)
        utcp_path_narrowed(t, mtu);
}

void utcp_path_suspect(struct utcp *t, uint64_t now_us)
{
    uint32_t heads = utcp_heads(&t->remote) + UTCP_OPTIONS_MAX;
    uint32_t size = utcp_scoreboard_at(&t->scoreboard, 0)->length + heads;
    bool is_long = t->attr.mtu > HOLE_MTU && size > HOLE_MTU;
    uint32_t guess = is_long ? HOLE_MTU : UTCP_MTU_V4_MIN;

    if (t->timer.rtos < (is_long ? HOLE_RTOS : LOW_RTOS) || size <= guess || (!is_long && !utcp_is_v4(&t->remote)))
        return;
    t->count.black_holes++;
    utcp_path_narrowed(t, guess);
    /* The peer may have been silent for another reason, so that the first probe is as long as the first hop allows. */
    t->path.next_us = now_us;
}

/* Returns the length of packets to try, or 0: none now. Losses and time-outs must not be taken for the probe's. */
static uint32_t path_candidate(struct utcp *t, uint64_t now_us)
{
    struct utcp_path *path = &t->path;

    if (now_us < path->next_us || path->size || t->recovery.on || t->timer.rtos || t->scoreboard.lost ||
        t->tx.next != t->tx.max || t->scoreboard.count == t->scoreboard.capacity)
        return 0;
    if (path->bad && path->bad - t->attr.mtu <= SEARCH_ENDS) {
        path->bad = 0;
        path->next_us = now_us + RAISE_US;
        return 0;
    }
    return path->bad ? (uint32_t)utcp_min((t->attr.mtu + path->bad) / 2, path->most) : path->most;
}

/* There was nothing long enough to send. */
static void path_put_off(struct utcp *t, uint32_t capacity, uint64_t now_us)
{
    if (capacity > t->tx.mss + UTCP_OPTION_SPACE)
        t->path.next_us = now_us + AGAIN_US; /* the user's message ends here; the next may be longer */
    else
        t->path.next_us = now_us + RAISE_US; /* the peer has no use for more, or it would not be much */
}

uint32_t utcp_path_cut(struct utcp *t, uint64_t now_us)
{
    uint64_t ready = t->tx.end > t->tx.next ? t->tx.end - t->tx.next : 0, right = t->tx.una + t->tx.window;
    uint32_t size = path_candidate(t, now_us), capacity = size ? utcp_mss_of(t, size) : 0, length;

    t->path.waits = false;
    if (!size || ready < capacity)
        return 0;
    length = t->user->cut(t->of, t->tx.next - 1, (uint32_t)utcp_min(ready, UINT32_MAX), capacity);
    if (length <= t->tx.mss) {
        path_put_off(t, capacity, now_us);
        return 0;
    }
    if (right >= t->tx.next + capacity && t->scoreboard.flight + capacity <= t->cubic.cwnd)
        return length;
    /* Shorter segments would always fill what has become free of the windows. */
    t->path.waits = t->scoreboard.flight && t->cubic.cwnd >= capacity && t->tx.window >= capacity;
    return 0;
}

void utcp_path_sent(struct utcp *t, uint32_t size, uint64_t now_us)
{
    t->path.size = size;
    t->path.end = t->tx.next;
    t->timer.path_us = now_us + t->rtt.rto_us;
    t->timer.probe_us = UTCP_NEVER;
}

void utcp_path_acked(struct utcp *t, uint64_t now_us)
{
    uint32_t size = t->path.size;

    if (!size || t->tx.una < t->path.end)
        return;
    t->path.size = 0;
    t->path.next_us = now_us;
    t->timer.path_us = UTCP_NEVER;
    /* The first hop may have changed meanwhile. */
    if (size > t->attr.mtu && size <= t->path.most)
        use_mtu(t, size);
}

void utcp_path_lost(struct utcp *t, uint64_t now_us)
{
    struct utcp_sent *s = utcp_scoreboard_at(&t->scoreboard, t->scoreboard.count - 1);

    if (s->flags & UTCP_SENT_SACKED) {
        t->timer.path_us = now_us + t->rtt.rto_us;
        return;
    }
    t->path.bad = t->path.size > t->attr.mtu ? t->path.size : 0;
    t->path.size = 0;
    t->timer.path_us = UTCP_NEVER;
    t->tx.next = s->from;
    utcp_scoreboard_take_back(&t->scoreboard);
    if (!t->scoreboard.count)
        t->timer.rto_us = t->timer.reorder_us = UTCP_NEVER;
}
