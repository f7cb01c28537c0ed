/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm.h - the connection manager of RoCE, without sockets, clock or heap: messages and the time go in; messages and
 * events come out. It makes and ends connections (REQ, REP, RTU; MRA, REJ; DREQ, DREP), and finds the queue pair of a
 * datagram service (SIDR). It does not touch queue pairs.
 *
 * The host (a socket, a test, a simulator, a fuzzer) verifies packets, gives the memory of every object, and serialises
 * all calls. Time is in microseconds and never goes back. After each call that takes the time, the host
 *   1. takes events with rcm_event() until there is none, and may answer them at once,
 *   2. sends packets with rcm_output() until there is none,
 *   3. sets a timer for rcm_deadline(), when it calls rcm_tick(). */
#ifndef RDDP_ROCE_RCM_H
#define RDDP_ROCE_RCM_H

#include "roce/rcm_message.h"

#define RCM_NEVER UINT64_MAX

enum {
    RCM_BUCKETS = 1024,     /* of each hash table; a power of two */
    RCM_BACKLOG_MAX = 1024, /* requests of a listener that are not established yet */
    RCM_SHARE = 4,          /* of its backlog one address has a part in RCM_SHARE at most, but always one */
    RCM_RESTING_MAX = 4096, /* connections in TIMEWAIT; with one more, the oldest is gone early */
    /* Messages to peers that may never have asked (the sender's address may be forged): resends, and what is said after
     * the answer. Each peer of a listener that proves itself earns one more, having sent two messages for one: so the
     * answers are never more than the questions, and these. */
    RCM_UNASKED_MAX = 32,

    RCM_ANSWERS = 16, /* answers without a connection that wait for rcm_output(); the oldest gives way */

    RCM_TIMEOUT_DEFAULT = 20,     /* response time-out of 4.3 s, as rdma_cm's */
    RCM_TIMEOUT_LEAST = 14,       /* shorter ones count as 67 ms, */
    RCM_TIMEOUT_MOST = 22,        /* longer ones as 17 s */
    RCM_SERVICE_DEFAULT = 24,     /* what our MRA asks for: 69 s, as rdma_cm's */
    RCM_SERVICE_MAX = 26,         /* a peer's MRA prolongs a wait by 275 s at most */
    RCM_RESEND_FIRST_US = 250000, /* the first resend; then doubled up to the response time-out */
};

enum rcm_state {
    RCM_CLOSED,       /* over; RCM_EVENT_GONE gives the memory back */
    RCM_REQ_SENT,     /* active: waits for the REP */
    RCM_REP_RECEIVED, /* active: the host prepares its queue pair, then confirms */
    RCM_REQ_RECEIVED, /* passive: the application has the request */
    RCM_REP_SENT,     /* passive: waits for the RTU, or the first packet of the connection */
    RCM_ESTABLISHED,
    RCM_DREQ_SENT,     /* waits for the DREP */
    RCM_TIMEWAIT,      /* packets may still be under way: its numbers rest */
    RCM_SIDR_SENT,     /* active: waits for the SIDR REP */
    RCM_SIDR_RECEIVED, /* passive: the application has the SIDR REQ */
};

/* Addresses of a packet, as GIDs: an IPv4 address is ::ffff:a.b.c.d. */
struct rcm_path {
    uint8_t local[16], peer[16];
    uint32_t scope;     /* of link-local addresses; the host's, not compared */
    uint16_t peer_port; /* UDP port that packets are sent to; not compared. That of the REP counts from then on */
    bool is_known;      /* the host knows that the sender has this address, which is one of its own; not compared */
};

/* Members of lists. NULL: in none. */
struct rcm_link {
    struct rcm_link *next, *before;
};

/* A service ID that accepts requests. The host's memory, from rcm_listen() to rcm_unlisten(). */
struct rcm_listener {
    uint64_t service;
    uint8_t local[16]; /* the address; all zero: any; ::ffff:0.0.0.0: any of IPv4 */
    bool datagram;     /* takes SIDR REQs, or else REQs */
    bool rdma_cm;      /* requests begin with the addresses of rdma_cm; others are rejected */
    uint32_t backlog;  /* 1 to RCM_BACKLOG_MAX */
    void *of;          /* the host's */
    uint32_t pending_count;
    uint32_t known_count;    /* those of them whose sender is known */
    struct rcm_link pending; /* connections that are not established yet, oldest first */
    struct rcm_link link;
};

/* A node of the heap of deadlines. */
struct rcm_timer {
    uint64_t due_us;                         /* RCM_NEVER: in no heap */
    struct rcm_timer *child, *next, *before; /* before: of the first child, its parent */
};

/* The wait for an answer. */
struct rcm_wait {
    uint64_t response_us; /* response time-out */
    uint64_t interval_us; /* to the next resend */
    uint8_t retries;      /* resends after a whole response time-out, at most, */
    uint8_t tries;        /* and so far */
    bool prolonged;       /* by an MRA, once for each message */
};

