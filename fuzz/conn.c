/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - a connection whose peer sends start-up frames, FPDUs with a correct CRC, and plain octets, split at any
 * place. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/lib/host.h"
#include "wire/mpa.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static uint8_t copy[2][ARENA_REGIONS * ARENA_OCTETS];

/* --- the host ------------------------------------------------------------------------------------------------ */

static void pump(struct host *h)
{
    host_pump(h);
    /* A responder must not speak first (RFC 5044 7.1.2). */
    assert(h->conn.life.active || h->conn.attr.immediate || h->heard || h->sent <= h->frame);
}

/* Copies those of the next octets that belong directly to their place in memory, and not behind the staged ones.
 * Returns their number. */
static size_t put_in_place(struct host *h, const uint8_t *p, size_t n)
{
    uint32_t staged = (uint32_t)h->staged;
    struct conn_place gap;

    if (!h->apart || !staged || !conn_read_to_place(&h->conn, host_stage, &staged, 1, &gap, h->now_us))
        return 0;
    assert(staged <= h->staged && gap.octets);
    h->staged = staged;
    n = n < gap.octets ? n : gap.octets;
    memcpy(gap.at, p, n);
    conn_filled(&h->conn, n);
    return n;
}

static void hear(struct host *h, const uint8_t *p, size_t n)
{
    size_t there;

    if (h->ended || !(conn_wants(&h->conn, h->now_us) & CONN_RX) || h->staged + n > HOST_STAGE)
        return;
    there = put_in_place(h, p, n);
    memcpy(host_stage + h->staged, p + there, n - there);
    h->staged += n - there;
    host_eat(h);
    assert(h->staged < WIRE_UNIT_MAX);
}

/* Delivers the octets in pieces of `piece` octets; 0: at once. */
static void hear_in(struct host *h, const uint8_t *p, size_t n, size_t piece)
{
    for (size_t i = 0; i < n; i += piece ? piece : n)
        hear(h, p + i, piece && piece < n - i ? piece : n - i);
}

/* --- what the peer sends ------------------------------------------------------------------------------------- */

static size_t some_octets(struct input *in, uint8_t *to)
{
    uint32_t n = input8(in);
    size_t i = 0;

    /* A long payload has the octets of the input, filled up with a constant. */
    for (; i < n && in->at < in->end; i++)
        to[i] = input8(in);
    if (n < 0xf0)
        return i;
    n = (n - 0xf0U) * 4096 + 700;
    memset(to + i, (uint8_t)n, n - i);
    return n;
}

/* Sends an FPDU that is valid at this point of the stream. */
static void say_fpdu(struct host *h, struct input *in, size_t piece)
{
    static uint8_t ulpdu[1 << 16], fpdu[WIRE_UNIT_MAX];
    const struct wire_state *agreed = &h->conn.agreed;
    struct mpa_half half = {.pos = agreed->rx_pos, .markers = agreed->rx_markers, .crc = agreed->crc};
    struct span span = {ulpdu, (uint32_t)some_octets(in, ulpdu)};

    hear_in(h, fpdu, mpa_encode(&half, fpdu, &span, 1), piece);
}

static void say_frame(struct host *h, struct input *in, size_t piece)
{
    static uint8_t frame[MPA_FRAME_HEAD + 0x10000];
    uint8_t *p = put_bytes(frame, h->conn.life.active ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
    uint8_t flags = input8(in), revision = input8(in);
    size_t n = some_octets(in, frame + MPA_FRAME_HEAD);

    put16(put8(put8(p, flags), revision % 4), (uint16_t)n);
    hear_in(h, frame, MPA_FRAME_HEAD + n, piece);
}

static void end_stream(struct host *h)
{
    if (h->ended)
        return;
    h->may_cut |= h->conn.life.state <= CONN_DRAINING;
    h->ended = true;
    conn_rx_end(&h->conn, h->staged, h->now_us);
}

static void answer(struct host *h, struct input *in)
{
    struct qp *qp = &h->arena->qp;

    if (h->conn.life.state != CONN_WAIT_ANSWER)
        return;
    if (input8(in) % 4)
        conn_accept(&h->conn, qp, (uint16_t)qp->attr.ird, (uint16_t)qp->attr.ord, "yes", input8(in) % 4, h->now_us);
    else
        conn_reject(&h->conn, "no", 2, h->now_us);
}

/* --- one input ----------------------------------------------------------------------------------------------- */

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
        h->may_cut |= h->conn.life.state == CONN_OVER;
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
        host_scribble(h, in);
        break;
    default:
        say_fpdu(h, in, piece);
    }
    pump(h);
}

/* A connection that has ended ignores what it receives. */
static void check_deaf(struct host *h, struct input *in)
{
    arena_copy(h->arena, copy[0]);
    for (int i = 0; i < 8; i++)
        say_fpdu(h, in, 0);
    arena_copy(h->arena, copy[1]);
    assert(!memcmp(copy[0], copy[1], sizeof(copy[0])));
}

static void check_sent(const struct host *h)
{
    const struct wire_state *agreed = &h->conn.agreed;
    struct wire_state peer = {.crc = agreed->crc, .rx_markers = agreed->tx_markers, .version = agreed->version};

    host_check_sent(h, peer, h->conn.life.note.fault == FAULT_TERMINATED);
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
    uint8_t how = input8(&in);
    bool active = how & 1;
    struct conn_attr attr = some_attr(&in);
    struct host h = {.arena = arena_open(1, 3), .now_us = HOST_START_US, .takes = HOST_SENT, .apart = how & 2};

    if (!active)
        conn_init_passive(&h.conn, &wire_iwarp, &attr, h.now_us);
    else if (conn_init_active(&h.conn, &wire_iwarp, &attr, &h.arena->qp, "who", 3, h.now_us))
        abort();
    pump(&h);
    for (int i = 0; in.at < in.end && i < HOST_STEPS_MAX; i++)
        step(&h, &in);
    if (h.conn.life.state >= CONN_TERMINATING)
        check_deaf(&h, &in);
    check_sent(&h);
    host_lose(&h);
    arena_close(h.arena);
    return 0;
}
