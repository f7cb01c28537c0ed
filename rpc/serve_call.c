/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve.c - the states of one call at a responder: check its header, pull its chunks, hand it over. answer.c builds the
 * answer. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/reply.h"
#include "rpc/responder_inner.h"
#include "rpc/xdrbytes.h"

/* --- the calls of a connection --------------------------------------------------------------------------------- */

static struct rpc_serve *get_serve(struct responder *r)
{
    struct rpc_serve *serve = r->spare;

    if (!serve)
        return malloc(sizeof(*serve) + r->attr.receive_size + r->attr.send_size);
    r->spare = serve->next_waiting;
    r->spares--;
    return serve;
}

static void put_serve(struct responder *r, struct rpc_serve *serve)
{
    if (r->spares == SPARES_MAX) {
        free(serve);
        return;
    }
    serve->next_waiting = r->spare;
    r->spare = serve;
    r->spares++;
}

void serve_free_spares(struct responder *r)
{
    while (r->spare) {
        struct rpc_serve *serve = r->spare;

        r->spare = serve->next_waiting;
        free(serve);
    }
}

/* serve->header is decoded already. The inline part is copied, since the handler may keep the call for longer than the
 * connection exists. */
static void serve_begin(struct rpc_serve *serve, struct rpc_conn *conn, const struct link_done *done)
{
    const struct rpcrdma *h = &serve->header;
    size_t inlined = h->proc == RDMA_MSG && done->length > h->length ? done->length - h->length : 0;

    memset(serve, 0, offsetof(struct rpc_serve, header));
    serve->receive = done->index;
    if (inlined)
        memcpy(serve->buffer, done->data + h->length, inlined);
    serve->call.responder = conn->responder;
    serve->call.conn = conn;
    serve->call.peer = conn->peer;
    serve->call.payload = serve->buffer;
    serve->call.length = inlined;
    serve->next = conn->calls;
    if (serve->next)
        serve->next->before = serve;
    conn->calls = serve;
    conn->responder->stats.calls_held++;
}

static void free_serve(struct rpc_serve *serve)
{
    struct responder *r = serve->call.responder;

    pull_drop(serve);
    if (serve->release)
        serve->release(serve->release_user);
    r->stats.calls_held--;
    put_serve(r, serve);
}

void serve_end(struct rpc_serve *serve)
{
    struct rpc_conn *conn = serve->call.conn;

    if (conn) {
        if (serve->before)
            serve->before->next = serve->next;
        else
            conn->calls = serve->next;
        if (serve->next)
            serve->next->before = serve->before;
    }
    free_serve(serve);
}

void serve_abandon(struct rpc_conn *conn)
{
    pull_abandon(conn);
    conn->waiting = NULL;
    for (struct rpc_serve *serve = conn->calls, *next; serve; serve = next) {
        next = serve->next;
        serve->call.conn = NULL;
        if (serve->phase != PHASE_HANDLER)
            free_serve(serve);
    }
    conn->calls = NULL;
}

/* --- the send queue -------------------------------------------------------------------------------------------- */

/* The receive of a call is posted again just before its answer, which permits the peer to use it (RFC 8166 3.3.1). So a
 * peer that does not read cannot make us hold more calls than its credits. */
static bool post_all(struct rpc_serve *serve)
{
    struct responder *r = serve->call.responder;
    struct rpc_link *link = &serve->call.conn->link;
    struct link_message message = {.head = serve->buffer + r->attr.receive_size, .head_length = serve->answer_length};

    if (serve->has_answer && rpc_link_repost(link, serve->receive) != 0)
        return false;
    for (unsigned i = 0; i < serve->transfers; i++) {
        struct transfer *t = &serve->transfer[i];

        if (rpc_link_rdma(link, serve->opcode, &t->local, t->handle, t->offset, serve) != 0)
            return false;
        serve->pending++;
    }
    return !serve->has_answer || rpc_link_send(link, &message, serve->invalidate) == 0;
}

static void serve_post(struct rpc_serve *serve)
{
    struct rpc_conn *conn = serve->call.conn;

    serve->pending = 0;
    conn_touch(conn);
    if (!post_all(serve))
        conn_end(conn);
    else if (serve->pending == 0)
        serve_end(serve);
}

void serve_launch(struct rpc_serve *serve)
{
    struct rpc_conn *conn = serve->call.conn;

    if (conn->dead)
        return;
    if (!conn->waiting && rpc_link_has_space(&conn->link, serve->transfers)) {
        serve_post(serve);
        return;
    }
    serve->next_waiting = NULL;
    if (!conn->waiting)
        conn->waiting_last = &conn->waiting;
    *conn->waiting_last = serve;
    conn->waiting_last = &serve->next_waiting;
}

