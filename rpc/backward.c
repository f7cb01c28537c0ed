/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* backward.c - calls from a responder to its peer (RFC 8167): Short Messages with their own credits. */
#include <errno.h>
#include <string.h>

#include "rpc/responder_inner.h"
#include "rpc/xdrbytes.h"

static uint32_t xid_of(const struct backcall *b)
{
    struct xdr_in in = {.at = b->call, .left = b->length};

    return xdr_get32(&in);
}

static void backward_append(struct backcall **list, struct backcall *b)
{
    while (*list)
        list = &(*list)->next;
    b->next = NULL;
    *list = b;
}

static uint32_t backward_count(const struct backcall *b)
{
    uint32_t n = 0;

    for (; b; b = b->next)
        n++;
    return n;
}

void backward_send(struct rpc_conn *conn)
{
    uint32_t asked = conn->responder->attr.backward_credits;
    uint8_t head[RPCRDMA_HEADER_MIN];

    while (conn->back_queued && rpcrdma_allowed(asked, conn->back_granted, backward_count(conn->back_sent)) &&
           rpc_link_has_space(&conn->link, 0)) {
        struct backcall *b = conn->back_queued;
        struct rpcrdma h = {.xid = xid_of(b), .version = RPCRDMA_VERSION, .credit = asked, .proc = RDMA_MSG};
        size_t n = rpcrdma_encode(&h, head, sizeof(head));
        struct link_message message = {head, b->call, n, b->length};

        conn->back_queued = b->next;
        backward_append(&conn->back_sent, b);
        b->state = BACKCALL_SENT;
        conn_touch(conn);
        if (rpc_link_send(&conn->link, &message, 0) != 0)
            conn_end(conn);
    }
}

int responder_call_back(struct rpc_conn *conn, struct backcall *b)
{
    if (b->length < 4 || b->length + RPCRDMA_HEADER_MIN > conn->link.send_max)
        return -EMSGSIZE;
    if (conn->dead)
        return -ENOTCONN;
    b->state = BACKCALL_QUEUED;
    b->reply_length = 0;
    backward_append(&conn->back_queued, b);
    backward_send(conn);
    return 0;
}

bool backward_receive(struct rpc_conn *conn, const struct link_done *done)
{
    struct backcall **at = &conn->back_sent, *b;
    struct rpcrdma h;
    size_t n;

    if (rpcrdma_decode_reply(&h, done->data, done->length) != RPCRDMA_ACCEPT)
        return false;
    while (*at && xid_of(*at) != h.xid)
        at = &(*at)->next;
    if (!*at)
        return false;
    b = *at;
    *at = b->next;
    conn->back_granted = h.credit;
    n = done->length - h.length;
    b->state = BACKCALL_FAILED;
    if (h.proc == RDMA_MSG && !h.segments && n <= b->capacity) {
        memcpy(b->reply, done->data + h.length, n);
        b->reply_length = n;
        b->state = BACKCALL_ANSWERED;
    }
    backward_send(conn);
    return true;
}

void backward_abandon(struct rpc_conn *conn)
{
    struct backcall *lists[] = {conn->back_queued, conn->back_sent};

    for (size_t i = 0; i < 2; i++)
        for (struct backcall *b = lists[i], *next; b; b = next) {
            next = b->next;
            b->state = BACKCALL_FAILED;
        }
    conn->back_queued = conn->back_sent = NULL;
}
