/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_checks.c - what a segment must pass before anything of it is kept: forged, old and impossible segments leave
 * nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/lib/tcpscript.h"

#define SCRIPT(name, text) \
    static void name(void **state) \
    { \
        (void)state; \
        tcpscript_play(#name, text); \
    }

/* A segment whose acknowledgement is refused (RFC 5961 5.2) leaves neither its timestamp, which would make the peer's
 * own segments look old, nor new time for the keep-alive. */
SCRIPT(wrong_ack_and_stamp, "passive keep=0\n< A 1 100 900000000 65535 stamp=2000001000\n> A 1 0 1 echo=1000\n"
                            "< A 1 100 1 65535 stamp=1001\nreceived 100\nwait 5\n> A 1 0 101 echo=1001\n")
SCRIPT(wrong_ack_and_keep_alive, "passive keep=1000\nwait 999\n< A 1 0 900000000 65535\n> A 1 0 1\nwait 1\n> A 0 0 1\n")
SCRIPT(wrong_ack_and_fin, "passive\n< FA 1 0 900000000 65535\n> A 1 0 1\nstate established\n")
/* The same for octets that came before: no forger can make us report them as received twice. */
SCRIPT(wrong_ack_and_old_octets, "passive keep=0\n< A 1 1000 1 65535\nwait 5\n> A 1 0 1001\n"
                                 "< A 1 1000 900000000 65535\n> A 1 0 1001\n< A 1 1000 1 65535\n"
                                 "> A 1 0 1001 block=1-1001\n")
SCRIPT(wrong_ack_in_time_wait, "passive\nfinish\n> FA 1 0 1\n< FA 1 0 2 65535\n> A 2 0 2\nstate time-wait\nwait 59000\n"
                               "< FA 1 0 900000000 65535\n> A 2 0 2\nwait 1001\nstate closed\n")
SCRIPT(wrong_ack_of_both_at_once, "active\n> S 0 0 -\n< S 0 0 0 1000 mss=1460 sack\n> SA 0 0 1\n"
                                  "< A 1 10 77 1000\n> R 77 0 -\nstate syn-received\nreceived 0\n"
                                  "< SA 0 0 78 1000\n> R 78 0 -\nstate syn-received\n")

/* A SYN gets a challenge ACK wherever it lies (RFC 5961 4.2), also from a peer that began again without timestamps. */
SCRIPT(syn_of_a_new_peer, "passive\n< S 5000000 0 0 65535 nostamp\n> A 1 0 1\n< S 1 10 0 1000 nostamp\n> A 1 0 1\n"
                          "< S 0 10 0 1000 stamp=5\n> A 1 0 1\nreceived 0\nstate established\n")

/* After 24 days timestamps may have wrapped (RFC 7323 5.5). */
SCRIPT(stamps_expire, "passive\n< A 1 10 1 65535\nwait 5\n> A 1 0 11\nwait 2073599000\n"
                      "< A 11 10 1 65535 stamp=900\n> A 1 0 11\nwait 2000\n"
                      "< A 11 10 1 65535 stamp=900\nwait 5\n> A 1 0 21 echo=900\n")
/* The stamp of the first of several segments is echoed: the peer measures the delay of the acknowledgement, too (RFC
 * 7323 4.3). */
SCRIPT(echoes_the_first, "passive\n< A 1 10 1 65535 stamp=2000\n< A 11 10 1 65535 stamp=2001\n> A 1 0 21 echo=2000\n")

/* An old segment does not change the window (RFC 9293 3.10.7.4). */
SCRIPT(window_of_an_old_segment,
       "passive keep=0\nsend 4000\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> A 2965 988 1\n> PA 3953 48 1\n"
       "< A 11 10 989 5000\n> A 4001 0 1 block=11-21\n< A 1 10 989 0\n> A 4001 0 21\nsend 4500\n> PA 4001 500 21\n")

/* Blocks of octets that were not sent are ignored, and a block that ends within a segment does not cover it. */
SCRIPT(sack_of_unsent,
       "passive\nsend 5000\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> A 2965 988 1\n> A 3953 988 1\n"
       "> PA 4941 60 1\nwait 10\n< A 1 0 1 65535 block=989-5002\nnone\n< A 1 0 1 65535 block=989-5001\n> A 1 988 1\n")
SCRIPT(sack_of_a_part,
       "passive\nsend 5000\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> A 2965 988 1\n> A 3953 988 1\n"
       "> PA 4941 60 1\nwait 10\n< A 1 0 1 65535 block=989-3000\nnone\n< A 1 0 1 65535 block=989-3953\n> A 1 988 1\n")
/* A peer may drop what it has only selectively acknowledged (RFC 2018 8): the time-out has it sent again. */
SCRIPT(sack_withdrawn,
       "passive\nsend 3952\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> PA 2965 988 1\nwait 10\n"
       "< A 1 0 1 65535 block=989-3953\n> A 1 988 1\nwait 10\n< A 1 0 989 65535\nnone\nwait 400\n> A 989 988 1\n"
       "wait 10\n< A 1 0 1977 65535\n> A 1977 988 1\n> PA 2965 988 1\n< A 1 0 3953 65535\nacked 3952\nnone\n")

/* A message about octets that are acknowledged, or that were never sent, is forged (RFC 5927 4.1). */
SCRIPT(message_about_old_octets, "passive\nsend 1976\n> A 1 988 1\n> PA 989 988 1\n< A 1 0 989 65535\ntoobig 988 600\n"
                                 "emss 968\nnone\ntoobig 1977 600\nemss 968\nnone\ntoobig 989 600\nemss 528\n")
/* Neither the path nor the peer makes segments absurdly small. */
SCRIPT(absurdly_small, "active\n> S 0 0 -\n< SA 0 0 1 1000 mss=1\n> A 1 0 1\nsend 104\n> A 1 52 1\n> PA 53 52 1\n"
                       "mtu 68\nemss 32\n")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_ack_and_stamp),      cmocka_unit_test(wrong_ack_and_keep_alive),
        cmocka_unit_test(wrong_ack_and_fin),        cmocka_unit_test(wrong_ack_and_old_octets),
        cmocka_unit_test(wrong_ack_in_time_wait),   cmocka_unit_test(wrong_ack_of_both_at_once),
        cmocka_unit_test(syn_of_a_new_peer),        cmocka_unit_test(stamps_expire),
        cmocka_unit_test(echoes_the_first),         cmocka_unit_test(window_of_an_old_segment),
        cmocka_unit_test(sack_of_unsent),           cmocka_unit_test(sack_of_a_part),
        cmocka_unit_test(message_about_old_octets), cmocka_unit_test(absurdly_small),
        cmocka_unit_test(sack_withdrawn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
