/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* draw.c - everything about a run that is decided at random before it begins. */
#include "tests/sim/lib/ending.h"
#include "tests/sim/lib/report.h"
#include "tests/sim/lib/sim.h"

/* The approximate number of moves through the narrowest place of a run, and the greatest number of octets, if every
 * request had the greatest size. */
enum { MOVES = 60000, OCTETS = 1 << 28 };

/* Longer than any progress takes: the largest FPDU, octet by octet, with the largest latency. */
#define PATIENCE_US 10000000000ULL

static uint32_t draw_emss(struct rng *r)
{
    static const uint32_t usual[] = {200, 536, 1220, 1440, 1448, 1460, 4096, 8948, 65483};

    return rng_one_in(r, 2) ? usual[rng_below(r, sizeof(usual) / sizeof(usual[0]))] : rng_between(r, 200, 65483);
}

static struct conn_attr draw_conn(struct rng *r)
{
    return (struct conn_attr){
        .crc = rng_one_in(r, 2),
        .markers = rng_one_in(r, 2),
        .revision = (uint8_t)rng_between(r, 1, 2),
        .peer_to_peer = rng_one_in(r, 2),
        .immediate = rng_one_in(r, 8),
        .rtr = rng_between(r, 1, 7),
        .ird = (uint16_t)rng_size(r, 32),
        .ord = (uint16_t)rng_size(r, 32),
        .emss = draw_emss(r),
        .first_delay_us = rng_one_in(r, 2) ? 0 : rng_size(r, 10000),
        .startup_us = PATIENCE_US,
        .stall_us = rng_one_in(r, 4) ? 0 : PATIENCE_US,
        .close_us = PATIENCE_US,
    };
}

static uint16_t one_at_least(uint16_t n)
{
    return n ? n : 1;
}

/* Makes two ends compatible; otherwise one of them would only refuse. */
static void agree(struct conn_attr *a, struct conn_attr *b, bool reads)
{
    b->immediate = a->immediate;
    a->peer_to_peer &= a->revision == 2;
    if (!(a->rtr & b->rtr))
        b->rtr = a->rtr;
    /* Without RFC 6581 Reads are not negotiated. */
    if (a->revision == 1 || a->immediate || reads) {
        a->ird = one_at_least(a->ird);
        a->ord = one_at_least(a->ord);
        b->ird = a->ord;
        b->ord = a->ird;
    }
    if (a->peer_to_peer && (a->rtr & b->rtr) == MPA_RTR_READ) {
        a->ord = one_at_least(a->ord);
        b->ird = one_at_least(b->ird);
    }
}

static struct stack_attr draw_stack(struct rng *r, const struct wire *wire, const struct conn_attr *conn,
                                    uint32_t region_octets)
{
    return (struct stack_attr){
        .wire = wire,
        .conn = *conn,
        .qp =
            {
                .send_depth = 1 + rng_size(r, 63),
                .recv_depth = 1 + rng_size(r, 63),
                .send_sge = rng_between(r, 1, QP_SGE_MAX),
                .recv_sge = rng_between(r, 1, QP_SGE_MAX),
                .inline_max = rng_size(r, QP_INLINE_MAX),
                .ird = conn->ird,
                .ord = conn->ord,
                .window = rng_between(r, 1, 8),
                .signal_all = rng_one_in(r, 5),
                .number = 1 + rng_below(r, 0xffffff),
            },
        .shared = rng_one_in(r, 4),
        .packets = rng_one_in(r, 2),
        .apart = rng_one_in(r, 3) ? 0 : 1 + rng_size(r, 1 << 14),
        .srq_depth = 1 + rng_size(r, 63),
        .region_octets = region_octets,
        .cqe = STACK_CQE,
    };
}

/* Half of the links are wide, like a real socket, so that large payloads get through. */
static struct link_attr draw_link(struct rng *r)
{
    bool is_wide = rng_one_in(r, 2);

    return (struct link_attr){
        .window = is_wide ? rng_between(r, 1 << 16, LINK_WINDOW_MAX) : 1 + rng_size(r, LINK_WINDOW_MAX - 1),
        .cut_max = is_wide ? rng_between(r, 1 << 14, 1 << 20) : 1 + rng_size(r, (1 << 20) - 1),
        .latency_us = rng_size(r, 50000),
        .jitter_us = rng_size(r, 20000),
    };
}

/* Returns the octets per move that both the link's window and its cuts let through. */
static uint32_t pace(const struct link_attr *l)
{
    return (l->window < l->cut_max ? l->window : l->cut_max) / 4 + 1;
}

