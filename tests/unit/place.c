/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* place.c - valid data is placed octet by octet, and no octet beside it changes. */
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/stage.h"

/* RDMAP-5.1-01, DDP-4.2-02: a Write reaches every octet of a region, zero-based or not, and makes no completion. */
static void test_write(void **state)
{
    enum { LENGTH = 128 };
    uint8_t out[LENGTH];

    (void)state;
    for (int zero_based = 0; zero_based < 2; zero_based++) {
        struct mr *mr = engine_region(&e, LENGTH, ALL_ACCESS | (zero_based ? RDDP_ACCESS_ZERO_BASED : 0));

        for (uint32_t at = 0; at < LENGTH; at += 7) {
            for (uint32_t n = 1; n <= LENGTH - at; n++) {
                engine_remember(&e);
                pattern(out, n, at + n);
                memcpy(want_of(&e, mr) + at, out, n);
                assert_int_equal(arrive(&s, a_write(mr->key, mr->start + at, out, n, SEG_LAST)), FAULT_NONE);
                engine_expect(&e);
            }
        }
    }
    expect_quiet(&s.send_cq);
    expect_quiet(&s.recv_cq);
}

/* DDP-5.2-03: STag and TO of an empty Write are not checked, nor is the source of an empty Read (RDMAP-5.2-02). */
static void test_empty_tagged(void **state)
{
    const struct seg_read nothing = {.sink_key = 1, .source_key = 1, .source_offset = UINT64_MAX};
    struct emit out;

    (void)state;
    engine_remember(&e);
    remote->valid = false;
    assert_int_equal(arrive(&s, a_write(0, UINT64_MAX, NULL, 0, SEG_LAST)), FAULT_NONE);
    assert_int_equal(arrive(&s, a_write(remote->key, 0, NULL, 0, SEG_LAST)), FAULT_NONE);
    assert_int_equal(arrive(&s, a_read_request(1, &nothing)), FAULT_NONE);
    out = leave(&s, 100);
    assert_int_equal(out.seg.op, SEG_READ_RESP);
    assert_int_equal(out.seg.length, 0);
    assert_int_equal(out.seg.key, 1);
    assert_int_equal(out.seg.offset, 0);
    assert_int_equal(out.seg.flags, SEG_LAST);
    assert_int_equal(out.spans, 0);
    engine_expect(&e);
}

/* RDMAP-5.3-01: an empty Send takes a receive, which may have room or none. */
static void test_empty_send(void **state)
{
    (void)state;
    engine_remember(&e);
    post_buffers(1);
    assert_int_equal(post_recv(&s, 1, NULL, 0), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(arrive(&s, a_send(i + 1, 0, NULL, 0, SEG_LAST)), FAULT_NONE);
        assert_int_equal(expect_wc(&s.recv_cq, i, RDDP_WC_SUCCESS).byte_len, 0);
    }
    engine_expect(&e);
}

/* The request of an empty Read names its sink, or zeros if it has no sink, and the response names the same sink. */
static void test_empty_read(void **state)
{
    struct emit out;

    (void)state;
    engine_remember(&e);
    assert_int_equal(request(1, RDDP_WR_RDMA_READ, 0, 0), 0);
    out = leave(&s, 100);
    assert_int_equal(out.seg.read.sink_key, remote->key);
    assert_int_equal(out.seg.read.sink_offset, remote->start);
    assert_int_equal(answer_read(0), FAULT_NONE);
    assert_int_equal(expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS).byte_len, 0);
    assert_int_equal(post_remote(&s, 2, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, NULL, 0, 5, 0), 0);
    out = leave(&s, 100);
    assert_int_equal(out.seg.read.sink_key, 0);
    assert_int_equal(out.seg.read.sink_offset, 0);
    assert_int_equal(arrive(&s, a_read_response(0, 0, NULL, 0, SEG_LAST)), FAULT_NONE);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    engine_expect(&e);
}

