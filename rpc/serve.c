/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve.c - what a responder does for one call: check, pull, hand over. The answer is made in answer.c. */
#include <stdlib.h>
#include <string.h>

#include "rpc/answer.h"
#include "rpc/clock.h"
#include "rpc/conn.h"
#include "rpc/xdrbytes.h"

enum { FAILURE_MS = 120000 };

/* --- the calls of a connection --------------------------------------------------------------------------------- */

static struct serve *new_serve(struct conn *conn, const struct rpcrdma *h, const struct link_done *done)
{
    size_t inlined = h->proc == RDMA_MSG && done->length > h->length ? done->length - h->length : 0;
    struct serve *serve = calloc(1, sizeof(*serve) + inlined);

    if (!serve)
        return NULL;
    serve->header = *h;
    serve->receive = done->index;
    if (inlined)
        memcpy(serve->payload, done->data + h->length, inlined);
    serve->call.responder = conn->responder;
    serve->call.conn = conn;
    serve->call.peer = conn->peer;
    serve->call.payload = serve->payload;
    serve->call.length = inlined;
    serve->next = conn->calls;
    conn->calls = serve;
    conn->responder->stats.calls_held++;
    return serve;
}

static void drop_memory(struct serve *serve)
{
    while (serve->mrs)
        rddp_dereg_mr(serve->mr[--serve->mrs]);
    while (serve->blocks)
        free(serve->block[--serve->blocks]);
    serve->transfers = 0;
}

static void free_serve(struct serve *serve)
{
    drop_memory(serve);
    if (serve->release)
        serve->release(serve->release_user);
    serve->call.responder->stats.calls_held--;
    free(serve->answer);
    free(serve);
}

void serve_end(struct serve *serve)
{
    struct conn *conn = serve->call.conn;

    if (conn) {
        struct serve **at = &conn->calls;

        while (*at != serve)
            at = &(*at)->next;
        *at = serve->next;
    }
    free_serve(serve);
}

void serve_abandon(struct conn *conn)
{
    for (struct serve *serve = conn->calls, *next; serve; serve = next) {
        next = serve->next;
        serve->call.conn = NULL;
        if (serve->phase != PHASE_HANDLER)
            free_serve(serve);
    }
    conn->calls = conn->waiting = NULL;
}

/* --- the send queue -------------------------------------------------------------------------------------------- */

/* The receive of a call is posted again just before the answer that lets the peer use it (RFC 8166 3.3.1): thus a peer
 * that does not read cannot make us hold more than its credits. */
static bool post_all(struct serve *serve)
{
    struct link *link = &serve->call.conn->link;
    struct link_message message = {.head = serve->answer, .head_length = serve->answer_length};

    if (serve->answer && link_repost(link, serve->receive) != 0)
        return false;
    for (unsigned i = 0; i < serve->transfers; i++) {
        struct transfer *t = &serve->transfer[i];

        if (link_rdma(link, serve->opcode, &t->local, t->handle, t->offset, serve) != 0)
            return false;
        serve->pending++;
    }
    return !serve->answer || link_send(link, &message, serve->invalidate) == 0;
}

static void post(struct serve *serve)
{
    serve->pending = 0;
    if (!post_all(serve))
        serve->call.conn->dead = true;
    else if (serve->pending == 0)
        serve_end(serve);
}

void serve_launch(struct serve *serve)
{
    struct conn *conn = serve->call.conn;
    struct serve **last = &conn->waiting;

    if (conn->dead)
        return;
    if (!conn->waiting && link_has_room(&conn->link, serve->transfers)) {
        post(serve);
        return;
    }
    while (*last)
        last = &(*last)->next_waiting;
    serve->next_waiting = NULL;
    *last = serve;
}

void serve_waiting(struct conn *conn)
{
    while (!conn->dead && conn->waiting && link_has_room(&conn->link, conn->waiting->transfers)) {
        struct serve *serve = conn->waiting;

        conn->waiting = serve->next_waiting;
        post(serve);
    }
}

/* --- Read chunks ----------------------------------------------------------------------------------------------- */

/* The item of this position, made in its place in the order if there is none. NULL: too many. */
static struct stream_item *item_at(struct call *call, uint32_t position)
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

/* Empty segments and chunks say nothing. False: more than we take, found before anything is pulled (RFC 8166 8.1.4). */
static bool measure(struct serve *serve, size_t *octets)
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
    *octets = sum + 4 * CALL_ITEMS;
    return true;
}

/* One RDMA Read for each segment; those of one position follow each other in list order, whatever their lengths. */
static bool plan_reads(struct serve *serve, size_t octets)
{
    struct call *call = &serve->call;
    const struct rpcrdma *h = &serve->header;
    uint8_t *at = malloc(octets), *fill[CALL_ITEMS];

    if (!at)
        return false;
    serve->block[serve->blocks++] = at;
    serve->mr[0] = rddp_reg_mr(call->conn->pd, at, octets, RDDP_ACCESS_LOCAL_WRITE);
    if (!serve->mr[0])
        return false;
    serve->mrs = 1;
    for (unsigned i = 0; i < call->items; i++) {
        call->item[i].data = fill[i] = at;
        at += call->item[i].length + xdr_roundup(call->item[i].length);
    }
    for (uint32_t i = 0; i < h->reads; i++) {
        const struct rpcrdma_segment *s = &h->segment[i];
        struct transfer *t = &serve->transfer[serve->transfers];
        size_t k;

        if (s->length == 0)
            continue;
        k = (size_t)(item_at(call, h->position[i]) - call->item);
        *t = (struct transfer){{(uintptr_t)fill[k], s->length, rddp_mr_key(serve->mr[0])}, s->handle, s->offset};
        fill[k] += s->length;
        serve->transfers++;
    }
    return true;
}

