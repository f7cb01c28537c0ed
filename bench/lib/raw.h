/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw.h - what the path of the TUN benchmarks carries without any TCP. */
#ifndef RDDP_BENCH_RAW_H
#define RDDP_BENCH_RAW_H

#include <stdint.h>

/* Returns the payload in Gb/s of packets of `mtu` octets that pass two TUN devices and the kernel forwarding between
 * them. One thread writes the same packet over and over, at most `ahead` octets before the other, which reads and drops
 * it. */
double raw_goodput(uint32_t mtu, uint32_t ahead);

#endif
