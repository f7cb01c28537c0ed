/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_requester.h - the sending half of a reliable connection: which packet leaves next, what is acknowledged, and what
 * is sent again. Payloads stay with the caller, who reads them again for each packet. Time is an argument. */
#ifndef RDDP_ROCE_RC_REQUESTER_H
#define RDDP_ROCE_RC_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/bth.h"
#include "roce/rc_kept.h"
#include "roce/rc_rtt.h"

#define RC_NEVER UINT64_MAX

enum {
    RC_RETRIES_MAX = 7,
    RC_RNR_ENDLESS = 7,       /* this many RNR retries mean: without limit */
    RC_WINDOW_FIRST = 64,     /* packets in flight at first, */
    RC_WINDOW_MIN = 2,        /* after losses, */
    RC_WINDOW_MAX = 1 << 14,  /* and at most; the limit of the specification is 2^23 */
    RC_RTO_FIRST_US = 100000, /* until the first round trip was measured */
    RC_RTO_MIN_US = 2000,
    RC_PATIENCE_MIN_US = 10000, /* who answers is a process, and may wait for a processor as long, */
    RC_PATIENCE_US = 500000,    /* or on a busy machine as long, if a program's time-out allows it: */
    RC_PATIENCE_TIMES = 4,      /* it may be detected up to this many times as late (9.7.6) */
    RC_LATE_US = 500,           /* whoever calls that late did not see either what has arrived */
    RC_SMALL = 128,             /* a window up to this that meets no queue is not what causes losses, */
    RC_SMALL_NEAR = 192,        /* nor is one up to this if a queue, usually of 10 ms, would be ... */
    RC_NEAR_US = 5000,          /* ... twice as long as a round trip, and seen at once: */
    RC_STEP = 8,                /* it grows by this part in a round trip, and shrinks by it when a packet is lost */
    RC_ASKS = 4,                /* acknowledgements that a window asks for, */
    RC_ASK_MIN = 16,            /* one for at least that many packets */
    RC_VAIN = 3,                /* after this many gaps a peer is taken for one that keeps nothing, */
    RC_VAIN_GAPS = 64,          /* and one gap of this many shows whether that was wrong */
};

/* What a request is to the transport. */
enum rc_kind {
    RC_MESSAGE, /* a Send or Write: its packets are acknowledged */
    RC_READ,    /* one packet, and a response of as many PSNs as it has packets */
    RC_ATOMIC,
};

/* When the acknowledgement of a message is asked for. */
enum rc_ask {
    RC_ASK_LATE, /* when several wait for it, or after a while */
    RC_ASK_LAST, /* if nothing is to be sent behind it */
    RC_ASK_ALWAYS,
};

struct rc_request {
    uint64_t psn;     /* position of its first packet */
    uint32_t packets; /* how many PSNs it takes */
    uint32_t length;  /* octets */
    uint32_t name;    /* the caller's */
    enum rc_kind kind;
    enum rc_ask ask;
};

/* Why nothing is sent any more. */
enum rc_end {
    RC_GOES_ON,
    RC_RETRY_EXCEEDED, /* no progress after all retries */
    RC_RNR_EXCEEDED,   /* the peer had no receive, after all retries */
    RC_NAK,            /* the peer refused a request for `reason` */
    RC_BAD_RESPONSE,   /* a response that no request asked for */
};

struct rc_requester_attr {
    uint32_t psn;        /* of the first packet */
    uint32_t mtu;        /* octets of payload of a packet */
    uint64_t timeout_us; /* until a packet is sent again; 0: never */
    uint8_t retries;     /* 0 to RC_RETRIES_MAX */
    uint8_t rnr_retries; /* 0 to RC_RNR_ENDLESS */
    uint32_t window;     /* packets in flight, at most; 0: RC_WINDOW_MAX */
};

/* The window, as TCP's cwnd and ssthresh (RFC 5681), in packets. */
struct rc_congestion {
    uint32_t window, threshold, partial;
    uint64_t recover; /* losses before this position are the same event */
};

