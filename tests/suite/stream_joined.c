/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_joined.c - segments of a stream leave in packets that the device cuts again, unless they have marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/rng.h"
#include "tests/suite/lib/network.h"
#include "tests/suite/lib/stream_path.h"

enum { ALL = 4000000, PIECE = 250000, ROUNDS = 60000, SEGMENT = 1500, RID = 7 };

static uint8_t source[ALL], target[ALL];

/* Octets per packet of the device that has given the most to the kernel. */
static uint64_t octets_of_packets(void)
{
    FILE *file = fopen("/proc/thread-self/net/dev", "r");
    unsigned long long octets, packets, most = 0;
    uint64_t each = 0;
    char line[512];

    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, " %*[^:]: %llu %llu", &octets, &packets) != 2 || !packets || octets < most)
            continue;
        most = octets;
        each = octets / packets;
    }
    fclose(file);
    assert_true(most >= ALL);
    return each;
}

static void write_pieces(struct stream_path *p, bool marked)
{
    struct rddp_stream_mark mark = {.rid = RID};

    for (uint32_t at = 0; at < ALL; at += PIECE, mark.buffer_offset += PIECE)
        assert_int_equal(rddp_stream_write(p->end[0], source + at, PIECE, 0, marked ? &mark : NULL), 0);
    assert_int_equal(rddp_stream_finish(p->end[0]), 0);
}

/* Returns the octets that were placed; the others are put behind each other. */
static uint64_t read_all(struct stream_path *p)
{
    struct rddp_stream_record r = {0};
    uint64_t at = 0, placed = 0;

    for (int i = 0; i < ROUNDS && r.kind != RDDP_STREAM_FINISH; i++) {
        stream_path_turn(p);
        while (r.kind != RDDP_STREAM_FINISH && rddp_stream_read(p->end[1], target + at, ALL - at + 1, &r)) {
            placed += r.kind == RDDP_STREAM_PLACED ? r.length : 0;
            at += r.length;
            assert_true(at <= ALL);
        }
    }
    assert_int_equal(r.kind, RDDP_STREAM_FINISH);
    assert_true(at == ALL);
    return placed;
}

/* Every octet arrives, in segments of the path. */
static void transfer(bool v6, bool marked, uint64_t least, uint64_t most)
{
    struct rddp_stream_counters in;
    struct stream_path p;

    memset(target, 0, sizeof(target));
    stream_path_open(&p, &(struct stream_path_attr){.v6 = v6, .no_option = !marked});
    if (marked)
        assert_int_equal(rddp_stream_expect(p.end[1], RID, target, ALL), 0);
    write_pieces(&p, marked);
    assert_true(read_all(&p) == (marked ? ALL : 0));
    assert_memory_equal(target, source, ALL);
    assert_in_range(octets_of_packets(), least, most);
    rddp_stream_count(p.end[1], &in);
    assert_true(in.segments_in >= ALL / SEGMENT);
    stream_path_close(&p);
}

static void joined(void **state)
{
    (void)state;
    transfer(false, false, 2 * SEGMENT, UINT16_MAX);
    transfer(true, false, 2 * SEGMENT, UINT16_MAX);
}

static void marked_alone(void **state)
{
    (void)state;
    transfer(false, true, SEGMENT / 2, SEGMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined),
        cmocka_unit_test(marked_alone),
    };
    struct rng r = {5};

    if (!network_own()) {
        print_message("cannot run here: no network namespace, no forwarding, or no TUN device\n");
        return 77;
    }
    rng_fill(&r, source, ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
