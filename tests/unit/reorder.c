/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reorder.c - segments in every order: the stream alone determines what is delivered, and when. DDP-4.1-03,
 * DDP-5.3-02. Shows MPA-3.1-02. */
#include <string.h>

#include "tests/lib/stage.h"

enum { LINK_MAX = 64 };

/* --- a link that loses nothing and keeps no order ------------------------------------------------------------ */

struct link {
    struct seg seg[LINK_MAX];
    uint32_t segs;
    bool here[LINK_MAX], placed[LINK_MAX];
    uint32_t received, answered; /* completions seen so far */
    uint32_t not_now;            /* times that a segment had to wait */
};

/* Append a segment to the stream. */
static void put(struct link *l, struct seg seg)
{
    seg.begin = l->segs ? l->seg[l->segs - 1].end : 0;
    seg.end = seg.begin + 20 + seg.length;
    assert_true(l->segs < LINK_MAX);
    l->seg[l->segs++] = seg;
}

static uint32_t count_before(const struct link *l, enum seg_op op)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->segs; i++)
        n += l->seg[i].op == op && l->seg[i].flags & SEG_LAST && l->seg[i].end <= s.qp.rx_pos;
    return n;
}

/* Check that exactly the messages up to the receive position are delivered, in order. */
static void check_delivered(struct link *l)
{
    uint32_t sends = count_before(l, SEG_SEND), responses = count_before(l, SEG_READ_RESP);

    while (l->received < sends)
        expect_wc(&s.recv_cq, l->received++, RDDP_WC_SUCCESS);
    expect_quiet(&s.recv_cq);
    while (l->answered < responses)
        expect_wc(&s.send_cq, l->answered++, RDDP_WC_SUCCESS);
    expect_quiet(&s.send_cq);
    assert_int_equal(s.qp.answers.head - 1, count_before(l, SEG_READ_REQ));
}

static void advance(struct link *l)
{
    uint64_t pos = s.qp.rx_pos;

    for (uint32_t i = 0; i < l->segs; i++)
        if (l->placed[i] && l->seg[i].begin == pos)
            pos = l->seg[i].end;
    assert_int_equal(qp_advance(&s.qp, pos), FAULT_NONE);
    check_delivered(l);
}

static bool place_one(struct link *l, uint32_t i)
{
    enum fault fault = arrive_at(&s, l->seg[i], l->seg[i].begin, l->seg[i].end);

    check_delivered(l);
    if (fault == FAULT_NOT_NOW) {
        assert_true(l->seg[i].begin > s.qp.rx_pos); /* a segment in order never waits */
        l->not_now++;
        return false;
    }
    assert_int_equal(fault, FAULT_NONE);
    return l->placed[i] = true;
}

/* Segment i arrives. Waiting segments are tried again as long as one more is placed. */
static void come(struct link *l, uint32_t i)
{
    bool more = true;

    l->here[i] = true;
    while (more) {
        more = false;
        for (i = 0; i < l->segs; i++)
            if (l->here[i] && !l->placed[i])
                more |= place_one(l, i);
        advance(l);
    }
}

static void forget_all(struct link *l)
{
    memset(l->here, 0, sizeof(l->here));
    memset(l->placed, 0, sizeof(l->placed));
    l->received = l->answered = 0;
}

/* --- all orders of five -------------------------------------------------------------------------------------- */

static void one_send(struct link *l)
{
    post_buffers(1);
    for (uint32_t i = 0; i < 5; i++)
        put(l, a_send(1, 10 * i, data + 10 * i, 10, i == 4 ? SEG_LAST : 0));
}

static void two_sends(struct link *l)
{
    post_buffers(3);
    put(l, a_send(1, 0, data, 30, 0));
    put(l, a_send(1, 30, data + 30, 34, SEG_LAST));
    put(l, a_write(remote->key, remote->start, data, 100, SEG_LAST));
    put(l, a_send(2, 0, data + 64, 64, 0));
    put(l, a_send(2, 64, NULL, 0, SEG_LAST));
}

static void of_each(struct link *l)
{
    post_buffers(2);
    read_into(0);
    put(l, a_send(1, 0, NULL, 0, SEG_LAST));
    put(l, response(0, 0, 64));
    put(l, read_of(remote, 1, 8));
    put(l, a_send(2, 0, data, 9, SEG_LAST));
    put(l, read_of(remote, 2, 8));
}

