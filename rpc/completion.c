/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* completion.c - the completions of a responder, and the end of its connections: what a completion permits is done,
 * what was posted on the way is flushed, and a dead connection is taken down once no completion refers to its calls. */
#include <stdlib.h>

#include "rpc/responder_inner.h"

enum { POLL_BATCH = 16, REAP_TURNS = 256 };

bool responder_flush(struct responder *r)
{
    struct rpc_conn *conn = r->dirty;
    bool any = conn;

    r->dirty = NULL;
    for (struct rpc_conn *next; conn; conn = next) {
        next = conn->next_dirty;
        conn->is_dirty = false;
        if (!conn->dead && rpc_link_flush(&conn->link) != 0)
            conn_end(conn);
    }
    return any;
}

/* The first RDMA request that fails names the call with the bad chunk; the requests behind it are only flushed. */
static void complete_badly(struct rpc_conn *conn, const struct link_done *done)
{
    if (done->kind == LINK_RDMA && done->wc.status != RDDP_WC_WR_FLUSH_ERR)
        failure_note(done->cookie);
    conn_end(conn);
}

static void complete_one(struct responder *r, struct link_done *done)
{
    struct rpc_conn *conn;

    rpc_link_identify(done);
    conn = done->kind == LINK_RDMA ? ((struct rpc_serve *)done->cookie)->call.conn : r->slot[done->tag];
    if (rpc_link_take(&conn->link, done) != 0) {
        complete_badly(conn, done);
        return;
    }
    if (conn->dead)
        return;
    if (done->kind == LINK_RECEIVE) {
        conn->received_ms = r->now_ms;
        serve_receive(conn, done);
        return;
    }
    conn->moved_ms = r->now_ms;
    if (done->kind == LINK_RDMA)
        serve_transferred(done->cookie);
    serve_waiting(conn);
    backward_send(conn);
}

int responder_take_completions(struct responder *r)
{
    struct rddp_wc wc[POLL_BATCH];
    int n = rddp_poll_cq(r->cq, POLL_BATCH, wc);

    for (int i = 0; i < n; i++) {
        struct link_done done = {.wc = wc[i]};

        complete_one(r, &done);
    }
    serve_starved(r);
    return n;
}

void conn_take_down(struct rpc_conn *conn)
{
    struct responder *r = conn->responder;
    uint32_t tag = conn->tag;

    rpc_link_close(&conn->link);
    pull_abandon(conn);
    serve_abandon(conn);
    backward_abandon(conn);
    if (conn->pd)
        rddp_dealloc_pd(conn->pd);
    r->slot[tag] = NULL;
    r->slot_idle[r->slots_idle++] = tag;
    r->stats.connections--;
    free(conn);
}

void responder_reap(struct responder *r)
{
    struct rpc_conn *conn;

    for (int turns = REAP_TURNS; turns && responder_take_completions(r) == POLL_BATCH; turns--)
        responder_flush(r);
    responder_flush(r);
    while ((conn = r->dying)) {
        r->dying = conn->next_dying;
        r->stats.lost++;
        conn_take_down(conn);
    }
}
