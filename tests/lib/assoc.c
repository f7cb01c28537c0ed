/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc.c - the SCTP provider in memory: lost messages arrive late, reordered ones early. */
#include "tests/lib/assoc.h"

#include <stdlib.h>
#include <string.h>

enum { DELAY_US = 1000, RTO_US = 20000, FIRST_TSN = 0xfffffff0, IDLE_STEPS = 2000, READS = 4 };

static const struct life_limits limits = {.startup_us = 10000000, .stall_us = 10000000, .close_us = 5000000};

static void open_side(struct net *n, unsigned i, enum sctpddp_adaptation adaptation, const struct qp_attr *attr)
{
    struct net_side *s = &n->side[i];
    const struct assoc_attr own = {
        .adaptation = adaptation,
        .ird = READS,
        .ord = READS,
        .seed = n->seed + i,
        .limits = limits,
    };

    memset(s, 0, sizeof(*s));
    side_init(&s->side, attr);
    s->inbox = calloc(NET_MESSAGES, sizeof(*s->inbox));
    assert_non_null(s->inbox);
    s->tsn = FIRST_TSN;
    if (i == 0)
        assert_int_equal(assoc_init_active(&s->assoc, &own, s->slots, &s->side.qp, NULL, 0, n->now_us), 0);
    else
        assoc_init_passive(&s->assoc, &own, s->slots, n->now_us);
}

void net_init(struct net *n, enum sctpddp_adaptation active, enum sctpddp_adaptation passive,
              const struct qp_attr *attr, uint32_t seed)
{
    struct qp_attr usual;

    memset(n, 0, sizeof(*n));
    engine_init(&n->engine);
    usual = side_attr(&n->engine);
    n->seed = seed ? seed : 1;
    n->now_us = 1;
    open_side(n, 0, active, attr ? attr : &usual);
    open_side(n, 1, passive, attr ? attr : &usual);
}

void net_fini(struct net *n)
{
    for (unsigned i = 0; i < 2; i++) {
        free(n->side[i].inbox);
        side_fini(&n->side[i].side);
    }
    engine_fini(&n->engine);
}

/* --- one direction ------------------------------------------------------------------------------------------- */

static struct net_message *free_message(struct net_side *s)
{
    struct net_message *m = s->inbox;

    while (m->used)
        assert_true(++m < s->inbox + NET_MESSAGES);
    if (m == s->inbox + s->inbox_top)
        s->inbox_top++;
    return m;
}

static void submit(struct net *n, unsigned from, const struct assoc_chunk *chunk)
{
    struct net_side *s = &n->side[from];
    struct net_message *m = free_message(&n->side[!from]);

    *m = (struct net_message){.used = true, .tsn = s->tsn++, .ppid = chunk->ppid, .stream = chunk->stream};
    memcpy(m->data, chunk->head, chunk->head_length);
    m->octets = chunk->head_length;
    for (uint32_t i = 0; i < chunk->emit.spans; i++) {
        assert_true(chunk->emit.span[i].length <= NET_PAYLOAD - m->octets);
        memcpy(m->data + m->octets, chunk->emit.span[i].at, chunk->emit.span[i].length);
        m->octets += chunk->emit.span[i].length;
    }
    m->at_us = n->now_us + DELAY_US;
    s->sent++;
    if (chance(&n->seed) % 100 < n->loss_percent) {
        m->at_us += RTO_US + chance(&n->seed) % RTO_US;
        s->lost++;
    } else if (chance(&n->seed) % 100 < n->reorder_percent) {
        m->at_us += chance(&n->seed) % (3 * DELAY_US);
    }
}

static void take_signals(struct net *n, unsigned i)
{
    struct net_side *s = &n->side[i];
    struct assoc_signal signal;

    while (assoc_signal(&s->assoc, &signal, n->now_us))
        s->signals[s->signal_count++ % 256] = signal;
}

static void take_news(struct net *n, unsigned i)
{
    struct net_side *s = &n->side[i];

    s->news |= s->assoc.life.news;
    s->assoc.life.news = 0;
    take_signals(n, i);
}

