/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* null_memory.h - what lies behind all null regions of the process. */
#ifndef RDDP_API_NULL_MEMORY_H
#define RDDP_API_NULL_MEMORY_H

#include <stdint.h>

/* Stores the addresses of MR_NULL_OCTETS of zeroes, which can be read alone, and of as many that may be written by
 * anyone at any time. They are made by the first call and stay; all of it takes 16 MiB of memory and 8 GiB of address
 * space. Returns 0 or -ENOMEM. */
int null_memory(uint8_t **zeroes, uint8_t **sink);

#endif
