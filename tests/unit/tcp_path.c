/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_path.c - a path that is narrower than both ends think and does not say so, and one that becomes wide again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/tcpnet.h"
#include "tests/lib/tcpscript.h"

enum { MTU = 1500, SECOND_US = 1000000 };

static struct tcpnet *begin(uint32_t octets, uint64_t rate, uint32_t path, bool tells, bool v6)
{
    struct tcpnet *n = calloc(1, sizeof(*n));
    struct utcp_attr attr;

    assert_non_null(n);
    tcpnet_init(n, 1);
    utcp_attr_default(&attr);
    attr.mtu = MTU;
    attr.window = 65535; /* the path must not hold more than seconds */
    n->end[0].to_send = octets;
    n->end[0].path = (struct tcpnet_path){.delay_us = 10000, .rate = rate, .mtu = path, .tells = tells};
    n->end[1].path.delay_us = 10000;
    tcpnet_connect(n, &attr, &attr, v6);
    return n;
}

static void end(struct tcpnet *n)
{
    tcpnet_fini(n);
    free(n);
}

static bool all_arrived(const struct tcpnet *n)
{
    return n->end[1].open && utcp_received(&n->end[1].tcp) == n->end[0].to_send;
}

/* The sender finds out by itself, and how wide the path is (RFC 8899 4.4 and 5.3). */
static void black_hole(void **state)
{
    static const uint32_t widths[] = {1400, 1280, 700, 700}, units[] = {0, 0, 0, 1000};

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct tcpnet *n = begin(1000000, 0, widths[i], false, widths[i] == 1280);

        n->end[0].unit = units[i];
        tcpnet_run(n, n->now_us + 60 * SECOND_US, all_arrived);
        assert_true(all_arrived(n));
        assert_true(n->end[0].tcp.attr.mtu <= widths[i] && n->end[0].tcp.attr.mtu + 40 >= widths[i]);
        assert_true(n->end[0].tcp.count.black_holes);
        end(n);
    }
}

static bool is_narrow(const struct tcpnet *n)
{
    return n->end[0].tcp.attr.mtu == 1300 && n->end[0].tcp.state >= UTCP_ESTABLISHED;
}

static bool is_wide(const struct tcpnet *n)
{
    return n->end[0].tcp.attr.mtu == MTU;
}

/* Ten minutes after a router said that it is narrow a probe shows that it is no more (RFC 1191 6.3). */
static void wide_again(void **state)
{
    struct tcpnet *n = begin(20000000, 20000, 1300, true, false);
    uint64_t start_us;

    (void)state;
    tcpnet_run(n, n->now_us + 10 * SECOND_US, is_narrow);
    assert_true(is_narrow(n));
    start_us = n->now_us;
    n->end[0].path.mtu = 0;
    tcpnet_run(n, start_us + 590ULL * SECOND_US, is_wide);
    assert_true(is_narrow(n));
    tcpnet_run(n, start_us + 620ULL * SECOND_US, is_wide);
    assert_true(is_wide(n));
    end(n);
}

/* While it stays narrow the lost probe costs neither a time-out nor the window, and nothing is lost with it. */
static void probe_in_vain(void **state)
{
    struct tcpnet *n = begin(20000000, 20000, 1300, true, false);
    uint64_t timeouts, reductions;

    (void)state;
    tcpnet_run(n, n->now_us + 500ULL * SECOND_US, NULL);
    assert_true(is_narrow(n));
    n->end[0].path.tells = false;
    timeouts = n->end[0].tcp.count.timeouts;
    reductions = n->end[0].tcp.cubic.w_max;
    tcpnet_run(n, n->now_us + 300ULL * SECOND_US, NULL);
    assert_true(is_narrow(n));
    assert_int_equal(n->end[0].tcp.count.timeouts, timeouts);
    assert_int_equal(n->end[0].tcp.cubic.w_max, reductions);
    assert_true(n->end[0].tcp.path.next_us > n->now_us);
    tcpnet_run(n, n->now_us + 600ULL * SECOND_US, all_arrived);
    assert_true(all_arrived(n));
    end(n);
}

/* A time-out between two ends that hear nothing from each other says nothing about the path's width. Segments that end
 * early, with a message, do not show it either. */
