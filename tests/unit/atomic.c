/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* atomic.c - atomic operations: what they do to a word, in which order they run, and which response belongs to which
 * request. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/qp_inner.h"
#include "tests/lib/stage.h"
#include "tests/lib/vectors.h"

enum { SINK = 16 }; /* where in `local` results go, which the tests leave unaligned by one more octet */

static uint32_t aligned(const struct mr *mr)
{
    return (uint32_t)(-(uintptr_t)mr->base % 8);
}

static uint64_t *word_of(struct mr *mr)
{
    return (uint64_t *)(void *)(mr->base + aligned(mr));
}

static uint64_t result(uint32_t i)
{
    uint64_t value;

    memcpy(&value, local->base + SINK + 8 * i + 1, 8);
    return value;
}

static struct rddp_send_wr an_atomic(uint64_t wr_id, struct rddp_sge *sge, uint64_t compare_add, uint64_t swap)
{
    *sge = piece_of(local, (uint32_t)(SINK + 8 * wr_id + 1), 8);
    return (struct rddp_send_wr){
        .wr_id = wr_id,
        .sg_list = sge,
        .num_sge = 1,
        .opcode = RDDP_WR_ATOMIC_FETCH_AND_ADD,
        .send_flags = RDDP_SEND_SIGNALED,
        .remote_addr = remote->start + aligned(remote),
        .rkey = (uint32_t)remote->key,
        .compare_add = compare_add,
        .swap = swap,
    };
}

static int post_add(struct side *from, uint64_t wr_id, uint64_t add)
{
    struct rddp_sge sge;
    struct rddp_send_wr wr = an_atomic(wr_id, &sge, add, 0);

    return qp_post_send(&from->qp, &wr);
}

static struct seg a_request(uint32_t msn, const struct mr *target, uint64_t at)
{
    return (struct seg){
        .op = SEG_ATOMIC_REQ,
        .flags = SEG_LAST,
        .msg = msn,
        .atomic = {SEG_FETCH_ADD, 70 + msn, target->key, target->start + at, 1, 0, 0, UINT64_MAX},
    };
}

static struct seg a_response(uint32_t msn, uint32_t id, uint64_t value)
{
    return (struct seg){.op = SEG_ATOMIC_RESP, .flags = SEG_LAST, .msg = msn, .atomic = {.id = id, .data = value}};
}

/* --- what they do -------------------------------------------------------------------------------------------- */

static uint64_t hex(const json_t *row, const char *name)
{
    return strtoull(json_string_value(json_object_get(row, name)), NULL, 16);
}

/* EXT-01 EXT-02: the rows of the RFC's pseudo code, from post to completion. */
static void rows(void **state)
{
    json_t *file = vectors_load("mpa"), *atomics = json_object_get(file, "atomics"), *row;
    static struct side peer;
    size_t i, count = 0;

    (void)state;
    side_open(&peer, &e, NULL);
    for (unsigned swap = 0; swap < 2; swap++) {
        json_array_foreach(json_object_get(atomics, swap ? "cmpswap" : "fetchadd"), i, row) {
            struct rddp_sge sge;
            struct rddp_send_wr wr =
                an_atomic(1, &sge, hex(row, swap ? "compare" : "add"), swap ? hex(row, "swap") : 0);
            struct rddp_wc wc;

            wr.opcode = swap ? RDDP_WR_ATOMIC_CMP_AND_SWP : RDDP_WR_ATOMIC_FETCH_AND_ADD;
            wr.send_flags |= RDDP_SEND_MASKED;
            wr.compare_add_mask = hex(row, swap ? "compare_mask" : "mask");
            wr.swap_mask = swap ? hex(row, "swap_mask") : 0x1234;
            *word_of(remote) = hex(row, "orig");
            assert_int_equal(qp_post_send(&peer.qp, &wr), 0);
            converse(&peer, &s, 100);
            wc = expect_wc(&peer.send_cq, 1, RDDP_WC_SUCCESS);
            assert_int_equal(wc.opcode, swap ? RDDP_WC_COMP_SWAP : RDDP_WC_FETCH_ADD);
            assert_int_equal(wc.byte_len, 8);
            assert_int_equal(result(1), hex(row, "orig"));
            assert_int_equal(*word_of(remote), hex(row, "result"));
            count++;
        }
    }
    assert_int_equal(count, 12);
    side_fini(&peer);
    json_decref(file);
}

