/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpnet.c - packets in a heap by arrival time, and ends that check every octet they receive. */
#include "tests/lib/tcpnet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

enum { PATTERN = 65521, PATTERN_SIZE = PATTERN + 65536, KIND = 25 };

static uint8_t pattern[PATTERN_SIZE];

static void make_pattern(void)
{
    struct rng r = {1};

    if (pattern[1])
        return;
    rng_fill(&r, pattern, PATTERN);
    for (uint32_t i = PATTERN; i < PATTERN_SIZE; i++)
        pattern[i] = pattern[i - PATTERN];
}

uint8_t tcpnet_octet(uint32_t seed, uint64_t position)
{
    return pattern[(position + seed) % PATTERN];
}

static uint32_t cut(void *user, uint64_t position, uint32_t ready, uint32_t space)
{
    const struct tcpnet_end *e = user;
    uint32_t length = space - e->option;

    if (e->unit && position % e->unit + length > e->unit && length > e->unit - position % e->unit)
        length = e->unit - (uint32_t)(position % e->unit);
    return length < ready ? length : ready;
}

static void fetch(void *user, uint64_t position, uint32_t length, struct utcp_piece *piece)
{
    const struct tcpnet_end *e = user;
    uint32_t first = length / 3;
    const uint8_t *at = pattern + (position + e->seed) % PATTERN;

    piece->spans = 2;
    piece->span[0] = (struct span){at, first};
    piece->span[1] = (struct span){at + first, length - first};
    if (e->option) {
        memset(piece->option, 1, e->option);
        put8(put8(piece->option, KIND), (uint8_t)e->option);
        put64(piece->option + 4, position);
        piece->option_length = e->option;
    }
}

static void hear(struct tcpnet_end *e, const struct utcp_arrival *a)
{
    for (uint32_t i = 0; i < a->length; i++) {
        uint64_t p = a->position + i;

        if (p >= e->expected || a->data[i] != tcpnet_octet(e->expect_seed, p) || e->seen[p / 8] & 1 << p % 8)
            fail_msg("position %llu: not what was sent, or twice", (unsigned long long)p);
        e->seen[p / 8] |= (uint8_t)(1 << p % 8);
    }
}

static struct utcp_verdict arrived(void *user, const struct utcp_arrival *a)
{
    struct tcpnet_end *e = user;
    struct utcp_arrival part = *a;
    bool keep = e->taking == TCPNET_KEEPS || (e->taking == TCPNET_MIXES && a->position / 1000 % 2);

    assert_true(a->length > 0 && a->position >= a->segment_position);
    assert_true(a->position + a->length <= a->segment_position + a->segment_length);
    assert_ptr_equal(a->data, a->segment + (a->position - a->segment_position));
    if (e->taking == TCPNET_MIXES && rng_one_in(&e->rng, 20))
        return (struct utcp_verdict){0, 0};
    if (e->taking == TCPNET_MIXES && rng_one_in(&e->rng, 20))
        part.length = 1 + (a->length - 1) / 2; /* refuses the rest */
    if (a->option) {
        assert_int_equal(get64(a->option + 4), a->segment_position);
        e->options_seen++;
    }
    hear(e, &part);
    if (keep)
        e->kept_octets += part.length;
    return (struct utcp_verdict){part.length, keep ? part.length : 0};
}

static const struct utcp_user user = {cut, fetch, arrived};

static void open_end(struct tcpnet_end *e, const struct utcp_attr *attr)
{
    struct utcp_buffers buffers = {e->sent, TCPNET_SENTS, e->ooo, TCPNET_HELDS};

    utcp_open(&e->tcp, attr, &buffers, e->own.user ? e->own.user : &user, e->own.user ? e->own.of : e);
    e->open = true;
}

static bool listens(void *of, const struct utcp_name *local)
{
    const struct tcpnet_end *e = of;

    return e->listening && local->port == 1001;
}

static struct utcp *accept_one(void *of, const struct utcp_name *local, const struct utcp_name *remote)
{
    struct tcpnet_end *e = of;

    (void)local;
    (void)remote;
    if (e->open)
        return NULL;
    open_end(e, &e->host.attr.tcp);
    return &e->tcp;
}

static const struct utcp_host_user host_user = {.listens = listens, .accept = accept_one};

void tcpnet_init(struct tcpnet *n, uint64_t seed)
{
    memset(n, 0, sizeof(*n));
    make_pattern();
    n->rng.state = seed;
    n->now_us = 1000000 + rng_below(&n->rng, 1000000);
    for (int i = 0; i < 2; i++) {
        n->end[i].sent = calloc(TCPNET_SENTS, sizeof(*n->end[i].sent));
        n->end[i].ooo = calloc(TCPNET_HELDS, sizeof(*n->end[i].ooo));
        n->end[i].rng = rng_fork(&n->rng);
        n->end[i].seed = rng_below(&n->rng, PATTERN);
        n->end[i].path.delay_us = 100;
        assert_true(n->end[i].sent && n->end[i].ooo);
    }
}

