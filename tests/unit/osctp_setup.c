/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_setup.c - how an association of osctp begins, packet by packet: retries, cookies, forged and malformed packets
 * (RFC 9260 5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sctp/cookie.h"
#include "sctp/osctp.h"
#include "tests/lib/sctpscript.h"
#include "tests/lib/sctptext.h"

enum { PACKET = 4000 };

#define SCRIPT(name, text) \
    static void name(void **state) \
    { \
        (void)state; \
        sctpscript_play(#name, text); \
    }

/* --- the active end ------------------------------------------------------------------------------------------ */

/* RFC 9260 5.1 */
SCRIPT(connects, "active indication=3\n"
                 "> init out=10 in=10 indication=3\n"
                 "none\n"
                 "state cookie-wait\n"
                 "send 100 error=-32\n"
                 "< init-ack indication=7\n"
                 "> echo\n"
                 "state cookie-echoed\n"
                 "send 100 error=-32\n"
                 "none\n"
                 "< cookie-ack\n"
                 "none\n"
                 "state established\n"
                 "indication 7\n"
                 "send 100\n"
                 "> data 1 100\n"
                 "none\n")
/* The first DATA of the peer comes with its COOKIE-ACK. */
SCRIPT(connects_and_receives, "active\n> init *\n< init-ack\n> echo\n< cookie-ack, data 1 10, data 2 20\ntaken 2\n"
                              "state established\nwait 20\n>@20 sack 2\n")
SCRIPT(echo_is_lost, "active\n> init *\nwait 10\n< init-ack\n> echo\nwait 299\nnone\nwait 1\n> echo\n"
                     "wait 599\nnone\nwait 1\n> echo\n< cookie-ack\nstate established\nnone\n")
SCRIPT(init_is_lost,
       "active retries=3 initmax=3000\n> init *\nwait 20000\n>@1000 init *\n>@3000 init *\n>@6000 init *\n"
       "none\nend lost\ndeadline -1\n")
SCRIPT(init_never_retried, "active retries=0\n> init *\nwait 999\nstate cookie-wait\nwait 1\nend lost\nnone\n")
SCRIPT(echo_never_retried, "active retries=0\n> init *\n< init-ack\n> echo\nwait 299\nstate cookie-echoed\nwait 701\n"
                           "end lost\nnone\n")
SCRIPT(gives_up_the_cookie, "active retries=2 initmax=60000\n> init *\nwait 10\n< init-ack\n> echo\nwait 60000\n"
                            ">@300 echo\n>@900 echo\nnone\nend lost\n")

/* RFC 9260 8.5.1: an ABORT has our tag, or the peer's with the T bit; ours is the only one known yet. */
SCRIPT(is_refused, "active\n> init *\n< abort\nend aborted\nnone\ndeadline -1\n")
SCRIPT(is_refused_with_a_reason, "active\n> init *\n< abort reason=full\nend aborted\nreason full\nnone\n")
SCRIPT(refused_by_a_stranger, "active\n> init *\n< tag 1, abort\nstate cookie-wait\n< tag 0, abort\nstate cookie-wait\n"
                              "< tag 0, abort t\nstate cookie-wait\nnone\n")
SCRIPT(refused_after_the_cookie, "active\n> init *\n< init-ack\n> echo\n< tag 0x55667788, abort\nstate cookie-echoed\n"
                                 "< tag 0x55667788, abort t\nend aborted\nnone\n")
SCRIPT(answers_with_a_wrong_tag, "active\n> init *\n< tag 0, init-ack\nnone\n< tag 7, init-ack\nnone\n"
                                 "state cookie-wait\n< init-ack\n> echo\n< tag 7, cookie-ack\nstate cookie-echoed\n"
                                 "< tag 0x55667788, cookie-ack\nstate cookie-echoed\n< cookie-ack\n"
                                 "state established\n")
/* Chunks before their time do nothing. */
SCRIPT(out_of_order,
       "active\n> init *\n< cookie-ack\nstate cookie-wait\n< data 1 10\n< sack 0 1000\n< shutdown 0\n"
       "< shutdown-ack\n< shutdown-complete\n< heartbeat 00010008aabbccdd\nnone\nstate cookie-wait\ntaken 0\n"
       "< init-ack\n> echo\n< init-ack itag=9 itsn=50\nnone\nstate cookie-echoed\n< cookie-ack\n"
       "state established\n< cookie-ack\n< init-ack\nnone\nstate established\n")
/* RFC 9260 3.3.3: an INIT-ACK without a cookie, with tag 0, without streams, or too short. */
SCRIPT(init_ack_without_cookie, "active\n> init *\n< init-ack cookie=0\n> abort *\nend lost\nnone\n")
SCRIPT(init_ack_with_tag_0, "active\n> init *\n< init-ack itag=0\nnone\nwait 1000\n> init *\n")
SCRIPT(init_ack_without_streams, "active\n> init *\n< init-ack out=0\n< init-ack in=0\nstate cookie-wait\n")
SCRIPT(init_ack_with_a_small_window, "active\n> init *\n< init-ack window=1499\nnone\nstate cookie-wait\n"
                                     "< init-ack window=1500\n> echo\n")
SCRIPT(init_ack_too_short, "active\n> init *\n< init-ack cookie=0 length=19, cut 1\nnone\nstate cookie-wait\n")
SCRIPT(largest_cookie, "active\n> init *\n< init-ack cookie=1024\n> echo\n< cookie-ack\nstate established\n")
SCRIPT(cookie_too_large, "active\n> init *\n< init-ack cookie=1025\n> abort *\nend lost\n")
/* RFC 9260 3.3.2, 3.3.3: a Host Name Address is refused with the cause "Unresolvable Address", wherever it comes. */
SCRIPT(host_name_in_init_ack,
       "active\n> init *\n< init-ack param=11:6100\n> abort cause=5:000b00066100\nend lost\nnone\n")
SCRIPT(host_name_in_init, "passive\n< init param=11:6100\n> abort cause=5:000b00066100\nnone\n"
                          "< init\n> init-ack *\n< echo\n> cookie-ack\nstate established\n")
/* RFC 9260 3.2.2: what we do not know of an INIT-ACK is reported in the packet of the cookie, once. */
SCRIPT(unknown_parameters_of_init_ack,
       "active\n> init *\n< init-ack param=0xc001:aabbcc param=0x8001:11 param=0xc002:\n"
       "> echo, error cause=8:c0010007aabbcc00c0020004\nnone\nwait 1000\n> echo\n< cookie-ack\nstate established\n")
SCRIPT(unknown_parameter_ends_init_ack, "active\n> init *\n< init-ack param=0x4001: param=0xc002:\n"
                                        "> abort cause=13:\nend lost\n")
/* As many streams as both ends have. */
SCRIPT(fewer_streams, "active streams=10\n> init out=10 in=10\n< init-ack in=3\n> echo\n< cookie-ack\n"
                      "send 10 stream=2\n> data 1 10 stream=2\nsend 10 stream=3 error=-22\nnone\n")
/* RFC 9260 3.2.1: the two high bits of an unknown parameter. Behind one that says "stop" no more is read. */
SCRIPT(unknown_parameters,
       "passive\n"
       "< init param=0x8001:aabb indication=5\n> init-ack out=10 in=10 cookie\n"
       "< init param=0xc001:aabbcc indication=5\n> init-ack out=10 in=10 cookie param=0x8:c0010007aabbcc\n"
       "< init param=0x4001:01020304\n> init-ack out=10 in=10 cookie param=0x8:4001000801020304\n"
       "< init param=0xc001: param=0xc002:\n> init-ack out=10 in=10 cookie param=0x8:c0010004 param=0x8:c0020004\n"
       "< init param=0x0100: param=0xc002:\n> init-ack out=10 in=10 cookie\n"
       "< init param=0x4100: param=0xc002:\n> init-ack out=10 in=10 cookie param=0x8:41000004\n"
       "< init param=5:0a000001 param=6:00000000000000000000000000000001 param=9:0000ffff param=12:0005\n"
       "> init-ack out=10 in=10 cookie\n")
SCRIPT(stops_at_a_parameter, "passive\n< init param=0x0100: param=0xc006:00000005\n> init-ack *\n< echo\n> cookie-ack\n"
                             "indication 0\n")
SCRIPT(skips_a_parameter, "passive\n< init param=0x8100: param=0xc006:00000005\n> init-ack *\n< echo\n> cookie-ack\n"
                          "indication 5\n")
/* RFC 5061 4.2.6: an Adaptation Layer Indication is 8 octets long. */
SCRIPT(no_indication,
       "passive indication=2\n< init\n> init-ack out=10 in=10 indication=2 cookie\n< echo\n> cookie-ack\n"
       "indication 0\n")
SCRIPT(short_indication, "passive\n< init param=0xc006:0000\n> init-ack *\n< echo\n> cookie-ack\nindication 0\n")
SCRIPT(long_indication, "passive\n< init param=0xc006:0000000100000000\n> init-ack *\n< echo\n> cookie-ack\n"
                        "indication 0\n")

/* --- the passive end ----------------------------------------------------------------------------------------- */

SCRIPT(accepts, "passive\n< init indication=9 window=70000\n> init-ack out=10 in=10 cookie\n< echo, data 1 50\n"
                "> cookie-ack\nstate established\nindication 9\ntaken 1\nsend 10\n> data 1 10\n"
                "< sack 1 70000\nflight 0\nnone\nwait 20\n> sack 1\n")
/* The COOKIE-ACK was lost: the same cookie is answered again (RFC 9260 5.2.4 D), and DATA behind it counts. */
SCRIPT(echo_again, "passive\n< init\n> init-ack *\n< echo\n> cookie-ack\n< echo, data 1 50\n> cookie-ack*\n"
                   "state established\ntaken 1\n")
/* The INIT comes again: the answer is another cookie, and the host stores nothing (RFC 9260 5.1). */
SCRIPT(init_again, "passive\n< init\n> init-ack *\n< init\n> init-ack *\n< echo\n> cookie-ack\nstate established\n")
/* The cookie is valid for Valid.Cookie.Life. */
SCRIPT(cookie_old_enough, "passive\n< init\n> init-ack *\nwait 60000\n< echo\n> cookie-ack\nstate established\n")
SCRIPT(cookie_too_old, "passive\n< init\n> init-ack *\nwait 60000.001\n< echo\n> error cause=3:00000001\n"
                       "wait 1\n< echo\n> error cause=3:000003e9\nnone\n< data 1 1\n> tag ours, abort t\n")
/* A cookie that is not ours, or not for this packet, is dropped without an answer (RFC 9260 5.1.5). */
SCRIPT(cookie_of_another_address, "passive\n< from 3, init\n> init-ack *\n< echo\nnone\n< from 3, echo\n> cookie-ack\n")
SCRIPT(cookie_of_another_port, "passive\n< init\n> init-ack *\n< port 5003, echo\nnone\n< echo\n> cookie-ack\n")
SCRIPT(cookie_to_another_port, "passive\n< init\n> init-ack *\n< to 5003, echo\nnone\n< echo\n> cookie-ack\n")
/* What the peer asks for makes it live no longer (RFC 5062 6.3). */
SCRIPT(cookie_with_a_long_life, "passive\n< init param=9:7fffffff\n> init-ack out=10 in=10 cookie\nwait 60000.001\n"
                                "< echo\n> error cause=3:00000001\n")
SCRIPT(cookie_of_another_key, "passive\n< init\n> init-ack *\nkey 9\n< echo\nnone\nkey 1\n< echo\n> cookie-ack\n")
SCRIPT(cookie_with_another_tag, "passive\n< init\n> init-ack *\n< tag 5, echo\nnone\n< echo\n> cookie-ack\n")
SCRIPT(cookie_is_shorter, "passive\n< init\n> init-ack *\n< echo cut=1\n< echo cut=64\nnone\n< echo\n> cookie-ack\n")
/* RFC 9260 8.5.1 A, 6.10, 3.3.2: an INIT has tag 0, is alone, whole, with a tag that is not 0, asks for streams, and
 * has a window of 1500 octets. */
SCRIPT(malformed_inits,
       "passive\n< tag 5, init\n< init itag=0\n< init length=19\nnone\n< init out=0\n> abort\n< init in=0\n> abort\n"
       "< init window=1499\n> abort\n< init window=1500\n> init-ack *\n< init, data 1 10\nnone\n< init "
       "param=0x8001:aabb length=28\n> init-ack *\n"
       "< init param=0x8001:aabb length=29\nnone\n< init param=0x8001:aabbccdd, cut 1\nnone\n"
       "< chunk 1 556677880000ffff000a000afffffff980010009aabbccdd\n> abort\n"
       "< chunk 1 556677880000ffff000a000afffffff980010003\n> abort\n"
       "< chunk 1 556677880000ffff000a000afffffff98001\n> init-ack *\n")

static void cookie_octets(void **state)
{
    char script[160];

    (void)state;
    for (unsigned i = 0; i < OSCTP_COOKIE; i++) {
        snprintf(script, sizeof(script), "passive\n< init\n> init-ack *\n< echo flip=%u\nnone\n< echo\n> cookie-ack\n",
                 i);
        sctpscript_play("cookie_octets", script);
    }
}

/* An INIT-ACK reports as many unknown parameters as CHUNK_UNKNOWN_MAX. */
static void most_unknown_parameters(void **state)
{
    char script[1000];

    (void)state;
    for (unsigned n = 7; n <= 9; n++) {
        size_t at = (size_t)snprintf(script, sizeof(script), "passive\n< init");

        for (unsigned i = 1; i <= n; i++)
            at += (size_t)snprintf(script + at, sizeof(script) - at, " param=0xc1%02x:", i);
        at += (size_t)snprintf(script + at, sizeof(script) - at, "\n> init-ack out=10 in=10 cookie");
        for (unsigned i = 1; i <= n && i <= 8; i++)
            at += (size_t)snprintf(script + at, sizeof(script) - at, " param=0x8:c1%02x0004", i);
        snprintf(script + at, sizeof(script) - at, "\nnone\n");
        sctpscript_play("most_unknown_parameters", script);
    }
}

/* Unknown parameters that are too long for the answer are left out of it. */
static void long_unknown_parameters(void **state)
{
    enum { TIMES = 8, EACH = 200, BEYOND = 2000 };
    static const uint64_t key[2] = {1, 2};
    const struct osctp_attr attr = {.tag = 5, .tsn = 1, .streams = 10, .window = 1 << 20};
    char text[TIMES * (2 * EACH + 20)], hex[2 * EACH + 1];
    uint8_t packet[PACKET], reply[OSCTP_ANSWER + BEYOND], untouched[BEYOND];
    struct sctptext sctptext = {0};
    const char *wrong;
    uint32_t n;

    (void)state;
    for (unsigned octets = EACH - 8; octets <= EACH; octets++) {
        size_t at = (size_t)snprintf(text, sizeof(text), "init");

        memset(hex, 'a', 2 * octets);
        hex[2 * octets] = 0;
        for (unsigned i = 0; i < TIMES; i++)
            at += (size_t)snprintf(text + at, sizeof(text) - at, " param=0xc1%02x:%s", i, hex);
        n = sctptext_encode(&sctptext, text, packet, &wrong);
        assert_in_range(n, TIMES * octets, sizeof(packet));
        memset(reply, 0xa5, sizeof(reply));
        memset(untouched, 0xa5, sizeof(untouched));
        n = osctp_answer(&attr, key, 1, packet, n, reply, 0);
        assert_in_range(n, OSCTP_ANSWER - EACH - 2 * 4, OSCTP_ANSWER);
        assert_memory_equal(reply + OSCTP_ANSWER, untouched, sizeof(untouched));
    }
}

/* Those of an INIT-ACK likewise. */
static void long_unknown_parameters_of_init_ack(void **state)
{
    enum { TIMES = 8, EACH = 200 };
    char script[TIMES * (2 * EACH + 20) + 100], hex[2 * EACH + 1] = "";
    size_t at = (size_t)snprintf(script, sizeof(script), "active\n> init *\n< init-ack");

    (void)state;
    memset(hex, 'a', sizeof(hex) - 1);
    for (unsigned i = 0; i < TIMES; i++)
        at += (size_t)snprintf(script + at, sizeof(script) - at, " param=0xc1%02x:%s", i, hex);
    snprintf(script + at, sizeof(script) - at, "\n> echo, error cause=8:c1*\nnone\n< cookie-ack\nstate established\n");
    sctpscript_play("long_unknown_parameters_of_init_ack", script);
}

/* --- of neither (RFC 9260 8.4) ------------------------------------------------------------------------------- */

SCRIPT(strangers, "passive\n"
                  "? data 1 10\n> tag ours, abort t\n"
                  "? sack 1 1000\n> tag ours, abort t\n"
                  "? abort\n? abort t\n? shutdown-complete\n? data 1 10, abort\nnone\n"
                  "? shutdown-ack\n> tag ours, shutdown-complete t\n"
                  "? cookie-ack\n? error\nnone\n"
                  "? init\n> abort\n"
                  "? init itag=7\n> tag 0x7, abort\n"
                  "? heartbeat 00010008aabbccdd\n> tag ours, abort t\n"
                  "? init-ack\n> tag ours, abort t\n"
                  "? shutdown 1\n> tag ours, abort t\n"
                  "? chunk 0x80 00\n> tag ours, abort t\n"
                  "? data 1 10 length=3\nnone\n")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connects),
        cmocka_unit_test(connects_and_receives),
        cmocka_unit_test(echo_is_lost),
        cmocka_unit_test(init_is_lost),
        cmocka_unit_test(init_never_retried),
        cmocka_unit_test(echo_never_retried),
        cmocka_unit_test(gives_up_the_cookie),
        cmocka_unit_test(is_refused),
        cmocka_unit_test(is_refused_with_a_reason),
        cmocka_unit_test(refused_by_a_stranger),
        cmocka_unit_test(refused_after_the_cookie),
        cmocka_unit_test(answers_with_a_wrong_tag),
        cmocka_unit_test(out_of_order),
        cmocka_unit_test(init_ack_without_cookie),
        cmocka_unit_test(init_ack_with_tag_0),
        cmocka_unit_test(init_ack_without_streams),
        cmocka_unit_test(init_ack_with_a_small_window),
        cmocka_unit_test(init_ack_too_short),
        cmocka_unit_test(largest_cookie),
        cmocka_unit_test(cookie_too_large),
        cmocka_unit_test(fewer_streams),
        cmocka_unit_test(host_name_in_init_ack),
        cmocka_unit_test(host_name_in_init),
        cmocka_unit_test(unknown_parameters_of_init_ack),
        cmocka_unit_test(unknown_parameter_ends_init_ack),
        cmocka_unit_test(unknown_parameters),
        cmocka_unit_test(stops_at_a_parameter),
        cmocka_unit_test(skips_a_parameter),
        cmocka_unit_test(no_indication),
        cmocka_unit_test(short_indication),
        cmocka_unit_test(long_indication),
        cmocka_unit_test(accepts),
        cmocka_unit_test(echo_again),
        cmocka_unit_test(init_again),
        cmocka_unit_test(cookie_old_enough),
        cmocka_unit_test(cookie_too_old),
        cmocka_unit_test(cookie_of_another_address),
        cmocka_unit_test(cookie_of_another_port),
        cmocka_unit_test(cookie_to_another_port),
        cmocka_unit_test(cookie_with_a_long_life),
        cmocka_unit_test(cookie_of_another_key),
        cmocka_unit_test(cookie_with_another_tag),
        cmocka_unit_test(cookie_is_shorter),
        cmocka_unit_test(malformed_inits),
        cmocka_unit_test(cookie_octets),
        cmocka_unit_test(most_unknown_parameters),
        cmocka_unit_test(long_unknown_parameters),
        cmocka_unit_test(long_unknown_parameters_of_init_ack),
        cmocka_unit_test(strangers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
