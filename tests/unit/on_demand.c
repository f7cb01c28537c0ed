/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* on_demand.c - memory registered on demand is touched by the table's copier alone, and who is to blame where it is not
 * there. */
#include <string.h>

#include "tests/lib/stage.h"

enum { ON_DEMAND = RDDP_ACCESS_ON_DEMAND, OCTETS = 64, HOLE = 40 };

static struct mr *far;
static bool is_there;
static unsigned fetched, stored;
static uint8_t copies[256];

/* The region's own memory stands for what the kernel would find: from HOLE on it may be missing. */
static bool reaches_hole(const uint8_t *at, uint32_t octets)
{
    return !is_there && at + octets > far->base + HOLE;
}

static bool fetch_some(uint8_t *to, const uint8_t *from, uint32_t octets)
{
    fetched++;
    if (reaches_hole(from, octets))
        return false;
    memcpy(to, from, octets);
    return true;
}

static bool store_some(uint8_t *to, const uint8_t *from, uint32_t octets)
{
    stored++;
    if (reaches_hole(to, octets))
        return false;
    memcpy(to, from, octets);
    return true;
}

static const struct mr_copier copier = {fetch_some, store_some};

static int set_up(void **state)
{
    int error = stage_open(state);

    e.mrs.copier = &copier;
    far = engine_region(&e, OCTETS, LOCAL | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | ON_DEMAND);
    pattern(far->base, OCTETS, 3);
    fetched = stored = 0;
    is_there = false;
    return error;
}

static bool cut(struct emit *out, uint32_t max)
{
    out->buffer = copies;
    return qp_emit(&s.qp, out, max, max);
}

/* --- out ---------------------------------------------------------------------------------------------------------- */

/* Pieces of one segment follow each other in the copies; what is not on demand stays where it is. */
static void copied_out(void **state)
{
    const struct rddp_sge sge[] = {piece_of(far, 0, 10), piece_of(remote, 0, 5), piece_of(far, 20, 15)};
    struct emit out;

    (void)state;
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, RDDP_SEND_SIGNALED, sge, 3), 0);
    assert_true(cut(&out, 100));
    assert_int_equal(out.spans, 3);
    assert_ptr_equal(out.span[0].at, copies);
    assert_ptr_equal(out.span[1].at, remote->base);
    assert_ptr_equal(out.span[2].at, copies + 15);
    assert_null(out.region[0]);
    assert_ptr_equal(out.region[1], remote);
    assert_null(out.region[2]);
    assert_true(out.volatile_data); /* so that none of it is borrowed */
    assert_memory_equal(copies, far->base, 10);
    assert_memory_equal(copies + 15, far->base + 20, 15);
    assert_int_equal(fetched, 2);
}

/* Also in the middle of a message: what is there has left. */
static void source_is_absent(void **state)
{
    static const enum rddp_wr_opcode opcodes[] = {RDDP_WR_SEND, RDDP_WR_RDMA_WRITE};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const struct rddp_sge sge = piece_of(far, 0, OCTETS);
        struct emit out;

        if (i)
            stage_again(NULL);
        assert_int_equal(post_remote(&s, 4, opcodes[i], RDDP_SEND_SIGNALED, &sge, 1, 7, 0), 0);
        assert_true(cut(&out, 30));
        assert_false(cut(&out, 30));
        assert_int_equal(s.qp.state, QP_ERROR);
        assert_int_equal(s.qp.note.fault, FAULT_LOCAL_KEY);
        assert_int_equal(s.qp.note.key, far->key);
        expect_wc(&s.send_cq, 4, RDDP_WC_LOC_PROT_ERR);
    }
}

