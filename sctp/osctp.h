/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* osctp.h - one SCTP association (RFC 9260) on one path, without sockets, clock or heap: packets and the time go in,
 * packets come out. It sends messages of one DATA chunk each, unordered; it receives DATA chunks of any kind.
 *
 * Time is given by the host, in microseconds, and never goes back. After osctp_input(), osctp_timeout(), or a change by
 * the user, the host calls osctp_output() until it returns false, looks at the state, and sets a timer for
 * osctp_deadline(). The host verifies checksums (packet.h), and finds the association of a packet by the
 * addresses and ports. One thread at a time may use an association. */
#ifndef RDDP_SCTP_OSCTP_H
#define RDDP_SCTP_OSCTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "sctp/cookie.h"
#include "sctp/packet.h"

#define OSCTP_NEVER UINT64_MAX

enum {
    /* TSNs from the cumulative one on, itself included, that can be received or be in flight; a power of two. A
     * receiver of DDP keeps 4096 messages behind one that is missing, and ends the connection for more. */
    OSCTP_TSNS = 4096,
    OSCTP_DUPLICATES = 16, /* TSNs received twice that one SACK reports */
    OSCTP_PACKETS = 4096,  /* packets that wait to be sent or acknowledged; a power of two */
    OSCTP_NO_PLACE = 65535,
    OSCTP_ANSWER = 1200, /* octets of the longest packet of control chunks */
    OSCTP_REASON = 256,  /* octets of a reason for an ABORT that are kept */
    OSCTP_RETRIES = 10,  /* time-outs in a row: Association.Max.Retrans (RFC 9260 16) */
    OSCTP_BURST = 4,     /* packets sent for one SACK, beyond those that it acknowledges: Max.Burst (RFC 9260 16) */
    OSCTP_BURST_BATCHES = 128, /* the same, if the peer acknowledges batches */
    OSCTP_CHUNK_HEAD = 16,     /* octets in front of the data of a DATA chunk */
    OSCTP_PACKET_MIN = 128,    /* octets of packets: a SACK has space for duplicates and a gap */
    OSCTP_PACKET_MAX = 65520,
};

enum osctp_state {
    OSCTP_CLOSED, /* over; `end` says why */
    OSCTP_COOKIE_WAIT,
    OSCTP_COOKIE_ECHOED,
    OSCTP_ESTABLISHED,
    OSCTP_SHUTDOWN_PENDING,
    OSCTP_SHUTDOWN_SENT,
    OSCTP_SHUTDOWN_RECEIVED,
    OSCTP_SHUTDOWN_ACK_SENT,
};

enum osctp_end {
    OSCTP_SHUT,    /* both ends have shut down */
    OSCTP_ABORTED, /* by the peer; `reason` is its reason */
    OSCTP_LOST,    /* no answer for too long, or the peer restarted or broke a rule */
    OSCTP_LEFT,    /* osctp_abort() */
};

/* A DATA chunk. `data` is valid until the callback returns. */
struct osctp_data {
    uint32_t tsn, ppid;
    uint16_t stream, ssn;
    bool first, last, unordered;
    const uint8_t *data;
    uint32_t octets; /* at least 1 */
};

struct osctp_user {
    /* Takes a DATA chunk, in any order, each once. False: no memory, and it counts as lost. */
    bool (*take)(void *of, const struct osctp_data *data);
    /* A chunk on a stream that does not exist was acknowledged, as RFC 9260 6.5 wants: its TSN carries nothing. */
    void (*skip)(void *of, uint16_t stream);
    /* Returns memory for a packet, packet_max octets, and takes it back; NULL: no memory. */
    uint8_t *(*lend)(void *of);
    void (*put_back)(void *of, uint8_t *packet);
};

