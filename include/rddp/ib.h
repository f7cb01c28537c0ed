/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/ib.h - queue pairs of InfiniBand's transport (RoCE version 2), which two programs connect by hand: they tell
 * each other addresses, queue pair numbers and first PSNs, by whatever way they like, and set them here. rddp.h
 * includes it, and its conventions hold here. */
#ifndef RDDP_IB_H
#define RDDP_IB_H

#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RDDP_API __attribute__((visibility("default")))

struct rddp_ah;
struct rddp_event_channel;
struct rddp_pd;
struct rddp_qp;
struct rddp_request;
struct rddp_resolution;
struct rddp_wc;

/* The types of queue pairs. */
enum rddp_qp_type {
    RDDP_QPT_CONNECTED, /* of a connection, whose wire rddp_connect() or the listener names */
    /* Reliable: each request completes when the peer has it. Connected by hand, or in RESET or INIT by rddp_connect()
     * or rddp_accept() over RDDP_WIRE_ROCE, under its own number. */
    RDDP_QPT_RC,
    /* Unreliable: a request completes when it has left. A message that loses a packet is lost, and neither end is told.
     * Sends and Writes alone. */
    RDDP_QPT_UC,
    /* Unreliable datagrams: no peer of its own, but one that each request names by an address handle, a queue pair
     * number and a Q_Key. Sends alone, of at most the path MTU; a request completes when it has left. Each receive
     * begins with RDDP_GRH_OCTETS that say where the message came from. One that finds no receive is dropped. */
    RDDP_QPT_UD,
};

/* The states of a queue pair of type RC, UC or UD; values are those of enum ibv_qp_state. */
enum rddp_ib_state {
    RDDP_IB_RESET,
    RDDP_IB_INIT, /* receives may be posted (they may be in RESET, too) */
    RDDP_IB_RTR,  /* ready to receive: the peer's requests are executed and answered */
    RDDP_IB_RTS,  /* ready to send: requests may be posted */
    RDDP_IB_SQD,  /* drains: requests may be posted, and begin in RTS again */
    RDDP_IB_SQE,  /* UC and UD: a request failed here, and all behind it are flushed; what the peer sends is executed */
    RDDP_IB_ERR,  /* all requests are flushed */
};

/* The attributes of a queue pair, grouped by the state that reads them. Addresses are AF_INET or AF_INET6. */
struct rddp_ib_attr {
    enum rddp_ib_state state;

    /* INIT */
    unsigned access; /* what the peer may do, as in rddp_qp_attr; default that of the queue pair */
    uint16_t pkey;   /* default 0xffff, the only one that other implementations use without a subnet manager */
    uint32_t qkey;   /* UD: what a message must have to be received; default 0 */

    /* RTR; of UD none is read */
    struct sockaddr_storage peer;  /* its port is ignored */
    struct sockaddr_storage local; /* AF_UNSPEC, the default, or the wildcard: the one that the system uses to send to
                                    * the peer */
    uint32_t peer_qpn, rq_psn;     /* 24 bits each: the peer's number, and the PSN of its first request */
    uint32_t path_mtu; /* octets of payload of a packet: 256, 512, 1024, 2048 or 4096, the same at both ends; default 0:
                        * the largest that fits into packets to the peer, which query tells */
    uint8_t min_rnr_timer; /* code, 0 to 31, of how long the peer waits when it finds no receive; default 12: 0.64 ms */
    uint8_t max_dest_rd_atomic; /* Reads and atomics of the peer at once, up to max_rd_atomic, the default */

    /* RTS; of UD sq_psn alone */
    uint32_t sq_psn;       /* PSN of our first request: what the peer was told; draw it at random */
    uint8_t timeout;       /* 4.096 us * 2^timeout, but at least 10 ms, without an acknowledgement are one retry; up to
                            * four times as long, as InfiniBand allows, while that is at most 0.5 s; 14, the default:
                            * 67 ms, hence 0.27 s; 0: never */
    uint8_t retry_cnt;     /* 0 to 7, the default: retries without progress; then RDDP_WC_RETRY_EXC_ERR */
    uint8_t rnr_retry;     /* 0 to 6: retries when the peer has no receive, then RDDP_WC_RNR_RETRY_EXC_ERR; 7, the
                            * default: without limit */
    uint8_t max_rd_atomic; /* our Reads and atomics at once, up to that of the queue pair, the default */
};

RDDP_API void rddp_ib_attr_init(struct rddp_ib_attr *attr);

