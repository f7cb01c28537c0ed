/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_early.c - messages that have arrived whole behind a gap are read before their turn, as the A bit of the option
 * permits: each octet is read once, and is the one that was sent. TCPOPT-0-05 TCPOPT-3.1.6-01 TCPOPT-3.1.6-03 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/rng.h"
#include "tests/suite/lib/network.h"
#include "tests/suite/lib/stream_path.h"

enum {
    HEAD = 64,
    DATA = 5000,
    PART = HEAD + DATA,
    MESSAGES = 400, /* every third is of plain octets alone */
    ALL = MESSAGES * PART,
    ROUNDS = 60000
};

static uint8_t source[ALL], target[MESSAGES][DATA], seen[ALL];

static void write_all(struct stream_path *p)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct rddp_stream_mark mark = {.rid = i, .total = DATA, .has_total = true};
        const uint8_t *from = source + (size_t)i * PART;

        assert_int_equal(rddp_stream_expect(p->end[1], i, target[i], DATA), 0);
        assert_int_equal(rddp_stream_write(p->end[0], from, HEAD, RDDP_STREAM_MESSAGE | RDDP_STREAM_MORE, NULL), 0);
        assert_int_equal(rddp_stream_write(p->end[0], from + HEAD, DATA, RDDP_STREAM_MORE, i % 3 == 2 ? NULL : &mark),
                         0);
    }
    assert_int_equal(rddp_stream_finish(p->end[0]), 0);
}

/* This part of the stream was read for the first time, and its octets are those that were sent. */
static void check(const struct rddp_stream_record *r, const uint8_t *plain)
{
    assert_true(r->position + r->length <= ALL);
    assert_memory_equal(r->kind == RDDP_STREAM_PLACED ? r->at : plain, source + r->position, r->length);
    if (r->kind == RDDP_STREAM_PLACED)
        assert_true(r->rid == r->position / PART && r->buffer_offset == r->position % PART - HEAD);
    for (uint64_t i = r->position; i < r->position + r->length; i++)
        assert_int_equal(seen[i]++, 0);
}

/* Reads a message that is before its turn, if there is one: it begins and ends where messages do. */
static bool read_message(struct rddp_stream *s, uint64_t in_order)
{
    uint8_t plain[700];
    struct rddp_stream_record r;
    uint64_t begin = 0, at = 0, rest = 1;
    int got;

    got = rddp_stream_read_early(s, plain, 0, &r, &rest); /* messages begin with plain octets */
    assert_true(got == 0 || got == -EINVAL);
    while (got && rest) {
        got = rddp_stream_read_early(s, plain, sizeof(plain), &r, &rest);
        assert_int_equal(got, 1);
        check(&r, plain);
        if (!at)
            begin = r.position;
        assert_true(r.position > in_order && (!at || at == r.position));
        at = r.position + r.length;
    }
    assert_true(begin % PART == 0 && at % PART == 0);
    return at > 0;
}

static void run(uint32_t lose, struct rddp_stream_counters *count, uint32_t *messages)
{
    uint8_t plain[900];
    struct rddp_stream_record r = {0};
    struct stream_path p;
    uint64_t in_order = 0;

    memset(seen, 0, sizeof(seen));
    memset(target, 0, sizeof(target));
    *messages = 0;
    stream_path_open(&p, &(struct stream_path_attr){.lose = lose});
    write_all(&p);
    for (int i = 0; i < ROUNDS && r.kind != RDDP_STREAM_FINISH; i++) {
        stream_path_turn(&p);
        while (read_message(p.end[1], in_order))
            ++*messages;
        while (r.kind != RDDP_STREAM_FINISH && rddp_stream_read(p.end[1], plain, sizeof(plain), &r) > 0) {
            if (r.kind != RDDP_STREAM_FINISH)
                check(&r, plain);
            assert_true(r.position >= in_order);
            in_order = r.position + r.length;
        }
    }
    assert_int_equal(r.kind, RDDP_STREAM_FINISH);
    for (size_t i = 0; i < ALL; i++)
        assert_int_equal(seen[i], 1);
    rddp_stream_count(p.end[1], count);
    assert_true(count->octets_read_early >= (uint64_t)*messages * PART);
    stream_path_close(&p);
}

static void behind_a_gap(void **state)
{
    struct rddp_stream_counters count;
    uint32_t messages;

    (void)state;
    run(3000, &count, &messages);
    assert_true(messages > 0);
    print_message("%u times before their turn, %llu of %d octets\n", messages,
                  (unsigned long long)count.octets_read_early, ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behind_a_gap),
    };
    struct rng r = {5};

    if (!network_own()) {
        print_message("cannot run here: no network namespace, or no TUN device\n");
        return 77;
    }
    rng_fill(&r, source, ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
