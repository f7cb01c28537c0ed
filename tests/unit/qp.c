/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.c - limits of the queues, requests that posting refuses, and the order of completions. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "tests/lib/engine.h"

static struct engine e;
static struct side s;
static struct mr *mr;

static int set_up(void **state)
{
    (void)state;
    engine_init(&e);
    mr = engine_region(&e, 4096, ALL_ACCESS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    engine_fini(&e);
    return 0;
}

static int send_octets(uint64_t wr_id, unsigned flags, uint32_t octets)
{
    const struct rddp_sge sge = piece_of(mr, 0, octets);

    return post(&s, wr_id, RDDP_WR_SEND, flags, &sge, 1);
}

static int read_octets(uint64_t wr_id, unsigned flags, uint32_t octets)
{
    const struct rddp_sge sge = piece_of(mr, 0, octets);

    return post_remote(&s, wr_id, RDDP_WR_RDMA_READ, flags, &sge, 1, 77, 0);
}

static enum fault answer(uint32_t octets)
{
    static const uint8_t zeros[4096];

    return arrive(&s, a_read_response(mr->key, mr->start, zeros, octets, SEG_LAST));
}

/* --- limits -------------------------------------------------------------------------------------------------- */

static void test_size(void **state)
{
    static const struct {
        size_t at;
        uint32_t limit;
    } limits[] = {
        {offsetof(struct qp_attr, send_depth), QP_DEPTH_MAX},  {offsetof(struct qp_attr, recv_depth), QP_DEPTH_MAX},
        {offsetof(struct qp_attr, send_sge), QP_SGE_MAX},      {offsetof(struct qp_attr, recv_sge), QP_SGE_MAX},
        {offsetof(struct qp_attr, inline_max), QP_INLINE_MAX}, {offsetof(struct qp_attr, ird), QP_READS_MAX},
        {offsetof(struct qp_attr, ord), QP_READS_MAX},         {offsetof(struct qp_attr, window), QP_WINDOW_MAX},
    };

    (void)state;
    for (size_t i = 0; i < countof(limits); i++) {
        struct qp_attr attr = side_attr(&e);
        uint32_t *value = (uint32_t *)((uint8_t *)&attr + limits[i].at);

        *value = limits[i].limit - 1;
        assert_true(qp_size(&attr) > 0);
        *value = limits[i].limit;
        assert_true(qp_size(&attr) > 0);
        *value = limits[i].limit + 1;
        assert_int_equal(qp_size(&attr), 0);
        *value = UINT32_MAX;
        assert_int_equal(qp_size(&attr), 0);
        *value = 0;
        assert_int_equal(qp_size(&attr) > 0, limits[i].at != offsetof(struct qp_attr, window));
    }
}

/* DDP-5.2-01: a message is shorter than 2^32 octets. RFC 5040 5.2: a Read has one sink. */
static void test_refused(void **state)
{
    const struct rddp_sge piece = piece_of(mr, 0, 8), half = piece_of(mr, 0, 0x80000000);
    const struct rddp_sge many[] = {piece, piece, piece, piece, piece};
    const struct rddp_sge too_long[] = {half, half}, longest[] = {half, {.length = 0x7fffffff}};
    const struct rddp_sge inline_max = piece_of(mr, 0, 64), inline_over = piece_of(mr, 0, 65);
    static const int unknown[] = {-1, 8, 10, 15, 16, 255, 256, INT_MAX}; /* some of them are opcodes of verbs */

    (void)state;
    side_open(&s, &e, NULL);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, 0, many, 4), 0);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, 0, many, 5), -EINVAL);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, 0, many, -1), -EINVAL);
    assert_int_equal(post(&s, 1, RDDP_WR_RDMA_READ, 0, many, 1), 0);
    assert_int_equal(post(&s, 1, RDDP_WR_RDMA_READ, 0, many, 2), -EINVAL);
    assert_int_equal(post(&s, 1, RDDP_WR_RDMA_READ, RDDP_SEND_INLINE, many, 1), -EINVAL);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, 0, longest, 2), 0);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, 0, too_long, 2), -EINVAL);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, RDDP_SEND_INLINE, &inline_max, 1), 0);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, RDDP_SEND_INLINE, &inline_over, 1), -EINVAL);
    for (size_t i = 0; i < countof(unknown); i++)
        assert_int_equal(post(&s, 1, (enum rddp_wr_opcode)unknown[i], 0, many, 1), -EINVAL);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, 1 << 4, many, 1), -EINVAL);
    assert_int_equal(post(&s, 1, RDDP_WR_SEND, 1u << 31, many, 1), -EINVAL);
    assert_int_equal(post_recv(&s, 1, many, 4), 0);
    assert_int_equal(post_recv(&s, 1, many, 5), -EINVAL);
    assert_int_equal(post_recv(&s, 1, many, -1), -EINVAL);
    assert_int_equal(post_recv(&s, 1, longest, 2), 0);
    assert_int_equal(post_recv(&s, 1, too_long, 2), -EINVAL);
    assert_int_equal(s.qp.sq.head, 4);
    expect_quiet(&s.send_cq);
    side_fini(&s);
}

