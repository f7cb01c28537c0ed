/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_buffers.c - buffers that are unmapped as soon as they are taken back, and places that two parts of a stream
 * want: what is read is what was sent, and no packet is written over it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/lib/marked.h"
#include "tests/lib/rng.h"

enum { PART = 1000, PARTS = 12, LENGTH = PART * PARTS, RID = 5, PAGES = 16384 };

static struct rddp_stream *s;
static uint8_t octets[LENGTH], *buffer;

static int marked_set_up(void **state)
{
    struct rng r = {9};

    (void)state;
    rng_fill(&r, octets, sizeof(octets));
    s = marked_open();
    buffer = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return buffer == MAP_FAILED || rddp_stream_expect(s, RID, buffer, LENGTH);
}

static int marked_tear_down(void **state)
{
    (void)state;
    marked_close(s);
    if (buffer)
        munmap(buffer, PAGES);
    return 0;
}

/* Takes the buffer back, and away. */
static void take_away(void)
{
    assert_int_equal(rddp_stream_forget(s, RID), 0);
    munmap(buffer, PAGES);
    buffer = NULL;
}

/* Part `i` of the stream, at part `to` of the buffer; `to` below 0: plain. */
static void bring(uint32_t i, int to)
{
    struct tcpopt o = marked_option(RID, (uint32_t)to * PART, PART);

    marked_segment(s, (uint64_t)i * PART, octets + (size_t)i * PART, PART, to < 0 ? NULL : &o);
}

/* Reads what is next. Returns its length; it has to be what was sent, and of this kind. */
static size_t hear(enum rddp_stream_kind kind)
{
    struct rddp_stream_record r;
    uint8_t plain[LENGTH];

    assert_int_equal(rddp_stream_read(s, plain, sizeof(plain), &r), 1);
    assert_int_equal(r.kind, kind);
    assert_memory_equal(kind == RDDP_STREAM_PLACED ? r.at : plain, octets + r.position, r.length);
    return r.length;
}

static uint64_t twice(void)
{
    struct rddp_stream_counters count;

    rddp_stream_count(s, &count);
    return count.options_twice;
}

/* What lies in a buffer that is taken away is read as plain octets, in front of a gap and behind one, and counts as
 * kept until then. */
static void forget_copies(void **state)
{
    (void)state;
    bring(0, 0);
    bring(1, 1);
    for (uint32_t i = 4; i < PARTS; i++)
        bring(i, (int)i);
    take_away();
    assert_int_equal(s->tcp.rx.kept, 2 * PART);
    assert_int_equal(s->tcp.ooo.kept, (PARTS - 4) * PART);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), 2 * PART);
    bring(2, 2);
    bring(3, -1);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), (PARTS - 2) * PART);
    assert_int_equal(s->tcp.rx.kept, 0);
}

/* A record was read in part when its buffer is taken away: the rest is given back, and the record of another buffer can
 * still be. */
static void unread(void **state)
{
    static uint8_t other[PART];

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        bring(i, (int)i);
    assert_int_equal(hear(RDDP_STREAM_PLACED), 3 * PART);
    assert_int_equal(rddp_stream_expect(s, RID + 1, other, sizeof(other)), 0);
    assert_int_equal(rddp_stream_forget(s, RID + 1), 0);
    assert_int_equal(rddp_stream_unread(s, 3 * PART + 1), -EINVAL);
    assert_int_equal(rddp_stream_unread(s, 2 * PART + 1), 0);
    assert_int_equal(rddp_stream_unread(s, 1), -EINVAL);
    take_away();
    assert_int_equal(hear(RDDP_STREAM_PLAIN), 2 * PART + 1);
    assert_int_equal(rddp_stream_unread(s, 7), 0);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), 7);
    assert_int_equal(s->tcp.rx.kept, 0);
}

/* The record may point to what is gone: it can no longer be given back. */
static void unread_too_late(void **state)
{
    (void)state;
    bring(0, 0);
    assert_int_equal(hear(RDDP_STREAM_PLACED), PART);
    take_away();
    assert_int_equal(rddp_stream_unread(s, 1), -EINVAL);
}