/* Without masks all bits count, whatever the mask fields contain. */
static void plain(void **state)
{
    static struct side peer;
    struct rddp_sge sge;
    struct rddp_send_wr wr = an_atomic(0, &sge, 5, 9);

    (void)state;
    side_open(&peer, &e, NULL);
    wr.compare_add_mask = 1;
    wr.swap_mask = 1;
    *word_of(remote) = 0xffffffff;
    assert_int_equal(qp_post_send(&peer.qp, &wr), 0);
    wr.opcode = RDDP_WR_ATOMIC_CMP_AND_SWP;
    assert_int_equal(qp_post_send(&peer.qp, &wr), 0);
    wr.compare_add = 0x100000004;
    wr.wr_id = 1;
    *wr.sg_list = piece_of(local, SINK + 9, 8);
    assert_int_equal(qp_post_send(&peer.qp, &wr), 0);
    converse(&peer, &s, 100);
    assert_int_equal(result(0), 0x100000004);
    assert_int_equal(result(1), 0x100000004);
    assert_int_equal(*word_of(remote), 9);
    for (unsigned i = 0; i < 3; i++)
        expect_wc(&peer.send_cq, i / 2, RDDP_WC_SUCCESS);
    side_fini(&peer);
}

/* --- may the peer? ------------------------------------------------------------------------------------------- */

/* EXT-03: checked at delivery, the address in memory included, and nothing is touched. */
static void refused(void **state)
{
    const struct mr *read_only = engine_region(&e, 64, RDDP_ACCESS_REMOTE_READ | LOCAL | RDDP_ACCESS_REMOTE_WRITE);
    struct seg seg;

    (void)state;
    pattern(remote->base, STAGE_REMOTE, 1);
    engine_remember(&e);
    for (uint32_t off = 1; off < 8; off++) {
        assert_int_equal(arrive(&s, a_request(1, remote, aligned(remote) + off)), FAULT_UNALIGNED);
        assert_int_equal(s.qp.note.op, SEG_ATOMIC_REQ);
        assert_int_equal(s.qp.note.length, 8);
        stage_again(NULL);
    }
    assert_int_equal(arrive(&s, a_request(1, read_only, aligned(read_only))), FAULT_RIGHT);
    stage_again(NULL);
    assert_int_equal(arrive(&s, a_request(1, remote, STAGE_REMOTE - 7)), FAULT_BOUNDS);
    stage_again(NULL);
    seg = a_request(1, remote, 0);
    seg.atomic.key = 1;
    assert_int_equal(arrive(&s, seg), FAULT_KEY);
    stage_again(NULL);
    seg = a_request(1, remote, 0);
    seg.atomic.offset = UINT64_MAX - 3;
    assert_int_equal(arrive(&s, seg), FAULT_WRAP);
    /* Offsets count from anywhere. */
    stage_again(NULL);
    remote->start += 3;
    assert_int_equal(arrive(&s, a_request(1, remote, aligned(remote) + 5)), FAULT_UNALIGNED);
    engine_expect(&e);
    stage_again(NULL);
    assert_int_equal(arrive(&s, a_request(1, remote, aligned(remote))), FAULT_NONE);
    remote->start -= 3;
}

/* The owner invalidates the region between delivery and response. */
static void revoked(void **state)
{
    struct emit out;

    (void)state;
    assert_int_equal(arrive(&s, a_request(1, remote, aligned(remote))), FAULT_NONE);
    engine_remember(&e);
    remote->valid = false;
    assert_false(qp_emit(&s.qp, &out, 100, 100));
    assert_int_equal(s.qp.state, QP_ERROR);
    assert_int_equal(s.qp.note.fault, FAULT_KEY);
    assert_int_equal(s.qp.note.op, SEG_ATOMIC_REQ);
    engine_expect(&e);
    remote->valid = true;
}

/* --- order --------------------------------------------------------------------------------------------------- */

/* EXT-04: Atomic Requests share message numbers and IRD with Read Requests, and all are answered in order. Atomic
 * Responses have numbers of their own. */
static void answered_in_order(void **state)
{
    static const enum seg_op ops[] = {SEG_ATOMIC_RESP, SEG_READ_RESP, SEG_ATOMIC_RESP, SEG_ATOMIC_RESP};
    uint32_t number = 1;

    (void)state;
    *word_of(remote) = 40;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(arrive(&s, i == 1 ? read_of(remote, 2, 8) : a_request(i + 1, remote, aligned(remote))),
                         FAULT_NONE);
    assert_int_equal(arrive(&s, a_request(5, remote, aligned(remote))), FAULT_READS);
    /* Each operation runs when its response leaves. */
    assert_int_equal(*word_of(remote), 40);
    for (uint32_t i = 0; i < 4; i++) {
        struct emit out = leave(&s, 100);

        assert_int_equal(out.seg.op, ops[i]);
        if (i == 1)
            continue;
        assert_int_equal(out.seg.msg, number++);
        assert_int_equal(out.seg.flags, SEG_LAST);
        assert_int_equal(out.seg.length, 0);
        assert_int_equal(out.seg.atomic.id, 70 + i + 1);
        assert_int_equal(out.seg.atomic.data, 40 + (i ? i - 1 : 0));
    }
    assert_int_equal(*word_of(remote), 43);
    expect_idle();
}

