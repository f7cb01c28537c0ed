/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sequence.c - a connection over RDMA/TCP segments whose peer sends correct or almost correct segments, with a correct
 * Connection ID and CRC, in order or early. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/crcseg.h"
#include "core/qp_inner.h"
#include "fuzz/lib/host.h"

enum { BATCH = 4, SAID = 64 };

#define ID 0x5e9b1d0c0ffee123

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* A segment that the peer has sent: tells which control data are due when the stream has reached its end. */
struct said {
    uint64_t end;
    enum seg_op op;
    uint32_t control_length;
};

/* How an honest peer's messages would continue. */
struct peer {
    uint32_t number, key, offset, octets, total;
    enum seg_op op;
    bool open;
    uint32_t read, read_octets; /* which of our Reads it answers, and how many octets of it were sent */
};

struct talk {
    struct host host;
    struct peer peer;
    uint64_t pos;         /* octets of the peer's stream */
    uint32_t batch, next; /* units sent by the peer, and the first of them that was not delivered */
    size_t octets[BATCH];
    bool taken[BATCH];
    struct said said[SAID];
    uint32_t said_first, said_next;
    uint64_t control; /* octets of control data of Writes and Read Requests that are due */
};

static struct reorder reorder;
static uint8_t units[BATCH][WIRE_UNIT_MAX];
static uint8_t copy[2][ARENA_REGIONS * ARENA_OCTETS];

/* Control data that are due are either with the application, or counted as dropped, or waiting. */
static void check_control(struct talk *t)
{
    const struct qp *qp = &t->host.arena->qp;

    for (; t->said_first != t->said_next && t->said[t->said_first % SAID].end <= qp->rx_pos; t->said_first++)
        if (t->said[t->said_first % SAID].op == SEG_WRITE || t->said[t->said_first % SAID].op == SEG_READ_REQ)
            t->control += t->said[t->said_first % SAID].control_length;
    arena_poll(t->host.arena);
    assert(qp->control_dropped == (qp->attr.rdma_control ? 0 : t->control));
    assert(t->host.arena->control_told <= t->control);
    assert(qp->arriving.claimed - qp->arriving.next <= qp->attr.window);
}

/* Delivers the sent units in order, except for those taken reorder, until one has to wait. */
static void catch_up(struct talk *t)
{
    struct host *h = &t->host;

    while (t->next < t->batch && !h->staged && !h->conn.held) {
        uint64_t pos = h->conn.agreed.rx_pos;

        if (t->taken[t->next]) {
            if (conn_advance(&h->conn, t->pos, h->now_us) == pos)
                return;
        } else {
            memcpy(host_stage, units[t->next], t->octets[t->next]);
            h->staged = t->octets[t->next];
            host_eat(h);
        }
        t->next++;
    }
}

static void pump(struct talk *t)
{
    host_pump(&t->host);
    catch_up(t);
    host_pump(&t->host);
    check_control(t);
}

/* --- what the peer says -------------------------------------------------------------------------------------- */

static void next_write(struct peer *p, struct seg *seg, struct input *in, uint32_t size, bool last)
{
    if (!p->open) {
        p->key = ARENA_TARGET + 1;
        p->offset = input16(in) % (ARENA_OCTETS / 2);
        p->total = size + (last ? 0 : input16(in) % 2000);
    }
    seg->length = last || size > p->total - p->octets ? p->total - p->octets : size;
    seg->flags |= last ? SEG_LAST : 0;
    seg->key = p->key;
    seg->offset = p->offset + p->octets;
    seg->total = p->total;
}

static void next_response(struct peer *p, struct seg *seg, const struct qp *qp, uint32_t size)
{
    const struct send *s = NULL;

    if (p->read - qp->reads.tail >= reads_out(qp)) {
        p->read = qp->reads.tail;
        p->read_octets = 0;
    }
    if (reads_out(qp))
        s = read_out_at(qp, p->read);
    seg->msg = s ? s->number : 0;
    seg->flags = p->read_octets ? 0 : SEG_FIRST;
    seg->offset = p->read_octets;
    seg->length = s && size < s->length - p->read_octets ? size : s ? s->length - p->read_octets : size;
    p->read_octets += seg->length;
    if (s && p->read_octets == s->length) {
        seg->flags |= SEG_LAST;
        p->read++;
        p->read_octets = 0;
    }
}

