/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transport.h - a transport whose connections have sockets of their own kind in place of a link: what the public calls
 * and the loops ask of it. drive/transports.h has the table of those that are in this build. */
#ifndef RDDP_ENDPOINT_TRANSPORT_H
#define RDDP_ENDPOINT_TRANSPORT_H

#include "endpoint/objects.h"

/* Queue pairs with a number on the wire, which programs connect by hand. All by the driver of the slot's loop. */
struct transport_ib {
    int (*open_slot)(struct loop *loop, struct roce_slot **slot);
    void (*close_slot)(struct roce_slot *slot);
    /* Are the members that RTR reads, or RTS, in range? */
    bool (*may_receive)(const struct rddp_ib_attr *attr);
    bool (*may_send)(const struct rddp_ib_attr *attr);
    /* To RTR: returns 0, and the caller holds *endpoint; or a negative errno. To RTS, to SQD and back: the caller holds
     * the endpoint. */
    int (*receive)(struct roce_slot *slot, struct rddp_qp *qp, struct rddp_ib_attr *attr, struct endpoint **endpoint);
    void (*send)(struct endpoint *endpoint, const struct rddp_ib_attr *attr);
    void (*drain)(struct endpoint *endpoint, bool drains);
    void (*restart)(struct endpoint *endpoint); /* after SQE */
    /* Returns 0, or -EINVAL: no such code. The caller holds the endpoint. */
    int (*set_rnr_timer)(struct endpoint *endpoint, uint8_t code);
    /* In SQD: timers, retries and Reads, of which a queue pair of type UC has none; and `peer` and `local`, unless they
     * are the same. Completes them. Returns 0, or a negative errno, as rddp_modify_qp(): nothing has changed then. The
     * caller holds the endpoint. */
    int (*set_drained)(struct endpoint *endpoint, struct rddp_ib_attr *attr, bool has_timers);
    /* The same of a queue pair of datagrams, and its Q_Key. */
    int (*receive_ud)(struct roce_slot *slot, struct rddp_qp *qp, const struct rddp_ib_attr *attr,
                      struct endpoint **endpoint);
    void (*send_ud)(struct endpoint *endpoint, uint32_t psn);
    void (*drain_ud)(struct endpoint *endpoint, bool drains);
    void (*restart_ud)(struct endpoint *endpoint);
    void (*set_key_ud)(struct endpoint *endpoint, uint32_t q_key);
    /* Asks for a service of datagrams on resolution->loop. Returns 0 or a negative errno, as rddp_resolve(). forget():
     * nothing is reported of it any more; the caller holds the endpoint, which is then closed. */
    int (*resolve)(struct rddp_resolution *resolution, const struct sockaddr *addr, socklen_t length,
                   const struct rddp_resolve_attr *attr);
    void (*forget)(struct endpoint *endpoint);
    /* Returns the largest path MTU to this peer, or a negative errno. Any thread. */
    int (*path_mtu)(const struct sockaddr_storage *peer);
};

/* By the driver of the loop. */
struct transport {
    /* Returns 0, and the caller holds *endpoint; or a negative errno, as rddp_connect(). */
    int (*connect)(struct loop *loop, struct rddp_qp *qp, const struct sockaddr *addr, socklen_t length,
                   const struct rddp_conn_attr *attr, struct endpoint **endpoint);
    /* Listens on listener->loop. Returns 0 or a negative errno, as rddp_listen(). */
    int (*listen)(struct rddp_listener *listener, const struct sockaddr *addr, socklen_t length);
    void (*unlisten)(struct rddp_listener *listener);
    void (*addr)(const struct rddp_listener *listener, struct sockaddr_storage *addr);
    /* The loop ends, and has no endpoint. NULL: nothing is left then. */
    void (*close)(struct loop *loop);
    /* Before connections are left: in a child of fork() all sockets are the parent's; or with `ours`, since the program
     * has closed its descriptors, lost. leave() does the rest for a loop, after its connections. Either may be NULL. */
    void (*abandon)(bool ours);
    void (*leave)(struct loop *loop);
    const struct transport_ib *ib; /* NULL: no queue pair is connected by hand */
};

#endif
