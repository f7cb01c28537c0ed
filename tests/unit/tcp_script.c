/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp_script.c - the answers of one connection, packet by packet: states, windows, losses, probes, forged segments. */
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

/* RFC 9293 figure 6; the connection does not use options that the peer does not offer. TCPOPT-3.2-01 */
SCRIPT(connects, "active option=25\n"
                 "> S 0 0 - option=1902 window=65535\n"
                 "none\n"
                 "< SA 0 0 1 1000 mss=1460 sack scale=7 option=1902\n"
                 "> A 1 0 1\n"
                 "state established\n")
SCRIPT(connects_plainly, "active option=25\n"
                         "> S 0 0 -\n"
                         "< SA 0 0 1 2000 nostamp\n"
                         "> A 1 0 1\n"
                         "send 2000\n"
                         "> A 1 536 1\n" /* without an MSS option the MSS is 536 (RFC 9293 3.7.1) */
                         "> A 537 536 1\n"
                         "> A 1073 536 1\n"
                         "> PA 1609 392 1\n"
                         "none\n")
SCRIPT(is_refused, "active\n> S 0 0 -\n< RA 0 0 1 0\nstate closed\nerror -111\nnone\n")
SCRIPT(refused_by_a_stranger, "active\n> S 0 0 -\n< RA 0 0 77 0\nstate syn-sent\n< R 0 0 1 0\nstate syn-sent\n")
/* RFC 9293 figure 8: the connection answers an old acknowledgement with a reset. */
SCRIPT(half_open_peer, "active\n> S 0 0 -\n< A 500 0 300 1000\n> R 300 0 -\nstate syn-sent\n")
SCRIPT(gives_up_connecting, "active\n> S 0 0 -\nwait 1000\n> S 0 0 -\nwait 2000\n> S 0 0 -\nwait 4000\n> S 0 0 -\n"
                            "wait 8000\n> S 0 0 -\nwait 16000\n> S 0 0 -\nwait 32000\n> S 0 0 -\nwait 60000\n"
                            "state closed\nerror -110\n")
/* RFC 9293 figure 7 */
SCRIPT(both_at_once, "active\n> S 0 0 -\n< S 0 0 0 1000 mss=1460 sack\nstate syn-received\n> SA 0 0 1\n"
                     "< SA 0 0 1 1000 mss=1460 sack\nstate established\n> A 1 0 1\nnone\n")

/* RFC 9293 figures 12 and 13 */
SCRIPT(we_finish,
       "passive\nsend 100\nfinish\n> FPA 1 100 1\nstate fin-wait-1\n< A 1 0 102 65535\nstate fin-wait-2\n"
       "< FA 1 0 102 65535\n> A 102 0 2\nstate time-wait\nnone\n"
       "wait 1000\n< FA 1 0 102 65535\n> A 102 0 2\nwait 59999\nstate time-wait\nwait 2\nstate closed\nerror 0\n")
SCRIPT(peer_finishes, "passive\n< FA 1 50 1 65535\n> A 1 0 52\nstate close-wait\nsend 10\n> PA 1 10 52\nfinish\n"
                      "> FA 11 0 52\nstate last-ack\n< A 52 0 12 65535\nstate closed\nerror 0\nreceived 50\n")
SCRIPT(both_finish, "passive\nfinish\n> FA 1 0 1\n< FA 1 0 1 65535\nstate closing\n> A 2 0 2\n< A 2 0 2 65535\n"
                    "state time-wait\n")
SCRIPT(fin_before_its_turn, "passive keep=0\n< FA 101 50 1 65535\nstate established\n> A 1 0 1 block=101-151\n"
                            "< A 1 100 1 65535\nstate close-wait\n> A 1 0 152\nreceived 150\n")
/* Behind the FIN there is nothing, whatever is sent there. */
SCRIPT(octets_behind_the_fin, "passive keep=0\n< FA 101 50 1 65535\n> A 1 0 1 block=101-151\n< A 131 100 1 65535\n"
                              "> A 1 0 1 block=131-151 block=101-151\n< A 1 100 1 65535\n> A 1 0 152\nreceived 150\n"
                              "state close-wait\n")

/* The receiver acknowledges every second full segment at once, and other data after 5 ms (RFC 9293 3.8.6.3). */
SCRIPT(delayed_acks, "passive\n< A 1 1000 1 65535\nnone\n< A 1001 1000 1 65535\n> A 1 0 2001\n"
                     "< A 2001 1000 1 65535\nnone\nwait 4\nnone\nwait 1\n> A 1 0 3001\nnone\n")
