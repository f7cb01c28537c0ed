/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpnet.c - packets in a heap by arrival time, and ends that check every message and their own counters. */
#include "tests/lib/sctpnet.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PATTERN = 4093, PORT = 700, TYPE_AT = 12, SHUTDOWN_ACK = 8, ADDRESS = 7, CHECK_EVERY = 16 };

/* As if each end had sent almost 2^32 packets before. */
#define MANY_PACKETS 0xffffffc0

static uint8_t pattern[PATTERN + OSCTP_PACKET_MAX];

/* --- messages ------------------------------------------------------------------------------------------------ */

/* Octets of message `i` of an end. */
static uint32_t size_of(const struct sctpnet_end *e, uint32_t i)
{
    struct rng r = {e->attr.tsn + 0x10001ULL * i};

    return e->same ? e->message_max : 1 + rng_size(&r, e->message_max - 1);
}

static const uint8_t *octets_of(const struct sctpnet_end *e, uint32_t i)
{
    return pattern + (e->attr.tsn + i * 31) % PATTERN;
}

static bool take(void *of, const struct osctp_data *data)
{
    struct sctpnet_end *e = of;
    const struct sctpnet_end *peer = e->peer;
    uint32_t i = data->tsn - peer->attr.tsn;

    if (i >= peer->submitted || e->seen[i] || data->octets != size_of(peer, i) || data->ppid != i ||
        data->stream != i % SCTPNET_STREAMS || !data->first || !data->last || !data->unordered ||
        memcmp(data->data, octets_of(peer, i), data->octets) != 0)
        fail_msg("message %u of %u: not what was sent, or twice", i, peer->submitted);
    if (rng_below(&e->rng, 100000) < e->refuse)
        return false;
    e->seen[i] = 1;
    e->taken++;
    e->octets += data->octets;
    while (e->whole < peer->to_send && e->seen[e->whole])
        e->whole++;
    return true;
}

static uint8_t *lend(void *of)
{
    struct sctpnet_end *e = of;

    if (rng_below(&e->rng, 100000) < e->scarce)
        return NULL;
    e->lent++;
    return malloc(e->attr.packet_max);
}

static void put_back(void *of, uint8_t *packet)
{
    struct sctpnet_end *e = of;

    assert_true(packet && e->lent);
    e->lent--;
    free(packet);
}

static void skip_stream(void *of, uint16_t stream)
{
    (void)of;
    fail_msg("stream %u was never used", stream);
}

static const struct osctp_user user = {take, skip_stream, lend, put_back};

/* --- the path ------------------------------------------------------------------------------------------------ */

static void arrive_later(struct sctpnet *n, struct sctpnet_end *e, const uint8_t *p, uint32_t octets)
{
    uint64_t at_us = n->now_us + e->path.delay_us;
    uint8_t *copy = malloc(octets);

    assert_non_null(copy);
    memcpy(copy, p, octets);
    if (e->path.rate) {
        uint64_t start_us = e->free_us > n->now_us ? e->free_us : n->now_us;

        e->free_us = start_us + octets * UINT64_C(1000000) / e->path.rate;
        at_us += e->free_us - n->now_us;
    }
    if (rng_below(&e->rng, 100000) < e->path.hold_back)
        at_us += rng_below(&e->rng, (uint32_t)e->path.held_back_us + 1);
    inflight_push(&n->inflight,
                  (struct inflight_packet){.at_us = at_us, .length = octets, .to = e == &n->end[0], .octets = copy});
}

static void leave(struct sctpnet *n, struct sctpnet_end *e, const uint8_t *p, uint32_t octets)
{
    assert_true(octets <= e->attr.packet_max || octets <= OSCTP_ANSWER);
    assert_int_equal(octets % 4, 0);
    e->packets++;
    if (rng_below(&e->rng, 100000) < e->path.lose ||
        (e->path.rate && e->free_us > n->now_us && (e->free_us - n->now_us) * e->path.rate / 1000000 > e->path.queue)) {
        e->lost++;
        return;
    }
    arrive_later(n, e, p, octets);
    if (rng_below(&e->rng, 100000) < e->path.repeat)
        arrive_later(n, e, p, octets);
}

/* --- checks -------------------------------------------------------------------------------------------------- */

