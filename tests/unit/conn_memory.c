/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_memory.c - memory that a connection borrows while it sends, and faults that this side itself causes. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/conn_host.h"

enum { BIG = 300000 };

static void begin(void)
{
    const struct conn_attr attr = host_attr();

    host_ready(&h, false, &attr);
}

/* A region of random octets, and a copy of them. */
static struct mr *big_region(uint8_t **copy)
{
    struct mr *mr = engine_region(&h.engine, BIG, ALL_ACCESS);

    pattern(mr->base, BIG, 7);
    *copy = malloc(BIG);
    assert_non_null(*copy);
    memcpy(*copy, mr->base, BIG);
    return mr;
}

/* The output since the last check is one message of `op` segments with these octets as payload, at most `length` of
 * them. */
static uint32_t expect_payload(enum seg_op op, const uint8_t *octets, uint32_t length)
{
    uint32_t seen = 0;
    struct seg seg;

    do {
        seg = expect_seg(&h, op);
        assert_true(seg.length <= length - seen);
        assert_memory_equal(seg.data, octets + seen, seg.length);
        seen += seg.length;
    } while (!(seg.flags & SEG_LAST) && seen < length);
    return seen;
}

/* --- borrowed memory ----------------------------------------------------------------------------------------- */

/* A reset, a deregistration, a fault, a detached queue pair: at each of them the link holds part of a Write of 300000
 * octets by reference. Then the memory is the application's again, and what was posted is what leaves later. */
static void borrowed(int how)
{
    struct conn_attr attr = host_attr();
    struct rddp_sge piece;
    struct mr *mr;
    uint8_t *copy;

    attr.emss = 65483;
    host_ready(&h, false, &attr);
    mr = big_region(&copy);
    mr->access = RDDP_ACCESS_STABLE;
    piece = piece_of(mr, 0, BIG);
    h.takes = 100000;
    assert_int_equal(post_remote(&h.side, 1, RDDP_WR_RDMA_WRITE, 0, &piece, 1, 9, 0), 0);
    host_pump(&h);
    assert_true(mr->sending);
    if (how == 0)
        conn_lost(&h.conn, FAULT_LOST);
    else if (how == 1)
        out_own(&h.out);
    else if (how == 2)
        peer_says(&h, a_write(0x666, 0, copy, 4, SEG_LAST));
    else
        conn_detach(&h.conn, h.now_us);
    assert_int_equal(mr->sending, 0);
    if (how != 1)
        expect_wc(&h.side.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    memset(mr->base, 0xee, BIG);
    h.takes = SIZE_MAX;
    host_pump(&h);
    if (how)
        assert_int_equal(expect_payload(SEG_WRITE, copy, BIG), BIG);
    if (how == 2)
        expect_terminate(&h, 0x1100);
    if (how > 1)
        assert_true(h.fin);
    free(copy);
}

static void memory_is_let_go(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        next_connection();
        borrowed(how);
    }
}

/* The application changes the memory while it is being sent. The payload is undefined, but each CRC is right. */
static void write_of_what_changes(void **state)
{
    struct conn_attr attr = host_attr();
    struct rddp_sge piece;
    uint32_t seen = 0;
    uint8_t *copy;
    struct mr *mr;

    (void)state;
    attr.emss = 65483;
    host_ready(&h, false, &attr);
    mr = big_region(&copy);
    piece = piece_of(mr, 0, BIG);
    h.takes = 0;
    assert_int_equal(post_remote(&h.side, 1, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, &piece, 1, 9, 0), 0);
    while (!h.conn.life.out || h.sent_octets - h.read_octets < BIG) {
        memset(mr->base, (int)seen++, BIG);
        assert_true(seen < 10000);
        assert_int_equal(mr->sending, 0);
        h.takes += 1000;
        host_pump(&h);
    }
    h.takes = SIZE_MAX;
    host_pump(&h);
    for (seen = 0; seen < BIG;)
        seen += expect_seg(&h, SEG_WRITE).length;
    expect_silence(&h);
    expect_wc(&h.side.send_cq, 1, RDDP_WC_SUCCESS);
    assert_int_equal(h.conn.life.state, CONN_READY);
    free(copy);
}

/* The same peer writes to the memory while a Read of it is answered (RDMAP-5.5-01: contents indeterminate). The stream
 * stays intact, and each CRC covers the octets that leave. */
static void read_of_what_is_written(void **state)
{
    struct conn_attr attr = host_attr();
    struct seg_read read = {.sink_key = 7, .length = BIG};
    uint8_t *copy, *other = malloc(BIG);
    uint32_t seen = 0;
    struct mr *mr;

    (void)state;
    assert_non_null(other);
    memset(other, 0x5a, BIG);
    attr.emss = 65483;
    host_ready(&h, false, &attr);
    mr = big_region(&copy);
    read.source_key = mr->key;
    read.source_offset = mr->start;
    h.takes = 1000;
    peer_says(&h, a_read_request(1, &read));
    for (uint32_t at = 0; at < BIG; at += 60000)
        peer_says(&h, a_write(mr->key, mr->start + at, other + at, 60000, SEG_LAST));
    h.takes = SIZE_MAX;
    host_pump(&h);
    while (seen < BIG)
        seen += expect_seg(&h, SEG_READ_RESP).length;
    expect_silence(&h);
    assert_int_equal(h.conn.life.state, CONN_READY);
    free(copy);
    free(other);
}

