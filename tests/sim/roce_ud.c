/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_ud.c - four queue pairs of datagrams send to each other over a path that does everything to packets: what
 * arrives is a message that was sent to this queue pair, whole, and never more often than the path repeated it.
 * ROCE-RSP-19.
 *
 * SIM_RUNS=10000 sets the number of runs; SIM_SEED=0x1234 sets the first seed. A failed run prints its seed. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "conn/ud.h"
#include "roce/icrc.h"
#include "tests/lib/engine.h"
#include "tests/lib/inflight.h"
#include "tests/lib/rng.h"
#include "tests/lib/seeds.h"

enum {
    RUNS = 400,
    ENDS = 4,
    MESSAGES = 100, /* of an end */
    LENGTH = 2048,
    SOURCE = 1 << 14,
    RECEIVES = 16, /* posted at once, in places of their own */
    PLACE = GRH_OCTETS + LENGTH,
    PACKET = LENGTH + 64,
    NUMBER = 0x1000, /* of the first queue pair */
    QKEY = 77,
    DEPTH = 16,
};

/* What was sent: the payload says by its first four octets which of an end's messages it is. */
struct sent {
    uint32_t to, length, at, arrived, copies;
    bool good; /* the Q_Key is right */
    bool immediate;
};

struct ud_end {
    struct side side;
    struct ud ud;
    struct mr *source, *sink;
    struct rddp_ah ah;
    struct sent sent[MESSAGES];
    uint32_t posted, completed, received, receives;
};

static struct game {
    struct engine engine;
    struct ud_end end[ENDS];
    struct inflight inflight;
    struct rng rng;
    uint64_t now_us;
    uint32_t lose, repeat, harm; /* one in this many; 0: none */
    struct icrc_space space;
} g;

static struct icrc_path path_between(uint32_t from, uint32_t to)
{
    return (struct icrc_path){.source = {10, 0, 0, (uint8_t)from},
                              .destination = {10, 0, 0, (uint8_t)to},
                              .source_port = 49152,
                              .destination_port = ROCE_PORT};
}

/* --- posting ------------------------------------------------------------------------------------------------------ */

static void post_message(uint32_t from)
{
    struct ud_end *e = &g.end[from];
    struct sent *s = &e->sent[e->posted];
    struct rddp_sge sge[2];
    struct rddp_send_wr wr = {.wr_id = e->posted, .sg_list = sge, .num_sge = 2, .send_flags = RDDP_SEND_SIGNALED};
    uint8_t id[4];

    *s = (struct sent){
        .to = rng_below(&g.rng, ENDS),
        .length = 4 + rng_size(&g.rng, LENGTH - 4),
        .at = rng_below(&g.rng, SOURCE - LENGTH),
        .good = !rng_one_in(&g.rng, 10),
        .immediate = rng_one_in(&g.rng, 2),
    };
    put32(id, e->posted);
    memcpy(e->source->base + SOURCE + 4 * (e->posted % DEPTH), id, 4);
    sge[0] = piece_of(e->source, SOURCE + 4 * (e->posted % DEPTH), 4);
    sge[1] = piece_of(e->source, s->at, s->length - 4);
    wr.opcode = s->immediate ? RDDP_WR_SEND_WITH_IMM : RDDP_WR_SEND;
    wr.imm_data = e->posted;
    wr.ah = &e->ah;
    e->ah.peer[15] = (uint8_t)s->to;
    wr.remote_qpn = NUMBER + s->to;
    wr.remote_qkey = s->good ? QKEY : QKEY + 1;
    if (qp_post_send(&e->side.qp, &wr) == 0)
        e->posted++;
}

static void offer(struct ud_end *e)
{
    struct rddp_sge sge[3];
    uint32_t at = e->receives % RECEIVES * PLACE, cut = rng_below(&g.rng, PLACE);

    sge[0] = piece_of(e->sink, at, cut);
    sge[1] = piece_of(e->sink, at + cut, PLACE - cut);
    if (e->receives - e->received < RECEIVES && post_recv(&e->side, e->receives, sge, 2) == 0)
        e->receives++;
}

