/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_read_to_place.c - payloads that the host reads straight into the registered memory: the result is the same as
 * through the stage, and nothing takes effect before the unit is complete. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/rng.h"
#include "tests/unit/conn_host.h"

enum { LENGTH = 30000, LEAST = 1000, HEAD = 16, TAIL = 4 };

static uint8_t octets[LENGTH], unit[WIRE_UNIT_MAX];
static size_t apart; /* octets that arrived straight in their place */

static void ready(bool crc, bool markers)
{
    struct conn_attr attr = host_attr();

    attr.crc = crc;
    attr.markers = markers;
    attr.emss = 65483;
    pattern(octets, LENGTH, 5);
    host_ready(&h, false, &attr);
    apart = 0;
}

static bool gap_of(struct conn_place *gap)
{
    uint32_t staged = (uint32_t)h.staged;
    bool found = staged && conn_read_to_place(&h.conn, h.stage, &staged, LEAST, gap, h.now_us);

    assert_true(staged <= h.staged);
    apart += h.staged - staged;
    h.staged = staged;
    return found;
}

/* Takes `n` octets: into their place as far as it is known, and the rest into the stage. */
static size_t hear_some(const uint8_t *p, size_t n)
{
    struct conn_place gap;
    size_t there = 0;

    if (gap_of(&gap)) {
        there = n < gap.octets ? n : gap.octets;
        memcpy(gap.at, p, there);
        conn_filled(&h.conn, there);
        apart += there;
    }
    if (there < n)
        host_hear(&h, p + there, n - there);
    return n;
}

static void hear_apart(const uint8_t *p, size_t n, struct rng *rng)
{
    for (size_t i = 0; i < n;)
        i += hear_some(p + i, rng_between(rng, 1, (uint32_t)(n - i)));
}

static struct mr *target(void)
{
    return engine_region(&h.engine, LENGTH, ALL_ACCESS);
}

static struct seg write_to(const struct mr *mr)
{
    return a_write(mr->key, mr->start, octets, LENGTH, SEG_LAST);
}

/* MPA-7.4-05: any cuts, every kind of payload, and small units in between; only whole units take effect. */
static void same_as_through_the_stage(void **state)
{
    struct rng rng = {7};
    size_t all = 0;

    (void)state;
    for (int turn = 0; turn < 300; turn++) {
        struct rddp_sge piece, sink;
        struct mr *mr[3];

        next_connection();
        ready(false, false);
        for (int i = 0; i < 3; i++)
            mr[i] = target();
        piece = piece_of(mr[0], 0, LENGTH);
        sink = piece_of(mr[1], 0, LENGTH);
        assert_int_equal(post_recv(&h.side, 1, &piece, 1), 0);
        assert_int_equal(post_remote(&h.side, 2, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sink, 1, 9, 0), 0);
        host_pump(&h);
        const struct seg said[] = {
            a_write(mr[2]->key, mr[2]->start, octets, 7, SEG_LAST),
            a_send(1, 0, octets, LENGTH / 2, 0),
            a_read_response(sink.lkey, sink.addr, octets, LENGTH, SEG_LAST),
            a_send(1, LENGTH / 2, octets + LENGTH / 2, LENGTH / 2, SEG_LAST),
            write_to(mr[2]),
        };
        for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
            hear_apart(unit, peer_frames(&h, said[i], unit), &rng);
        assert_int_equal(h.staged, 0);
        for (int i = 0; i < 3; i++)
            assert_memory_equal(mr[i]->base, octets, LENGTH);
        assert_int_equal(expect_wc(&h.side.recv_cq, 1, RDDP_WC_SUCCESS).byte_len, LENGTH);
        expect_wc(&h.side.send_cq, 2, RDDP_WC_SUCCESS);
        assert_int_equal(h.conn.life.state, CONN_READY);
        all += apart;
    }
    assert_true(all > 300 * LENGTH);
}

/* Which part of a unit the connection has when it is asked for the place of the rest. */
static void where_it_belongs(void **state)
{
    struct conn_place gap;
    struct mr *mr;

    (void)state;
    ready(false, false);
    mr = target();
    peer_frames(&h, write_to(mr), unit);
    host_hear(&h, unit, HEAD - 1);
    assert_false(gap_of(&gap)); /* the header is not complete */
    host_hear(&h, unit + HEAD - 1, 11);
    assert_true(gap_of(&gap));
    assert_int_equal(h.staged, HEAD);
    assert_memory_equal(mr->base, octets, 10);
    assert_ptr_equal(gap.at, mr->base + 10);
    assert_int_equal(gap.octets, LENGTH - 10);
    assert_int_equal(gap.behind, TAIL);
    memcpy(gap.at, octets + 10, 5);
    conn_filled(&h.conn, 5);
    assert_true(gap_of(&gap));
    assert_ptr_equal(gap.at, mr->base + 15);
    conn_filled(&h.conn, gap.octets);
    assert_false(gap_of(&gap));
    assert_int_equal(h.conn.life.qp->rx_octets, 0);
    host_hear(&h, unit + HEAD + LENGTH, TAIL);
    assert_int_equal(h.conn.life.qp->rx_octets, LENGTH);
}

