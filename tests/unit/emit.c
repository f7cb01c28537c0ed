/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* emit.c - how messages are cut into segments, and what the headers say. Shows RPCR-3.3.1-12. */
#include <string.h>
#include <sys/mman.h>

#include "base/container.h"
#include "tests/lib/stage.h"

/* --- cutting ------------------------------------------------------------------------------------------------- */

/* RDMAP-5.1-02: with MULPDU 1500 a tagged segment carries 1486 octets and an untagged one 1482: DDP-V-seg-t0, -t1, -u0,
 * -u1 with the MO, TO, L flag and payload given there. DDP-4.1-02, DDP-4.3-02, DDP-5.2-02, RDMAP-3-01. */
static void test_cuts_of_vectors(void **state)
{
    static const struct {
        enum rddp_wr_opcode opcode;
        enum seg_op op;
        struct {
            uint64_t offset;
            uint32_t length;
            unsigned flags;
        } cut[2];
    } rows[] = {
        {RDDP_WR_RDMA_WRITE, SEG_WRITE, {{16384, 1486, 0}, {17870, 562, SEG_LAST}}},
        {RDDP_WR_SEND, SEG_SEND, {{0, 1482, 0}, {1482, 566, SEG_LAST}}},
    };
    struct emit out;

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        uint32_t done = 0;

        assert_int_equal(request(i, rows[i].opcode, 0, 2048), 0);
        for (int k = 0; k < 2; k++) {
            assert_true(qp_emit(&s.qp, &out, 1486, 1482));
            assert_int_equal(out.seg.op, rows[i].op);
            assert_int_equal(out.seg.offset, rows[i].cut[k].offset);
            assert_int_equal(out.seg.length, rows[i].cut[k].length);
            assert_int_equal(out.seg.flags, rows[i].cut[k].flags);
            assert_int_equal(out.seg.key, i == 0 ? 0x700 : 0);
            assert_int_equal(out.seg.msg, i == 0 ? 0 : 1);
            assert_int_equal(out.spans, 1);
            assert_ptr_equal(out.span[0].at, remote->base + done);
            assert_int_equal(out.span[0].length, rows[i].cut[k].length);
            assert_ptr_equal(out.region[0], remote);
            assert_false(out.volatile_data);
            done += out.seg.length;
        }
        expect_idle();
    }
}

/* Every length about a multiple of the segment size: all octets leave, the L flag is on the last segment, and there is
 * no segment too many. */
static void test_cuts(void **state)
{
    enum { MAX = 10 };
    uint32_t msn = 1;

    (void)state;
    for (uint32_t length = 0; length <= 3 * MAX + 1; length++) {
        uint32_t done = 0, segments = length ? (length + MAX - 1) / MAX : 1; /* DDP-5.2-03 */

        assert_int_equal(request(length, RDDP_WR_SEND, RDDP_SEND_SOLICITED, length), 0);
        for (uint32_t i = 1; i <= segments; i++) {
            struct emit out = leave(&s, MAX);

            assert_int_equal(out.seg.offset, done);
            assert_int_equal(out.seg.msg, msn); /* DDP-4.3-01: the same in all of them */
            assert_int_equal(out.seg.flags, SEG_SOLICITED | (i == segments ? SEG_LAST : 0)); /* DDP-4.2-01 */
            assert_int_equal(out.spans, out.seg.length ? 1 : 0);
            done += out.seg.length;
            assert_int_equal(done, i == segments ? length : i * MAX);
        }
        msn++;
        expect_wc(&s.send_cq, length, RDDP_WC_SUCCESS);
        expect_idle();
    }
}