/* A queue holds exactly its depth, which need not be a power of two, wherever its counters start. */
static void test_depth(void **state)
{
    static const uint32_t starts[] = {0, UINT32_MAX - 2, 0x7ffffffe};
    static const uint32_t depths[] = {1, 2, 3, 5, 8};

    (void)state;
    for (size_t i = 0; i < countof(starts) * countof(depths); i++) {
        struct qp_attr attr = side_attr(&e);
        uint32_t depth = depths[i / countof(starts)], start = starts[i % countof(starts)];
        uint64_t in = 0, out = 0, received = 0;

        attr.send_depth = attr.recv_depth = depth;
        attr.signal_all = true;
        side_open(&s, &e, &attr);
        s.qp.sq.head = s.qp.sq.next = s.qp.sq.tail = start;
        s.qp.own_rq.head = s.qp.own_rq.tail = start;
        for (int round = 0; round < 8; round++) {
            for (; in - out < depth; in++) {
                assert_int_equal(send_octets(in, 0, (uint32_t)in), 0);
                assert_int_equal(post_recv(&s, in, NULL, 0), 0);
            }
            assert_int_equal(send_octets(99, 0, 1), -ENOMEM);
            assert_int_equal(post_recv(&s, 99, NULL, 0), -ENOMEM);
            assert_int_equal(leave(&s, 4096).seg.length, out);
            assert_int_equal(arrive(&s, a_send((uint32_t)received + 1, 0, NULL, 0, SEG_LAST)), FAULT_NONE);
            expect_wc(&s.send_cq, out++, RDDP_WC_SUCCESS);
            expect_wc(&s.recv_cq, received++, RDDP_WC_SUCCESS);
        }
        side_fini(&s);
    }
}

/* A list is taken from its front: up to the first wrong request, or to the last free place, wherever counters start. */
static void test_list(void **state)
{
    static const struct {
        int posted, wrong, taken; /* requests in the list; which is wrong, or -1; how many are taken */
        int error;
    } lists[] = {{1, -1, 1, 0}, {3, -1, 3, 0}, {4, -1, 3, -ENOMEM}, {3, 0, 0, -EINVAL}, {3, 2, 2, -EINVAL}};
    struct rddp_send_wr wr[4], *at;

    (void)state;
    for (size_t i = 0; i < countof(lists); i++) {
        struct qp_attr attr = side_attr(&e);

        attr.send_depth = 3;
        side_open(&s, &e, &attr);
        s.qp.sq.head = s.qp.sq.next = s.qp.sq.tail = UINT32_MAX - 1;
        for (int k = 0; k < lists[i].posted; k++)
            wr[k] = (struct rddp_send_wr){
                .wr_id = (uint64_t)k,
                .next = k + 1 < lists[i].posted ? &wr[k + 1] : NULL,
                .opcode = k == lists[i].wrong ? (enum rddp_wr_opcode)99 : RDDP_WR_SEND,
                .send_flags = RDDP_SEND_SIGNALED,
            };
        at = wr;
        assert_int_equal(qp_post_sends(&s.qp, &at), lists[i].error);
        assert_ptr_equal(at, lists[i].error ? &wr[lists[i].taken] : NULL);
        assert_int_equal(s.qp.sq.taken, lists[i].taken);
        for (int k = 0; k < lists[i].taken; k++) {
            leave(&s, 100);
            expect_wc(&s.send_cq, (uint64_t)k, RDDP_WC_SUCCESS);
        }
        assert_false(qp_has_output(&s.qp));
        assert_int_equal(s.qp.sq.taken, 0);
        side_fini(&s);
    }
}

