/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* life.h - the life of a connection over any transport: its states, the news for the application, and its time
 * limits. */
#ifndef RDDP_CONN_LIFE_H
#define RDDP_CONN_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "conn/out.h"
#include "core/qp.h"
#include "wire/wire.h"

enum conn_state {
    CONN_WAIT_REQUEST, /* passive: the peer's request is incomplete */
    CONN_WAIT_ANSWER,  /* passive: the application decides about the request; nothing is read meanwhile */
    CONN_WAIT_REPLY,   /* active: our request is being sent or was sent */
    CONN_READY,        /* segments flow both ways */
    CONN_DRAINING,    /* closing: requests posted before are still sent, and Reads received before are still answered */
    CONN_TERMINATING, /* our Terminate is being sent; octets received are dropped */
    CONN_ENDING,      /* nothing more to send: we end our stream and wait for the end of the peer's */
    CONN_OVER,        /* the host may close the link */
};

/* What the host must report to the application. Several bits may be set at once. */
enum conn_news {
    CONN_NEWS_REQUEST = 1 << 0, /* passive: the peer's request can be read */
    CONN_NEWS_ESTABLISHED = 1 << 1,
    CONN_NEWS_REJECTED = 1 << 2, /* active: the peer rejected the request; its reply can be read */
    CONN_NEWS_FAILED = 1 << 3,   /* it was never established; life->note says why */
    CONN_NEWS_DISCONNECTED = 1 << 4,
};

/* Time limits in microseconds. */
struct life_limits {
    uint64_t startup_us, stall_us, close_us; /* stall_us 0: no limit */
};

/* A close may last at most this many times close_us in all, even if octets still move. */
enum { LIFE_CLOSES = 60 };

/* How long messages still wait for receives when their peer is known to be gone. */
enum { LIFE_GONE_US = 500000 };

/* The interval between two checks whether others have left a region. */
enum { LIFE_RESUME_US = 50 };

struct life {
    enum conn_state state;
    bool active, established;
    bool fin_sent, peer_ended;
    unsigned news; /* enum conn_news: the host clears what it has reported */
    struct qp *qp; /* NULL until accepted, and again after life_detach(); the application owns it */
    /* The slot in which the host is registered as a reader of the regions while it drives the connection; NULL: it does
     * not register. */
    struct epoch_reader *reader;
    struct out *out;        /* lent by the host while there is something to send, taken back when it is empty */
    struct fault_note note; /* why the connection ended; FAULT_NONE after a good end */

    struct seg term; /* our Terminate, while `term_due` */
    uint8_t term_buffer[WIRE_TERM_MAX];
    bool term_due;
    uint32_t peer_term; /* code of the peer's Terminate, 0xLTCC; 0: none */
    const char *peer_term_text;

    uint32_t last_answer; /* CONN_DRAINING: qp->answers.head when it began; later Reads do not delay the end */
    unsigned unfinished;  /* bit N: a message of enum seg_op N from the peer is incomplete */

    struct life_limits limits;
    uint64_t startup_deadline_us, stall_deadline_us, close_deadline_us; /* 0: none */
    uint64_t message_deadline_us[SEG_OPS];                              /* for the incomplete messages */
    uint64_t end_deadline_us;                                           /* the limit by LIFE_CLOSES */
    uint64_t receive_deadline_us; /* until when the message in front waits for a receive; 0: none waits */
    uint32_t receives_claimed;    /* how many receives had been claimed when it began to wait */
    bool receive_is_late;         /* it was to wait no longer than until now */
    bool peer_is_gone;            /* its end was noticed while a message waited for a receive */
    uint64_t resume_us;           /* time of the next life_resume(); 0: none */
    bool awaits_spans; /* it waits for spans that others may hold: the host makes them copy (out_own_invalid()) */
};

void life_init(struct life *l, bool active, const struct life_limits *limits, uint64_t now_us);

static inline bool life_in_startup(const struct life *l)
{
    return l->state <= CONN_WAIT_REPLY;
}

/* Do messages still flow both ways? */
static inline bool life_is_open(const struct life *l)
{
    return l->state == CONN_READY || l->state == CONN_DRAINING;
}

/* The peer's request is complete: the application must be asked. */
void life_requested(struct life *l);

/* life_ready(): messages may flow from now on. life_established(): report it to the application. */
void life_ready(struct life *l);
void life_established(struct life *l);

/* The request was rejected: by the peer (active side) or by us (passive side). Sets FAULT_REJECTED. */
void life_rejected(struct life *l, uint64_t now_us);

