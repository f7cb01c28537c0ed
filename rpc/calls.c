/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls.c - the calls of a requester: their order, their credits, and the table that finds a call by its XID. */
#include "rpc/requester_in.h"

void request_append(struct request_list *list, struct request *q)
{
    q->next = NULL;
    q->before = list->last;
    if (list->last)
        list->last->next = q;
    else
        list->first = q;
    list->last = q;
    list->count++;
}

void request_take_out(struct request_list *list, struct request *q)
{
    if (q->before)
        q->before->next = q->next;
    else
        list->first = q->next;
    if (q->next)
        q->next->before = q->before;
    else
        list->last = q->before;
    list->count--;
}

/* XIDs mostly count up, so their low bits spread them well. */
static struct request **calls_bucket_of(const struct requester *r, uint32_t xid)
{
    return &r->sent_table.bucket[xid & (r->sent_table.buckets - 1)];
}

static void request_index(struct requester *r, struct request *q)
{
    q->same_bucket = *calls_bucket_of(r, q->xid);
    *calls_bucket_of(r, q->xid) = q;
}

void request_unindex(struct requester *r, struct request *q)
{
    struct request **at = calls_bucket_of(r, q->xid);

    while (*at != q)
        at = &(*at)->same_bucket;
    *at = q->same_bucket;
}

struct request *request_find(const struct requester *r, uint32_t xid)
{
    struct request *q = *calls_bucket_of(r, xid);

    while (q && q->xid != xid)
        q = q->same_bucket;
    return q;
}

uint32_t requester_in_flight(const struct requester *r)
{
    return r->ghosts + r->sent.count;
}

void requester_end(struct requester *r, struct request *q, enum request_status status)
{
    q->state = REQUEST_DONE;
    q->status = status;
    r->ended++;
}

bool requester_take_back(struct requester *r, struct request *q)
{
    if (q->state == REQUEST_SENT) {
        request_unindex(r, q);
        request_take_out(&r->sent, q);
        if (r->ghosts < r->attr.credits)
            r->ghost[r->ghosts++] = q->xid;
    } else {
        request_take_out(&r->queued, q);
    }
    return request_fence(q);
}

bool requester_send_queued(struct requester *r)
{
    struct request_limits limits = {r->link.send_max, r->link.receive_max, r->attr.credits, 0, r->secret};

    if (r->attr.wire.wire == RDDP_WIRE_RDMATCP)
        limits.access = RDDP_ACCESS_ZERO_BASED;
    while (r->queued.first && rpcrdma_allowed(r->attr.credits, r->granted, requester_in_flight(r)) &&
           rpc_link_has_space(&r->link, 0)) {
        struct request *q = r->queued.first;
        size_t n = request_build(q, r->pd, &limits, rpc_link_message(&r->link));

        request_take_out(&r->queued, q);
        if (n == 0) {
            requester_end(r, q, REQUEST_NOT_SENT);
            continue;
        }
        r->stats.registered += q->mrs;
        request_append(&r->sent, q);
        request_index(r, q);
        q->state = REQUEST_SENT;
        if (rpc_link_send_here(&r->link, n, 0) != 0)
            return false;
        r->stats.sent++;
        if (requester_in_flight(r) > r->stats.most_in_flight)
            r->stats.most_in_flight = requester_in_flight(r);
    }
    return true;
}
