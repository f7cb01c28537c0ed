/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw_pair.h - a TCP connection over loopback without rddp, to a process that is started for it. */
#ifndef RDDP_BENCH_RAW_PAIR_H
#define RDDP_BENCH_RAW_PAIR_H

#include <sys/types.h>

struct raw_pair {
    int fd;
    pid_t child;
};

/* Starts a process that calls `other` with its end of the connection, which blocks, and ends when that returns, or with
 * the caller. Nagle is off at both ends. Ends the program on failure. */
void raw_pair_open(struct raw_pair *pair, void (*other)(int fd, void *of), void *of);

/* Closes this end and waits until the process has ended. */
void raw_pair_close(const struct raw_pair *pair);

#endif