void serve_waiting(struct rpc_conn *conn)
{
    while (!conn->dead && conn->waiting && rpc_link_has_space(&conn->link, conn->waiting->transfers)) {
        struct rpc_serve *serve = conn->waiting;

        conn->waiting = serve->next_waiting;
        serve_post(serve);
    }
}

/* --- the states of a call -------------------------------------------------------------------------------------- */

/* The call is whole. It is new, or a retransmission of one that was answered, or of one that the handler still has. */
static void serve_hand_over(struct rpc_serve *serve)
{
    struct responder *r = serve->call.responder;
    struct replay_entry *entry;
    struct replay_key key;

    serve->phase = PHASE_HANDLER;
    replay_key(&key, &serve->call.peer, serve->header.xid, &serve->call);
    entry = replay_find(&r->replay, &key);
    if (entry)
        r->stats.replayed++;
    if (entry && entry->state == REPLAY_KEPT) {
        answer_reply(serve, &entry->reply);
    } else if (entry) {
        if (entry->waiter)
            call_drop(entry->waiter);
        entry->waiter = &serve->call;
    } else {
        serve->replay = replay_add(&r->replay, &key);
        r->stats.calls++;
        r->attr.handle(r->attr.user, &serve->call);
    }
}

void serve_pulled(struct rpc_serve *serve)
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

void serve_transferred(struct rpc_serve *serve)
{
    if (--serve->pending)
        return;
    if (serve->phase == PHASE_PULLING)
        serve_pulled(serve);
    else
        serve_end(serve);
}

static void repost(struct rpc_conn *conn, const struct link_done *done)
{
    conn_touch(conn);
    if (rpc_link_repost(&conn->link, done->index) != 0)
        conn_end(conn);
}

/* Handles messages that are not calls: replies to backward calls, and messages to discard. Returns true if the message
 * is dealt with. */
static bool is_aside(struct rpc_conn *conn, const struct link_done *done, enum rpcrdma_verdict *verdict)
{
    enum rpcrdma_direction direction = rpcrdma_direction(done->data, done->length);

    if (direction != RPCRDMA_CALL && backward_receive(conn, done)) {
        repost(conn, done);
        return true;
    }
    if (direction == RPCRDMA_REPLY)
        *verdict = RPCRDMA_DISCARD;
    if (*verdict != RPCRDMA_DISCARD)
        return false;
    conn->responder->stats.discarded++;
    repost(conn, done);
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
    struct rpc_serve *serve = get_serve(conn->responder);
    enum rpcrdma_verdict verdict;

    if (!serve) {
        conn_end(conn);
        return;
    }
    verdict = rpcrdma_decode_call(&serve->header, done->data, done->length);
    if ((verdict != RPCRDMA_ACCEPT || !is_call(&serve->header, done)) && is_aside(conn, done, &verdict)) {
        put_serve(conn->responder, serve);
        return;
    }
    serve_begin(serve, conn, done);
    if (verdict != RPCRDMA_ACCEPT)
        answer_error(serve, verdict == RPCRDMA_SAY_VERS ? ERR_VERS : ERR_CHUNK);
    else if (failure_is_known(serve))
        answer_error(serve, ERR_CHUNK);
    else if (!pull_measure(serve))
        refuse_chunks(serve);
    else
        pull_begin(serve);
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

void call_reply(struct responder_call *call, const struct reply *reply)
{
    struct rpc_serve *serve = (struct rpc_serve *)call, *waiter;
    struct replay_entry *entry;
    struct reply copied = *reply;

    waiter = serve_part(serve, &entry);
    copied.release = NULL;
    if (entry)
        replay_keep(&call->responder->replay, entry, reply, call->responder->attr.replay_octets);
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
    struct rpc_serve *serve = (struct rpc_serve *)call, *waiter;
    struct replay_entry *entry;

    waiter = serve_part(serve, &entry);
    if (entry)
        replay_drop(&call->responder->replay, entry);
    if (waiter)
        answer_error(waiter, ERR_CHUNK);
    answer_error(serve, ERR_CHUNK);
}

void call_drop(struct responder_call *call)
{
    struct rpc_serve *serve = (struct rpc_serve *)call, *waiter;
    struct replay_entry *entry;

    waiter = serve_part(serve, &entry);
    if (entry)
        replay_drop(&call->responder->replay, entry);
    if (waiter)
        call_drop(&waiter->call);
    if (call->conn && !call->conn->dead) {
        conn_touch(call->conn);
        if (rpc_link_repost(&call->conn->link, serve->receive) != 0)
            conn_end(call->conn);
    }
    serve_end(serve);
}
