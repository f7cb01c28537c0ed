/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_post.c - the calls of a connection from their first message to their end, and their way through its send
 * queue. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/responder_inner.h"

/* --- the calls of a connection --------------------------------------------------------------------------------- */

struct rpc_serve *serve_get(struct responder *r)
{
    struct rpc_serve *serve = r->spare;

    if (!serve)
        return malloc(sizeof(*serve) + r->attr.receive_size + r->attr.send_size);
    r->spare = serve->next_waiting;
    r->spares--;
    return serve;
}

void serve_put(struct responder *r, struct rpc_serve *serve)
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

void serve_begin(struct rpc_serve *serve, struct rpc_conn *conn, const struct link_done *done)
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

    serve_drop_memory(serve);
    if (serve->release)
        serve->release(serve->release_user);
    r->stats.calls_held--;
    serve_put(r, serve);
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
    conn->waiting = NULL;
    for (struct rpc_serve *serve = conn->calls, *next; serve; serve = next) {
        next = serve->next;
        serve->call.conn = NULL;
        if (serve->phase != PHASE_HANDLER)
            free_serve(serve);
    }
    conn->calls = NULL;
}

void conn_repost(struct rpc_conn *conn, uint32_t receive)
{
    conn_touch(conn);
    if (rpc_link_repost(&conn->link, receive) != 0)
        conn_end(conn);
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