/* LEAST - 1, LEAST, and LEAST + 1 octets are missing. */
static void what_is_worth_it(void **state)
{
    (void)state;
    for (int more = -1; more <= 1; more++) {
        struct conn_place gap;

        next_connection();
        ready(false, false);
        peer_frames(&h, write_to(target()), unit);
        host_hear(&h, unit, (size_t)(HEAD + LENGTH - LEAST - more));
        assert_int_equal(gap_of(&gap), more >= 0);
    }
}

/* MPA-7.4-01: a unit with a CRC is never placed before the CRC is verified, nor one with markers in its payload. */
static void not_unverified(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct conn_place gap;

        next_connection();
        ready(i == 0, i == 1);
        peer_frames(&h, write_to(target()), unit);
        host_hear(&h, unit, LENGTH / 2);
        assert_false(gap_of(&gap));
    }
}

static void not_in_pieces(void **state)
{
    struct rddp_sge piece[2];
    struct conn_place gap;
    struct mr *mr;

    (void)state;
    ready(false, false);
    mr = target();
    piece[0] = piece_of(mr, 0, LENGTH / 2);
    piece[1] = piece_of(mr, LENGTH / 2, LENGTH / 2);
    assert_int_equal(post_recv(&h.side, 1, piece, 2), 0);
    peer_frames(&h, a_send(1, 0, octets, LENGTH, SEG_LAST), unit);
    host_hear(&h, unit, 100);
    assert_false(gap_of(&gap));
    peer_frames(&h, a_send(1, 0, octets, LENGTH, SEG_LAST), unit);
}

/* A wrong key, a missing right, beyond the bounds, an unrequested response, a Send without a receive: no place is
 * offered for the octets, and the fault of the whole unit is the same as ever. */
static void faults_are_those_of_the_whole(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct conn_place gap;
        struct seg said;
        struct mr *mr;
        size_t n;

        next_connection();
        ready(false, false);
        mr = target();
        said = write_to(mr);
        if (i == 0)
            said.key ^= 1;
        else if (i == 1)
            mr->access = RDDP_ACCESS_LOCAL_WRITE;
        else if (i == 2)
            said.offset++;
        else if (i == 3)
            said = a_read_response(mr->key, mr->start, octets, LENGTH, SEG_LAST);
        else
            said = a_send(1, 0, octets, LENGTH, SEG_LAST);
        n = peer_frames(&h, said, unit);
        host_hear(&h, unit, 100);
        assert_false(gap_of(&gap));
        assert_int_equal(h.staged, 100);
        assert_int_equal(h.conn.life.state, CONN_READY);
        host_hear(&h, unit + 100, n - 100);
        expect_terminate(&h, i == 4 ? 0x1202 : i == 2 ? 0x1101 : 0x1100);
        for (uint32_t k = 0; k < LENGTH; k++)
            assert_int_equal(mr->base[k], 0);
    }
}

/* The memory is withdrawn in the middle of a unit: no further octet goes there. */
static void memory_goes(void **state)
{
    uint64_t epoch;
    struct conn_place gap;
    struct mr *mr;

    (void)state;
    for (int how = 0; how < 2; how++) {
        next_connection();
        ready(false, false);
        mr = target();
        peer_frames(&h, write_to(mr), unit);
        host_hear(&h, unit, 100);
        assert_true(gap_of(&gap));
        if (how == 0)
            mr_remove(&h.engine.mrs, mr);
        else
            assert_int_equal(mr_invalidate(&h.engine.mrs, &h.engine.pd, mr->key, false, &epoch), FAULT_NONE);
        assert_false(gap_of(&gap));
        host_pump(&h);
        expect_terminate(&h, 0x1100);
        expect_end(&h, FAULT_KEY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_as_through_the_stage, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_it_belongs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_worth_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_unverified, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_in_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(faults_are_those_of_the_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_goes, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("conn_read_to_place", tests, NULL, NULL);
}
