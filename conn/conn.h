/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - one connection on its stream: start-up, segments in, segments out, end. Octets and time are arguments.
 *
 * The host (a socket, a test, a simulator, a fuzzer) owns the connection and the link. After every event it does the
 * following:
 *     call conn_rx() with the octets received, and again on CONN_AGAIN;
 *     while conn_wants() & CONN_TX: conn_fill(), send what is in conn->life.out, conn_sent();
 *     on CONN_FIN: end the outgoing stream and call conn_fin();
 *     read and clear conn->life.news; call conn_tick() at conn_deadline().
 *
 * One thread at a time may call. Times are microseconds of any monotonic clock. */
#ifndef RDDP_CONN_CONN_H
#define RDDP_CONN_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conn/reorder.h"
#include "conn/life.h"
#include "conn/out.h"
#include "core/qp.h"
#include "wire/mpa_start.h"
#include "wire/wire.h"

enum conn_want {
    CONN_RX = 1 << 0,    /* more octets can be used */
    CONN_TX = 1 << 1,    /* conn_fill() has octets to encode, or conn->life.out holds some */
    CONN_FIN = 1 << 2,   /* end the outgoing stream now */
    CONN_AGAIN = 1 << 3, /* call conn_rx() again with the octets it did not consume, although no more have arrived */
};

struct conn_attr {
    bool crc, markers; /* what we request */
    bool peer_to_peer, immediate;
    uint8_t revision; /* MPA revision of an initiator's request */
    unsigned rtr;     /* enum mpa_rtr: the messages that we support */
    uint16_t ird, ord;
    uint32_t emss;          /* octets of payload that a packet of the link carries */
    bool aligned;           /* the peer's link starts each packet with a unit */
    bool acknowledged;      /* requests complete when the peer has acknowledged them, not when they were sent */
    uint64_t connection_id; /* active side of a wire that has one: 64 random bits */
    uint64_t first_delay_us, startup_us, stall_us, close_us; /* microseconds; stall_us 0: no limit */
};

/* What a segment that was put back waits for. */
enum conn_held {
    HELD_NOT,
    HELD_FOR_INVALIDATION, /* the message before it, which invalidates a key, must be delivered */
    HELD_FOR_ANSWER,       /* a response must be emitted: qp->answers.tail differs from held_tail */
    HELD_FOR_RECEIVE,      /* a receive must be posted, or the time for that be over */
};

/* MPA's start-up: the frames, what they agreed on, and what must be sent or received first (RFC 5044 7.1, RFC 6581). */
struct start {
    struct mpa_frame peer; /* the peer's frame; its private data are in peer_data */
    uint8_t peer_data[MPA_PRIVATE_MAX];
    uint8_t frame[MPA_FRAME_MAX]; /* our own frame, until it is copied to `out` */
    uint16_t frame_length;
    uint8_t revision; /* in force */
    uint16_t ird, ord;

    unsigned rtr;         /* the ready-to-receive message that was chosen: one bit, or 0 */
    bool rtr_due;         /* we must send it */
    bool rtr_answer_due;  /* it was a Read: no message until its empty response, which the queue pair does not see */
    bool silent;          /* responder: send nothing before the initiator's first FPDU (RFC 5044 7.1.2) */
    uint64_t tx_after_us; /* send no FPDU before this time */
    uint64_t nudge_us;    /* when to look whether the peer still says nothing, see start_tick(); 0: no more */
    unsigned nudges;      /* looks so far */
    bool nudge_due;       /* send an empty Write, if the peer says nothing until then */
};

/* The largest payloads of a segment, and what they follow from. */
struct conn_cut {
    uint32_t emss;
    bool has_markers;
    uint32_t tagged_max, untagged_max;
};

struct conn {
    const struct wire *wire;
    struct conn_attr attr;
    struct life life;
    struct start start;
    struct wire_state agreed;
    struct conn_cut cut; /* of the segments that were sent last */

