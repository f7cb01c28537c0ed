/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stack.c - one end of the simulation, and its host. */
#include "tests/sim/lib/stack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/container.h"
#include "core/sequence.h"
#include "tests/sim/lib/packets.h"
#include "tests/sim/lib/report.h"

enum { STAGE = 2 * (1 << 20) };

enum {
    ALL = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ,
};

static void *buffer_of(size_t octets)
{
    void *p = calloc(1, octets ? octets : 1);

    assert(p);
    return p;
}

static bool is_sequence(const struct stack *s)
{
    return s->attr.wire->numbering == SEG_NUMBERS_SEQUENCE;
}

/* --- memory and queues --------------------------------------------------------------------------------------- */

static void init_regions(struct stack *s)
{
    static const unsigned access[STACK_REGIONS] = {
        [REGION_ALL] = ALL,
        [REGION_ALL_ZERO_BASED] = ALL | RDDP_ACCESS_ZERO_BASED,
        [REGION_LOCAL] = RDDP_ACCESS_LOCAL_WRITE,
        [REGION_READ_ONLY] = RDDP_ACCESS_REMOTE_READ,
        [REGION_WRITE_ONLY] = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE,
        [REGION_HOT] = ALL,
        [REGION_COUNTERS] = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_ATOMIC,
        [REGION_WINDOW_A] = ALL | RDDP_ACCESS_ZERO_BASED,
        [REGION_WINDOW_B] = ALL,
        [REGION_WINDOW_C] = ALL,
    };

    for (int i = 0; i < STACK_REGIONS; i++) {
        uint32_t most = i < REGION_COUNTERS ? s->attr.region_octets : 4096;
        unsigned based = is_sequence(s) ? RDDP_ACCESS_ZERO_BASED : 0; /* offsets on this wire have 32 bits */

        region_init(&s->region[i], &s->mrs, &s->pd, rng_between(&s->rng, most / 2, most), access[i] | based, &s->rng);
        s->region[i].hot = i == REGION_HOT || i == REGION_COUNTERS;
        s->region[i].window = i >= REGION_WINDOW_A;
    }
}

static void on_event(struct cq *cq)
{
    struct stack *s = container_of(cq, struct stack, recv_cq);

    s->events++;
}

static void init_queues(struct stack *s)
{
    struct qp_attr qp = s->attr.qp;

    for (int i = 0; i < 2; i++) {
        s->ring[i] = buffer_of(STACK_CQE * sizeof(struct cq_entry));
        cq_init(i ? &s->recv_cq : &s->send_cq, s->ring[i], STACK_CQE, s->attr.cqe, i ? on_event : NULL);
    }
    if (s->attr.shared) {
        s->srq_buffer = buffer_of(rq_size(s->attr.srq_depth, qp.recv_sge));
        rq_init(&s->srq, &s->pd, s->attr.srq_depth, qp.recv_sge, s->srq_buffer);
        qp.srq = &s->srq;
        qp.recv_depth = qp.recv_sge = 0;
    }
    qp.pd = &s->pd;
    qp.mrs = &s->mrs;
    qp.send_cq = &s->send_cq;
    qp.recv_cq = &s->recv_cq;
    s->qp_buffer = buffer_of(qp_size(&qp));
    qp_init(&s->qp, &qp, s->qp_buffer);
    if (is_sequence(s)) {
        uint32_t window = 1 + qp.window;

        s->sequence_buffer = buffer_of(qp_sequence_size(&s->qp, window));
        qp_sequence(&s->qp, (uint32_t)rng_next(&s->rng), window, s->sequence_buffer);
    }
}

void stack_init(struct stack *s, const struct stack_attr *attr, uint64_t seed)
{
    *s = (struct stack){.attr = *attr, .rng = {seed}};
    mr_table_init(&s->mrs, buffer_of(mr_slots_size(STACK_SLOTS)), STACK_SLOTS);
    init_regions(s);
    init_queues(s);
    s->out_buffer = malloc(OUT_BUFFER);
    s->stage = malloc(STAGE);
    assert(s->out_buffer && s->stage);
}