/* --- the path ------------------------------------------------------------------------------------------------------
 */

static bool happens(uint32_t one_in)
{
    return one_in && rng_one_in(&g.rng, one_in);
}

static void carry(uint32_t to, const uint8_t *octets, uint32_t n)
{
    uint8_t *copy = malloc(n);

    assert_non_null(copy);
    memcpy(copy, octets, n);
    if (happens(g.harm))
        copy[rng_below(&g.rng, n)] ^= (uint8_t)(1 << rng_below(&g.rng, 8));
    inflight_push(&g.inflight, (struct inflight_packet){
                                   .at_us = g.now_us + rng_below(&g.rng, 100), .length = n, .to = to, .octets = copy});
}

static void leave_packet(uint32_t from, const struct rc_packet *p, const struct destination *to)
{
    uint8_t octets[4 + PACKET];
    struct icrc_path path = path_between(from, to->path.peer[15]);
    uint8_t *at = put_bytes(put32(octets, from), p->head, p->head_length);
    uint32_t n;

    for (uint32_t i = 0; i < p->emit.spans; i++)
        at = put_bytes(at, p->emit.span[i].at, p->emit.span[i].length);
    for (uint32_t i = 0; i < bth_pad(p->length); i++)
        at = put8(at, 0);
    n = (uint32_t)(at - octets) - 4 + ICRC_OCTETS;
    put32le(at, icrc_head(icrc_begin(&path, 0, n), octets + 4, n - ICRC_OCTETS));
    if (happens(g.lose))
        return;
    do {
        g.end[from].sent[get32(octets + 4 + p->head_length)].copies++;
        carry(to->path.peer[15], octets, 4 + n);
    } while (happens(g.repeat));
}

static void send_all(void)
{
    const struct destination *to;
    struct rc_packet p;

    for (uint32_t i = 0; i < ENDS; i++)
        while (ud_emit(&g.end[i].ud, &p, &to, g.now_us))
            leave_packet(i, &p, to);
}

static void arrive_packet(const struct inflight_packet *p)
{
    uint32_t from = get32(p->octets);
    struct icrc_path path = path_between(from, p->to);
    uint8_t grh[GRH_OCTETS], a[GRH_ADDRESS] = {[10] = 0xff, 0xff, 10}, b[GRH_ADDRESS] = {[10] = 0xff, 0xff, 10};
    struct bth bth;

    if (from >= ENDS || !icrc_is_right(&path, p->octets + 4, p->length - 4, &g.space) ||
        bth_decode(&bth, p->octets + 4, p->length - 4) != BTH_OK || bth.qpn != NUMBER + p->to)
        return;
    a[15] = (uint8_t)from;
    b[15] = (uint8_t)p->to;
    grh_write(grh, a, b, p->length - 4);
    ud_rx(&g.end[p->to].ud, &bth, grh, g.now_us);
}

/* --- completions ---------------------------------------------------------------------------------------------------
 */

static void take_sends(struct ud_end *e)
{
    struct rddp_wc wc;

    while (cq_poll(&e->side.send_cq, &wc, 1)) {
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_int_equal(wc.wr_id, e->completed++);
    }
}

static void check_message(uint32_t to, const struct rddp_wc *wc, const uint8_t *place)
{
    uint8_t from[GRH_ADDRESS], dest[GRH_ADDRESS];
    uint32_t id = get32(place + GRH_OCTETS), sender = wc->src_qp - NUMBER;
    struct ud_end *e = &g.end[sender];
    struct sent *s = &e->sent[id];

    assert_true(sender < ENDS && id < e->posted);
    assert_true(grh_read(place, from, dest));
    assert_int_equal(from[15], sender);
    assert_int_equal(dest[15], to);
    assert_true(s->good && s->to == to && ++s->arrived <= s->copies);
    assert_int_equal(wc->byte_len, GRH_OCTETS + s->length);
    assert_int_equal(!!(wc->wc_flags & RDDP_WC_WITH_IMM), s->immediate);
    assert_true(!s->immediate || wc->imm_data == id);
    assert_memory_equal(place + GRH_OCTETS + 4, e->source->base + s->at, s->length - 4);
}

