/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rsock_connect.c - rsockets are made, bound, connected, listen and accept. A connection begins as the events of
 * rdma_cm come: whoever looks at the socket takes them. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "verbs/rsock/rsock_datagram.h"

/* Over iWARP alone: over RoCE the messages of librdmacm are others. */
static struct ibv_context *find_iwarp(void)
{
    int n = 0;
    struct ibv_context **all = rdma_get_devices(&n), *found = NULL;

    for (int i = 0; i < n; i++) {
        if (all[i]->device->transport_type == IBV_TRANSPORT_IWARP)
            found = all[i];
    }
    rdma_free_devices(all);
    return found;
}

/* An id that shows a device keeps to it. */
static int id_make(struct rsocket *rs)
{
    struct ibv_context *iwarp = find_iwarp();

    if (!iwarp)
        return ENODEV; /* RDDP_DEVICE leaves it out */
    if (rdma_create_id(rs->events, &rs->id, rs, RDMA_PS_TCP))
        return errno;
    rs->id->verbs = iwarp;
    return 0;
}

int rsocket(int domain, int type, int protocol)
{
    const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    const bool is_stream = kind == SOCK_STREAM;
    struct rs_sizes sizes;
    struct rsocket *rs;
    int error;

    if (domain != AF_INET && domain != AF_INET6)
        return rs_fail(EAFNOSUPPORT);
    if (!is_stream && kind != SOCK_DGRAM)
        return rs_fail(EPROTONOSUPPORT);
    if (protocol && protocol != (is_stream ? IPPROTO_TCP : IPPROTO_UDP))
        return rs_fail(EPROTONOSUPPORT);
    rs_defaults(&sizes);
    rs = rs_new(domain, &sizes);
    if (!rs)
        return -1;
    rs->is_nonblocking = type & SOCK_NONBLOCK;
    error = is_stream ? id_make(rs) : rs_datagram_new(rs);
    if (!error)
        error = rs_publish(rs);
    if (error) {
        rs_put(rs);
        return rs_fail(error);
    }
    return rs->fd;
}

static socklen_t least_length(int family)
{
    return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static int check_address(const struct sockaddr *address, socklen_t length)
{
    if (!address || length < sizeof(address->sa_family))
        return EINVAL;
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return EAFNOSUPPORT;
    return length < least_length(address->sa_family) ? EINVAL : 0;
}

static int rs_bind(struct rsocket *rs, const struct sockaddr *address)
{
    struct sockaddr_storage copy = {0};

    if (rs->datagrams)
        return rs_datagram_bind(rs, address);
    if (rs->state != RS_NEW || rs->is_bound)
        return EINVAL;
    memcpy(&copy, address, least_length(address->sa_family));
    if (rdma_bind_addr(rs->id, (struct sockaddr *)&copy))
        return errno;
    rs->is_bound = true;
    return 0;
}

/* Does with an rsocket what takes an address. */
static int with_address(int socket, const struct sockaddr *address, socklen_t length,
                        int (*what)(struct rsocket *, const struct sockaddr *))
{
    struct rsocket *rs = rs_get(socket);
    int error;

    if (!rs)
        return -1;
    rs_lock(rs);
    error = check_address(address, length);
    if (!error)
        error = what(rs, address);
    return rs_leave(rs, error);
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    return with_address(socket, addr, addrlen, rs_bind);
}

int rlisten(int socket, int backlog)
{
    struct rsocket *rs = rs_get(socket);
    int error = 0;

    if (!rs)
        return -1;
    rs_lock(rs);
    if (rs->state == RS_DATAGRAM)
        error = EOPNOTSUPP;
    else if (rs->state != RS_NEW && rs->state != RS_LISTENING)
        error = EINVAL;
    if (!error && rs->state == RS_NEW && !rs->is_bound) {
        const struct sockaddr_storage any = {.ss_family = (sa_family_t)rs->family};
        error = rs_bind(rs, (const struct sockaddr *)&any);
    }
    if (!error && rs->state == RS_NEW) {
        error = rdma_listen(rs->id, backlog) ? errno : 0;
        rs->state = error ? RS_NEW : RS_LISTENING;
    }
    return rs_leave(rs, error);
}

static bool has_begun(const struct rsocket *rs)
{
    return rs->state != RS_CONNECTING && rs->state != RS_ACCEPTING;
}

int rs_wait_connected(struct rsocket *rs, bool dont_wait)
{
    if (rs->state == RS_NEW || rs->state == RS_LISTENING || rs->state == RS_DATAGRAM)
        return rs->state == RS_DATAGRAM ? EOPNOTSUPP : ENOTCONN;
    return has_begun(rs) ? 0 : rs_wait(rs, has_begun, dont_wait, -1);
}

static int rs_connect(struct rsocket *rs, const struct sockaddr *address)
{
    struct sockaddr_storage copy = {0};
    int error;

    if (rs->datagrams)
        return rs_datagram_connect(rs, address);
    if (rs->state != RS_NEW)
        return rs->state == RS_CONNECTING ? EALREADY : rs->state == RS_LISTENING ? EOPNOTSUPP : EISCONN;
    memcpy(&copy, address, least_length(address->sa_family));
    if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)&copy, RS_RESOLVE_MS))
        return errno;
    rs->state = RS_CONNECTING;
    error = rs_wait_connected(rs, rs->is_nonblocking);
    if (error)
        return error == EAGAIN ? EINPROGRESS : error;
    error = rs->state == RS_FAILED ? rs->error : 0;
    rs->error = 0; /* told */
    return error;
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    return with_address(socket, addr, addrlen, rs_connect);
}