void stack_fini(struct stack *s)
{
    if (!s->detached)
        qp_fini(&s->qp);
    for (int i = 0; i < STACK_REGIONS; i++)
        region_fini(&s->region[i]);
    free(s->mrs.slots);
    free(s->ring[0]);
    free(s->ring[1]);
    free(s->qp_buffer);
    free(s->srq_buffer);
    free(s->sequence_buffer);
    free(s->out_buffer);
    free(s->stage);
    packets_fini(s);
}

void stack_start(struct stack *s, bool active, struct link *tx, struct link *rx, uint64_t now_us)
{
    s->tx = tx;
    s->rx = rx;
    s->attr.conn.connection_id = rng_next(&s->rng);
    if (!active)
        conn_init_passive(&s->conn, s->attr.wire, &s->attr.conn, now_us);
    else if (conn_init_active(&s->conn, s->attr.wire, &s->attr.conn, &s->qp, "request", is_sequence(s) ? 0 : 7, now_us))
        report_failure("conn_init_active() refuses");
    stack_pump(s, now_us);
}

void stack_detach(struct stack *s, uint64_t now_us)
{
    const struct fault_note none = {.fault = FAULT_NONE};
    bool met = s->conn.life.qp;

    conn_detach(&s->conn, now_us);
    if (s->conn.life.qp)
        report_failure("a detached connection holds its queue pair");
    if (!met)
        qp_fail(&s->qp, &none);
    s->detached = true;
}

/* Later accesses are found by a sanitizer or by their effects. */
void stack_destroy_qp(struct stack *s)
{
    qp_fini(&s->qp);
    cq_forget(&s->send_cq, s->qp.attr.number);
    cq_forget(&s->recv_cq, s->qp.attr.number);
    free(s->qp_buffer);
    s->qp_buffer = NULL;
    memset(&s->qp, 0xdd, sizeof(s->qp));
}

void stack_deregister(struct stack *s, struct region *r)
{
    mr_remove(&s->mrs, &r->mr);
    if (s->conn.life.out)
        out_own_invalid(s->conn.life.out);
    if (r->mr.sending)
        report_failure("a region is still lent after out_own_invalid()");
    r->removed = true;
}

/* --- the host ------------------------------------------------------------------------------------------------ */

static void eat(struct stack *s, uint64_t now_us)
{
    size_t eaten = conn_rx_straight(&s->conn, s->stage + s->stage_from, s->staged);

    if (!s->conn.is_straight)
        eaten += conn_rx(&s->conn, s->stage + s->stage_from + eaten, s->staged - eaten, now_us);
    if (eaten > s->staged || (s->staged - eaten > WIRE_UNIT_MAX && !s->conn.held))
        report_failure("conn_rx() eats %zu of %zu octets", eaten, s->staged);
    s->stage_from += eaten;
    s->staged -= eaten;
}

/* Reads the rest of a large payload straight to its place. Returns false if it has not all arrived; then nothing behind
 * it has either. */
static bool receive_apart(struct stack *s, uint64_t now_us)
{
    uint32_t staged = (uint32_t)s->staged;
    struct conn_place gap;
    size_t n;

    if (!s->attr.apart || !staged ||
        !conn_read_to_place(&s->conn, s->stage + s->stage_from, &staged, s->attr.apart, &gap, now_us))
        return true;
    if (staged > s->staged)
        report_failure("conn_read_to_place() wants %u of %zu octets", staged, s->staged);
    s->apart += s->staged - staged;
    s->staged = staged;
    n = link_receive(s->rx, gap.at, gap.octets, now_us);
    conn_filled(&s->conn, n);
    s->apart += n;
    return n == gap.octets;
}

/* Reads behind what was left, like a large read of a socket; sometimes moves what was left to the front. */
static void receive(struct stack *s, uint64_t now_us)
{
    size_t n;

    if (s->stage_from + s->staged > STAGE / 2) {
        memmove(s->stage, s->stage + s->stage_from, s->staged);
        s->stage_from = 0;
    }
    if (!receive_apart(s, now_us))
        return;
    n = link_receive(s->rx, s->stage + s->stage_from + s->staged, STAGE - s->stage_from - s->staged, now_us);
    s->staged += n;
    eat(s, now_us);
}

/* Sends one unit per packet, as many as the link accepts. Returns the octets. */
static size_t send_packets(struct stack *s, size_t space, uint64_t now_us)
{
    struct out_cursor at = {0};
    struct out_unit unit;
    size_t sent = 0;

    while (!link_is_full(s->tx) && out_next_unit(&s->out, &at, &unit)) {
        size_t n = unit.octets < space - sent ? unit.octets : space - sent;

        if (!n)
            break;
        link_send(s->tx, unit.span, n, now_us);
        sent += n;
    }
    return sent;
}