struct osctp_attr {
    uint16_t local_port, peer_port; /* SCTP ports */
    uint32_t packet_max;            /* octets of the longest packet, header included: MIN to MAX, a multiple of 4 */
    uint32_t indication;            /* adaptation indication; 0: none */
    uint16_t streams;               /* requested, each way */
    uint32_t window;                /* octets that the user takes: the first a_rwnd */
    uint32_t store;                 /* octets of packets that wait to be sent or acknowledged, at most */
    uint32_t init_retries;          /* after the first INIT, or COOKIE-ECHO */
    uint64_t init_max_us;           /* the longest time-out of an INIT */
    uint32_t tag, tsn;              /* random; the tag is not 0 */
    bool ecn;                       /* take part in explicit congestion notification, if the peer does */
};

/* A packet that waits to be sent or acknowledged. */
struct osctp_sent {
    uint8_t *packet; /* the user's; DATA chunks behind PACKET_COMMON octets for the header */
    uint64_t sent_us;
    uint32_t tsn;     /* of its first chunk */
    uint64_t number;  /* of its last transmission; 0: it was not sent */
    uint32_t payload; /* octets of user data */
    uint32_t crc;     /* of what it has so far */
    uint16_t octets, chunks;
    uint16_t missing;        /* chunks that no gap block acknowledged */
    uint16_t before, behind; /* if flying: the places of those sent before and after it, or OSCTP_NO_PLACE */
    bool flying;             /* neither acknowledged nor lost */
    bool gap_acked, retransmitted;
};

struct osctp_tx {
    uint32_t next;                          /* the next TSN */
    uint32_t cum;                           /* the highest TSN acknowledged with all before it */
    struct osctp_sent *sent;                /* OSCTP_PACKETS places, owned by the host */
    uint32_t first, unsent, end;            /* places, modulo OSCTP_PACKETS: unacknowledged from `first` on */
    uint64_t number;                        /* of the last packet of DATA */
    uint64_t newest;                        /* the highest number acknowledged */
    uint32_t queued;                        /* octets from `first` on */
    bool sacked;                            /* the packet being processed had a SACK before */
    bool repeats;                           /* the last packet of DATA was sent before */
    uint16_t oldest, youngest;              /* the packets in flight that were sent first and last, or OSCTP_NO_PLACE */
    uint32_t lost, lost_from;               /* packets marked as lost and not sent again; none is before lost_from */
    uint64_t lost_bits[OSCTP_PACKETS / 64]; /* these, by place */
    uint64_t acked[OSCTP_TSNS / 64];        /* TSNs that gap blocks acknowledged */
    uint32_t window;                        /* the peer's a_rwnd */
};

struct osctp_congestion {
    uint32_t window, threshold, partial; /* RFC 9260 7.2: cwnd, ssthresh, partial_bytes_acked */
    uint32_t flight;                     /* octets of user data in flight */
    uint32_t burst;                      /* packets that may still be sent before the next acknowledgement */
    bool adds;                           /* nothing could be sent since the last one: the next adds to `burst` */
    uint32_t reorder;                    /* packets acknowledged behind one that prove it lost */
    bool recovering;                     /* until `point` is acknowledged */
    bool marked;                         /* a mark, not a loss, was the last that reduced the window */
    uint32_t point;
    uint32_t reacted; /* the highest TSN that an ECNE has named */
};

struct osctp_rtt {
    bool known;
    uint32_t srtt_us, var_us, min_us;
    uint64_t rto_us;
};

struct osctp_rx {
    uint32_t cum;     /* all TSNs up to it were received */
    uint32_t highest; /* the highest received */
    uint64_t bits[OSCTP_TSNS / 64];
    uint32_t duplicates[OSCTP_DUPLICATES], duplicated;
    uint32_t packets; /* with DATA since the last SACK */
    bool due;         /* a SACK must be sent */
    uint32_t window;  /* a_rwnd */
    uint32_t said;    /* a_rwnd of the last SACK */
    bool marked;      /* the packet being processed has the mark of congestion */
    bool echoes;      /* every SACK says so, until the peer has reacted to what came from `marked_tsn` on */
    uint32_t marked_tsn;
};

/* What must be sent apart from DATA and SACK. */
struct osctp_due {
    bool init, echo, cookie_ack, cwr, heartbeat, shutdown, shutdown_ack, shutdown_complete, abort;
    uint16_t cause; /* of the ABORT */
};

