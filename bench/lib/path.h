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

/* Bind the calling thread to one of the processors that the program may use, counted from 0 and beginning again behind
 * the last; let it run on all of them again. A thread that another wakes often runs on its waker's processor, and
 * interrupts it. */
void path_pin(unsigned processor);
void path_unpin(void);

/* Makes two network namespaces, which go with this process, and a veth pair of this MTU between their addresses
 * 10.NET.0.1 and 10.NET.0.2. Stores their descriptors. The process is in the second one then. */
void path_make_namespaces(uint32_t net, uint32_t mtu, int space[2]);

#endif
