/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* atomic.c - the peer's atomic operations on memory of ours (RFC 7306 5.1), atomic with respect to every processor. */
#include "core/qp_inner.h"

#include <assert.h>

/* Adds fields separately: the sum without the highest bit of each field carries nothing into the next field, and the
 * highest bit is added without carry. */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t highest)
{
    return ((a & ~highest) + (b & ~highest)) ^ ((a ^ b) & highest);
}

static uint64_t result(uint64_t word, const struct seg_atomic *a)
{
    if (a->op == SEG_FETCH_ADD)
        return add_fields(word, a->data, a->mask);
    if ((a->compare ^ word) & a->compare_mask)
        return word;
    return (word & ~a->mask) | (a->data & a->mask);
}

/* The alignment of the address counts, not that of the offset: a region may begin anywhere (RFC 7306 5.2.1). On demand
 * the kernel copies, and has no atomic operation for that. */
enum fault atomic_check(const struct qp *qp, const struct seg_atomic *a, uint8_t **at)
{
    struct mr *mr;
    enum fault fault = find_remote(qp, a->key, a->offset, ATOMIC_OCTETS, RDDP_ACCESS_REMOTE_ATOMIC, at, &mr);

    if (fault)
        return fault;
    if (mr_is_on_demand(mr))
        return FAULT_RIGHT;
    return (uintptr_t)*at % ATOMIC_OCTETS ? FAULT_UNALIGNED : FAULT_NONE;
}

uint64_t atomic_do(uint8_t *at, const struct seg_atomic *a)
{
    uint64_t *word = (uint64_t *)(void *)at, was;

    assert((uintptr_t)at % ATOMIC_OCTETS == 0);
    was = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &was, result(was, a), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    return was;
}