static uint32_t taken_when_told;

static void note_taken(struct cq *cq)
{
    (void)cq;
    taken_when_told = s.qp.sq.taken;
}

/* The places of unsignalled requests are free before a later completion can be polled: its poller may count on them. */
static void test_silent_first(void **state)
{
    (void)state;
    side_open(&s, &e, NULL);
    s.send_cq.notify = note_taken;
    cq_arm(&s.send_cq, CQ_NEXT);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(send_octets(i, i == 2 ? RDDP_SEND_SIGNALED : 0, 1), 0);
        qp_emit(&s.qp, &(struct emit){.spans = 0}, 100, 100);
        qp_queued(&s.qp, i + 1);
    }
    qp_sent(&s.qp, 3);
    assert_int_equal(taken_when_told, 1);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    assert_int_equal(s.qp.sq.taken, 0);
    side_fini(&s);
}

/* A queue whose requests all have left keeps to the front of its ring; while one has not, the next one lies behind. */
static void test_front(void **state)
{
    const struct send *front;

    (void)state;
    side_open(&s, &e, NULL);
    front = s.qp.sq.ring;
    for (uint64_t i = 0; i < 20; i += 2) {
        assert_int_equal(send_octets(i, 0, 1), 0);
        leave(&s, 100);
        assert_int_equal(front[0].wr_id, i);
        assert_int_equal(send_octets(i, 0, 1), 0);
        assert_int_equal(send_octets(i + 1, 0, 1), 0);
        assert_int_equal(front[1].wr_id, i + 1);
        leave(&s, 100);
        leave(&s, 100);
    }
    side_fini(&s);
}

static void test_users(void **state)
{
    static uint64_t space[1024];
    struct qp_attr attr = side_attr(&e);
    struct rq srq;

    (void)state;
    assert_true(rq_size(5, 2) <= sizeof(space));
    rq_init(&srq, &e.pd, 5, 2, space);
    attr.srq = &srq;
    side_init(&s, &attr);
    assert_int_equal(e.pd.users, 1);
    assert_int_equal(srq.users, 1);
    assert_int_equal(s.send_cq.users, 1);
    assert_int_equal(s.recv_cq.users, 1);
    const struct rddp_recv_wr wr = {.wr_id = 1};
    assert_int_equal(qp_post_recv(&s.qp, &wr), -EINVAL); /* the queue pair uses an SRQ */
    side_fini(&s);
    assert_int_equal(srq.users, 0);
    attr.recv_cq = &s.send_cq; /* one CQ for both queues */
    side_init(&s, &attr);
    assert_int_equal(s.send_cq.users, 2);
    side_fini(&s);
}

/* --- completion ---------------------------------------------------------------------------------------------- */

/* DDP-5.3-01, RDMAP-5.5-04: requests complete in the order of submission, each at its own event. */
static void test_order(void **state)
{
    struct emit out;
    uint64_t end[3];

    (void)state;
    side_open(&s, &e, NULL);
    assert_int_equal(send_octets(1, RDDP_SEND_SIGNALED, 100), 0);
    assert_int_equal(read_octets(2, RDDP_SEND_SIGNALED, 10), 0);
    assert_int_equal(send_octets(3, RDDP_SEND_SIGNALED, 100), 0);
    for (int i = 0; i < 3; i++) {
        assert_true(qp_emit(&s.qp, &out, 1000, 1000));
        end[i] = (uint64_t)i * 200 + 200;
        qp_queued(&s.qp, end[i]);
    }
    assert_false(qp_has_output(&s.qp));
    expect_quiet(&s.send_cq);
    qp_sent(&s.qp, end[0] - 1);
    expect_quiet(&s.send_cq);
    qp_sent(&s.qp, end[0]);
    assert_int_equal(expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS).opcode, RDDP_WC_SEND);
    qp_sent(&s.qp, end[2]); /* 3 has left, but the Read before it is not answered yet */
    expect_quiet(&s.send_cq);
    assert_int_equal(answer(10), FAULT_NONE);
    struct rddp_wc wc = expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    assert_int_equal(wc.opcode, RDDP_WC_RDMA_READ);
    assert_int_equal(wc.byte_len, 10);
    assert_int_equal(wc.qp_num, 7);
    expect_wc(&s.send_cq, 3, RDDP_WC_SUCCESS);
    expect_quiet(&s.send_cq);
    side_fini(&s);
}

