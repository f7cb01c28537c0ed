/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* accept.c - connection requests to a responder: whether there is a place for a peer, and what it may use from its
 * first Send on. */
#include <errno.h>
#include <stdlib.h>

#include "rpc/eviction.h"
#include "rpc/responder_inner.h"

/* Everything that the peer may use with its first Send is ready before the connection is accepted. */
static int responder_accept_conn(struct responder *r, struct rpc_conn *conn, struct rddp_event *event)
{
    struct private sizes = private_own(r->attr.private_data, r->attr.send_size, r->attr.receive_size);
    uint8_t data[PRIVATE_OCTETS];
    struct rddp_conn_attr attr;
    struct link_attr link = {.receives = r->attr.credits + r->attr.backward_credits,
                             .receive_size = r->attr.receive_size,
                             .sends = r->attr.credits + r->attr.backward_credits + CONN_SENDS_SPARE,
                             .send_size = r->attr.send_size,
                             .cq = r->cq,
                             .tag = conn->tag,
                             .user = conn};
    int error;

    link.queue = link.sends + CONN_RDMA;
    conn->pd = rddp_alloc_pd(r->context);
    if (!conn->pd)
        return -ENOMEM;
    error = rpc_link_open(&conn->link, conn->pd, &link);
    if (error)
        return error;
    rpc_link_agree(&conn->link, &sizes, event->private_data, event->private_data_length);
    rddp_conn_attr_init(&attr);
    private_encode(data, &sizes);
    if (r->attr.private_data) {
        attr.private_data = data;
        attr.private_data_length = sizeof(data);
    }
    error = rddp_accept(event->request, conn->link.qp, &attr);
    event->request = NULL;
    return error;
}

/* Finds the connection to close so that one from `peer` can be accepted. */
static int responder_find_place(const struct responder *r, const struct sockaddr_storage *peer, struct rpc_conn **loser)
{
    const struct eviction_limits limits = {r->attr.connections_max, r->attr.address_max, r->attr.rest_ms};
    struct rpc_eviction *place = calloc(r->attr.connections_max, sizeof(*place));
    struct rpc_conn **conns = calloc(r->attr.connections_max, sizeof(struct rpc_conn *));
    unsigned n = 0;
    int found = PLACE_NONE;

    for (uint32_t i = 0; place && conns && i < r->attr.connections_max; i++) {
        struct rpc_conn *conn = r->slot[i];

        if (!conn)
            continue;
        conns[n] = conn;
        place[n++] = (struct rpc_eviction){
            .peer = &conn->peer,
            .idle_ms = r->now_ms - (conn->received_ms > conn->moved_ms ? conn->received_ms : conn->moved_ms),
            .is_busy = conn->is_dirty || conn->calls || conn->back_queued || conn->back_sent,
        };
    }
    if (place && conns)
        found = eviction_find_fair(place, n, &limits, peer);
    if (found >= 0 && conns[found]->is_dirty) /* it is in a list, until this round ends */
        found = PLACE_NONE;
    *loser = found >= 0 ? conns[found] : NULL;
    free(place);
    free(conns);
    return found;
}

static bool responder_make_place(struct responder *r, const struct sockaddr_storage *peer)
{
    struct rpc_conn *loser;
    int found;

    if (r->attr.admit && !r->attr.admit(r->attr.user, peer))
        return false;
    if (r->dying || (r->dirty && !r->slots_idle))
        responder_reap(r);
    found = responder_find_place(r, peer, &loser);
    if (found < 0)
        return found == PLACE_FREE;
    r->stats.displaced++;
    conn_take_down(loser);
    return true;
}

static void responder_take_request(struct responder *r, struct rddp_event *event)
{
    struct sockaddr_storage peer = {0};
    struct rpc_conn *conn = NULL;

    if (rddp_request_addr(event->request, &peer) == 0 && responder_make_place(r, &peer))
        conn = calloc(1, sizeof(*conn));
    if (conn) {
        *conn = (struct rpc_conn){.responder = r, .back_granted = 1, .tag = r->slot_idle[--r->slots_idle]};
        conn->peer = peer;
        conn->received_ms = r->now_ms;
        r->slot[conn->tag] = conn;
        r->stats.connections++;
        r->stats.accepted++;
        if (responder_accept_conn(r, conn, event) != 0)
            conn_end(conn);
    }
    if (!event->request)
        return;
    r->stats.rejected++;
    rddp_reject(event->request, NULL, 0);
}

bool responder_take_events(struct responder *r)
{
    struct rddp_event *event;
    bool any = false;

    while (rddp_get_event(r->events, &event) == 0) {
        any = true;
        if (event->type == RDDP_EVENT_CONNECT_REQUEST)
            responder_take_request(r, event);
        else if (event->type != RDDP_EVENT_ESTABLISHED)
            conn_end(event->user);
        rddp_ack_event(event);
    }
    return any;
}