void tcpnet_fini(struct tcpnet *n)
{
    for (int i = 0; i < 2; i++) {
        free(n->end[i].sent);
        free(n->end[i].ooo);
        free(n->end[i].seen);
    }
    inflight_fini(&n->inflight);
}

struct utcp_name tcpnet_name(uint32_t end, bool v6)
{
    struct utcp_name name = {.port = (uint16_t)(1000 + end)};

    name.ip[10] = name.ip[11] = v6 ? 0 : 0xff;
    name.ip[0] = v6 ? 0xfd : 0;
    name.ip[12] = v6 ? 0 : 10;
    name.ip[15] = (uint8_t)(1 + end);
    return name;
}

void tcpnet_connect(struct tcpnet *n, const struct utcp_attr *a, const struct utcp_attr *b, bool v6)
{
    struct utcp_name from = tcpnet_name(0, v6), to = tcpnet_name(1, v6);

    for (uint32_t i = 0; i < 2; i++) {
        struct tcpnet_end *e = &n->end[i];
        struct utcp_host_attr attr = {.tcp = i ? *b : *a, .key[0] = rng_next(&n->rng)};
        struct utcp_host_buffers buffers = {e->bucket, e->half, TCPNET_BUCKETS, TCPNET_HALVES};

        utcp_host_init(&e->host, &attr, &buffers, &host_user, e);
        e->expected = n->end[!i].to_send;
        e->expect_seed = n->end[!i].seed;
        e->seen = calloc(1, e->expected / 8 + 1);
        e->listening = i == 1;
    }
    n->end[0].host.attr.tcp.isn = (uint32_t)rng_next(&n->rng);
    n->end[0].host.attr.tcp.stamp_offset = (uint32_t)rng_next(&n->rng);
    open_end(&n->end[0], &n->end[0].host.attr.tcp);
    utcp_connect(&n->end[0].tcp, &from, &to);
    utcp_host_add(&n->end[0].host, &n->end[0].tcp);
}

static void tell_too_big(struct tcpnet *n, uint32_t from, const uint8_t *octets, uint32_t length, uint32_t mtu)
{
    /* The decoding of ICMP messages is checked in the codec's own test; here the engine is called directly. */
    struct utcp_segment s;
    struct utcp_too_big b;

    if (utcp_packet_read(octets, length, true, 0, &s, &b) == UTCP_KIND_SEGMENT)
        utcp_too_big(&n->end[from].tcp, s.seq, mtu);
}

/* As a router does that is congested. */
static void mark_congestion(uint8_t *ip)
{
    uint32_t sum;

    if (ip[0] >> 4 == 6) {
        ip[1] |= ip[1] & 0x20 ? 0x30 : 0;
        return;
    }
    if ((ip[1] & 3) != UTCP_ECT)
        return;
    ip[1]++;
    sum = (uint32_t)(ip[10] << 8 | ip[11]) + 0xfffe; /* RFC 1624 */
    sum = (sum & 0xffff) + (sum >> 16);
    ip[10] = (uint8_t)(sum >> 8);
    ip[11] = (uint8_t)sum;
}