/* DDP-4.1-01, DDP-5.4-01: a message in segments of every size is scattered to several pieces, one of them empty. */
static void test_scatter(void **state)
{
    enum { TOTAL = 60 };
    struct mr *other = engine_region(&e, TOTAL, LOCAL), *zero = engine_region(&e, 128, LOCAL | RDDP_ACCESS_ZERO_BASED);
    const struct rddp_sge sge[] = {
        piece_of(local, 3, 0),
        piece_of(zero, 127, 1),
        piece_of(local, 10, 40),
        piece_of(other, 0, 30),
    };
    uint8_t out[TOTAL];

    (void)state;
    for (uint32_t cut = 1; cut <= TOTAL; cut++) {
        engine_remember(&e);
        pattern(out, TOTAL, cut);
        memcpy(want_of(&e, zero) + 127, out, 1);
        memcpy(want_of(&e, local) + 10, out + 1, 40);
        memcpy(want_of(&e, other), out + 41, 19);
        assert_int_equal(post_recv(&s, 5, sge, 4), 0);
        for (uint32_t at = 0; at < TOTAL; at += cut) {
            uint32_t n = TOTAL - at < cut ? TOTAL - at : cut;

            expect_quiet(&s.recv_cq);
            assert_int_equal(arrive(&s, a_send(cut, at, out + at, n, at + n == TOTAL ? SEG_LAST : 0)), FAULT_NONE);
        }
        assert_int_equal(expect_wc(&s.recv_cq, 5, RDDP_WC_SUCCESS).byte_len, TOTAL);
        engine_expect(&e);
    }
}

/* A receive of as many pieces as one may have, all of them used. */
static void test_most_pieces(void **state)
{
    enum { EACH = 4, TOTAL = EACH * QP_SGE_MAX };
    struct qp_attr attr = side_attr(&e);
    struct rddp_sge sge[QP_SGE_MAX];
    uint8_t out[TOTAL];

    (void)state;
    attr.recv_sge = QP_SGE_MAX;
    side_fini(&s);
    side_open(&s, &e, &attr);
    engine_remember(&e);
    pattern(out, TOTAL, 1);
    for (uint32_t i = 0; i < QP_SGE_MAX; i++) {
        uint32_t at = TOTAL - EACH * (i + 1);

        sge[i] = piece_of(local, at, EACH);
        memcpy(want_of(&e, local) + at, out + EACH * i, EACH);
    }
    assert_int_equal(post_recv(&s, 5, sge, QP_SGE_MAX), 0);
    assert_int_equal(arrive(&s, a_send(1, 0, out, TOTAL, SEG_LAST)), FAULT_NONE);
    assert_int_equal(expect_wc(&s.recv_cq, 5, RDDP_WC_SUCCESS).byte_len, TOTAL);
    engine_expect(&e);
}

/* A Send of one segment fills its receive as one of several segments does, up to the last octet, and both
 * count the same messages and octets. */
static void test_whole(void **state)
{
    enum { FRONT = 40 };
    const struct rddp_sge sge[] = {piece_of(local, 7, FRONT), piece_of(local, 90, 10)};
    uint8_t out[FRONT + 10];
    uint64_t octets = s.qp.rx_octets;
    struct rddp_wc wc;

    (void)state;
    for (uint32_t n = 0, msn = 1; n <= sizeof(out); n++) {
        uint32_t first = n < FRONT ? n : FRONT;

        for (uint32_t cut = 0; cut <= n; cut += n / 2 + 1, msn++) {
            engine_remember(&e);
            pattern(out, n, msn);
            memcpy(want_of(&e, local) + 7, out, first);
            memcpy(want_of(&e, local) + 90, out + first, n - first);
            assert_int_equal(post_recv(&s, msn, sge, 2), 0);
            if (cut)
                assert_int_equal(arrive(&s, a_send(msn, 0, out, cut, 0)), FAULT_NONE);
            expect_quiet(&s.recv_cq);
            assert_int_equal(arrive(&s, a_send(msn, cut, out + cut, n - cut, SEG_LAST)), FAULT_NONE);
            wc = expect_wc(&s.recv_cq, msn, RDDP_WC_SUCCESS);
            assert_int_equal(wc.byte_len, n);
            assert_int_equal(wc.opcode, RDDP_WC_RECV);
            assert_int_equal(wc.qp_num, s.qp.attr.number);
            engine_expect(&e);
            octets += n;
        }
    }
    assert_int_equal(s.qp.rx_octets, octets);
}

