/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* budget.h - the memory that calls of a responder hold: a budget that is reserved before a call begins, and blocks that
 * are used again. */
#ifndef RDDP_RPC_BUDGET_H
#define RDDP_RPC_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BUDGET_STEP_MIN = 12, /* the smallest block is 4 KiB */
    BUDGET_STEP_MAX = 24, /* blocks of more than 32 MiB are not kept */
    BUDGET_CLASSES = 4 * (BUDGET_STEP_MAX - BUDGET_STEP_MIN + 1),
    BUDGET_SHARES = 8,  /* a holder has at most this part of the budget, and always one call */
    BUDGET_RESERVE = 2, /* this part of it is for the first call of those who hold nothing */
};

/* `reserved` and `kept` together stay within `max` but for a call that alone wants more, and for what was overdrawn. */
struct budget {
    uint64_t max, reserved, kept;
    unsigned holders; /* connections that hold something */
    struct budget_block *free[BUDGET_CLASSES];
};

void budget_init(struct budget *budget, uint64_t max);
void budget_fini(struct budget *budget);

/* What a block for `octets` takes of the budget; 0 for none. At most a quarter more. */
uint64_t budget_size(uint64_t octets);

/* Takes `size` for a connection that holds `*held`, and adds it there; false if that is too much. Its first call may
 * use all of the budget; the others leave a part of it free, and the holders share the rest evenly: a connection that
 * holds nothing finds room. A call that is the only one gets what it wants. */
bool budget_reserve(struct budget *budget, uint64_t size, uint64_t *held);

/* `held` is NULL when the connection has gone: budget_forget() took it out of the count of holders. */
void budget_return(struct budget *budget, uint64_t size, uint64_t *held);
void budget_forget(struct budget *budget, uint64_t *held);

/* Takes what a call turns out to need beyond its reservation: it is at work, so it cannot wait. */
void budget_overdraw(struct budget *budget, uint64_t size, uint64_t *held);

/* A block of budget_size(octets) that the budget already knows of, and back. NULL: the machine is short. */
void *budget_get(struct budget *budget, size_t octets);
void budget_put(struct budget *budget, void *block, size_t octets);

#endif