/* RFC 2018 4, RFC 2883 4: SACK blocks for segments out of order and for duplicates. */
SCRIPT(tells_holes, "passive\n< A 1001 1000 1 65535\n> A 1 0 1 block=1001-2001\n< A 3001 1000 1 65535\n"
                    "> A 1 0 1 block=3001-4001 block=1001-2001\n< A 1001 1000 1 65535\n"
                    "> A 1 0 1 block=1001-2001 block=3001-4001 block=1001-2001\n"
                    "< A 1 1000 1 65535\n> A 1 0 2001 block=3001-4001\n< A 2001 1000 1 65535\n> A 1 0 4001\n"
                    "< A 1 1000 1 65535\n> A 1 0 4001 block=1-1001\nreceived 4000\n")
/* A pending acknowledgement becomes urgent, which ends a batch of input, when it has no more room for SACK blocks or
 * covers too many segments. */
SCRIPT(many_holes, "passive\n< A 1001 10 1 65535\nurgent 0\n< A 2001 10 1 65535\nurgent 1\n"
                   "> A 1 0 1 block=2001-2011 block=1001-1011\nurgent 0\n< A 2001 10 1 65535\nurgent 0\n"
                   "< A 3001 10 1 65535\nurgent 1\n> A 1 0 1 block=2001-2011 block=3001-3011 block=2001-2011\nnone\n")
/* A window has few very long segments, and the sender must not wait for the delayed acknowledgement of one: each is
 * acknowledged, also behind shorter ones, and two are urgent. */
SCRIPT(long_segments, "passive window=400000 mtu=65000\n< A 1 32767 1 65535\nnone\nwait 5\n> A 1 0 32768\n"
                      "< A 32768 64000 1 65535\nurgent 0\n< A 96768 64000 1 65535\nurgent 1\n> A 1 0 160768\n"
                      "urgent 0\nnone\n< A 160768 64000 1 65535\n> A 1 0 224768\n< A 224768 100 1 65535\nnone\n")
SCRIPT(many_segments,
       "passive\n< A 1 100 1 65535\n< A 101 100 1 65535\n< A 201 100 1 65535\n< A 301 100 1 65535\n"
       "< A 401 100 1 65535\n< A 501 100 1 65535\n< A 601 100 1 65535\nurgent 0\n< A 701 100 1 65535\nurgent 1\n"
       "> A 1 0 801\nurgent 0\nnone\n")
/* The SACK blocks list the latest range first. The sender does not take this order for reordering on the path and
 * detects the loss at once. */
SCRIPT(two_new_blocks,
       "passive\nsend 6916\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> A 2965 988 1\n> A 3953 988 1\n"
       "> A 4941 988 1\n> PA 5929 988 1\nwait 10\n< A 1 0 1 65535 block=4941-6917 block=989-3953\n"
       "> A 1 988 1\n> A 3953 988 1\nnone\n")

/* Octets that the user refuses, for example for a wrong CRC, count as not received (mpa.txt 9). */
SCRIPT(refused_octets,
       "passive\nrefuse 1\n< A 1 1000 1 65535\n> A 1 0 1\nreceived 0\n< A 1 1000 1 65535\nreceived 1000\n"
       "refuse 1\n< A 2001 1000 1 65535\n> A 1 0 1001\n< A 2001 1000 1 65535\n> A 1 0 1001 block=2001-3001\n")
/* The octets that came first stay: the receiver passes up only the new octets of an overlap. MPA-5.1-05 MPA-5.1-06 */
SCRIPT(overlaps, "passive keep=0\nkeep 1\n< A 501 500 1 65535\n> A 1 0 1 block=501-1001\n< A 1 2000 1 65535\n"
                 "> A 1 0 2001 block=501-1001\nreceived 2000\nkept 2000\n")

/* Octets that come again are reported first (RFC 2883 4.1.1). */
SCRIPT(tells_repeats, "passive keep=0\n< A 1 1000 1 65535\nnone\n< A 1001 1000 1 65535\n> A 1 0 2001\n"
                      "< A 1 1000 1 65535\n> A 1 0 2001 block=1-1001\nreceived 2000\nnone\n")