/* A message of many segments completes when its last segment has left. */
static void test_last_segment(void **state)
{
    struct emit out;

    (void)state;
    side_open(&s, &e, NULL);
    assert_int_equal(send_octets(1, RDDP_SEND_SIGNALED, 100), 0);
    for (uint64_t i = 1; i <= 10; i++) {
        expect_quiet(&s.send_cq);
        assert_true(qp_emit(&s.qp, &out, 10, 10));
        qp_queued(&s.qp, i * 20);
        qp_sent(&s.qp, i * 20 - (i == 10));
    }
    expect_quiet(&s.send_cq);
    qp_sent(&s.qp, 200);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    side_fini(&s);
}

/* Output after a request does not delay the request's completion, whether it is half a request or a response. */
static void test_left_meanwhile(void **state)
{
    const struct seg_read read = {.source_key = mr->key, .source_offset = mr->start, .length = 20};
    struct emit out;

    (void)state;
    for (int way = 0; way < 2; way++) {
        side_open(&s, &e, NULL);
        assert_int_equal(send_octets(1, RDDP_SEND_SIGNALED, 10), 0);
        assert_true(qp_emit(&s.qp, &out, 10, 10));
        qp_queued(&s.qp, 100);
        if (way == 0)
            assert_int_equal(send_octets(2, RDDP_SEND_SIGNALED, 20), 0);
        else
            assert_int_equal(arrive(&s, a_read_request(1, &read)), FAULT_NONE);
        assert_true(qp_emit(&s.qp, &out, 10, 10));
        qp_queued(&s.qp, 200);
        qp_sent(&s.qp, 100);
        expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
        expect_quiet(&s.send_cq);
        side_fini(&s);
    }
}

/* A successful unsignalled request makes no completion, and its place is free at once. */
static void test_signals(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        struct qp_attr attr = side_attr(&e);

        attr.signal_all = all;
        side_open(&s, &e, &attr);
        assert_int_equal(send_octets(1, 0, 1), 0);
        assert_int_equal(send_octets(2, RDDP_SEND_SIGNALED, 1), 0);
        leave(&s, 100);
        leave(&s, 100);
        assert_int_equal(s.qp.sq.tail, 2);
        assert_int_equal(s.qp.sq.taken, 1 + all);
        if (all)
            expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
        expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
        expect_quiet(&s.send_cq);
        assert_int_equal(send_octets(3, 0, 1), 0);
        qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_LOST});
        expect_wc(&s.send_cq, 3, RDDP_WC_WR_FLUSH_ERR);
        expect_quiet(&s.send_cq);
        side_fini(&s);
    }
}

/* A place becomes free when the application polls its completion. The place of a receive is also taken while its
 * message arrives. */