static void reads(struct link *l)
{
    read_into(0);
    read_into(1);
    put(l, response(0, 0, 20));
    put(l, response(0, 20, 44));
    put(l, response(1, 0, 1));
    put(l, response(1, 1, 2));
    put(l, response(1, 3, 61));
}

static void invalidations(struct link *l)
{
    post_buffers(3);
    read_into(0);
    put(l, read_of(remote, 1, 8));
    put(l, response(0, 0, 63));
    put(l, send_inv(1, remote->key));
    put(l, a_send(2, 0, data, 64, SEG_LAST));
    put(l, response(0, 63, 1));
}

static uint32_t run_permutations(void (*fill)(struct link *l))
{
    static uint8_t want_local[STAGE_BUFFERS * STAGE_BUFFER], want_remote[STAGE_BUFFERS * STAGE_BUFFER];
    uint32_t not_now = 0;

    for (uint32_t p = 0; p < 120; p++) {
        struct link l = {.segs = 0};
        uint32_t left[5] = {0, 1, 2, 3, 4}, code = p;

        stage_again(NULL);
        remote->valid = true;
        fill(&l);
        assert_int_equal(l.segs, 5);
        for (uint32_t n = 5; n; n--) { /* p = 0 is the order of the stream */
            uint32_t pick = code % n;

            code /= n;
            come(&l, left[pick]);
            memmove(&left[pick], &left[pick + 1], (4 - pick) * sizeof(left[0]));
        }
        assert_int_equal(s.qp.rx_pos, l.seg[4].end);
        if (p == 0) {
            memcpy(want_local, local->base, sizeof(want_local));
            memcpy(want_remote, remote->base, sizeof(want_remote));
        }
        assert_memory_equal(local->base, want_local, sizeof(want_local));
        assert_memory_equal(remote->base, want_remote, sizeof(want_remote));
        not_now += l.not_now;
    }
    return not_now;
}

/* MPA-3.2-07, MPA-3.2-08, MPA-4-01, MPA-5.2-09, MPA-5.2-10, MPA-5.2-11: in every order no segment waits, and the
 * memory is the same. */
static void test_permutations(void **state)
{
    (void)state;
    assert_int_equal(run_permutations(one_send), 0);
    assert_int_equal(run_permutations(two_sends), 0);
    assert_int_equal(run_permutations(of_each), 0);
    assert_int_equal(run_permutations(reads), 0);
    assert_int_equal(run_permutations(invalidations), 0);
}

/* --- long streams -------------------------------------------------------------------------------------------- */

/* Append a Send or a Read Response, in pieces of any size. */
static void put_pieces(struct link *l, uint32_t *seed, bool is_send, uint32_t number)
{
    uint32_t length = is_send ? chance(seed) % (STAGE_BUFFER + 1) : STAGE_BUFFER, at = 0, n;

    do {
        n = length - at < 4 ? length - at : 1 + chance(seed) % (length - at);
        if (is_send)
            put(l, a_send(number + 1, at, data + number % STAGE_BUFFERS * STAGE_BUFFER + at, n,
                          at + n == length ? SEG_LAST : 0));
        else
            put(l, response(number, at, n));
        at += n;
    } while (at < length);
}

static void put_anything(struct link *l, uint32_t *seed, uint32_t number[4])
{
    uint32_t at = chance(seed) % (STAGE_BUFFERS * STAGE_BUFFER - 20);

    switch (chance(seed) % 4) {
    case 0:
        if (number[0] < STAGE_BUFFERS)
            put_pieces(l, seed, true, number[0]++);
        break;
    case 1:
        put(l, a_write(remote->key, remote->start + at, data + at, 1 + chance(seed) % 20, SEG_LAST));
        break;
    case 2:
        if (number[2] < 4)
            put(l, read_of(remote, ++number[2], 8));
        break;
    default:
        if (number[3] < 4)
            put_pieces(l, seed, false, number[3]++);
        break;
    }
}

/* Random messages in random order, some segments more than once: all are delivered as they were sent, and the memory
 * is right (receives and sinks share the local region, so each of its octets has one right value). */
