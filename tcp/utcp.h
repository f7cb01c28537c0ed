/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* utcp.h - one TCP connection (RFC 9293) without sockets, clock or heap: packets and the time go in, packets come out.
 *
 * Time is given by the host, in microseconds, and never goes back. After every event - utcp_input(), utcp_timeout(), a
 * change by the user - the host calls utcp_output() until it returns false, looks at the state and the positions below,
 * and sets a timer for utcp_deadline().
 *
 * A position counts stream octets from 0. The engine stores no payload: what is to be sent stays with the user until it
 * is acknowledged, and what arrives is given to the user at once, in any order. One thread at a time may use a
 * connection. */
#ifndef RDDP_TCP_UTCP_H
#define RDDP_TCP_UTCP_H

#include <stdbool.h>
#include <stdint.h>

#include "tcp/scoreboard.h"
#include "tcp/cubic.h"
#include "tcp/ooo_queue.h"
#include "tcp/packet.h"
#include "tcp/rack.h"
#include "tcp/rtt.h"

#define UTCP_NEVER UINT64_MAX

enum {
    UTCP_OPTION_SPACE = UTCP_OPTIONS_MAX - 12, /* octets left for options of a data segment beside timestamps */
    UTCP_WINDOW_MAX = 1 << 30,                 /* RFC 7323 2.3 */
    UTCP_MTU_V4_MIN = 576,                     /* a path that claims less is not believed (RFC 1191 3) */
    UTCP_MTU_V6_MIN = 1280,
    UTCP_CHALLENGES = 10, /* challenge ACKs per second (RFC 5961 7) */
};

enum utcp_state {
    UTCP_CLOSED,       /* over; `error` says why */
    UTCP_SYN_SENT,     /* our SYN was sent */
    UTCP_SYN_RECEIVED, /* both sent a SYN at once */
    UTCP_ESTABLISHED,  /* both may send */
    UTCP_FIN_WAIT_1,   /* our FIN was sent and not acknowledged */
    UTCP_FIN_WAIT_2,   /* our FIN is acknowledged; the peer may still send */
    UTCP_CLOSE_WAIT,   /* the peer has finished; we may still send */
    UTCP_CLOSING,      /* both FINs were sent, ours is not acknowledged */
    UTCP_LAST_ACK,     /* the peer had finished first; our FIN was sent */
    UTCP_TIME_WAIT,    /* everything is acknowledged; waiting for old packets to expire */
};

/* Part of the stream to be sent: its octets, and an option whose length is a multiple of 4. */
struct utcp_piece {
    struct span span[UTCP_SPANS];
    uint32_t spans;
    uint8_t option[UTCP_OPTION_SPACE];
    uint32_t option_length;
};

/* Octets that arrived for the first time. `early`: octets before them are missing. All pointers are valid until the
 * callback returns. */
struct utcp_arrival {
    uint64_t position;
    const uint8_t *data;
    uint32_t length;
    uint64_t segment_position; /* the whole segment that contained them */
    const uint8_t *segment;
    uint32_t segment_length;
    const uint8_t *option; /* as in utcp_options.extra */
    uint8_t option_length, option_at;
    bool early;
};

/* What the user did with an arrival. The first `taken` octets are accepted for good; `kept` of them occupy the window
 * until utcp_release(). The rest is refused, as if it had not arrived. */
struct utcp_verdict {
    uint32_t taken, kept;
};

struct utcp_user {
    /* Returns the length of the segment at `position`: 1 to `ready` octets, at most `capacity` together with its
     * option. 0: nothing can be sent in so few octets. */
    uint32_t (*cut)(void *user, uint64_t position, uint32_t ready, uint32_t capacity);
    /* Provides the octets [position, position + length) and their option. Called again for retransmissions, and must
     * then return the same. */
    void (*fetch)(void *user, uint64_t position, uint32_t length, struct utcp_piece *piece);
    /* Processes octets that arrived. */
    struct utcp_verdict (*arrived)(void *user, const struct utcp_arrival *a);
};

struct utcp_attr {
    uint32_t window;     /* octets that the user may keep; the window offered is this less what is kept */
    uint32_t window_max; /* `window` grows up to here with what the user takes; less: it stays as it is */
    uint32_t mtu;
    uint32_t isn, stamp_offset; /* random (RFC 6528, RFC 7323 7.1) */
    uint8_t option_kind;        /* kind of an option that is offered in the SYN and looked for afterwards; 0: none */
    bool no_sack, no_stamps, no_scale, no_ecn;
    bool partial; /* the device completes checksums */
    uint8_t hops; /* time to live of the packets; 0: the default */
    uint32_t syn_retries;
    uint64_t give_up_us;                 /* time without any acknowledgement until -ETIMEDOUT */
    uint64_t keep_idle_us, keep_each_us; /* keep-alive; keep_idle_us 0: none */
    uint32_t keep_probes;
    uint64_t time_wait_us;
};