/* A connection, or a SIDR request. The host's memory, zeroed, from rcm_connect(), rcm_resolve() or rcm_take() until
 * RCM_EVENT_GONE or rcm_forget(). The host may read all, and write `of`. */
struct rcm_conn {
    void *of;
    enum rcm_state state;
    bool active, datagram;
    bool is_real; /* passive: the peer is known, or has received what we sent to its address */
    struct rcm_path path;
    uint32_t local_id, remote_id; /* comm IDs, or the request ID */
    uint64_t transaction;         /* of the request, */
    uint64_t leave_transaction;   /* and of the DREQ */
    uint64_t service;
    uint32_t qpn, peer_qpn;
    /* Ours. From RCM_EVENT_ANSWERED, and rcm_accept(), on what was agreed. */
    uint8_t responder_resources, initiator_depth;
    uint64_t timewait_us;
    struct rcm_wait wait;
    struct rcm_timer timer;
    unsigned news;                               /* events not taken yet: a bit for each kind */
    uint16_t reason;                             /* with RCM_EVENT_REJECTED */
    struct rcm_listener *listener;               /* passive, until it is established or over */
    struct rcm_link by_local, by_remote, by_qpn; /* in hash tables */
    struct rcm_link in_list;                     /* pending of its listener, or resting */
    struct rcm_link in_news, in_output;
    uint8_t out[RCM_MAD_OCTETS]; /* the newest message, which may be sent again */
};

enum rcm_event_kind {
    /* `message` is a REQ or SIDR REQ for `listener`. rcm_take() makes it a connection, rcm_refuse() rejects it;
     * without either before the next call of rcm_event() it is ignored. */
    RCM_EVENT_REQUEST,
    /* The others are of `conn`, in this order if there are several. */
    RCM_EVENT_ANSWERED,     /* the REP: prepare the queue pair, then rcm_confirm(), or rcm_reject() */
    RCM_EVENT_RESOLVED,     /* the SIDR REP: message->status, and number and Q_Key in message->terms */
    RCM_EVENT_ESTABLISHED,  /* passive: by the RTU, rcm_communicates(), or the peer's DREQ */
    RCM_EVENT_DOUBTED,      /* the peer asks for another connection of its queue pair: it has restarted */
    RCM_EVENT_REJECTED,     /* `reason`, and message->data; message is NULL if the peer's REP could not be used */
    RCM_EVENT_UNREACHABLE,  /* no answer after all retries, to a REQ, REP or SIDR REQ */
    RCM_EVENT_GAVE_WAY,     /* passive: the backlog was full, and it was the oldest */
    RCM_EVENT_DISCONNECTED, /* by the peer, or our rcm_disconnect() was answered or given up */
    RCM_EVENT_GONE,         /* the last one: its numbers may be used again, and the memory is the host's */
    RCM_EVENTS,
};

struct rcm_event {
    enum rcm_event_kind kind;
    struct rcm_conn *conn;
    struct rcm_listener *listener; /* RCM_EVENT_REQUEST */
    struct rcm_path path;          /* RCM_EVENT_REQUEST */
    /* The message that caused it, valid until the next rcm_input(); NULL: none did. Its data lie in the MAD. */
    const struct rcm_message *message;
    const struct rcm_ip *ip; /* RCM_EVENT_REQUEST of rdma_cm: the addresses; the private data follow RCM_IP_OCTETS */
    uint16_t reason;         /* RCM_EVENT_REJECTED: enum rcm_reason, or what else the peer gave */
};

struct rcm_attr {
    uint32_t id_base, id_mask; /* comm IDs are id_base, and random bits where id_mask has bits */
    uint64_t guid;
    uint64_t (*random)(void *of); /* the host's source of numbers that no one can guess */
    void *of;
};

struct rcm_counters {
    uint64_t received, dropped, duplicates, resent, refused, gave_way, withheld;
};

/* An answer without a connection. */
struct rcm_answer {
    struct rcm_path path;
    uint8_t mad[RCM_MAD_OCTETS];
};

struct rcm {
    struct rcm_attr attr;
    uint64_t key[2];  /* of hashes */
    uint32_t psn;     /* of the next packet */
    uint32_t unasked; /* messages that may still leave to peers that may never have asked */
    struct rcm_link by_local[RCM_BUCKETS], by_remote[RCM_BUCKETS], by_qpn[RCM_BUCKETS];
    struct rcm_link listeners, resting, news, output;
    uint32_t resting_count;
    struct rcm_timer *first; /* the heap's root */
    struct rcm_answer answers[RCM_ANSWERS];
    uint32_t answer_head, answer_tail; /* free-running */
    /* What the last rcm_input() was about. */
    struct rcm_message received;
    struct rcm_path received_path;
    uint64_t received_us;
    struct rcm_ip received_ip;
    struct rcm_conn *received_conn; /* the one that it caused an event of */
    struct rcm_listener *asked;     /* a request for it waits for rcm_event(), */
    bool offered;                   /* or was taken by it, and may be answered */
    struct rcm_counters counters;
};