static void arrive_later(struct tcpnet *n, uint32_t from, const uint8_t *octets, uint32_t length)
{
    struct tcpnet_end *e = &n->end[from];
    struct inflight_packet p = {
        .at_us = n->now_us + e->path.delay_us, .length = length, .to = !from, .octets = malloc(length)};

    assert_non_null(p.octets);
    memcpy(p.octets, octets, length);
    if (e->path.mark && rng_below(&e->rng, 100000) < e->path.mark)
        mark_congestion(p.octets);
    if (e->path.rate) {
        uint64_t start_us = e->free_us > n->now_us ? e->free_us : n->now_us;

        e->free_us = start_us + (uint64_t)length * 1000000 / e->path.rate;
        p.at_us += e->free_us - n->now_us;
    }
    if (rng_below(&e->rng, 100000) < e->path.hold_back)
        p.at_us += rng_below(&e->rng, (uint32_t)e->path.held_back_us + 1);
    if (rng_below(&e->rng, 100000) < e->path.spoil) {
        uint32_t bit = rng_below(&e->rng, 8 * length);

        p.octets[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    inflight_push(&n->inflight, p);
}

static void leave(struct tcpnet *n, uint32_t from, const struct utcp_packet *p)
{
    struct tcpnet_end *e = &n->end[from];
    uint8_t octets[65536 + 128];
    uint32_t length = p->head_length;

    memcpy(octets, p->head, p->head_length);
    for (uint32_t i = 0; i < p->spans; i++) {
        memcpy(octets + length, p->span[i].at, p->span[i].length);
        length += p->span[i].length;
    }
    assert_int_equal(length, p->head_length + p->length);
    e->packets++;
    if (n->see)
        n->see(n, from, octets, length);
    if (e->path.mtu && length > e->path.mtu) {
        if (e->path.tells)
            tell_too_big(n, from, octets, length, e->path.mtu);
        return;
    }
    if (rng_below(&e->rng, 100000) < e->path.lose ||
        (e->path.rate && e->path.queue && e->free_us > n->now_us &&
         (e->free_us - n->now_us) * e->path.rate / 1000000 > e->path.queue)) {
        e->lost++;
        return;
    }
    arrive_later(n, from, octets, length);
    if (rng_below(&e->rng, 100000) < e->path.repeat)
        arrive_later(n, from, octets, length);
}

/* Acts as the user of an end: sends more, reads what arrived, finishes. */
static void act(struct tcpnet *n, struct tcpnet_end *e)
{
    uint64_t most = utcp_acked(&e->tcp) + (1 << 22);

    if (!e->open || e->tcp.state == UTCP_CLOSED)
        return;
    if (e->said < e->to_send && e->said < most && e->tcp.state >= UTCP_ESTABLISHED) {
        e->said = most < e->to_send ? most : e->to_send;
        utcp_send(&e->tcp, e->said);
    }
    if (e->said == e->to_send && !e->finished && e->tcp.state >= UTCP_ESTABLISHED) {
        e->finished = true;
        utcp_finish(&e->tcp);
    }
    if (e->tcp.rx.kept && n->now_us >= e->read_at_us) {
        uint64_t octets = e->tcp.rx.kept;

        octets = e->read_most && e->read_most < octets ? e->read_most : octets;
        utcp_release(&e->tcp, octets);
        e->read_at_us = n->now_us + e->read_every_us;
    }
}

static void pump(struct tcpnet *n, uint32_t i)
{
    struct tcpnet_end *e = &n->end[i];
    struct utcp_packet p;

    act(n, e);
    while (utcp_host_output(&e->host, &p, n->now_us))
        leave(n, i, &p);
    while (e->open && utcp_output(&e->tcp, &p, n->now_us))
        leave(n, i, &p);
    if (e->open && e->packets % 64 == 0)
        tcpnet_check(&e->tcp);
}

static uint64_t end_deadline(const struct tcpnet_end *e)
{
    uint64_t at_us = utcp_host_deadline(&e->host), own_us = e->open ? utcp_deadline(&e->tcp) : UTCP_NEVER;

    if (e->open && e->tcp.state != UTCP_CLOSED && e->tcp.rx.kept && e->read_every_us && e->read_at_us < own_us)
        own_us = e->read_at_us;
    return at_us < own_us ? at_us : own_us;
}

void tcpnet_run(struct tcpnet *n, uint64_t until_us, bool (*done)(const struct tcpnet *n))
{
    for (;;) {
        uint64_t at_us;

        for (uint32_t i = 0; i < 2; i++)
            pump(n, i);
        at_us = inflight_next_us(&n->inflight);
        for (int i = 0; i < 2; i++)
            at_us = end_deadline(&n->end[i]) < at_us ? end_deadline(&n->end[i]) : at_us;
        if (at_us > until_us || (done && done(n)))
            break;
        n->now_us = at_us > n->now_us ? at_us : n->now_us;
        while (inflight_next_us(&n->inflight) <= n->now_us) {
            struct inflight_packet p = inflight_pop(&n->inflight);

            utcp_host_input(&n->end[p.to].host, p.octets, p.length, false, n->now_us);
            free(p.octets);
        }
        for (int i = 0; i < 2; i++) {
            utcp_host_timeout(&n->end[i].host, n->now_us);
            if (n->end[i].open)
                utcp_timeout(&n->end[i].tcp, n->now_us);
        }
    }
}

static void check_board(const struct utcp *t)
{
    const struct utcp_scoreboard *b = &t->scoreboard;
    uint64_t flight = 0, at = 0;
    uint32_t lost = 0, sacked = 0;

    for (uint32_t i = 0; i < b->count; i++) {
        const struct utcp_sent *s = utcp_scoreboard_at(b, i);

        assert_true(s->from >= at && s->from + s->length > t->tx.una && s->length);
        at = s->from + s->length;
        sacked += !!(s->flags & UTCP_SENT_SACKED);
        lost += !!(s->flags & UTCP_SENT_LOST);
        flight += s->flags & (UTCP_SENT_SACKED | UTCP_SENT_LOST) ? 0 : s->length;
    }
    assert_true(b->flight == flight && b->lost == lost && b->sacked == sacked);
    assert_true(at <= t->tx.next);
}

void tcpnet_check(const struct utcp *t)
{
    const struct utcp_ooo *h = &t->ooo;
    uint64_t kept = 0, at = t->rx.next;

    if (t->state < UTCP_ESTABLISHED)
        return;
    check_board(t);
    for (uint32_t i = 0; i < h->count; i++) {
        const struct utcp_ooo_range *r = &h->range[h->first + i];

        assert_true(r->from > at && r->to > r->from);
        at = r->to;
        kept += r->kept;
    }
    assert_true(kept == h->kept && at <= t->rx.edge + 1);
    assert_true(t->tx.una <= t->tx.next && t->tx.next <= t->tx.max && t->tx.max <= t->tx.end + 1);
    assert_true(!t->scoreboard.count || t->timer.rto_us != UTCP_NEVER);
}