static void run_random(uint32_t seed, uint32_t window)
{
    struct qp_attr attr = side_attr(&e);
    struct link l = {.segs = 0};
    uint32_t number[4] = {0}, first = seed;

    attr.window = window;
    stage_again(&attr);
    post_buffers(STAGE_BUFFERS);
    for (uint32_t i = 0; i < 4; i++)
        read_into(i);
    while (l.segs < 40)
        put_anything(&l, &seed, number);
    while (s.qp.rx_pos != l.seg[l.segs - 1].end) {
        uint32_t i = chance(&seed) % l.segs;

        if (!l.here[i] || !l.placed[i]) {
            come(&l, i);
        } else { /* a duplicate, late or early */
            assert_int_equal(arrive_at(&s, l.seg[i], l.seg[i].begin, l.seg[i].end), FAULT_NONE);
            check_delivered(&l);
        }
    }
    for (uint32_t i = 0; i < l.segs; i++) {
        const struct seg *seg = &l.seg[i];
        const uint8_t *at = seg->op == SEG_READ_REQ ? NULL
                            : seg->op == SEG_SEND   ? local->base + (seg->msg - 1) * STAGE_BUFFER + seg->offset
                            : seg->op == SEG_WRITE  ? remote->base + (seg->offset - remote->start)
                                                    : local->base + (seg->offset - local->start);

        if (seg->op != SEG_READ_REQ && seg->length && memcmp(at, seg->data, seg->length))
            fail_msg("seed %u, window %u: segment %u is not where it belongs", first, window, i);
    }
    assert_int_equal(l.received, number[0]);
    assert_int_equal(l.answered, number[3]);
}

static void test_random(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 300; seed++)
        run_random(seed * 7919, 1 + seed % 9);
}

/* With a window of 1 and many holes segments wait, and all of them are delivered in the end. */
static void test_not_now(void **state)
{
    struct qp_attr attr = side_attr(&e);
    struct link l = {.segs = 0};
    struct qp before;

    (void)state;
    attr.window = 1;
    stage_again(&attr);
    post_buffers(2);
    for (uint32_t i = 0; i < 20; i++)
        put(&l, a_send(1, i, data + i, 1, i == 19 ? SEG_LAST : 0));
    put(&l, a_send(2, 0, data, 1, SEG_LAST));
    before = s.qp;
    assert_int_equal(arrive_at(&s, l.seg[20], l.seg[20].begin, l.seg[20].end), FAULT_NOT_NOW);
    assert_memory_equal(&before, &s.qp, sizeof(before));
    for (uint32_t i = 2; i <= 18; i += 2)
        come(&l, i);
    /* One interval is reserved for the beginning, so RANGES_MAX - 1 segments are placed. */
    assert_int_equal(l.placed[2] + l.placed[4] + l.placed[6] + l.placed[8] + l.placed[10], RANGES_MAX - 1);
    assert_int_equal(local->base[4], data[4]);
    assert_int_equal(local->base[8], 0);
    for (uint32_t i = 20; i; i--)
        come(&l, i);
    assert_int_equal(l.received, 0);
    come(&l, 0);
    assert_int_equal(l.received, 2);
    assert_int_equal(s.qp.rx_pos, l.seg[20].end);
    assert_memory_equal(local->base, data, 20);
    forget_all(&l);
    for (uint32_t i = 0; i < l.segs; i++) /* duplicates of all segments, too late */
        assert_int_equal(arrive_at(&s, l.seg[i], l.seg[i].begin, l.seg[i].end), FAULT_NONE);
    expect_quiet(&s.recv_cq);
}

/* The same for a Read Response. */
static void test_not_now_read(void **state)
{
    struct link l = {.segs = 0};

    (void)state;
    read_into(0);
    for (uint32_t i = 0; i < 8; i++)
        put(&l, response(0, 8 * i, 8));
    for (uint32_t i = 7; i < 8; i -= 2)
        come(&l, i);
    assert_int_equal(l.placed[7] + l.placed[5] + l.placed[3], RANGES_MAX - 1);
    assert_int_equal(l.not_now, 1);
    for (uint32_t i = 0; i < 8; i += 2)
        come(&l, i);
    assert_int_equal(l.answered, 1);
    assert_memory_equal(local->base, data, STAGE_BUFFER);
}

