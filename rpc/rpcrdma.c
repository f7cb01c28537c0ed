/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcrdma.c - the header of RPC-over-RDMA version 1: first its XDR, then the checks of each role. */
#include "rpc/rpcrdma.h"

#include <string.h>

#include "rpc/xdrbytes.h"

/* --- the lists ------------------------------------------------------------------------------------------------- */

static bool get_segment(struct xdr_in *in, struct rpcrdma *h)
{
    struct rpcrdma_segment *segment = &h->segment[h->segments];

    if (h->segments == RPCRDMA_SEGMENTS)
        return false;
    segment->handle = xdr_get32(in);
    segment->length = xdr_get32(in);
    segment->offset = xdr_get64(in);
    h->segments++;
    return !in->bad;
}

static bool get_chunk(struct xdr_in *in, struct rpcrdma *h, struct rpcrdma_chunk *chunk)
{
    chunk->count = xdr_get32(in);
    chunk->first = h->segments;
    for (uint32_t i = 0; i < chunk->count; i++)
        if (!get_segment(in, h))
            return false;
    return !in->bad;
}

/* RFC 8166 4.7: { 1 PHLOO }* 0, { 1 n HLOO... }* 0, then 0 or 1 n HLOO... */
static bool get_lists(struct xdr_in *in, struct rpcrdma *h)
{
    while (xdr_getbool(in)) {
        if (h->segments == RPCRDMA_SEGMENTS)
            return false;
        h->position[h->segments] = xdr_get32(in);
        if (!get_segment(in, h))
            return false;
        h->reads++;
    }
    while (xdr_getbool(in)) {
        if (h->writes == RPCRDMA_CHUNKS || !get_chunk(in, h, &h->write[h->writes]))
            return false;
        h->writes++;
    }
    h->has_reply = xdr_getbool(in);
    return (!h->has_reply || get_chunk(in, h, &h->reply)) && !in->bad;
}

/* Reads the words that all versions have. Returns false if the message is too short. */
static bool get_fixed(struct xdr_in *in, struct rpcrdma *h)
{
    memset(h, 0, offsetof(struct rpcrdma, segment));
    h->xid = xdr_get32(in);
    h->version = xdr_get32(in);
    h->credit = xdr_get32(in);
    h->proc = xdr_get32(in);
    h->length = RPCRDMA_FIXED;
    return !in->bad;
}

/* --- the checks of chunks -------------------------------------------------------------------------------------- */

static bool wraps(const struct rpcrdma_segment *s)
{
    return s->length && s->offset > UINT64_MAX - (s->length - 1);
}

static bool overlap(const struct rpcrdma_segment *a, const struct rpcrdma_segment *b)
{
    if (a->handle != b->handle || !a->length || !b->length)
        return false;
    return a->offset <= b->offset ? b->offset - a->offset < a->length : a->offset - b->offset < b->length;
}

/* Segments that are written must not overlap, since the result would be undefined. Segments that are read may
 * overlap. */
static bool segments_are_sane(const struct rpcrdma *h)
{
    for (uint32_t i = 0; i < h->segments; i++)
        if (wraps(&h->segment[i]))
            return false;
    for (uint32_t i = h->reads; i < h->segments; i++)
        for (uint32_t k = i + 1; k < h->segments; k++)
            if (overlap(&h->segment[i], &h->segment[k]))
                return false;
    return true;
}

/* Positions are multiples of four (RFC 8166 3.4.5). The Payload stream is either in the message or in a Position Zero
 * chunk, never in both (4.2.4). */
static bool reads_are_sane(const struct rpcrdma *h)
{
    bool zero = false;

    for (uint32_t i = 0; i < h->reads; i++) {
        if (h->position[i] & 3)
            return false;
        zero |= h->position[i] == 0;
    }
    return zero == (h->proc == RDMA_NOMSG);
}

/* The Payload stream starts with the XID of the header (RFC 8166 3.2, 4.2.1). */
static bool payload_has_xid(const struct rpcrdma *h, const struct xdr_in *in)
{
    struct xdr_in payload = *in;

    return xdr_get32(&payload) == h->xid && !payload.bad;
}

/* --- the two roles --------------------------------------------------------------------------------------------- */

