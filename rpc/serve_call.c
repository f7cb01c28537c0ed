/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_call.c - the states of one call at a responder: check its header, pull its chunks, hand it over, end it. */
#include "rpc/reply.h"
#include "rpc/responder_inner.h"
#include "rpc/xdrbytes.h"

/* --- the states of a call -------------------------------------------------------------------------------------- */

/* The call is whole. It is new, or a retransmission of one that was answered, or of one that the handler still has. */
static void serve_hand_over(struct rpc_serve *serve)
{
    struct responder *r = serve->call.responder;
    struct replay_entry *entry;
    struct replay_key key;

    serve->phase = PHASE_HANDLER;
    replay_key(&key, &serve->call.peer, serve->header.xid, &serve->call);
    entry = replay_find(&r->replay, &key, r->now_ms);
    if (entry)
        r->stats.replayed++;
    if (entry && entry->state == REPLAY_KEPT) {
        answer_reply(serve, &entry->reply);
    } else if (entry) {
        if (entry->waiter)
            call_drop(entry->waiter);
        entry->waiter = &serve->call;
    } else {
        serve->replay = replay_add(&r->replay, &key, r->now_ms);
        r->stats.calls++;
        r->attr.handle(r->attr.user, &serve->call);
    }
}

/* The call has arrived whole. */
static void serve_pulled(struct rpc_serve *serve)
{
    struct xdr_in in = {.at = serve->call.payload, .left = serve->call.length};

    while (serve->mrs)
        rddp_dereg_mr(serve->mr[--serve->mrs]);
    serve->transfers = 0;
    if (xdr_get32(&in) != serve->header.xid || in.bad)
        answer_error(serve, ERR_CHUNK);
    else
        serve_hand_over(serve);
}

/* The call's memory is reserved. */
static void serve_start(struct rpc_serve *serve)
{
    if (serve->call.items)
        pull_go(serve);
    else
        serve_pulled(serve);
}

/* A call that is whole at once may be answered at once, and return memory on the way. */
void serve_starved(struct responder *r)
{
    while (r->hungry && r->freed) {
        struct rpc_conn **at = &r->hungry;
        struct rpc_serve *serve;

        r->freed = false;
        while ((serve = pull_next(r, &at)))
            serve_start(serve);
    }
}

void serve_transferred(struct rpc_serve *serve)
{
    if (--serve->pending)
        return;
    if (serve->phase == PHASE_PULLING)
        serve_pulled(serve);
    else
        serve_end(serve);
}

/* Handles messages that are not calls: replies to backward calls, and messages to discard. Returns true if the message
 * is dealt with. */
static bool is_aside(struct rpc_conn *conn, const struct link_done *done, enum rpcrdma_verdict *verdict)
{
    enum rpcrdma_direction direction = rpcrdma_direction(done->data, done->length);

    if (direction != RPCRDMA_CALL && backward_receive(conn, done)) {
        conn_repost(conn, done->index);
        return true;
    }
    if (direction == RPCRDMA_REPLY)
        *verdict = RPCRDMA_DISCARD;
    if (*verdict != RPCRDMA_DISCARD)
        return false;
    conn->responder->stats.discarded++;
    conn_repost(conn, done->index);
    return true;
}

/* Whether an accepted message is a Short Message with a call. This is the common case, and it saves decoding the header
 * a second time in rpcrdma_direction(). */
static bool is_call(const struct rpcrdma *h, const struct link_done *done)
{
    struct xdr_in in = {.at = done->data + h->length, .left = done->length - h->length};

    xdr_get32(&in);
    return h->proc == RDMA_MSG && xdr_get32(&in) == 0 && !in.bad;
}

static void refuse_chunks(struct rpc_serve *serve)
{
    struct responder *r = serve->call.responder;
    char text[RPC_ADDRESS];

    rpc_log(&r->log, RDDP_LOG_WARN,
            "%s: refused a call (ERR_CHUNK): its Read chunks are not an RPC message, or exceed read_max (%u octets)",
            rpc_address_text(text, &serve->call.peer), r->attr.read_max);
    answer_error(serve, ERR_CHUNK);
}

void serve_receive(struct rpc_conn *conn, const struct link_done *done)
{
    struct rpc_serve *serve = serve_get(conn->responder);
    enum rpcrdma_verdict verdict;

    if (!serve) {
        conn_end(conn);
        return;
    }
    verdict = rpcrdma_decode_call(&serve->header, done->data, done->length);
    if ((verdict != RPCRDMA_ACCEPT || !is_call(&serve->header, done)) && is_aside(conn, done, &verdict)) {
        serve_put(conn->responder, serve);
        return;
    }
    serve_begin(serve, conn, done);
    if (verdict != RPCRDMA_ACCEPT)
        answer_error(serve, verdict == RPCRDMA_SAY_VERS ? ERR_VERS : ERR_CHUNK);
    else if (failure_is_known(serve))
        answer_error(serve, ERR_CHUNK);
    else if (!pull_measure(serve))
        refuse_chunks(serve);
    else if (pull_reserve(serve))
        serve_start(serve);
}

/* --- the three ways to end a call ------------------------------------------------------------------------------ */

/* Detaches a call from its cache entry. Returns the call that waits for the same reply, if any. */
static struct rpc_serve *serve_part(struct rpc_serve *serve, struct replay_entry **entry)
{
    struct rpc_serve *waiter;

    *entry = serve->replay;
    serve->replay = NULL;
    if (!*entry)
        return NULL;
    waiter = (struct rpc_serve *)(*entry)->waiter;
    (*entry)->waiter = NULL;
    return waiter;
}

/* The same for a call without a reply, which leaves nothing in the cache. */
static struct rpc_serve *serve_forget(struct rpc_serve *serve)
{
    struct replay_entry *entry;
    struct rpc_serve *waiter = serve_part(serve, &entry);

    if (entry)
        replay_drop(&serve->call.responder->replay, entry);
    return waiter;
}

void call_reply(struct responder_call *call, const struct reply *reply)
{
    struct rpc_serve *serve = (struct rpc_serve *)call, *waiter;
    struct replay_entry *entry;
    struct reply copied = *reply;

    waiter = serve_part(serve, &entry);
    copied.release = NULL;
    if (entry)
        replay_keep(&call->responder->replay, entry, reply, call->responder->attr.replay_octets,
                    call->responder->now_ms);
    if (waiter)
        answer_reply(waiter, &copied);
    answer_reply(serve, reply);
}

void call_is_repeatable(struct responder_call *call)
{
    struct rpc_serve *serve = (struct rpc_serve *)call;

    /* A retransmission already waits for this reply. */
    if (!serve->replay || serve->replay->waiter)
        return;
    replay_drop(&call->responder->replay, serve->replay);
    serve->replay = NULL;
}

void call_refuse(struct responder_call *call)
{
    struct rpc_serve *serve = (struct rpc_serve *)call, *waiter = serve_forget(serve);

    if (waiter)
        answer_error(waiter, ERR_CHUNK);
    answer_error(serve, ERR_CHUNK);
}

void call_drop(struct responder_call *call)
{
    struct rpc_serve *serve = (struct rpc_serve *)call, *waiter = serve_forget(serve);

    if (waiter)
        call_drop(&waiter->call);
    if (call->conn && !call->conn->dead)
        conn_repost(call->conn, serve->receive);
    serve_end(serve);
}