/* A peer that acknowledges octet by octet gets no segment for each of them (RFC 3465 2.1). */
SCRIPT(acked_by_octets, "passive\nsend 20000\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> A 2965 988 1\n"
                        "> A 3953 988 1\n> A 4941 988 1\n> A 5929 988 1\n> A 6917 988 1\n> A 7905 988 1\n"
                        "> A 8893 988 1\nnone\nwait 1\n< A 1 0 2 65535\nnone\n< A 1 0 3 65535\nnone\n"
                        "< A 1 0 4 65535\nnone\n< A 1 0 5 65535\nnone\nacked 4\n")

/* In recovery the sender goes on in proportion to what arrives, with seven tenths of its window (RFC 6937 3.1). */
SCRIPT(goes_on_in_recovery,
       "passive\nsend 20000\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> A 2965 988 1\n> A 3953 988 1\n"
       "> A 4941 988 1\n> A 5929 988 1\n> A 6917 988 1\n> A 7905 988 1\n> A 8893 988 1\nnone\nwait 10\n"
       "< A 1 0 1 65535 block=989-3953\n> A 1 988 1\nnone\n"
       "< A 1 0 1 65535 block=989-4941\n> A 9881 988 1\nnone\n< A 1 0 1 65535 block=989-5929\n> A 10869 988 1\nnone\n")

/* Three segments selectively acknowledged behind a hole make the sender repeat the lost one at once (RFC 8985 6.2). */
SCRIPT(loses_one,
       "passive\nsend 5000\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> A 2965 988 1\n> A 3953 988 1\n"
       "> PA 4941 60 1\nwait 10\n< A 1 0 1 65535 block=989-1977\nnone\n< A 1 0 1 65535 block=989-2965\nnone\n"
       "< A 1 0 1 65535 block=989-3953\n> A 1 988 1\nnone\nwait 10\n< A 1 0 5001 65535\nacked 5000\nnone\n")
/* Without SACK the sender needs three duplicate acknowledgements, and a partial acknowledgement reveals the next
 * loss (RFC 6582). */
SCRIPT(loses_two_without_sack, "passive nosack\nsend 4940\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> A 2965 988 1\n"
                               "> PA 3953 988 1\nwait 10\n< A 1 0 1 65535\n< A 1 0 1 65535\nnone\n< A 1 0 1 65535\n"
                               "> A 1 988 1\nnone\nwait 10\n< A 1 0 1977 65535\n> A 1977 988 1\nnone\nwait 10\n"
                               "< A 1 0 4941 65535\nacked 4940\n")
/* The last segment is lost: the sender sends a probe after two round trips and the time of a delayed ACK (RFC 8985
 * 7). The peer has no reason to delay its answer to the probe, so the next timeout is short. Each timeout is twice the
 * last (RFC 6298 5.5), and after four of them at least what was measured says. */
SCRIPT(loses_the_last, "passive\nsend 100\n> PA 1 100 1\nwait 10\n< A 1 0 101 65535\nsend 200\n> PA 101 100 1\n"
                       "wait 59\nnone\nwait 1\n> PA 101 100 1\nnone\nwait 49\nnone\nwait 2\n> PA 101 100 1\n"
                       "wait 98\nnone\nwait 3\n> PA 101 100 1\nwait 198\nnone\nwait 3\n> PA 101 100 1\n"
                       "wait 398\nnone\nwait 3\n> PA 101 100 1\nwait 3350\nnone\nwait 20\n> PA 101 100 1\n"
                       "< A 1 0 201 65535\nacked 200\nnone\n")
/* If more data wait than the window allows, the probe carries new data (RFC 8985 7.3). */
SCRIPT(probes_with_new, "passive\nsend 988\n> PA 1 988 1\nwait 10\n< A 1 0 989 65535\nsend 20000\n> A 989 988 1\n"
                        "> A 1977 988 1\n> A 2965 988 1\n> A 3953 988 1\n> A 4941 988 1\n> A 5929 988 1\n"
                        "> A 6917 988 1\n> A 7905 988 1\n> A 8893 988 1\n> A 9881 988 1\nnone\nwait 19\nnone\n"
                        "wait 1\n> A 10869 988 1\nnone\n")