static void silence(void **state)
{
    static const uint32_t units[] = {0, 1300, 1600, 3000};

    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        struct tcpnet *n = begin(20000000, 100000, 0, false, false);
        uint64_t start_us;

        n->end[0].unit = units[i / 2];
        n->end[0].option = i % 2 ? UTCP_OPTION_SPACE : 0;
        tcpnet_run(n, n->now_us + 2 * SECOND_US, NULL);
        n->end[0].path.lose = n->end[1].path.lose = 100000;
        tcpnet_run(n, n->now_us + 30ULL * SECOND_US, NULL);
        assert_int_equal(n->end[0].tcp.attr.mtu, UTCP_MTU_V4_MIN);
        n->end[0].path.lose = n->end[1].path.lose = 0;
        start_us = n->now_us;
        tcpnet_run(n, start_us + 30ULL * SECOND_US, is_wide);
        assert_int_equal(is_wide(n), units[i / 2] != 1300); /* no segment is that long */
        end(n);
    }
}

static bool is_near_1400(const struct tcpnet *n)
{
    return n->end[0].tcp.attr.mtu <= 1400 && n->end[0].tcp.attr.mtu + 64 >= 1400 && !n->end[0].tcp.path.bad;
}

/* The search ends, whatever options the segments have, and ten minutes later the whole length is tried again. */
static void search_ends(void **state)
{
    (void)state;
    for (uint32_t option = 0; option <= UTCP_OPTION_SPACE; option += 4) {
        struct tcpnet *n = begin(50000000, 50000, 1400, false, false);

        n->end[0].option = option;
        tcpnet_run(n, n->now_us + 60ULL * SECOND_US, is_near_1400);
        assert_true(is_near_1400(n));
        n->end[0].path.mtu = 0;
        tcpnet_run(n, n->now_us + 590ULL * SECOND_US, is_wide);
        assert_false(is_wide(n));
        tcpnet_run(n, n->now_us + 30ULL * SECOND_US, is_wide);
        assert_true(is_wide(n));
        end(n);
    }
}

static bool is_1280(const struct tcpnet *n)
{
    return n->end[0].tcp.attr.mtu == 1280;
}

/* Segments that are only a little too long are suspect, too, whatever option they carry. */
static void slightly_narrower(void **state)
{
    (void)state;
    for (uint32_t option = 0; option <= UTCP_OPTION_SPACE; option += 4) {
        struct tcpnet *n = begin(100000, 0, 1291, true, false);

        n->end[0].option = option;
        tcpnet_run(n, n->now_us + SECOND_US / 25, NULL);
        n->end[0].path.mtu = 1280;
        n->end[0].path.tells = false;
        tcpnet_run(n, n->now_us + 60ULL * SECOND_US, is_1280);
        assert_true(is_1280(n));
        tcpnet_run(n, n->now_us + 60ULL * SECOND_US, all_arrived);
        assert_true(all_arrived(n));
        end(n);
    }
}

#define NARROWED \
    "passive\nsend 988\n> PA 1 988 1\ntoobig 1 600\n> A 1 548 1\n> PA 549 440 1\n< A 1 0 989 65535\nwait 601000\n"

/* The time-out of what was sent before the probe ends the probe, too, and its own timer with it. */
static void probe_beside_time_out(void **state)
{
    (void)state;
    tcpscript_play("probe_beside_time_out",
                   NARROWED "send 1088\n> PA 989 100 1\nwait 100\nsend 2300\n> A 1089 988 1\nnone\nwait 900\n"
                            "> A 989 100 1\n< A 1 0 1089 65535\n> A 1089 548 1\n< A 1 0 1637 65535\n"
                            "> A 1637 548 1\n> PA 2185 116 1\n< A 1 0 2301 65535\nnone\nwait 1000\nnone\n"
                            "state established\n");
}

/* The device's MTU changes while a probe is in flight: its acknowledgement neither lowers nor exceeds that. */
static void probe_beside_change(void **state)
{
    (void)state;
    tcpscript_play(
        "wider",
        "active\n> S 0 0 -\n< SA 0 0 1 65535 mss=8000 sack\n> A 1 0 1\nsend 1448\n> PA 1 1448 1\n"
        "toobig 1 600\n> A 1 548 1\n> A 549 548 1\n> PA 1097 352 1\n< A 1 0 1449 65535\nwait 601000\n"
        "send 6000\n> A 1449 1448 1\nnone\nmtu 3000\nnone\n< A 1 0 2897 65535\n> A 2897 2948 1\n> PA 5845 156 1\n");
    tcpscript_play("narrower than the probe", NARROWED "send 3952\n> A 989 988 1\nnone\nmtu 700\nnone\n"
                                                       "< A 1 0 1977 65535\n> A 1977 648 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(black_hole),
        cmocka_unit_test(wide_again),
        cmocka_unit_test(probe_in_vain),
        cmocka_unit_test(silence),
        cmocka_unit_test(search_ends),
        cmocka_unit_test(slightly_narrower),
        cmocka_unit_test(probe_beside_time_out),
        cmocka_unit_test(probe_beside_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