/* The part of a message that was read before its turn is not read again when its buffer goes. */
static void forget_after_early(void **state)
{
    struct tcpopt mark = {.length = TCPOPT_MARK, .aligned = true}, data = marked_option(RID, 0, PART);
    struct rddp_stream_record r;
    uint8_t plain[PART];
    uint64_t rest;

    (void)state;
    data.aligned = true;
    marked_segment(s, PART, octets + PART, PART, &data);
    marked_segment(s, (uint64_t)2 * PART, octets + 2 * PART, PART, &mark);
    assert_int_equal(rddp_stream_read_early(s, plain, sizeof(plain), &r, &rest), 1);
    assert_int_equal(r.kind, RDDP_STREAM_PLACED);
    assert_memory_equal(r.at, octets + PART, PART);
    take_away();
    bring(0, -1);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), PART);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), PART);
    assert_int_equal(s->read_to, 3 * PART);
    assert_int_equal(s->tcp.rx.kept, 0);
}

/* Two parts of the stream want one place, or a part of it: who came first keeps it, in whatever order both are read. */
static void one_place(void **state)
{
    struct tcpopt across = marked_option(RID, PART / 2, PART);

    (void)state;
    bring(1, 0);
    bring(0, 0);
    assert_int_equal(twice(), 1);
    marked_segment(s, (uint64_t)2 * PART, octets + 2 * PART, PART, &across);
    assert_int_equal(twice(), 2);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), PART);
    assert_int_equal(hear(RDDP_STREAM_PLACED), PART);
    bring(3, 0); /* what was read keeps its place, too */
    assert_int_equal(twice(), 3);
    assert_memory_equal(buffer, octets + PART, PART);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), 2 * PART);
}

/* What the reader writes to the buffer himself stays, whatever comes. */
static void filled(void **state)
{
    (void)state;
    bring(0, 0);
    assert_int_equal(rddp_stream_fill(s, RID, PART - 1, 2), -EEXIST);
    assert_int_equal(rddp_stream_fill(s, RID, LENGTH - 1, 2), -EINVAL);
    assert_int_equal(rddp_stream_fill(s, RID, 0, 0), -EINVAL);
    assert_int_equal(rddp_stream_fill(s, RID + 1, 0, 1), -ENOENT);
    assert_int_equal(rddp_stream_fill(s, RID, PART, PART), 0);
    memset(buffer + PART, 'w', PART);
    bring(1, 1);
    bring(2, 2);
    assert_int_equal(hear(RDDP_STREAM_PLACED), PART);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), PART);
    assert_int_equal(hear(RDDP_STREAM_PLACED), PART);
    for (size_t i = PART; i < 2 * PART; i++)
        assert_int_equal(buffer[i], 'w');
    assert_int_equal(twice(), 1);
}

/* A place that the next packet is read to, because its data may belong there, is one where nothing was written: not
 * behind small segments that have lost their option, which the reader has put there himself. */
static void guessed_where_free(void **state)
{
    struct rddp_stream_net *net = s->net;
    struct iovec piece[3];

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        bring(i, (int)i);
    assert_in_range(stream_guess(net, piece), 2, 3);
    assert_ptr_equal(piece[1].iov_base, buffer + 3 * PART);
    net->guess.length = 0;
    bring(3, -1);
    hear(RDDP_STREAM_PLACED);
    hear(RDDP_STREAM_PLAIN);
    assert_int_equal(rddp_stream_fill(s, RID, 3 * PART, PART), 0);
    assert_int_equal(stream_guess(net, piece), 1);
    bring(4, 5);
    assert_int_equal(rddp_stream_fill(s, RID, 7 * PART, PART), 0);
    assert_in_range(stream_guess(net, piece), 2, 3);
    assert_ptr_equal(piece[1].iov_base, buffer + 6 * PART);
    assert_true(piece[1].iov_len <= PART);
}

