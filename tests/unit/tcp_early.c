/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_early.c - a path in virtual time loses one packet in a hundred: how much of what arrives behind a hole is placed
 * at once, and how much the receiver has to keep, for marked streams, iWARP, RDMA/TCP segments and a plain stream.
 * TCPOPT-0-04 TCPOPT-3.1.5-02 TCPOPT-3.1.8-01 MPA-5.1-03 MPA-5.2-09 */
#include <stdlib.h>
#include <string.h>

#include "stream/inner.h"
#include "tests/lib/tcpnet.h"
#include "tests/unit/conn_host.h"

enum {
    LENGTH = 4 << 20, /* octets of data */
    PAYLOAD = 1380,   /* of a Write: its unit fits into a segment */
    UNITS = LENGTH / PAYLOAD + 2,
    TRANSFER = 1 << 18,
    HEAD = 64,
    WINDOW = 1 << 20,
    RING = 4 * WINDOW,
    SEQUENCE_WINDOW = 8,
    BUFFER = LENGTH + (1 << 20),
    MIN_SEEN = 200000, /* octets behind holes in a run that shows anything */
    HOURS = 3600,
};

enum kind { OPTION, PLAIN, MARKERS, ALIGNED, SEGMENTS };

static struct tcpnet net;
static enum kind kind;
static uint8_t octets[LENGTH], stream[BUFFER], target[LENGTH];
static uint64_t length; /* of the stream */
static uint64_t placed_early;

/* --- iWARP and RDMA/TCP segments ------------------------------------------------------------------------------ */

static struct mr *mr;
static struct reorder *reorder;
static void *numbers;
static uint64_t base; /* the connection counts the octets of its start-up, too */
static uint64_t end_of[UNITS];
static size_t units;
static uint8_t kept[BUFFER];

static void frame_writes(void)
{
    struct conn_attr attr = host_attr();
    uint8_t unit[WIRE_UNIT_MAX];

    attr.markers = kind == MARKERS;
    next_connection();
    mr = engine_region(&h.engine, LENGTH, ALL_ACCESS | RDDP_ACCESS_ZERO_BASED);
    if (kind == SEGMENTS) {
        numbers = calloc(1, qp_sequence_size(&h.side.qp, SEQUENCE_WINDOW));
        qp_sequence(&h.side.qp, 1, SEQUENCE_WINDOW, numbers);
        conn_init_passive(&h.conn, &wire_rdmatcp, &attr, h.now_us);
        assert_int_equal(conn_accept(&h.conn, &h.side.qp, 4, 4, NULL, 0, h.now_us), 0);
        h.peer = (struct wire_state){.crc = true, .id_known = true, .connection_id = 7};
    } else {
        host_ready(&h, false, &attr);
        h.conn.agreed.aligned = kind == ALIGNED;
    }
    conn_attach_reorder(&h.conn, reorder);
    base = h.peer.tx_pos;
    length = 0;
    units = 0;
    for (uint32_t at = 0, n; at < LENGTH; at += n) {
        struct seg seg;
        size_t size;

        n = LENGTH - at < PAYLOAD ? LENGTH - at : PAYLOAD;
        seg = a_write(mr->key, at, octets + at, n, SEG_LAST);
        if (kind == SEGMENTS) {
            seg.msg = (uint32_t)units;
            seg.flags |= SEG_FIRST | SEG_LAST;
            seg.order = SEG_ORDER_ANY;
            seg.total = seg.length;
        }
        size = peer_frames(&h, seg, unit);
        memcpy(stream + length, unit, size);
        end_of[units++] = length += size;
    }
}

static uint32_t cut_unit(void *user, uint64_t position, uint32_t ready, uint32_t space)
{
    size_t low = 0, high = units;
    uint64_t rest;

    (void)user;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (end_of[middle] <= position)
            low = middle + 1;
        else
            high = middle;
    }
    rest = end_of[low] - position;
    assert_true(rest <= space);
    return rest < ready ? (uint32_t)rest : ready;
}

