/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_rx_out_of_order.c - packets in any order: what is placed at once, what the link has to keep, and what it has to
 * drop. MPA-7.4-04 MPA-7.4.1-01 to 03 DDP-5.3-02 SEG-5-03 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/lib/rng.h"
#include "tests/unit/conn_host.h"

enum { REGION = 1 << 16, STREAM = 1 << 18, UNITS = 2048, SEQUENCE_WINDOW = 8, REFUSED = 3 };

/* How the peer frames. */
enum kind { MARKERS, ALIGNED, BARE, SEGMENTS, KINDS };

static struct mr *mr;
static struct reorder *reorder;
static void *buffer;
static uint8_t octets[REGION], stream[STREAM], arrived[STREAM];
static size_t begin_of[UNITS + 1]; /* of each unit in stream[], and the end of the last unit */
static size_t units;
static uint8_t state_of[STREAM]; /* what the link has of each octet of the stream: */
enum { MISSING, KEPT, TAKEN };

static enum kind kind;

static void ready(enum kind how)
{
    struct conn_attr attr = host_attr();

    kind = how;
    attr.markers = kind == MARKERS;
    next_connection();
    mr = engine_region(&h.engine, REGION, ALL_ACCESS | RDDP_ACCESS_ZERO_BASED);
    pattern(octets, REGION, 3);
    if (kind == SEGMENTS) {
        buffer = calloc(1, qp_sequence_size(&h.side.qp, SEQUENCE_WINDOW));
        qp_sequence(&h.side.qp, 1, SEQUENCE_WINDOW, buffer);
        conn_init_passive(&h.conn, &wire_rdmatcp, &attr, h.now_us);
        assert_int_equal(conn_accept(&h.conn, &h.side.qp, 4, 4, NULL, 0, h.now_us), 0);
        h.peer = (struct wire_state){.crc = true, .id_known = true, .connection_id = 0x0123456789abcdef};
    } else {
        host_ready(&h, false, &attr);
        h.conn.agreed.aligned = kind == ALIGNED;
    }
    conn_attach_reorder(&h.conn, reorder);
    units = 0;
    begin_of[0] = h.peer.tx_pos;
    memset(state_of, MISSING, sizeof(state_of));
}

static void done(void)
{
    conn_detach(&h.conn, h.now_us);
    free(buffer);
    buffer = NULL;
}

/* Appends one unit to the peer's stream. */
static void add(struct seg seg)
{
    uint8_t unit[WIRE_UNIT_MAX];
    size_t n;

    if (kind == SEGMENTS) {
        seg.msg = (uint32_t)units;
        seg.flags |= SEG_FIRST | SEG_LAST;
        seg.order = SEG_ORDER_ANY;
        seg.total = seg.length;
    }
    n = peer_frames(&h, seg, unit);
    assert_true(begin_of[units] + n <= STREAM && units < UNITS);
    memcpy(stream + begin_of[units], unit, n);
    begin_of[units + 1] = begin_of[units] + n;
    units++;
}

static void add_write(uint32_t at, uint32_t length)
{
    add(a_write(mr->key, at, octets + at, length, SEG_LAST));
}

/* --- the link ------------------------------------------------------------------------------------------------ */

static enum conn_verdict verdict_of(size_t from, size_t to, size_t *n)
{
    uint8_t *p = malloc(to - from), *before = malloc(to - from);
    enum conn_verdict verdict;

    assert_true(p && before);
    memcpy(p, arrived + from, to - from);
    memcpy(before, p, to - from);
    verdict = conn_rx_out_of_order(&h.conn, p, to - from, from, n, h.now_us);
    assert_true(*n && *n <= to - from);
    if (verdict != CONN_TAKEN)
        assert_memory_equal(p, before, to - from);
    else
        assert_memory_equal(p + *n, before + *n, to - from - *n);
    free(p);
    free(before);
    return verdict;
}

static size_t edge(void)
{
    size_t n = begin_of[0];

    while (n < begin_of[units] && state_of[n] != MISSING)
        n++;
    return n;
}

/* Presents the kept octets whose turn has come. */
static void catch_up(void)
{
    size_t at, n = 0, eaten;

    do {
        at = (size_t)conn_advance(&h.conn, edge(), h.now_us);
        for (n = 0; at + n < begin_of[units] && state_of[at + n] == KEPT; n++)
            ;
        memcpy(h.stage, arrived + at, n);
        eaten = n ? conn_rx(&h.conn, h.stage, n, h.now_us) : 0;
        memset(state_of + at, TAKEN, eaten);
    } while (eaten);
    host_pump(&h);
}

