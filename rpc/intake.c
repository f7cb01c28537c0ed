/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* intake.c - messages that a requester receives: replies, and calls from the responder. */
#include "rpc/clock.h"
#include "rpc/requester_in.h"

static bool forget_ghost(struct requester *r, uint32_t xid)
{
    for (uint32_t i = 0; i < r->ghosts; i++)
        if (r->ghost[i] == xid) {
            r->ghost[i] = r->ghost[--r->ghosts];
            return true;
        }
    return false;
}

/* RFC 8167 5: a call from the responder. Chunks are not supported in this direction and are answered with ERR_CHUNK.
 * Returns false if the connection must be closed. */
static bool answer_backward(struct requester *r, const struct link_done *done)
{
    struct rpcrdma h, answer;
    enum rpcrdma_verdict verdict = rpcrdma_decode_call(&h, done->data, done->length);
    size_t head, n = 0;
    uint8_t *to;

    if (!r->attr.backward || verdict == RPCRDMA_DISCARD) {
        r->stats.discarded++;
        return true;
    }
    rpcrdma_init(&answer, h.xid, RDMA_MSG);
    answer.credit = r->attr.backward_credits;
    if (verdict != RPCRDMA_ACCEPT || h.segments || h.writes || h.has_reply) {
        answer.proc = RDMA_ERROR;
        answer.error = ERR_CHUNK;
    }
    if (!rpc_link_has_space(&r->link, 0))
        return false;
    to = rpc_link_message(&r->link);
    head = rpcrdma_encode(&answer, to, r->link.send_max);
    if (answer.proc == RDMA_MSG) {
        n = r->attr.backward(r->attr.user, done->data + h.length, done->length - h.length, to + head,
                             r->link.send_max - head);
        if (n == 0)
            return true;
    }
    return rpc_link_send_here(&r->link, head + n, 0) == 0;
}

/* The responder may only invalidate a handle of the call that it answers (RFC 8797 3). */
static bool invalidation_is_fair(struct requester *r, const struct request *q, const struct rddp_wc *wc)
{
    if (!(wc->wc_flags & RDDP_WC_WITH_INV))
        return true;
    r->stats.remotely_invalidated++;
    return q && request_owns(q, wc->invalidated_rkey);
}

/* Returns false if the connection must be closed; the call is then sent again. */
static bool intake_take_reply(struct requester *r, const struct link_done *done)
{
    struct request *q;
    struct rpcrdma h;

    if (rpcrdma_decode_reply(&h, done->data, done->length) != RPCRDMA_ACCEPT) {
        r->stats.discarded++;
        return invalidation_is_fair(r, NULL, &done->wc);
    }
    q = request_find(r, h.xid);
    if (!q) {
        if (forget_ghost(r, h.xid))
            r->granted = h.credit;
        r->stats.late++;
        return true;
    }
    if (!invalidation_is_fair(r, q, &done->wc))
        return false;
    r->granted = h.credit;
    r->backoff_ms = BACKOFF_MIN_MS;
    /* RFC 8166 4.4.1, 4.5.4: the responder loses access to the call's memory before anybody reads it. If that fails,
     * the connection ends. */
    if (!request_fence(q))
        return false;
    request_unindex(r, q);
    request_take_out(&r->sent, q);
    requester_end(r, q, request_take(q, &h, done->data + h.length, done->length - h.length));
    return true;
}

bool intake(struct requester *r, const struct link_done *done)
{
    bool good = rpcrdma_direction(done->data, done->length) == RPCRDMA_CALL ? answer_backward(r, done)
                                                                            : intake_take_reply(r, done);

    silence_broken(r, clock_ms());
    return good && rpc_link_repost(&r->link, done->index) == 0;
}
