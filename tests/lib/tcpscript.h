/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpscript.h - plays a script against one TCP connection in virtual time: what comes in, and what has to go out.
 *
 * A line is one step; # begins a comment. Numbers count from each side's SYN, which is 0.
 *     active | passive [WORD...]  begins: the connection connects, or has been accepted. WORDs take something away or
 *                                 set it: nosack nostamps noscale window=N mtu=N keep=MS option=KIND giveup=MS
 *     < FLAGS SEQ LENGTH ACK WINDOW [WORD...]   this segment comes in; FLAGS of SFRPA; WORDs: mss=N scale=N sack
 * stamp=N block=FROM-TO option=HEX nostamp > FLAGS SEQ LENGTH ACK [WORD...]          the next packet that goes out is
 * this one; ACK may be -; WORDs: block=FROM-TO window=N option=HEX none                        nothing goes out now
 *     wait MS                     time passes, timers fire
 *     send N | finish | abort | release N | refuse N | keep N     the user: N octets in all; of the next octets
 *     mtu N | toobig SEQ N        the path
 *     state NAME | error N | received N | acked N | kept N | emss N | urgent N      is to be so; emss with an
 *                                 option of 20 octets */
#ifndef TESTS_LIB_TCPSCRIPT_H
#define TESTS_LIB_TCPSCRIPT_H

/* Fails the test with the line that did not hold. */
void tcpscript_play(const char *name, const char *script);

#endif
