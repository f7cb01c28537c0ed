/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* psn.h - packet sequence numbers: 24 bits on the wire, 64 bits that never wrap inside. */
#ifndef RDDP_ROCE_PSN_H
#define RDDP_ROCE_PSN_H

#include <stdint.h>

#include "roce/bth.h"

/* Where the count begins for a first PSN: numbers just before it stay above 0. */
static inline uint64_t psn_first(uint32_t psn)
{
    return (uint64_t)1 << 24 | (psn & BTH_MASK24);
}

/* Returns the position with this PSN that is nearest to `near`: at most 2^23 before it, and fewer behind it. */
static inline uint64_t psn_unwrap(uint64_t near, uint32_t psn)
{
    uint32_t ahead = (psn - (uint32_t)near) & BTH_MASK24;

    return ahead < 1u << 23 ? near + ahead : near + ahead - (1u << 24);
}

static inline uint32_t psn_wire(uint64_t position)
{
    return (uint32_t)position & BTH_MASK24;
}

/* How many packets a message of this length has: an empty one has one. */
static inline uint32_t psn_packets(uint32_t length, uint32_t mtu)
{
    return length ? (uint32_t)(((uint64_t)length + mtu - 1) / mtu) : 1;
}

#endif