/* What to pull, and where it will lie. False: ERR_CHUNK. */
static bool plan(struct serve *serve)
{
    struct call *call = &serve->call;
    size_t octets;

    if (!measure(serve, &octets))
        return false;
    if (call->items && !plan_reads(serve, octets))
        return false;
    if (serve->header.proc == RDMA_NOMSG) {
        if (call->items == 0 || call->item[0].position != 0)
            return false;
        call->payload = call->item[0].data;
        call->length = call->item[0].length;
        memmove(&call->item[0], &call->item[1], --call->items * sizeof(call->item[0]));
    }
    return stream_is_sane(call->length, call->item, call->items);
}

/* --- the way of a call ----------------------------------------------------------------------------------------- */

/* The key of a call of which nothing but the header was seen. */
static void failure_key(struct replay_key *key, const struct serve *serve)
{
    static const struct call nothing;

    replay_key(key, &serve->call.peer, serve->header.xid, &nothing);
}

void serve_failed(struct serve *serve)
{
    struct responder *r = serve->call.responder;
    struct failure *failure = &r->failure[r->failures++ % FAILURES];

    failure_key(&failure->key, serve);
    failure->until_ms = clock_ms() + FAILURE_MS;
}

static bool has_failed(const struct serve *serve)
{
    const struct responder *r = serve->call.responder;
    struct replay_key key;

    failure_key(&key, serve);
    for (unsigned i = 0; i < FAILURES; i++)
        if (r->failure[i].until_ms > clock_ms() && memcmp(&r->failure[i].key, &key, sizeof(key)) == 0)
            return true;
    return false;
}

/* The call is whole. It is new, or was answered before, or is the same as one that the handler still has. */
static void hand_over(struct serve *serve)
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

static void pulled(struct serve *serve)
{
    struct xdr_in in = {.at = serve->call.payload, .left = serve->call.length};

    while (serve->mrs)
        rddp_dereg_mr(serve->mr[--serve->mrs]);
    serve->transfers = 0;
    if (xdr_get32(&in) != serve->header.xid || in.bad)
        answer_error(serve, ERR_CHUNK);
    else
        hand_over(serve);
}

void serve_transferred(struct serve *serve)
{
    if (--serve->pending)
        return;
    if (serve->phase == PHASE_PULLING)
        pulled(serve);
    else
        serve_end(serve);
}

static void discard(struct conn *conn, const struct link_done *done)
{
    conn->responder->stats.discarded++;
    if (link_repost(&conn->link, done->index) != 0)
        conn->dead = true;
}

void serve_receive(struct conn *conn, const struct link_done *done)
{
    enum rpcrdma_direction direction = rpcrdma_direction(done->data, done->length);
    enum rpcrdma_verdict verdict;
    struct rpcrdma h;
    struct serve *serve;

    if (direction != RPCRDMA_CALL && backward_receive(conn, done)) {
        if (link_repost(&conn->link, done->index) != 0)
            conn->dead = true;
        return;
    }
    verdict = direction == RPCRDMA_REPLY ? RPCRDMA_DISCARD : rpcrdma_decode_call(&h, done->data, done->length);
    if (verdict == RPCRDMA_DISCARD) {
        discard(conn, done);
        return;
    }
    serve = new_serve(conn, &h, done);
    if (!serve)
        conn->dead = true;
    else if (verdict != RPCRDMA_ACCEPT)
        answer_error(serve, verdict == RPCRDMA_SAY_VERS ? ERR_VERS : ERR_CHUNK);
    else if (has_failed(serve) || !plan(serve))
        answer_error(serve, ERR_CHUNK);
    else if (serve->transfers == 0)
        pulled(serve);
    else {
        serve->opcode = RDDP_WR_RDMA_READ;
        serve_launch(serve);
    }
}

/* --- the handler's three ends ---------------------------------------------------------------------------------- */

/* Parts a call from its entry, and hands the one that waits for the same reply to the caller. */
static struct serve *part(struct serve *serve, struct replay_entry **entry)
{
    struct serve *waiter;

    *entry = serve->replay;
    serve->replay = NULL;
    if (!*entry)
        return NULL;
    waiter = (struct serve *)(*entry)->waiter;
    (*entry)->waiter = NULL;
    return waiter;
}

void call_reply(struct call *call, const struct reply *reply)
{
    struct serve *serve = (struct serve *)call, *waiter;
    struct replay_entry *entry;
    struct reply copied = *reply;

    waiter = part(serve, &entry);
    copied.release = NULL;
    if (entry)
        replay_keep(&call->responder->replay, entry, reply, call->responder->attr.replay_octets);
    if (waiter)
        answer_reply(waiter, &copied);
    answer_reply(serve, reply);
}

void call_refuse(struct call *call)
{
    struct serve *serve = (struct serve *)call, *waiter;
    struct replay_entry *entry;

    waiter = part(serve, &entry);
    if (entry)
        replay_drop(&call->responder->replay, entry);
    if (waiter)
        answer_error(waiter, ERR_CHUNK);
    answer_error(serve, ERR_CHUNK);
}

void call_drop(struct call *call)
{
    struct serve *serve = (struct serve *)call, *waiter;
    struct replay_entry *entry;

    waiter = part(serve, &entry);
    if (entry)
        replay_drop(&call->responder->replay, entry);
    if (waiter)
        call_drop(&waiter->call);
    if (call->conn && !call->conn->dead && link_repost(&call->conn->link, serve->receive) != 0)
        call->conn->dead = true;
    serve_end(serve);
}
