/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - connections are asked for, awaited, accepted, rejected and ended. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/cm/datagram.h"

/* perftest's server closes its first listener before it opens the second, and its client crashes if it is refused in
 * between. With an adapter the client is too slow to meet that; on a busy machine 200 ms are not enough for the server.
 */
enum { RETRY_REFUSED_MS = 1000 };

/* RoCE; or iWARP in which the acceptor may speak first, as programs for InfiniBand do. */
static void set_wire(struct rddp_wire_attr *wire, const struct ibv_device *device)
{
    wire->peer_to_peer = true;
    if (device_is_ib(device))
        wire->wire = RDDP_WIRE_ROCE;
}

/* The queue pair that the id shows, or that of the application which `param` names. Applications move a queue pair to
 * another id by this pointer: uDAPL has one before it has the request. */
static struct verbs_qp *qp_named(struct cm_id *id, const struct rdma_conn_param *param)
{
    struct verbs_qp *qp = param ? verbs_qp_find(param->qp_num) : NULL;

    if (id->ibv.qp)
        qp = qp_of(id->ibv.qp);
    if (qp)
        cm_id_attach(id, qp);
    return qp;
}

static int check_param(const struct rdma_conn_param *param)
{
    if (!param)
        return 0;
    if (param->responder_resources > VERBS_READS_MAX && param->responder_resources != RDMA_MAX_RESP_RES)
        return -EINVAL;
    return param->initiator_depth > VERBS_READS_MAX && param->initiator_depth != RDMA_MAX_INIT_DEPTH ? -EINVAL : 0;
}

static struct rddp_event_channel *events_of(struct cm_id *id)
{
    return cm_channel_of(id->ibv.channel)->rddp;
}

/* `as_asked` stands for "as much as possible": what the peer can take. */
static uint16_t reads_wanted(uint8_t n, uint8_t as_asked)
{
    return n == RDMA_MAX_RESP_RES ? as_asked : n;
}

/* A count of 0 stands where a program has filled in nothing, as fio does: on its adapters nothing was ever lost, and
 * the receives were there in time. UDP and processes are no adapters. */
static uint8_t retries_wanted(uint8_t count)
{
    enum { RETRIES = 7 };

    return count ? count : RETRIES;
}

static void set_conn(struct rddp_conn_attr *attr, const struct cm_id *id, const struct rdma_conn_param *param)
{
    uint8_t in = id->request ? id->peer_ord : VERBS_READS_MAX, out = id->request ? id->peer_ird : VERBS_READS_MAX;

    rddp_conn_attr_init(attr);
    set_wire(&attr->wire, id->device);
    attr->ird = in;
    attr->ord = out;
    attr->ack_timeout = id->ack_timeout;
    if (!param)
        return;
    attr->private_data = param->private_data;
    attr->private_data_length = param->private_data ? param->private_data_len : 0;
    attr->retry_count = retries_wanted(param->retry_count);
    attr->rnr_retry_count = retries_wanted(param->rnr_retry_count);
    attr->ird = reads_wanted(param->responder_resources, in);
    attr->ord = reads_wanted(param->initiator_depth, out);
}

/* The connection leaves from the address that was bound or resolved. */
static int connect_from(struct cm_id *id, const struct sockaddr *to, struct rddp_conn_attr *attr)
{
    if (id->fd >= 0)
        close(id->fd); /* it kept the port */
    id->fd = -1;
    attr->local = &id->ibv.route.addr.src_addr;
    attr->retry_refused_ms = RETRY_REFUSED_MS;
    return rddp_connect(id->qp->rddp, events_of(id), to, cm_address_length(to), attr);
}

int rdma_connect(struct rdma_cm_id *ibv, struct rdma_conn_param *param)
{
    struct cm_id *id = cm_of(ibv);
    struct rddp_conn_attr attr;
    int error = check_param(param);
    bool is_sync;

    if (error)
        return cm_result(error);
    verbs_enter();
    is_sync = id->is_sync;
    if (id->state != CM_ROUTE_RESOLVED || (!cm_is_datagram(id) && !qp_named(id, param))) {
        error = -EINVAL;
    } else if (cm_is_datagram(id)) {
        error = cm_datagram_connect(id, param);
    } else {
        set_conn(&attr, id, param);
        error = connect_from(id, &ibv->route.addr.dst_addr, &attr);
    }
    if (!error) {
        id->is_active = true;
        id->state = CM_CONNECTING;
    }
    verbs_leave();
    if (error == -EINVAL)
        return cm_refuse("rdma_connect", id,
                         "its route is not resolved, it is connected, or it has no queue pair in INIT");
    return cm_finish(id, is_sync, error);
}

