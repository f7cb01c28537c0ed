/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_provider_conn.h - the part of rpc_provider.h, which includes it, that makes connections; they always succeed. */
#ifndef RDDP_TESTS_RPC_PROVIDER_CONN_H
#define RDDP_TESTS_RPC_PROVIDER_CONN_H

#include "tests/sim/rpc_provider.h"

struct rddp_listener *rddp_listen(struct rddp_event_channel *channel, const struct sockaddr *addr, socklen_t length,
                                  int backlog, const struct rddp_wire_attr *wire, void *user)
{
    struct rddp_listener *listener = provider_new(sizeof(*listener));

    (void)addr;
    (void)length;
    (void)backlog;
    (void)wire;
    (void)user;
    listener->channel = channel;
    return listener;
}

int rddp_destroy_listener(struct rddp_listener *listener)
{
    provider_free(listener);
    return 0;
}

int rddp_listener_addr(const struct rddp_listener *listener, struct sockaddr_storage *addr)
{
    (void)listener;
    memset(addr, 0, sizeof(*addr));
    return 0;
}

int rddp_request_addr(const struct rddp_request *request, struct sockaddr_storage *peer)
{
    (void)request;
    memset(peer, 0, sizeof(*peer));
    return 0;
}

int rddp_accept(struct rddp_request *request, struct rddp_qp *qp, const struct rddp_conn_attr *attr)
{
    (void)attr;
    provider_free(request);
    qp->connected = true;
    provider_tell(RDDP_EVENT_ESTABLISHED, qp, NULL, 0);
    return 0;
}

int rddp_reject(struct rddp_request *request, const void *private_data, uint16_t private_data_length)
{
    (void)private_data;
    (void)private_data_length;
    provider_free(request);
    return 0;
}

/* The peer accepts at once, and supports Send with Invalidate. */
int rddp_connect(struct rddp_qp *qp, struct rddp_event_channel *channel, const struct sockaddr *addr, socklen_t length,
                 const struct rddp_conn_attr *attr)
{
    (void)channel;
    (void)addr;
    (void)length;
    qp->connected = true;
    provider_tell(RDDP_EVENT_ESTABLISHED, qp, attr->private_data, attr->private_data_length);
    return 0;
}

#endif
