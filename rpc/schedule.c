/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* schedule.c - what the next round of a responder has to do: connections to flush, connections to take down. */
#include "rpc/responder_inner.h"

void responder_kick(struct responder *r)
{
    if (!r->in_round)
        rpc_wait_kick(&r->wait);
}

void conn_end(struct rpc_conn *conn)
{
    struct responder *r = conn->responder;

    if (conn->dead)
        return;
    conn->dead = true;
    conn->next_dying = r->dying;
    r->dying = conn;
    responder_kick(r);
}

void conn_touch(struct rpc_conn *conn)
{
    struct responder *r = conn->responder;

    if (conn->link.queue_left == conn->link.attr.queue)
        conn->moved_ms = r->now_ms;
    if (conn->is_dirty)
        return;
    conn->is_dirty = true;
    conn->next_dirty = r->dirty;
    r->dirty = conn;
    responder_kick(r);
}