static void fetch_octets(void *user, uint64_t position, uint32_t n, struct utcp_piece *piece)
{
    (void)user;
    piece->spans = 1;
    piece->span[0] = (struct span){stream + position, n};
}

static struct utcp_verdict conn_arrived(void *user, const struct utcp_arrival *a)
{
    struct utcp_verdict v = {0, 0};
    size_t n;

    (void)user;
    for (; v.taken < a->length; v.taken += (uint32_t)n) {
        uint64_t position = a->position + v.taken;
        uint8_t *p = (uint8_t *)(uintptr_t)a->data + v.taken;
        enum conn_verdict verdict =
            conn_rx_out_of_order(&h.conn, p, a->length - v.taken, base + position, &n, h.now_us);

        if (verdict == CONN_REFUSED)
            break;
        if (verdict == CONN_KEEP) {
            memcpy(kept + position, p, n);
            v.kept += (uint32_t)n;
        } else if (a->early) {
            placed_early += n;
        }
    }
    return v;
}

static void conn_reads(const struct utcp *t)
{
    uint64_t at, to;
    size_t eaten;

    do {
        const struct seg *taken;

        to = utcp_received(t);
        at = conn_advance(&h.conn, base + to, h.now_us) - base;
        taken = reorder_first(reorder);
        to = taken && taken->begin - base < to ? taken->begin - base : to;
        eaten = at < to ? conn_rx(&h.conn, kept + at, to - at, h.now_us) : 0;
    } while (eaten);
    host_pump(&h);
}

static const struct utcp_user conn_sender = {cut_unit, fetch_octets, NULL};
static const struct utcp_user conn_receiver = {cut_unit, fetch_octets, conn_arrived};

/* --- streams -------------------------------------------------------------------------------------------------- */

static struct tcpopt_map map;
static struct tcpopt_section sections[64];
static struct rddp_stream reader;
static struct rddp_stream_net reader_net;
static uint8_t ring[RING];
static struct stream_place places[STREAM_PLACES];
static struct stream_buffer buffers[STREAM_BUFFERS];
static struct stream_fill fills[STREAM_FILLS];

static void write_messages(void)
{
    tcpopt_map_init(&map, sections, 64);
    memset(&reader, 0, sizeof(reader));
    reader.net = &reader_net;
    reader.ring = ring;
    reader.ring_octets = RING;
    reader.places.place = places;
    reader.buffer = buffers;
    reader.fills.row = fills;
    length = 0;
    for (uint32_t i = 0; i < LENGTH / TRANSFER; i++) {
        struct tcpopt_section head = {.message = true};
        struct tcpopt_section data = {.rid = i, .data = true, .has_total = true, .total = TRANSFER};

        assert_true(tcpopt_map_add(&map, &head, HEAD) && tcpopt_map_add(&map, &data, TRANSFER));
        assert_int_equal(rddp_stream_expect(&reader, i, target + (size_t)i * TRANSFER, TRANSFER), 0);
        memset(stream + length, (int)i, HEAD);
        memcpy(stream + length + HEAD, octets + (size_t)i * TRANSFER, TRANSFER);
        length += HEAD + TRANSFER;
    }
}

static uint32_t cut_message(void *user, uint64_t position, uint32_t ready, uint32_t space)
{
    (void)user;
    if (kind == OPTION)
        return tcpopt_map_cut(&map, position, ready, space);
    return ready < space ? ready : space;
}

static void fetch_message(void *user, uint64_t position, uint32_t n, struct utcp_piece *piece)
{
    struct tcpopt o;

    fetch_octets(user, position, n, piece);
    if (kind == OPTION && tcpopt_map_describe(&map, position, n, &o))
        piece->option_length = (uint32_t)(tcpopt_encode(piece->option, &o) - piece->option);
}