/* A retransmission is lost and nothing else is in flight: a probe detects the loss before the timeout. */
SCRIPT(loses_it_again,
       "passive\nsend 4940\n> A 1 988 1\n> A 989 988 1\n> A 1977 988 1\n> A 2965 988 1\n> PA 3953 988 1\nwait 10\n"
       "< A 1 0 1 65535 block=989-4941\n> A 1 988 1\nnone\nwait 19\nnone\nwait 1\n> A 1 988 1\nwait 10\n"
       "< A 1 0 4941 65535\nacked 4940\nnone\n")
/* The path was silent for longer than the time-out, and nothing was lost: the acknowledgement echoes what was sent
 * first. The sender repeats no more, and has its window again (RFC 3522, RFC 9438 4.9.1). */
#define SILENT_PATH \
    "passive\nsend 988\n> PA 1 988 1\nwait 10\n< A 1 0 989 65535\nsend 30000\n> A 989 988 1\n> A 1977 988 1\n" \
    "> A 2965 988 1\n> A 3953 988 1\n> A 4941 988 1\n> A 5929 988 1\n> A 6917 988 1\n> A 7905 988 1\n" \
    "> A 8893 988 1\n> A 9881 988 1\nnone\nwait 20\n> A 10869 988 1\nnone\nwait 51\n> A 989 988 1\nnone\n"
SCRIPT(timed_out_too_early,
       SILENT_PATH "wait 5\n< A 1 0 2965 65535 late=71\n> A 11857 988 1\n> A 12845 988 1\n> A 13833 988 1\nnone\n"
                   "< A 1 0 11857 65535\n> A 14821 988 1\n")
/* The acknowledgement echoes what was sent again: the rest was lost as well, and comes in slow start. */
SCRIPT(timed_out_rightly, SILENT_PATH "wait 5\n< A 1 0 1977 65535\n> A 1977 988 1\n> A 2965 988 1\nnone\n")
/* Without timestamps that is unknown. */
SCRIPT(timed_out_unstamped,
       "passive nostamps\nsend 1000\n> PA 1 1000 1\nwait 10\n< A 1 0 1001 65535\nsend 3000\n> A 1001 1000 1\n"
       "> PA 2001 1000 1\nwait 20\n> PA 2001 1000 1\nnone\nwait 51\n> A 1001 1000 1\nnone\n"
       "< A 1 0 2001 65535\n> PA 2001 1000 1\nnone\n")

/* The window says what the path carries only if it was used: it does not grow while the application sends less (RFC
 * 9438 4.2, RFC 7661), and it does when it was what limited sending. */
SCRIPT(window_not_used,
       "passive\nsend 988\n> PA 1 988 1\nwait 10\n< A 1 0 989 65535\nsend 1976\n> PA 989 988 1\nwait 10\n"
       "< A 1 0 1977 65535\nsend 2964\n> PA 1977 988 1\nwait 10\n< A 1 0 2965 65535\nsend 3952\n> PA 2965 988 1\n"
       "wait 10\n< A 1 0 3953 65535\nsend 40000\n> A 3953 988 1\n> A 4941 988 1\n> A 5929 988 1\n> A 6917 988 1\n"
       "> A 7905 988 1\n> A 8893 988 1\n> A 9881 988 1\n> A 10869 988 1\n> A 11857 988 1\n> A 12845 988 1\nnone\n"
       "wait 10\n< A 1 0 5929 65535\n> A 13833 988 1\n> A 14821 988 1\n> A 15809 988 1\n> A 16797 988 1\nnone\n")
/* After a hole the receiver acknowledges some segments without delay. */
SCRIPT(prompt_acks, "passive\n< A 1001 1000 1 65535\n> A 1 0 1 block=1001-2001\n< A 1 1000 1 65535\n> A 1 0 2001\n"
                    "< A 2001 1000 1 65535\n> A 1 0 3001\n< A 3001 1000 1 65535\n> A 1 0 4001\n")
/* The peer is silent: the connection gives up after its timeout. */
SCRIPT(peer_is_gone, "passive giveup=1000\nsend 100\n> PA 1 100 1\nwait 1000\n> PA 1 100 1\nwait 2000\n> RA 101 0 1\n"
                     "state closed\nerror -110\n")

/* The sender probes a closed window and sends no data beyond the window (RFC 9293 3.8.6.1). */
SCRIPT(window_closes,
       "passive\nsend 3000\n< A 1 0 1 1500\n> A 1 988 1\nnone\n< A 1 0 989 0\nnone\nwait 1000\n> A 988 0 1\n"
       "none\n< A 1 0 989 0\nnone\nwait 2000\n> A 988 0 1\n< A 1 0 989 65535\n> A 989 988 1\n"
       "> A 1977 988 1\n> PA 2965 36 1\nnone\n")
