/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - one connection on its stream: start-up, segments in, segments out, the end. Bytes and time are arguments.
 *
 * The host (a socket, a test, a simulator, a fuzzer) does this after every stimulus:
 *     conn_rx() with what came, and again on CONN_AGAIN; then while conn_wants() & CONN_TX: conn_fill(), send what is
 * in conn->life.out, conn_sent(); on CONN_FIN end the outgoing stream and say conn_fin(); read and clear
 * conn->life.news; call conn_tick() at conn_deadline(). */
#ifndef RDDP_CONN_CONN_H
#define RDDP_CONN_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conn/early.h"
#include "conn/life.h"
#include "conn/out.h"
#include "core/qp.h"
#include "wire/mpa_start.h"
#include "wire/wire.h"

enum conn_want {
    CONN_RX = 1 << 0,    /* there is a use for more octets */
    CONN_TX = 1 << 1,    /* conn_fill() has something, or conn->life.out has */
    CONN_FIN = 1 << 2,   /* end the outgoing stream now */
    CONN_AGAIN = 1 << 3, /* conn_rx() once more with the octets it did not eat, though no more came */
};

struct conn_attr {
    bool crc, markers; /* what we ask for */
    bool peer_to_peer, immediate;
    uint8_t revision; /* of an initiator's request */
    unsigned rtr;     /* enum mpa_rtr: which we can do */
    uint16_t ird, ord;
    uint32_t emss;
    bool aligned;           /* every packet of the peer's begins where a unit does: its link is known for that */
    bool acknowledged;      /* requests complete when the peer has all of them, and not when they have left */
    uint64_t connection_id; /* active, on a wire with one: 64 random bits */
    uint64_t first_delay_us, startup_us, stall_us, close_us; /* stall 0: never */
};

/* The start-up: what was said, what is agreed, and what is still due before anything else (RFC 5044 7.1, RFC 6581). */
struct start {
    struct mpa_frame peer; /* what the peer's frame said; private data in peer_data */
    uint8_t peer_data[MPA_PRIVATE_MAX];
    uint8_t frame[MPA_FRAME_MAX]; /* our own, until it is in `out` */
    uint16_t frame_length;
    uint8_t revision; /* in force */
    uint16_t ird, ord;

    unsigned rtr;         /* the ready-to-receive message that was chosen: one bit, or 0 */
    bool rtr_due;         /* we have to send it */
    bool rtr_answer_due;  /* ours was a Read: nothing more before its empty response, which is not the queue pair's */
    bool hold;            /* responder: nothing before the initiator's first FPDU (RFC 5044 7.1.2) */
    uint64_t tx_after_us; /* no FPDU of ours before */
};

struct conn {
    const struct wire *wire;
    struct conn_attr attr;
    struct life life;
    struct start start;
    struct wire_state agreed;

    bool held;          /* a segment waits, and is to come again: */
    bool held_withheld; /* ... when the message before it has been told, ... */
    uint32_t held_tail; /* ... else when a response of ours has been cut: qp->answer_tail is not this any more */

    uint8_t *direct_at;   /* where the payload of the unit that arrives is read to: conn_direct(); else NULL */
    uint32_t direct_left; /* octets that have not come */

    struct early *early;  /* NULL: the link has all octets in order */
    bool taking, refused; /* in conn_take(): a unit may be refused, and was */
    unsigned refusals;    /* of the unit that is due */
};

/* A connection whose TCP has just come up. On a wire that frames at once the queue pair has its qp_sequence(), there
 * are no private data, and the passive side says nothing before a segment has come. `private_length` octets of private
 * data go into the request (active). 0, or -EINVAL: too much private data. */
int conn_init_active(struct conn *c, const struct wire *wire, const struct conn_attr *attr, struct qp *qp,
                     const void *private_data, uint16_t private_length, uint64_t now_us);
void conn_init_passive(struct conn *c, const struct wire *wire, const struct conn_attr *attr, uint64_t now_us);

/* Answers a request (CONN_WAIT_ANSWER). `ird`, `ord` are what the queue pair has room for. */
int conn_accept(struct conn *c, struct qp *qp, uint16_t ird, uint16_t ord, const void *private_data,
                uint16_t private_length, uint64_t now_us);
int conn_reject(struct conn *c, const void *private_data, uint16_t private_length, uint64_t now_us);

