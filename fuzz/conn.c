/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - a connection whose peer says anything: start-up frames, FPDUs with a right CRC, plain octets, in any cuts.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "conn/conn.h"
#include "fuzz/lib/arena.h"
#include "wire/mpa.h"

enum { STAGE = 1 << 19, SENT = 1 << 24, STEPS_MAX = 4096, START_US = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

struct host {
    struct arena *arena;
    struct conn conn;
    struct out out;
    uint64_t now_us;
    size_t staged, sent, frame; /* octets: not eaten; that have left; of them the start-up frame's */
    size_t takes;               /* octets that the link still takes */
    bool ended;
    bool heard;   /* of the peer's something behind its start-up frame */
    bool may_cut; /* what waited was dropped, as it should be */
};

static uint8_t out_room[OUT_ROOM], stage[STAGE], sent[SENT], copy[2][ARENA_REGIONS * ARENA_OCTETS];

/* --- the host ------------------------------------------------------------------------------------------------ */

static void send_some(struct host *h)
{
    struct out *out = &h->out;
    size_t n = 0;

    for (uint32_t i = out->first; i < out->first + out->spans && h->takes; i++) {
        size_t take = out->span[i].length < h->takes ? out->span[i].length : h->takes;

        assert(h->sent + take <= SENT);
        memcpy(sent + h->sent, out->span[i].at, take);
        h->sent += take;
        h->takes -= take;
        n += take;
    }
    conn_sent(&h->conn, n, h->now_us);
}

static void pump(struct host *h)
{
    struct conn *c = &h->conn;

    conn_check(c, h->now_us);
    while (conn_wants(c, h->now_us) & CONN_TX && h->takes) {
        if (!c->out) {
            out_init(&h->out, out_room);
            c->out = &h->out;
        }
        if (c->frame_length)
            h->frame = c->frame_length;
        conn_fill(c, h->now_us);
        assert(h->out.octets || !(conn_wants(c, h->now_us) & CONN_TX));
        if (h->out.octets)
            send_some(h);
    }
    if (conn_wants(c, h->now_us) & CONN_FIN)
        conn_fin(c, h->now_us);
    if (c->out && !c->out->octets)
        c->out = NULL;
    c->news = 0;
    /* A responder does not speak first (RFC 5044 7.1.2). */
    assert(c->active || c->attr.immediate || h->heard || h->sent <= h->frame);
}

static void hear(struct host *h, const uint8_t *p, size_t n)
{
    size_t eaten;

    if (h->ended || !(conn_wants(&h->conn, h->now_us) & CONN_RX) || h->staged + n > STAGE)
        return;
    h->heard |= h->conn.state >= CONN_READY;
    memcpy(stage + h->staged, p, n);
    h->staged += n;
    eaten = conn_rx(&h->conn, stage, h->staged, h->now_us);
    assert(eaten <= h->staged);
    h->staged -= eaten;
    memmove(stage, stage + eaten, h->staged);
    assert(h->staged < WIRE_UNIT_MAX);
}

/* In pieces of so many octets; 0: at once. */
static void hear_in(struct host *h, const uint8_t *p, size_t n, size_t piece)
{
    for (size_t i = 0; i < n; i += piece ? piece : n)
        hear(h, p + i, piece && piece < n - i ? piece : n - i);
}

/* --- what the peer says -------------------------------------------------------------------------------------- */

static size_t some_octets(struct input *in, uint8_t *to)
{
    uint32_t n = input8(in);
    size_t i = 0;

    /* A long payload is the few octets that there are, and then more of the last. */
    for (; i < n && in->at < in->end; i++)
        to[i] = input8(in);
    if (n < 0xf0)
        return i;
    n = (n - 0xf0U) * 4096 + 700;
    memset(to + i, (uint8_t)n, n - i);
    return n;
}

/* As an FPDU of this point in the stream. */
static void say_fpdu(struct host *h, struct input *in, size_t piece)
{
    static uint8_t ulpdu[1 << 16], fpdu[WIRE_UNIT_MAX];
    const struct wire_state *w = &h->conn.w;
    struct mpa_half half = {.pos = w->rx_pos, .markers = w->rx_markers, .crc = w->crc};
    struct span span = {ulpdu, (uint32_t)some_octets(in, ulpdu)};

    hear_in(h, fpdu, mpa_encode(&half, fpdu, &span, 1), piece);
}

static void say_frame(struct host *h, struct input *in, size_t piece)
{
    static uint8_t frame[MPA_FRAME_HEAD + 0x10000];
    uint8_t *p = put_bytes(frame, h->conn.active ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
    uint8_t flags = input8(in), revision = input8(in);
    size_t n = some_octets(in, frame + MPA_FRAME_HEAD);

    put16(put8(put8(p, flags), revision % 4), (uint16_t)n);
    hear_in(h, frame, MPA_FRAME_HEAD + n, piece);
}

static void end_stream(struct host *h)
{
    if (h->ended)
        return;
    h->may_cut |= h->conn.state <= CONN_DRAINING;
    h->ended = true;
    conn_rx_end(&h->conn, h->staged, h->now_us);
}

static void answer(struct host *h, struct input *in)
{
    struct qp *qp = &h->arena->qp;

    if (h->conn.state != CONN_WAIT_ANSWER)
        return;
    if (input8(in) % 4)
        conn_accept(&h->conn, qp, (uint16_t)qp->attr.ird, (uint16_t)qp->attr.ord, "yes", input8(in) % 4, h->now_us);
    else
        conn_reject(&h->conn, "no", 2, h->now_us);
}

/* --- one input ----------------------------------------------------------------------------------------------- */

/* The application writes: at any time where the peer may read, elsewhere when nothing of its own waits any more. */
static void scribble(struct host *h, struct input *in)
{
    const struct qp *qp = &h->arena->qp;
    uint8_t octet = input8(in);

    memset(h->arena->mr[ARENA_TARGET].base, octet, ARENA_OCTETS);
    if (qp->sq_head == qp->sq_tail)
        arena_scribble(h->arena, octet);
}

static void step(struct host *h, struct input *in)
{
    uint8_t what = input8(in);
    size_t piece = what >> 4;
    static uint8_t octets[1 << 16];

    switch (what & 15) {
    case 0:
        hear_in(h, octets, some_octets(in, octets), piece);
        break;
    case 1:
        say_frame(h, in, piece);
        break;
    case 2:
        answer(h, in);
        break;
    case 3:
        h->now_us += (uint64_t)input16(in) * 100;
        conn_tick(&h->conn, h->now_us);
        h->may_cut |= h->conn.state == CONN_OVER;
        break;
    case 4:
        h->takes = (size_t)input16(in) * 4;
        break;
    case 5:
        if (!piece)
            conn_close(&h->conn, h->now_us);
        else if (piece == 1)
            end_stream(h);
        else if (piece == 2)
            conn_detach(&h->conn, h->now_us);
        break;
    case 6:
        h->conn.attr.emss = input16(in);
        break;
    case 7:
    case 8:
        arena_post(h->arena, in);
        break;
    case 9:
        arena_poll(h->arena);
        break;
    case 10:
        scribble(h, in);
        break;
    default:
        say_fpdu(h, in, piece);
    }
    pump(h);
}

/* Whoever ends is deaf: what comes then changes nothing. */
static void check_deaf(struct host *h, struct input *in)
{
    arena_copy(h->arena, copy[0]);
    for (int i = 0; i < 8; i++)
        say_fpdu(h, in, 0);
    arena_copy(h->arena, copy[1]);
    assert(!memcmp(copy[0], copy[1], sizeof(copy[0])));
}

/* What has left is whole FPDUs, but for one that still leaves, or that was cut off by the end. */
static void check_sent(const struct host *h)
{
    const struct wire_state *w = &h->conn.w;
    struct wire_state peer = {.crc = w->crc, .rx_markers = w->tx_markers, .version = w->version};
    bool may_cut = h->may_cut || h->conn.note.fault == FAULT_TERMINATED || (h->conn.out && h->conn.out->octets);
    size_t at = h->frame, need;
    struct seg seg;

    while (at < h->sent) {
        int n = h->conn.wire->decode(&peer, &seg, sent + at, h->sent - at, &need);

        assert(n > 0 || (n == 0 && may_cut));
        if (n == 0)
            break;
        at += (size_t)n;
    }
}

static struct conn_attr some_attr(struct input *in)
{
    uint8_t a = input8(in), b = input8(in);

    return (struct conn_attr){
        .crc = a & 1,
        .markers = a & 2,
        .peer_to_peer = a & 4,
        .immediate = (a & 0x38) == 0x38,
        .revision = a & 0x40 ? 1 : 2,
        .rtr = 1U + (b & 7U) % 7,
        .ird = b >> 3 & 3,
        .ord = b >> 5 & 3,
        .emss = 1460,
        .first_delay_us = b & 0x80 ? 500 : 0,
        .startup_us = 100000,
        .stall_us = 200000,
        .close_us = 100000,
    };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct input in = {data, data + length};
    const struct fault_note end = {.fault = FAULT_LOST};
    bool active = input8(&in) & 1;
    struct conn_attr attr = some_attr(&in);
    struct host h = {.arena = arena_open(1, 3), .now_us = START_US, .takes = SENT};

    if (!active)
        conn_init_passive(&h.conn, &wire_iwarp, &attr, h.now_us);
    else if (conn_init_active(&h.conn, &wire_iwarp, &attr, &h.arena->qp, "who", 3, h.now_us))
        abort();
    pump(&h);
    for (int i = 0; in.at < in.end && i < STEPS_MAX; i++)
        step(&h, &in);
    if (h.conn.state >= CONN_TERMINATING)
        check_deaf(&h, &in);
    check_sent(&h);
    conn_lost(&h.conn, FAULT_LOST);
    qp_fail(&h.arena->qp, &end);
    arena_close(h.arena);
    return 0;
}