static void draw_work(struct sim *s, uint32_t octets_max)
{
    uint32_t slowest = pace(&s->link[0].attr), other = pace(&s->link[1].attr);
    uint64_t most;

    slowest = other < slowest ? other : slowest;
    s->work = (struct work_attr){
        .budget = 4 + rng_size(&s->rng, 300),
        .pieces = rng_between(&s->rng, 1, QP_SGE_MAX),
        .sends = !rng_one_in(&s->rng, 12),
        .writes = !rng_one_in(&s->rng, 6),
        .reads = !rng_one_in(&s->rng, 4),
        .invalidates = rng_one_in(&s->rng, 2),
        .hot = rng_one_in(&s->rng, 2),
    };
    most = (uint64_t)MOVES * slowest;
    most = (most < OCTETS ? most : OCTETS) / s->work.budget;
    s->work.size_max = most < octets_max ? (uint32_t)most : octets_max;
}

static const struct ending *draw_any_ending(struct rng *r)
{
    uint32_t sum = 0, at;
    const struct ending *e = endings;

    for (uint32_t i = 0; i < ending_count; i++)
        sum += endings[i].weight;
    for (at = rng_below(r, sum); at >= e->weight; e++)
        at -= e->weight;
    return e;
}

/* Without start-up frames no end can reject, and only iWARP invalidates remotely. */
static const struct ending *draw_ending(struct rng *r, const struct wire *wire)
{
    const struct ending *e;

    do
        e = draw_any_ending(r);
    while (wire->frames_at_once && e->flags & (REJECTS | INVALIDATES));
    return e;
}

static void tell(const struct sim *s)
{
    for (int i = 0; i < 2; i++) {
        const struct conn_attr *c = &s->stack[i].attr.conn;
        const struct qp_attr *q = &s->stack[i].attr.qp;

        report_add(
            "\nsim:   side %d: crc %d markers %d rev %d p2p %d immediate %d rtr %u ird %u ord %u emss %u stall %llu", i,
            c->crc, c->markers, c->revision, c->peer_to_peer, c->immediate, c->rtr, c->ird, c->ord, c->emss,
            (unsigned long long)c->stall_us);
        report_add("\nsim:   side %d: depth %u %u sge %u %u inline %u window %u srq %d link %u %u %u us", i,
                   q->send_depth, q->recv_depth, q->send_sge, q->recv_sge, q->inline_max, q->window,
                   s->stack[i].attr.shared, s->link[i].attr.window, s->link[i].attr.cut_max,
                   s->link[i].attr.latency_us);
    }
    report_add("\nsim:   %u requests up to %u octets; %s, side %d, after %u", s->work.budget, s->work.size_max,
               s->ending->name, s->struck_side, s->strike_at);
}

void sim_draw(struct sim *s, uint64_t seed, const struct wire *wire)
{
    struct conn_attr a, b;
    struct stack_attr attr[2];
    uint32_t region_octets;

    s->rng.state = seed;
    region_octets = rng_one_in(&s->rng, 6) ? rng_between(&s->rng, 1 << 20, 1 << 21) : 8192 + rng_size(&s->rng, 1 << 19);
    s->ending = draw_ending(&s->rng, wire);
    for (int i = 0; i < 2; i++) {
        struct link_attr link = draw_link(&s->rng);

        link_init(&s->link[i], &link, rng_next(&s->rng));
    }
    draw_work(s, region_octets / 2);
    s->work.invalidates &= wire->numbering == SEG_NUMBERS_QUEUES;
    s->work.reads |= !!(s->ending->flags & WANTS_READS);
    s->work.sends |= !!(s->ending->flags & WANTS_SENDS);
    a = draw_conn(&s->rng);
    b = draw_conn(&s->rng);
    a.crc |= !!(s->ending->flags & WANTS_CRC);
    a.immediate &= !(s->ending->flags & REJECTS);
    a.immediate |= wire->frames_at_once;
    agree(&a, &b, s->work.reads);
    attr[0] = draw_stack(&s->rng, wire, &a, region_octets);
    attr[1] = draw_stack(&s->rng, wire, &b, region_octets);
    for (int i = 0; i < 2; i++) {
        attr[i].qp.rdma_control = wire->numbering == SEG_NUMBERS_SEQUENCE && !rng_one_in(&s->rng, 3);
        stack_init(&s->stack[i], &attr[i], rng_next(&s->rng));
        party_init(&s->party[i], &s->stack[i], &s->party[!i], rng_next(&s->rng));
    }
    s->think_us = rng_size(&s->rng, 30000);
    s->struck_side = s->ending->flags & REJECTS ? 0 : (int)rng_below(&s->rng, 2);
    s->strike_at = s->ending->flags & REJECTS || rng_one_in(&s->rng, 10) ? 0 : rng_below(&s->rng, 2 * s->work.budget);
    tell(s);
}
