/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_ecn.c - congestion that routers mark (RFC 3168): who takes part, what is told to the peer, and what it changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/tcpnet.h"
#include "tests/lib/tcpscript.h"

#define SCRIPT(name, text) \
    static void name(void **state) \
    { \
        (void)state; \
        tcpscript_play(#name, text); \
    }

/* 6.1.1 */
SCRIPT(both_agree, "active ecn\n> SEC 0 0 -\n< SAE 0 0 1 1000 mss=1000\n> A 1 0 1\nsend 100\n> PA 1 100 1 ect\n")
SCRIPT(peer_does_not, "active ecn\n> SEC 0 0 -\n< SA 0 0 1 1000 mss=1000\n> A 1 0 1\nsend 100\n> PA 1 100 1\n")
SCRIPT(peer_reflects, "active ecn\n> SEC 0 0 -\n< SAEC 0 0 1 1000 mss=1000\n> A 1 0 1\nsend 100\n> PA 1 100 1\n")
/* 6.1.1.1: some paths drop SYNs that ask for it. */
SCRIPT(second_syn, "active ecn\n> SEC 0 0 -\nwait 1000\n> S 0 0 -\n< SAE 0 0 1 1000 mss=1000\n> A 1 0 1\nsend 100\n"
                   "> PA 1 100 1\n")
SCRIPT(not_asked, "active\n> S 0 0 -\n< SAE 0 0 1 1000 mss=1000\n> A 1 0 1\nsend 100\n> PA 1 100 1\n"
                  "< A 1 1000 101 1000 ce\n< A 1001 1000 101 1000 ce\n> A 101 0 2001\n")

/* 6.1.3: every acknowledgement tells of the mark until the peer says that it has slowed down; that may be marked, too.
 */
SCRIPT(tells_marks, "passive ecn\n< A 1 1000 1 65535\n< A 1001 1000 1 65535 ce\n> AE 1 0 2001\n"
                    "< A 2001 1000 1 65535\n< A 3001 1000 1 65535\n> AE 1 0 4001\nsend 100\n> PAE 1 100 4001 ect\n"
                    "< AC 4001 0 101 65535\nsend 200\n> PAE 101 100 4001 ect\n"
                    "< AC 4001 1000 201 65535\n< A 5001 1000 201 65535\n> A 201 0 6001\n"
                    "< AC 6001 1000 201 65535 ce\n< A 7001 1000 201 65535\n> AE 201 0 8001\n")
/* A forged segment tells of nothing. */
SCRIPT(forged_mark, "passive ecn\n< A 1 1000 900000 65535 ce\n> A 1 0 1\n< A 90000 1000 1 65535 ce\n> A 1 0 1\n")

/* 6.1.2 and 6.1.5: the window becomes smaller once a round trip, new octets say so once, and what is sent again is not
 * open to marks. */
SCRIPT(slows_down,
       "passive ecn\nsend 9880\n> A 1 988 1 ect\n> A 989 988 1 ect\n> A 1977 988 1 ect\n> A 2965 988 1 ect\n"
       "> A 3953 988 1 ect\n> A 4941 988 1 ect\n> A 5929 988 1 ect\n> A 6917 988 1 ect\n> A 7905 988 1 ect\n"
       "> PA 8893 988 1 ect\nwait 10\ncwnd 9880\n< AE 1 0 1977 65535\ncwnd 8299\nsend 20000\nnone\n"
       "< AE 1 0 3953 65535\ncwnd 8498\n> AC 9881 988 1 ect\n> A 10869 988 1 ect\nnone\n"
       "< A 1 0 3953 65535 block=4941-7905\n> A 3953 988 1\n")

/* Many marks in both directions: everything arrives, and as good as nothing is lost. */
static bool all_arrived(const struct tcpnet *n)
{
    return n->end[1].open && utcp_received(&n->end[1].tcp) == n->end[0].to_send;
}

static void marked_path(void **state)
{
    struct tcpnet *n = calloc(1, sizeof(*n));
    struct utcp_attr attr;

    (void)state;
    assert_non_null(n);
    tcpnet_init(n, 3);
    utcp_attr_default(&attr);
    n->end[0].to_send = 4000000;
    for (int i = 0; i < 2; i++)
        n->end[i].path = (struct tcpnet_path){.delay_us = 10000, .mark = 1000};
    tcpnet_connect(n, &attr, &attr, true);
    tcpnet_run(n, n->now_us + 100000000, all_arrived);
    assert_true(all_arrived(n));
    assert_true(n->end[0].tcp.marks.on && n->end[1].tcp.marks.on);
    assert_true(n->end[1].tcp.count.marks_in >= 10);
    assert_true(n->end[0].tcp.count.marks_answered >= 10);
    assert_true(n->end[0].tcp.count.marks_answered <= n->end[1].tcp.count.marks_in);
    assert_int_equal(n->end[0].tcp.count.sent_again, 0);
    tcpnet_fini(n);
    free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_agree),  cmocka_unit_test(peer_does_not), cmocka_unit_test(peer_reflects),
        cmocka_unit_test(second_syn),  cmocka_unit_test(not_asked),     cmocka_unit_test(tells_marks),
        cmocka_unit_test(forged_mark), cmocka_unit_test(slows_down),    cmocka_unit_test(marked_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
