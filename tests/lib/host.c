/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.c - the smallest host of a connection, and a raw peer for it. */
#include "tests/lib/host.h"

#include <stdlib.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, octets) ((void)(octets))
#define ASAN_UNPOISON_MEMORY_REGION(at, octets) ((void)(octets))
#endif

#include "base/bytes.h"
#include "base/crc32c.h"

struct conn_attr host_attr(void)
{
    return (struct conn_attr){
        .crc = true,
        .revision = 2,
        .rtr = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ,
        .ird = 4,
        .ord = 4,
        .emss = 1460,
        .first_delay_us = 5000,
        .startup_us = 5000000,
        .stall_us = 1000000,
        .close_us = 2000000,
    };
}

/* --- life ---------------------------------------------------------------------------------------------------- */

/* The large buffers of a host that has ended are there for the next one: with a sanitizer, mapping them costs more than
 * all that a connection does. Until then nothing may touch them. */
enum { BUFFERS_KEPT = 16 };
static struct {
    void *at;
    size_t octets;
} kept[BUFFERS_KEPT];

static void *buffer_of(size_t n)
{
    void *p = NULL;

    for (int i = 0; i < BUFFERS_KEPT && !p; i++)
        if (kept[i].octets == n) {
            p = kept[i].at;
            kept[i].octets = 0;
            ASAN_UNPOISON_MEMORY_REGION(p, n);
        }
    p = p ? p : malloc(n);
    assert_non_null(p);
    return p;
}

static void keep(void *p, size_t n)
{
    for (int i = 0; i < BUFFERS_KEPT; i++)
        if (!kept[i].octets) {
            kept[i].at = p;
            kept[i].octets = n;
            ASAN_POISON_MEMORY_REGION(p, n);
            return;
        }
    free(p);
}

void host_init(struct host *h, const struct qp_attr *attr)
{
    struct qp_attr usual;

    memset(h, 0, sizeof(*h));
    engine_init(&h->engine);
    usual = side_attr(&h->engine);
    side_init(&h->side, attr ? attr : &usual);
    h->buffer = buffer_of(OUT_BUFFER);
    h->sent = buffer_of(HOST_SENT);
    h->stage = buffer_of(HOST_SENT);
    h->now_us = HOST_START_US;
    h->takes = SIZE_MAX;
}

void host_fini(struct host *h)
{
    if (h->conn.life.out)
        out_drop(h->conn.life.out);
    for (uint32_t i = 0; i < h->engine.areas; i++)
        assert_int_equal(h->engine.area[i].mr.sending, 0);
    side_fini(&h->side);
    engine_fini(&h->engine);
    keep(h->buffer, OUT_BUFFER);
    keep(h->sent, HOST_SENT);
    keep(h->stage, HOST_SENT);
}

void host_active(struct host *h, const struct conn_attr *attr, const void *private_data, uint16_t length)
{
    assert_int_equal(conn_init_active(&h->conn, &wire_iwarp, attr, &h->side.qp, private_data, length, h->now_us), 0);
    host_pump(h);
}

void host_passive(struct host *h, const struct conn_attr *attr)
{
    conn_init_passive(&h->conn, &wire_iwarp, attr, h->now_us);
    host_pump(h);
}

/* Sets up the peer's framing from what the connection has agreed on. */
static void take_agreement(struct host *h)
{
    const struct wire_state *agreed = &h->conn.agreed;

    h->peer = (struct wire_state){.crc = agreed->crc,
                                  .tx_markers = agreed->rx_markers,
                                  .rx_markers = agreed->tx_markers,
                                  .version = agreed->version};
}

void host_ready(struct host *h, bool active, const struct conn_attr *attr)
{
    uint8_t frame[MPA_FRAME_MAX], nothing = 0;
    uint8_t flags = (uint8_t)((attr->markers ? 0x80 : 0) | (attr->crc ? 0x40 : 0));
    size_t n = attr->revision < 2 ? start_frame(frame, active, flags, attr->revision, NULL, 0)
                                  : start_frame_enhanced(frame, active, flags | 0x10, attr->ord, attr->ird, NULL, 0);

    if (active) {
        host_active(h, attr, NULL, 0);
        host_hear(h, frame, n);
        host_wait_until(h, h->now_us + attr->first_delay_us);
        take_agreement(h);
    } else {
        host_passive(h, attr);
        host_hear(h, frame, n);
        assert_int_equal(conn_accept(&h->conn, &h->side.qp, attr->ird, attr->ord, NULL, 0, h->now_us), 0);
        host_pump(h);
        take_agreement(h);
        peer_says(h, a_write(1, 0, &nothing, 0, SEG_LAST));
    }
    assert_int_equal(h->conn.life.state, CONN_READY);
    h->read_octets = h->sent_octets;
}

/* --- the host ------------------------------------------------------------------------------------------------ */

static void send_some(struct host *h)
{
    struct out *out = &h->out;
    uint8_t *at = h->sent + h->sent_octets;
    size_t n = 0;

    for (uint32_t i = out->first; i < out->first + out->spans && n < h->takes; i++) {
        size_t left = h->takes - n;
        size_t take = out->span[i].length < left ? out->span[i].length : left;

        assert_true(h->sent_octets + n + take <= HOST_SENT);
        memcpy(at + n, out->span[i].at, take);
        n += take;
    }
    assert_true(n <= out->octets);
    h->sent_octets += n;
    h->takes -= h->takes == SIZE_MAX ? 0 : n;
    if (n)
        conn_sent(&h->conn, n, h->now_us);
}