/* While the window stays closed, each probe waits twice as long as the one before, though all are answered. */
SCRIPT(window_stays_closed,
       "passive\nsend 3000\n< A 1 0 1 988\n> A 1 988 1\nnone\n< A 1 0 989 0\nnone\nwait 201\n> A 988 0 1\n"
       "none\n< A 1 0 989 0\nnone\nwait 399\nnone\nwait 2\n> A 988 0 1\nnone\n< A 1 0 989 0\nnone\nwait 799\n"
       "none\nwait 2\n> A 988 0 1\n< A 1 0 989 65535\n> A 989 988 1\n> A 1977 988 1\n> PA 2965 36 1\n"
       "< A 1 0 3001 0\nsend 3010\nnone\nwait 199\nnone\nwait 2\n> A 3000 0 1\n")
/* A window that shrinks below what was sent lets nothing new out (RFC 9293 3.8.6); what may be lost is sent again. */
SCRIPT(window_shrinks,
       "passive\nsend 2964\n> A 1 988 1\n> A 989 988 1\n> PA 1977 988 1\nwait 10\n< A 1 0 989 500\nsend 9000\nnone\n"
       "wait 250\n> A 1977 988 1\nnone\nwait 1000\n> A 989 988 1\nnone\n< A 1 0 1977 500\n> A 1977 988 1\nnone\n"
       "< A 1 0 2965 65535\n> A 2965 988 1\n")
/* The sender waits for a larger window before it sends a small piece (RFC 9293 3.8.6.2.1). */
SCRIPT(small_window,
       "passive\nsend 3000\n< A 1 0 1 100\nnone\nwait 1000\n> A 1 100 1\nnone\n< A 1 0 101 65535\n> A 101 988 1\n")
/* Acknowledgements of single octets do not have the whole segment sent again. */
SCRIPT(octet_by_octet,
       "passive nosack\nsend 1976\n> A 1 988 1\n> PA 989 988 1\nwait 1000\n> A 1 988 1\n< A 1 0 2 65535\nnone\n"
       "< A 1 0 3 65535\nnone\n< A 1 0 989 65535\n> PA 989 988 1\nnone\n")
/* However many acknowledgements repeat a small window, the small piece leaves when it is due. */
SCRIPT(small_window_repeated,
       "passive\nsend 988\n> PA 1 988 1\nwait 10\n< A 1 0 989 100\nsend 3000\nnone\nwait 150\n< A 1 0 989 100\nnone\n"
       "wait 100\n> A 989 100 1\n< A 1 0 1089 100\nnone\nwait 150\n< A 1 0 1089 100\nnone\nwait 100\n"
       "> A 1089 100 1\n")
/* A window that was closed while there was nothing to send is probed before the peer is given up, and it may answer as
 * often as it likes. */
SCRIPT(closed_when_idle, "passive giveup=1000\nsend 988\n> PA 1 988 1\nwait 10\n< A 1 0 989 0\nwait 5000\nnone\n"
                         "send 1000\nnone\nwait 300\n> A 988 0 1\n< A 1 0 989 0\nnone\nwait 500\n> A 988 0 1\n"
                         "< A 1 0 989 0\nnone\nwait 900\n> A 988 0 1\n< A 1 0 989 0\nnone\nwait 1700\n> A 988 0 1\n"
                         "none\nstate established\nwait 3500\n> RA 989 0 1\nstate closed\nerror -110\n")
/* Time in which this process did not run does not count against the peer. */
SCRIPT(we_were_stopped, "passive giveup=1000\nsend 100\n> PA 1 100 1\nstop 5000\n> PA 1 100 1\nstate established\n"
                        "< A 1 0 101 65535\nnone\nsend 200\n> PA 101 100 1\n")
SCRIPT(we_were_stopped_at_a_window,
       "passive giveup=1000\nsend 100\n> PA 1 100 1\nwait 10\n< A 1 0 101 0\nsend 200\nnone\n"
       "wait 300\n> A 100 0 1\nnone\nstop 5000\n> A 100 0 1\nstate established\n")