/* A packet with the octets [from, to) of the stream arrives; the link drops what the connection refuses. */
static void hear_packet(size_t from, size_t to)
{
    while (from < to) {
        size_t n;
        enum conn_verdict verdict = verdict_of(from, to, &n);

        for (size_t i = from; i < from + n; i++)
            state_of[i] = verdict == CONN_TAKEN                            ? TAKEN
                          : verdict == CONN_KEEP && state_of[i] == MISSING ? KEPT
                                                                           : state_of[i];
        from += n;
    }
    catch_up();
}

static void hear_units(size_t from, size_t to)
{
    memcpy(arrived + begin_of[from], stream + begin_of[from], begin_of[to] - begin_of[from]);
    hear_packet(begin_of[from], begin_of[to]);
}

static bool is_taken(size_t unit)
{
    for (size_t i = begin_of[unit]; i < begin_of[unit + 1]; i++)
        if (state_of[i] != TAKEN)
            return false;
    return true;
}

static void expect_all(void)
{
    assert_int_equal(h.conn.life.state, CONN_READY);
    assert_int_equal(h.conn.agreed.rx_pos, begin_of[units]);
    assert_int_equal(reorder->count, 0);
    assert_memory_equal(mr->base, octets, REGION / 2);
    assert_true(conn_deadline(&h.conn, h.now_us) == UINT64_MAX);
}

/* Writes of `length` octets each that cover half of the region. */
static void add_writes(uint32_t length)
{
    for (uint32_t at = 0; at < REGION / 2; at += length)
        add_write(at, REGION / 2 - at < length ? REGION / 2 - at : length);
}

/* --- tests --------------------------------------------------------------------------------------------------- */

/* MPA-3.1-02 MPA-5.1-03 MPA-5.1-07 MPA-5.1-08: the first packet is lost, all others arrive, and then the first arrives
 * again: wherever a unit can be found reorder, all are already placed, but the connection goes on only when the first
 * is there. */
static void the_first_is_missing(void **state)
{
    (void)state;
    for (enum kind how = 0; how < KINDS; how++) {
        ready(how);
        add_writes(600);
        if (how == SEGMENTS)
            hear_units(0, 1); /* the connection identifier has to be known first */
        for (size_t i = 2; i < units; i++)
            hear_units(i, i + 1);
        for (size_t i = 2; i < units; i++)
            assert_int_equal(is_taken(i), how != BARE);
        if (how != BARE)
            assert_memory_equal(mr->base + 1200, octets + 1200, REGION / 2 - 1200);
        assert_int_equal(h.conn.agreed.rx_pos, begin_of[how == SEGMENTS]);
        hear_units(0, 1);
        assert_int_equal(h.conn.agreed.rx_pos, begin_of[1]);
        hear_units(1, 2);
        expect_all();
        done();
    }
}

/* Any cuts, in any order, some of them twice: the result is what the peer sent. */
static void any_packets_in_any_order(void **state)
{
    struct rng rng = {11};
    size_t early_units = 0;

    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        size_t cut[512], cuts = 0, at;

        ready((enum kind)(turn % KINDS));
        if (kind == ALIGNED)
            add_write(0, 0); /* nothing but alignment, which these packets do not have, is left to the CRC */
        add_writes(1 + rng_below(&rng, 2000) + 100);
        memcpy(arrived, stream, STREAM);
        for (at = begin_of[0]; at < begin_of[units] && cuts < 511; cuts++) {
            cut[cuts] = at;
            at += 1 + rng_below(&rng, 2) * 400 + rng_below(&rng, 1500);
        }
        cut[cuts] = begin_of[units];
        for (size_t i = 0; i < 4 * cuts; i++) {
            size_t k = rng_below(&rng, (uint32_t)cuts);

            if (state_of[cut[k]] == MISSING)
                hear_packet(cut[k], cut[k + 1]);
            early_units += reorder->count;
        }
        for (size_t k = 0; k < cuts; k++)
            if (state_of[cut[k]] == MISSING)
                hear_packet(cut[k], cut[k + 1]);
        expect_all();
        done();
    }
    assert_true(early_units > 1000);
}

