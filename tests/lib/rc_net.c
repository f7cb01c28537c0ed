/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_net.c - carries packets as UDP payloads with their ICRC between two queue pairs, in virtual time. */
#include "tests/lib/rc_net.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"

enum { MILLION = 1000000, PACKET_OCTETS = 8192, TRAIN_PACKETS = 16 };

static const struct icrc_path paths[2] = {
    {.source = {10, 0, 0, 1}, .destination = {10, 0, 0, 2}, .source_port = 49152, .destination_port = ROCE_PORT},
    {.source = {10, 0, 0, 2}, .destination = {10, 0, 0, 1}, .source_port = 49153, .destination_port = ROCE_PORT},
};

void rc_net_init(struct rc_net *net, uint64_t seed)
{
    memset(net, 0, sizeof(*net));
    engine_init(&net->engine);
    net->rng.state = seed;
    net->now_us = MILLION;
}

struct rc_pair_attr rc_net_attr(void)
{
    return (struct rc_pair_attr){
        .service = BTH_RC,
        .pkey = BTH_PKEY_DEFAULT,
        .access = ALL_ACCESS,
        .requester = {.mtu = 256, .timeout_us = 20000, .retries = 7, .rnr_retries = RC_RNR_ENDLESS},
        .responder = {.rnr_timer = 14, .reads = 4},
        .limits = {.startup_us = MILLION, .close_us = MILLION},
    };
}

void rc_net_connect(struct rc_net *net, const struct qp_attr qp[2], const struct rc_pair_attr pair[2],
                    const uint32_t psn[2])
{
    if (net->cells) {
        rc_pool_init(&net->pool, malloc(rc_pool_size(net->cells)), net->cells);
        assert_non_null(net->pool.cell);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct rc_peer *e = &net->end[i];
        struct rc_pair_attr attr = pair[i];

        side_init(&e->side, &qp[i]);
        qp_use_packets(&e->side.qp);
        attr.requester.psn = psn[i];
        attr.responder.psn = psn[!i];
        attr.responder.pool = net->cells ? &net->pool : NULL;
        attr.peer_qpn = 17 + !i;
        e->buffer = calloc(1, rc_pair_size(&attr, &e->side.qp));
        assert_non_null(e->buffer);
        rc_pair_init(&e->pair, &attr, &e->side.qp,
                     qp[i].ord < pair[!i].responder.reads ? qp[i].ord : pair[!i].responder.reads, e->buffer,
                     net->now_us);
    }
}

void rc_net_fini(struct rc_net *net)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (!net->end[i].buffer)
            continue;
        rc_pair_fini(&net->end[i].pair);
        side_fini(&net->end[i].side);
        free(net->end[i].buffer);
    }
    if (net->cells)
        assert_int_equal(rc_pool_free(&net->pool), net->cells);
    free(net->pool.cell);
    inflight_fini(&net->inflight);
    engine_fini(&net->engine);
}

/* --- a packet leaves --------------------------------------------------------------------------------------------- */

/* Packet number i of a train: that part of all payloads. */
static uint32_t assemble(uint32_t from, const struct rc_packet *p, uint32_t place, uint8_t *octets)
{
    uint8_t *at = put_bytes(octets, p->head, p->head_length);
    uint32_t n, crc, skip = place * p->length, left = p->length;

    for (uint32_t i = 0; i < p->emit.spans; i++) {
        const struct span *span = &p->emit.span[i];
        uint32_t skipped = skip < span->length ? skip : span->length, rest = span->length - skipped;

        at = put_bytes(at, span->at + skipped, rest < left ? rest : left);
        skip -= skipped;
        left -= rest < left ? rest : left;
    }
    assert_int_equal(left, 0);
    for (uint32_t i = 0; i < bth_pad(p->length); i++)
        at = put8(at, 0);
    n = (uint32_t)(at - octets) + ICRC_OCTETS;
    crc = icrc_head(icrc_begin(&paths[from], 0, n), octets, n - ICRC_OCTETS);
    put32le(at, crc);
    return n;
}

static void harm(struct rng *rng, uint8_t *octets, uint32_t n)
{
    for (uint32_t i = rng_between(rng, 1, 3); i; i--)
        octets[rng_below(rng, n)] ^= (uint8_t)(1 << rng_below(rng, 8));
}