/* The maximum number of pieces, empty ones among them, cut anywhere: the octets that leave are those of the memory. */
static void test_pieces(void **state)
{
    struct qp_attr attr = side_attr(&e);
    struct rddp_sge sge[QP_SGE_MAX];
    uint8_t want[STAGE_REMOTE], got[STAGE_REMOTE];

    (void)state;
    side_fini(&s);
    attr.send_sge = QP_SGE_MAX;
    side_open(&s, &e, &attr);
    for (uint32_t max = 1; max < 200; max++) {
        uint32_t total = 0, done = 0;
        struct emit out;

        for (uint32_t i = 0; i < QP_SGE_MAX; i++) {
            sge[i] = piece_of(remote, 200 * i + max, (i * 7 + max) % 5 * 6);
            memcpy(want + total, remote->base + 200 * i + max, sge[i].length);
            total += sge[i].length;
        }
        assert_int_equal(post(&s, max, RDDP_WR_RDMA_WRITE, RDDP_SEND_SIGNALED, sge, QP_SGE_MAX), 0);
        do {
            uint32_t sum = 0;

            out = leave(&s, max);
            assert_true(out.spans <= EMIT_SPANS);
            for (uint32_t i = 0; i < out.spans; i++) {
                assert_true(out.span[i].length > 0);
                assert_ptr_equal(out.region[i], remote);
                memcpy(got + done + sum, out.span[i].at, out.span[i].length);
                sum += out.span[i].length;
            }
            assert_int_equal(sum, out.seg.length);
            assert_int_equal(out.seg.offset, done);
            done += sum;
        } while (!(out.seg.flags & SEG_LAST));
        assert_int_equal(done, total);
        assert_memory_equal(got, want, total);
        expect_wc(&s.send_cq, max, RDDP_WC_SUCCESS);
    }
}

/* DDP-5.2-01, DDP-5.2-02: a message of 2^32 - 1 octets. Its memory can be neither read nor written. */
static void test_longest(void **state)
{
    static const enum rddp_wr_opcode opcodes[] = {RDDP_WR_SEND, RDDP_WR_RDMA_WRITE};
    enum { MAX = 65000 };
    uint8_t *reserved = mmap(NULL, UINT32_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct mr big = {.pd = &e.pd, .base = reserved, .start = (uintptr_t)reserved, .length = UINT32_MAX};
    const struct rddp_sge sge[] = {{big.start, 0x80000001, 1}, {big.start + 0x80000001, 0x7ffffffe, 1}};

    (void)state;
    if (reserved == MAP_FAILED)
        skip();
    assert_true(mr_insert(&e.mrs, &big, 1));
    for (size_t i = 0; i < countof(opcodes); i++) {
        uint64_t done = 0, to = i ? UINT64_MAX - UINT32_MAX : 0;
        struct emit out;

        assert_int_equal(post_remote(&s, i, opcodes[i], RDDP_SEND_SIGNALED, sge, 2, 9, to), 0);
        do {
            out = leave(&s, MAX);
            assert_int_equal(out.seg.offset, to + done);
            assert_ptr_equal(out.span[0].at, reserved + done);
            done += out.seg.length;
            assert_true(out.seg.length == MAX || done == UINT32_MAX);
        } while (!(out.seg.flags & SEG_LAST));
        assert_int_equal(done, UINT32_MAX);
        expect_wc(&s.send_cq, i, RDDP_WC_SUCCESS);
    }
    mr_remove(&e.mrs, &big);
    munmap(reserved, UINT32_MAX);
}

/* --- what is said -------------------------------------------------------------------------------------------- */

/* RDMAP-3-01: the Read Request names our own memory as sink, by the region's key and offset. */
static void test_read_request(void **state)
{
    struct mr *zero = engine_region(&e, 100, LOCAL | RDDP_ACCESS_ZERO_BASED);
    const struct rddp_sge sge = piece_of(zero, 20, 80);
    struct emit out;

    (void)state;
    assert_int_equal(post_remote(&s, 1, RDDP_WR_RDMA_READ, 0, &sge, 1, 0xbbbb0002, UINT64_MAX - 5), 0);
    out = leave(&s, 10);
    assert_int_equal(out.seg.op, SEG_READ_REQ);
    assert_int_equal(out.seg.flags, SEG_LAST);
    assert_int_equal(out.seg.msg, 1);
    assert_int_equal(out.seg.offset, 0);
    assert_int_equal(out.seg.length, 0);
    assert_int_equal(out.spans, 0);
    assert_int_equal(out.seg.read.sink_key, zero->key);
    assert_int_equal(out.seg.read.sink_offset, 20);
    assert_int_equal(out.seg.read.source_key, 0xbbbb0002);
    assert_int_equal(out.seg.read.source_offset, UINT64_MAX - 5);
    assert_int_equal(out.seg.read.length, 80);
}

/* RDMAP-4.4-01: the response repeats the sink unchanged, whatever it is, and is cut like a Write. */
static void test_response(void **state)
{
    uint32_t done = 0;

    (void)state;
    peer_reads(1, 250);
    for (int i = 0; i < 3; i++) {
        struct emit out = leave(&s, 100);

        assert_int_equal(out.seg.op, SEG_READ_RESP);
        assert_int_equal(out.seg.key, 0xaaaa0001);
        assert_int_equal(out.seg.offset, 0x1000 + done);
        assert_int_equal(out.seg.length, i == 2 ? 50 : 100);
        assert_int_equal(out.seg.flags, i == 2 ? SEG_LAST : 0);
        assert_ptr_equal(out.span[0].at, remote->base + done);
        assert_ptr_equal(out.region[0], remote);
        done += out.seg.length;
    }
    expect_idle();
}

static void test_send_with_invalidate(void **state)
{
    (void)state;
    assert_int_equal(request(1, RDDP_WR_SEND_WITH_INV, 0, 20), 0);
    for (int i = 0; i < 2; i++) {
        struct emit out = leave(&s, 10);

        assert_int_equal(out.seg.flags, SEG_INVALIDATE | (i ? SEG_LAST : 0)); /* DDP-4.2-01: in both */
        assert_int_equal(out.seg.invalidate, 0x700);
    }
    assert_int_equal(expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS).opcode, RDDP_WC_SEND);
}