/* What arrived in order is what was sent, where it lies. */
static void stream_reads(const struct utcp *t)
{
    struct stream_places *p = &reader.places;
    uint64_t to = utcp_received(t) < length ? utcp_received(t) : length;

    while (reader.read_to < to) {
        const struct stream_place *first = p->count ? p->place + p->first : NULL;
        const uint8_t *at = ring + (reader.read_to & (RING - 1));

        if (first && first->from <= reader.read_to)
            at = first->at + (reader.read_to - first->from);
        assert_int_equal(*at, stream[reader.read_to]);
        reader.read_to++;
        if (first && first->to == reader.read_to)
            p->first = --p->count ? p->first + 1 : 0;
    }
    placed_early = reader.count.octets_placed_early;
}

static const struct utcp_user stream_sender = {cut_message, fetch_message, NULL};
static const struct utcp_user stream_receiver = {cut_message, fetch_message, stream_arrived};

/* --- the path ------------------------------------------------------------------------------------------------- */

static bool is_conn(void)
{
    return kind >= MARKERS;
}

static bool over(const struct tcpnet *n)
{
    struct utcp *t = &net.end[1].tcp;

    if (!n->end[1].open)
        return false;
    if (is_conn())
        conn_reads(t);
    else
        stream_reads(t);
    if (t->state != UTCP_CLOSED)
        utcp_limit(t, (is_conn() ? h.conn.agreed.rx_pos - base : reader.read_to) + RING / 2);
    return n->end[0].tcp.state == UTCP_CLOSED && t->state == UTCP_CLOSED;
}

static void transfer(uint64_t seed)
{
    struct utcp_attr attr;

    placed_early = 0;
    memset(target, 0, sizeof(target));
    tcpnet_init(&net, seed);
    if (is_conn())
        frame_writes();
    else
        write_messages();
    for (int i = 0; i < 2; i++) {
        net.end[i].path.delay_us = 1000;
        net.end[i].path.lose = 1000;
    }
    net.end[0].own.user = is_conn() ? &conn_sender : &stream_sender;
    net.end[1].own.user = is_conn() ? &conn_receiver : &stream_receiver;
    net.end[1].own.of = &reader;
    net.end[0].to_send = length;
    utcp_attr_default(&attr);
    attr.window = WINDOW;
    attr.option_kind = kind == OPTION ? TCPOPT_KIND : 0;
    tcpnet_connect(&net, &attr, &attr, false);
    tcpnet_run(&net, net.now_us + HOURS * 1000000ULL, over);
    assert_true(over(&net) && utcp_received(&net.end[1].tcp) == length);
}

/* Returns the most octets that were kept. */
static uint64_t run(enum kind how, uint64_t seed)
{
    uint64_t behind, most;

    kind = how;
    transfer(seed);
    behind = net.end[1].tcp.count.early_octets;
    most = net.end[1].tcp.count.kept_max;
    print_message("kind %d seed %llu: %llu octets behind holes, %llu placed at once, %llu kept at most\n", (int)how,
                  (unsigned long long)seed, (unsigned long long)behind, (unsigned long long)placed_early,
                  (unsigned long long)most);
    assert_true(behind > MIN_SEEN);
    if (how == PLAIN)
        assert_true(placed_early == 0);
    else
        assert_true(placed_early >= behind / 2);
    if (how == OPTION)
        assert_memory_equal(target, octets, LENGTH);
    if (is_conn()) {
        assert_memory_equal(mr->base, octets, LENGTH);
        assert_int_equal(reorder->count, 0);
        conn_detach(&h.conn, h.now_us);
        free(numbers);
        numbers = NULL;
    }
    tcpnet_fini(&net);
    return most;
}

/* The plain stream is the contrast. */
static void little_is_kept(void **state)
{
    uint64_t plain_most = 0;

    (void)state;
    reorder = calloc(1, sizeof(*reorder));
    assert_non_null(reorder);
    pattern(octets, LENGTH, 3);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        uint64_t plain = run(PLAIN, seed);

        assert_true(run(OPTION, seed) <= 1024);
        for (enum kind how = MARKERS; how <= SEGMENTS; how++)
            assert_true(run(how, seed) <= 16384);
        assert_true(plain >= 1 << 16);
        plain_most = plain > plain_most ? plain : plain_most;
    }
    assert_true(plain_most >= 3 << 16);
    free(reorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(little_is_kept, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
