/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_ecn.c - explicit congestion notification in an association of osctp (RFC 9260 appendix A): who takes part, the
 * echo of a mark, and the answer to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/lib/sctpscript.h"

#define SCRIPT(name, text) \
    static void name(void **state) \
    { \
        (void)state; \
        sctpscript_play(#name, text); \
    }

/* Both ends say that they take part, or neither does. What is sent again is not ECN-capable. */
SCRIPT(active_takes_part, "active ecn\n> init out=10 in=10 param=0x8000:\n< init-ack param=0x8000:\n> echo\nect 0\n"
                          "< cookie-ack\nsend 10\n> data 1 10\nect 1\nwait 300\n> data 1 10\nect 0\n")
SCRIPT(passive_takes_part, "passive ecn\n< init param=0x8000:\n> init-ack out=10 in=10 param=0x8000: cookie\n< echo\n"
                           "> cookie-ack\nsend 10\n> data 1 10\nect 1\n")
SCRIPT(peer_does_not, "active ecn\n> init *\n< init-ack\n> echo\n< cookie-ack\nsend 10\n> data 1 10\nect 0\nmarked\n"
                      "< data 1 10 i\n> sack 1\n")
SCRIPT(peer_does_not_ask,
       "passive ecn\n< init\n> init-ack out=10 in=10 cookie\n< echo\n> cookie-ack\nsend 10\n> data 1 10\nect 0\n")
SCRIPT(we_do_not, "active\n> init out=10 in=10\n< init-ack param=0x8000:\n> echo\n< cookie-ack\nsend 10\n> data 1 10\n"
                  "ect 0\n< chunk 12 fffffff1\nnone\n")

/* The TSN of a marked packet stands before each SACK until the peer has reacted to it. */
SCRIPT(echoes, "up ecn\nmarked\n< data 1 10, data 2 10\n> chunk 12 fffffff9, sack 2\n< data 3 10 i\n"
               "> chunk 12 fffffff9, sack 3\n< chunk 13 fffffff8\n< data 4 10 i\n> chunk 12 fffffff9, sack 4\n"
               "< chunk 13 fffffff9\n< data 5 10 i\n> sack 5\n")
SCRIPT(echoes_the_last, "up ecn\nmarked\n< data 1 10\n> chunk 12 fffffff9, sack 1\nmarked\n< data 2 10\n"
                        "> chunk 12 fffffffa, sack 2\n< chunk 13 fffffff9\n< data 3 10 i\n> chunk 12 fffffffa, sack 3\n"
                        "< chunk 13 fffffffa\n< data 4 10 i\n> sack 4\n")
/* A mark counts for its packet alone, and only if that has DATA and the right tag. */
SCRIPT(marks_of_others, "up ecn\nmarked\n< sack 0 1000\n< data 1 10 i\n> sack 1\nmarked\n< tag 1, data 2 10 i\nnone\n"
                        "< data 2 10 i\n> sack 2\n")

/* The window is halved once a round trip, and each ECNE is answered. */
#define GROWN \
    "up ecn packet=576\nsend 548 count=60\n< sack 2 1048576\n< sack 4 1048576\n< sack 6 1048576\n" \
    "< sack 8 1048576\n< sack 10 1048576\n< sack 12 1048576\n< sack 14 1048576\n< sack 16 1048576\ncwnd 6912\ndrop\n"
SCRIPT(reacts, GROWN "< chunk 12 00000001, sack 16 1048576\ncwnd 3456\n> chunk 13 00000001\n"
                     "< chunk 12 00000002, sack 16 1048576\ncwnd 3456\n> chunk 13 00000002\nmarks 1\nlost 0\n")
/* It is repeated until our CWR arrives: that is no new mark. */
SCRIPT(reacts_once, GROWN "< chunk 12 00000001\ncwnd 3456\n> chunk 13 00000001\n< sack 29 1048576\ndrop\n"
                          "< chunk 12 00000001\n> chunk 13 00000001\nmarks 1\n")
/* One SACK for a whole batch does not undo that: from half on the window grows by a packet a round trip. */
SCRIPT(grows_slowly, GROWN "batches\n< chunk 12 00000001, sack 16 1048576\ncwnd 3456\n> chunk 13 00000001\n"
                           "< sack 29 1048576\ncwnd 4608\n")
SCRIPT(reacts_to_no_lie, GROWN "< chunk 12 00000100\n< chunk 12 000000 length=7\nnone\ncwnd 6912\nmarks 0\n")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(active_takes_part), cmocka_unit_test(passive_takes_part), cmocka_unit_test(peer_does_not),
        cmocka_unit_test(peer_does_not_ask), cmocka_unit_test(we_do_not),          cmocka_unit_test(echoes),
        cmocka_unit_test(echoes_the_last),   cmocka_unit_test(marks_of_others),    cmocka_unit_test(reacts),
        cmocka_unit_test(reacts_once),       cmocka_unit_test(reacts_to_no_lie),   cmocka_unit_test(grows_slowly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