/* With a CRC, the answer to a Read leaves straight from memory only if its owner promised not to write there. */
static void read_of_what_is_stable(void **state)
{
    const unsigned access[] = {RDDP_ACCESS_REMOTE_READ, RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_STABLE};

    (void)state;
    for (int stable = 0; stable < 2; stable++) {
        struct conn_attr attr = host_attr();
        struct seg_read read = {.sink_key = 7, .length = BIG};
        uint8_t *copy;
        struct mr *mr;

        next_connection();
        attr.emss = 65483;
        host_ready(&h, false, &attr);
        mr = big_region(&copy);
        mr->access = access[stable];
        read.source_key = mr->key;
        read.source_offset = mr->start;
        h.takes = 1000;
        peer_says(&h, a_read_request(1, &read));
        assert_int_equal(mr->sending != 0, stable);
        h.takes = SIZE_MAX;
        host_pump(&h);
        assert_int_equal(expect_payload(SEG_READ_RESP, copy, BIG), BIG);
        free(copy);
    }
}

/* --- faults of this side ------------------------------------------------------------------------------------- */

/* A key that we may not send from: the peer gets a catastrophic error, and the application learns the request. */
static void own_key_is_wrong(void **state)
{
    struct rddp_sge piece = {.lkey = 0x666, .length = 8};

    (void)state;
    begin();
    assert_int_equal(post(&h.side, 1, RDDP_WR_SEND, 0, NULL, 0), 0);
    assert_int_equal(post(&h.side, 2, RDDP_WR_SEND, 0, &piece, 1), 0);
    assert_int_equal(post(&h.side, 3, RDDP_WR_SEND, 0, NULL, 0), 0);
    host_pump(&h);
    expect_seg(&h, SEG_SEND);
    expect_terminate(&h, 0x0000);
    expect_end(&h, FAULT_LOCAL_KEY);
    assert_true(h.conn.life.note.key == 0x666);
}

static void completions_have_no_space(void **state)
{
    (void)state;
    begin();
    h.side.recv_cq.cqe = 1;
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(post_recv(&h.side, i, NULL, 0), 0);
    peer_says(&h, a_send(1, 0, "", 0, SEG_LAST));
    assert_int_equal(h.conn.life.state, CONN_READY);
    peer_says(&h, a_send(2, 0, "", 0, SEG_LAST));
    expect_terminate(&h, 0x0000);
    expect_end(&h, FAULT_CQ_FULL);
}

/* The overflow shows when the last octets have left, and no other event makes the connection look. */
static void completions_of_sends_have_no_space(void **state)
{
    (void)state;
    begin();
    h.side.send_cq.cqe = 1;
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(post(&h.side, i, RDDP_WR_SEND, RDDP_SEND_SIGNALED, NULL, 0), 0);
    host_pump(&h);
    expect_seg(&h, SEG_SEND);
    expect_seg(&h, SEG_SEND);
    expect_terminate(&h, 0x0000);
    expect_end(&h, FAULT_CQ_FULL);
}

/* The owner invalidates a region while a Read of it is being answered (DDP-8-03). */
static void region_goes_while_it_is_read(void **state)
{
    struct seg_read read = {.sink_key = 7, .length = BIG};
    struct mr *mr;
    uint8_t *copy;

    (void)state;
    begin();
    mr = big_region(&copy);
    read.source_key = mr->key;
    read.source_offset = mr->start;
    h.takes = 0;
    peer_says(&h, a_read_request(1, &read));
    mr_remove(&h.engine.mrs, mr);
    h.takes = SIZE_MAX;
    host_pump(&h);
    expect_terminate(&h, 0x0100);
    expect_end(&h, FAULT_KEY);
    free(copy);
}

/* Without its queue pair a connection ends by itself and ignores what arrives meanwhile. */
static void owner_has_gone(void **state)
{
    struct rddp_sge piece;
    struct mr *mr;
    uint8_t *copy;

    (void)state;
    begin();
    mr = big_region(&copy);
    piece = piece_of(mr, 0, 64);
    h.takes = 0;
    for (uint64_t wr = 1; wr <= 3; wr++)
        assert_int_equal(post_remote(&h.side, wr, wr == 1 ? RDDP_WR_RDMA_READ : RDDP_WR_SEND, 0, &piece, 1, 9, 0), 0);
    host_pump(&h);
    conn_detach(&h.conn, h.now_us);
    assert_null(h.conn.life.qp);
    for (uint64_t wr = 1; wr <= 3; wr++)
        expect_wc(&h.side.send_cq, wr, RDDP_WC_WR_FLUSH_ERR);
    peer_says(&h, a_write(mr->key, mr->start, "octets", 6, SEG_LAST));
    assert_memory_equal(mr->base, copy, BIG);
    h.takes = SIZE_MAX;
    host_pump(&h);
    expect_silence(&h);
    assert_true(h.fin);
    host_hear_end(&h);
    assert_int_equal(h.conn.life.state, CONN_OVER);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_is_let_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(write_of_what_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(read_of_what_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(read_of_what_is_stable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(own_key_is_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(completions_have_no_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(completions_of_sends_have_no_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(region_goes_while_it_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(owner_has_gone, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("conn_memory", tests, NULL, NULL);
}