/* Atomics count as Reads towards ORD and for the fence. */
static void waits_as_a_read(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(post_add(&s, i, 1), 0);
    assert_int_equal(request(9, RDDP_WR_SEND, RDDP_SEND_FENCE, 8), 0);
    for (uint32_t i = 0; i < 4; i++)
        expect_op(SEG_ATOMIC_REQ);
    expect_idle();
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(arrive(&s, a_response(i + 1, i + 1, i)), FAULT_NONE);
    expect_op(SEG_ATOMIC_REQ);
    expect_idle();
    assert_int_equal(arrive(&s, a_response(5, 5, 4)), FAULT_NONE);
    expect_op(SEG_SEND);
    for (uint32_t i = 0; i < 5; i++) {
        expect_wc(&s.send_cq, i, RDDP_WC_SUCCESS);
        assert_int_equal(result(i), i);
    }
    expect_wc(&s.send_cq, 9, RDDP_WC_SUCCESS);
}

/* --- matching responses -------------------------------------------------------------------------------------- */

/* EXT-05: a response has to match the oldest request by its number on queue 3 and its identifier, and that request has
 * to be an atomic. */
static void wrong_responses(void **state)
{
    const struct seg wrong[] = {
        a_response(0, 1, 7), a_response(2, 1, 7),
        a_response(1, 2, 7), a_response(2, 2, 7),
        a_response(1, 0, 7), a_read_response(local->key, local->start + SINK + 9, data, 8, SEG_LAST),
    };

    (void)state;
    assert_int_equal(arrive(&s, a_response(1, 1, 7)), FAULT_UNASKED);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        stage_again(NULL);
        assert_int_equal(post_add(&s, 1, 1), 0);
        assert_int_equal(post_add(&s, 2, 1), 0);
        expect_op(SEG_ATOMIC_REQ);
        expect_op(SEG_ATOMIC_REQ);
        engine_remember(&e);
        assert_int_equal(arrive(&s, wrong[i]), FAULT_UNASKED);
        engine_expect(&e);
        expect_quiet(&s.send_cq);
    }
    stage_again(NULL);
    read_into(4);
    assert_int_equal(post_add(&s, 1, 1), 0);
    expect_op(SEG_ATOMIC_REQ);
    assert_int_equal(arrive(&s, a_response(1, 1, 7)), FAULT_UNASKED); /* the Read is older */
}

/* The old value is written with the rights of its sink, which are asked for before the request leaves and again when
 * the response is there. */
static void sink_without_a_right(void **state)
{
    struct emit out;

    (void)state;
    local->access &= ~(unsigned)LOCAL;
    assert_int_equal(post_add(&s, 1, 1), 0);
    assert_false(qp_emit(&s.qp, &out, 100, 100));
    expect_wc(&s.send_cq, 1, RDDP_WC_LOC_PROT_ERR);
    local->access |= LOCAL;
    stage_again(NULL);
    assert_int_equal(post_add(&s, 1, 1), 0);
    expect_op(SEG_ATOMIC_REQ);
    local->access &= ~(unsigned)LOCAL;
    engine_remember(&e);
    assert_int_equal(arrive(&s, a_response(1, 1, 7)), FAULT_LOCAL_KEY);
    engine_expect(&e);
    local->access |= LOCAL;
}

/* Out of order the number finds the request, which completes in its turn. */
static void early_response(void **state)
{
    (void)state;
    assert_int_equal(post_add(&s, 1, 1), 0);
    assert_int_equal(post_add(&s, 2, 1), 0);
    expect_op(SEG_ATOMIC_REQ);
    expect_op(SEG_ATOMIC_REQ);
    assert_int_equal(arrive_at(&s, a_response(3, 3, 7), 100, 200), FAULT_UNASKED);
    assert_int_equal(arrive_at(&s, a_response(2, 2, 7), 100, 200), FAULT_NONE);
    expect_quiet(&s.send_cq);
    assert_int_equal(arrive_at(&s, a_response(1, 1, 6), 0, 100), FAULT_NONE);
    assert_int_equal(qp_advance(&s.qp, 200), FAULT_NONE);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    expect_wc(&s.send_cq, 2, RDDP_WC_SUCCESS);
    assert_int_equal(result(1), 6);
    assert_int_equal(result(2), 7);
}