    struct seg front; /* the unit that comes next, if it was decoded and did not go straight, ... */
    int front_octets; /* ... and its length; 0: there is none */
    bool is_straight; /* the last octets went straight: nothing else has changed */
    bool is_plain;    /* in order, without markers, the peer has spoken, and nothing of `start` is due: for good */

    enum conn_held held; /* a segment was put back and must be decoded again */
    uint32_t held_tail;  /* HELD_FOR_ANSWER: qp->answers.tail then */

    uint8_t *place_at;   /* where the payload of the arriving unit is read to, by conn_read_to_place(); NULL: nowhere */
    uint32_t place_left; /* octets of it that have not arrived */

    struct reorder *reorder;    /* NULL: the link delivers all octets in order */
    bool out_of_order, refused; /* conn_rx_out_of_order() is running and may refuse a unit; it refused one */
    unsigned refusals;          /* refusals of the next unit in order */
};

/* Initialise a connection whose TCP connection has just been established. On a wire without start-up frames the queue
 * pair must have its qp_sequence(), private data are not allowed, and the passive side sends nothing before the first
 * segment arrives. The active side copies `private_length` octets of private data into its request. The queue pair
 * stays the caller's. Returns 0, or -EINVAL if the private data are too long. */
int conn_init_active(struct conn *c, const struct wire *wire, const struct conn_attr *attr, struct qp *qp,
                     const void *private_data, uint16_t private_length, uint64_t now_us);
void conn_init_passive(struct conn *c, const struct wire *wire, const struct conn_attr *attr, uint64_t now_us);

/* Accept or reject a request (CONN_WAIT_ANSWER). `ird` and `ord` are what the queue pair has room for. Both return 0,
 * or -EINVAL if the private data are too long. */
int conn_accept(struct conn *c, struct qp *qp, uint16_t ird, uint16_t ord, const void *private_data,
                uint16_t private_length, uint64_t now_us);
int conn_reject(struct conn *c, const void *private_data, uint16_t private_length, uint64_t now_us);

/* Processes octets from the front of the stream and returns how many were consumed. The caller presents the rest again,
 * with more octets behind it. The octets may be modified. */
size_t conn_rx(struct conn *c, uint8_t *p, size_t n, uint64_t now_us);

/* The same for whole Writes and Sends at the front, if nothing else happens on the connection. If c->is_straight
 * afterwards, all octets were consumed, and nothing that conn_wants() and conn_deadline() say has changed. If not,
 * conn_rx() follows at once with the rest, which may be none. */
size_t conn_rx_straight(struct conn *c, uint8_t *p, size_t n);

/* Does nothing happen on the connection but posts? Then conn_fill_segments() is all that conn_fill() would do, and what
 * conn_deadline() says does not change. conn_sent() or conn_check() has to follow. */
bool conn_sends_straight(const struct conn *c);
void conn_fill_segments(struct conn *c);

/* Where to read the next octets of the stream, and how many octets of the unit follow them. */
struct conn_place {
    uint8_t *at;
    uint32_t octets, behind;
};

/* Lets a host that can read to two places at once read a large payload without its stage. At `p` are the *n octets that
 * conn_rx() has not consumed. If true is returned, the next place->octets octets of the stream belong at place->at.
 * The host reports to conn_filled() how many it read there; octets after them follow those at `p` as usual. Only the
 * first *n octets at `p`, never more than before, are still needed. Returns false if fewer than `least` octets would be
 * read this way. Call it before every read, because the memory may be deregistered at any time; after false, read as
 * usual. Never returns true with a CRC: octets that are not verified must not reach application memory. */
bool conn_read_to_place(struct conn *c, const uint8_t *p, uint32_t *n, uint32_t least, struct conn_place *place,
                        uint64_t now_us);
void conn_filled(struct conn *c, size_t octets);