/* A buffer grows: what was placed in it stays where it is. */
static void extended(void **state)
{
    (void)state;
    assert_int_equal(rddp_stream_forget(s, RID), 0);
    assert_int_equal(rddp_stream_expect(s, RID, buffer, PART), 0);
    bring(0, 0);
    bring(1, 1);
    assert_int_equal(rddp_stream_expect(s, RID, buffer, PART), -EEXIST);
    assert_int_equal(rddp_stream_expect(s, RID, buffer + 1, LENGTH), -EEXIST);
    assert_int_equal(rddp_stream_expect(s, RID, buffer, LENGTH), 0);
    bring(2, 0);
    bring(3, 3);
    assert_int_equal(twice(), 1);
    assert_int_equal(hear(RDDP_STREAM_PLACED), PART);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), 2 * PART);
    assert_int_equal(hear(RDDP_STREAM_PLACED), PART);
}

/* The ranges of a buffer that are taken are as many as there is room for; the rest is read as plain octets. */
static void many_ranges(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LENGTH / 2; i++)
        assert_int_equal(rddp_stream_fill(s, RID, 2 * (uint64_t)i, 1), 0);
    assert_int_equal(s->fills.count, LENGTH / 2);
    for (uint32_t i = 0; i < LENGTH / 2; i++)
        assert_int_equal(rddp_stream_fill(s, RID, 2 * (uint64_t)i + 1, 1), 0);
    assert_int_equal(s->fills.count, 1);
    assert_int_equal(rddp_stream_fill(s, RID, LENGTH - 1, 1), -EEXIST);
    for (uint64_t i = 0; i < STREAM_FILLS - 1; i++)
        stream_fill_add(&s->fills, RID + 1, 2 * i, 2 * i + 1);
    assert_int_equal(rddp_stream_forget(s, RID), 0);
    assert_int_equal(rddp_stream_expect(s, RID, buffer, LENGTH), 0);
    assert_int_equal(rddp_stream_fill(s, RID, 0, 1), 0);
    assert_int_equal(rddp_stream_fill(s, RID, 2, 1), -ENOSPC);
    bring(0, 1);
    assert_int_equal(hear(RDDP_STREAM_PLAIN), PART);
}

/* The ring moves to a larger one: what was read can go back, what waits is there, behind a gap, too; and no further
 * than the net has memory for. */
static void ring_grows(void **state)
{
    struct rddp_stream_record record;
    uint8_t got[LENGTH];
    uint64_t before = s->ring_octets;

    (void)state;
    for (uint32_t i = 0; i < PARTS; i++)
        if (i != 5)
            marked_segment(s, (uint64_t)i * PART, octets + (size_t)i * PART, PART, NULL);
    assert_int_equal(rddp_stream_read(s, got, 2 * PART, &record), 1);
    s->tcp.attr.window = 4 * MARKED_WINDOW;
    s->net->grown = STREAM_GROWN_MAX - 3 * before + 1;
    stream_ring_grow(s);
    assert_true(s->ring_octets == before);
    s->net->grown--;
    stream_ring_grow(s);
    assert_true(s->ring_octets == 4 * before && s->net->grown == STREAM_GROWN_MAX);
    assert_int_equal(rddp_stream_unread(s, PART), 0);
    marked_segment(s, 5 * PART, octets + 5 * PART, PART, NULL);
    assert_int_equal(rddp_stream_read(s, got + PART, LENGTH, &record), 1);
    assert_int_equal(record.length, LENGTH - PART);
    assert_memory_equal(got, octets, LENGTH);
    stream_ring_grow(s); /* it is large enough */
    assert_true(s->ring_octets == 4 * before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ring_grows, marked_set_up, marked_tear_down),
        cmocka_unit_test_setup_teardown(forget_copies, marked_set_up, marked_tear_down),
        cmocka_unit_test_setup_teardown(unread, marked_set_up, marked_tear_down),
        cmocka_unit_test_setup_teardown(unread_too_late, marked_set_up, marked_tear_down),
        cmocka_unit_test_setup_teardown(forget_after_early, marked_set_up, marked_tear_down),
        cmocka_unit_test_setup_teardown(one_place, marked_set_up, marked_tear_down),
        cmocka_unit_test_setup_teardown(filled, marked_set_up, marked_tear_down),
        cmocka_unit_test_setup_teardown(guessed_where_free, marked_set_up, marked_tear_down),
        cmocka_unit_test_setup_teardown(extended, marked_set_up, marked_tear_down),
        cmocka_unit_test_setup_teardown(many_ranges, marked_set_up, marked_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