static void read_of_peer(void **state)
{
    struct emit out;

    (void)state;
    assert_int_equal(arrive(&s, read_of(far, 1, OCTETS)), FAULT_NONE);
    assert_true(cut(&out, 30));
    assert_memory_equal(out.span[0].at, far->base, 30);
    assert_false(cut(&out, 30));
    assert_int_equal(out.spans, 0);
    assert_int_equal(s.qp.note.fault, FAULT_ABSENT);
    assert_int_equal(s.qp.note.op, SEG_READ_REQ);
    assert_int_equal(s.qp.note.key, far->key);
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

static void write_of_peer(void **state)
{
    uint8_t out[OCTETS];

    (void)state;
    pattern(out, OCTETS, 9);
    assert_int_equal(arrive(&s, a_write(far->key, far->start, out, HOLE, SEG_LAST)), FAULT_NONE);
    assert_memory_equal(far->base, out, HOLE);
    assert_int_equal(arrive(&s, a_write(far->key, far->start + HOLE, out, 1, SEG_LAST)), FAULT_ABSENT);
    assert_int_equal(s.qp.note.key, far->key);
    assert_int_equal(s.qp.note.offset, far->start + HOLE);
    assert_int_equal(stored, 2);
}

/* The piece that is missing is named, not the one in front of it. */
static void receive_is_absent(void **state)
{
    const struct rddp_sge sge[] = {piece_of(local, 0, 8), piece_of(far, HOLE - 8, 16)};

    (void)state;
    assert_int_equal(post_recv(&s, 5, sge, 2), 0);
    assert_int_equal(arrive(&s, a_send(1, 0, data, 17, SEG_LAST)), FAULT_LOCAL_KEY);
    assert_int_equal(s.qp.note.key, far->key);
    give_up(&s);
    expect_wc(&s.recv_cq, 5, RDDP_WC_LOC_PROT_ERR);
    stage_again(NULL);
    assert_int_equal(post_recv(&s, 6, &sge[1], 1), 0);
    assert_int_equal(arrive(&s, a_send(1, 0, data, 9, SEG_LAST)), FAULT_LOCAL_KEY);
    give_up(&s);
    expect_wc(&s.recv_cq, 6, RDDP_WC_LOC_PROT_ERR);
}

static void receive_is_there(void **state)
{
    const struct rddp_sge sge[] = {piece_of(local, 0, 8), piece_of(far, HOLE - 8, 16)};

    (void)state;
    pattern(data, 16, 4);
    assert_int_equal(post_recv(&s, 5, sge, 2), 0);
    assert_int_equal(arrive(&s, a_send(1, 0, data, 16, SEG_LAST)), FAULT_NONE);
    expect_wc(&s.recv_cq, 5, RDDP_WC_SUCCESS);
    assert_memory_equal(far->base + HOLE - 8, data + 8, 8);
    assert_int_equal(stored, 1);
}

static void sink_of_read(void **state)
{
    const struct rddp_sge sge = piece_of(far, 0, OCTETS);
    struct seg seg = a_read_response(far->key, far->start, data, HOLE + 1, 0);

    (void)state;
    assert_int_equal(post_remote(&s, 6, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, 7, 0), 0);
    leave(&s, 100);
    assert_int_equal(arrive(&s, seg), FAULT_LOCAL_KEY);
    give_up(&s);
    expect_wc(&s.send_cq, 6, RDDP_WC_LOC_PROT_ERR);
}

static void result_of_atomic(void **state)
{
    const struct rddp_sge sge = piece_of(far, HOLE, 8);
    struct seg seg = {.op = SEG_ATOMIC_RESP, .flags = SEG_LAST, .msg = 1, .atomic = {.id = 1, .data = 5}};

    (void)state;
    assert_int_equal(post_remote(&s, 6, RDDP_WR_ATOMIC_FETCH_AND_ADD, RDDP_SEND_SIGNALED, &sge, 1, 7, 0), 0);
    leave(&s, 100);
    assert_int_equal(arrive(&s, seg), FAULT_LOCAL_KEY);
    assert_int_equal(stored, 1);
    give_up(&s);
    expect_wc(&s.send_cq, 6, RDDP_WC_LOC_PROT_ERR);
}

/* Behind a gap: it waits for its turn, when the memory may have come. */
static void not_early(void **state)
{
    struct seg seg = a_write(far->key, far->start + HOLE, data, 8, SEG_LAST);

    (void)state;
    seg.begin = 50;
    seg.end = 60;
    assert_int_equal(qp_place_early(&s.qp, &seg), FAULT_NOT_NOW);
    is_there = true;
    assert_int_equal(qp_place_early(&s.qp, &seg), FAULT_NONE);
    seg.data = NULL; /* only asked whether it could be: who asks could not keep it when the copy fails */
    assert_int_equal(qp_place_early(&s.qp, &seg), FAULT_NOT_NOW);
    seg.key = remote->key;
    seg.offset = remote->start;
    assert_int_equal(qp_place_early(&s.qp, &seg), FAULT_NONE);
}

/* The socket would be given a pointer. */
static void no_pointer(void **state)
{
    struct seg seg = a_write(remote->key, remote->start, data, 8, SEG_LAST);
    uint8_t *at = NULL;

    (void)state;
    seg.begin = s.qp.rx_pos;
    seg.end = seg.begin + 10;
    assert_int_equal(qp_locate(&s.qp, &seg, &at), FAULT_NONE);
    assert_ptr_equal(at, remote->base);
    seg.key = far->key;
    seg.offset = far->start;
    assert_int_equal(qp_locate(&s.qp, &seg, &at), FAULT_NONE);
    assert_null(at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copied_out, set_up, stage_close),
        cmocka_unit_test_setup_teardown(source_is_absent, set_up, stage_close),
        cmocka_unit_test_setup_teardown(read_of_peer, set_up, stage_close),
        cmocka_unit_test_setup_teardown(write_of_peer, set_up, stage_close),
        cmocka_unit_test_setup_teardown(receive_is_absent, set_up, stage_close),
        cmocka_unit_test_setup_teardown(receive_is_there, set_up, stage_close),
        cmocka_unit_test_setup_teardown(sink_of_read, set_up, stage_close),
        cmocka_unit_test_setup_teardown(result_of_atomic, set_up, stage_close),
        cmocka_unit_test_setup_teardown(not_early, set_up, stage_close),
        cmocka_unit_test_setup_teardown(no_pointer, set_up, stage_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
