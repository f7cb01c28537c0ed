/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pull.c - Read chunks and the memory of a call. A call reserves the memory that it may need before anything is pulled.
 * If there is too little, it waits and keeps its credit. The calls behind it on the same connection wait too; other
 * connections are not held up. */
#include <string.h>

#include "rpc/responder_inner.h"
#include "rpc/xdrbytes.h"

enum { PULL_SLACK = 4 * CALL_ITEMS }; /* room for the roundup of each item */

/* The item at this position; if there is none, it is inserted in order. NULL if there are too many. */
static struct stream_item *item_at(struct responder_call *call, uint32_t position)
{
    unsigned i = call->items;

    for (unsigned k = 0; k < call->items; k++)
        if (call->item[k].position == position)
            return &call->item[k];
    if (call->items == CALL_ITEMS)
        return NULL;
    for (; i > 0 && call->item[i - 1].position > position; i--)
        call->item[i] = call->item[i - 1];
    call->items++;
    call->item[i] = (struct stream_item){.position = position};
    return &call->item[i];
}

/* Whether the items fit into the Payload stream. With RDMA_NOMSG the Position Zero chunk is the stream. */
static bool has_stream(struct rpc_serve *serve)
{
    struct responder_call *call = &serve->call;
    struct stream_item *rest = call->item;
    unsigned rests = call->items;
    size_t length = call->length;

    if (serve->header.proc == RDMA_NOMSG) {
        if (call->items == 0 || call->item[0].position != 0)
            return false;
        length = call->item[0].length;
        rest++;
        rests--;
    }
    return stream_is_sane(length, rest, rests);
}

/* Empty segments and chunks have no effect. Calls that are too large are refused before anything is pulled (RFC 8166
 * 8.1.4). */
bool pull_measure(struct rpc_serve *serve)
{
    const struct rpcrdma *h = &serve->header;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < h->reads; i++) {
        struct stream_item *item;

        if (h->segment[i].length == 0)
            continue;
        item = item_at(&serve->call, h->position[i]);
        sum += h->segment[i].length;
        if (!item || sum > serve->call.responder->attr.read_max)
            return false;
        item->length += h->segment[i].length;
    }
    return has_stream(serve);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static uint64_t octets_to_pull(const struct rpc_serve *serve)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < serve->call.items; i++)
        sum += serve->call.item[i].length;
    return sum ? sum + PULL_SLACK : 0;
}

/* Octets of budget for the Read chunks and for copies of the results. The results count for at most the space that the
 * peer offers, and at most read_max. */
static uint64_t need(const struct rpc_serve *serve)
{
    const struct rpcrdma *h = &serve->header;
    uint64_t most = serve->call.responder->attr.read_max, size = budget_size(octets_to_pull(serve));
    uint64_t space = h->has_reply ? rpcrdma_chunk_length(h, h->reply) : 0;

    for (uint32_t i = 0; i < h->writes; i++)
        space += rpcrdma_chunk_length(h, h->write[i]);
    return size + budget_size(space < most ? space : most);
}

/* Where the connection counts its reservation; NULL once the connection has gone. */
static uint64_t *held_of(struct rpc_serve *serve)
{
    return serve->call.conn ? &serve->call.conn->held : NULL;
}

uint8_t *pull_block(struct rpc_serve *serve, size_t octets)
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

void pull_drop(struct rpc_serve *serve)
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

/* --- pulling --------------------------------------------------------------------------------------------------- */

