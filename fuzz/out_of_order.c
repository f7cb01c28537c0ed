/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* out_of_order.c - FPDUs in packets that are split at any place and arrive in any order at any position, corrupted or
 * not: checks every verdict and what the link makes of it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/lib/host.h"
#include "wire/mpa.h"

enum { STREAM = 1 << 17, AHEAD = 1 << 15 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

enum { MISSING, KEPT, TAKEN };

/* What the peer has sent so far, and which octets of it have arrived. */
struct talk {
    struct host host;
    uint64_t said;
};

static uint8_t stream[STREAM], state[STREAM], packet[STREAM], before[STREAM];
static struct reorder reorder;

static uint64_t edge_of(const struct talk *t)
{
    uint64_t at = 0;

    while (at < t->said && state[at] != MISSING)
        at++;
    return at;
}

/* Delivers kept octets when it is their turn. */
static void catch_up(struct talk *t)
{
    struct conn *c = &t->host.conn;
    size_t n, eaten;
    uint64_t at;

    do {
        at = conn_advance(c, edge_of(t), t->host.now_us);
        assert(at <= edge_of(t));
        for (n = 0; at + n < t->said && state[at + n] == KEPT; n++)
            ;
        memcpy(packet, stream + at, n);
        eaten = n ? conn_rx(c, packet, n, t->host.now_us) : 0;
        assert(eaten <= n);
        memset(state + at, TAKEN, eaten);
    } while (eaten);
}

static void check_early(const struct conn *c)
{
    const struct seg *unit = reorder.unit + reorder.first;

    for (uint32_t i = 0; i < reorder.count && life_is_open(&c->life); i++) {
        assert(unit[i].begin > (i ? unit[i - 1].end - 1 : c->agreed.rx_pos) && unit[i].begin < unit[i].end);
        assert(!unit[i].data && unit[i].flags & SEG_PLACED);
    }
}

/* The octets [from, to), none of which has arrived yet, arrive now; `corrupted` is the position of a corrupted octet.
 */
static void come(struct talk *t, uint64_t from, uint64_t to, uint64_t corrupted)
{
    while (from < to) {
        size_t n = (size_t)(to - from), judged;
        enum conn_verdict verdict;

        memcpy(before, stream + from, n);
        if (corrupted >= from && corrupted < to)
            before[corrupted - from] ^= 0x10;
        memcpy(packet, before, n);
        verdict = conn_rx_out_of_order(&t->host.conn, packet, n, from, &judged, t->host.now_us);
        assert(judged && judged <= n);
        if (verdict == CONN_TAKEN)
            assert(!memcmp(packet + judged, before + judged, n - judged));
        else
            assert(!memcmp(packet, before, n));
        if (verdict != CONN_REFUSED)
            memset(state + from, verdict == CONN_TAKEN ? TAKEN : KEPT, judged);
        if (verdict == CONN_KEEP)
            memcpy(stream + from, before, judged);
        from += judged;
    }
    check_early(&t->host.conn);
}

static void come_from(struct talk *t, uint64_t from, uint64_t to, uint64_t corrupted)
{
    while (from < to) {
        uint64_t end = from;

        while (end < to && state[end] == MISSING)
            end++;
        if (end > from)
            come(t, from, end, corrupted);
        from = end + (end < to);
    }
    catch_up(t);
}

static void say_fpdu(struct talk *t, struct input *in)
{
    static uint8_t ulpdu[1 << 12];
    const struct wire_state *agreed = &t->host.conn.agreed;
    struct mpa_half half = {.pos = t->said, .markers = agreed->rx_markers, .crc = agreed->crc};
    struct span span = {ulpdu, 0};
    uint8_t n = input8(in);

    span.length = (uint32_t)input_octets(in, ulpdu, n);
    if (n >= 0xe0) { /* a longer payload, filled up with a constant */
        memset(ulpdu + span.length, n, sizeof(ulpdu) - span.length);
        span.length = 14 + (n - 0xe0U) * 100;
    }
    if (t->said + span.length + 100 < STREAM)
        t->said += mpa_encode(&half, stream + t->said, &span, 1);
}

static void packets(struct talk *t, struct input *in, uint8_t how)
{
    uint64_t edge = edge_of(t), from = edge + input16(in) % AHEAD, to = from + 1 + input16(in) % 2000;

    if (t->host.ended || !(conn_wants(&t->host.conn, t->host.now_us) & CONN_RX))
        return;
    to = to < t->said ? to : t->said;
    come_from(t, from < to ? from : edge, to, how & 0x80 ? from + input8(in) : UINT64_MAX);
}

static void step(struct talk *t, struct input *in)
{
    struct host *h = &t->host;
    uint8_t what = input8(in);

    switch (what & 7) {
    case 0:
    case 1:
        say_fpdu(t, in);
        break;
    case 2:
        arena_post(h->arena, in);
        break;
    case 3:
        h->now_us += (uint64_t)input16(in) * 10;
        conn_tick(&h->conn, h->now_us);
        h->may_cut |= h->conn.life.state == CONN_OVER;
        break;
    case 4: /* at a position outside of the stream */
        if (conn_wants(&h->conn, h->now_us) & CONN_RX && h->conn.agreed.rx_pos < t->said) {
            size_t judged;

            memcpy(packet, stream, 64);
            conn_rx_out_of_order(&h->conn, packet, 1 + input8(in) % 64, UINT64_MAX - input16(in), &judged, h->now_us);
        }
        break;
    default:
        packets(t, in, what);
    }
    host_pump(h);
    catch_up(t);
    host_pump(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct input in = {data, data + length};
    uint8_t how = input8(&in);
    struct conn_attr attr = {.immediate = true,
                             .ird = 3,
                             .ord = 3,
                             .emss = 1460,
                             .startup_us = 100000,
                             .stall_us = 200000,
                             .close_us = 100000};
    struct talk t = {.host = {.arena = arena_open(1 + how % 4, 3), .now_us = HOST_START_US, .takes = HOST_SENT}};
    struct host *h = &t.host;
    struct wire_state peer = {.crc = true, .rx_markers = true};

    memset(state, MISSING, sizeof(state));
    if (conn_init_active(&h->conn, &wire_iwarp, &attr, &h->arena->qp, NULL, 0, h->now_us))
        abort();
    h->conn.agreed.rx_markers = how & 0x10;
    h->conn.agreed.aligned = how & 0x20;
    conn_attach_reorder(&h->conn, &reorder);
    host_pump(h);
    for (int i = 0; in.at < in.end && i < HOST_STEPS_MAX; i++)
        step(&t, &in);
    come_from(&t, 0, t.said, UINT64_MAX);
    host_check_sent(h, peer, true);
    host_lose(h);
    arena_close(h->arena);
    return 0;
}