/* --- posting, failing ---------------------------------------------------------------------------------------- */

static void not_posted(void **state)
{
    struct rddp_sge sge[2];
    struct rddp_send_wr wr = an_atomic(1, sge, 1, 0);

    (void)state;
    sge[1] = piece_of(local, 0, 0);
    for (uint32_t n = 0; n < 20; n++) {
        sge->length = n;
        assert_int_equal(qp_post_send(&s.qp, &wr), n == 8 ? 0 : -EINVAL);
    }
    sge->length = 8;
    wr.num_sge = 2;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL);
    wr.num_sge = 0;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL);
    wr.num_sge = 1;
    wr.send_flags = RDDP_SEND_INLINE;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL);
    wr.send_flags = RDDP_SEND_MASKED;
    assert_int_equal(qp_post_send(&s.qp, &wr), 0);
    wr.opcode = RDDP_WR_RDMA_WRITE;
    assert_int_equal(qp_post_send(&s.qp, &wr), -EINVAL);
}

/* Three causes: a wrong local key, no ORD, and a Terminate of the peer. */
static void fails(void **state)
{
    struct qp_attr attr = side_attr(&e);
    struct emit out;
    struct rddp_sge sge;
    struct rddp_send_wr wr = an_atomic(1, &sge, 1, 0);

    (void)state;
    sge.lkey = 1;
    assert_int_equal(qp_post_send(&s.qp, &wr), 0);
    assert_false(qp_emit(&s.qp, &out, 100, 100));
    expect_wc(&s.send_cq, 1, RDDP_WC_LOC_PROT_ERR);
    attr.ord = 0;
    stage_again(&attr);
    assert_int_equal(post_add(&s, 2, 1), 0);
    assert_false(qp_emit(&s.qp, &out, 100, 100));
    assert_int_equal(s.qp.note.op, SEG_ATOMIC_REQ);
    expect_wc(&s.send_cq, 2, RDDP_WC_LOC_QP_OP_ERR);
    stage_again(NULL);
    read_into(0);
    assert_int_equal(post_add(&s, 1, 1), 0);
    expect_op(SEG_ATOMIC_REQ);
    qp_blame(&s.qp, SEG_ATOMIC_REQ, RDDP_WC_REM_ACCESS_ERR);
    qp_fail(&s.qp, &(struct fault_note){.fault = FAULT_TERMINATED});
    expect_wc(&s.send_cq, 0, RDDP_WC_WR_FLUSH_ERR);
    expect_wc(&s.send_cq, 1, RDDP_WC_REM_ACCESS_ERR);
}

/* --- atomic -------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 2000000, REQUESTS = 1000, THREADS = 2 };
enum { MEETINGS = 1000, ROUNDS_MAX = 10 * ROUNDS }; /* on a busy machine the threads seldom run at the same time */

static atomic_bool enough;

static void *adds(void *word)
{
    uintptr_t count = 0;

    for (; !enough; count++)
        __atomic_fetch_add((uint64_t *)word, 1, __ATOMIC_RELAXED);
    return (void *)count;
}

/* EXT-04: no atomic operation of the peer is lost beside those of the host's own threads. */
static void beside_the_host(void **state)
{
    const struct seg_atomic add = {.op = SEG_FETCH_ADD, .data = 1};
    pthread_t thread[THREADS];
    uint64_t sum = REQUESTS, was = 0;
    void *count;

    (void)state;
    enough = false;
    *word_of(remote) = 0;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, adds, word_of(remote)), 0);
    for (uint32_t i = 0, met = 0; (i < ROUNDS || met < MEETINGS) && i < ROUNDS_MAX; i++, sum++) {
        uint64_t now = atomic_do(remote->base + aligned(remote), &add);

        met += now != was + 1;
        was = now;
    }
    for (uint32_t i = 0; i < REQUESTS; i++) {
        assert_int_equal(arrive(&s, a_request(i + 1, remote, aligned(remote))), FAULT_NONE);
        expect_op(SEG_ATOMIC_RESP);
    }
    enough = true;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], &count), 0);
        sum += (uintptr_t)count;
    }
    assert_int_equal(*word_of(remote), sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(rows),
        STAGE_TEST(plain),
        STAGE_TEST(refused),
        STAGE_TEST(revoked),
        STAGE_TEST(answered_in_order),
        STAGE_TEST(waits_as_a_read),
        STAGE_TEST(wrong_responses),
        STAGE_TEST(sink_without_a_right),
        STAGE_TEST(early_response),
        STAGE_TEST(not_posted),
        STAGE_TEST(fails),
        STAGE_TEST(beside_the_host),
    };

    return cmocka_run_group_tests_name("atomic", tests, NULL, NULL);
}