struct osctp_timers {
    uint64_t init_us, data_us, probe_us, sack_us, shutdown_us, heartbeat_us; /* OSCTP_NEVER: not set */
    bool probed;                                                             /* since the last acknowledgement */
    uint64_t asked_us;        /* when the HEARTBEAT was sent whose answer counts; OSCTP_NEVER: none */
    uint32_t inits, failures; /* failures: time-outs since the peer last acknowledged something */
};

/* looks: packets that were looked at for SACKs; marks: answers of ours to the mark of congestion. */
struct osctp_count {
    uint64_t packets_in, packets_out, sent_again, timeouts, probes, duplicates, refused, looks, marks;
};

struct osctp {
    const struct osctp_user *user;
    void *of;
    struct osctp_attr attr;
    enum osctp_state state;
    enum osctp_end end;
    bool up;                          /* both ends know of the association */
    bool peer_end;                    /* the peer sends nothing more */
    bool batches;                     /* the peer sends batches, and one acknowledgement for each is enough */
    bool ecn;                         /* both ends take part in explicit congestion notification */
    uint32_t peer_tag, peer_tsn;      /* peer_tsn: its initial TSN */
    uint32_t peer_indication;         /* 0: none */
    uint16_t streams;                 /* that we may send on */
    uint64_t cookie_us;               /* when our cookie was made that began the association; 0: we have called */
    uint8_t cookie[OSCTP_COOKIE_MAX]; /* of the peer */
    uint32_t cookie_octets;
    uint8_t answer[OSCTP_ANSWER]; /* answers to chunks of the peer, with the common header */
    uint32_t answer_octets;
    uint8_t *echo;                /* the user's memory with the answer to a HEARTBEAT that is longer; NULL: none */
    uint32_t echo_octets;         /* to be sent */
    uint8_t out[OSCTP_ANSWER];    /* the packet of control chunks that osctp_output() returned */
    uint8_t reason[OSCTP_REASON]; /* of the peer's ABORT, or of ours */
    uint32_t reason_octets;
    struct osctp_tx tx;
    struct osctp_congestion congestion;
    struct osctp_rtt rtt;
    struct osctp_rx rx;
    struct osctp_due due;
    struct osctp_timers timer;
    struct osctp_count count;
};

/* --- begin --------------------------------------------------------------------------------------------------- */

/* The active end. The next osctp_output() returns the INIT. `sent` has OSCTP_PACKETS places and outlives the
 * association, or is NULL: then osctp_lend() follows. */
void osctp_connect(struct osctp *o, const struct osctp_attr *attr, struct osctp_sent *sent,
                   const struct osctp_user *user, void *of, uint64_t now_us);

/* The passive end, which stores nothing until the peer has returned our cookie. osctp_answer() writes the answer to a
 * packet with an INIT or COOKIE-ECHO that begins no association to `reply`, OSCTP_ANSWER octets without a checksum,
 * and returns its length: an INIT-ACK, an ABORT, or an ERROR for a cookie that is too old; 0: none. `attr` has the
 * tag and TSN of the association to come; `peer` is a number for the peer's address, which the cookie repeats. */
uint32_t osctp_answer(const struct osctp_attr *attr, const uint64_t key[2], uint64_t peer, const uint8_t *p, uint32_t n,
                      uint8_t *reply, uint64_t now_us);

/* Is the first chunk of this packet a COOKIE-ECHO with a cookie of ours, from this peer? Fills *cookie, which may be
 * too old. `key` and `peer` are those of osctp_answer(). */
bool osctp_read_echo(const uint64_t key[2], uint64_t peer, const uint8_t *p, uint32_t n, struct osctp_cookie *cookie);

/* Begins the association of a cookie that is not too old; then the packet goes to osctp_input(). `attr` as in
 * osctp_connect(), except tag and TSN, which are the cookie's. */
void osctp_accept(struct osctp *o, const struct osctp_attr *attr, const struct osctp_cookie *cookie,
                  struct osctp_sent *sent, const struct osctp_user *user, void *of, uint64_t now_us);

