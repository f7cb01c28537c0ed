/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cm.h - what librdmacm.so.1 keeps of an rdma_cm_id, and how its files call each other.
 *
 * All of it is under verbs_lock, except what the application owns: members of the public structs belong to the thread
 * that makes the call, as rdma_cm says. No call of the application waits with the lock held. */
#ifndef VERBS_CM_CM_H
#define VERBS_CM_CM_H

#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include "verbs/verbs_object.h"

enum {
    CM_PRIVATE_MAX = 255,  /* octets of private data that rdma_conn_param can name */
    CM_READS_DEFAULT = 16, /* Reads at once, if the peer says nothing */
    CM_BACKLOG_DEFAULT = 128,
};

/* An event that the application takes and gives back, with the private data that it points to. */
struct cm_event {
    struct rdma_cm_event ibv;
    struct cm_id *counted; /* the id that waits in rdma_destroy_id() until the event is given back */
    uint8_t private_data[CM_PRIVATE_MAX];
};

struct cm_channel {
    struct rdma_event_channel ibv; /* its descriptor is that of `rddp` */
    struct rddp_event_channel *rddp;
    unsigned waiting; /* threads in rdma_get_cm_event() */
    struct cm_channel *next_leaving;
};

/* Up to CM_CONNECTING what the application has asked for; then what it has been told: an event changes it when it is
 * taken. */
enum cm_state {
    CM_IDLE, /* nothing asked for yet, or bound */
    CM_LISTENING,
    CM_REQUESTED, /* a peer's request, not answered */
    CM_ADDR_RESOLVED,
    CM_ROUTE_RESOLVED,
    CM_CONNECTING, /* asked or accepted */
    CM_CONNECTED,
    CM_ENDING, /* its queue pair is gone; DISCONNECTED is queued */
    CM_OVER,
    CM_FAILED, /* never connected */
};

enum {
    CM_DEVICES = 2,
    CM_ACK_TIMEOUT = 17 /* the code of who asks for none, as in Linux */
};

/* Where the requests come from that one device gets. */
struct cm_listener {
    struct cm_id *id;
    struct ibv_device *device;
    struct rddp_listener *rddp; /* NULL: the device is none that the id listens on */
};

struct cm_id {
    struct rdma_cm_id ibv;
    enum cm_state state;
    struct ibv_device *device; /* NULL: not selected, and an id that listens then listens on all */
    bool is_active;            /* called rdma_connect() */
    bool is_sync;              /* has a channel of its own; each call waits for its event */
    bool af_only;              /* RDMA_OPTION_ID_AFONLY */
    bool has_left, rests;      /* the application has ended the connection; TIMEWAIT_EXIT follows, or has come */
    uint8_t ack_timeout;       /* RDMA_OPTION_ID_ACK_TIMEOUT */
    int fd;                    /* a bound socket, or -1 */
    struct verbs_qp *qp;       /* made by rdma_create_qp(), or named by the parameters of a connection */
    struct cm_listener listener[CM_DEVICES];
    struct rddp_resolution *resolution; /* of a service of datagrams */
    struct rddp_request *request;       /* not answered yet */
    uint8_t peer_ird, peer_ord;         /* of a request: what the peer wants, for "as much as possible" */
    uint32_t taken, given_back;         /* events */
    struct ibv_pd *ep_pd;               /* rdma_create_ep(): for the queue pairs of those who connect */
    struct ibv_qp_init_attr *ep_init;
};

static inline struct cm_id *cm_of(struct rdma_cm_id *id)
{
    return (struct cm_id *)id;
}

/* Is the id of rddpe0? */
static inline bool cm_is_ib(const struct cm_id *id)
{
    return id->device && device_is_ib(id->device);
}

/* Sets errno and returns -1. */
static inline int cm_fail(int error)
{
    errno = error;
    return -1;
}

/* Sets errno and returns -1, with a line about a call that comes in the wrong state. */
static inline int cm_refuse(const char *call, const struct cm_id *id, const char *rule)
{
    verbs_refuse(EINVAL, "%s: id %p: %s", call, (const void *)id, rule);
    return -1;
}

/* The result of rddp, or of anything that returns a negative errno, as rdma_cm has it: 0, or -1 with errno. */
static inline int cm_result(int error)
{
    return error ? cm_fail(-error) : 0;
}

static inline socklen_t cm_address_length(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* channel.c */
static inline struct cm_channel *cm_channel_of(struct rdma_event_channel *channel)
{
    return (struct cm_channel *)channel;
}

struct rddp_event_channel *cm_channel_new(void); /* NULL with errno */
/* Queues an event of ours. Returns 0 or a negative errno. */
int cm_channel_post(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Waits until the application has given back what it took of the id's events. */
void cm_channel_settle(struct cm_id *id);

/* event.c: makes the application's event, all zeroes yet, of one of rddp's. Returns false if there is no id for it. */
bool cm_event_translate(struct cm_event *event, const struct rddp_event *from);

/* id.c */
struct cm_id *cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps);
void cm_id_free(struct cm_id *id);
void cm_id_attach(struct cm_id *id, struct verbs_qp *qp);
/* Selects the first device, unless one is selected. Returns 0; -ENODEV: RDDP_DEVICE names none; or a negative errno. */
int cm_id_use_device(struct cm_id *id);
/* The one that is selected, or that the id has shown from the beginning; NULL: none yet. */
struct ibv_device *cm_id_device(const struct cm_id *id);
/* Ends the connection of the id, or stops one that is being made. Returns 0, or a negative errno. */
int cm_id_disconnect(struct cm_id *id);
/* rest.c: both ends may have left now: over InfiniBand TIMEWAIT_EXIT follows then, when the queue pair may be connected
 * again. */
void cm_rest(struct cm_id *id);
/* Waits for the next event of a synchronous id. Returns 0, or -1 with errno. */
int cm_complete(struct cm_id *id);

/* The end of a call that an event follows. Another thread may have taken the event by now, and destroyed the id unless
 * it is synchronous: whether it is was asked under the lock. */
static inline int cm_finish(struct cm_id *id, bool is_sync, int error)
{
    return error || !is_sync ? cm_result(error) : cm_complete(id);
}
/* Binds a socket to `address`. Returns 0, or -1 with errno. */
int cm_bind(struct cm_id *id, const struct sockaddr *address);

#endif
