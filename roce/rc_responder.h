/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_responder.h - the receiving half of a reliable or unreliable connection: which request is executed, which is a
 * duplicate, and what is answered. The caller executes, and has the memory. Time is an argument. */
#ifndef RDDP_ROCE_RC_RESPONDER_H
#define RDDP_ROCE_RC_RESPONDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "roce/bth.h"
#include "roce/rc_kept.h"

enum {
    RC_READS_MAX = 128,    /* Reads and atomics of the peer under way */
    RC_ACK_DELAY_US = 500, /* an acknowledgement that was not asked for waits at most this long: a timer costs more */
    RC_ACK_PACKETS = 256,  /* and for at most this many packets */
    RC_HOLD_PACKETS = 16,  /* one for more packets waits for no answer, */
    RC_HOLD_US = 1000,     /* one that waits for the application's answer waits at most this long */
    RC_SKIPS = 8,    /* packets that a peer sends no more, though it came back, show that it skips what was kept, */
    RC_SHOWN = 3,    /* at this many gaps, as it may have lost as many in a row once more; */
    RC_NO_SKIPS = 4, /* gaps in a row of which it sends that again show that it does not */
};

struct rc_responder_attr {
    uint32_t psn; /* of the first packet expected */
    uint32_t mtu;
    uint8_t rnr_timer;    /* code that an RNR NAK has */
    uint8_t rnr_tries;    /* how often the peer tries again; its waits then grow, see rnr_code(). 0: they do not */
    uint32_t reads;       /* Reads and atomics that the peer may have under way, up to RC_READS_MAX */
    bool unreliable;      /* of an unreliable connection: nothing is answered */
    struct rc_pool *pool; /* keeps what arrives behind a gap; NULL: that is dropped */
};

/* A Read or atomic of the peer that waits for its response, or asks for it again. */
struct rc_answer {
    uint64_t position; /* of the first packet of the response */
    uint32_t packets, sent;
    uint32_t msn;
    bool atomic;
    uint64_t original; /* of an atomic that was executed before */
    uint64_t address;  /* of a Read that comes again: its RETH */
    uint32_t r_key, length;
};

/* The result of an atomic, for its duplicates. */
struct rc_result {
    uint64_t position; /* 0: none */
    uint64_t original;
};

enum rc_verdict {
    RC_DROP,    /* there is nothing to do */
    RC_EXECUTE, /* execute the packet, then call rc_responder_executed(), _not_ready() or _refuse() */
    RC_DISCARD, /* of an unreliable connection: what arrived of the last message is void; then look again */
};

/* The peer's messages that found no receive. */
struct rc_not_ready {
    uint64_t count;
    uint64_t at;    /* the position of the last one, */
    uint32_t waits; /* and how often the peer has been told to wait there before */
};

/* How the peer comes back to a gap. */
struct rc_back {
    bool came;          /* it did, with the packet that was taken last */
    uint64_t reach;     /* since it came it has sent everything up to this position, or to the expected one */
    uint32_t shown;     /* gaps in a row at which it sent what was kept no more */
    bool skips;         /* it sends what is missing alone, and goes on behind what was kept: */
    uint64_t skipped;   /* this comes again if it does not; 0: it came */
    uint32_t unskipped; /* gaps in a row of which it came */
};

struct rc_responder {
    struct rc_responder_attr attr;
    uint64_t expected; /* position of the next packet to be executed */
    uint32_t msn;      /* messages executed */
    /* The message that is arriving. */
    bool inside;
    enum bth_op op;
    uint32_t got, total; /* octets so far; of a Write, all that its RETH announced */

    struct rc_kept kept; /* what arrived behind a gap */
    bool silent;         /* a NAK told the peer to come back to `expected`: nothing more until it does */
    struct rc_back back; /* how it does */
    bool refused;        /* a fatal NAK was given: nothing is executed any more */
    bool nak_due;        /* answer with `syndrome` at `nak` */
    uint8_t syndrome;
    uint64_t nak;
    bool ack_due; /* acknowledge now */
    struct rc_not_ready not_ready;
    uint64_t acked;            /* position behind the newest packet that was acknowledged */
    uint64_t ack_us;           /* acknowledge then at the latest; 0: nothing is owed */
    uint64_t held_us;          /* what is due waits until then for an answer that it can leave with; 0: it does not */
    struct rc_answer *answers; /* the caller's, a ring: those whose turn comes, in the order of their positions */
    struct rc_answer *again;   /* the same for duplicates */
    struct rc_result *results; /* the same: the newest results */
    uint32_t mask;             /* of the three rings, powers of two */
    uint32_t answer_head, answer_tail; /* free-running */
    uint32_t again_head, again_tail;
    uint32_t result_head;
    uint64_t duplicates, gaps; /* counters */
};