/* Lends the places of `sent` before the first osctp_submit(), or takes them back (NULL) when all is acknowledged. */
void osctp_lend(struct osctp *o, struct osctp_sent *sent);

/* --- packets and time ---------------------------------------------------------------------------------------- */

/* The next packet of osctp_input() has the mark of congestion (CE, RFC 3168). */
void osctp_marked(struct osctp *o);

/* Processes a packet of this association, with a correct checksum. */
void osctp_input(struct osctp *o, const uint8_t *p, uint32_t n, uint64_t now_us);

/* Returns the next packet to send, with its checksum, valid until the next call of any function; false: there is none
 * now. */
bool osctp_output(struct osctp *o, const uint8_t **p, uint32_t *n, uint64_t now_us);

/* Is this packet of osctp_output() valid until osctp_input() or osctp_free() is called? */
static inline bool osctp_lasts(const struct osctp *o, const uint8_t *p)
{
    return p != o->out && p != o->answer && p != o->echo;
}

/* What an INIT or a cookie of ours means that comes to the ports of an association (RFC 9260 5.2). */
enum osctp_collision {
    OSCTP_COLLISION_NONE,   /* nothing: the packet is dropped */
    OSCTP_COLLISION_OUTPUT, /* nothing, but the association has something to send for it */
    OSCTP_COLLISION_SAME,   /* it is for this association: osctp_answer() with its attributes, or osctp_input() */
    OSCTP_COLLISION_OTHER,  /* it is for another: osctp_answer(), or this one ends and osctp_accept() */
    OSCTP_COLLISION_STALE,  /* the cookie is too old: osctp_answer() */
};

/* An INIT has come; or a COOKIE-ECHO with this cookie. */
enum osctp_collision osctp_collide_init(struct osctp *o);
enum osctp_collision osctp_collide_echo(struct osctp *o, const struct osctp_cookie *cookie, uint64_t now_us);

/* Does this packet of osctp_output() leave as ECN-capable, with ECT(0)? New DATA does, if the peer takes part. */
bool osctp_is_ect(const struct osctp *o, const uint8_t *p);

/* Must the host send before it processes more input? */
bool osctp_urgent(const struct osctp *o);

uint64_t osctp_deadline(const struct osctp *o);
void osctp_timeout(struct osctp *o, uint64_t now_us);

/* Is this the beginning of a packet of ours, as an ICMP error quotes it? It must show our tag if it is an INIT, or else
 * the peer's (RFC 9260 10, ICMP6): who is not on the path knows neither. */
bool osctp_is_quoted(const struct osctp *o, const uint8_t *p, uint32_t n);

/* Writes the answer to a packet that belongs to no association (RFC 9260 8.4) to `reply`, OSCTP_ANSWER octets without a
 * checksum, and returns its length; 0: none. */
uint32_t osctp_refuse(const uint8_t *p, uint32_t n, uint8_t *reply);

/* --- messages ------------------------------------------------------------------------------------------------ */

/* Returns the octets of the longest message. */
uint32_t osctp_payload_max(const struct osctp *o);

/* Copies a message to send, unordered. Small ones share packets until they are sent. Returns 0; -EAGAIN: too much
 * waits; -EINVAL: it is empty; -EMSGSIZE; -ENOMEM; or -EPIPE: the association takes nothing more. */
int osctp_submit(struct osctp *o, const struct span *span, uint32_t spans, uint16_t stream, uint32_t ppid);

/* May osctp_submit() succeed again after -EAGAIN? */
bool osctp_has_space(const struct osctp *o);

/* The user takes this many octets from now on (a_rwnd). */
void osctp_window(struct osctp *o, uint32_t octets);

/* --- end ----------------------------------------------------------------------------------------------------- */

void osctp_shutdown(struct osctp *o, uint64_t now_us); /* when everything is acknowledged */
void osctp_abort(struct osctp *o, const void *reason, uint32_t octets);
/* Ends it without a packet, and puts back the memory that it has borrowed. */
void osctp_free(struct osctp *o);

#endif