/* Listens on one device: with the socket, or at its address. Returns 0, or a negative errno. */
static int listen_on(struct cm_id *id, struct ibv_device *device, int backlog)
{
    const struct sockaddr *address = &id->ibv.route.addr.src_addr;
    struct cm_listener *at = &id->listener[device_is_ib(device)];
    struct rddp_wire_attr wire;
    int fd = id->fd;

    at->id = id;
    at->device = device;
    rddp_wire_attr_init(&wire);
    set_wire(&wire, device);
    wire.datagrams = cm_is_datagram(id);
    if (device_is_ib(device)) {
        at->rddp = rddp_listen(events_of(id), address, cm_address_length(address), backlog, &wire, at);
    } else {
        if (listen(fd, backlog))
            return -errno;
        id->fd = -1; /* rddp's, whatever it returns */
        at->rddp = rddp_listen_fd(events_of(id), fd, &wire, at);
    }
    return at->rddp ? 0 : -errno;
}

static int listen_on_all(struct cm_id *id, int backlog)
{
    struct ibv_device *device, *only = cm_id_device(id);
    int error = only || verbs_device_at(0) ? 0 : -ENODEV;

    for (unsigned i = 0; !error && (device = verbs_device_at(i)); i++) {
        if (!only || only == device)
            error = listen_on(id, device, backlog);
    }
    for (unsigned i = 0; error && i < CM_DEVICES; i++) {
        if (id->listener[i].rddp)
            rddp_destroy_listener(id->listener[i].rddp);
        id->listener[i].rddp = NULL;
    }
    return error;
}

int rdma_listen(struct rdma_cm_id *ibv, int backlog)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct cm_id *id = cm_of(ibv);
    int error;

    if (id->state != CM_IDLE)
        return cm_refuse("rdma_listen", id, "it listens already, or is resolved or connected");
    if (id->fd < 0 && cm_bind(id, (struct sockaddr *)&any))
        return -1;
    verbs_enter();
    error = listen_on_all(id, backlog > 0 ? backlog : CM_BACKLOG_DEFAULT);
    if (!error)
        id->state = CM_LISTENING;
    verbs_leave();
    return cm_result(error);
}

static bool has_queue_pair(struct cm_id *id, const struct rdma_conn_param *param)
{
    return cm_is_datagram(id) ? cm_datagram_qpn(id, param) : qp_named(id, param) != NULL;
}

int rdma_accept(struct rdma_cm_id *ibv, struct rdma_conn_param *param)
{
    struct cm_id *id = cm_of(ibv);
    struct rddp_conn_attr attr;
    int error = check_param(param);
    bool is_sync;

    if (error)
        return cm_result(error);
    verbs_enter();
    is_sync = id->is_sync && !cm_is_datagram(id); /* no event follows the answer to those */
    if (!id->request || !has_queue_pair(id, param)) {
        error = -EINVAL;
    } else if (cm_is_datagram(id)) {
        error = cm_datagram_accept(id, param);
        id->request = NULL;
        id->state = error ? CM_FAILED : CM_CONNECTED;
    } else {
        set_conn(&attr, id, param);
        attr.channel = events_of(id);
        error = rddp_accept(id->request, id->qp->rddp, &attr);
        id->request = NULL; /* answered, whatever the result */
        id->state = error ? CM_FAILED : CM_CONNECTING;
    }
    verbs_leave();
    if (error == -EINVAL)
        return cm_refuse("rdma_accept", id, "it is of no request, was answered, or has no queue pair in INIT");
    return cm_finish(id, is_sync, error);
}

int rdma_reject(struct rdma_cm_id *ibv, const void *private_data, uint8_t length)
{
    struct cm_id *id = cm_of(ibv);
    int error = -EINVAL;

    verbs_enter();
    if (id->request) {
        error = rddp_reject(id->request, private_data, private_data ? length : 0);
        id->request = NULL;
        id->state = CM_FAILED;
    }
    verbs_leave();
    return error == -EINVAL ? cm_refuse("rdma_reject", id, "it is of no request, or was answered") : cm_result(error);
}

/* For a queue pair of the application, after CONNECT_RESPONSE: the connection is established by itself. */
int rdma_establish(struct rdma_cm_id *ibv)
{
    return ibv->qp || cm_of(ibv)->state != CM_CONNECTED ? cm_fail(EINVAL) : 0;
}

/* The peer may have been faster: then the event is on the way, or was taken already. */
int rdma_disconnect(struct rdma_cm_id *ibv)
{
    struct cm_id *id = cm_of(ibv);
    enum cm_state state;
    int error = 0;
    bool is_sync;

    verbs_enter();
    state = id->state;
    is_sync = id->is_sync && state != CM_OVER;
    if (state == CM_CONNECTED || state == CM_CONNECTING)
        error = id->qp && !cm_is_datagram(id) ? cm_id_disconnect(id) : -EINVAL;
    else if (state != CM_ENDING && state != CM_OVER)
        error = -EINVAL;
    id->has_left |= !error;
    cm_rest(id);
    verbs_leave();
    if (error == -EINVAL)
        return cm_refuse("rdma_disconnect", id, "it was never connected");
    return cm_finish(id, is_sync, error);
}
