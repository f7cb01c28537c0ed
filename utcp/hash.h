/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hash.h - SipHash-2-4: without the key nobody can predict a hash or provoke collisions. */
#ifndef RDDP_UTCP_HASH_H
#define RDDP_UTCP_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t utcp_hash(const uint64_t key[2], const void *octets, size_t n);

#endif