static void test_places(void **state)
{
    struct qp_attr attr = side_attr(&e);

    (void)state;
    attr.send_depth = attr.recv_depth = 2;
    attr.signal_all = true;
    side_open(&s, &e, &attr);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(send_octets(i, 0, 1), 0);
        assert_int_equal(post_recv(&s, i, &(struct rddp_sge){mr->start, 8, mr->key}, 1), 0);
    }
    leave(&s, 100);
    assert_int_equal(send_octets(9, 0, 1), -ENOMEM);
    expect_wc(&s.send_cq, 0, RDDP_WC_SUCCESS);
    assert_int_equal(send_octets(2, 0, 1), 0);
    assert_int_equal(send_octets(9, 0, 1), -ENOMEM);
    assert_int_equal(arrive(&s, a_send(1, 0, mr->base, 4, 0)), FAULT_NONE);
    assert_int_equal(post_recv(&s, 9, NULL, 0), -ENOMEM);
    assert_int_equal(arrive(&s, a_send(1, 4, mr->base, 4, SEG_LAST)), FAULT_NONE);
    assert_int_equal(post_recv(&s, 9, NULL, 0), -ENOMEM);
    expect_wc(&s.recv_cq, 0, RDDP_WC_SUCCESS);
    assert_int_equal(post_recv(&s, 2, NULL, 0), 0);
    assert_int_equal(post_recv(&s, 9, NULL, 0), -ENOMEM);
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_LOST}); /* flushed requests keep their places, too */
    assert_int_equal(send_octets(9, 0, 1), -ENOMEM);
    assert_int_equal(post_recv(&s, 9, NULL, 0), -ENOMEM);
    expect_wc(&s.send_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    expect_wc(&s.recv_cq, 1, RDDP_WC_WR_FLUSH_ERR);
    assert_int_equal(send_octets(3, 0, 1), 0);
    assert_int_equal(post_recv(&s, 3, NULL, 0), 0);
    cq_forget(&s.send_cq, 7);
    cq_forget(&s.recv_cq, 7);
    assert_int_equal(s.qp.sq.taken, 0);
    assert_int_equal(s.qp.own_rq.taken, 0);
    side_fini(&s);
}

/* A CQ with a place for each request of its queues never overflows, whatever is posted and however late the
 * application polls. */
static void test_never_full(void **state)
{
    struct qp_attr attr = side_attr(&e);
    uint32_t seed = 4711, msn = 1;

    (void)state;
    attr.send_depth = 5;
    attr.recv_depth = 3;
    attr.recv_cq = &s.send_cq;
    side_open(&s, &e, &attr);
    s.send_cq.cqe = attr.send_depth + attr.recv_depth;
    for (int step = 0; step < 5000; step++) {
        struct rddp_wc wc;
        struct emit out;

        switch (chance(&seed) % 5) {
        case 0:
            send_octets(1, chance(&seed) % 2 ? RDDP_SEND_SIGNALED : 0, 1);
            break;
        case 1:
            post_recv(&s, 2, NULL, 0);
            break;
        case 2:
            if (qp_emit(&s.qp, &out, 100, 100)) {
                qp_queued(&s.qp, s.qp.tx_pos + 10);
                qp_sent(&s.qp, s.qp.tx_pos + 10);
            }
            break;
        case 3:
            if (s.qp.own_rq.head != s.qp.own_rq.tail)
                assert_int_equal(arrive(&s, a_send(msn++, 0, NULL, 0, SEG_LAST)), FAULT_NONE);
            break;
        default:
            cq_poll(&s.send_cq, &wc, 1);
            break;
        }
        assert_int_equal(s.qp.state, QP_READY);
    }
    assert_true(msn > 500);
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_LOST});
    assert_false(s.send_cq.overflowed);
    side_fini(&s);
}

/* Requests posted before the connection is established leave after that. */
static void test_idle(void **state)
{
    struct qp_attr attr = side_attr(&e);

    (void)state;
    side_init(&s, &attr);
    assert_int_equal(send_octets(1, RDDP_SEND_SIGNALED, 10), 0);
    assert_false(qp_has_output(&s.qp));
    qp_connect(&s.qp, 1, 1, 77);
    assert_int_equal(s.qp.rx_pos, 77);
    leave(&s, 100);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    side_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),           cmocka_unit_test(test_refused), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_users),          cmocka_unit_test(test_order),   cmocka_unit_test(test_last_segment),
        cmocka_unit_test(test_left_meanwhile), cmocka_unit_test(test_signals), cmocka_unit_test(test_places),
        cmocka_unit_test(test_never_full),     cmocka_unit_test(test_idle),    cmocka_unit_test(test_list),
        cmocka_unit_test(test_silent_first),   cmocka_unit_test(test_front),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
