/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* address.c - addresses are bound and resolved: the host's routes say which of its own addresses leads to another. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "verbs/cm/cm.h"

static bool is_inet(const struct sockaddr *address)
{
    return address->sa_family == AF_INET || address->sa_family == AF_INET6;
}

static bool is_any_address(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return !((const struct sockaddr_in *)address)->sin_addr.s_addr;
}

static bool is_loopback_address(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* The socket keeps the port for the id, whatever the device; and those who connect by iWARP before rdma_listen() wait
 * in it: programs tell their peers the port first, and an adapter's peers take longer to get there. */
int cm_bind(struct cm_id *id, const struct sockaddr *address)
{
    int on = 1, only = id->af_only, error;
    bool is_datagram = id->ibv.ps == RDMA_PS_UDP;
    int fd = socket(address->sa_family, (is_datagram ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof(id->ibv.route.addr.src_storage);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
    if (bind(fd, address, cm_address_length(address)) || (!is_datagram && listen(fd, CM_BACKLOG_DEFAULT)) ||
        getsockname(fd, &id->ibv.route.addr.src_addr, &length)) {
        error = errno;
        close(fd);
        return cm_fail(error);
    }
    id->fd = fd;
    return 0;
}

/* Takes the device, unless the address is one of every device. */
static int use_device(struct cm_id *id)
{
    int error;

    verbs_enter();
    error = cm_id_use_device(id);
    verbs_leave();
    return cm_result(error);
}

int rdma_bind_addr(struct rdma_cm_id *ibv, struct sockaddr *address)
{
    struct cm_id *id = cm_of(ibv);

    if (!is_inet(address))
        return cm_fail(EAFNOSUPPORT);
    if (id->fd >= 0 || id->state != CM_IDLE)
        return cm_refuse("rdma_bind_addr", id, "it is bound, resolved or connected");
    if (cm_bind(id, address))
        return -1;
    return is_any_address(address) || is_loopback_address(address) ? 0 : use_device(id);
}

/* Asks the routing table which own address leads to `to`. Returns 0, or a negative errno. */
static int find_source(const struct sockaddr *to, struct sockaddr_storage *from)
{
    int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof(*from);
    int error = fd < 0 ? -errno : 0;

    if (!error && (connect(fd, to, cm_address_length(to)) || getsockname(fd, (struct sockaddr *)from, &length)))
        error = -errno;
    if (fd >= 0)
        close(fd);
    ((struct sockaddr_in *)from)->sin_port = 0; /* that of the question; at the same place for IPv6 */
    return error;
}

static int resolve_addr(struct cm_id *id)
{
    struct rdma_addr *addr = &id->ibv.route.addr;
    struct sockaddr_storage from = {0};
    int error = find_source(&addr->dst_addr, &from);
    in_port_t port = addr->dst_sin.sin_port;

    if (error)
        return error;
    if (is_any_address(&addr->dst_addr)) { /* this host, as for connect() */
        addr->dst_storage = from;
        addr->dst_sin.sin_port = port;
    }
    if (!addr->src_addr.sa_family || is_any_address(&addr->src_addr)) {
        port = addr->src_addr.sa_family ? addr->src_sin.sin_port : 0;
        addr->src_storage = from;
        addr->src_sin.sin_port = port;
    }
    return 0;
}

/* Stores and announces the result. Returns 0, or a negative errno. */
static int addr_resolved(struct cm_id *id, int result, bool *is_sync)
{
    int error;

    verbs_enter();
    *is_sync = id->is_sync;
    error = cm_channel_post(id, result ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, result);
    if (!error && !result)
        id->state = CM_ADDR_RESOLVED;
    verbs_leave();
    return error;
}

int rdma_resolve_addr(struct rdma_cm_id *ibv, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
    struct cm_id *id = cm_of(ibv);
    bool is_sync;
    int error;

    (void)timeout_ms; /* the answer is at hand */
    if (id->state != CM_IDLE || !dst || !is_inet(dst) || (src && src->sa_family && src->sa_family != dst->sa_family))
        return cm_refuse("rdma_resolve_addr", id,
                         "it is resolved or listens, or the addresses are not of one IP family");
    if (src && src->sa_family && id->fd < 0 && cm_bind(id, src))
        return -1;
    if (ibv->route.addr.src_addr.sa_family && ibv->route.addr.src_addr.sa_family != dst->sa_family)
        return cm_refuse("rdma_resolve_addr", id, "it is bound to an address of another IP family");
    memcpy(&ibv->route.addr.dst_storage, dst, cm_address_length(dst));
    error = resolve_addr(id);
    if (!error && use_device(id))
        return -1;
    error = addr_resolved(id, error, &is_sync);
    return cm_finish(id, is_sync, error);
}

int rdma_resolve_route(struct rdma_cm_id *ibv, int timeout_ms)
{
    struct cm_id *id = cm_of(ibv);
    int error = -EINVAL;
    bool is_sync;

    (void)timeout_ms;
    verbs_enter();
    is_sync = id->is_sync;
    if (id->state == CM_ADDR_RESOLVED)
        error = cm_channel_post(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    if (!error)
        id->state = CM_ROUTE_RESOLVED;
    verbs_leave();
    if (error == -EINVAL)
        return cm_refuse("rdma_resolve_route", id, "rdma_resolve_addr() comes first, and each once");
    return cm_finish(id, is_sync, error);
}