static struct seg next_segment(struct talk *t, struct input *in)
{
    static const uint16_t orders[] = {0, SEG_ORDER_ANY, 1, 2, 3, 5, 100, SEG_ORDER_ANY - 1};
    static const uint8_t control[1020];
    struct peer *p = &t->peer;
    uint8_t kind = input8(in), size = input8(in), how = input8(in);
    uint32_t length = size & 0x80 ? input16(in) % 3000 : size;
    struct seg seg = {.op = (enum seg_op)(kind & 3), .msg = p->number, .order = orders[how & 7], .control = control};

    seg.op = p->open && seg.op != SEG_READ_RESP ? p->op : seg.op;
    seg.control_length = kind & 8 ? input8(in) * 4U : 0;
    seg.reserved = how & 0x80 ? SEQUENCE_SOLICITED : 0;
    if (seg.op == SEG_READ_RESP) {
        next_response(p, &seg, &t->host.arena->qp, length);
        return seg;
    }
    p->octets = p->open ? p->octets : 0;
    seg.flags = p->open ? 0 : SEG_FIRST;
    if (seg.op == SEG_WRITE) {
        next_write(p, &seg, in, length, !(kind & 4));
    } else if (seg.op == SEG_SEND) {
        seg.flags |= kind & 4 ? 0 : SEG_LAST;
        seg.offset = p->octets;
        seg.length = length;
    } else {
        seg.flags |= SEG_LAST;
        seg.read = (struct seg_read){.source_key = ARENA_TARGET + 1, .source_offset = length, .length = length};
    }
    p->op = seg.op;
    p->octets += seg.length;
    p->open = !(seg.flags & SEG_LAST);
    p->number += !p->open;
    return seg;
}

/* Changes one octet of the header, but not the length or the Connection ID. */
static void bend(struct input *in, uint8_t *unit, size_t n)
{
    uint8_t at = input8(in) % 32, with = input8(in);

    if (at >= 2 && at < 12)
        return;
    if (at < n - 4)
        unit[at] ^= with;
    put32le(unit + n - 4, crcseg(0, unit, n - 4));
}

/* Encodes the peer's next segment and notes its end in the stream. */
static size_t say(struct talk *t, struct input *in, uint8_t *unit, uint64_t pos)
{
    static uint8_t payload[1 << 12], again[WIRE_UNIT_MAX];
    struct wire_state agreed = {.crc = true, .id_known = true, .connection_id = ID}, rx = agreed;
    struct seg seg = next_segment(t, in);
    struct span span = {payload, seg.length};
    size_t n, need;

    memset(payload, (int)pos, seg.length);
    n = wire_rdmatcp.frame(&agreed, &seg, &span, 1, unit);
    if (input8(in) > 0xe0)
        bend(in, unit, n);
    memcpy(again, unit, n);
    if (wire_rdmatcp.decode(&rx, &seg, again, n, &need) <= 0)
        seg = (struct seg){.op = SEG_SEND};
    t->said[t->said_next++ % SAID] = (struct said){pos + n, seg.op, seg.control_length};
    return n;
}

/* Delivers a unit before its turn. It is either taken as a whole, or not at all and left unchanged. */
static void come_early(struct talk *t, uint32_t which, uint64_t pos)
{
    static uint8_t unit[WIRE_UNIT_MAX];
    size_t n = t->octets[which], judged;
    enum conn_verdict verdict;

    if (pos == t->host.conn.agreed.rx_pos)
        return;
    memcpy(unit, units[which], n);
    verdict = conn_rx_out_of_order(&t->host.conn, unit, n, pos, &judged, t->host.now_us);
    assert(judged == n && (verdict == CONN_TAKEN || !memcmp(unit, units[which], n)));
    t->taken[which] |= verdict == CONN_TAKEN;
    assert(!t->taken[which] || verdict == CONN_TAKEN);
}

