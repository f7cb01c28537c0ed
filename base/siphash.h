/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siphash.h - SipHash-2-4: without the key no one can predict a hash or provoke collisions. */
#ifndef RDDP_BASE_SIPHASH_H
#define RDDP_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint64_t key[2], const void *octets, size_t n);

#endif