/* Two Reads into the same memory: an early response could belong to either, so it waits for its turn. */
static void test_same_sink(void **state)
{
    struct link l = {.segs = 0};
    const struct rddp_sge sge = piece_of(local, 0, STAGE_BUFFER);

    (void)state;
    read_into(0);
    assert_int_equal(post_remote(&s, 1, RDDP_WR_RDMA_READ, RDDP_SEND_SIGNALED, &sge, 1, 7, 0), 0);
    leave(&s, 100);
    put(&l, response(0, 0, 10));
    put(&l, response(0, 10, 54));
    put(&l, response(0, 0, 64));
    for (uint32_t i = 3; i--;)
        come(&l, i);
    assert_int_equal(l.answered, 2);
    assert_true(l.not_now > 0);
}

/* A link that forgot which segments it delivered early delivers them again in order. */
static void test_early_again(void **state)
{
    (void)state;
    post_buffers(2);
    read_into(1);
    assert_int_equal(arrive_at(&s, a_send(1, 10, data + 10, 10, SEG_LAST), 100, 200), FAULT_NONE);
    assert_int_equal(arrive_at(&s, read_of(remote, 1, 5), 200, 300), FAULT_NONE);
    assert_int_equal(arrive_at(&s, response(1, 30, 34), 400, 500), FAULT_NONE);
    assert_int_equal(arrive_at(&s, a_send(1, 0, data, 10, 0), 0, 100), FAULT_NONE);
    assert_int_equal(arrive_at(&s, a_send(1, 10, data + 10, 10, SEG_LAST), 100, 200), FAULT_NONE);
    assert_int_equal(expect_wc(&s.recv_cq, 0, RDDP_WC_SUCCESS).byte_len, 20);
    assert_int_equal(arrive_at(&s, read_of(remote, 1, 5), 200, 300), FAULT_NONE);
    assert_int_equal(leave(&s, 100).seg.length, 5);
    assert_int_equal(arrive_at(&s, response(1, 0, 30), 300, 400), FAULT_NONE);
    expect_quiet(&s.send_cq);
    assert_int_equal(arrive_at(&s, response(1, 30, 34), 400, 500), FAULT_NONE);
    expect_wc(&s.send_cq, 1, RDDP_WC_SUCCESS);
    assert_false(qp_has_output(&s.qp));
}

/* A message place that is used again keeps neither the octet count of the last message nor its tolerance of
 * duplicates. */
static void test_places_again(void **state)
{
    struct qp_attr attr = side_attr(&e);
    uint64_t pos = 0;

    (void)state;
    attr.window = attr.send_depth = attr.ord = 1;
    stage_again(&attr);
    for (uint32_t msn = 1; msn < 5; msn++) {
        post_buffers(1);
        read_into(0);
        assert_int_equal(arrive_at(&s, a_send(msn, 10, data, 10, SEG_LAST), pos + 10, pos + 20), FAULT_NONE);
        assert_int_equal(arrive_at(&s, a_send(msn, 0, data, 10, 0), pos, pos + 10), FAULT_NONE);
        expect_quiet(&s.recv_cq);
        assert_int_equal(qp_advance(&s.qp, pos + 20), FAULT_NONE);
        assert_int_equal(expect_wc(&s.recv_cq, 0, RDDP_WC_SUCCESS).byte_len, 20);
        assert_int_equal(arrive_at(&s, response(0, 30, 34), pos + 30, pos + 40), FAULT_NONE);
        assert_int_equal(arrive_at(&s, response(0, 0, 30), pos + 20, pos + 30), FAULT_NONE);
        expect_quiet(&s.send_cq);
        assert_int_equal(qp_advance(&s.qp, pos + 40), FAULT_NONE);
        expect_wc(&s.send_cq, 0, RDDP_WC_SUCCESS);
        pos += 40;
    }
    post_buffers(1);
    read_into(0);
    assert_int_equal(arrive(&s, a_send(5, 0, data, 10, 0)), FAULT_NONE);
    assert_int_equal(arrive(&s, response(0, 0, 10)), FAULT_NONE);
    expect_quiet(&s.recv_cq);
    expect_quiet(&s.send_cq);
    assert_int_equal(arrive(&s, a_send(5, 9, data, 10, 0)), FAULT_MO);
    assert_int_equal(arrive(&s, response(0, 9, 10)), FAULT_UNASKED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(test_permutations), STAGE_TEST(test_random),    STAGE_TEST(test_not_now),
        STAGE_TEST(test_not_now_read), STAGE_TEST(test_same_sink), STAGE_TEST(test_early_again),
        STAGE_TEST(test_places_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
