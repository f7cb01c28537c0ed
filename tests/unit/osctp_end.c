/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_end.c - how an association of osctp ends: shutdowns of either end and of both, and aborts (RFC 9260 9). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/sctpscript.h"

#define SCRIPT(name, text) \
    static void name(void **state) \
    { \
        (void)state; \
        sctpscript_play(#name, text); \
    }

/* --- shutdown ------------------------------------------------------------------------------------------------ */

/* RFC 9260 9.2 */
SCRIPT(we_shut_down,
       "up\nshutdown\n> shutdown 0\nstate shutdown-sent\nnone\n< shutdown-ack\n> shutdown-complete\nend shut\n"
       "none\ndeadline -1\nsend 1 error=-32\n")
SCRIPT(peer_shuts_down,
       "up\n< shutdown 0\n> shutdown-ack\nstate shutdown-ack-sent\nsend 1 error=-32\n< shutdown-complete\n"
       "end shut\nnone\ndeadline -1\n")
SCRIPT(both_shut_down, "up\nshutdown\n> shutdown 0\n< shutdown 0\n> shutdown-ack\nstate shutdown-ack-sent\n"
                       "< shutdown-ack\n> shutdown-complete\nend shut\nnone\n")
/* The peer answered our SHUTDOWN-ACK first. */
SCRIPT(both_and_complete,
       "up\nshutdown\n> shutdown 0\n< shutdown 0\n> shutdown-ack\n< shutdown-complete\nend shut\nnone\n")
/* The SHUTDOWN, or its answer, is lost: twice the time-out each time, up to Association.Max.Retrans. */
SCRIPT(shutdown_is_lost,
       "up\nshutdown\n> shutdown 0\nwait 2100\n>@300 shutdown 0\n>@900 shutdown 0\n>@2100 shutdown 0\nnone\n"
       "< shutdown-ack\n> shutdown-complete\nend shut\n")
SCRIPT(shutdown_is_never_answered, "up\nshutdown\n> shutdown 0\nwait 1000000\n>10 *\nnone\nend lost\n")
SCRIPT(shutdown_ack_is_lost,
       "up\n< shutdown 0\n> shutdown-ack\nwait 900\n>@300 shutdown-ack\n>@900 shutdown-ack\nnone\n"
       "< shutdown 0\nstate shutdown-ack-sent\ndrop\n< shutdown-complete\nend shut\n")
SCRIPT(shutdown_ack_is_never_answered, "up\n< shutdown 0\n> shutdown-ack\nwait 1000000\n>10 *\nnone\nend lost\n")
/* The peer is over already: its host answers for it, with the T bit and the tag that we sent (RFC 9260 8.5.1 C). */
SCRIPT(complete_by_a_stranger,
       "up\n< shutdown 0\n> shutdown-ack\n< tag 0x55667788, shutdown-complete\nstate shutdown-ack-sent\n"
       "< shutdown-complete t\nstate shutdown-ack-sent\n"
       "< tag 0x55667788, shutdown-complete t\nend shut\n")
/* What waits is sent, acknowledged, and only then the end is told. Nothing more is taken from the user. */
SCRIPT(data_before_shutdown,
       "up\nsend 100\n> data 1 100\nshutdown\nstate shutdown-pending\nnone\nsend 1 error=-32\nwait 300\n"
       "> data 1 100\n< sack 1 1048576\n> shutdown 0\nstate shutdown-sent\n< shutdown-ack\n> shutdown-complete\n"
       "end shut\nlent 0\n")
SCRIPT(much_data_before_shutdown,
       "up\nsend 1456 count=6\n>4 data*\nshutdown\nnone\n< sack 2 1048576\n> data 5 1456\n> data 6 1456\n"
       "< sack 6 1048576\n> shutdown 0\nstate shutdown-sent\nlent 0\n")
SCRIPT(data_before_shutdown_ack,
       "up\nsend 1456 count=6\n>4 data*\n< shutdown 0\nstate shutdown-received\nnone\nsend 1 error=-32\n"
       "< sack 4 1048576\n> data 5 1456\n> data 6 1456\n< sack 6 1048576\n> shutdown-ack\nlent 0\n")
/* A SHUTDOWN acknowledges (RFC 9260 3.3.8), but not what was not sent. */
SCRIPT(shutdown_acknowledges, "up\nsend 100\n> data 1 100\n< shutdown 0\nflight 100\nnone\n"
                              "< shutdown 1\n> shutdown-ack\nflight 0\nlent 0\n")
SCRIPT(shutdown_lies, "up\nsend 100\n> data 1 100\n< shutdown 2\n> abort cause=13:*\nend lost\nnone\n")
/* Our SHUTDOWN acknowledges the peer's DATA. DATA that it sends before it knows is taken, and it is told again. */
SCRIPT(data_after_our_shutdown,
       "up\n< data 1 10 i\n> sack 1\nshutdown\n> shutdown 1\n< data 2 10\n> sack 2\n> shutdown 2\ntaken 2\n"
       "< shutdown-ack\n> shutdown-complete\nend shut\n")
/* Both: the peer still has what waits. */
SCRIPT(shutdown_pending_and_shutdown,
       "up\nsend 100\n> data 1 100\nshutdown\n< shutdown 0\nstate shutdown-received\nnone\n"
       "< sack 1 1048576\n> shutdown-ack\n< shutdown-complete\nend shut\n")
/* Chunks of an end that is not ours to reach yet. */
SCRIPT(ends_too_early,
       "up\n< shutdown-ack\n< shutdown-complete\nnone\nstate established\n< shutdown 0 length=7, cut 1\nnone\n"
       "state established\n")
SCRIPT(shutdown_before_up, "active\n> init *\nshutdown\nnone\nend left\n")
SCRIPT(shutdown_in_the_middle, "active\n> init *\n< init-ack\n> echo\nshutdown\n> abort *\nend left\n")
SCRIPT(shuts_down_twice, "up\nshutdown\n> shutdown 0\nshutdown\nnone\nstate shutdown-sent\n")
/* A SHUTDOWN-COMPLETE is alone in its packet: what follows it does nothing, least of all with a tag that is not ours.
 */
SCRIPT(complete_and_more, "up\n< tag 0x55667788, shutdown-complete t, data 1 10 i\nnone\ntaken 0\nstate established\n")

/* --- abort --------------------------------------------------------------------------------------------------- */

SCRIPT(aborts,
       "up\nsend 100\n> data 1 100\nabort bored\n> abort reason=bored\nend left\nnone\ndeadline -1\nabort again\nnone\n"
       "lent 1\nfree\nlent 0\n")
SCRIPT(aborts_without_a_reason, "up\nabort\n> abort reason=\nend left\n")
SCRIPT(aborts_before_init_ack, "active\n> init *\nabort x\nnone\nend left\n")
SCRIPT(is_aborted, "up\nsend 100\n> data 1 100\n< abort reason=enough\nend aborted\nreason enough\nnone\ndeadline -1\n"
                   "< data 1 10 i\nnone\ntaken 0\nwait 100000\nnone\n")
SCRIPT(is_aborted_without_a_reason, "up\n< abort\nend aborted\nreason\nnone\n")
SCRIPT(is_aborted_by_a_stranger,
       "up\n< tag 0x55667788, abort\nstate established\n< abort t\nstate established\n"
       "< tag 0, abort t\n< tag 1, abort\nstate established\n< tag 0x55667788, abort t\nend aborted\n")
/* DATA in front of an ABORT counts, behind it not. */
SCRIPT(data_and_abort, "up\n< data 1 10, abort reason=x, data 2 10\ntaken 1\nend aborted\nreason x\nnone\n")
SCRIPT(malformed_aborts, "up\n< abort cause=6:00 length=7\nend aborted\nreason\n")
SCRIPT(other_causes, "up\n< abort cause=13:aabbcc reason=because\nend aborted\nreason because\n")
/* The other end may have restarted, with a new tag: nothing of it reaches this association. */
SCRIPT(peer_restarts, "up\n< init itag=99\nstate established\n< tag 99, data 1 10 i\ntaken 0\nstate established\n")
SCRIPT(freed, "up\nsend 1456 count=10\nlent 10\nfree\nlent 0\n>4 data*\nnone\nend left\n< data 1 10 i\nnone\n")

static void long_reasons(void **state)
{
    static char script[3000], reason[600];

    (void)state;
    for (unsigned n = 255; n <= 257; n++) {
        memset(reason, 'r', n);
        reason[n] = 0;
        snprintf(script, sizeof(script), "up\nabort %s\n> abort reason=%.256s\nend left\n", reason, reason);
        sctpscript_play("long_reason_out", script);
        snprintf(script, sizeof(script), "up\n< abort reason=%s\nend aborted\nreason %.256s\n", reason, reason);
        sctpscript_play("long_reason_in", script);
    }
}

/* The peer sends for longer than our SHUTDOWN would be repeated: it is there. */
static void long_data_after_our_shutdown(void **state)
{
    char script[2000];
    size_t at = (size_t)snprintf(script, sizeof(script), "up\nshutdown\n> shutdown 0\n");

    (void)state;
    for (unsigned i = 1; i <= 12; i++)
        at += (size_t)snprintf(script + at, sizeof(script) - at,
                               "wait 70000\ndrop\n< data %u 10\n> sack %u\n> shutdown %u\nstate shutdown-sent\n", i, i,
                               i);
    snprintf(script + at, sizeof(script) - at, "< shutdown-ack\n> shutdown-complete\nend shut\n");
    sctpscript_play("long_data_after_our_shutdown", script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(we_shut_down),
        cmocka_unit_test(peer_shuts_down),
        cmocka_unit_test(both_shut_down),
        cmocka_unit_test(both_and_complete),
        cmocka_unit_test(shutdown_is_lost),
        cmocka_unit_test(shutdown_is_never_answered),
        cmocka_unit_test(shutdown_ack_is_lost),
        cmocka_unit_test(shutdown_ack_is_never_answered),
        cmocka_unit_test(complete_by_a_stranger),
        cmocka_unit_test(data_before_shutdown),
        cmocka_unit_test(much_data_before_shutdown),
        cmocka_unit_test(data_before_shutdown_ack),
        cmocka_unit_test(shutdown_acknowledges),
        cmocka_unit_test(shutdown_lies),
        cmocka_unit_test(data_after_our_shutdown),
        cmocka_unit_test(shutdown_pending_and_shutdown),
        cmocka_unit_test(ends_too_early),
        cmocka_unit_test(shutdown_before_up),
        cmocka_unit_test(shutdown_in_the_middle),
        cmocka_unit_test(shuts_down_twice),
        cmocka_unit_test(complete_and_more),
        cmocka_unit_test(aborts),
        cmocka_unit_test(aborts_without_a_reason),
        cmocka_unit_test(aborts_before_init_ack),
        cmocka_unit_test(is_aborted),
        cmocka_unit_test(is_aborted_without_a_reason),
        cmocka_unit_test(is_aborted_by_a_stranger),
        cmocka_unit_test(data_and_abort),
        cmocka_unit_test(malformed_aborts),
        cmocka_unit_test(other_causes),
        cmocka_unit_test(peer_restarts),
        cmocka_unit_test(freed),
        cmocka_unit_test(long_reasons),
        cmocka_unit_test(long_data_after_our_shutdown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
