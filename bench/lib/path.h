/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path.h - what the benchmarks of paths between network namespaces share. */
#ifndef RDDP_BENCH_PATH_H
#define RDDP_BENCH_PATH_H

#include <netinet/in.h>
#include <stdint.h>

/* Prints `what` and the text of errno, and ends the program. */
_Noreturn void path_die(const char *what);

/* Address 10.NET.0.0 + HOST with a port. */
struct sockaddr_in path_address(uint32_t net, uint32_t host, uint16_t port);

uint64_t path_now_us(void);

#endif
