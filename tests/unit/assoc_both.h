/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_both.h - two associations with memory at both ends, included by each test program. */
#ifndef TESTS_UNIT_ASSOC_BOTH_H
#define TESTS_UNIT_ASSOC_BOTH_H

#include <string.h>

#include "tests/lib/assoc.h"

#define BOTH SCTPDDP_RDMA_AND_NEGOTIATION

enum { OCTETS = 5000 };

static struct net n;

static inline void open_both(enum sctpddp_adaptation active, enum sctpddp_adaptation passive)
{
    net_init(&n, active, passive, NULL, 1);
    net_open(&n);
}

static inline struct mr *region(unsigned access)
{
    return engine_region(&n.engine, OCTETS, access);
}

static inline struct side *of(unsigned i)
{
    return &n.side[i].side;
}

static inline void receive_into(unsigned i, uint64_t wr_id, const struct mr *mr)
{
    struct rddp_sge sge = piece_of(mr, 0, OCTETS);

    assert_int_equal(post_recv(of(i), wr_id, &sge, 1), 0);
}

static inline void ready_to_go(struct mr *from, uint32_t seed)
{
    pattern(from->base, OCTETS, seed);
    engine_remember(&n.engine);
}

#endif