/* Numbers count from the SYN, which is 0; the first octet is 1. */
struct utcp_tx {
    uint64_t una, next, max; /* max: the highest ever sent; next is below it after the path became narrower */
    uint64_t end;            /* behind the last octet to send */
    bool finish;             /* a FIN follows `end` */
    uint64_t window, window_max, wl1;
    uint8_t scale;
    uint32_t mss, peer_mss; /* mss: with options; peer_mss: from the SYN */
    uint64_t last_us;       /* when data was last sent */
};

/* How much the user takes in a round trip. */
struct utcp_taking {
    uint64_t begin_us, from; /* from: what was taken by then */
};

struct utcp_rx {
    uint32_t irs;
    /* edge: right edge of the window that we promised; fin: number of the FIN + 1, 0: not received. */
    uint64_t next, edge, fin;
    uint64_t acked;   /* the value of `next` in our last acknowledgement */
    uint64_t kept;    /* octets in order that were not released */
    uint64_t limit;   /* the window never extends beyond this */
    uint64_t adopted; /* numbers below this were acknowledged by another TCP: copies of them are not answered */
    uint8_t scale;
    uint32_t segment_max; /* the longest payload received; two of them make an acknowledgement due */
    uint64_t last_us;
    struct utcp_block dsack; /* octets received twice; from == to: none */
    struct utcp_taking taking;
};

struct utcp_stamps {
    bool on;
    uint32_t recent, last; /* recent: what we echo; last: the last that we sent */
    uint64_t recent_us;
};

struct utcp_tlp {
    uint64_t end;    /* of the probe in flight; 0: none */
    bool is_retrans; /* the probe repeated old octets */
    bool sampled;    /* a round-trip time was measured since the last probe */
    bool due;
};

struct utcp_recovery {
    bool on, timed_out; /* on: until `point` is acknowledged */
    uint64_t point;
    bool first; /* one segment may be sent regardless of the window */
    struct utcp_prr prr;
    uint64_t limited; /* the window held back what follows this number */
    uint32_t duplicates;
};

/* Congestion that routers signal by a mark instead of a loss (RFC 3168). */
struct utcp_marks {
    bool on;        /* both ends take part */
    bool echo;      /* a mark has come: tell so until the peer says that it has slowed down */
    bool say;       /* we have slowed down: the next new octets say so */
    uint64_t point; /* marks of what was sent before this number have had their effect */
};

/* The last time-out, as long as it may prove wrong. */
struct utcp_undo {
    bool on;
    uint64_t at_us; /* when something was first sent again; 0: not yet */
    struct utcp_cubic cubic;
};

/* What is known of the path's MTU, beside the one in use. */
struct utcp_path {
    uint32_t most;    /* that of the first hop */
    uint32_t bad;     /* a probe of this size was lost; 0: none */
    uint32_t size;    /* of the probe in flight, behind which nothing new is sent; 0: none */
    uint64_t end;     /* the number behind it */
    uint64_t next_us; /* when to probe again */
    bool waits;       /* nothing new is sent until the windows have space for the probe */
};

struct utcp_timers {
    uint64_t rto_us, probe_us, reorder_us, persist_us, ack_us, keep_us, over_us, path_us;
    uint64_t base_us; /* of a time-out that was shortened because the peer has to answer at once; 0: none */
    uint32_t rtos, persists, keeps, syns;
    uint64_t stalled_us; /* since when the peer owes an answer, while we ran; UTCP_NEVER: it owes none */
};

/* What must be sent apart from data. */
struct utcp_due {
    bool syn, ack, reset, probe, keep;
    uint32_t reset_seq;
    uint32_t unacked; /* segments received since the last acknowledgement */
    uint32_t prompt;  /* segments to come that are acknowledged at once */
    uint32_t challenges;
    uint64_t challenge_us;
};

struct utcp_count {
    uint64_t segments_in, segments_out, octets_in, octets_out;
    uint64_t sent_again, timeouts, probes, duplicates, early_octets, refused, paws, challenges, out_of_window, bad_acks;
    uint64_t undone; /* time-outs that were wrong */
    uint64_t black_holes;
    uint64_t marks_in, marks_answered; /* marks that came; times that we slowed down for those of the peer */
    uint64_t kept_max;
};

