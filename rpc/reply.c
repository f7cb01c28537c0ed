/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reply.c - builds the answer to a call. Each result item goes into its Write chunk; the rest goes inline or into the
 * Reply chunk; a reply that fits in neither is answered with ERR_CHUNK (RFC 8166 3.5.3, 4.5.3). The layout is decided
 * before the first octet is written. */
#include "rpc/reply.h"

#include <string.h>

enum result { RESULT_READY, RESULT_MISFIT, RESULT_NO_MEMORY };

struct plan {
    struct rpcrdma header;
    struct stream_item rest[REPLY_ITEMS]; /* items that stay inline, with their positions in the reduced stream */
    unsigned rests;
    int chunk[REPLY_ITEMS]; /* the Write chunk of each item, -1 for none */
};

enum lent { LENT_NOT, LENT, LENT_MAY_CHANGE };

/* Adds the Writes that push `length` octets into the filled chunk. Memory that the handler does not lend is copied
 * first. */
static bool push(struct rpc_serve *serve, const struct rpcrdma *h, struct rpcrdma_chunk chunk, const uint8_t *data,
                 size_t length, enum lent lent)
{
    struct rddp_mr *mr;

    if (length == 0)
        return true;
    if (lent == LENT_NOT) {
        uint8_t *copy = serve_block(serve, length);

        if (!copy)
            return false;
        memcpy(copy, data, length);
        data = copy;
    }
    /* The memory is only read: the source of an RDMA Write needs no access right. */
    mr = rddp_reg_mr(serve->call.conn->pd, (void *)(uintptr_t)data, length,
                     lent == LENT_MAY_CHANGE ? RDDP_ACCESS_VOLATILE : RDDP_ACCESS_STABLE);
    if (!mr)
        return false;
    serve->mr[serve->mrs++] = mr;
    for (uint32_t i = 0; i < chunk.count; i++) {
        const struct rpcrdma_segment *s = &h->segment[chunk.first + i];

        if (s->length == 0)
            continue;
        serve->transfer[serve->transfers++] =
            (struct transfer){{(uintptr_t)data, s->length, rddp_mr_key(mr)}, s->handle, s->offset};
        data += s->length;
    }
    return true;
}

/* The call's handle, if all its segments have the same one, else 0. Send with Invalidate can invalidate this handle for
 * the peer (RFC 8797). */
static uint32_t only_handle(const struct rpcrdma *h)
{
    for (uint32_t i = 1; i < h->segments; i++)
        if (h->segment[i].handle != h->segment[0].handle)
            return 0;
    return h->segments ? h->segment[0].handle : 0;
}

/* Copies the Write list and the Reply chunk, which fitted in the call's header, and sets their lengths. Each item takes
 * the next Write chunk. An empty chunk asks for its item inline; chunks without an item are returned unused (RFC 8166
 * 4.3.2). */
static bool pair_items(struct plan *plan, const struct rpcrdma *asked, const struct reply *reply)
{
    struct rpcrdma *h = &plan->header;
    unsigned next = 0;
    uint32_t gone = 0;

    for (uint32_t i = 0; i < asked->writes; i++)
        rpcrdma_add_write(h, &asked->segment[asked->write[i].first], asked->write[i].count);
    if (asked->has_reply)
        rpcrdma_set_reply(h, &asked->segment[asked->reply.first], asked->reply.count);
    for (unsigned i = 0; i < reply->items; i++) {
        const struct stream_item *item = &reply->item[i];

        plan->chunk[i] = -1;
        if (next < h->writes && h->write[next++].count) {
            if (!rpcrdma_fill(h, h->write[next - 1], item->length))
                return false;
            plan->chunk[i] = (int)next - 1;
            gone += item->length + (-item->length & 3);
        } else {
            plan->rest[plan->rests] = *item;
            plan->rest[plan->rests++].position -= gone;
        }
    }
    for (; next < h->writes; next++)
        rpcrdma_fill(h, h->write[next], 0);
    return true;
}