/* --- a link that delivers octets in any order ---
 * The link attaches a reorder queue, passes each packet to conn_rx_out_of_order() before it records the packet, and
 * calls conn_advance() when the gap at the front has closed. Octets that it kept go to conn_rx() in order: from the
 * position that conn_advance() returns up to the first octets that were taken, or up to the next gap. */

enum conn_verdict {
    CONN_KEEP,    /* the link keeps the octets and presents them in order */
    CONN_TAKEN,   /* the octets were used and must not be presented again */
    CONN_REFUSED, /* the octets are damaged: treat them as never received */
};

/* Gives the connection its reorder queue, once. It stays the host's and must outlive the connection. */
void conn_attach_reorder(struct conn *c, struct reorder *reorder);

/* Presents `n` octets at stream position `pos`, counted from the start of framing. The verdict applies to the first
 * *octets of them; the rest may be presented at once. Octets that are taken may have been modified. */
enum conn_verdict conn_rx_out_of_order(struct conn *c, uint8_t *p, size_t n, uint64_t pos, size_t *octets,
                                       uint64_t now_us);

/* Every octet before stream position `edge` has arrived. Returns the position from which kept octets must be
 * presented. */
uint64_t conn_advance(struct conn *c, uint64_t edge, uint64_t now_us);

/* The peer ended its stream and left `rest` octets of an unfinished unit. */
void conn_rx_end(struct conn *c, size_t rest, uint64_t now_us);

/* Nothing is read now, but the end of the peer is to be told: by conn_rx_end_unread() if it ended its stream. */
bool conn_wants_end(const struct conn *c);

/* As conn_rx_end(), but octets before the end may not have been read. What waits for a receive may wait a little
 * longer, and the end is then read in its turn. */
void conn_rx_end_unread(struct conn *c, uint64_t now_us);

/* The link is gone. `fault` is FAULT_LOST or a similar value. */
void conn_lost(struct conn *c, enum fault fault);

/* Checks whether the queue pair has failed by itself (a bad lkey, a full CQ), or can deliver what waited until others
 * left a region. Call it before conn_wants(), after requests were posted, and at conn_deadline(). */
void conn_check(struct conn *c, uint64_t now_us);

/* Can more octets be used? The CONN_RX bit of conn_wants(), alone and at any time. */
bool conn_wants_rx(const struct conn *c);

/* As life_owes(), with what the start-up has to send. */
bool conn_owes(const struct conn *c);

/* Returns enum conn_want bits. */
unsigned conn_wants(const struct conn *c, uint64_t now_us);

/* Does the connection want octets and nothing else, at any time? Then the host need not check further after
 * conn_rx(). */
bool conn_is_at_rest(const struct conn *c);

/* Encodes as much as is ready and fits into conn->life.out. */
void conn_fill(struct conn *c, uint64_t now_us);

/* The link accepted the first `octets` of conn->life.out. */
void conn_sent(struct conn *c, size_t octets, uint64_t now_us);
/* The host has ended the outgoing stream. */
void conn_fin(struct conn *c, uint64_t now_us);

/* The peer has received everything before stream position `pos`, counted from the start of framing, according to the
 * link or to the wire's own acknowledgements. Completes requests if attr.acknowledged is set. Positions may come in any
 * order and may exceed what was sent. */
void conn_acked(struct conn *c, uint64_t pos, uint64_t now_us);

/* Closes gracefully (see CONN_DRAINING). */
void conn_close(struct conn *c, uint64_t now_us);

/* The queue pair is being destroyed: the connection ends without it. */
void conn_detach(struct conn *c, uint64_t now_us);

/* Ends the connection with a Terminate for `note`. `seg` is the segment that it is about, or NULL. */
void conn_fail(struct conn *c, const struct fault_note *note, const struct seg *seg, uint64_t now_us);

/* Returns the latest time at which conn_tick() must be called, or UINT64_MAX. */
uint64_t conn_deadline(const struct conn *c, uint64_t now_us);
void conn_tick(struct conn *c, uint64_t now_us);

#endif
