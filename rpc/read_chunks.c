/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* read_chunks.c - Read chunks, and calls that wait for memory. A call reserves what it may need before anything is
 * pulled. If there is too little, it waits and keeps its credit. The calls behind it on the same connection wait too;
 * other connections are not held up. */
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

/* --- pulling --------------------------------------------------------------------------------------------------- */

/* Plans one RDMA Read for each segment. Segments with the same position are joined in list order. */
static bool pull_plan(struct rpc_serve *serve)
{
    struct responder_call *call = &serve->call;
    const struct rpcrdma *h = &serve->header;
    size_t octets = octets_to_pull(serve);
    uint8_t *at = serve_block(serve, octets), *fill[CALL_ITEMS];
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

/* RFC 8166 4.5.4: if the allocation fails although the memory is reserved, the connection ends and the peer sends the
 * call again. */
void pull_go(struct rpc_serve *serve)
{
    serve->phase = PHASE_PULLING;
    if (!pull_plan(serve)) {
        conn_end(serve->call.conn);
        return;
    }
    serve->opcode = RDDP_WR_RDMA_READ;
    serve_launch(serve);
}

/* --- waiting for memory ------------------------------------------------------------------------------------------ */

static bool reserve_need(struct rpc_serve *serve)
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

bool pull_reserve(struct rpc_serve *serve)
{
    struct rpc_conn *conn = serve->call.conn;
    struct responder *r = conn->responder;

    if ((need(serve) == 0 || !conn->starved) && reserve_need(serve))
        return true;
    r->stats.starved++;
    serve->phase = PHASE_STARVED;
    serve->next_waiting = NULL;
    if (!conn->starved) {
        conn->starved_last = &conn->starved;
        pull_queue(r, conn);
    }
    *conn->starved_last = serve;
    conn->starved_last = &serve->next_waiting;
    return false;
}

struct rpc_serve *pull_next(struct responder *r, struct rpc_conn ***at)
{
    for (struct rpc_conn *conn; (conn = **at);) {
        struct rpc_serve *serve = conn->starved;

        if (conn->dead || !reserve_need(serve)) {
            *at = &conn->next_hungry;
            continue;
        }
        pull_unqueue(r, *at);
        conn->starved = serve->next_waiting;
        if (conn->starved)
            pull_queue(r, conn);
        return serve;
    }
    return NULL;
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