static bool happens(struct rng *rng, uint32_t chance_of_million)
{
    return rng_below(rng, MILLION) < chance_of_million;
}

static void carry_packet(struct rc_net *net, uint32_t from, const uint8_t *octets, uint32_t n)
{
    const struct rc_path *path = &net->end[from].path;
    uint32_t delay = path->delay_us;
    uint8_t *copy;

    if (happens(&net->rng, path->lose))
        return;
    if (happens(&net->rng, path->hold_back))
        delay += rng_below(&net->rng, path->held_back_us + 1);
    copy = malloc(n);
    assert_non_null(copy);
    memcpy(copy, octets, n);
    if (happens(&net->rng, path->harm))
        harm(&net->rng, copy, n);
    inflight_push(&net->inflight,
                  (struct inflight_packet){.at_us = net->now_us + delay, .length = n, .to = !from, .octets = copy});
    if (happens(&net->rng, path->repeat))
        carry_packet(net, from, octets, n);
}

static void send_packet(struct rc_net *net, uint32_t from, const struct rc_packet *p, uint32_t place)
{
    uint8_t octets[PACKET_OCTETS];
    uint32_t n = assemble(from, p, place, octets);
    struct bth b;

    assert_int_equal(bth_decode(&b, octets, n), BTH_OK);
    net->end[from].packets++;
    if (!net->watch || net->watch(net, from, &b))
        carry_packet(net, from, octets, n);
}

static void send_train(struct rc_net *net, uint32_t from, struct rc_packet *p, uint32_t packets)
{
    for (uint32_t place = 0; place < packets; place++) {
        send_packet(net, from, p, place);
        bth_advance(p->head);
    }
}

void rc_net_send(struct rc_net *net)
{
    struct rc_packet p;

    for (uint32_t i = 0; i < 2; i++) {
        struct rc_pair *pair = &net->end[i].pair;

        rc_pair_check(pair, net->now_us);
        while (rc_pair_emit(pair, &p, net->now_us)) {
            send_train(net, i, &p, 1);
            send_train(net, i, &p, rc_pair_emit_train(pair, &p, TRAIN_PACKETS, net->now_us));
        }
        assert_false(rc_pair_has_output(&net->end[i].pair, net->now_us));
    }
}

/* --- a packet arrives -------------------------------------------------------------------------------------------- */

static void arrives(struct rc_net *net, const struct inflight_packet *p)
{
    struct bth b;

    if (!icrc_is_right(&paths[!p->to], p->octets, p->length, &net->space)) {
        net->dropped++;
        return;
    }
    if (bth_decode(&b, p->octets, p->length) != BTH_OK || b.qpn != 17u + p->to)
        return;
    rc_pair_rx(&net->end[p->to].pair, &b, net->now_us);
    if (net->withholds && rng_one_in(&net->rng, 4))
        (void)rc_pair_withhold(&net->end[p->to].pair, net->now_us);
}

static uint64_t next_us(const struct rc_net *net)
{
    uint64_t at = inflight_next_us(&net->inflight);

    for (uint32_t i = 0; i < 2; i++) {
        uint64_t due = rc_pair_deadline(&net->end[i].pair);

        at = due < at ? due : at;
    }
    return at;
}

bool rc_net_step(struct rc_net *net, uint64_t until_us)
{
    uint64_t at;

    rc_net_send(net);
    at = next_us(net);
    if (at > until_us || at == UINT64_MAX)
        return false;
    net->now_us = at > net->now_us ? at : net->now_us;
    while (inflight_next_us(&net->inflight) <= net->now_us) {
        struct inflight_packet p = inflight_pop(&net->inflight);

        arrives(net, &p);
        free(p.octets);
    }
    for (uint32_t i = 0; i < 2; i++)
        if (rc_pair_deadline(&net->end[i].pair) <= net->now_us)
            rc_pair_tick(&net->end[i].pair, net->now_us);
    rc_net_send(net);
    return true;
}

void rc_net_run(struct rc_net *net, uint64_t us)
{
    uint64_t until_us = net->now_us + us;

    while (rc_net_step(net, until_us))
        continue;
}