/* Plans one RDMA Read for each segment. Segments with the same position are joined in list order. */
static bool pull_plan(struct rpc_serve *serve)
{
    struct responder_call *call = &serve->call;
    const struct rpcrdma *h = &serve->header;
    size_t octets = octets_to_pull(serve);
    uint8_t *at = pull_block(serve, octets), *fill[CALL_ITEMS];
    struct rddp_mr *mr = at ? rddp_reg_mr(call->conn->pd, at, octets, RDDP_ACCESS_LOCAL_WRITE) : NULL;

    if (!mr)
        return false;
    serve->mr[serve->mrs++] = mr;
    for (unsigned i = 0; i < call->items; i++) {
        call->item[i].data = fill[i] = at;
        at += call->item[i].length + xdr_roundup(call->item[i].length);
    }
    for (uint32_t i = 0; i < h->reads; i++) {
        const struct rpcrdma_segment *s = &h->segment[i];
        struct rddp_sge *local = &serve->transfer[serve->transfers].local;
        size_t k;

        if (s->length == 0)
            continue;
        k = (size_t)(item_at(call, h->position[i]) - call->item);
        *local = (struct rddp_sge){(uintptr_t)fill[k], s->length, rddp_mr_key(mr)};
        serve->transfer[serve->transfers].handle = s->handle;
        serve->transfer[serve->transfers].offset = s->offset;
        fill[k] += s->length;
        serve->transfers++;
    }
    if (h->proc == RDMA_NOMSG) {
        call->payload = call->item[0].data;
        call->length = call->item[0].length;
        memmove(&call->item[0], &call->item[1], --call->items * sizeof(call->item[0]));
    }
    return true;
}

/* Starts the pull; its memory is reserved. RFC 8166 4.5.4: if the allocation fails all the same, the connection ends
 * and the peer sends the call again. */
static void pull_go(struct rpc_serve *serve)
{
    if (serve->call.items == 0) {
        serve_pulled(serve);
        return;
    }
    serve->phase = PHASE_PULLING;
    if (!pull_plan(serve)) {
        conn_end(serve->call.conn);
        return;
    }
    serve->opcode = RDDP_WR_RDMA_READ;
    serve_launch(serve);
}

/* --- waiting for memory ------------------------------------------------------------------------------------------ */

static bool pull_reserve(struct rpc_serve *serve)
{
    uint64_t size = need(serve);

    if (size && !budget_reserve(&serve->call.responder->budget, size, &serve->call.conn->held))
        return false;
    serve->reserved = size;
    return true;
}

static void pull_queue(struct responder *r, struct rpc_conn *conn)
{
    conn->next_hungry = NULL;
    if (!r->hungry)
        r->hungry_last = &r->hungry;
    *r->hungry_last = conn;
    r->hungry_last = &conn->next_hungry;
}

static void pull_unqueue(struct responder *r, struct rpc_conn **at)
{
    struct rpc_conn *conn = *at;

    *at = conn->next_hungry;
    if (!*at)
        r->hungry_last = at;
}

void pull_begin(struct rpc_serve *serve)
{
    struct rpc_conn *conn = serve->call.conn;
    struct responder *r = conn->responder;

    if ((need(serve) == 0 || !conn->starved) && pull_reserve(serve)) {
        pull_go(serve);
        return;
    }
    r->stats.starved++;
    serve->phase = PHASE_STARVED;
    serve->next_waiting = NULL;
    if (!conn->starved) {
        conn->starved_last = &conn->starved;
        pull_queue(r, conn);
    }
    *conn->starved_last = serve;
    conn->starved_last = &serve->next_waiting;
}

/* Tries the first waiting call of each connection once. A connection whose call was started goes to the end of the
 * list; one whose call finds too little memory does not hold up the others. */
static void feed(struct responder *r)
{
    for (struct rpc_conn **at = &r->hungry, *conn; (conn = *at);) {
        struct rpc_serve *serve = conn->starved;

        if (conn->dead || !pull_reserve(serve)) {
            at = &conn->next_hungry;
            continue;
        }
        pull_unqueue(r, at);
        conn->starved = serve->next_waiting;
        if (conn->starved)
            pull_queue(r, conn);
        pull_go(serve);
    }
}

void pull_starved(struct responder *r)
{
    while (r->hungry && r->freed) {
        r->freed = false;
        feed(r);
    }
}

bool pull_is_pressed(const struct responder *r)
{
    for (const struct rpc_conn *conn = r->hungry; conn; conn = conn->next_hungry)
        if (conn->held == 0 && !conn->dead)
            return true;
    return false;
}

void pull_abandon(struct rpc_conn *conn)
{
    struct responder *r = conn->responder;
    struct rpc_conn **at = &r->hungry;

    while (conn->starved && *at != conn)
        at = &(*at)->next_hungry;
    if (conn->starved)
        pull_unqueue(r, at);
    conn->starved = NULL;
    budget_forget(&r->budget, &conn->held);
    r->freed = true;
}