struct rc_counters {
    uint64_t resent; /* packets sent again */
    uint64_t timeouts, naks, not_ready;
    uint64_t undone; /* resends after a time-out that an acknowledgement proved needless */
};

/* A peer that keeps what arrives behind a gap needs only what it lacks. Nothing says that it does but this: it
 * acknowledges packets that were sent before the lost one was sent again, and not since. */
struct rc_skip {
    bool keeps;    /* it did so */
    uint32_t vain; /* times in a row that it was sent what it lacked, and did not; then all gaps */
    bool due;      /* the packet at `una` is sent again alone, then come those from `to` on */
    uint64_t from; /* behind the packet that was sent again alone last, with all PSNs of a Read */
    uint64_t to;   /* it has what lies between, but what it names; 0: it is not known to have anything */
};

/* What a time-out changed, until it is known whether it was right. */
struct rc_before {
    uint64_t max; /* behind the last packet that had been sent; 0: there was none, or it was right */
    struct rc_congestion congestion;
};

struct rc_requester {
    struct rc_requester_attr attr;
    struct rc_request *ring; /* the caller's, a power of two of places */
    uint32_t mask;
    uint32_t head, tail; /* free-running; requests from `tail` on are not acknowledged */
    uint32_t cursor;     /* the request that `next` lies in, or `head` */
    uint64_t una;        /* position of the oldest packet that is not acknowledged */
    uint64_t next;       /* of the packet to be sent next */
    uint64_t max;        /* behind the last one that was sent */
    uint64_t end;        /* behind the last request */
    uint64_t asked;      /* behind the last packet that asked for an acknowledgement, or where it went back to */
    uint64_t gap;        /* went back to this position, and nothing was acknowledged since; 0: did not */
    struct rc_congestion congestion;
    struct rc_skip skip;
    uint32_t tries, rnr_tries; /* in a row */
    uint64_t deadline_us;      /* of the oldest packet, by attr; RC_NEVER: nothing is in flight */
    uint64_t resend_us;        /* the same by the round trip: sends again, but is no retry */
    struct rc_rtt rtt;
    struct rc_marks marks;
    uint32_t backoff; /* resends in a row: each doubles the next interval */
    bool is_late;     /* the resend that is due was put off once */
    bool is_silent;   /* the last packet that left asked for no acknowledgement, and nothing waited behind it */
    bool asks;        /* the next packet of a message is to ask for one */
    struct rc_before before;
    uint64_t wait_us; /* the peer is not ready before that; 0: it is */
    enum rc_end why;
    enum bth_nak reason; /* with RC_NAK */
    uint64_t blamed;     /* position of the packet that `why` is about */
    struct rc_counters counters;
};

/* A packet to send. */
struct rc_outgoing {
    uint32_t name;           /* of its request */
    uint32_t offset, length; /* which octets of the request; of a Read, those that are still asked for */
    uint64_t position;       /* its PSN is psn_wire() of it */
    bool first, last;        /* packet of its message */
    bool ask;                /* set the acknowledge-request bit */
};

/* `slots` is a power of two, at least as many as there can be requests that were not acknowledged. */
void rc_requester_init(struct rc_requester *q, const struct rc_requester_attr *attr, struct rc_request *ring,
                       uint32_t slots);

/* Behind the last packet that may leave now, if the peer keeps packets behind a gap: for rc_window_end() alone. */
uint64_t rc_window_end_behind(const struct rc_requester *q);

/* Behind the last packet that may leave now. */
static inline uint64_t rc_window_end(const struct rc_requester *q)
{
    return q->skip.to ? rc_window_end_behind(q) : q->una + q->congestion.window;
}

/* Could the packet at `next` leave now, if there is one? */
static inline bool rc_requester_may_send(const struct rc_requester *q, uint64_t now_us)
{
    return q->why == RC_GOES_ON && now_us >= q->wait_us && q->next < rc_window_end(q);
}

/* Is there a place for one more request, and would its first packet leave now? Then take it from the send queue. */
static inline bool rc_requester_wants(const struct rc_requester *q, uint64_t now_us)
{
    return q->next == q->end && q->head - q->tail <= q->mask && rc_requester_may_send(q, now_us);
}

