/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clang-format off */
/* sctpscript.h - plays a script against one association of osctp in virtual time: packets in, and the packets expected
 * out.
 *
 * SCRIPT_VERBOSE in the environment shows what is sent. A line is one step; # begins a comment. Packets are text as in
 * sctptext.h. After each step but "<+" the association sends all that it can.
 *     active | passive [WORD...]    the association connects, or its host listens. WORDs of its attributes: packet=N
 *                                   window=N store=N streams=N indication=N retries=N initmax=MS ecn
 *     up [passive] [WORD...]        the same, and sets it up with a peer of window 1048576. WORDs of the peer: rwnd=N
 *     < PACKET                      this packet arrives; <+: the host has more input before it sends
 *     ? PACKET                      a packet arrives that belongs to no association
 *     > PATTERN                     the next packet sent is this one, as fnmatch() matches; >N PATTERN: the next N
 *     >@MS PATTERN                  the same, and it was sent MS after the last step that was not one of these
 *     none                          nothing else was sent
 *     drop                          forgets what was sent
 *     wait MS                       time passes, timers fire
 *     send OCTETS [count=N] [stream=N] [ppid=N] [error=N]    error: the result, which is else 0
 *     marked                        the next packet in has the mark of congestion
 *     window N | shutdown | abort WORD | free | batches
 *     refuse N | scarce N           N chunks are not taken; N times no memory is lent
 *     key N | our tag N             key of the cookies; the tag of associations to come
 *     state NAME | end NAME | NAME N    is the expected value. Names: marks ect taken skipped restarts urgent space
 *                                   reason indication flight cwnd looks lost lent payload deadline (MS from now, -1:
 *                                   none) */
/* clang-format on */
#ifndef TESTS_LIB_SCTPSCRIPT_H
#define TESTS_LIB_SCTPSCRIPT_H

/* Plays the script. Fails the test with the line that did not hold. */
void sctpscript_play(const char *name, const char *script);

#endif
