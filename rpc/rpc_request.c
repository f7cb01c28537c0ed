/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_request.c - one call of a requester: builds it as a short, chunked or long message (RFC 8166 3.5) and checks its
 * reply. */
#include "rpc/rpc_request.h"

#include <string.h>

#include "rpc/payload.h"
#include "rpc/xdrbytes.h"

enum { REPLY_CHUNK_OCTETS = 4 + 16, READ_OCTETS = 24, MARK_STEP = 4096 };

/* --- registration ---------------------------------------------------------------------------------------------- */

static bool offer(struct request *q, struct rddp_pd *pd, const void *data, uint32_t length, unsigned access,
                  struct rpcrdma_segment *segment)
{
    struct rddp_mr *mr;

    if (q->mrs == REQUEST_MRS)
        return false;
    /* A region with read access alone is never written through this pointer. */
    mr = rddp_reg_mr(pd, (void *)(uintptr_t)data, length, access | q->access);
    if (!mr)
        return false;
    q->mr[q->mrs++] = mr;
    *segment = (struct rpcrdma_segment){rddp_mr_key(mr), length, rddp_mr_offset(mr, data)};
    return true;
}

bool request_fence(struct request *q)
{
    bool done = true;

    for (unsigned i = q->mrs; i > 0; i--) {
        if (rddp_dereg_mr(q->mr[i - 1]) != 0) {
            done = false;
            continue;
        }
        q->mr[i - 1] = q->mr[--q->mrs];
    }
    return done;
}

bool request_owns(const struct request *q, uint32_t handle)
{
    for (unsigned i = 0; i < q->mrs; i++)
        if (rddp_mr_key(q->mr[i]) == handle)
            return true;
    return false;
}

/* --- what was never written ------------------------------------------------------------------------------------- */

/* The place of a result gets a mark in each MARK_STEP octets. A mark that is still there in what the responder claims
 * to have written is not from it: it does not know the mark. */
static uint64_t mark_at(const struct request *q, uint32_t at)
{
    uint64_t v = (q->secret ^ ((uint64_t)q->xid << 32 | at)) * UINT64_C(0x9e3779b97f4a7c15);

    return v ^ v >> 29;
}

static void mark_place(const struct request *q, const struct request_item *item)
{
    for (uint64_t at = 0; at + sizeof(uint64_t) <= item->length; at += MARK_STEP) {
        uint64_t v = mark_at(q, (uint32_t)at);

        memcpy((uint8_t *)item->data + at, &v, sizeof(v));
    }
}

static bool was_written(const struct request *q, const struct request_item *item)
{
    for (uint64_t at = 0; at + sizeof(uint64_t) <= item->used; at += MARK_STEP) {
        uint64_t v = mark_at(q, (uint32_t)at);

        if (memcmp((const uint8_t *)item->data + at, &v, sizeof(v)) == 0)
            return false;
    }
    return true;
}

/* --- the message ----------------------------------------------------------------------------------------------- */

/* Octets of the header without the Read list and the Reply chunk. */
static size_t results_size(const struct request *q)
{
    size_t n = RPCRDMA_HEADER_MIN;

    for (unsigned i = 0; i < q->results; i++)
        n += q->result[i].data ? 24 : 8;
    return n;
}

static bool add_read(struct request *q, struct rddp_pd *pd, struct rpcrdma *h, uint32_t position, const void *data,
                     uint32_t length)
{
    struct rpcrdma_segment segment;

    return length == 0 || (offer(q, pd, data, length, RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_STABLE, &segment) &&
                           rpcrdma_add_read(h, position, segment));
}

static bool add_chunks(struct request *q, struct rddp_pd *pd, struct rpcrdma *h)
{
    for (unsigned i = 0; i < q->arguments; i++)
        if (!add_read(q, pd, h, q->argument[i].position, q->argument[i].data, q->argument[i].length))
            return false;
    return true;
}

/* Sends the whole stream as one Position Zero chunk, one segment for each piece of memory. Another Read chunk beside it
 * would be legal, but Linux does not understand that. Roundup stays inside the chunk (RFC 8166 3.5.3). */
static bool add_position_zero(struct request *q, struct rddp_pd *pd, struct rpcrdma *h)
{
    static const uint8_t zeros[4];
    size_t in = 0, out = 0;

    h->proc = RDMA_NOMSG;
    for (unsigned i = 0; i < q->arguments; i++) {
        const struct request_item *item = &q->argument[i];
        size_t lead = item->position - out;
        uint32_t pad = xdr_roundup(item->length);

        if (!add_read(q, pd, h, 0, q->call + in, (uint32_t)lead) || !add_read(q, pd, h, 0, item->data, item->length) ||
            !add_read(q, pd, h, 0, zeros, pad))
            return false;
        in += lead;
        out += lead + item->length + pad;
    }
    return add_read(q, pd, h, 0, q->call + in, (uint32_t)(q->call_length - in));
}