/* Takes octets from the front of the stream; returns how many. The rest must come again with more behind it. The octets
 * may be changed. */
size_t conn_rx(struct conn *c, uint8_t *p, size_t n, uint64_t now_us);

/* Where the next octets of the stream belong, and how many of the unit come behind them. */
struct conn_direct {
    uint8_t *at;
    uint32_t octets, behind;
};

/* A host that can read to two places at once need not have a large payload in its stage first. At `p` are the *n octets
 * that conn_rx() has left, in front of what is to be read next. True: the next direct->octets belong at direct->at; as
 * many of them as the host has read there it tells to conn_filled(), and octets behind them follow those at `p` as
 * ever. Of these only the first *n, never more than before, are still needed. Fewer than `least` octets are not worth
 * it. To be asked before every read, for memory may go at any time; false: read as ever.
 * Never with a CRC: what is not verified touches no memory of the application. */
bool conn_direct(struct conn *c, const uint8_t *p, uint32_t *n, uint32_t least, struct conn_direct *direct,
                 uint64_t now_us);
void conn_filled(struct conn *c, size_t octets);

/* --- a link that has octets in any order ---
 * It lends room for what is known of them, gives each packet to conn_take() before it takes note of it, and says by
 * conn_advance() when octets arrived before which nothing is missing any more. What it was to keep comes to conn_rx(),
 * in its turn: from the position that conn_advance() returns up to where something was taken, or up to the next gap. */

enum conn_verdict {
    CONN_KEEP,    /* keep them: they are asked for when it is their turn */
    CONN_TAKEN,   /* they are where they belong, and are not to come again */
    CONN_REFUSED, /* they are spoilt: as if they had never come */
};

void conn_lend_early(struct conn *c, struct early *early);

/* `n` octets from stream position `pos` on, which counts from where framing began. The verdict is about the first
 * *octets of them; the rest may be asked about at once. The octets are changed only if they are taken. */
enum conn_verdict conn_take(struct conn *c, uint8_t *p, size_t n, uint64_t pos, size_t *octets, uint64_t now_us);

/* Everything before stream position `edge` has arrived. Returns from where on octets that were kept are wanted. */
uint64_t conn_advance(struct conn *c, uint64_t edge, uint64_t now_us);

/* The peer ended its stream; `rest` octets of an unfinished unit are left. */
void conn_rx_end(struct conn *c, size_t rest, uint64_t now_us);

/* The link is gone: FAULT_LOST and the like. */
void conn_lost(struct conn *c, enum fault fault);

/* Notices that the queue pair has failed by itself (a bad lkey, a full CQ), or can tell what waited for others to leave
 * a region. Before conn_wants(), whenever requests were posted, and at conn_deadline(). */
void conn_check(struct conn *c, uint64_t now_us);

/* enum conn_want. */
unsigned conn_wants(const struct conn *c, uint64_t now_us);

/* It wants octets and nothing else, at whatever time: after conn_rx() the host need not look further. */
bool conn_is_at_rest(const struct conn *c);

/* Encodes into conn->life.out as much as there is and fits. */
void conn_fill(struct conn *c, uint64_t now_us);

/* `octets` of conn->life.out were taken by the link. */
void conn_sent(struct conn *c, size_t octets, uint64_t now_us);
void conn_fin(struct conn *c, uint64_t now_us);

/* The peer has everything of ours before stream position `pos`, which counts from where framing began: the link says
 * so, or a wire with acknowledgements of its own. Requests complete, if that is what attr.acknowledged asks for.
 * Positions may come in any order, also ones of what was never sent. */
void conn_acked(struct conn *c, uint64_t pos, uint64_t now_us);

/* Closes gracefully (see CONN_DRAINING). */
void conn_close(struct conn *c, uint64_t now_us);

/* The queue pair goes away: the connection ends by itself, without it. */
void conn_detach(struct conn *c, uint64_t now_us);

/* Ends with a Terminate for `note`; `seg`, if any, is what it is about. */
void conn_fail(struct conn *c, const struct fault_note *note, const struct seg *seg, uint64_t now_us);

/* When conn_tick() must be called at the latest, or UINT64_MAX. */
uint64_t conn_deadline(const struct conn *c, uint64_t now_us);
void conn_tick(struct conn *c, uint64_t now_us);

#endif