/* Puts the stream inline if it fits, else into the Reply chunk. */
static enum result answer_lay_out(struct rpc_serve *serve, struct plan *plan, const struct reply *reply)
{
    struct rpcrdma *h = &plan->header;
    uint8_t *answer = serve->buffer + serve->call.responder->attr.receive_size;
    size_t head = rpcrdma_size(h), stream = stream_length(reply->length, plan->rest, plan->rests);
    bool is_long = head + stream > serve->call.conn->link.send_max;
    uint8_t *to;

    if (is_long && (!h->has_reply || head > serve->call.conn->link.send_max))
        return RESULT_MISFIT;
    if (h->has_reply && !rpcrdma_fill(h, h->reply, is_long ? stream : 0))
        return RESULT_MISFIT;
    h->proc = is_long ? RDMA_NOMSG : RDMA_MSG;
    serve->answer_length = head + (is_long ? 0 : stream);
    to = is_long ? serve_block(serve, stream) : answer + head;
    if (!to)
        return RESULT_NO_MEMORY;
    rpcrdma_encode(h, answer, head);
    stream_join(to, reply->payload, reply->length, plan->rest, plan->rests);
    return is_long && !push(serve, h, h->reply, to, stream, LENT) ? RESULT_NO_MEMORY : RESULT_READY;
}

static enum result answer_build(struct rpc_serve *serve, const struct reply *reply)
{
    enum lent lent = !reply->release ? LENT_NOT : reply->may_change ? LENT_MAY_CHANGE : LENT;
    struct plan plan;
    enum result result;

    plan.rests = 0;
    rpcrdma_init(&plan.header, serve->header.xid, RDMA_MSG);
    plan.header.credit = serve->call.responder->attr.credits;
    if (!pair_items(&plan, &serve->header, reply))
        return RESULT_MISFIT;
    result = answer_lay_out(serve, &plan, reply);
    for (unsigned i = 0; result == RESULT_READY && i < reply->items; i++)
        if (plan.chunk[i] >= 0 && !push(serve, &plan.header, plan.header.write[plan.chunk[i]], reply->item[i].data,
                                        reply->item[i].length, lent))
            result = RESULT_NO_MEMORY;
    return result;
}

void answer_error(struct rpc_serve *serve, enum rpcrdma_error error)
{
    struct responder *r = serve->call.responder;
    struct rpcrdma h;

    serve->phase = PHASE_ANSWERED;
    if (!serve->call.conn) {
        serve_end(serve);
        return;
    }
    serve_drop_memory(serve);
    rpcrdma_init(&h, serve->header.xid, RDMA_ERROR);
    h.version = serve->header.version;
    h.credit = r->attr.credits;
    h.error = error;
    h.version_low = h.version_high = RPCRDMA_VERSION;
    serve->answer_length = rpcrdma_encode(&h, serve->buffer + r->attr.receive_size, r->attr.send_size);
    serve->has_answer = true;
    r->stats.refused++;
    serve_launch(serve);
}

static void refuse_misfit(struct rpc_serve *serve, const struct reply *reply)
{
    struct responder *r = serve->call.responder;
    char text[RPC_ADDRESS];

    rpc_log(
        &r->log, RDDP_LOG_WARN,
        "%s: a reply of %zu octets does not fit into what the client offers (ERR_CHUNK): see the client's reply_max",
        rpc_address_text(text, &serve->call.peer), stream_length(reply->length, reply->item, reply->items));
    answer_error(serve, ERR_CHUNK);
}

void answer_reply(struct rpc_serve *serve, const struct reply *reply)
{
    enum result result;

    serve->phase = PHASE_ANSWERED;
    serve->release = reply->release;
    serve->release_user = reply->user;
    if (!serve->call.conn) {
        serve_end(serve);
        return;
    }
    result = answer_build(serve, reply);
    if (result == RESULT_MISFIT) {
        refuse_misfit(serve, reply);
        return;
    }
    /* RFC 8166 4.5.4: a reply that cannot be built for lack of memory ends the connection. */
    if (result == RESULT_NO_MEMORY) {
        conn_end(serve->call.conn);
        return;
    }
    serve->has_answer = true;
    serve->opcode = RDDP_WR_RDMA_WRITE;
    serve->invalidate = serve->call.conn->link.remote_invalidation ? only_handle(&serve->header) : 0;
    serve_launch(serve);
}
