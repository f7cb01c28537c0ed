/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_pair.h - for endpoint_roce.c and roce_call.c alone: a queue pair and the path to its peer. */
#ifndef RDDP_ROCE_IO_ROCE_PAIR_H
#define RDDP_ROCE_IO_ROCE_PAIR_H

#include "conn/rc_pair.h"
#include "endpoint/objects.h"
#include "roce/io/roce_cm.h"
#include "roce/io/roce_port.h"

/* What the connection manager has to do with a queue pair. */
struct roce_call {
    struct roce_cm_user user;
    struct roce_cm_conn *conn; /* NULL: connected by hand, or no message is expected any more */
    bool left;                 /* we have ended it */
    uint64_t limit_us;         /* passive, accepted: until when the peer must have answered; 0: it has */
    uint64_t startup_us;       /* that limit, from the answer on */
    uint8_t ack_timeout;       /* passive: a code, of the peer's packets */
    uint32_t mtu;              /* active: what the peer was told of us */
    struct rcm_connect asked;  /* active: the whole of it, to call again */
    uint8_t own[RCM_IP_PRIVATE];
    uint64_t insist_us, again_us; /* until when a refusal is not the end; when to call again, or 0 */
    struct rcm_terms peer;        /* what it is like */
    uint8_t octets;               /* private data that it sent */
    uint8_t data[RCM_PRIVATE_REP];
};

/* How packets of the peer come: the ends of their path that may change. */
struct roce_way {
    uint16_t from_port, to_port; /* 0: none have come */
    struct roce_address to;
    struct icrc_path path;
    struct icrc_memo memo;
};

/* Guarded as its first member, as which it is freed. */
struct endpoint_roce {
    struct endpoint endpoint;
    struct rc_pair pair;
    void *memory;           /* owned: that of the pair */
    struct roce_slot *slot; /* NULL: a request that was not accepted yet */
    bool owns_slot;         /* the slot goes with the connection, or else with its queue pair */
    uint32_t requests;      /* that had left when one of the peer's was last to be acknowledged for a poller */
    struct roce_user user;
    struct roce_call call;
    struct roce_socket *home;   /* by which packets to the peer leave */
    struct roce_socket *socket; /* by which the peer's last packets came; NULL: none have come */
    struct roce_socket *out;    /* that is out of the epoll set, since this queue pair is polled; or NULL */
    struct roce_address local, peer;
    struct sockaddr_storage to; /* the peer, with the port that packets are sent to now */
    struct icrc_path path;      /* of those packets */
    struct icrc_memo memo;      /* of that path */
    struct roce_way in;         /* of the peer's last packets */
    bool is_near;               /* the peer is on this host: its own port is used from the first packet on */
    bool is_fixed;              /* the peer did not answer at its own port: packets go to the common one */
    bool more;                  /* a turn ended before its work was done */
    bool sends_together;        /* what left last could have left with more, in one call */
    uint16_t port_before;       /* that was left after a time-out, until it is known which one answers; 0: none was */
    uint64_t undone;            /* time-outs that had been needless by then */
    uint64_t arrived_us;        /* when the peer's last packet came; 0: none have come */
    uint64_t wrong_icrc, wrong_peer;
};

/* The socket that a poller asks: by which the peer's last packets came; before there are any, by which ours leave; or
 * NULL. */
static inline struct roce_socket *roce_pair_polled(const struct endpoint_roce *e)
{
    return e->socket ? e->socket : e->home;
}

/* As stay_out() of struct endpoint_kind, for that socket. roce_pair_leave_socket(): the queue pair needs it no more,
 * but others at the port may. */
bool roce_pair_stay_out(struct endpoint_roce *e, bool out);
void roce_pair_leave_socket(struct endpoint_roce *e);

struct rddp_ib_counters roce_pair_counters(const struct endpoint_roce *e);

/* As explain() of struct endpoint_kind. */
void roce_pair_explain(const struct endpoint_roce *e, char *text, size_t size);

/* Connects: from now on the peer's requests are executed. rc_pair_begin() was called; of *attr all members count but
 * `state`, `access` and addresses. Returns 0; -ENOMEM; or what roce_pair_set_path() does. */
int roce_pair_connect(struct endpoint_roce *e, struct rddp_qp *qp, const struct sockaddr_storage *local,
                      const struct sockaddr_storage *peer, const struct rddp_ib_attr *attr);

/* Sets the path to the peer. Returns 0; -EADDRNOTAVAIL: addresses of two families, or of one that the port has not. */
int roce_pair_set_path(struct endpoint_roce *e, const struct sockaddr_storage *local,
                       const struct sockaddr_storage *peer, uint32_t peer_qpn);

/* Sends what may be sent, up to the end of a turn. Returns whether there may be more. The holder has entered the port.
 */
bool roce_pair_send(struct endpoint_roce *e, uint64_t now_us);

/* Has a turn anything to do but to keep the timer, or is that too late? */
bool roce_pair_needs_turn(const struct endpoint_roce *e, uint64_t now_us);

/* Does the peer get a packet and an acknowledgement behind it together, and does it take that first? So it is with one
 * of ours on this host: what leaves in one call arrives as one. */
bool roce_pair_may_follow(const struct endpoint_roce *e);

/* Is an acknowledgement due, and has the application asked for something since the one before? Then it may answer this
 * request, too. */
bool roce_pair_is_answering(struct endpoint_roce *e);

/* Gives the packets to the pair that are the peer's and whole. */
void roce_pair_take(struct endpoint_roce *e, const struct roce_run *run, uint64_t now_us);

/* Time for rc_pair_tick(): packets may have been lost for the port that they were sent to. */
void roce_pair_tick(struct endpoint_roce *e, uint64_t now_us);

#endif