/* An rsocket for a request: of the sizes of the one that listens. It owns the id, whatever happens. */
static int request_adopt(const struct rsocket *listener, struct rdma_cm_id *id, const struct rs_hello *peer,
                         struct rsocket **out)
{
    struct rsocket *rs = rs_new(listener->family, &listener->sizes);
    uint8_t data[RS_HELLO_SIZE];
    struct rdma_conn_param param;
    int error;

    if (!rs)
        return errno;
    *out = rs;
    if (rdma_migrate_id(id, rs->events))
        return errno;
    rs->id = id;
    rs->options = listener->options;
    error = rs_queues_make(rs);
    if (error)
        return error;
    rs->peer = *peer;
    rs_set_param(rs, &param, data);
    rs->state = RS_ACCEPTING;
    if (rdma_accept(id, &param))
        return errno;
    return rs_publish(rs);
}

/* Answers one request. EAGAIN: it was none of ours. */
static int accept_rsocket(struct rsocket *listener, struct rsocket **out)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    struct rs_hello peer;
    bool is_ours;
    int error;

    *out = NULL;
    if (rdma_get_cm_event(listener->events, &event))
        return errno;
    id = event->id;
    is_ours = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    if (!is_ours) {
        rdma_ack_cm_event(event);
        return EAGAIN;
    }
    is_ours = rs_hello_decode(&peer, event->param.conn.private_data, event->param.conn.private_data_len);
    rdma_ack_cm_event(event);
    error = is_ours ? request_adopt(listener, id, &peer, out) : EAGAIN;
    if (!error)
        return 0;
    rdma_reject(id, NULL, 0);
    if (!*out || !(*out)->id)
        rdma_destroy_id(id);
    if (*out)
        rs_put(*out);
    return error;
}

static bool is_requested(const struct rsocket *rs)
{
    struct pollfd fd = {.fd = rs->events->fd, .events = POLLIN};

    return rs->state != RS_LISTENING || poll(&fd, 1, 0) > 0;
}

static int rs_accept(struct rsocket *rs, struct rsocket **out)
{
    int error;

    do {
        error = rs_wait(rs, is_requested, rs->is_nonblocking, -1);
        if (error || rs->state != RS_LISTENING)
            return error ? error : EINVAL;
        error = accept_rsocket(rs, out);
    } while (error == EAGAIN);
    return error;
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rsocket *rs = rs_get(socket), *accepted = NULL;
    int error, fd = -1;

    if (!rs)
        return -1;
    rs_lock(rs);
    if (rs->state == RS_DATAGRAM)
        error = EOPNOTSUPP;
    else
        error = rs_accept(rs, &accepted);
    if (!error) {
        fd = accepted->fd;
        if (addr && addrlen)
            rs_copy_address(&accepted->id->route.addr.dst_addr, addr, addrlen);
    }
    return rs_leave(rs, error) ? -1 : fd;
}
