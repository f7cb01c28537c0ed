/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* words.c - atomics on one word of the peer. Nothing else changes it, so the value that each atomic finds is known when
 * it is posted. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/model.h"
#include "tests/sim/lib/report.h"

/* Returns the word's address in the region, a multiple of 8. */
static uint8_t *word_at(const struct stack *s)
{
    const struct mr *mr = &s->region[REGION_COUNTERS].mr;

    return mr->base + (-(uintptr_t)mr->base & 7);
}

static uint64_t word_now(const struct stack *s)
{
    uint64_t value;

    memcpy(&value, word_at(s), sizeof(value));
    return value;
}

bool is_word_opcode(enum rddp_wr_opcode opcode)
{
    return opcode == RDDP_WR_ATOMIC_CMP_AND_SWP || opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD;
}

enum rddp_wc_opcode completes_as(enum rddp_wr_opcode opcode)
{
    switch (opcode) {
    case RDDP_WR_RDMA_WRITE:
        return RDDP_WC_RDMA_WRITE;
    case RDDP_WR_RDMA_READ:
        return RDDP_WC_RDMA_READ;
    case RDDP_WR_ATOMIC_CMP_AND_SWP:
        return RDDP_WC_COMP_SWAP;
    case RDDP_WR_ATOMIC_FETCH_AND_ADD:
        return RDDP_WC_FETCH_ADD;
    case RDDP_WR_LOCAL_INV:
        return RDDP_WC_LOCAL_INV;
    default:
        return RDDP_WC_SEND;
    }
}

/* RFC 7306 5.1.1, bit by bit. */
static uint64_t added(uint64_t word, uint64_t add, uint64_t mask)
{
    uint64_t sum = 0;
    unsigned carry = 0;

    for (unsigned bit = 0; bit < 64; bit++) {
        unsigned n = (unsigned)(word >> bit & 1) + (unsigned)(add >> bit & 1) + carry;

        sum |= (uint64_t)(n & 1) << bit;
        carry = n >> 1 & !(mask >> bit & 1);
    }
    return sum;
}

static uint64_t swapped(uint64_t word, const struct rddp_send_wr *wr)
{
    for (unsigned bit = 0; bit < 64; bit++)
        if (wr->compare_add_mask >> bit & 1 && (word >> bit & 1) != (wr->compare_add >> bit & 1))
            return word;
    return (wr->swap & wr->swap_mask) | (word & ~wr->swap_mask);
}

void word_ask(struct party *p, struct request *r)
{
    const struct region *target = &p->peer->stack->region[REGION_COUNTERS];
    struct rddp_send_wr *wr = &r->word;

    if (!p->word_known)
        p->word = word_now(p->peer->stack);
    p->word_known = true;
    wr->remote_addr = target->mr.start + (uint64_t)(word_at(p->peer->stack) - target->mr.base);
    wr->rkey = (uint32_t)target->mr.key;
    wr->compare_add = rng_one_in(&p->rng, 2) ? p->word : rng_next(&p->rng);
    wr->swap = rng_next(&p->rng);
    wr->compare_add_mask = rng_one_in(&p->rng, 2) ? rng_next(&p->rng) : 0;
    wr->swap_mask = rng_next(&p->rng);
    r->flags |= RDDP_SEND_MASKED;
    r->before = p->word;
    r->after = r->opcode == RDDP_WR_ATOMIC_FETCH_AND_ADD ? added(p->word, wr->compare_add, wr->compare_add_mask)
                                                         : swapped(p->word, wr);
    r->octets = malloc(sizeof(r->before));
    assert(r->octets);
    memcpy(r->octets, &r->before, sizeof(r->before));
    r->local[0].octets = r->octets;
    r->local[0].filled = r->length;
}

void word_fill(struct rddp_send_wr *wr, const struct request *r)
{
    wr->remote_addr = r->word.remote_addr;
    wr->rkey = r->word.rkey;
    wr->compare_add = r->word.compare_add;
    wr->swap = r->word.swap;
    wr->compare_add_mask = r->word.compare_add_mask;
    wr->swap_mask = r->word.swap_mask;
}

void word_check(const struct request *r)
{
    if (!area_is_filled(&r->local[0]))
        report_failure("the atomic of request %llu brought another number", (unsigned long long)r->wr_id);
    area_settle(&r->local[0]);
}

/* All completed atomics were executed, and of the others the first ones. */
void word_judge(const struct party *p)
{
    uint64_t now = word_now(p->peer->stack);
    bool found = !p->word_known || now == p->word;

    for (const struct request *r = p->oldest; r && !found; r = r->next)
        found = is_word_opcode(r->opcode) && !r->landed && (now == r->before || now == r->after);
    if (!found && !p->stack->detached)
        report_failure("the word is 0x%llx, which no atomic left there", (unsigned long long)now);
}