struct utcp {
    const struct utcp_user *user;
    void *of;          /* argument of the user's callbacks */
    struct utcp *next; /* in the same bucket of the host */
    struct utcp_name local, remote;
    struct utcp_attr attr;
    enum utcp_state state;
    int error;      /* 0 or a negative errno, once it is over */
    bool sack;      /* both ends permitted it */
    bool option_on; /* both ends offered the option */
    struct utcp_tx tx;
    struct utcp_rx rx;
    struct utcp_stamps stamps;
    struct utcp_rtt rtt;
    struct utcp_rack rack;
    struct utcp_tlp tlp;
    struct utcp_cubic cubic;
    struct utcp_recovery recovery;
    struct utcp_undo undo;
    struct utcp_path path;
    struct utcp_marks marks;
    struct utcp_scoreboard scoreboard;
    struct utcp_ooo ooo;
    struct utcp_timers timer;
    struct utcp_due due;
    struct utcp_count count;
};

/* Memory of a connection; it stays the caller's and must outlive the connection. */
struct utcp_buffers {
    struct utcp_sent *sent;
    uint32_t sents; /* a power of two: segments in flight */
    struct utcp_ooo_range *ooo;
    uint32_t helds; /* ranges of octets received behind gaps */
};

void utcp_attr_default(struct utcp_attr *attr);

/* Begin a connection. The next utcp_output() returns the first SYN. */
void utcp_open(struct utcp *t, const struct utcp_attr *attr, const struct utcp_buffers *buffers,
               const struct utcp_user *user, void *of);
void utcp_connect(struct utcp *t, const struct utcp_name *local, const struct utcp_name *remote);

/* A connection that was established elsewhere: what both SYNs said, and where the streams are. Positions count from
 * here. */
struct utcp_handshake {
    struct utcp_name local, remote;
    uint32_t send_next, receive_next;
    uint32_t window;          /* the peer's, in octets */
    uint32_t mss;             /* the peer's */
    uint8_t scale, own_scale; /* of the peer's window and of ours */
    bool sack, stamps, option, ecn;
    uint32_t stamp_recent;
    bool stamp_known;
    uint32_t edge; /* octets from receive_next on that we have promised to accept */
};
void utcp_adopt(struct utcp *t, const struct utcp_handshake *h, uint64_t now_us);

/* Then, if another TCP had received octets before: the first `octets` positions are there and kept by the user. Until
 * utcp_settle() segments within them are taken for copies of what was acknowledged, and not answered. `rtt_us`: a
 * measured round trip, or 0. */
void utcp_adopt_received(struct utcp *t, uint32_t octets, uint64_t rtt_us, uint64_t now_us);
void utcp_settle(struct utcp *t);

/* Processes a received segment of this connection. */
void utcp_input(struct utcp *t, const struct utcp_segment *s, uint64_t now_us);
/* A packet of ours was too big for the path. */
void utcp_too_big(struct utcp *t, uint32_t seq, uint32_t mtu);
/* Writes the next packet that must be sent now. Returns false if there is none. */
bool utcp_output(struct utcp *t, struct utcp_packet *p, uint64_t now_us);
/* Must the host send before it processes more input? Either an acknowledgement cannot report more gaps, or it would be
 * the only one for more segments than its loss may concern without a time-out of the peer. */
bool utcp_urgent(const struct utcp *t);
uint64_t utcp_deadline(const struct utcp *t);
void utcp_timeout(struct utcp *t, uint64_t now_us);

/* All octets before `position` may be sent. */
void utcp_send(struct utcp *t, uint64_t position);
void utcp_finish(struct utcp *t); /* nothing follows */
void utcp_abort(struct utcp *t);  /* sends a reset and ends the connection */
/* The user keeps `octets` octets from `position` on that it did not keep when they arrived. */
void utcp_keep(struct utcp *t, uint64_t position, uint64_t octets);
/* The user no longer keeps `octets` of the octets that arrived in order. */
void utcp_release(struct utcp *t, uint64_t octets);
/* Nothing beyond this position is accepted. Initially UINT64_MAX. */
void utcp_limit(struct utcp *t, uint64_t position);
/* The MTU of the first hop, from now on; and what a path that was wider takes for the time being. */
void utcp_set_mtu(struct utcp *t, uint32_t mtu);
void utcp_path_narrowed(struct utcp *t, uint32_t mtu);

uint64_t utcp_acked(const struct utcp *t);    /* everything before has arrived at the peer */
uint64_t utcp_received(const struct utcp *t); /* everything before has arrived here */
uint64_t utcp_highest(const struct utcp *t);  /* nothing from here on has arrived */
uint64_t utcp_unsent(const struct utcp *t);   /* octets that may be sent and were not */

/* Did all octets of [from, to), which lies behind a gap, arrive? */
bool utcp_has(const struct utcp *t, uint64_t from, uint64_t to);

bool utcp_ended(const struct utcp *t); /* the peer's FIN has arrived, and everything before it */
/* Returns the longest payload of a segment with an option of `option_length` octets. */
uint32_t utcp_emss(const struct utcp *t, uint32_t option_length);

#endif