/* Adds a request. Returns the position behind it: it is acknowledged when `una` has come there. */
uint64_t rc_requester_add(struct rc_requester *q, enum rc_kind kind, uint32_t length, uint32_t name, enum rc_ask ask);

/* Could a packet leave of the requests that were added? */
static inline bool rc_requester_has_output(const struct rc_requester *q, uint64_t now_us)
{
    return q->next != q->end && rc_requester_may_send(q, now_us);
}

/* Is the next packet of a request without octets? There is one to send. */
bool rc_requester_next_is_empty(const struct rc_requester *q);

/* Takes the next packet that may be sent. Returns false if none may now. */
bool rc_requester_next(struct rc_requester *q, struct rc_outgoing *out, uint64_t now_us);

/* How many packets may follow in the same message, at most `most`, all full, none the message's last, and none that
 * asks for an acknowledgement? *out describes the first; its length is that of all. rc_requester_took_train() then
 * takes them. */
uint32_t rc_requester_train(const struct rc_requester *q, uint32_t most, struct rc_outgoing *out, uint64_t now_us);
void rc_requester_took_train(struct rc_requester *q, uint32_t packets, uint64_t now_us);

/* An acknowledgement is wanted soon: if the last packet asked for none, it is sent again, and does. */
void rc_requester_ask(struct rc_requester *q);

/* How many requests are under way without that one is? */
uint32_t rc_requester_unasked(const struct rc_requester *q);

/* An acknowledgement arrived. */
void rc_requester_acknowledged(struct rc_requester *q, uint32_t psn, uint8_t syndrome, uint64_t now_us);

/* A Read Response or Atomic Acknowledge arrived. Returns true if it is the next one of the oldest request that waits
 * for one: *offset says where its octets belong, and rc_requester_took() has to follow when they are there. */
bool rc_requester_expects(struct rc_requester *q, const struct bth *b, uint32_t *offset, uint64_t now_us);
void rc_requester_took(struct rc_requester *q, uint64_t now_us);

/* On an unreliable connection: what has left is done. */
void rc_requester_left(struct rc_requester *q, uint64_t now_us);

/* On an unreliable connection: the caller has given up all requests. What had not been sent takes no PSNs. */
void rc_requester_forget(struct rc_requester *q, uint64_t now_us);

/* Which request is `blamed` a packet of? Returns false if it is acknowledged already. */
bool rc_requester_blamed(const struct rc_requester *q, uint32_t *name);

/* Returns when rc_requester_tick() is due, or RC_NEVER. */
static inline uint64_t rc_requester_deadline(const struct rc_requester *q)
{
    uint64_t at = q->resend_us < q->deadline_us ? q->resend_us : q->deadline_us;

    return q->wait_us && q->wait_us < at ? q->wait_us : at;
}
void rc_requester_tick(struct rc_requester *q, uint64_t now_us);

/* Returns the microseconds of a local ACK time-out (0: never) with this code, 0 to 31. */
uint64_t rc_timeout_us(unsigned code);

/* The same for packets of a queue pair: up to RC_PATIENCE_TIMES as long while that is at most RC_PATIENCE_US, and
 * RC_PATIENCE_MIN_US at least, as adapters and kernels have a least time, too. */
uint64_t rc_patience_us(unsigned code);

/* The same of a receiver that is not ready. */
uint64_t rc_rnr_us(unsigned code);

/* How long an acknowledgement may take, as the round trips say. */
uint64_t rc_resend_us(const struct rc_requester *q);

/* Asking, for rc_requester.c: behind the packet that asks if none before it does; does the packet before `next` ask,
 * the last one of its request or not? */
uint64_t rc_ask_next(const struct rc_requester *q);
bool rc_ask(struct rc_requester *q, const struct rc_request *r, bool last, uint64_t now_us);

/* The window, for rc_requester.c: packets were acknowledged, before `una` moves; one was lost, and the window shrinks
 * to `to` packets, or to what is left after a NAK (0). */
void rc_window_grow(struct rc_requester *q, uint64_t packets);
void rc_window_shrink(struct rc_requester *q, uint32_t to);

#endif
