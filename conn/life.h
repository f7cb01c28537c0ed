/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* life.h - how a connection ends, whatever carries it: its state, what is told of it, and how long it may take. */
#ifndef RDDP_CONN_LIFE_H
#define RDDP_CONN_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "conn/out.h"
#include "core/qp.h"
#include "wire/wire.h"

enum conn_state {
    CONN_WAIT_REQUEST, /* passive: the peer's request has not all arrived */
    CONN_WAIT_ANSWER,  /* passive: the request is with the application; nothing is read meanwhile */
    CONN_WAIT_REPLY,   /* active: our request is out, or on its way */
    CONN_READY,        /* segments both ways */
    CONN_DRAINING,     /* asked to close: what was posted still leaves and is answered */
    CONN_TERMINATING,  /* our Terminate leaves; whatever arrives is dropped */
    CONN_ENDING,       /* nothing more to send: our end of the stream, then we wait for the peer's */
    CONN_OVER,         /* the host may close */
};

/* What the host has to tell the application; more than one may have come up since it looked. */
enum conn_news {
    CONN_NEWS_REQUEST = 1 << 0, /* passive: the peer's request is there to be read */
    CONN_NEWS_ESTABLISHED = 1 << 1,
    CONN_NEWS_REJECTED = 1 << 2, /* the peer's reply is there to be read */
    CONN_NEWS_FAILED = 1 << 3,   /* it never was established: life->note */
    CONN_NEWS_DISCONNECTED = 1 << 4,
};

/* How long each may take. */
struct life_limits {
    uint64_t startup_us, stall_us, close_us; /* stall 0: for ever */
};

/* A close may last that many times close_us in all, whatever still moves. */
enum { LIFE_CLOSES = 60 };

/* Between two looks whether others have left a region. */
enum { LIFE_RESUME_US = 50 };

struct life {
    enum conn_state state;
    bool active, established;
    bool fin_sent, peer_ended;
    unsigned news;       /* enum conn_news: the host clears what it has told */
    struct qp *qp;       /* NULL until accepted, and again when its owner has gone */
    struct visit *visit; /* where the host has said that it is inside, for as long as it is; NULL: nobody else looks */
    struct out *out;     /* the host lends one while there is something to send, and takes it back when it is empty */
    struct fault_note note; /* why it is over, if not by a good end */

    struct seg term; /* our Terminate, while `term_due` */
    uint8_t term_room[WIRE_TERM_MAX];
    bool term_due;
    uint32_t peer_term; /* the peer's Terminate code, 0xLTCC, or 0 */
    const char *peer_term_text;

    uint32_t last_answer; /* CONN_DRAINING: qp->answer_head when it began; later Reads hold nothing up */
    unsigned unfinished;  /* kinds of message of the peer, a bit for each enum seg_op, of which more is to come */

    struct life_limits limits;
    uint64_t startup_deadline_us, stall_deadline_us, close_deadline_us; /* 0: none */
    uint64_t message_deadline_us[SEG_OPS];                              /* of the unfinished ones */
    uint64_t end_deadline_us;                                           /* see LIFE_CLOSES */
    uint64_t resume_us;                                                 /* the next look of life_resume(); 0: none */
};

void life_init(struct life *l, bool active, const struct life_limits *limits, uint64_t now_us);

static inline bool life_in_startup(const struct life *l)
{
    return l->state <= CONN_WAIT_REPLY;
}

/* Messages go both ways, or still do. */
static inline bool life_is_open(const struct life *l)
{
    return l->state == CONN_READY || l->state == CONN_DRAINING;
}

/* The peer's request is there: the application is asked. */
void life_requested(struct life *l);

/* Messages go both ways from now on. */
void life_ready(struct life *l);
void life_established(struct life *l);

/* The active side was not wanted, or the passive side said so: FAULT_REJECTED. */
void life_rejected(struct life *l, uint64_t now_us);

/* Posted requests have been answered, and so have the peer's Reads, but for those that came after life_close(). */
bool life_is_drained(const struct life *l);

/* Ends for `note`. `term_due`: life->term is there to be sent. */
void life_fail(struct life *l, const struct fault_note *note, bool term_due, uint64_t now_us);

/* The peer has said a Terminate. */
void life_terminated(struct life *l, const struct wire_blame *blame, uint64_t now_us);

/* The link is gone, or is not wanted any more. */
void life_lost(struct life *l, enum fault fault);

/* The peer says no more; `cut`: in the middle of a unit. FAULT_CUT also if a message or an answer is missing. */
void life_peer_ended(struct life *l, bool cut, uint64_t now_us);

/* Our end of the stream has been said. */
void life_fin(struct life *l, uint64_t now_us);

/* Closes gracefully (see CONN_DRAINING). */
void life_close(struct life *l, uint64_t now_us);

/* The queue pair goes away: the connection ends by itself, without it. */
void life_detach(struct life *l, uint64_t now_us);

/* Octets have left: who closes has time again. */
void life_sent(struct life *l, uint64_t now_us);

/* A unit is unfinished, or is not any more. */
void life_stall(struct life *l, bool unfinished, uint64_t now_us);

/* A unit of the peer's message of kind `op` is there, and it is the last or not. The next has to follow within
 * stall_us; a unit that has begun has its own time for that. */
void life_message(struct life *l, enum seg_op op, bool is_last, uint64_t now_us);

/* For as long as we do not listen, the peer lets no time pass. */
void life_listen(struct life *l, bool listens, uint64_t now_us);

/* Units have come, but none of a message that should have gone on. */
bool life_is_late(struct life *l, uint64_t now_us);

/* The queue pair may tell what waited for others to leave a region: FAULT_NONE, or what is wrong with its stream. */
enum fault life_resume(struct life *l, uint64_t now_us);

/* Nothing more of the peer may be looked at until it has: what took the region away has to be told first. */
static inline bool life_is_withheld(const struct life *l)
{
    return l->qp && l->qp->withheld;
}

/* When life_tick() must be called at the latest, or UINT64_MAX. */
uint64_t life_deadline(const struct life *l);

/* True: the peer has let a time limit pass, and is to be told. */
bool life_tick(struct life *l, uint64_t now_us);

#endif