/* A peer that cannot scale is not told again and again of a window that no header can say. */
SCRIPT(more_than_a_header_says,
       "active window=1000000 nostamps\n> S 0 0 -\n< SA 0 0 1 65535\n> A 1 0 1 window=65535\nkeep 1\n"
       "< A 1 10 1 65535\nwait 40\n> A 1 0 11 window=65525\nrelease 5\nnone\nrelease 5\nnone\n")
/* The receive window closes while the user keeps octets, and opens again only by a worthwhile amount. MPA-13-05 */
SCRIPT(we_read_slowly,
       "passive window=4000\nkeep 1\n< A 1 2000 1 65535\nnone\n< A 2001 2000 1 65535\n> A 1 0 4001 window=0\n"
       "< A 4001 1 1 65535\n> A 1 0 4001 window=0\nrelease 900\nnone\nrelease 1100\n"
       "> A 1 0 4001 window=2000\nkept 2000\nnone\n")

/* What the user keeps nothing of ends at a limit, too, and the peer learns when it moves (RFC 9293 3.8.6.2.2). */
SCRIPT(limit_moves, "passive window=4000\nlimit 4000\n< A 1 2000 1 65535\nnone\n< A 2001 2000 1 65535\n"
                    "> A 1 0 4001 window=0\nlimit 4900\nnone\nlimit 6000\n> A 1 0 4001 window=2000\nnone\n")

/* RFC 5961: an exact reset ends the connection. A reset inside the window and any SYN are challenged; a reset
 * outside the window is ignored. */
SCRIPT(forged_resets, "passive\n< R 2 0 0 0\n> A 1 0 1\nstate established\n< R 70000 0 0 0\nnone\n< R 1 0 0 0\n"
                      "state closed\nerror -104\n")
SCRIPT(forged_syns, "passive\n< S 1 0 0 1000\n> A 1 0 1\n< S 30000 0 0 1000\n> A 1 0 1\nstate established\n")
SCRIPT(forged_acks, "passive\nsend 100\n> PA 1 100 1\n< A 1 500 200 65535\n> A 101 0 1\nreceived 0\nacked 0\n"
                    "< A 1 500 4294800000 65535\n> A 101 0 1\nreceived 0\n")
/* The connection sends at most ten challenges a second. */
SCRIPT(many_challenges, "passive\n< S 1 0 0 1000\n> A 1 0 1\n< S 1 0 0 1000\n> A 1 0 1\n< S 1 0 0 1000\n> A 1 0 1\n"
                        "< S 1 0 0 1000\n> A 1 0 1\n< S 1 0 0 1000\n> A 1 0 1\n< S 1 0 0 1000\n> A 1 0 1\n"
                        "< S 1 0 0 1000\n> A 1 0 1\n< S 1 0 0 1000\n> A 1 0 1\n< S 1 0 0 1000\n> A 1 0 1\n"
                        "< S 1 0 0 1000\n> A 1 0 1\n< S 1 0 0 1000\nnone\nwait 1001\n< S 1 0 0 1000\n> A 1 0 1\n")
/* RFC 7323 5: the receiver drops an old duplicate by its timestamp, and a segment without a timestamp. MPA-5.1-04 */
SCRIPT(old_stamps, "passive\nwait 100\n< A 1 10 1 65535\nwait 40\n> A 1 0 11\n< A 11 10 1 65535 stamp=900\n> A 1 0 11\n"
                   "received 10\n< A 11 10 1 65535 nostamp\nnone\nreceived 10\n")
/* Of a connection that another TCP began the last timestamp is not known: 0 is echoed, and PAWS begins with the next
 * segment. */
SCRIPT(unknown_stamp, "passive unstamped\nsend 10\n> PA 1 10 1 echo=0\n< A 1 5 11 65535 stamp=-5\nwait 5\n"
                      "> A 11 0 6 echo=-5\n< A 6 5 11 65535 stamp=-90\n> A 11 0 6 echo=-5\nreceived 5\n")
SCRIPT(outside_the_window, "passive window=4000\n< A 5000 10 1 65535\n> A 1 0 1\nreceived 0\n< A 3901 200 1 65535\n"
                           "> A 1 0 1 block=3901-4001\n")

/* RFC 9293 3.8.4 */
SCRIPT(keeps_alive,
       "passive keep=1000\nwait 999\nnone\nwait 1\n> A 0 0 1\nnone\n< A 1 0 1 65535\nwait 1000\n> A 0 0 1\n"
       "wait 10000\n> A 0 0 1\nwait 10000\n> A 0 0 1\nwait 10000\n> A 0 0 1\nwait 10000\n> A 0 0 1\n"
       "wait 10000\n> A 0 0 1\nwait 10000\n> RA 1 0 1\nstate closed\nerror -110\n")
