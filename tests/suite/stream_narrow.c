/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_narrow.c - the path of a stream becomes narrower in the middle of transfers, and the kernel that forwards its
 * packets says so by ICMP, for IPv4 and IPv6: segments are cut again, and their options are computed again.
 * TCPOPT-0-01 TCPOPT-3.1.8-01 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/rng.h"
#include "tests/suite/lib/network.h"
#include "tests/suite/lib/stream_path.h"

enum { HEAD = 64, TRANSFERS = 60, LENGTH = 200001, ROUNDS = 60000, WIDE = 9000 };

static uint8_t source[LENGTH], head[HEAD], target[TRANSFERS][LENGTH];

static void write_all(struct stream_path *p)
{
    memset(target, 0, sizeof(target));
    for (uint32_t i = 0; i < TRANSFERS; i++) {
        struct rddp_stream_mark mark = {.rid = i, .total = LENGTH, .has_total = true};

        assert_int_equal(rddp_stream_expect(p->end[1], i, target[i], LENGTH), 0);
        assert_int_equal(rddp_stream_write(p->end[0], head, HEAD, RDDP_STREAM_MESSAGE, NULL), 0);
        assert_int_equal(rddp_stream_write(p->end[0], source, LENGTH, 0, &mark), 0);
    }
    assert_int_equal(rddp_stream_finish(p->end[0]), 0);
}

/* Reads what there is: heads are plain, and nothing else. */
static uint64_t read_some(struct stream_path *p, bool *over)
{
    static uint8_t plain[1 << 16];
    struct rddp_stream_record r;
    uint64_t octets = 0;

    while (!*over && rddp_stream_read(p->end[1], plain, sizeof(plain), &r) > 0) {
        if (r.kind == RDDP_STREAM_PLAIN)
            assert_memory_equal(plain, head + r.position % (HEAD + LENGTH), r.length);
        octets += r.length;
        *over = r.kind == RDDP_STREAM_FINISH;
    }
    return octets;
}

/* Halfway the path takes 4000 octets, and near the end as few as a path may. */
static void narrower(bool v6)
{
    const uint64_t all = (uint64_t)TRANSFERS * (HEAD + LENGTH);
    const uint32_t mtus[] = {4000, v6 ? 1280 : 600};
    struct rddp_stream_counters in, out;
    struct stream_path p;
    uint64_t octets = 0;
    uint32_t step = 0;
    bool over = false;

    stream_path_open(&p, &(struct stream_path_attr){.v6 = v6, .mtu = WIDE});
    write_all(&p);
    for (int i = 0; i < ROUNDS && !over; i++) {
        stream_path_turn(&p);
        octets += read_some(&p, &over);
        if (step < 2 && octets > all / 3 * (step + 1))
            assert_true(network_narrow(v6, 2, mtus[step++]));
    }
    assert_true(over && octets == all && step == 2);
    for (uint32_t i = 0; i < TRANSFERS; i++)
        assert_memory_equal(target[i], source, LENGTH);
    rddp_stream_count(p.end[0], &out);
    rddp_stream_count(p.end[1], &in);
    assert_true(in.octets_placed == (uint64_t)TRANSFERS * LENGTH);
    assert_true(!in.options_bad && !in.options_unknown && !in.options_outside && !in.options_total);
    /* The last third was cut to the narrowest path, in which an option and headers have their room. */
    assert_true(in.segments_in > all / 3 / mtus[1]);
    assert_true(out.segments_out >= in.segments_in);
    stream_path_close(&p);
}

static void narrower_v4(void **state)
{
    (void)state;
    narrower(false);
}

static void narrower_v6(void **state)
{
    (void)state;
    narrower(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrower_v4),
        cmocka_unit_test(narrower_v6),
    };
    struct rng r = {5};

    if (!network_own()) {
        print_message("cannot run here: no network namespace, or no TUN device\n");
        return 77;
    }
    rng_fill(&r, source, LENGTH);
    rng_fill(&r, head, HEAD);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