/* Receives of an SRQ are checked against the SRQ's domain, not the queue pair's. */
static void test_srq_domain(void **state)
{
    static uint64_t space[64];
    struct qp_attr attr = side_attr(&e);
    struct mr *theirs = engine_region(&e, 8, LOCAL);
    const struct rddp_sge good = piece_of(theirs, 0, 8), bad = piece_of(local, 0, 8);
    struct rq srq;

    (void)state;
    theirs->pd = &e.other_pd;
    assert_true(rq_size(4, 1) <= sizeof(space));
    rq_init(&srq, &e.other_pd, 4, 1, space);
    attr.srq = &srq;
    stage_again(&attr);
    engine_remember(&e);
    memcpy(want_of(&e, theirs), data, 8);
    assert_int_equal(post_recv(&s, 1, &good, 1), 0);
    assert_int_equal(arrive(&s, a_send(1, 0, data, 8, SEG_LAST)), FAULT_NONE);
    engine_expect(&e);
    assert_int_equal(post_recv(&s, 2, &bad, 1), 0);
    assert_int_equal(arrive(&s, a_send(2, 0, data, 8, SEG_LAST)), FAULT_LOCAL_KEY);
    engine_expect(&e);
    stage_again(NULL);
}

/* DDP-5.2-01: a message has at most 2^32 - 1 octets. Segments that end one octet below the limit and at it are placed,
 * and a segment that ends one octet above it is refused. */
static void test_longest(void **state)
{
    size_t size = (size_t)UINT32_MAX + 4096;
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct mr mr = {.base = memory, .length = UINT32_MAX, .access = LOCAL | RDDP_ACCESS_ZERO_BASED};
    struct rddp_sge sge = {.length = UINT32_MAX, .lkey = 1};

    (void)state;
    if (memory == MAP_FAILED)
        skip();
    mr.pd = &e.pd;
    assert_true(mr_insert(&e.mrs, &mr, 1));
    assert_int_equal(post_recv(&s, 1, &sge, 1), 0);
    assert_int_equal(arrive_at(&s, a_send(1, UINT32_MAX - 7, data, 8, SEG_LAST), 100, 200), FAULT_TOO_LONG);
    assert_int_equal(s.qp.note.got, 1ULL << 32);
    assert_int_equal(arrive_at(&s, a_send(1, UINT32_MAX - 9, data, 8, 0), 100, 200), FAULT_NONE);
    assert_int_equal(arrive_at(&s, a_send(1, UINT32_MAX - 8, data, 8, SEG_LAST), 200, 300), FAULT_NONE);
    assert_int_equal(arrive_at(&s, a_send(1, UINT32_MAX, data, 0, 0), 150, 200), FAULT_NONE);
    assert_int_equal(memory[UINT32_MAX - 9], data[0]);
    assert_memory_equal(memory + UINT32_MAX - 8, data, 8);
    assert_int_equal(memory[UINT32_MAX], 0);
    mr_remove(&e.mrs, &mr);
    munmap(memory, size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(test_write),      STAGE_TEST(test_empty_tagged), STAGE_TEST(test_empty_send),
        STAGE_TEST(test_empty_read), STAGE_TEST(test_scatter),      STAGE_TEST(test_most_pieces),
        STAGE_TEST(test_srq_domain), STAGE_TEST(test_longest),      STAGE_TEST(test_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
