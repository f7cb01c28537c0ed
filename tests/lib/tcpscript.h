/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpscript.h - plays a script against one TCP connection in virtual time: packets in, and the packets expected out.
 *
 * A line is one step; # begins a comment. Numbers count from each side's SYN, which is 0.
 *     active | passive [WORD...]                   the connection connects, or was accepted. WORDs limit or set it:
 *         nosack nostamps noscale ecn unstamped window=N mtu=N keep=MS option=KIND giveup=MS
 *     < FLAGS SEQ LENGTH ACK WINDOW [WORD...]      this segment arrives; FLAGS of SFRPAEC. WORDs:
 *         ce mss=N scale=N sack stamp=N block=FROM-TO option=HEX nostamp late=MS (the echo of what was sent MS before
 * the last packet) > FLAGS SEQ LENGTH ACK [WORD...]             the next packet sent is this one; ACK may be -. WORDs:
 *         block=FROM-TO window=N option=HEX echo=N ect
 *     none                                         nothing is sent now
 *     wait MS                                      time passes, timers fire
 *     stop MS                                      this process is stopped, and timers fire afterwards
 *     send N | finish | abort | release N | limit N | refuse N | keep N
 *         the user: N octets in all; refuse and keep apply to the next octets
 *     mtu N | toobig SEQ N                         the path
 *     state NAME | error N | received N | acked N | kept N | emss N | urgent N | cwnd N
 *         is the expected value; emss with an option of 20 octets */
#ifndef TESTS_LIB_TCPSCRIPT_H
#define TESTS_LIB_TCPSCRIPT_H

/* Plays the script. Fails the test with the line that did not hold. */
void tcpscript_play(const char *name, const char *script);

#endif