static bool add_results(struct request *q, struct rddp_pd *pd, struct rpcrdma *h)
{
    struct rpcrdma_segment segment;

    for (unsigned i = 0; i < q->results; i++) {
        struct request_item *item = &q->result[i];

        item->used = 0;
        if (item->data)
            mark_place(q, item);
        if (item->data &&
            !offer(q, pd, item->data, item->length, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE, &segment))
            return false;
        if (!rpcrdma_add_write(h, &segment, item->data ? 1 : 0))
            return false;
        q->result_handle[i] = item->data ? segment.handle : 0;
        q->result_offset[i] = item->data ? segment.offset : 0;
    }
    if (!q->offers_reply)
        return true;
    if (!offer(q, pd, q->reply, (uint32_t)q->reply_size, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE, &segment))
        return false;
    q->reply_handle = segment.handle;
    q->reply_offset = segment.offset;
    return rpcrdma_set_reply(h, &segment, 1);
}

size_t request_build(struct request *q, struct rddp_pd *pd, const struct request_limits *limits, uint8_t *to)
{
    struct rpcrdma h;
    struct stream_item item[REQUEST_ITEMS];
    size_t fixed = results_size(q), whole, n = 0;
    bool built = true, join;

    rpcrdma_init(&h, q->xid, RDMA_MSG);
    h.credit = limits->credits;
    q->access = limits->access;
    q->secret = limits->secret;
    for (unsigned i = 0; i < q->arguments; i++)
        item[i] = (struct stream_item){q->argument[i].position, q->argument[i].length, q->argument[i].data};
    if (!stream_is_sane(q->call_length, item, q->arguments))
        return 0;
    whole = stream_length(q->call_length, item, q->arguments);
    /* RFC 8166 4.3.3: offer a Reply chunk only if the longest reply does not fit inline. */
    q->offers_reply = fixed + q->reply_size > limits->receive_max;
    fixed += q->offers_reply ? REPLY_CHUNK_OCTETS : 0;
    join = fixed + whole <= limits->send_max;
    if (!join && fixed + READ_OCTETS * q->arguments + q->call_length <= limits->send_max)
        built = add_chunks(q, pd, &h);
    else if (!join)
        built = add_position_zero(q, pd, &h);
    if (built && add_results(q, pd, &h))
        n = rpcrdma_encode(&h, to, limits->send_max);
    if (n == 0) {
        request_fence(q);
        return 0;
    }
    if (join)
        stream_join(to + n, q->call, q->call_length, item, q->arguments);
    else if (h.proc == RDMA_MSG)
        memcpy(to + n, q->call, q->call_length);
    return n + (join ? whole : h.proc == RDMA_MSG ? q->call_length : 0);
}

/* --- the reply ------------------------------------------------------------------------------------------------- */

/* The responder returns each chunk with the same segments; only lengths may shrink (RFC 8166 3.4.6). A responder that
 * omits the Write list has used none of it. */
static bool results_are_mine(struct request *q, const struct rpcrdma *h)
{
    if (h->writes && h->writes != q->results)
        return false;
    for (unsigned i = 0; i < h->writes; i++) {
        const struct rpcrdma_segment *segment = &h->segment[h->write[i].first];

        if (h->write[i].count != (q->result[i].data ? 1 : 0))
            return false;
        if (!q->result[i].data)
            continue;
        if (segment->handle != q->result_handle[i] || segment->offset != q->result_offset[i] ||
            segment->length > q->result[i].length)
            return false;
        q->result[i].used = segment->length;
        if (!was_written(q, &q->result[i]))
            return false;
    }
    return true;
}

static bool reply_is_mine(const struct request *q, const struct rpcrdma *h)
{
    const struct rpcrdma_segment *segment;

    if (!h->has_reply)
        return true;
    segment = &h->segment[h->reply.first];
    if (!q->offers_reply || h->reply.count != 1 || segment->handle != q->reply_handle ||
        segment->offset != q->reply_offset || segment->length > q->reply_size)
        return false;
    return h->proc == RDMA_NOMSG || segment->length == 0;
}

static bool has_xid(const struct request *q)
{
    struct xdr_in in = {.at = q->reply, .left = q->reply_length};

    return xdr_get32(&in) == q->xid && !in.bad;
}

enum request_status request_take(struct request *q, const struct rpcrdma *h, const uint8_t *payload, size_t length)
{
    if (h->proc == RDMA_ERROR)
        return h->error == ERR_VERS ? REQUEST_BAD_VERSION : REQUEST_REFUSED;
    if (!results_are_mine(q, h) || !reply_is_mine(q, h))
        return REQUEST_BAD_REPLY;
    if (h->proc == RDMA_MSG) {
        if (length > q->reply_size)
            return REQUEST_BAD_REPLY;
        memcpy(q->reply, payload, length);
        q->reply_length = length;
    } else {
        q->reply_length = h->segment[h->reply.first].length;
    }
    return has_xid(q) ? REQUEST_OK : REQUEST_BAD_REPLY;
}
