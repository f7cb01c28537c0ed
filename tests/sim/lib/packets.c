/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packets.c - the receiving end of a link that delivers whole packets in any order. Packets that it has to keep stay in
 * the ring of the link. */
#include "tests/sim/lib/packets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/report.h"

enum { MISSING, KEPT, TAKEN };

struct packets {
    struct reorder reorder;
    uint64_t base;                  /* stream position of the link where framing began */
    uint8_t state[LINK_WINDOW_MAX]; /* of each octet in flight, indexed modulo the size */
    uint8_t packet[LINK_WINDOW_MAX];
};

void packets_begin(struct stack *s)
{
    /* The link keeps the parts of a unit until it is complete. */
    if (!s->attr.packets || s->packets || s->staged || s->rx->attr.window < 2 * WIRE_UNIT_MAX ||
        !life_is_open(&s->conn.life))
        return;
    s->packets = calloc(1, sizeof(*s->packets));
    assert(s->packets);
    s->packets->base = s->rx->taken - s->conn.agreed.rx_pos;
    s->conn.agreed.aligned = true;
    conn_attach_reorder(&s->conn, &s->packets->reorder);
}

void packets_fini(struct stack *s)
{
    free(s->packets);
    s->packets = NULL;
}

static uint8_t *state_at(const struct stack *s, uint64_t pos)
{
    return &s->packets->state[pos % LINK_WINDOW_MAX];
}

static bool is_here(const struct stack *s, uint64_t from, uint64_t to)
{
    while (from < to && *state_at(s, from) != MISSING)
        from++;
    return from == to;
}

/* Returns how many octets from `pos` on are in this state. */
static size_t run(const struct stack *s, uint64_t pos, uint8_t state)
{
    uint64_t at = pos;

    while (at < s->rx->sent && *state_at(s, at) == state)
        at++;
    return (size_t)(at - pos);
}

static uint64_t edge_of(const struct stack *s)
{
    uint64_t at = s->rx->taken;

    while (at < s->rx->sent && *state_at(s, at) != MISSING)
        at++;
    return at;
}

/* When does the first incomplete packet arrive, and where does it begin? */
static uint64_t first_due(const struct stack *s)
{
    const struct link *l = s->rx;
    uint64_t pos = l->taken;

    for (uint32_t i = 0; i < l->flights; i++) {
        const struct flight *f = &l->flight[(l->first + i) % LINK_FLIGHTS];

        if (pos >= l->stuck_at)
            return UINT64_MAX;
        if (!is_here(s, pos, pos + f->octets < l->stuck_at ? pos + f->octets : l->stuck_at))
            return f->at_us;
        pos += f->octets;
    }
    return l->ended && !l->end_told && l->stuck_at == UINT64_MAX ? l->end_us : UINT64_MAX;
}

uint64_t packets_next_us(const struct stack *s)
{
    return s->rx->deaf ? UINT64_MAX : first_due(s);
}

/* Drops the octets before the connection's position. */
static void consume(struct stack *s, uint64_t pos)
{
    struct link *l = s->rx;

    for (uint64_t at = l->taken; at < pos; at++)
        *state_at(s, at) = MISSING;
    if (pos > l->taken)
        link_consume(l, (size_t)(pos - l->taken));
}

void packets_catch_up(struct stack *s, uint64_t now_us)
{
    uint64_t base = s->packets->base, pos;
    size_t n, eaten;

    do {
        pos = base + conn_advance(&s->conn, edge_of(s) - base, now_us);
        if (pos > edge_of(s))
            report_failure("the connection is ahead of the link");
        n = run(s, pos, KEPT);
        n = link_overtake(s->rx, pos, s->packets->packet, n);
        eaten = n ? conn_rx(&s->conn, s->packets->packet, n, now_us) : 0;
        if (eaten > n)
            report_failure("conn_rx() eats %zu of %zu octets", eaten, n);
        consume(s, pos + eaten);
    } while (eaten);
}

/* Presents [from, to) of the stream and handles the verdict. */
static void hand_over(struct stack *s, uint64_t from, uint64_t to, uint64_t now_us)
{
    uint8_t *packet = s->packets->packet;

    while (from < to && from >= s->rx->taken) {
        size_t octets = 0, n = link_overtake(s->rx, from, packet, (size_t)(to - from));
        enum conn_verdict verdict = conn_rx_out_of_order(&s->conn, packet, n, from - s->packets->base, &octets, now_us);

        if (!octets || octets > n)
            report_failure("conn_rx_out_of_order() judges %zu of %zu octets", octets, n);
        if (verdict == CONN_TAKEN && from > s->packets->base + s->conn.agreed.rx_pos)
            s->early += octets;
        for (size_t i = 0; i < octets && verdict != CONN_REFUSED; i++)
            *state_at(s, from + i) = verdict == CONN_TAKEN ? TAKEN : KEPT;
        from += octets;
    }
}

/* Presents the missing part of packet `i`, sometimes only a piece of it. */
static void receive(struct stack *s, uint32_t i, bool whole, uint64_t now_us)
{
    const struct link *l = s->rx;
    uint64_t from = l->taken, to;

    for (uint32_t k = 0; k < i; k++)
        from += l->flight[(l->first + k) % LINK_FLIGHTS].octets;
    to = from + l->flight[(l->first + i) % LINK_FLIGHTS].octets;
    to = to < l->stuck_at ? to : l->stuck_at;
    if (!whole && to > from) {
        from += rng_below(&s->rng, (uint32_t)(to - from));
        to = from + 1 + rng_below(&s->rng, (uint32_t)(to - from));
    }
    while (from < to) {
        uint64_t end;

        if (*state_at(s, from) != MISSING) {
            from++;
            continue;
        }
        end = from + run(s, from, MISSING);
        end = end < to ? end : to;
        hand_over(s, from, end, now_us);
        from = end;
    }
}

static uint32_t due(const struct link *l, uint64_t now_us)
{
    uint32_t n = 0;

    while (n < l->flights && l->flight[(l->first + n) % LINK_FLIGHTS].at_us <= now_us)
        n++;
    return n;
}

void packets_turn(struct stack *s, uint64_t now_us)
{
    struct link *l = s->rx;
    uint32_t n = due(l, now_us);

    for (uint32_t i = rng_below(&s->rng, 20); i && l->flights > 1; i--)
        receive(s, 1 + rng_below(&s->rng, l->flights - 1), !rng_one_in(&s->rng, 8), now_us);
    for (uint32_t i = n; i; i--)
        receive(s, i - 1, true, now_us);
    packets_catch_up(s, now_us);
    if (l->ended && !l->end_told && l->stuck_at == UINT64_MAX && l->end_us <= now_us && edge_of(s) == l->sent) {
        l->end_told = true;
        conn_rx_end(&s->conn, (size_t)(l->sent - l->taken), now_us);
    }
}