/* Moves a queue pair of type RC, UC or UD to attr->state: from RESET to INIT, RTR and RTS, one after the other, and
 * from each of these to RESET, as rddp_reset_qp() does, or to ERR, as rddp_fail_qp(). From INIT to INIT, RTS to RTS,
 * and SQD to SQD, the access and the Q_Key change alone, and from RTS on the min_rnr_timer of RC. The members of other
 * states are not read. But from SQD to SQD of RC the timers, retries and Reads at once are (max_dest_rd_atomic up to
 * that of RTR), and of RC and UC `peer`, unless it is AF_UNSPEC, with `local`: begin with what rddp_query_ib() stores.
 * It may be called while others post and poll, but not by two threads at once.
 *
 * From RTS to SQD: no request begins any more; those that have begun go on, and RDDP_ASYNC_SQ_DRAINED comes when they
 * are complete. The peer's requests are executed all the while. From SQD to RTS: what was posted meanwhile begins.
 *
 * SQE cannot be asked for: a queue pair of type UC or UD comes there from RTS or SQD when a request of its own is wrong
 * (its memory may not be read). That one completes with its error, what was posted behind it, or is posted then, with
 * RDDP_WC_WR_FLUSH_ERR. From SQE to RTS: what is posted from then on leaves. On RC such an error leads to ERR.
 *
 * One that rddp_connect() or rddp_accept() has taken is in RTS for these steps, and has the events of a connection. A
 * queue pair that is connected by hand belongs to no event channel, and its peer is not told when it ends: requests
 * of the peer are not answered any more. Why it came to ERR is in its completions, in rddp_query_qp(), and on the
 * asynchronous channel that watches it.
 *
 * Returns 0. -EINVAL: another type, no such step, or a member out of range; -EADDRNOTAVAIL: `local` and `peer` are of
 * two families, or no socket of IPv6 can be made; -ENETUNREACH, -EHOSTUNREACH: there is no route to the peer; -ENODEV:
 * its sockets belong to the parent of this process; -ENOMEM. Nothing has changed then. */
RDDP_API int rddp_modify_qp(struct rddp_qp *qp, const struct rddp_ib_attr *attr);

/* Stores what was set, and the state as it is now. Members that were not set have their defaults. Returns 0. -EINVAL:
 * another type. */
RDDP_API int rddp_query_ib(struct rddp_qp *qp, struct rddp_ib_attr *attr);

/* Returns the octets of the largest path MTU, 256 to 4096, that fits into the packets of the route to `peer`; or a
 * negative errno: -ENETUNREACH, -EHOSTUNREACH; -EADDRNOTAVAIL: IPv6 is not available; -EAFNOSUPPORT: neither IPv4 nor
 * IPv6; -EINVAL: a wrong length; -EPROTONOSUPPORT: this build has no RoCE. */
RDDP_API int rddp_path_mtu(const struct sockaddr *peer, socklen_t length);

/* --- datagrams ---
 *
 * A receive of a queue pair of type RDDP_QPT_UD begins with RDDP_GRH_OCTETS, which byte_len of its completion counts: a
 * header of IPv6; or, of a message that came by IPv4, 20 octets of zeros and a header of IPv4. Its addresses and length
 * are true; the rest has usual values, since a socket is not told. A message that is longer than its receive completes
 * it with RDDP_WC_LOC_LEN_ERR, and the queue pair goes to ERR. */
#define RDDP_GRH_OCTETS 40

/* The way to a host. Addresses are AF_INET or AF_INET6. */
struct rddp_ah_attr {
    struct sockaddr_storage peer;  /* its port is ignored */
    struct sockaddr_storage local; /* AF_UNSPEC, the default, or the wildcard: the one that the system uses to send to
                                    * the peer */
    uint32_t path_mtu;             /* octets of the largest message, as in rddp_ib_attr; default 0: by the route */
};

RDDP_API void rddp_ah_attr_init(struct rddp_ah_attr *attr);

/* Makes an address handle: the destination of datagrams. Any thread may use it in posts to queue pairs of this
 * protection domain, which copy it. Destroy it with rddp_destroy_ah() before the protection domain, which is in use
 * until then.
 *
 * Returns NULL and sets errno. EINVAL: a member out of range, or neither IPv4 nor IPv6; EADDRNOTAVAIL: `local` and
 * `peer` are of two families; ENETUNREACH, EHOSTUNREACH: there is no route to the peer; ENOMEM. */
RDDP_API struct rddp_ah *rddp_create_ah(struct rddp_pd *pd, const struct rddp_ah_attr *attr);

/* Returns 0. */
RDDP_API int rddp_destroy_ah(struct rddp_ah *ah);