static void take_receives(uint32_t to)
{
    struct ud_end *e = &g.end[to];
    struct rddp_wc wc;

    while (cq_poll(&e->side.recv_cq, &wc, 1)) {
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_int_equal(wc.wr_id, e->received);
        check_message(to, &wc, e->sink->base + e->received % RECEIVES * PLACE);
        e->received++;
    }
}

/* --- a run ---------------------------------------------------------------------------------------------------------
 */

static void open_game(uint64_t seed)
{
    static const uint32_t chances[] = {0, 0, 100, 10, 3};
    const struct ud_attr attr = {.q_key = QKEY, .pkey = BTH_PKEY_DEFAULT};

    memset(&g, 0, sizeof(g));
    g.rng.state = seed;
    g.lose = chances[rng_below(&g.rng, 5)];
    g.repeat = chances[rng_below(&g.rng, 5)];
    g.harm = chances[rng_below(&g.rng, 5)];
    engine_init(&g.engine);
    for (uint32_t i = 0; i < ENDS; i++) {
        struct ud_end *e = &g.end[i];
        struct qp_attr qp = side_attr(&g.engine);

        qp.service = QP_DATAGRAMS;
        qp.send_depth = qp.recv_depth = DEPTH;
        side_init(&e->side, &qp);
        qp_use_datagrams(&e->side.qp);
        e->source = engine_region(&g.engine, SOURCE + 4 * DEPTH, LOCAL);
        e->sink = engine_region(&g.engine, RECEIVES * PLACE, LOCAL);
        e->ah = (struct rddp_ah){.pd = &g.engine.pd, .mtu = LENGTH};
        pattern(e->source->base, SOURCE, i + 1);
        ud_init(&e->ud, &attr, &e->side.qp, 0);
        e->ud.attr.number = NUMBER + i;
        ud_start(&e->ud, (uint32_t)rng_next(&g.rng) & BTH_MASK24);
    }
}

static void close_game(void)
{
    for (uint32_t i = 0; i < ENDS; i++)
        side_fini(&g.end[i].side);
    inflight_fini(&g.inflight);
    engine_fini(&g.engine);
}

static void step(void)
{
    for (uint32_t i = 0; i < ENDS; i++) {
        for (uint32_t n = rng_below(&g.rng, 4); n && g.end[i].posted < MESSAGES; n--)
            post_message(i);
        for (uint32_t n = rng_below(&g.rng, 6); n; n--)
            offer(&g.end[i]);
    }
    send_all();
    g.now_us += rng_below(&g.rng, 60) + 1;
    while (inflight_next_us(&g.inflight) <= g.now_us) {
        struct inflight_packet p = inflight_pop(&g.inflight);

        arrive_packet(&p);
        free(p.octets);
    }
    for (uint32_t i = 0; i < ENDS; i++) {
        take_sends(&g.end[i]);
        take_receives(i);
        assert_int_equal(g.end[i].ud.life.state, CONN_READY);
    }
}

static bool is_over(void)
{
    for (uint32_t i = 0; i < ENDS; i++)
        if (g.end[i].completed < MESSAGES)
            return false;
    return inflight_next_us(&g.inflight) == UINT64_MAX;
}

/* Each packet that was neither lost nor harmed was received, or found its receive missing or its Q_Key wrong. */
static void check_sum(void)
{
    uint64_t copies = 0, accounted = 0;

    for (uint32_t i = 0; i < ENDS; i++) {
        for (uint32_t k = 0; k < MESSAGES; k++)
            copies += g.end[i].sent[k].copies;
        accounted += g.end[i].received + g.end[i].ud.not_ready + g.end[i].ud.wrong_q_key;
    }
    assert_true(g.harm ? accounted <= copies : accounted == copies);
}

static void run(uint64_t seed)
{
    open_game(seed);
    while (!is_over())
        step();
    check_sum();
    close_game();
}

static void everything(void **state)
{
    (void)state;
    seeds_each(RUNS, run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything),
    };

    return cmocka_run_group_tests_name("roce_ud", tests, NULL, NULL);
}