/* Behind a hole, REORDER_MAX - 1, REORDER_MAX and REORDER_MAX + 1 units: the link keeps those beyond the limit. */
static void as_many_as_are_on_the_way(void **state)
{
    (void)state;
    for (uint32_t many = REORDER_MAX - 1; many <= REORDER_MAX + 1; many++) {
        ready(ALIGNED);
        add_write(0, REGION / 2);
        for (uint32_t i = 0; i < many; i++)
            add_write(i, 1);
        for (size_t i = units - 1; i; i--)
            hear_units(i, i + 1);
        assert_int_equal(reorder->count, many < REORDER_MAX ? many : REORDER_MAX);
        assert_int_equal(is_taken(1), many <= REORDER_MAX);
        hear_units(0, 1);
        expect_all();
        done();
    }
}

/* MPA-9-08 SEG-5-04: a unit with a wrong CRC counts as not received, and its repetition is taken. Where nothing tells
 * that a unit begins there, it is kept. In its turn a unit may be refused REFUSED times before that is a fault. */
static void corrupted(void **state)
{
    (void)state;
    for (enum kind how = 0; how < KINDS; how++) {
        bool finds = how == MARKERS || how == SEGMENTS;
        size_t n;

        ready(how);
        add_writes(1000);
        if (how == SEGMENTS)
            hear_units(0, 1);
        memcpy(arrived, stream, STREAM);
        arrived[begin_of[3] - 20] ^= 1;
        assert_int_equal(verdict_of(begin_of[2], begin_of[3], &n), finds ? CONN_REFUSED : CONN_KEEP);
        assert_int_equal(n, begin_of[3] - begin_of[2]);
        arrived[begin_of[1] + 40] ^= 1;
        if (how != SEGMENTS)
            hear_units(0, 1);
        for (int i = 0; i < REFUSED; i++)
            assert_int_equal(verdict_of(begin_of[1], begin_of[2], &n), CONN_REFUSED);
        assert_int_equal(h.conn.life.state, CONN_READY);
        if (how == ALIGNED) {
            verdict_of(begin_of[1], begin_of[2], &n);
            host_pump(&h);
            expect_end(&h, FAULT_CRC);
        } else {
            for (size_t i = 1; i < units; i++)
                hear_units(i, i + 1);
            expect_all();
        }
        done();
    }
}

/* MPA-3.1-03: a payload that looks like an FPDU with a right CRC is not taken for one, wherever a packet is cut. */
static void payload_that_looks_like_a_unit(void **state)
{
    uint8_t false_unit[WIRE_UNIT_MAX];
    size_t n;

    (void)state;
    for (int how = 0; how < 2; how++) {
        ready(how ? MARKERS : BARE);
        add_write(0, 600);
        memset(octets + 1000, 0xee, 400);
        n = peer_frames(&h, a_write(mr->key, REGION / 2, octets + 1000, 400, SEG_LAST), false_unit);
        h.peer.tx_pos -= n;
        memcpy(octets + 600, false_unit, n);
        add_write(600, 1400);
        memcpy(arrived, stream, STREAM);
        for (size_t at = begin_of[1] + 1; at < begin_of[2]; at++) {
            enum conn_verdict verdict = verdict_of(at, begin_of[2], &n);

            assert_int_equal(verdict, CONN_KEEP);
        }
        for (uint32_t i = 0; i < REGION; i++)
            assert_int_equal(mr->base[i], 0);
        done();
    }
}

/* MPA-9-06: a marker of an FPDU that arrived early shows that the FPDU begins in the middle of another. */
static void overlaps(void **state)
{
    size_t at, n;

    (void)state;
    ready(MARKERS);
    add_write(0, 2000);
    add_write(2000, 1000);
    memcpy(arrived, stream, STREAM);
    hear_units(1, 2);
    assert_true(is_taken(1));
    /* The missing FPDU arrives, but claims to be longer than the hole; its CRC is not checked yet. */
    at = begin_of[0] + (begin_of[0] % 512 ? 0 : 4);
    put16(arrived + at, (uint16_t)(get16(arrived + at) + 8));
    for (int i = 0; i < REFUSED; i++)
        assert_int_equal(verdict_of(begin_of[0], begin_of[1], &n), CONN_REFUSED);
    hear_packet(begin_of[0], begin_of[1]);
    expect_terminate(&h, 0x2003);
    expect_end(&h, FAULT_OVERLAP);
    done();
}

/* The same if the FPDU in front arrives whole, with a right CRC: it ends behind the beginning of the next. */
static void overlaps_whole(void **state)
{
    size_t n;

    (void)state;
    ready(ALIGNED);
    add_write(0, 2000);
    add_write(2000, 1000);
    hear_units(1, 2);
    assert_true(is_taken(1));
    h.peer.tx_pos = begin_of[0];
    n = peer_frames(&h, a_write(mr->key, 0, octets, 2004, SEG_LAST), h.stage);
    assert_int_equal(n, begin_of[1] - begin_of[0] + 4);
    assert_int_equal(conn_rx(&h.conn, h.stage, n, h.now_us), n);
    for (int i = 0; i <= REFUSED; i++) {
        h.conn.refused = false;
        conn_rx(&h.conn, NULL, 0, h.now_us);
    }
    host_pump(&h);
    expect_terminate(&h, 0x2003);
    expect_end(&h, FAULT_OVERLAP);
    done();
}

