/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_collide.c - INITs and cookies at the ports of an association that exists: both ends begin at once, the peer
 * restarts, packets come twice or late (RFC 9260 5.2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/lib/sctpscript.h"

#define SCRIPT(name, text) \
    static void name(void **state) \
    { \
        (void)state; \
        sctpscript_play(#name, text); \
    }

/* --- both ends begin (5.2.1) ----------------------------------------------------------------------------------- */

/* The INIT-ACK has the tag and parameters of our INIT. Whichever cookie comes first, there is one association. */
SCRIPT(their_cookie_first, "active indication=3\n> init *\nour tag 9\n< init indication=7\n"
                           "> init-ack out=10 in=10 indication=3 cookie\nstate cookie-wait\nnone\n"
                           "< echo, data 1 10\n> cookie-ack\nstate established\nindication 7\ntaken 1\n"
                           "< init-ack\n< cookie-ack\nnone\nsend 10\n> data 1 10\nwait 20\n> sack 1\ndrop\n"
                           "wait 2000\nstate established\n")
SCRIPT(our_cookie_first, "active\n> init *\n< init\n> init-ack *\n< init-ack\n> echo\n< cookie-ack\nstate established\n"
                         "< echo\n> cookie-ack\nnone\nstate established\nsend 10\n> data 1 10\n")
SCRIPT(after_our_cookie, "active\n> init *\n< init-ack\n> echo\n< init\n> init-ack *\nstate cookie-echoed\n"
                         "< echo\n> cookie-ack\nstate established\n< cookie-ack\nnone\nsend 10\n> data 1 10\n")
/* An INIT changes no timer. */
SCRIPT(init_timer_runs, "active\n> init *\nwait 600\n< init\n> init-ack *\nwait 400\n>@400 init *\n")
SCRIPT(cookie_timer_runs, "active\n> init *\nwait 10\n< init-ack\n> echo\nwait 200\n< init\n> init-ack *\n"
                          "wait 100\n>@100 echo\n")
SCRIPT(refused_in_collision, "active\n> init *\n< init param=11:6100\n> abort cause=5:*\n< init out=0\n> abort\n"
                             "< tag 5, init\n< init itag=0\nnone\nstate cookie-wait\n< init-ack\n> echo\n")

/* --- the peer restarts (5.2.2, 5.2.4 A) ------------------------------------------------------------------------- */

/* An INIT alone changes nothing. The answer has another tag. */
SCRIPT(restart_begins, "up passive\nwait 1\nour tag 9\n< init itag=99\n> tag 0x63, init-ack itag=0x9 *\nrestarts 0\n"
                       "state established\nsend 10\n> data 1 10\n< data 1 10 i\n> sack 1\ntaken 1\n")
SCRIPT(restart, "up passive\nsend 1456 count=4\n>4 data*\n< data 1 10 i\n> sack 1\nour tag 9\nwait 1\n"
                "< init itag=99\n> tag 0x63, init-ack itag=0x9 *\n< tag 9, echo\n> tag 0x63, cookie-ack\n"
                "restarts 1\nlent 0\nflight 0\ncwnd 4404\nstate established\nsend 10\n"
                "> tag 0x63, data 1 10*\n< tag 9, data 2 10 i\n> tag 0x63, sack 0 gap=2-2\n")
SCRIPT(restart_in_each_state,
       "up passive\nsend 10\n> data*\nshutdown\nstate shutdown-pending\n< init itag=99\n> tag 0x63, init-ack *\n"
       "< sack 1 1048576\n> shutdown 0\nstate shutdown-sent\nour tag 9\n< init itag=99\n> tag 0x63, init-ack *\n"
       "state shutdown-sent\n< tag 9, echo\nrestarts 0\nwait 1\n< init itag=99\ndrop\n< tag 9, echo\n"
       "> tag 0x63, cookie-ack\nrestarts 1\nstate established\n")
/* It was made before this association began: it knows nothing of it. */
SCRIPT(cookie_before,
       "passive\nour tag 9\n< init itag=99\n> tag 0x63, init-ack itag=0x9 *\nwait 1\nour tag 0x11223344\n"
       "< init\n> init-ack *\n< echo\n> cookie-ack\n< tag 9, echo before=1\nnone\nrestarts 0\n"
       "send 10\n> data 1 10\n")
/* RFC 9260 5.2.4, 9.2 */
SCRIPT(ends_first, "up passive\nour tag 9\nwait 1\n< init itag=99\n> tag 0x63, init-ack *\n< shutdown 0\n"
                   "> shutdown-ack\n< tag 9, echo\n> error cause=10:\n> shutdown-ack\nrestarts 0\n"
                   "< init itag=99\n> shutdown-ack\nnone\nstate shutdown-ack-sent\n< shutdown-complete\nend shut\n")

/* --- cookies late and twice (5.2.4 B to D, 5.2.6) --------------------------------------------------------------- */

/* B: the peer chose another tag for its INIT, not aware of the one with which it had answered ours. */
SCRIPT(another_tag, "active\n> init *\n< init-ack\n> echo\n< init itag=99\n> tag 0x63, init-ack *\n< echo\n"
                    "> tag 0x63, cookie-ack\nstate established\nnone\nsend 10\n> tag 0x63, data 1 10\n")
SCRIPT(another_tag_later, "active\n> init *\n< init-ack\n> echo\n< init itag=99\n> tag 0x63, init-ack *\n< cookie-ack\n"
                          "state established\n< echo\n> tag 0x63, cookie-ack\nnone\nsend 10\n"
                          "> tag 0x63, data 1 10\n< data 1 10 i\n> tag 0x63, sack 1\n")
/* C: the cookie of another answer to the same INIT. */
SCRIPT(late_cookie, "passive\n< init\n> init-ack *\nwait 1\nour tag 9\n< init\n> init-ack itag=0x9 *\n"
                    "< echo before=1\n> cookie-ack\n< tag 9, echo\nnone\nrestarts 0\nstate established\nsend 10\n"
                    "> data 1 10\n")
/* D: the COOKIE-ACK was lost, and the cookie counts however old it is. */
SCRIPT(cookie_again,
       "up passive\n< data 1 10 i\n> sack 1\n< echo\n> cookie-ack\nnone\nwait 70000\ndrop\n< echo, data 2 10 i\n"
       "> cookie-ack\n> sack 2\nrestarts 0\ntaken 2\n")
/* Of another association it is too old, and the peer is told, whose association has not begun. */
SCRIPT(stale_cookie, "up passive\nwait 1\nour tag 9\n< init itag=99\n> tag 0x63, init-ack *\nwait 60000\ndrop\n"
                     "wait 0.001\n< tag 9, echo\n> tag 0x63, error cause=3:00000001\nnone\nrestarts 0\n"
                     "state established\n")
SCRIPT(stale_not_yet, "up passive\nwait 1\nour tag 9\n< init itag=99\n> tag 0x63, init-ack *\nwait 60000\ndrop\n"
                      "< tag 9, echo\n> tag 0x63, cookie-ack\nrestarts 1\n")
/* 5.2.6: told too late, or to one that is up. */
SCRIPT(told_stale, "active\n> init *\n< error cause=3:00000001\nstate cookie-wait\n< init-ack\n> echo\n"
                   "< error cause=3:00000001\nend lost\nnone\n")
SCRIPT(told_stale_later, "up\n< error cause=3:00000001\nnone\nstate established\n")
/* A cookie that is not ours, or of another address, does nothing. */
SCRIPT(forged_cookies, "up passive\nwait 1\nour tag 9\n< init itag=99\n> tag 0x63, init-ack *\n< tag 9, echo flip=20\n"
                       "< tag 9, echo cut=1\n< from 3, tag 9, echo\n< port 5003, tag 9, echo\n< tag 8, echo\nnone\n"
                       "restarts 0\nstate established\n")
/* 5.2.3, 5.2.5 */
SCRIPT(answers_again, "up\n< init-ack itag=9\n< cookie-ack\nnone\nshutdown\n> shutdown 0\n< init-ack\n< cookie-ack\n"
                      "none\nstate shutdown-sent\n")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(their_cookie_first),
        cmocka_unit_test(our_cookie_first),
        cmocka_unit_test(after_our_cookie),
        cmocka_unit_test(init_timer_runs),
        cmocka_unit_test(cookie_timer_runs),
        cmocka_unit_test(refused_in_collision),
        cmocka_unit_test(restart_begins),
        cmocka_unit_test(restart),
        cmocka_unit_test(restart_in_each_state),
        cmocka_unit_test(cookie_before),
        cmocka_unit_test(ends_first),
        cmocka_unit_test(another_tag),
        cmocka_unit_test(another_tag_later),
        cmocka_unit_test(late_cookie),
        cmocka_unit_test(cookie_again),
        cmocka_unit_test(stale_cookie),
        cmocka_unit_test(stale_not_yet),
        cmocka_unit_test(told_stale),
        cmocka_unit_test(told_stale_later),
        cmocka_unit_test(forged_cookies),
        cmocka_unit_test(answers_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