/* Does what the association asks its provider for. */
static bool serve(struct net *n, unsigned i)
{
    struct net_side *s = &n->side[i];
    struct assoc_chunk chunk;
    bool busy = false;

    assoc_check(&s->assoc, n->now_us);
    while (assoc_wants(&s->assoc) & ASSOC_TX && assoc_emit(&s->assoc, &chunk, n->now_us)) {
        submit(n, i, &chunk);
        assoc_sent(&s->assoc, chunk.end, n->now_us);
        busy = true;
    }
    if (assoc_wants(&s->assoc) & ASSOC_FIN) {
        s->shut = true;
        assoc_fin(&s->assoc, n->now_us);
        busy = true;
    }
    if (assoc_wants(&s->assoc) & ASSOC_ABORT) {
        s->aborted = true;
        s->reason_length = assoc_reason(&s->assoc, s->reason);
        assoc_lost(&s->assoc, FAULT_LOST);
        busy = true;
    }
    take_news(n, i);
    return busy;
}

static void deliver(struct net *n, unsigned i, struct net_message *m)
{
    struct net_side *s = &n->side[i];
    const struct assoc_message message = {
        .data = m->data,
        .octets = m->octets,
        .tsn = m->tsn,
        .tsns = m->tsns,
        .ppid = m->ppid,
        .stream = m->stream,
        .name = (uint32_t)(m - s->inbox) + 1,
        .whole = m->tsns <= 1,
    };

    m->kept = assoc_rx(&s->assoc, &message, n->now_us) == ASSOC_KEPT;
    m->used = m->kept;
    while (s->inbox_top && !s->inbox[s->inbox_top - 1].used)
        s->inbox_top--;
    take_signals(n, i);
}

static void deliver_due(struct net *n, unsigned i)
{
    uint32_t name;

    while (assoc_due(&n->side[i].assoc, &name))
        deliver(n, i, &n->side[i].inbox[name - 1]);
}

/* Delivers the next message that has arrived, the earliest first. */
static bool receive(struct net *n, unsigned i)
{
    struct net_side *s = &n->side[i];
    struct net_message *next = NULL;

    for (struct net_message *m = s->inbox; m < s->inbox + s->inbox_top; m++)
        if (m->used && !m->kept && m->at_us <= n->now_us && (!next || m->at_us < next->at_us))
            next = m;
    if (!next)
        return false;
    deliver(n, i, next);
    deliver_due(n, i);
    return true;
}

static bool is_under_way(const struct net_side *s)
{
    for (const struct net_message *m = s->inbox; m < s->inbox + s->inbox_top; m++)
        if (m->used && !m->kept)
            return true;
    return false;
}

/* An ABORT overtakes messages in flight; a shutdown comes when all of them have arrived. */
static bool hear_end(struct net *n, unsigned i)
{
    struct net_side *s = &n->side[i], *peer = &n->side[!i];

    if (peer->aborted && !s->told_abort) {
        s->told_abort = true;
        assoc_peer_aborted(&s->assoc, peer->reason, peer->reason_length, n->now_us);
        return true;
    }
    if (peer->shut && !s->told_end && !is_under_way(s)) {
        s->told_end = true;
        assoc_peer_ended(&s->assoc, n->now_us);
        return true;
    }
    return false;
}

bool net_step(struct net *n)
{
    bool busy = false;

    for (unsigned i = 0; i < 2; i++) {
        deliver_due(n, i);
        busy |= serve(n, i);
    }
    n->now_us += NET_STEP_US;
    for (unsigned i = 0; i < 2; i++) {
        while (receive(n, i))
            busy = true;
        busy |= hear_end(n, i);
        assoc_tick(&n->side[i].assoc, n->now_us);
        take_news(n, i);
    }
    return busy;
}