/* Counts again what the engine counts, and compares what it believes of its peer with the truth. */
static void check_end(const struct sctpnet_end *e)
{
    const struct osctp *o = &e->o;
    uint32_t flight = 0, lost = 0, queued = 0, tsn = 0;

    for (uint32_t i = o->tx.first; i != o->tx.end; i++) {
        const struct osctp_sent *sent = &o->tx.sent[i % OSCTP_PACKETS];

        assert_true(i == o->tx.first || sent->tsn == tsn);
        tsn = sent->tsn + sent->chunks;
        queued += sent->octets;
        if (i - o->tx.first >= o->tx.unsent - o->tx.first) {
            assert_false(sent->flying || sent->number);
            continue;
        }
        assert_false(sent->flying && sent->gap_acked);
        flight += sent->flying ? sent->payload : 0;
        lost += !sent->flying && !sent->gap_acked;
    }
    assert_int_equal(flight, o->congestion.flight);
    assert_int_equal(lost, o->tx.lost);
    assert_int_equal(queued, o->tx.queued);
    assert_int_equal(o->tx.next - e->attr.tsn, e->submitted);
    assert_true(o->tx.cum + 1 - e->attr.tsn <= e->peer->whole);
    assert_true(o->tx.end - o->tx.first <= OSCTP_PACKETS);
}

/* Sends what it can, within the windows of the peer and the path. */
static void drain(struct sctpnet *n, struct sctpnet_end *e)
{
    const struct osctp_congestion *c = &e->o.congestion;
    const uint8_t *p;
    uint32_t octets, unsent = e->o.tx.unsent, flight = c->flight, sent = 0;

    while (e->begun && osctp_output(&e->o, &p, &octets, n->now_us)) {
        if (c->flight > flight) {
            assert_true(!flight || flight < c->window);
            if (e->o.tx.unsent != unsent)
                assert_true(!flight || c->flight <= e->o.tx.window);
        }
        flight = c->flight;
        unsent = e->o.tx.unsent;
        assert_true(packet_is_sound(p, octets));
        leave(n, e, p, octets);
        assert_true(++sent <= 2 * OSCTP_PACKETS);
    }
    if (e->begun && e->o.state != OSCTP_CLOSED && e->checks++ % CHECK_EVERY == 0)
        check_end(e);
}

/* --- the ends ------------------------------------------------------------------------------------------------ */

static void submit(struct sctpnet *n, struct sctpnet_end *e)
{
    e->next_us = n->now_us + e->pause_us;
    for (uint32_t i = 0; i < e->burst && e->submitted < e->to_send; i++) {
        uint32_t octets = size_of(e, e->submitted), first = octets / 3;
        const uint8_t *at = octets_of(e, e->submitted);
        struct span span[2] = {{at, first}, {at + first, octets - first}};
        int error;

        error = osctp_submit(&e->o, span, 2, (uint16_t)(e->submitted % SCTPNET_STREAMS), e->submitted);
        assert_true(!error || error == -EAGAIN || (error == -ENOMEM && e->scarce));
        if (error == -ENOMEM)
            e->next_us = n->now_us + e->pause_us + 100;
        if (error)
            break;
        e->submitted++;
    }
}

static void move_window(struct sctpnet *n, struct sctpnet_end *e)
{
    e->window.at_us = n->now_us + 1 + rng_below(&e->rng, (uint32_t)e->window.every_us);
    if (n->now_us >= e->window.until_us) {
        e->window.every_us = 0;
        osctp_window(&e->o, e->attr.window);
    } else {
        osctp_window(&e->o, rng_one_in(&e->rng, 4) ? 0 : rng_size(&e->rng, e->attr.window));
    }
}

static bool all_submitted(const struct sctpnet *n)
{
    return n->end[0].submitted == n->end[0].to_send && n->end[1].submitted == n->end[1].to_send;
}

static void act(struct sctpnet *n, struct sctpnet_end *e)
{
    if (!e->begun || !e->o.up || e->o.state == OSCTP_CLOSED)
        return;
    e->o.batches = n->batches;
    if (e->submitted < e->to_send && n->now_us >= e->next_us && osctp_has_space(&e->o))
        submit(n, e);
    if (e->window.every_us && n->now_us >= e->window.at_us)
        move_window(n, e);
    if (e->shuts && all_submitted(n) && e->o.state == OSCTP_ESTABLISHED)
        osctp_shutdown(&e->o, n->now_us);
}

static uint64_t end_deadline(const struct sctpnet_end *e)
{
    uint64_t at_us = e->begun ? osctp_deadline(&e->o) : OSCTP_NEVER;

    if (!e->begun || !e->o.up || e->o.state == OSCTP_CLOSED)
        return at_us;
    if (e->submitted < e->to_send && osctp_has_space(&e->o) && e->next_us < at_us)
        at_us = e->next_us;
    if (e->window.every_us && e->window.at_us < at_us)
        at_us = e->window.at_us;
    return at_us;
}

/* Only end 1 listens. What is out of the blue is answered if the answer ends the peer's wait. */
static void go_to_nobody(struct sctpnet *n, struct sctpnet_end *e, const uint8_t *p, uint32_t octets)
{
    uint8_t reply[OSCTP_ANSWER];
    struct osctp_cookie cookie;
    uint32_t length = 0;

    if (!e->begun && e == &n->end[1])
        length = osctp_answer(&e->attr, n->key, ADDRESS, p, octets, reply, n->now_us);
    if (!e->begun && osctp_read_echo(n->key, ADDRESS, p, octets, &cookie)) {
        osctp_accept(&e->o, &e->attr, &cookie, e->sent, &user, e, n->now_us);
        e->o.tx.number = MANY_PACKETS;
        e->begun = true;
        osctp_input(&e->o, p, octets, n->now_us);
    } else if (!length && p[TYPE_AT] == SHUTDOWN_ACK) {
        length = osctp_refuse(p, octets, reply);
    }
    if (length)
        leave(n, e, reply, length);
}