/* Fills in *attr with the way back to whoever sent a message: `grh` is the beginning of its receive, `wc` its
 * completion, whose src_qp is the queue pair to answer. An address of a link only has no interface then. Returns 0.
 * -EINVAL: the completion has no RDDP_WC_GRH, or `grh` is no such header. */
RDDP_API int rddp_ah_attr_from_wc(const struct rddp_wc *wc, const void *grh, struct rddp_ah_attr *attr);

/* --- services of datagrams ---
 *
 * Which queue pair receives the datagrams of a service can be asked for by the service's name: an address and a port of
 * rdma_cm's UDP port space (RDMA_PS_UDP), which is not one of TCP or UDP. Who serves calls rddp_listen() with
 * RDDP_WIRE_ROCE and wire.datagrams, takes RDDP_EVENT_CONNECT_REQUEST, and calls rddp_answer() or rddp_reject(). Who
 * asks calls rddp_resolve(). The messages are InfiniBand's SIDR; no queue pair changes by them. */

struct rddp_resolve_attr {
    const struct sockaddr *local; /* the address to ask from, as in rddp_conn_attr; default NULL */
    const void *private_data;     /* up to 180 octets */
    uint16_t private_data_length;
    uint32_t timeout_ms; /* how long an answer is waited for; default 10000 */
};

RDDP_API void rddp_resolve_attr_init(struct rddp_resolve_attr *attr);

/* Asks for the service at `addr` (AF_INET or AF_INET6, with its port). One event on `channel`, with this `user`, says
 * what came of it: RESOLVED: event.qpn and event.qkey, and private data of the service; REJECTED: by its application,
 * with private data; UNREACHABLE: no one listens (-ECONNREFUSED), no answer came (-ETIMEDOUT), or this is a child of
 * fork() (-ECONNABORTED); CONNECT_ERROR (-EPROTO): the service has no queue pair. Messages are sent again meanwhile.
 * `attr` may be NULL. Destroy the result with rddp_destroy_resolution().
 *
 * Returns NULL and sets errno. EINVAL: private data too long, or no time; EAFNOSUPPORT; EADDRNOTAVAIL (`local` is not
 * an address of this host, or of another family); ENETUNREACH, EHOSTUNREACH: there is no route; ENOMEM; EMFILE; EAGAIN
 * (no random number available); EPROTONOSUPPORT: this build has no RoCE. */
RDDP_API struct rddp_resolution *rddp_resolve(struct rddp_event_channel *channel, const struct sockaddr *addr,
                                              socklen_t length, const struct rddp_resolve_attr *attr, void *user);

/* Moves its event to another channel, as rddp_migrate_qp(). Returns 0. -EINVAL: a channel of another context. */
RDDP_API int rddp_migrate_resolution(struct rddp_resolution *resolution, struct rddp_event_channel *channel);

/* Ends and frees it; an event that was not taken is withdrawn. Returns 0. */
RDDP_API int rddp_destroy_resolution(struct rddp_resolution *resolution);

/* Where the datagrams of a service go. */
struct rddp_answer {
    uint32_t qpn;             /* of a queue pair of type UD on the host that the request came to */
    uint32_t qkey;            /* that it has */
    const void *private_data; /* up to 136 octets */
    uint16_t private_data_length;
};

/* Answers a request for datagrams and frees it, whatever the result. Returns 0. -EINVAL: a request for a connection,
 * more than 24 bits of qpn, or private data too long: the peer is rejected; -ECONNABORTED: newer requests have taken
 * the place of this one. */
RDDP_API int rddp_answer(struct rddp_request *request, const struct rddp_answer *answer);

/* What a queue pair of RoCE has counted. */
struct rddp_ib_counters {
    uint64_t resent;           /* packets that were sent again */
    uint64_t undone;           /* resends by a timer that were stopped: the acknowledgement was only late */
    uint64_t timeouts, naks;   /* retries, and NAKs of the peer */
    uint64_t not_ready;        /* the peer had no receive */
    uint64_t duplicates, gaps; /* in what the peer sent */
    uint64_t not_ready_here;   /* a message of the peer found no receive */
    uint64_t wrong_icrc;       /* packets that were damaged, or forged */
    uint64_t wrong_peer;       /* packets from another address than the peer's */
    uint64_t wrong_qkey;       /* datagrams with another Q_Key */
    uint64_t dropped;          /* packets of this port that the system did not take */
    /* Of the loop that drives the queue pair: packets for a number that no queue pair has, passed on to other
     * processes, and handed over by them. */
    uint64_t unowned, passed, handed;
};

#ifdef __cplusplus
}
#endif
#endif