/* Every second time as for what was posted while nothing else happened. */
static void fill(struct stack *s, uint64_t now_us)
{
    bool is_straight = now_us % 2 && conn_sends_straight(&s->conn);

    if (!s->conn.life.out) {
        out_init(&s->out, s->out_buffer);
        s->conn.life.out = &s->out;
    }
    if (is_straight) {
        conn_fill_segments(&s->conn);
        conn_check(&s->conn, now_us);
    } else {
        conn_fill(&s->conn, now_us);
    }
    s->straight += is_straight;
}

static void send(struct stack *s, uint64_t now_us)
{
    struct out *out = &s->out;
    size_t n = link_takes(s->tx);

    fill(s, now_us);
    n = n < out->octets ? n : out->octets;
    if (!n && out->octets)
        s->blocked_until_us = now_us + 1 + rng_size(&s->rng, 2000);
    if (!n)
        return;
    if (s->attr.packets)
        n = send_packets(s, n, now_us);
    else
        link_send(s->tx, out->span + out->first, n, now_us);
    conn_sent(&s->conn, n, now_us);
}

/* The socket is closed: octets to it are lost, and it can send nothing more. */
static void close_link(struct stack *s, uint64_t now_us)
{
    if (s->conn.life.out)
        out_drop(s->conn.life.out);
    s->conn.life.out = NULL;
    s->over = true;
    s->rx->deaf = true;
    if (!s->tx->ended)
        link_end(s->tx, now_us);
}

static bool may_go_on(struct stack *s, uint64_t now_us)
{
    unsigned wants = conn_wants(&s->conn, now_us);

    if (wants & CONN_AGAIN && s->packets)
        packets_catch_up(s, now_us);
    else if (wants & CONN_AGAIN)
        eat(s, now_us);
    else if (wants & CONN_TX && !link_is_full(s->tx) && s->blocked_until_us <= now_us)
        send(s, now_us);
    else
        return false;
    return true;
}

void stack_pump(struct stack *s, uint64_t now_us)
{
    struct conn *c = &s->conn;
    unsigned turns = 0;

    if (s->over)
        return;
    conn_check(c, now_us);
    while (may_go_on(s, now_us))
        if (turns++ > 100000)
            report_failure("the connection wants to send and says nothing");
    if (conn_wants(c, now_us) & CONN_FIN) {
        link_end(s->tx, now_us);
        conn_fin(c, now_us);
    }
    if (c->life.out && !c->life.out->octets)
        c->life.out = NULL;
    s->told |= c->life.news;
    c->life.news = 0;
    if (c->life.state == CONN_OVER)
        close_link(s, now_us);
}

static bool may_receive(const struct stack *s, uint64_t now_us)
{
    return !s->over && conn_wants(&s->conn, now_us) & CONN_RX;
}

uint64_t stack_next_us(const struct stack *s, uint64_t now_us)
{
    uint64_t at, next;

    if (s->over)
        return UINT64_MAX;
    next = conn_deadline(&s->conn, now_us);
    at = !may_receive(s, now_us) ? UINT64_MAX : s->packets ? packets_next_us(s) : link_next_us(s->rx);
    next = at < next ? at : next;
    if (conn_wants(&s->conn, now_us) & CONN_TX && !link_is_full(s->tx) && s->blocked_until_us < next)
        next = s->blocked_until_us;
    return next;
}

void stack_turn(struct stack *s, uint64_t now_us)
{
    if (s->over)
        return;
    if (conn_deadline(&s->conn, now_us) <= now_us)
        conn_tick(&s->conn, now_us);
    packets_begin(s);
    if (s->packets) {
        if (may_receive(s, now_us))
            packets_turn(s, now_us);
        stack_pump(s, now_us);
        return;
    }
    if (may_receive(s, now_us) && link_has(s->rx, now_us))
        receive(s, now_us);
    if (may_receive(s, now_us) && link_is_at_end(s->rx, now_us))
        conn_rx_end(&s->conn, s->staged, now_us);
    stack_pump(s, now_us);
}