/* The post copies the octets, so the application may change its memory afterwards. */
static void test_inline(void **state)
{
    uint8_t mine[64], want[64];
    const struct rddp_sge sge[] = {
        {(uintptr_t)mine, 20, 0xdead}, {(uintptr_t)mine, 0, 0xdead}, {(uintptr_t)mine + 20, 44, 0xbeef}};
    uint32_t done = 0;

    (void)state;
    pattern(mine, 64, 9);
    memcpy(want, mine, 64);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, RDDP_SEND_INLINE | RDDP_SEND_SIGNALED, sge, 3), 0);
    memset(mine, 0, 64);
    assert_int_equal(post(&s, 2, RDDP_WR_SEND, RDDP_SEND_INLINE | RDDP_SEND_SIGNALED, sge, 3), 0);
    while (done < 64) {
        struct emit out = leave(&s, 30);

        assert_true(out.volatile_data);
        assert_int_equal(out.spans, 1);
        assert_null(out.region[0]);
        assert_memory_equal(out.span[0].at, want + done, out.span[0].length);
        done += out.span[0].length;
    }
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    struct emit out = leave(&s, 100);
    assert_memory_equal(out.span[0].at, mine, 64);
    assert_int_equal(post(&s, 3, RDDP_WR_SEND, RDDP_SEND_INLINE, NULL, 0), 0);
    assert_int_equal(leave(&s, 100).spans, 0);
}

/* DDP-4.3-01: message numbers start at 1, wrap to 0, and each queue has its own. */
static void test_numbers(void **state)
{
    static const uint32_t numbers[] = {0xfffffffe, 0xffffffff, 0, 1};

    (void)state;
    assert_int_equal(s.qp.tx_send_msg, 1);
    assert_int_equal(s.qp.tx_read_msg, 1);
    assert_int_equal(s.qp.tx_atomic_msg, 1);
    s.qp.tx_send_msg = s.qp.tx_read_msg = numbers[0];
    for (size_t i = 0; i < countof(numbers); i++) {
        assert_int_equal(request(1, RDDP_WR_SEND, 0, 4), 0);
        assert_int_equal(request(2, RDDP_WR_RDMA_WRITE, 0, 4), 0);
        assert_int_equal(request(3, RDDP_WR_RDMA_READ, 0, 4), 0);
        assert_int_equal(leave(&s, 100).seg.msg, numbers[i]);
        expect_op(SEG_WRITE);
        assert_int_equal(leave(&s, 100).seg.msg, numbers[i]);
        assert_int_equal(answer_read(4), FAULT_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(test_cuts_of_vectors),
        STAGE_TEST(test_cuts),
        STAGE_TEST(test_pieces),
        STAGE_TEST(test_longest),
        STAGE_TEST(test_read_request),
        STAGE_TEST(test_response),
        STAGE_TEST(test_send_with_invalidate),
        STAGE_TEST(test_inline),
        STAGE_TEST(test_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
