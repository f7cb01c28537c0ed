/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw_tcp.h - two processes that look at memory, into which a thread of each puts what comes by TCP: what a program
 * that waits at its memory can have on this machine, whatever library writes there. */
#ifndef RDDP_BENCH_RAW_TCP_H
#define RDDP_BENCH_RAW_TCP_H

#include <stddef.h>

/* Sends counts of eight octets to and fro for `seconds`, each when the other end's has come. Stores half of each round
 * trip, at most `most` of them, and returns how many. Ends the program on failure. */
size_t raw_tcp_trips(double seconds, double *took_us, size_t most);

#endif
