/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_memory.c - the memory of a call: blocks from the budget, which the call has reserved, and regions over them. */
#include "rpc/responder_inner.h"

/* Where the connection counts its reservation; NULL once the connection has gone. */
static uint64_t *held_of(struct rpc_serve *serve)
{
    return serve->call.conn ? &serve->call.conn->held : NULL;
}

uint8_t *serve_block(struct rpc_serve *serve, size_t octets)
{
    struct budget *budget = &serve->call.responder->budget;
    uint64_t size = budget_size(octets), left = serve->reserved - serve->used;
    uint8_t *at = budget_get(budget, octets);

    if (!at)
        return NULL;
    if (size > left) {
        budget_overdraw(budget, size - left, held_of(serve));
        serve->reserved += size - left;
    }
    serve->used += size;
    serve->block[serve->blocks++] = (struct block){at, octets};
    return at;
}

void serve_drop_memory(struct rpc_serve *serve)
{
    struct responder *r = serve->call.responder;

    while (serve->mrs)
        rddp_dereg_mr(serve->mr[--serve->mrs]);
    while (serve->blocks) {
        struct block *block = &serve->block[--serve->blocks];

        budget_put(&r->budget, block->at, block->octets);
    }
    serve->transfers = 0;
    if (serve->reserved == 0)
        return;
    budget_return(&r->budget, serve->reserved, held_of(serve));
    serve->reserved = serve->used = 0;
    r->freed = true;
    if (r->hungry)
        responder_kick(r);
}