/* Sends a few segments: some arrive reorder, all arrive in order. */
static void say_some(struct talk *t, struct input *in)
{
    struct host *h = &t->host;
    uint8_t shape = input8(in), count = 1 + shape % BATCH;
    uint64_t begin[BATCH];

    if (h->ended || t->next < t->batch || !(conn_wants(&h->conn, h->now_us) & CONN_RX) ||
        t->said_next - t->said_first + BATCH > SAID)
        return;
    t->batch = count;
    t->next = 0;
    memset(t->taken, 0, sizeof(t->taken));
    for (uint8_t i = 0; i < count; i++) {
        begin[i] = t->pos;
        t->octets[i] = say(t, in, units[i], t->pos);
        t->pos += t->octets[i];
    }
    for (uint8_t i = shape >> 4; i && life_is_open(&h->conn.life); i--) {
        uint8_t which = input8(in) % count;

        come_early(t, which, begin[which]);
    }
    catch_up(t);
}

static void end_stream(struct host *h)
{
    if (h->ended)
        return;
    h->may_cut = h->ended = true;
    conn_rx_end(&h->conn, h->staged, h->now_us);
}

/* --- one input ----------------------------------------------------------------------------------------------- */

static void step(struct talk *t, struct input *in)
{
    struct host *h = &t->host;
    uint8_t what = input8(in);

    switch (what & 15) {
    case 0:
        h->now_us += (uint64_t)input16(in) * 100;
        conn_tick(&h->conn, h->now_us);
        h->may_cut |= h->conn.life.state == CONN_OVER;
        break;
    case 1:
        h->takes = (size_t)input16(in) * 4;
        break;
    case 2:
        h->takes = HOST_SENT;
        break;
    case 3:
        if (what >> 4 == 0)
            conn_close(&h->conn, h->now_us);
        else if (what >> 4 == 1)
            end_stream(h);
        break;
    case 4:
        h->conn.attr.emss = input16(in);
        break;
    case 5:
        host_scribble(h, in);
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        arena_post(h->arena, in);
        break;
    default:
        say_some(t, in);
    }
    pump(t);
}

/* A connection that has ended ignores what it receives. */
static void check_deaf(struct talk *t, struct input *in)
{
    arena_copy(t->host.arena, copy[0]);
    for (int i = 0; i < 4; i++)
        say_some(t, in);
    arena_copy(t->host.arena, copy[1]);
    assert(!memcmp(copy[0], copy[1], sizeof(copy[0])));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct input in = {data, data + length};
    struct wire_state peer = {.crc = true, .id_known = true, .connection_id = ID};
    uint8_t a = input8(&in), b = input8(&in);
    struct qp_attr allowed = {.out_of_order = a & 2, .rdma_control = a & 4};
    struct conn_attr attr = {.emss = 1460, .connection_id = ID, .stall_us = 200000, .close_us = 100000};
    struct talk t = {.host = {.now_us = HOST_START_US, .takes = HOST_SENT}};
    struct host *h = &t.host;
    struct qp *qp;

    h->arena = arena_open_sequence(2 + b % 8, 1 + b / 8 % 8, &allowed);
    qp = &h->arena->qp;
    attr.ird = attr.ord = (uint16_t)qp->attr.ird;
    attr.startup_us = 100000;
    t.peer.number = UINT32_MAX - (a >> 4);
    if (!(a & 1))
        conn_init_passive(&h->conn, &wire_rdmatcp, &attr, h->now_us);
    else if (conn_init_active(&h->conn, &wire_rdmatcp, &attr, qp, NULL, 0, h->now_us))
        abort();
    if (!(a & 1) && conn_accept(&h->conn, qp, attr.ird, attr.ord, NULL, 0, h->now_us))
        abort();
    conn_attach_reorder(&h->conn, &reorder);
    pump(&t);
    for (int i = 0; in.at < in.end && i < HOST_STEPS_MAX; i++)
        step(&t, &in);
    if (h->conn.life.state >= CONN_TERMINATING)
        check_deaf(&t, &in);
    host_check_sent(h, peer, h->conn.life.state >= CONN_TERMINATING);
    host_lose(h);
    check_control(&t);
    arena_close(h->arena);
    return 0;
}