static void arrive(struct sctpnet *n, const struct inflight_packet *p)
{
    struct sctpnet_end *e = &n->end[p->to];

    if (e->begun && e->o.state != OSCTP_CLOSED)
        osctp_input(&e->o, p->octets, p->length, n->now_us);
    else
        go_to_nobody(n, e, p->octets, p->length);
    if (++e->waiting >= e->batch || osctp_urgent(&e->o)) {
        drain(n, e);
        e->waiting = 0;
    }
}

/* --- the run ------------------------------------------------------------------------------------------------- */

void sctpnet_init(struct sctpnet *n, uint64_t seed)
{
    struct rng r = {1};

    memset(n, 0, sizeof(*n));
    rng_fill(&r, pattern, PATTERN);
    for (uint32_t i = PATTERN; i < sizeof(pattern); i++)
        pattern[i] = pattern[i - PATTERN];
    n->seed = n->rng.state = seed;
    n->key[0] = rng_next(&n->rng);
    n->began_us = n->now_us = 1000000 + rng_below(&n->rng, 1000000);
    for (uint32_t i = 0; i < 2; i++) {
        struct sctpnet_end *e = &n->end[i];

        e->rng = rng_fork(&n->rng);
        e->peer = &n->end[!i];
        e->path.delay_us = 100;
        e->batch = 1;
        e->burst = 64;
        e->shuts = true;
        e->message_max = 1;
        e->attr = (struct osctp_attr){
            .local_port = (uint16_t)(PORT + i),
            .peer_port = (uint16_t)(PORT + !i),
            .packet_max = 1484,
            .streams = SCTPNET_STREAMS,
            .window = 1 << 20,
            .store = 1 << 20,
            .init_retries = 30,
            .init_max_us = 3000000,
            .tag = (uint32_t)rng_next(&n->rng) | 1,
            .tsn = (uint32_t)rng_next(&n->rng),
        };
        e->sent = calloc(OSCTP_PACKETS, sizeof(*e->sent));
        assert_non_null(e->sent);
    }
}

void sctpnet_fini(struct sctpnet *n)
{
    for (int i = 0; i < 2; i++) {
        if (n->end[i].begun)
            osctp_free(&n->end[i].o);
        assert_int_equal(n->end[i].lent, 0);
        free(n->end[i].sent);
        free(n->end[i].seen);
    }
    inflight_fini(&n->inflight);
}

static bool is_over(const struct sctpnet *n)
{
    return n->end[0].begun && n->end[1].begun && n->end[0].o.state == OSCTP_CLOSED && n->end[1].o.state == OSCTP_CLOSED;
}

/* Moves to the next moment when something happens. Returns false if there is none before `until_us`. */
static bool pass_time(struct sctpnet *n, uint64_t until_us)
{
    uint64_t at_us = inflight_next_us(&n->inflight);

    for (int i = 0; i < 2; i++)
        at_us = end_deadline(&n->end[i]) < at_us ? end_deadline(&n->end[i]) : at_us;
    if (at_us > until_us)
        return false;
    n->still = at_us > n->now_us ? 0 : n->still + 1;
    assert_true(n->still < 10000); /* else time-outs never end */
    n->now_us = at_us > n->now_us ? at_us : n->now_us;
    return true;
}

void sctpnet_run(struct sctpnet *n, uint64_t until_us)
{
    for (int i = 0; i < 2; i++) {
        n->end[i].seen = calloc(1, n->end[!i].to_send + 1U);
        assert_non_null(n->end[i].seen);
    }
    osctp_connect(&n->end[0].o, &n->end[0].attr, n->end[0].sent, &user, &n->end[0], n->now_us);
    n->end[0].o.tx.number = MANY_PACKETS;
    n->end[0].begun = true;
    for (;;) {
        for (int i = 0; i < 2; i++) {
            act(n, &n->end[i]);
            drain(n, &n->end[i]);
        }
        if (is_over(n) || !pass_time(n, until_us))
            break;
        while (inflight_next_us(&n->inflight) <= n->now_us) {
            struct inflight_packet p = inflight_pop(&n->inflight);

            arrive(n, &p);
            free(p.octets);
        }
        for (int i = 0; i < 2; i++) {
            if (n->end[i].begun && osctp_deadline(&n->end[i].o) <= n->now_us)
                osctp_timeout(&n->end[i].o, n->now_us);
        }
    }
}