void net_run(struct net *n)
{
    for (unsigned idle = 0; idle < IDLE_STEPS; idle++) {
        if (net_step(n))
            idle = 0;
        if (!is_under_way(&n->side[0]) && !is_under_way(&n->side[1]) && idle > 2)
            return;
    }
}

/* --- set-up -------------------------------------------------------------------------------------------------- */

void net_up(struct net *n)
{
    for (unsigned i = 0; i < 2; i++)
        assoc_up(&n->side[i].assoc, n->side[!i].assoc.attr.adaptation, FIRST_TSN, NET_PAYLOAD, n->now_us);
}

void net_open(struct net *n)
{
    struct net_side *passive = &n->side[1];

    net_up(n);
    net_run(n);
    assert_int_equal(passive->assoc.life.state, CONN_WAIT_ANSWER);
    assert_true(passive->news & CONN_NEWS_REQUEST);
    assert_int_equal(assoc_accept(&passive->assoc, &passive->side.qp, READS, READS, NULL, 0), 0);
    net_run(n);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(n->side[i].assoc.life.state, CONN_READY);
        assert_true(n->side[i].news & CONN_NEWS_ESTABLISHED);
    }
}

/* --- by hand ------------------------------------------------------------------------------------------------- */

enum assoc_verdict net_give(struct net *n, unsigned side, const void *data, uint32_t octets, uint32_t tsn,
                            uint16_t stream, bool whole)
{
    struct net_side *s = &n->side[side];
    struct net_message *m = free_message(s);
    struct assoc_message message = {
        .octets = octets, .tsn = tsn, .tsns = n->tsns, .stream = stream, .whole = whole, .ppid = 77};
    enum assoc_verdict verdict;

    *m = (struct net_message){.octets = octets, .tsn = tsn, .tsns = n->tsns, .stream = stream};
    assert_true(octets <= NET_PAYLOAD);
    if (octets)
        memcpy(m->data, data, octets);
    message.data = m->data;
    message.name = (uint32_t)(m - s->inbox) + 1;
    verdict = assoc_rx(&s->assoc, &message, n->now_us);
    m->used = m->kept = verdict == ASSOC_KEPT;
    take_signals(n, side);
    deliver_due(n, side);
    serve(n, side);
    return verdict;
}

enum assoc_verdict net_chunk(struct net *n, unsigned side, enum sctpddp_adaptation sender,
                             const struct sctpddp_chunk *chunk)
{
    uint8_t p[NET_PAYLOAD];
    size_t head = sctpddp_encode(sender, chunk, p);

    assert_true(chunk->length <= NET_PAYLOAD - head);
    if (chunk->length)
        memcpy(p + head, chunk->data, chunk->length);
    return net_give(n, side, p, (uint32_t)head + chunk->length, FIRST_TSN + chunk->aws, 0, true);
}

enum assoc_verdict net_neg(struct net *n, unsigned side, uint32_t aws, const struct neg *neg)
{
    uint8_t p[NET_PAYLOAD];
    size_t head = neg_encode(neg, p);
    struct sctpddp_chunk chunk = {.aws = aws, .data = p};

    assert_true(neg->data_length <= NET_PAYLOAD - SCTPDDP_RDMA_HEAD - head);
    if (neg->data_length)
        memcpy(p + head, neg->data, neg->data_length);
    chunk.length = (uint32_t)head + neg->data_length;
    return net_chunk(n, side, SCTPDDP_RDMA_AND_NEGOTIATION, &chunk);
}

void net_expect_abort(struct net *n, unsigned side, enum fault fault)
{
    struct net_side *s = &n->side[side];
    struct wire_blame blame;

    serve(n, side);
    assert_int_equal(s->assoc.life.note.fault, fault);
    assert_true(s->aborted);
    assert_int_equal(s->assoc.life.state, CONN_OVER);
    assert_int_equal(s->side.qp.state, QP_ERROR);
    neg_explain(s->reason, s->reason_length, &blame);
    assert_int_not_equal(blame.code & 0xff, 0xff);
    assert_int_equal(assoc_wants(&s->assoc), 0);
}
