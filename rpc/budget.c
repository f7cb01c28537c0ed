/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* budget.c - a memory budget, and free blocks in size classes: four classes for each power of two. */
#include "rpc/budget.h"

#include <assert.h>
#include <stdlib.h>

/* A free block holds the pointer to the next free block of its class. */
struct budget_block {
    struct budget_block *next;
};

void budget_init(struct budget *budget, uint64_t max)
{
    *budget = (struct budget){.max = max};
}

static void trim(struct budget *budget, uint64_t kept_max)
{
    for (unsigned i = BUDGET_CLASSES; i-- > 0 && budget->kept > kept_max;)
        while (budget->free[i] && budget->kept > kept_max) {
            struct budget_block *block = budget->free[i];

            budget->free[i] = block->next;
            budget->kept -= (uint64_t)(4 + i % 4) << (BUDGET_STEP_MIN - 2 + i / 4);
            free(block);
        }
}

void budget_fini(struct budget *budget)
{
    trim(budget, 0);
}

/* The class whose blocks hold `octets`, or BUDGET_CLASSES if the size is too large for any. */
static unsigned class_of(uint64_t octets)
{
    unsigned shift = BUDGET_STEP_MIN - 2;

    while (shift <= BUDGET_STEP_MAX - 2 && octets > (uint64_t)7 << shift)
        shift++;
    for (unsigned quarter = 4; shift <= BUDGET_STEP_MAX - 2 && quarter < 8; quarter++)
        if (octets <= (uint64_t)quarter << shift)
            return 4 * (shift - (BUDGET_STEP_MIN - 2)) + quarter - 4;
    return BUDGET_CLASSES;
}

uint64_t budget_size(uint64_t octets)
{
    unsigned i = class_of(octets);

    if (octets == 0 || i == BUDGET_CLASSES)
        return octets;
    return (uint64_t)(4 + i % 4) << (BUDGET_STEP_MIN - 2 + i / 4);
}

static bool budget_fits(uint64_t used, uint64_t size, uint64_t max)
{
    return used <= max && size <= max - used;
}

static bool may_take(const struct budget *budget, uint64_t size, uint64_t held)
{
    uint64_t common = budget->max - budget->max / BUDGET_RESERVE, share = budget->max / BUDGET_SHARES;

    if (budget->reserved == 0)
        return true;
    if (held == 0)
        return budget_fits(budget->reserved, size, budget->max);
    if (budget->holders && share > common / budget->holders)
        share = common / budget->holders;
    return budget_fits(held, size, share) && budget_fits(budget->reserved, size, common);
}

bool budget_reserve(struct budget *budget, uint64_t size, uint64_t *held)
{
    if (!may_take(budget, size, *held))
        return false;
    budget_overdraw(budget, size, held);
    trim(budget, budget->reserved < budget->max ? budget->max - budget->reserved : 0);
    return true;
}

void budget_overdraw(struct budget *budget, uint64_t size, uint64_t *held)
{
    budget->reserved += size;
    if (!held || size == 0)
        return;
    budget->holders += *held == 0;
    *held += size;
}

void budget_return(struct budget *budget, uint64_t size, uint64_t *held)
{
    budget->reserved -= size;
    if (!held || size == 0)
        return;
    *held -= size;
    budget->holders -= *held == 0;
}

void budget_forget(struct budget *budget, uint64_t *held)
{
    budget->holders -= *held != 0;
    *held = 0;
}

void *budget_get(struct budget *budget, size_t octets)
{
    unsigned i = class_of(octets);
    struct budget_block *block = i < BUDGET_CLASSES ? budget->free[i] : NULL;

    assert(octets);
    if (!block)
        return aligned_alloc(64, (budget_size(octets) + 4095) / 4096 * 4096);
    budget->free[i] = block->next;
    budget->kept -= budget_size(octets);
    return block;
}

void budget_put(struct budget *budget, void *block, size_t octets)
{
    uint64_t size = budget_size(octets);
    unsigned i = class_of(octets);
    struct budget_block *spare = block;

    /* Keep at most half of the budget in free blocks. The reservation for this block still counts here; returning it
     * makes room for the kept block. */
    if (i == BUDGET_CLASSES || !block || budget->kept + size > budget->max / 2) {
        free(block);
        return;
    }
    spare->next = budget->free[i];
    budget->free[i] = spare;
    budget->kept += size;
}