void host_pump(struct host *h)
{
    struct conn *c = &h->conn;

    conn_check(c, h->now_us);
    while (conn_wants(c, h->now_us) & CONN_TX && h->takes) {
        bool is_straight = conn_sends_straight(c);
        uint32_t before;

        if (!c->life.out) {
            out_init(&h->out, h->buffer);
            c->life.out = &h->out;
        }
        before = h->out.octets;
        if (is_straight) {
            conn_fill_segments(c);
            conn_check(c, h->now_us);
        } else {
            conn_fill(c, h->now_us);
        }
        /* A connection that wants CONN_TX has octets to send, or no longer wants it, unless it has just failed. */
        assert_true(is_straight || h->out.octets || before || !(conn_wants(c, h->now_us) & CONN_TX));
        send_some(h);
    }
    if (conn_wants(c, h->now_us) & CONN_FIN) {
        assert_false(h->fin);
        h->fin = true;
        conn_fin(c, h->now_us);
    }
    if (c->life.out && !c->life.out->octets)
        c->life.out = NULL;
    h->told |= c->life.news;
    c->life.news = 0;
}

void host_hear(struct host *h, const void *p, size_t n)
{
    size_t eaten;

    assert_true(h->staged + n <= HOST_SENT);
    if (n)
        memcpy(h->stage + h->staged, p, n);
    h->staged += n;
    eaten = conn_rx_straight(&h->conn, h->stage, h->staged);
    if (!h->conn.is_straight)
        eaten += conn_rx(&h->conn, h->stage + eaten, h->staged - eaten, h->now_us);
    assert_true(eaten <= h->staged);
    h->staged -= eaten;
    memmove(h->stage, h->stage + eaten, h->staged);
    host_pump(h);
}

void host_hear_slowly(struct host *h, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        host_hear(h, (const uint8_t *)p + i, 1);
}

void host_hear_end(struct host *h)
{
    conn_rx_end(&h->conn, h->staged, h->now_us);
    host_pump(h);
}

void host_wait_until(struct host *h, uint64_t at_us)
{
    assert_true(at_us >= h->now_us);
    h->now_us = at_us;
    conn_tick(&h->conn, h->now_us);
    host_pump(h);
}

/* --- the peer ------------------------------------------------------------------------------------------------ */

size_t start_frame(uint8_t *out, bool reply, uint8_t flags, uint8_t revision, const void *private_data, size_t length)
{
    uint8_t *p = put_bytes(out, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);

    p = put16(put8(put8(p, flags), revision), (uint16_t)length);
    return (size_t)(put_bytes(p, private_data, length) - out);
}

size_t start_frame_enhanced(uint8_t *out, bool reply, uint8_t flags, uint16_t ird_word, uint16_t ord_word,
                            const void *private_data, size_t length)
{
    uint8_t data[MPA_FRAME_MAX];
    uint8_t *p = put_bytes(put16(put16(data, ird_word), ord_word), private_data, length);

    return start_frame(out, reply, flags, 2, data, (size_t)(p - data));
}

size_t peer_frames(struct host *h, struct seg seg, uint8_t *out)
{
    struct span span = {seg.data, seg.length};

    return h->conn.wire->frame(&h->peer, &seg, &span, 1, out);
}

void peer_says(struct host *h, struct seg seg)
{
    uint8_t *unit = buffer_of(WIRE_UNIT_MAX);

    host_hear(h, unit, peer_frames(h, seg, unit));
    free(unit);
}

struct seg expect_seg(struct host *h, enum seg_op op)
{
    struct seg seg;
    size_t need;
    int eaten = h->conn.wire->decode(&h->peer, &seg, h->sent + h->read_octets, h->sent_octets - h->read_octets, &need);

    assert_true(eaten > 0);
    h->read_octets += (size_t)eaten;
    assert_int_equal(seg.op, op);
    return seg;
}

void expect_ulpdu(struct host *h, const void *ulpdu, size_t n)
{
    const uint8_t *p = h->sent + h->read_octets;
    size_t octets = (2 + n + 3) / 4 * 4 + 4;

    assert_true(h->sent_octets - h->read_octets >= octets);
    assert_int_equal(get16(p), n);
    assert_memory_equal(p + 2, ulpdu, n);
    assert_int_equal(get32le(p + octets - 4), h->peer.crc ? crc32c(0, p, octets - 4) : 0);
    h->read_octets += octets;
    h->peer.rx_pos += octets;
}

struct seg expect_terminate(struct host *h, unsigned code)
{
    struct seg seg = expect_seg(h, SEG_TERMINATE);

    assert_true(seg.length >= 4);
    assert_int_equal(get16(seg.data), code);
    assert_int_equal(seg.msg, 1);
    expect_silence(h);
    return seg;
}

void expect_silence(const struct host *h)
{
    assert_int_equal(h->sent_octets, h->read_octets);
}

void expect_end(struct host *h, enum fault fault)
{
    const struct qp *qp = &h->side.qp;
    unsigned said = h->told & (CONN_NEWS_DISCONNECTED | CONN_NEWS_FAILED | CONN_NEWS_REJECTED);

    assert_string_equal(fault_name(h->conn.life.note.fault), fault_name(fault));
    assert_true(h->conn.life.state > CONN_TERMINATING);
    assert_int_equal(said & (said - 1), 0);
    assert_true(said);
    assert_int_equal(qp->sq.head, qp->sq.tail);
}
