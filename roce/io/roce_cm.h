/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_cm.h - the connection manager of a loop: its messages to and from sockets, its time, and who is told what comes
 * of them. The upper 16 bits of a comm ID are a UDP port of its process, as those of a queue pair number are; a request
 * goes to the process that has the name of its service ID (roce_passing.h).
 *
 * All of it is guarded by the lock of the loop. */
#ifndef RDDP_ROCE_IO_ROCE_CM_H
#define RDDP_ROCE_IO_ROCE_CM_H

#include "roce/io/roce_address.h"
#include "roce/io/roce_port.h"
#include "roce/rcm.h"

struct roce_cm;

/* Who owns a connection. event() is called by the driver, who holds no endpoint. After RCM_EVENT_GONE the connection is
 * freed. */
struct roce_cm_user {
    void (*event)(struct roce_cm_user *user, const struct rcm_event *event);
};

struct roce_cm_conn {
    struct rcm_conn conn;
    struct roce_cm *cm;
    struct roce_cm_user *user; /* NULL: it ends by itself */
    struct roce_cm_conn *next, **before;
};

/* A listener. requested() may take the request with roce_cm_take(), or rcm_refuse() it. */
struct roce_service {
    struct rcm_listener listener;
    struct roce_cm *cm;
    struct watch passed; /* requests that other processes received */
    void (*requested)(struct roce_service *service, const struct rcm_event *event);
    struct sockaddr_storage address;
    void *of; /* the caller's */
};

/* Gives a host its connection manager. Returns 0 or -ENOMEM. */
int roce_cm_attach(struct roce_host *host);

struct roce_cm *roce_cm_of(struct roce_host *host);
struct rcm *roce_cm_engine(struct roce_cm *cm);

/* A connection for rcm_connect() or rcm_take(); NULL: there is no memory. roce_cm_drop() undoes this before either. */
struct roce_cm_conn *roce_cm_new(struct roce_cm *cm, struct roce_cm_user *user);
void roce_cm_drop(struct roce_cm_conn *conn);

/* Its user leaves it: it is disconnected, rejected or given up by itself. `silent`: the peer must not notice. */
void roce_cm_leave(struct roce_cm_conn *conn, bool silent);

/* After calls of the engine by others than event() and requested(): sends messages, and sees to events later, so that
 * endpoints may be held. */
void roce_cm_settle(struct roce_cm *cm);

/* Listens for requests of rdma_cm at service->address, whose port 0 becomes a free one; `requested` and
 * listener.datagram are set. Returns 0; -EADDRINUSE; -EAFNOSUPPORT; or a negative errno. */
int roce_cm_listen(struct roce_cm *cm, struct roce_service *service);
void roce_cm_unlisten(struct roce_service *service);

/* The path of messages between these addresses, both of IPv4 or of IPv6. */
struct rcm_path roce_cm_path(const struct roce_address *local, const struct roce_address *peer, uint32_t scope);

/* Names both ends of a request of rdma_cm. The addresses of the packet are true; the peer's port is what it says. */
void roce_cm_name_ends(const struct roce_service *service, const struct rcm_event *event,
                       struct sockaddr_storage *local, struct sockaddr_storage *peer);

#endif
