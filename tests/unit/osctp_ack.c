/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp_ack.c - DATA that an association of osctp sends, and what SACKs and silence do to it: bundles, windows, losses,
 * time-outs (RFC 9260 6.1, 6.2.1, 6.3, 7.2). */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "conn/assoc_window.h"
#include "sctp/chunk.h"
#include "sctp/inner.h"
#include "sctp/osctp.h"
#include "tests/lib/sctpscript.h"

#define SCRIPT(name, text) \
    static void name(void **state) \
    { \
        (void)state; \
        sctpscript_play(#name, text); \
    }

/* --- bundles ------------------------------------------------------------------------------------------------- */

/* Messages that wait share packets, as many as fit: 18 of 64 octets, with heads, in 1484. */
SCRIPT(small_messages, "up\nsend 64 count=18\n> data 1 64, data 2 64*, data 18 64\nnone\n< sack 18 1048576\nlent 0\n"
                       "send 64 count=19\n> data 19 64, data 20 64*, data 36 64\n> data 37 64\nnone\n")
SCRIPT(message_by_message, "up\nsend 64\n> data 1 64\nsend 64\n> data 2 64\nnone\n")
SCRIPT(paddings, "up\nsend 1\nsend 2\n> data 1 1\n> data 2 2\nsend 3 count=3\n> data 3 3, data 4 3, data 5 3\n")
/* The longest message fills a packet; with one octet less, nothing more fits. */
SCRIPT(longest_message, "up\npayload 1456\nsend 1455\nsend 1456\n> data 1 1455\n> data 2 1456\nsend 1457 error=-90\n"
                        "send 0 error=-22\nnone\n< sack 2 1048576\n"
                        "send 1433 count=2\n> data 3 1433\n> data 4 1433\n< sack 4 1048576\n")
SCRIPT(longest_packets, "up packet=65520\npayload 65492\nsend 65492\n> data 1 65492\nsend 65493 error=-90\n")
SCRIPT(streams, "up\nsend 10 stream=9 ppid=5\n> data 1 10 stream=9 ppid=5\nsend 10 stream=10 error=-22\nnone\n")
SCRIPT(no_memory, "up\nscarce 1\nsend 10 error=-12\nnone\nsend 10\n> data 1 10\n")
/* What waits is limited to `store`; a message into an empty store always fits. */
SCRIPT(store_is_full,
       "up store=2980\nspace 1\nsend 1456\nsend 1456\n> data 1 1456\n> data 2 1456\nspace 0\nsend 1456 error=-11\n"
       "send 4 error=-11\n< sack 1 1048576\nspace 1\nsend 1456\n> data 3 1456\n")
SCRIPT(tiny_store,
       "up store=1\nsend 1456\n> data 1 1456\nsend 1 error=-11\nspace 0\n< sack 1 1048576\nspace 1\nsend 10\n"
       "> data 2 10\n")

SCRIPT(
    most_packets,
    "up store=100000000\nsend 1456 count=4095\nspace 0\nsend 1456\nlent 4096\nsend 1456 error=-11\nsend 1 error=-11\n"
    "< sack 1 1048576\nsend 1456\nsend 1456 error=-11\nlent 4096\n")

/* --- the windows --------------------------------------------------------------------------------------------- */

/* RFC 9260 7.2.1: the first window is 4404 octets, which may be exceeded by less than a packet. TSNs wrap. */
SCRIPT(first_window,
       "up\ncwnd 4404\nsend 1456 count=20\n> data 1 1456\n> data 2 1456\n> data 3 1456\n> data 4 1456\nnone\n"
       "flight 5824\nwait 10\n< sack 2 1048576\n> data 5 1456\n> data 6 1456\n> data 7 1456\nnone\n"
       "cwnd 5888\n< sack 4 1048576\n> data 8 1456\n> data 9 1456\n> data 10 1456\nnone\ncwnd 7372\n")
SCRIPT(first_window_of_short_packets, "up packet=576\ncwnd 2304\n")
SCRIPT(first_window_of_long_packets, "up packet=8948\ncwnd 17896\nsend 8920 count=4\n> data 1 8920\n> data 2 8920\n"
                                     "> data 3 8920\nnone\n")
/* The window does not grow while it is not used. */
SCRIPT(window_not_used,
       "up\nsend 100\n> data 1 100\n< sack 1 1048576\ncwnd 4404\nsend 100 count=14\n> *\n> *\n< sack 15 1048576\n"
       "cwnd 4404\n")
/* RFC 9260 6.1 D: Max.Burst for one acknowledgement, and what it acknowledges. */
SCRIPT(bursts,
       "up\nsend 1456 count=60\n>4 data*\nnone\n< sack 4 1048576\n>5 data*\nnone\n< sack 9 1048576\n>6 data*\nnone\n")
/* RFC 9260 6.1 A: not beyond the peer's window, but one packet always. */
SCRIPT(small_window,
       "up rwnd=3000\nsend 1456 count=4\n> data 1 1456\n> data 2 1456\nnone\n< sack 2 88\n> data 3 1456\nnone\n"
       "< sack 3 1455\n> data 4 1456\nnone\n")
SCRIPT(exact_window,
       "up rwnd=2912\nsend 1456 count=4\n> data 1 1456\n> data 2 1456\nnone\n< sack 2 2911\n> data 3 1456\nnone\n"
       "< sack 3 2913\n> data 4 1456\nnone\n")
/* No more messages behind a missing one than a receiver of DDP keeps. */
SCRIPT(too_many_messages, "up packet=65520 store=1000000\nsend 1 count=3275\n> *\nsend 1 count=820\n> *\nsend 1\nnone\n"
                          "< sack 0 1048576 gap=3276-4095\nnone\n< sack 1 1048576 gap=3275-4094\n> data 4096 1\nnone\n"
                          "< sack 4096 1048576\nlent 0\n")
static_assert(OSCTP_TSNS <= (int)WINDOW_CHUNKS, "the receiver of DDP ends connections for their losses");

/* A window that stays closed is probed as often as the time-out says, and a peer that answers is not given up. */
SCRIPT(closed_window, "up\nsend 10\n> data 1 10\n< sack 1 0\nsend 100\n> data 2 100\nsend 200\nnone\n< sack 1 0\nnone\n"
                      "wait 300\n>@300 data 2 100\n< sack 1 0\nnone\nwait 600\n>@600 data 2 100\n< sack 1 0\nnone\n"
                      "wait 1200\n>@1200 data 2 100\n< sack 2 100000\n> data 3 200\n< sack 3 100000\nnone\nflight 0\n")

/* One that has gone with its window closed is given up, as any other. */
SCRIPT(closed_window_of_the_gone, "up\nsend 10\n> data 1 10\n< sack 1 0\nsend 100\n> data 2 100\nsend 200\nnone\n"
                                  "wait 1000000\n>10 data 2 100*\nnone\nend lost\n")

/* --- what SACKs cost ------------------------------------------------------------------------------------------ */

/* One SACK a packet is looked at. Each packet with news is looked at once, and the one that was sent first, until a
 * time-out forgets what gap blocks said. */
SCRIPT(sacks_in_one_packet,
       "up\nsend 1456 count=4\n>4 data*\n< sack 0 1048576 gap=2-2, sack 0 1048576 gap=3-3\nlooks 2\n"
       "flight 4368\n")
SCRIPT(sacks_again, "up\nsend 1456 count=4\n>4 data*\n< sack 0 1048576 gap=2-2\nlooks 2\n< sack 0 1048576 gap=2-2\n"
                    "looks 3\n< sack 0 1048576 gap=2-3\nlooks 5\nwait 400\ndrop\n< sack 0 1048576 gap=2-3\nlooks 8\n")
/* What SACKs cost does not depend on the packets in flight: each with news is looked at once, and for each SACK the one
 * that was sent first. */
enum { MANY = 4000, MANY_PACKET = 128, MANY_SACKS = 600, MANY_BLOCKS = 300 };

static bool take_none(void *of, const struct osctp_data *data)
{
    (void)of;
    (void)data;
    return false;
}

static void skip_none(void *of, uint16_t stream)
{
    (void)of;
    (void)stream;
}

static uint8_t *lend_many(void *of)
{
    (void)of;
    return malloc(MANY_PACKET);
}

static void put_back_many(void *of, uint8_t *packet)
{
    (void)of;
    free(packet);
}

/* Each SACK has blocks of one TSN, other ones than the SACK before. */
static void sack_many(struct osctp *o, uint32_t round, uint64_t now_us)
{
    uint8_t p[PACKET_COMMON + CHUNK_SACK_HEAD + 4 * MANY_BLOCKS];
    uint8_t *q = chunk_head(chunk_packet(p, 2, 1, 7), CHUNK_SACK, 0, CHUNK_SACK_HEAD + 4 * MANY_BLOCKS);

    q = put16(put16(put32(put32(q, 0), 1 << 30), MANY_BLOCKS), 0);
    for (uint32_t i = 0; i < MANY_BLOCKS; i++) {
        uint16_t at = (uint16_t)(2 + round % 13 + 13 * i);

        q = put16(put16(q, at), at);
    }
    osctp_input(o, p, sizeof(p), now_us);
}

static void many_in_flight(void **state)
{
    static struct osctp o;
    static struct osctp_sent sent[OSCTP_PACKETS];
    static const struct osctp_user user = {
        .take = take_none, .skip = skip_none, .lend = lend_many, .put_back = put_back_many};
    const struct osctp_attr attr = {.local_port = 1,
                                    .peer_port = 2,
                                    .packet_max = MANY_PACKET,
                                    .streams = 1,
                                    .window = 4096,
                                    .store = 1 << 30,
                                    .tag = 7,
                                    .tsn = 1};
    const struct osctp_cookie cookie = {.made_us = 1,
                                        .tag = 7,
                                        .tsn = 1,
                                        .peer_tag = 9,
                                        .peer_tsn = 1,
                                        .peer_window = 1 << 30,
                                        .local_port = 1,
                                        .peer_port = 2,
                                        .streams = 1};
    static const uint8_t octets[MANY_PACKET - PACKET_COMMON - CHUNK_DATA_HEAD];
    const struct span span = {octets, sizeof(octets)};
    const uint8_t *p;
    uint32_t n;

    (void)state;
    osctp_accept(&o, &attr, &cookie, sent, &user, NULL, 2);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(osctp_submit(&o, &span, 1, 0, 0), 0);
    o.congestion.window = o.congestion.burst = 1 << 30;
    while (osctp_output(&o, &p, &n, 3))
        continue;
    assert_int_equal(o.tx.unsent - o.tx.first, MANY);
    for (uint32_t i = 0; i < MANY_SACKS; i++)
        sack_many(&o, i, 4);
    /* All blocks together are MANY_BLOCKS * 13 TSNs, and every packet before the last of them is lost once. */
    assert_true(o.count.looks >= MANY_BLOCKS * 13);
    assert_true(o.count.looks <= MANY_BLOCKS * 13 + MANY_SACKS + MANY);
    osctp_free(&o);
}

/* --- acknowledgements ---------------------------------------------------------------------------------------- */

SCRIPT(acknowledged, "up\nsend 100\n> data 1 100\nflight 100\nlent 1\n< sack 1 1048576\nflight 0\nlent 0\nnone\n")
/* RFC 9260 6.2.1: an old SACK is dropped, also its window; one beyond what was sent is a lie
 * that ends the association (RFC 5062 3). */
SCRIPT(old_sack,
       "up\nsend 100 \n> data 1 100\nsend 100\n> data 2 100\n< sack 1 1048576\nflight 100\n< sack 0 0\nflight 100\n"
       "send 300\n> data 3 300\n< sack 3 1048576\nflight 0\n")
SCRIPT(sack_beyond, "up\nsend 100\n> data 1 100\n< sack 2 1048576\n> abort cause=13:*\nend lost\nnone\n")
SCRIPT(sack_far_beyond, "up\nsend 100\n> data 1 100\n< sack 1000 1048576\n> abort cause=13:*\nend lost\nnone\n")
SCRIPT(sack_of_nothing, "up\nsend 100\n> data 1 100\n< sack 1 1048576\n< sack 1 1048576\nnone\n< sack 2 1048576\n"
                        "> abort cause=13:*\nend lost\n")
SCRIPT(short_sacks, "up\nsend 100\n> data 1 100\n< sack 1 1048576 length=15, cut 1\nflight 100\n"
                    "< chunk 3 fffffff10010000000010000\nflight 100\n" /* a block is missing */
                    "< chunk 3 fffffff10010000000000001\nflight 100\n" /* a duplicate is missing */
                    "< chunk 3 fffffff10010000000000000\nflight 0\n")
/* A packet with several chunks is acknowledged when all of them are; the loss of one repeats it. */
SCRIPT(middle_of_a_packet,
       "up\nsend 100 count=3\n> data 1 100, data 2 100, data 3 100\n< sack 1 1048576\nflight 300\nlent 1\n"
       "< sack 2 1048576\nflight 300\n< sack 3 1048576\nflight 0\nlent 0\n")
/* Every chunk of it that is acknowledged is an answer: the timer restarts. */
SCRIPT(answer_from_the_middle, "up\nsend 100 count=3\n> *\nwait 200\n< sack 1 1048576\nwait 299\nnone\nwait 1\n"
                               "> data 1 100, data 2 100, data 3 100\n")
SCRIPT(gap_in_a_packet, "up\nsend 100 count=3\n> *\nsend 100 count=2\n> *\n< sack 0 1048576 gap=2-4\nflight 500\n"
                        "< sack 0 1048576 gap=2-5\nflight 300\n< sack 5 1048576\nflight 0\nlent 0\n")
/* Gap blocks out of order or backwards end the list; beyond what was sent they are lies. */
#define FOUR \
    "up\nsend 1000\n> data 1 *\nsend 1000\n> data 2 *\nsend 1000\n> data 3 *\nsend 1000\n> data 4 *\nflight 4000\n"
SCRIPT(blocks, FOUR "< sack 0 1048576 gap=2-2 gap=4-4\nflight 2000\n< sack 0 1048576 gap=2-4\nflight 1000\n"
                    "< sack 4 1048576\nflight 0\nlent 0\n")
SCRIPT(block_beyond,
       FOUR "< sack 0 1048576 gap=2-4\nflight 1000\ndrop\n< sack 0 1048576 gap=2-5\n> abort cause=13:*\nend lost\n")
SCRIPT(block_far_beyond, FOUR "< sack 0 1048576 block=65535-65535\n> abort cause=13:*\nend lost\n")
SCRIPT(block_backwards, FOUR "< sack 0 1048576 gap=3-2\nflight 4000\n< sack 0 1048576 gap=3-3 gap=2-2\nflight 3000\n"
                             "< sack 0 1048576 gap=2-3 gap=3-4\nflight 2000\n")
SCRIPT(block_of_nothing, FOUR "< sack 0 1048576 block=0-2\nflight 4000\n< sack 0 1048576 block=0-0\nflight 4000\n"
                              "< sack 0 1048576 gap=1-1\nflight 4000\n< sack 0 1048576 gap=1-4\nflight 4000\n"
                              "< sack 4 1048576\nflight 0\n")
/* What was acknowledged by gap blocks and is not any more stays acknowledged until the time-out (RFC 9260 6.2.1 D). */
SCRIPT(
    reneged, FOUR
    "wait 10\n< sack 0 1048576 gap=3-4\n> data 1 1000\n> data 2 1000\nflight 2000\n< sack 0 1048576\nflight 2000\n"
    "wait 400\n> data 2 1000 i\n> data 1 1000\n> data 2 1000 i\nnone\n< sack 2 1048576\n> data 3 1000\n> data 4 1000*\n"
    "< sack 4 1048576\nflight 0\nlent 0\nnone\n")

/* Also if nothing else is in flight, and whatever arrives meanwhile. */
SCRIPT(reneged_all, FOUR
       "wait 10\n< sack 0 1048576 gap=2-4\n> data 1 1000\nflight 1000\nwait 10\n< sack 1 1048576\nflight 0\nlent 3\n"
       "wait 299\nnone\nsend 1000\n> data 5 1000\n< sack 1 1048576 gap=5-5\nflight 0\nwait 1\n> data 2 1000\n"
       "> data 3 1000\nnone\n< sack 5 1048576\nflight 0\nlent 0\nnone\nstate established\n")

/* --- losses -------------------------------------------------------------------------------------------------- */

/* RFC 9260 7.2.4: three packets behind it that were acknowledged tell the loss of one; it is sent again at once. */
#define SIX \
    "up\nsend 1456 count=40\n>4 data*\nwait 10\n< sack 2 1048576\n>3 data*\nwait 10\n< sack 4 1048576\n>3 " \
    "data*\nnone\n"
SCRIPT(loses_one,
       SIX "cwnd 7372\nwait 1\n< sack 4 1048576 gap=6-6\nlost 0\nwait 0.1\n< sack 4 1048576 gap=6-7\nlost 0\nwait 0.1\n"
           "< sack 4 1048576 gap=6-8\n> data 5 1456\n")
/* The window is halved once for all losses of a round trip, but to four packets at least (RFC 9260 7.2.3). */
SCRIPT(halves_once,
       "up packet=576\nsend 548 count=60\n< sack 2 1048576\n< sack 4 1048576\n< sack 6 1048576\n< sack 8 1048576\n"
       "< sack 10 1048576\n< sack 12 1048576\n< sack 14 1048576\n< sack 16 1048576\ncwnd 6912\ndrop\n"
       "< sack 16 1048576 gap=18-20\ncwnd 3456\nnone\n< sack 16 1048576 gap=18-20 gap=22-29\ncwnd 3456\n"
       "> data 17 548\n> data 21 548\n")
SCRIPT(halves_to_the_least, SIX "< sack 4 1048576 gap=8-10\n> data 5 1456\n> data 6 1456\n> data 7 1456\ncwnd 5936\n"
                                "wait 10\n< sack 5 1048576 gap=8-10\ncwnd 5936\n")
/* A packet that was sent again is lost again: three sent after it were acknowledged. */
SCRIPT(
    loses_it_again, SIX
    "wait 1\n< sack 4 1048576 gap=6-10\n> data 5 1456\n> data 11 1456\n> data 12 1456\n> data 13 1456\nnone\nwait 0.1\n"
    "< sack 4 1048576 gap=6-12\n> data 14 1456\n> data 15 1456\n> data 16 1456\nnone\nwait 0.1\n< sack 4 1048576 "
    "gap=6-13\n> data 5 "
    "1456\n")
/* RFC 9260 6.3.3: the time-out sends what it can again, and waits twice as long each time. */
SCRIPT(times_out,
       "up\nsend 100\n> data 1 100\nwait 299.999\nnone\nwait 0.001\n> data 1 100\ncwnd 1484\nwait 20000\n>@600 data 1 "
       "100\n"
       ">@1800 data 1 100\n>@4200 data 1 100\n>@9000 data 1 100\n>@18600 data 1 100\nnone\n< sack 1 1048576\nnone\n"
       "flight 0\n")
/* Association.Max.Retrans, RTO.Max */
SCRIPT(gives_up, "up\nsend 100\n> data 1 100\nwait 256500\n>10 data 1 100\nnone\nend lost\nlent 1\ndeadline -1\n"
                 "send 1 error=-32\nfree\nlent 0\n")
SCRIPT(gives_up_not_before,
       "up\nsend 100\n> data 1 100\nwait 256499.999\n>10 data 1 100\nnone\nstate established\n< sack 1 1048576\n"
       "flight 0\nsend 100\n> data 2 100\n")
/* After a time-out everything in flight counts as lost, and comes again in slow start. */
SCRIPT(loses_all, FOUR
       "wait 300\n>@25 data 4 1000 i\n>@300 data 1 1000\n>@300 data 2 1000\nnone\nlost 2\nwait 5\n< sack 2 1048576\n"
       "> data 3 1000\n> data 4 1000*\n< sack 4 1048576\nnone\nflight 0\nlent 0\n")
/* The timer restarts when the first packet in flight is acknowledged (RFC 9260 6.3.2 R3), and ends with the last. */
SCRIPT(timer_begins_anew,
       "up\nsend 100\n> data 1 100\nwait 200\nsend 100\n> data 2 100\n< sack 1 1048576\nwait 299\nnone\n"
       "< sack 2 1048576\nwait 10000\nnone\n")
/* The time-out follows the round trips (RFC 9260 6.3.1): R + 4 * R / 2 after the first. Not of packets sent again. */
SCRIPT(measures, "up\nsend 10\n> data 1 10\nwait 299\n< sack 1 1048576\nsend 10\n> data 2 10\nwait 2000\n> data 2 10\n")

/* The last packet is sent again, and asks for an acknowledgement, after two round trips and 25 ms, once; if it is
 * alone, only to a peer that does not delay its answer for long. The time-out stands. */
SCRIPT(probes_the_last,
       "up\nsend 1456 count=3\n>3 data*\nwait 500\n>@25 data 3 1456 i\n>@300 data 1 1456\n>@300 data 2 1456\nnone\n")
SCRIPT(probes_after_round_trips,
       "up\nsend 1456 count=4\n>4 data*\nwait 10\n< sack 1 1048576\nwait 500\n>@27.5 data 4 1456 i\n"
       ">@300 data 2 1456\n>@300 data 3 1456\nnone\n")
SCRIPT(probes_not_the_only_one, "up\nsend 1456\n> data 1 1456\nwait 299\nnone\nwait 1\n> data 1 1456\n")
SCRIPT(
    probes_in_batches,
    "up\nbatches\nsend 100\n> data 1 100\nwait 500\n>@25 data 1 100 i\n>@300 data 1 100 i\n>@325 data 1 100 i\nnone\n")
SCRIPT(bursts_of_batches,
       "up packet=576\nbatches\nsend 548 count=300\n>4 data*\nnone\n< sack 4 1048576\n>9 data*\nnone\n")

/* --- silence ------------------------------------------------------------------------------------------------- */

/* RFC 9260 8.3: an idle peer is asked; the answer repeats the question. */
SCRIPT(heartbeats, "up\nwait 40000\n>@30300 heartbeat\nnone\n< heartbeat-ack\nwait 30299\nnone\nwait 1\n> heartbeat\n")
SCRIPT(is_asked, "up\n< heartbeat 00010008aabbccdd\n> heartbeat-ack 00010008aabbccdd\n< heartbeat 00010005aa\n"
                 "> heartbeat-ack 00010005aa\n< heartbeat 0001000a000000000000, data 1 10 i\n"
                 "> heartbeat-ack 0001000a000000000000\n> sack 1\n")
/* A HEARTBEAT as long as a packet is answered, one that is longer is not. */
static void long_heartbeats(void **state)
{
    static const uint32_t octets[] = {1184, 1185, 1468, 1469};
    char script[3 * 2 * 1500], info[2 * 1500];

    (void)state;
    for (size_t i = 0; i < sizeof(octets) / sizeof(octets[0]); i++) {
        snprintf(info, sizeof(info), "0001%04x%0*d", octets[i], (int)(2 * octets[i] - 8), 5);
        snprintf(script, sizeof(script), "up\n< heartbeat %s\n%s%s\nnone\n< data 1 10 i\n> sack 1\nstate established\n",
                 info, octets[i] > 1468 ? "none" : "> heartbeat-ack ", octets[i] > 1468 ? "" : info);
        sctpscript_play("long_heartbeats", script);
    }
}

SCRIPT(forged_heartbeat_acks,
       "up\n< heartbeat-ack 00010008aabbccdd\n"
       "< heartbeat-ack 00010010ffffffffffffffff11223344\n< heartbeat-ack 000100100000000000000000aaaaaaaa\n"
       "state established\nnone\n")
/* The round trip is not the peer's to choose: only the time of the last HEARTBEAT counts, and once. */
SCRIPT(invented_heartbeat_acks,
       "up\nwait 30000\n< heartbeat-ack 00010010000000000000000111223344\n< heartbeat\ndeadline 30300\n")
SCRIPT(peer_is_gone, "up\nwait 3000000\n>10 heartbeat\nnone\nend lost\n")

/* Lost packets are sent again from the first on (RFC 9260 7.2.4), in whatever order they were found to be lost. */
static void first_lost(void **state)
{
    struct osctp *o = calloc(1, sizeof(*o));

    (void)state;
    assert_non_null(o);
    o->tx.sent = calloc(OSCTP_PACKETS, sizeof(*o->tx.sent));
    assert_non_null(o->tx.sent);
    osctp_flight_begin(o);
    for (uint32_t place = 1; place <= 100; place++) {
        osctp_sent_at(o, place)->payload = 10;
        osctp_flight_add(o, place);
    }
    osctp_lose(o, 77);
    assert_int_equal(osctp_first_lost(o), 77);
    osctp_lose(o, 3);
    assert_int_equal(osctp_first_lost(o), 3);
    osctp_lose(o, 50);
    assert_int_equal(osctp_first_lost(o), 3);
    osctp_flight_add(o, 3);
    assert_int_equal(osctp_first_lost(o), 50);
    assert_int_equal(o->tx.lost, 2);
    assert_int_equal(o->congestion.flight, 980);
    free(o->tx.sent);
    free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_lost),
        cmocka_unit_test(small_messages),
        cmocka_unit_test(message_by_message),
        cmocka_unit_test(paddings),
        cmocka_unit_test(longest_message),
        cmocka_unit_test(longest_packets),
        cmocka_unit_test(streams),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(store_is_full),
        cmocka_unit_test(tiny_store),
        cmocka_unit_test(most_packets),
        cmocka_unit_test(first_window),
        cmocka_unit_test(first_window_of_short_packets),
        cmocka_unit_test(first_window_of_long_packets),
        cmocka_unit_test(window_not_used),
        cmocka_unit_test(bursts),
        cmocka_unit_test(small_window),
        cmocka_unit_test(exact_window),
        cmocka_unit_test(too_many_messages),
        cmocka_unit_test(closed_window),
        cmocka_unit_test(closed_window_of_the_gone),
        cmocka_unit_test(many_in_flight),
        cmocka_unit_test(acknowledged),
        cmocka_unit_test(old_sack),
        cmocka_unit_test(sack_beyond),
        cmocka_unit_test(sack_far_beyond),
        cmocka_unit_test(sack_of_nothing),
        cmocka_unit_test(short_sacks),
        cmocka_unit_test(middle_of_a_packet),
        cmocka_unit_test(answer_from_the_middle),
        cmocka_unit_test(gap_in_a_packet),
        cmocka_unit_test(blocks),
        cmocka_unit_test(block_beyond),
        cmocka_unit_test(block_far_beyond),
        cmocka_unit_test(block_backwards),
        cmocka_unit_test(block_of_nothing),
        cmocka_unit_test(reneged),
        cmocka_unit_test(reneged_all),
        cmocka_unit_test(loses_one),
        cmocka_unit_test(halves_once),
        cmocka_unit_test(halves_to_the_least),
        cmocka_unit_test(loses_it_again),
        cmocka_unit_test(times_out),
        cmocka_unit_test(gives_up),
        cmocka_unit_test(gives_up_not_before),
        cmocka_unit_test(loses_all),
        cmocka_unit_test(timer_begins_anew),
        cmocka_unit_test(measures),
        cmocka_unit_test(probes_the_last),
        cmocka_unit_test(probes_after_round_trips),
        cmocka_unit_test(probes_not_the_only_one),
        cmocka_unit_test(probes_in_batches),
        cmocka_unit_test(bursts_of_batches),
        cmocka_unit_test(heartbeats),
        cmocka_unit_test(is_asked),
        cmocka_unit_test(long_heartbeats),
        cmocka_unit_test(forged_heartbeat_acks),
        cmocka_unit_test(invented_heartbeat_acks),
        cmocka_unit_test(sacks_in_one_packet),
        cmocka_unit_test(sacks_again),
        cmocka_unit_test(peer_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