enum rpcrdma_verdict rpcrdma_decode_call(struct rpcrdma *h, const uint8_t *p, size_t n)
{
    struct xdr_in in = {.at = p, .left = n};

    if (!get_fixed(&in, h) || n < RPCRDMA_HEADER_MIN)
        return RPCRDMA_DISCARD;
    /* 4.2.4: RDMA_ERROR means the same in all versions and is never answered. */
    if (h->proc == RDMA_ERROR)
        return RPCRDMA_DISCARD;
    if (h->version != RPCRDMA_VERSION)
        return RPCRDMA_SAY_VERS;
    if (h->proc == RDMA_DONE)
        return RPCRDMA_DISCARD;
    if (h->proc > RDMA_NOMSG || !get_lists(&in, h))
        return RPCRDMA_SAY_CHUNK;
    h->length = n - in.left;
    if (!segments_are_sane(h) || !reads_are_sane(h))
        return RPCRDMA_SAY_CHUNK;
    if (h->proc == RDMA_MSG && !payload_has_xid(h, &in))
        return RPCRDMA_SAY_CHUNK;
    return RPCRDMA_ACCEPT;
}

static enum rpcrdma_verdict decode_error(struct rpcrdma *h, struct xdr_in *in, size_t n)
{
    h->error = xdr_get32(in);
    if (h->error == ERR_VERS) {
        h->version_low = xdr_get32(in);
        h->version_high = xdr_get32(in);
    }
    h->length = n - in->left;
    if (in->bad || (h->error != ERR_VERS && (h->error != ERR_CHUNK || h->version != RPCRDMA_VERSION)))
        return RPCRDMA_DISCARD;
    return RPCRDMA_ACCEPT;
}

enum rpcrdma_verdict rpcrdma_decode_reply(struct rpcrdma *h, const uint8_t *p, size_t n)
{
    struct xdr_in in = {.at = p, .left = n};

    if (!get_fixed(&in, h))
        return RPCRDMA_DISCARD;
    if (h->proc == RDMA_ERROR)
        return decode_error(h, &in, n);
    if (n < RPCRDMA_HEADER_MIN || h->version != RPCRDMA_VERSION || h->proc > RDMA_NOMSG || !get_lists(&in, h))
        return RPCRDMA_DISCARD;
    h->length = n - in.left;
    if (h->reads)
        return RPCRDMA_DISCARD;
    if (h->proc == RDMA_MSG)
        return payload_has_xid(h, &in) ? RPCRDMA_ACCEPT : RPCRDMA_DISCARD;
    return h->has_reply && rpcrdma_chunk_length(h, h->reply) ? RPCRDMA_ACCEPT : RPCRDMA_DISCARD;
}

enum rpcrdma_direction rpcrdma_direction(const uint8_t *p, size_t n)
{
    struct xdr_in in = {.at = p, .left = n};
    struct rpcrdma h;
    uint32_t type;

    if (!get_fixed(&in, &h) || h.version != RPCRDMA_VERSION || h.proc != RDMA_MSG || !get_lists(&in, &h))
        return RPCRDMA_NEITHER;
    xdr_get32(&in);
    type = xdr_get32(&in);
    return in.bad || type > 1 ? RPCRDMA_NEITHER : type ? RPCRDMA_REPLY : RPCRDMA_CALL;
}

/* --- encoding -------------------------------------------------------------------------------------------------- */

static void put_segment(struct xdr_out *out, const struct rpcrdma_segment *segment)
{
    xdr_put32(out, segment->handle);
    xdr_put32(out, segment->length);
    xdr_put64(out, segment->offset);
}

static void put_chunk(struct xdr_out *out, const struct rpcrdma *h, struct rpcrdma_chunk chunk)
{
    xdr_put32(out, 1);
    xdr_put32(out, chunk.count);
    for (uint32_t i = 0; i < chunk.count; i++)
        put_segment(out, &h->segment[chunk.first + i]);
}

static void put_lists(struct xdr_out *out, const struct rpcrdma *h)
{
    for (uint32_t i = 0; i < h->reads; i++) {
        xdr_put32(out, 1);
        xdr_put32(out, h->position[i]);
        put_segment(out, &h->segment[i]);
    }
    xdr_put32(out, 0);
    for (uint32_t i = 0; i < h->writes; i++)
        put_chunk(out, h, h->write[i]);
    xdr_put32(out, 0);
    if (h->has_reply)
        put_chunk(out, h, h->reply);
    else
        xdr_put32(out, 0);
}