/* A fault in an early unit is found in its turn, and not before. */
static void wrong_in_its_turn(void **state)
{
    (void)state;
    ready(MARKERS);
    add_write(0, 600);
    add(a_write(mr->key ^ 1, 0, octets, 600, SEG_LAST));
    hear_units(1, 2);
    assert_int_equal(h.conn.life.state, CONN_READY);
    hear_units(0, 1);
    expect_terminate(&h, 0x1100);
    expect_end(&h, FAULT_KEY);
    assert_memory_equal(mr->base, octets, 600);
    done();
}

/* A Send, a Read Request and a Terminate are delivered in their turn; the payload of the Send is placed before. */
static void delivered_in_turn(void **state)
{
    const struct seg_read read = {.sink_key = 7, .source_key = 0, .length = 8};
    struct rddp_sge piece;
    struct seg seg;

    (void)state;
    ready(ALIGNED);
    piece = piece_of(mr, 0, 1000);
    assert_int_equal(post_recv(&h.side, 9, &piece, 1), 0);
    add_write(2000, 100);
    add(a_send(1, 0, octets, 500, 0));
    add(a_send(1, 500, octets + 500, 500, SEG_LAST));
    seg = a_read_request(1, &read);
    seg.read.source_key = mr->key;
    add(seg);
    for (size_t i = 3; i; i--)
        hear_units(i, i + 1);
    assert_memory_equal(mr->base, octets, 1000);
    expect_quiet(&h.side.recv_cq);
    assert_int_equal(h.side.qp.answers.head, 1);
    hear_units(0, 1);
    assert_int_equal(expect_wc(&h.side.recv_cq, 9, RDDP_WC_SUCCESS).byte_len, 1000);
    expect_seg(&h, SEG_READ_RESP);
    done();
}

/* conn_rx_out_of_order() copes with every position. */
static void any_position(void **state)
{
    size_t n;

    (void)state;
    for (enum kind how = 0; how < KINDS; how++) {
        ready(how);
        add_writes(700);
        memcpy(arrived, stream, STREAM);
        for (uint64_t pos = begin_of[0] + 1; pos < begin_of[0] + 1200; pos++) {
            enum conn_verdict verdict;
            uint8_t p[800];

            memcpy(p, arrived + begin_of[2], sizeof(p));
            verdict = conn_rx_out_of_order(&h.conn, p, 1 + pos % 800, pos, &n, h.now_us);
            if (how != ALIGNED && pos != begin_of[2])
                assert_int_not_equal(verdict, CONN_TAKEN);
            memcpy(p, arrived + begin_of[2], sizeof(p));
            conn_rx_out_of_order(&h.conn, p, 800, UINT64_MAX - pos, &n, h.now_us);
        }
        assert_int_equal(h.conn.life.state, CONN_READY);
        done();
    }
}

/* The hole is never filled. */
static void never_filled(void **state)
{
    (void)state;
    ready(MARKERS);
    add_writes(700);
    hear_units(1, 2);
    assert_true(conn_deadline(&h.conn, h.now_us) == h.now_us + 1000000);
    host_wait_until(&h, h.now_us + 1000000);
    expect_end(&h, FAULT_STALLED);
    done();
}

static int begin(void **state)
{
    reorder = malloc(sizeof(*reorder));
    return reorder ? set_up(state) : -1;
}

static int end(void **state)
{
    free(reorder);
    return tear_down(state);
}

#define TAKE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TAKE_TEST(the_first_is_missing),
        TAKE_TEST(any_packets_in_any_order),
        TAKE_TEST(as_many_as_are_on_the_way),
        TAKE_TEST(corrupted),
        TAKE_TEST(payload_that_looks_like_a_unit),
        TAKE_TEST(overlaps),
        TAKE_TEST(overlaps_whole),
        TAKE_TEST(wrong_in_its_turn),
        TAKE_TEST(delivered_in_turn),
        TAKE_TEST(any_position),
        TAKE_TEST(never_filled),
    };

    return cmocka_run_group_tests_name("conn_rx_out_of_order", tests, NULL, NULL);
}