/* Have all posted requests completed, and all the peer's Reads that came before life_close() been answered? */
bool life_is_drained(const struct life *l);

/* Has this end still something to send, or to wait for before the link may go? Not while the connection starts, nor for
 * what the peer may send yet; a request whose answer is awaited counts. */
bool life_owes(const struct life *l);

/* Ends the connection for `note`. `term_due`: life->term holds a Terminate to send. */
void life_fail(struct life *l, const struct fault_note *note, bool term_due, uint64_t now_us);

/* The peer sent a Terminate. */
void life_terminated(struct life *l, const struct wire_blame *blame, uint64_t now_us);

/* The link is gone or no longer wanted: the connection is over at once. */
void life_lost(struct life *l, enum fault fault);

/* The peer ended its stream; `cut`: in the middle of a unit. Sets FAULT_CUT then, and also if a message or an answer is
 * incomplete, or the connection was never established. */
void life_peer_ended(struct life *l, bool cut, uint64_t now_us);

/* We have ended our stream. */
void life_fin(struct life *l, uint64_t now_us);

/* Closes gracefully (see CONN_DRAINING). */
void life_close(struct life *l, uint64_t now_us);

/* The queue pair is being destroyed: the connection ends without it. */
void life_detach(struct life *l, uint64_t now_us);

/* The peer's message in front finds no receive: may it wait? If not, it has its fault. */
bool life_may_await_receive(struct life *l, uint64_t now_us);

/* Does a message wait for a receive? */
static inline bool life_awaits_receive(const struct life *l)
{
    return l->receive_deadline_us != 0 || l->receive_is_late;
}

/* Must it wait on? Otherwise present it again: a receive was posted, or the time is over. Notes qp->waiter. */
bool life_must_await_receive(const struct life *l);

/* It waits no longer. */
static inline void life_received(struct life *l)
{
    l->receive_deadline_us = 0;
    l->receive_is_late = false;
}

/* The peer has ended its stream or is lost, and a message of it waits for a receive: it waits LIFE_GONE_US at most, and
 * so does each behind it. */
void life_peer_gone(struct life *l, uint64_t now_us);

/* Octets were sent: restarts the time limit of a close. */
void life_sent(struct life *l, uint64_t now_us);

/* A unit of the peer is incomplete, or no unit is any more. Starts or stops the stall limit. */
void life_stall(struct life *l, bool unfinished, uint64_t now_us);

/* For life_message() alone. */
void life_unfinished(struct life *l, enum seg_op op, bool is_last, uint64_t now_us);

/* A unit of the peer's message of kind `op` arrived; is it the last one? The next unit must follow within stall_us. An
 * incomplete unit is limited by life_stall() instead. */
static inline void life_message(struct life *l, enum seg_op op, bool is_last, uint64_t now_us)
{
    if (!is_last || l->unfinished)
        life_unfinished(l, op, is_last, now_us);
}

/* Stops the peer's time limits while we do not read, and restarts them afterwards. */
void life_listen(struct life *l, bool listens, uint64_t now_us);

/* Units arrived, but none of a message that should have continued. Returns true if a limit has passed. */
bool life_is_late(struct life *l, uint64_t now_us);

/* Leaves the epoch and enters the current one, so that this connection no longer keeps a region that was invalidated in
 * use: neither as a reader nor by spans of its own. */
void life_renew(struct life *l);

/* For life_resume() alone. */
enum fault life_resume_waiting(struct life *l, uint64_t now_us);

/* Lets the queue pair execute what sends nothing, and deliver what waited until a region was out of use. Returns
 * FAULT_NONE or the fault found in its stream; the queue pair may have failed by itself. */
static inline enum fault life_resume(struct life *l, uint64_t now_us)
{
    l->resume_us = 0;
    l->awaits_spans = false;
    return l->qp && (qp_waits(l->qp) || qp_has_local(l->qp)) ? life_resume_waiting(l, now_us) : FAULT_NONE;
}

/* Must we delay everything further from the peer? The message that took a region away has to be delivered first. */
static inline bool life_is_invalidating(const struct life *l)
{
    return l->qp && l->qp->invalidating;
}

/* Returns the latest time at which life_tick() must be called, or UINT64_MAX. */
uint64_t life_deadline(const struct life *l);

/* Returns true if the peer exceeded a time limit and must be told. Ends the connection itself where it cannot be
 * told. */
bool life_tick(struct life *l, uint64_t now_us);

#endif