static void put_error(struct xdr_out *out, const struct rpcrdma *h)
{
    xdr_put32(out, h->error);
    if (h->error == ERR_VERS) {
        xdr_put32(out, h->version_low);
        xdr_put32(out, h->version_high);
    }
}

size_t rpcrdma_size(const struct rpcrdma *h)
{
    size_t n = RPCRDMA_HEADER_MIN + 24 * (size_t)h->reads;

    if (h->proc == RDMA_ERROR)
        return h->error == ERR_VERS ? RPCRDMA_ERR_VERS_OCTETS : RPCRDMA_ERR_CHUNK_OCTETS;
    for (uint32_t i = 0; i < h->writes; i++)
        n += 8 + 16 * (size_t)h->write[i].count;
    return n + (h->has_reply ? 4 + 16 * (size_t)h->reply.count : 0);
}

size_t rpcrdma_encode(const struct rpcrdma *h, uint8_t *to, size_t capacity)
{
    struct xdr_out out = {.at = to, .left = capacity};

    if (h->proc == RDMA_MSGP || h->proc == RDMA_DONE)
        return 0;
    xdr_put32(&out, h->xid);
    xdr_put32(&out, h->version);
    xdr_put32(&out, h->credit);
    xdr_put32(&out, h->proc);
    if (h->proc == RDMA_ERROR)
        put_error(&out, h);
    else
        put_lists(&out, h);
    return out.bad ? 0 : capacity - out.left;
}

/* --- building a header ----------------------------------------------------------------------------------------- */

void rpcrdma_init(struct rpcrdma *h, uint32_t xid, uint32_t proc)
{
    memset(h, 0, offsetof(struct rpcrdma, segment));
    h->xid = xid;
    h->version = RPCRDMA_VERSION;
    h->proc = proc;
}

bool rpcrdma_add_read(struct rpcrdma *h, uint32_t position, struct rpcrdma_segment segment)
{
    if (h->segments == RPCRDMA_SEGMENTS || h->segments != h->reads)
        return false;
    h->position[h->segments] = position;
    h->segment[h->segments++] = segment;
    h->reads++;
    return true;
}

static bool add_chunk(struct rpcrdma *h, struct rpcrdma_chunk *chunk, const struct rpcrdma_segment *segment,
                      uint32_t count)
{
    if (count > RPCRDMA_SEGMENTS - h->segments)
        return false;
    *chunk = (struct rpcrdma_chunk){.first = h->segments, .count = count};
    for (uint32_t i = 0; i < count; i++)
        h->segment[h->segments++] = segment[i];
    return true;
}

bool rpcrdma_add_write(struct rpcrdma *h, const struct rpcrdma_segment *segment, uint32_t count)
{
    if (h->writes == RPCRDMA_CHUNKS || h->has_reply || !add_chunk(h, &h->write[h->writes], segment, count))
        return false;
    h->writes++;
    return true;
}

bool rpcrdma_set_reply(struct rpcrdma *h, const struct rpcrdma_segment *segment, uint32_t count)
{
    h->has_reply = !h->has_reply && add_chunk(h, &h->reply, segment, count);
    return h->has_reply;
}

/* --- arithmetic ------------------------------------------------------------------------------------------------ */

uint64_t rpcrdma_chunk_length(const struct rpcrdma *h, struct rpcrdma_chunk chunk)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < chunk.count; i++)
        n += h->segment[chunk.first + i].length;
    return n;
}

bool rpcrdma_fill(struct rpcrdma *h, struct rpcrdma_chunk chunk, uint64_t length)
{
    if (length > rpcrdma_chunk_length(h, chunk))
        return false;
    for (uint32_t i = 0; i < chunk.count; i++) {
        struct rpcrdma_segment *segment = &h->segment[chunk.first + i];

        if (segment->length > length)
            segment->length = (uint32_t)length;
        length -= segment->length;
    }
    return true;
}

uint32_t rpcrdma_allowed(uint32_t requested, uint32_t granted, uint32_t in_flight)
{
    uint32_t allowed = granted ? granted : 1;

    if (allowed > requested)
        allowed = requested;
    return in_flight < allowed ? allowed - in_flight : 0;
}