void rcm_init(struct rcm *cm, const struct rcm_attr *attr);

/* --- the passive end ----------------------------------------------------------------------------------------- */

/* Returns 0, or -EADDRINUSE if the service ID has a listener at this address. */
int rcm_listen(struct rcm *cm, struct rcm_listener *listener);
/* Its connections go on, and belong to no listener. */
void rcm_unlisten(struct rcm *cm, struct rcm_listener *listener);
/* Has this service ID a listener at this address? */
bool rcm_listens(const struct rcm *cm, uint64_t service, const uint8_t *local);

/* Has it its share of requests from known senders? Then those should wait: see rcm_take(). */
bool rcm_is_full(const struct rcm_listener *listener);

/* Makes the request of RCM_EVENT_REQUEST the connection `conn`. If the backlog is full, another one gives way, but one
 * of a known sender only if there are no others. */
void rcm_take(struct rcm *cm, struct rcm_conn *conn);
/* Rejects the request without keeping anything: a REJ, or a SIDR REP with RCM_SIDR_REJECTED. Returns 0, or -EMSGSIZE if
 * the private data are too long for it. */
int rcm_refuse(struct rcm *cm, uint16_t reason, const void *data, uint8_t octets);

struct rcm_accept {
    struct rcm_terms terms; /* responder_resources and initiator_depth are lowered to what the peer can do */
    uint64_t timewait_us;
    const void *data;
    uint8_t octets;
};

/* Sends the REP, or SIDR REP. Returns 0; -ENOTCONN: the peer has given up; or -EMSGSIZE. */
int rcm_accept(struct rcm *cm, struct rcm_conn *conn, const struct rcm_accept *accept, uint64_t now_us);

/* The queue pair received a packet of its peer: in RCM_REP_SENT that stands for an RTU that was lost. */
void rcm_communicates(struct rcm *cm, struct rcm_conn *conn);

/* --- the active end ------------------------------------------------------------------------------------------ */

struct rcm_connect {
    struct rcm_path path;
    uint64_t service;
    bool rdma_cm;         /* puts addresses in front of the private data: those of the path, and */
    uint16_t source_port; /* this port */
    struct rcm_terms terms;
    uint32_t flow_label;
    uint8_t traffic_class, hop_limit;
    uint8_t ack_timeout;      /* code, of the connection's packets */
    uint8_t response_timeout; /* code, both ways */
    uint8_t cm_retries;       /* 0 to RCM_RETRIES_MAX */
    uint64_t timewait_us;
    const void *data;
    uint8_t octets;
};

/* Sends a REQ, or a SIDR REQ (of `terms`, pkey counts). Returns 0, or -EMSGSIZE. */
int rcm_connect(struct rcm *cm, struct rcm_conn *conn, const struct rcm_connect *connect, uint64_t now_us);
int rcm_resolve(struct rcm *cm, struct rcm_conn *conn, const struct rcm_connect *connect, uint64_t now_us);

/* The queue pair is ready to receive: sends the RTU. Returns 0; -ENOTCONN: the peer has given up. */
int rcm_confirm(struct rcm *cm, struct rcm_conn *conn);

/* --- both ----------------------------------------------------------------------------------------------------- */

/* Rejects what the peer said: a REQ, SIDR REQ or REP. Returns 0; -ENOTCONN: the peer has given up; or -EMSGSIZE. */
int rcm_reject(struct rcm *cm, struct rcm_conn *conn, uint16_t reason, const void *data, uint8_t octets,
               uint64_t now_us);

/* Ends it in any state. Once a REP was sent or confirmed, RCM_EVENT_DISCONNECTED follows; RCM_EVENT_GONE always. */
void rcm_disconnect(struct rcm *cm, struct rcm_conn *conn, uint64_t now_us);

/* Takes it out at once, without a message or event. */
void rcm_forget(struct rcm *cm, struct rcm_conn *conn);

/* --- messages and time ---------------------------------------------------------------------------------------- */

/* The payload of a packet for which rcm_is_packet(); it is borrowed until the events have been taken. Events of earlier
 * calls must have been taken. */
void rcm_input(struct rcm *cm, const struct rcm_path *path, const uint8_t *mad, uint32_t octets, uint64_t now_us);

/* Takes the next event. Returns false if there is none. */
bool rcm_has_event(const struct rcm *cm);
bool rcm_event(struct rcm *cm, struct rcm_event *event);

/* Writes the next packet, RCM_PACKET_OCTETS without its ICRC, to `p`. Returns false if there is none. */
bool rcm_output(struct rcm *cm, struct rcm_path *path, uint8_t *p);

/* Returns when rcm_tick() is due, or RCM_NEVER. */
uint64_t rcm_deadline(const struct rcm *cm);
void rcm_tick(struct rcm *cm, uint64_t now_us);

#endif