/* `buffer` has rc_responder_size() octets, zeroed and aligned for any type; it stays the caller's. */
size_t rc_responder_size(uint32_t reads);

/* Returns the most Reads and atomics that its rings have place for. */
static inline uint32_t rc_responder_places(const struct rc_responder *s)
{
    return s->mask + 1;
}
void rc_responder_init(struct rc_responder *s, const struct rc_responder_attr *attr, void *buffer);

/* A request arrived from the peer. After RC_EXECUTE, s->got is where its octets begin in their message. */
enum rc_verdict rc_responder_take(struct rc_responder *s, const struct bth *b, uint64_t now_us);

/* The next packet, if it was kept when it arrived, behind a gap that is closed now: to be taken, as one that arrives,
 * before the next call. Returns NULL if there is none. To be called after each packet that was taken, and executed if
 * it was to be. */
const struct bth *rc_responder_kept(struct rc_responder *s, uint64_t now_us);

/* Before the memory of the pool or of this responder goes. */
void rc_responder_fini(struct rc_responder *s);

/* What became of it: executed; there was no receive, and nothing was done; refused for good. */
void rc_responder_executed(struct rc_responder *s, const struct bth *b, uint64_t now_us);
void rc_responder_not_ready(struct rc_responder *s);

/* It cannot be executed yet: the peer sends it again by itself. */
void rc_responder_postpone(struct rc_responder *s);

/* On an unreliable connection, without a receive: its message is dropped. */
void rc_responder_skip(struct rc_responder *s);
void rc_responder_refuse(struct rc_responder *s, enum bth_nak reason);

/* The response that was due cannot be given: refuses its request. */
void rc_responder_refuse_answer(struct rc_responder *s, enum bth_nak reason);

/* The next response to send, or NULL. The caller sends its packet `sent`, then calls rc_responder_answered(), for an
 * atomic with the old value. Those of duplicates (*again) are executed from `address`, `r_key` and `length`, or from
 * `original`; the others by the caller's own queue. */
const struct rc_answer *rc_responder_answer(struct rc_responder *s, bool *again);
void rc_responder_answered(struct rc_responder *s, uint64_t original);

/* How many packets of this response may follow now, at most `most`, all full, and none its first or last? The caller
 * sends them, then calls rc_responder_answered_train(). */
uint32_t rc_responder_train(const struct rc_answer *a, uint32_t most);
void rc_responder_answered_train(struct rc_responder *s, uint32_t packets);

/* The answer cannot be given (again: the region has gone): drops it. */
void rc_responder_drop_again(struct rc_responder *s);

/* Takes the acknowledgement or NAK that is due: its PSN, MSN and syndrome. Returns false if none is. */
bool rc_responder_acknowledge(struct rc_responder *s, struct bth *b, uint64_t now_us);

static inline bool rc_responder_is_ack_due(const struct rc_responder *s, uint64_t now_us)
{
    return (s->ack_due && now_us >= s->held_us) || (s->ack_us && now_us >= s->ack_us);
}

static inline bool rc_responder_has_output(const struct rc_responder *s, uint64_t now_us)
{
    return s->nak_due || rc_responder_is_ack_due(s, now_us) || s->answer_tail != s->answer_head ||
           s->again_tail != s->again_head;
}

/* If the acknowledgement of a single packet is due, which is no duplicate, it waits until rc_responder_release(), or
 * for RC_HOLD_US. Returns whether it does; rc_responder_release() whether it did. */
bool rc_responder_withhold(struct rc_responder *s, uint64_t now_us);
bool rc_responder_release(struct rc_responder *s);

/* When an acknowledgement is due; UINT64_MAX: none is. */
static inline uint64_t rc_responder_deadline(const struct rc_responder *s)
{
    uint64_t at = s->ack_us ? s->ack_us : UINT64_MAX;

    return s->ack_due && s->held_us < at ? s->held_us : at;
}

#endif
