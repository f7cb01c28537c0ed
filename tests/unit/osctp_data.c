/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_data.c - DATA that an association of osctp receives, and the SACKs that it sends (RFC 9260 6.2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sctp/osctp.h"
#include "tests/lib/sctpscript.h"

#define SCRIPT(name, text) \
    static void name(void **state) \
    { \
        (void)state; \
        sctpscript_play(#name, text); \
    }

/* Every second packet is acknowledged at once, one alone after a delay. */
SCRIPT(delayed_sacks,
       "up\n< data 1 100\nnone\n< data 2 100\n> sack 2\n< data 3 100\nnone\nwait 19.999\nnone\nwait 0.001\n"
       "> sack 3\nnone\nwait 100\nnone\ntaken 3\n")
SCRIPT(counts_packets,
       "up passive\n< data 1 1, data 2 2, data 3 3\nnone\n< data 4 1, data 5 2\n> sack 5\nnone\ntaken 5\n")
/* RFC 9260 3.3.1: the I bit. */
SCRIPT(at_once, "up\n< data 1 100 i\n> sack 1\n< data 2 1, data 3 1 i, data 4 1\n> sack 4\nnone\n")
/* A packet without DATA does not count. */
SCRIPT(sacks_nothing, "up\n< sack 0 1000\n< error\n< cookie-ack\nnone\nwait 1000\nnone\n")
/* The TSNs wrap after the seventh of the peer. Its initial TSN is the first. */
SCRIPT(tsns_wrap, "up\n< data 5 10\n> sack 0 gap=5-5\n< data 9 10\n> sack 0 gap=5-5 gap=9-9\n< data 6 10, data 7 10\n"
                  "> sack 0 gap=5-7 gap=9-9\n< data 8 10\n> sack 0 gap=5-9\n< data 1 1, data 2 1, data 3 1\n"
                  "> sack 3 gap=5-9\n< data 4 10\n> sack 9\ntaken 9\n")
/* The gap blocks are exact, in any order of arrival. */
SCRIPT(gap_blocks, "up\n< data 2 1\n> sack 0 gap=2-2\n< data 10 1\n> sack 0 gap=2-2 gap=10-10\n< data 6 1\n"
                   "> sack 0 gap=2-2 gap=6-6 gap=10-10\n< data 4 1\n> sack 0 gap=2-2 gap=4-4 gap=6-6 gap=10-10\n"
                   "< data 3 1\n> sack 0 gap=2-4 gap=6-6 gap=10-10\n< data 1 1\n> sack 4 gap=6-6 gap=10-10\n"
                   "< data 5 1\n> sack 6 gap=10-10\n< data 8 1\n> sack 6 gap=8-8 gap=10-10\n"
                   "< data 9 1, data 7 1\n> sack 10\ntaken 10\n")
/* TSNs received twice are reported once, in the next SACK, with what is new; also those before the cumulative one. */
SCRIPT(duplicates, "up\n< data 1 10\nnone\n< data 1 10\n> sack 1 dup=1\n< data 3 10\n> sack 1 gap=3-3\n"
                   "< data 3 10, data 1 10\n> sack 1 gap=3-3 dup=3 dup=1\n< data 2 10, data 2 10\n> sack 3 dup=2\n"
                   "< data 0 10\n> sack 3 dup=0\ntaken 3\nnone\n")
/* As many duplicates as one SACK reports, which are 16. */
SCRIPT(most_duplicates,
       "up\n< data 1 1\n<+ data 1 1, data 1 1, data 1 1, data 1 1, data 1 1, data 1 1, data 1 1, data 1 1\n"
       "< data 1 1, data 1 1, data 1 1, data 1 1, data 1 1, data 1 1, data 1 1, data 1 1, data 1 1\n"
       "> sack 1 dup=1 dup=1 dup=1 dup=1 dup=1 dup=1 dup=1 dup=1 dup=1 dup=1 dup=1 dup=1 dup=1 dup=1 "
       "dup=1 dup=1\nnone\n")
/* What the user does not take was not received. */
SCRIPT(no_memory, "up\nrefuse 1\n< data 1 10\n> sack 0\ntaken 0\n< data 2 10\n> sack 0 gap=2-2\nrefuse 1\n"
                  "< data 3 10, data 4 10\n> sack 0 gap=2-2 gap=4-4\n< data 1 10\n> sack 2 gap=4-4\n< data 3 10\n"
                  "> sack 4\ntaken 4\n")
/* RFC 9260 6.5: a stream that does not exist is an error, and the chunk is acknowledged. */
SCRIPT(last_stream, "up streams=3\n< data 1 10 stream=2\nnone\ntaken 1\n")
SCRIPT(stream_out_of_range,
       "up streams=3\n< data 1 10 stream=3\n> error cause=1:00030000\ntaken 0\nwait 20\n> sack 1\n"
       "< data 2 10, data 3 10 stream=65535\n> error cause=1:ffff0000\nwait 20\n> sack 3\ntaken 1\nskipped 2\n")
/* RFC 9260 6.2: a chunk without user data ends the association. */
SCRIPT(one_octet, "up\n< data 1 1 i\n> sack 1\ntaken 1\n")
SCRIPT(no_octets, "up\n< data 1 0\n> abort cause=9:fffffff9\nend lost\nnone\n")
SCRIPT(cut_head, "up\n< data 1 0 length=15\n> abort cause=9*\nend lost\nnone\n")
/* Of any kind: fragments, and ordered ones, go to the user as they are. */
SCRIPT(fragments, "up\n< data 1 10 flags=2, data 2 10 flags=0, data 3 10 flags=1\ntaken 3\nwait 20\n> sack 3\n")
/* RFC 9260 6.10, 3.2: padding is not part of a chunk; the last chunk's may be missing; a packet ends in the middle of
 * a chunk, whose length reaches beyond it. */
SCRIPT(paddings, "up\n< data 1 1, data 2 2, data 3 3, data 4 4\ntaken 4\n< data 5 1, cut 3\n> sack 5\n")
SCRIPT(cut_chunk,
       "up\n< data 1 10, data 2 10, cut 3\ntaken 1\n< data 2 8, cut 24\ntaken 1\n< data 2 8, cut 22\ntaken 1\n"
       "< data 2 10 i\n> sack 2\n")
SCRIPT(impossible_lengths, "up\n< data 1 10, chunk 0x80 length=0, data 2 10\ntaken 1\n"
                           "< data 2 10 i, chunk 0x80 length=3, data 3 10\n> sack 2\ntaken 2\n"
                           "< data 3 10 i, chunk 0x80 length=2, data 4 10\n> sack 3\n"
                           "< data 4 10 i, chunk 0x80 length=1, data 5 10\n> sack 4\n"
                           "< data 5 10 i, chunk 0x80 length=5\n> sack 5\ntaken 5\nstate established\nnone\n")
/* RFC 9260 3.2: the two high bits of an unknown chunk. Those that are reported are quoted. */
SCRIPT(unknown_chunks, "up\n< chunk 0x3f 0102, data 1 10\nnone\ntaken 0\n"
                       "< chunk 0x7f 0102, data 1 10\n> error cause=6:7f0000060102*\ntaken 0\n"
                       "< chunk 0xbf 0102, data 1 10 i\n> sack 1\ntaken 1\n"
                       "< chunk 0xff 0102, data 2 10 i\n> *error cause=6:ff0000060102*\ntaken 2\ndrop\n"
                       "state established\n")
/* RFC 9260 8.5: another verification tag is none of ours. */
SCRIPT(wrong_tags, "up\n< tag 0, data 1 10 i\n< tag 1, data 1 10 i\n< tag 0x55667788, data 1 10 i\n"
                   "< tag 0x11223345, data 1 10 i\nnone\ntaken 0\n< data 1 10 i\n> sack 1\n")
/* The window that the user gives is what the next SACK says. A window that opens again is told at once. */
SCRIPT(windows,
       "up window=100000\nwindow 50000\nnone\n< data 1 10 i\n> sack 1\nwindow 0\nnone\n< data 2 10 i\n> sack 2\n"
       "window 1000\nnone\nwindow 2967\nnone\nwindow 2968\n> sack 2\nwindow 100000\nnone\n")
/* SACKs travel in front of DATA. */
SCRIPT(sack_and_data, "up\n< data 1 10\nsend 100\n> *data 1 100*\n< data 2 10\n")
/* The host may process a batch of packets before it sends, until SACKs wait that it must send. */
SCRIPT(batch_of_packets, "up\n<+ data 1 10\n<+ data 2 10\n<+ data 3 10\n< data 4 10\n> sack 4\nnone\n")
SCRIPT(urgent, "up\n<+ data 1 10\nurgent 0\n<+ data 2 10\nurgent 1\n> sack 2\nurgent 0\n<+ data 4 10\nurgent 1\n")
SCRIPT(batches, "up\nbatches\n<+ data 1 10\n<+ data 2 10\n<+ data 3 10\nurgent 0\n> sack 3\n")
/* After both ends have shut down, or the peer has, nothing more is taken. */
SCRIPT(data_after_shutdown, "up\n< shutdown 0\n> shutdown-ack\n< data 1 10 i\ntaken 0\n")

/* Plays what `each` writes about the numbers one below, at, and above a limit. */
static void around(const char *name, const char *format, uint32_t limit)
{
    char script[512];

    for (uint32_t n = limit - 1; n <= limit + 1; n++) {
        snprintf(script, sizeof(script), format, n, n);
        sctpscript_play(name, script);
    }
}

/* A TSN is received up to OSCTP_TSNS behind the cumulative one, exclusive of it: its bit is another's. */
static void farthest_tsn(void **state)
{
    char script[512];

    (void)state;
    for (uint32_t tsn = OSCTP_TSNS - 2; tsn <= OSCTP_TSNS + 2; tsn++) {
        bool taken = tsn < OSCTP_TSNS;

        if (taken)
            snprintf(script, sizeof(script),
                     "up\n< data %u 10\n> sack 0 gap=%u-%u\n< data 1 1 i\n> sack 1 gap=%u-%u\ntaken 2\n", tsn, tsn, tsn,
                     tsn, tsn);
        else
            snprintf(script, sizeof(script),
                     "up\n< data %u 10\n> sack 0\ntaken 0\n< data %u 1\n> sack 0\ntaken 0\n"
                     "< data 1 1 i\n> sack 1\ntaken 1\n",
                     tsn, tsn);
        sctpscript_play("farthest_tsn", script);
    }
    around("very_far_tsn", "up\n< data %u 10\n> sack 0*\ntaken 0\n", 60000);
}

/* A hole at every second TSN: a SACK has as many blocks as fit in a packet, and the association goes on. */
static void many_holes(void **state)
{
    static char script[200000];
    size_t at = 0;

    (void)state;
    at += (size_t)snprintf(script, sizeof(script), "up packet=576\n");
    for (uint32_t tsn = 2; tsn < 1200; tsn += 2)
        at += (size_t)snprintf(script + at, sizeof(script) - at, "< data %u 1\n> sack 0 gap=2-2*\n", tsn);
    for (uint32_t tsn = 1; tsn < 1200; tsn += 2)
        at += (size_t)snprintf(script + at, sizeof(script) - at, "< data %u 1 i\n> sack %u*\n", tsn,
                               tsn == 1199 ? tsn : tsn + 1);
    snprintf(script + at, sizeof(script) - at, "taken 1199\nnone\n");
    sctpscript_play("many_holes", script);
}

/* The bits of TSNs that were acknowledged are clear when their places come again. */
static void places_come_again(void **state)
{
    static char script[2000000];
    size_t at = 0;

    (void)state;
    at += (size_t)snprintf(script, sizeof(script), "up\n");
    for (uint32_t tsn = 1; tsn <= 3 * OSCTP_TSNS; tsn += 2)
        at += (size_t)snprintf(script + at, sizeof(script) - at,
                               "< data %u 1\n> sack %u gap=%u-%u\n< data %u 1\n> sack %u\n", tsn + 1, tsn - 1, tsn + 1,
                               tsn + 1, tsn, tsn + 1);
    sctpscript_play("places_come_again", script);
}

/* What does not fit in one packet of answers is not answered. */
static void many_heartbeats(void **state)
{
    static char script[8000];
    char info[801];

    (void)state;
    memset(info, '0', sizeof(info));
    info[sizeof(info) - 1] = 0;
    memcpy(info, "00010190", 8);
    snprintf(script, sizeof(script),
             "up\n< heartbeat %s, heartbeat %s, heartbeat %s, data 1 10 i\n"
             "> heartbeat-ack %s, heartbeat-ack %s\n> sack 1\nnone\n",
             info, info, info, info, info);
    sctpscript_play("many_heartbeats", script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delayed_sacks),
        cmocka_unit_test(counts_packets),
        cmocka_unit_test(at_once),
        cmocka_unit_test(sacks_nothing),
        cmocka_unit_test(tsns_wrap),
        cmocka_unit_test(gap_blocks),
        cmocka_unit_test(duplicates),
        cmocka_unit_test(most_duplicates),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(last_stream),
        cmocka_unit_test(stream_out_of_range),
        cmocka_unit_test(one_octet),
        cmocka_unit_test(no_octets),
        cmocka_unit_test(cut_head),
        cmocka_unit_test(fragments),
        cmocka_unit_test(paddings),
        cmocka_unit_test(cut_chunk),
        cmocka_unit_test(impossible_lengths),
        cmocka_unit_test(unknown_chunks),
        cmocka_unit_test(wrong_tags),
        cmocka_unit_test(windows),
        cmocka_unit_test(sack_and_data),
        cmocka_unit_test(batch_of_packets),
        cmocka_unit_test(urgent),
        cmocka_unit_test(batches),
        cmocka_unit_test(data_after_shutdown),
        cmocka_unit_test(farthest_tsn),
        cmocka_unit_test(many_holes),
        cmocka_unit_test(places_come_again),
        cmocka_unit_test(many_heartbeats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
