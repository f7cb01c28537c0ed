/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc_peer.h - an association whose peer the test plays, included by each test program. */
#ifndef TESTS_UNIT_ASSOC_PEER_H
#define TESTS_UNIT_ASSOC_PEER_H

#include <string.h>

#include "base/bytes.h"
#include "tests/lib/assoc.h"

#define BOTH SCTPDDP_RDMA_AND_NEGOTIATION

enum { OCTETS = 1000, VICTIM = 1 };

static struct net n;
static uint8_t data[NET_PAYLOAD];

static inline void open_both(enum sctpddp_adaptation peer, enum sctpddp_adaptation own)
{
    net_init(&n, peer, own, NULL, 1);
    net_open(&n);
    pattern(data, sizeof(data), 77);
}

static inline struct assoc *victim(void)
{
    return &n.side[VICTIM].assoc;
}

/* Returns the AWS of the peer's next chunk: if both negotiate, the HELLO was the first. */
static inline uint32_t next_aws(void)
{
    return (uint32_t)victim()->window.next;
}

static inline struct sctpddp_chunk placed(uint32_t mode, uint32_t tag, uint64_t offset, uint32_t length)
{
    return (struct sctpddp_chunk){
        .mode = mode, .tag = tag, .offset = offset, .aws = next_aws(), .data = data, .length = length};
}

static inline void give(enum sctpddp_adaptation peer, struct sctpddp_chunk chunk)
{
    net_chunk(&n, VICTIM, peer, &chunk);
}

/* Checks that chunks after the ABORT are dropped: not even a correct one is placed. */
static inline void expect_abort(enum sctpddp_adaptation peer, enum fault fault, struct mr *mr)
{
    net_expect_abort(&n, VICTIM, fault);
    if (mr)
        give(peer, placed(peer < SCTPDDP_RDMA_ONLY ? (uint32_t)peer : SCTPDDP_MODE_RDMA, mr->key, mr->start, 10));
    engine_expect(&n.engine);
    expect_quiet(&n.side[VICTIM].side.recv_cq);
    net_fini(&n);
}

#endif