SCRIPT(is_probed, "passive\n< A 0 0 1 65535\n> A 1 0 1\nnone\n")

/* The path MTU shrinks: the sender cuts the segments in flight again (RFC 1191) if the ICMP message quotes one of
 * them. MPA-4-02 MPA-10.1-03 MPA-13-06 */
SCRIPT(
    narrower_path,
    "passive\nemss 968\nsend 1976\n> A 1 988 1\n> PA 989 988 1\nnone\ntoobig 5000 600\nnone\ntoobig 1 600\nemss 528\n"
    "> A 1 548 1\n> A 549 548 1\n> A 1097 548 1\n> PA 1645 332 1\nnone\n"
    "< A 1 0 989 65535\n< A 1 0 1977 65535\nacked 1976\nnone\n")
/* No message makes segments longer than they are. */
SCRIPT(wider_by_a_message, "passive\nsend 988\n> PA 1 988 1\ntoobig 1 600\n> A 1 548 1\n> PA 549 440 1\n"
                           "toobig 549 900\nemss 528\nnone\n")
SCRIPT(absurdly_narrow, "passive\nsend 988\n> PA 1 988 1\ntoobig 1 68\n> A 1 524 1\n")
SCRIPT(aborts, "passive\nsend 10\n> PA 1 10 1\nabort\n> RA 11 0 1\nstate closed\nerror -103\nnone\n")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connects),
        cmocka_unit_test(connects_plainly),
        cmocka_unit_test(is_refused),
        cmocka_unit_test(refused_by_a_stranger),
        cmocka_unit_test(half_open_peer),
        cmocka_unit_test(gives_up_connecting),
        cmocka_unit_test(both_at_once),
        cmocka_unit_test(we_finish),
        cmocka_unit_test(peer_finishes),
        cmocka_unit_test(both_finish),
        cmocka_unit_test(fin_before_its_turn),
        cmocka_unit_test(octets_behind_the_fin),
        cmocka_unit_test(delayed_acks),
        cmocka_unit_test(tells_holes),
        cmocka_unit_test(many_holes),
        cmocka_unit_test(long_segments),
        cmocka_unit_test(many_segments),
        cmocka_unit_test(two_new_blocks),
        cmocka_unit_test(refused_octets),
        cmocka_unit_test(overlaps),
        cmocka_unit_test(tells_repeats),
        cmocka_unit_test(acked_by_octets),
        cmocka_unit_test(goes_on_in_recovery),
        cmocka_unit_test(loses_one),
        cmocka_unit_test(loses_two_without_sack),
        cmocka_unit_test(loses_the_last),
        cmocka_unit_test(probes_with_new),
        cmocka_unit_test(loses_it_again),
        cmocka_unit_test(timed_out_too_early),
        cmocka_unit_test(timed_out_rightly),
        cmocka_unit_test(timed_out_unstamped),
        cmocka_unit_test(window_not_used),
        cmocka_unit_test(prompt_acks),
        cmocka_unit_test(peer_is_gone),
        cmocka_unit_test(window_closes),
        cmocka_unit_test(window_stays_closed),
        cmocka_unit_test(window_shrinks),
        cmocka_unit_test(octet_by_octet),
        cmocka_unit_test(small_window_repeated),
        cmocka_unit_test(closed_when_idle),
        cmocka_unit_test(we_were_stopped),
        cmocka_unit_test(we_were_stopped_at_a_window),
        cmocka_unit_test(more_than_a_header_says),
        cmocka_unit_test(small_window),
        cmocka_unit_test(we_read_slowly),
        cmocka_unit_test(limit_moves),
        cmocka_unit_test(forged_resets),
        cmocka_unit_test(forged_syns),
        cmocka_unit_test(forged_acks),
        cmocka_unit_test(many_challenges),
        cmocka_unit_test(old_stamps),
        cmocka_unit_test(unknown_stamp),
        cmocka_unit_test(outside_the_window),
        cmocka_unit_test(keeps_alive),
        cmocka_unit_test(is_probed),
        cmocka_unit_test(narrower_path),
        cmocka_unit_test(wider_by_a_message),
        cmocka_unit_test(absurdly_narrow),
        cmocka_unit_test(aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
