/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* budget.h - the memory that the calls of a responder use: a budget from which each call reserves before it begins, and
 * blocks that are reused. Not thread-safe: the responder's thread uses it. */
#ifndef RDDP_RPC_BUDGET_H
#define RDDP_RPC_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BUDGET_STEP_MIN = 12, /* the smallest block is 4 KiB */
    BUDGET_STEP_MAX = 24, /* the largest block that is kept has 28 MiB, 7 quarters of this power of two */
    BUDGET_CLASSES = 4 * (BUDGET_STEP_MAX - BUDGET_STEP_MIN + 1),
    BUDGET_SHARES = 8, /* a connection reserves at most this fraction (an eighth) of the budget, but always one call */
    BUDGET_RESERVE =
        2, /* this fraction (a half) of the budget is left to the first calls of connections that hold nothing */
};

/* All sizes in octets. `reserved` + `kept` stays within `max`, except when a single call needs more than `max`, or
 * after budget_overdraw(). */
struct budget {
    uint64_t max, reserved, kept;
    unsigned holders; /* connections with a reservation */
    struct budget_block *free[BUDGET_CLASSES];
};

void budget_init(struct budget *budget, uint64_t max);
void budget_fini(struct budget *budget);

/* What a block for `octets` costs of the budget: 0 for 0 octets, at least 4 KiB, and at most a quarter more than
 * `octets` from there on. */
uint64_t budget_size(uint64_t octets);

/* Reserves `size` for a connection that has reserved `*held` so far, and adds it to `*held`. Returns false if that is
 * too much. The first call of a connection may use the whole budget. Further calls leave the fraction BUDGET_RESERVE
 * free and share the rest evenly among the holders, so that a connection that holds nothing finds room. A call is
 * always admitted when nothing else is reserved. */
bool budget_reserve(struct budget *budget, uint64_t size, uint64_t *held);

/* Returns a reservation. `held` is NULL after budget_forget(), when the connection has gone. */
void budget_return(struct budget *budget, uint64_t size, uint64_t *held);
void budget_forget(struct budget *budget, uint64_t *held);

/* Reserves what a running call needs beyond its reservation. It always succeeds, since a running call cannot wait. */
void budget_overdraw(struct budget *budget, uint64_t size, uint64_t *held);

/* Gets a block of budget_size(octets), which is already reserved, or NULL if malloc fails; and gives it back. `octets`
 * of the two calls must be equal. */
void *budget_get(struct budget *budget, size_t octets);
void budget_put(struct budget *budget, void *block, size_t octets);

#endif
