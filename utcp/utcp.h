/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* utcp.h - one TCP connection (RFC 9293) without sockets, clock or heap: packets and the time come in, packets go out.
 *
 * Time is the host's, in microseconds, and never goes back: a call has the time of the call before it or a later one.
 * After every stimulus - utcp_input(), utcp_timeout(), a change that the user made - the host calls utcp_output() until
 * it has nothing more, looks at the state and at the positions below, and sets a timer for utcp_deadline().
 *
 * A position is a count of stream octets, the first one's is 0. The engine owns no octet of payload: what is to be sent
 * lies with the user until it is acknowledged, and what has arrived is handed to him at once, in whatever order it
 * comes. */
#ifndef RDDP_UTCP_UTCP_H
#define RDDP_UTCP_UTCP_H

#include <stdbool.h>
#include <stdint.h>

#include "utcp/board.h"
#include "utcp/cubic.h"
#include "utcp/held.h"
#include "utcp/packet.h"
#include "utcp/rack.h"
#include "utcp/rtt.h"

#define UTCP_NEVER UINT64_MAX

enum {
    UTCP_OPTION_ROOM = UTCP_OPTIONS_MAX - 12, /* what timestamps leave to a data segment */
    UTCP_WINDOW_MAX = 1 << 30,                /* RFC 7323 2.3 */
    UTCP_MTU_V4_MIN = 576,                    /* a path that claims less is not believed (RFC 1191 3) */
    UTCP_MTU_V6_MIN = 1280,
    UTCP_CHALLENGES = 10, /* challenge ACKs a second (RFC 5961 7) */
};

enum utcp_state {
    UTCP_CLOSED,       /* over, or reset: `error` says why */
    UTCP_SYN_SENT,     /* our SYN is out */
    UTCP_SYN_RECEIVED, /* both sent a SYN at once */
    UTCP_ESTABLISHED,  /* both may send */
    UTCP_FIN_WAIT_1,   /* our FIN is out, not acknowledged */
    UTCP_FIN_WAIT_2,   /* ours is acknowledged, the peer may still send */
    UTCP_CLOSE_WAIT,   /* the peer has finished, we may still send */
    UTCP_CLOSING,      /* both FINs are out */
    UTCP_LAST_ACK,     /* the peer had finished, now ours is out */
    UTCP_TIME_WAIT,    /* all is acknowledged; old packets die */
};

/* Part of the stream as it is to be sent: its octets, and an option of a multiple of 4 octets. */
struct utcp_piece {
    struct span span[UTCP_SPANS];
    uint32_t spans;
    uint8_t option[UTCP_OPTION_ROOM];
    uint32_t option_length;
};

/* Octets that arrived and had not before. `early`: something before them is missing. All of it dies with the call. */
struct utcp_arrival {
    uint64_t position;
    const uint8_t *data;
    uint32_t length;
    uint64_t segment_position; /* the whole segment that brought them */
    const uint8_t *segment;
    uint32_t segment_length;
    const uint8_t *option; /* as in utcp_options.extra */
    uint8_t option_length, option_at;
    bool early;
};

/* What became of an arrival. The first `taken` octets have their place in the stream for good now, and `kept` of them
 * take room until utcp_release(). The rest is refused: it is as if it had never come. */
struct utcp_verdict {
    uint32_t taken, kept;
};

struct utcp_user {
    /* How long the segment from `position` is to be: 1 to `ready` octets, and with its option at most `capacity`. 0:
     * there is nothing that could be sent in so small a room. */
    uint32_t (*cut)(void *user, uint64_t position, uint32_t ready, uint32_t capacity);
    /* The octets [position, position + length) and their option. Called again when they have to be sent again; must
     * not say anything else then. */
    void (*fetch)(void *user, uint64_t position, uint32_t length, struct utcp_piece *piece);
    struct utcp_verdict (*arrived)(void *user, const struct utcp_arrival *a);
};

struct utcp_attr {
    uint32_t window; /* room for octets that the user keeps; the window is this less what is kept */
    uint32_t mtu;
    uint32_t isn, stamp_offset; /* by chance (RFC 6528, RFC 7323 7.1) */
    uint8_t option_kind;        /* offered in the SYN and looked for afterwards; 0: none */
    bool no_sack, no_stamps, no_scale;
    bool partial; /* the device finishes checksums */
    uint32_t syn_retries;
    uint64_t give_up_us;                 /* nothing acknowledged for so long: -ETIMEDOUT */
    uint64_t keep_idle_us, keep_each_us; /* keep-alive; idle 0: none */
    uint32_t keep_probes;
    uint64_t time_wait_us;
};

/* Numbers inside count from the SYN, which is 0; the first octet is 1. */
struct utcp_tx {
    uint64_t una, next, max; /* max: the highest ever sent; next is below it when the path became narrower */
    uint64_t end;            /* behind the last octet that waits to be sent */
    bool finish;             /* a FIN follows `end` */
    uint64_t window, window_max, wl1, wl2;
    uint8_t scale;
    uint32_t mss, peer_mss; /* with options; peer_mss as the SYN said */
    uint64_t last_us;       /* the last time that data was sent */
};

struct utcp_rx {
    uint32_t irs;
    uint64_t next, edge, fin; /* edge: right edge of the window that we promised; fin: its number + 1, 0: not seen */
    uint64_t acked;           /* next, when we sent an acknowledgement last */
    uint64_t kept;            /* in order, not released */
    uint64_t limit;           /* the window never goes behind this */
    uint8_t scale;
    uint32_t segment_max; /* the longest payload seen: what an acknowledgement every two segments means */
    uint64_t last_us;
    struct utcp_block dsack; /* received twice; from == to: nothing */
};

struct utcp_stamps {
    bool on;
    uint32_t recent, last; /* what we echo; the last that we sent */
    uint64_t recent_us;
};

struct utcp_tlp {
    uint64_t end; /* of the probe that is out, 0: none */
    bool again;   /* the probe repeats what had been sent */
    bool sampled; /* a round trip was measured since the last one */
    bool due;
};

struct utcp_recovery {
    bool on, timed_out; /* on: until `point` is acknowledged */
    uint64_t point;
    bool first; /* one segment leaves whatever the window says */
    struct utcp_prr prr;
    uint64_t limited; /* the window held back what follows this number */
    uint32_t duplicates;
};

struct utcp_timers {
    uint64_t rto_us, probe_us, reorder_us, persist_us, ack_us, keep_us, over_us;
    uint32_t rtos, persists, keeps, syns;
    uint64_t stalled_us; /* when what is not acknowledged began to wait */
};

/* What is to be sent apart from data. */
struct utcp_due {
    bool syn, ack, reset, probe, keep;
    uint32_t reset_seq;
    uint32_t unsaid; /* segments since the last acknowledgement */
    uint32_t prompt; /* segments to come that are acknowledged without delay */
    uint32_t challenges;
    uint64_t challenge_us;
};

struct utcp_count {
    uint64_t segments_in, segments_out, octets_in, octets_out;
    uint64_t sent_again, timeouts, probes, duplicates, early_octets, refused, paws, challenges, out_of_window, bad_acks;
    uint64_t kept_max;
};

struct utcp {
    const struct utcp_user *user;
    void *of;          /* the user's */
    struct utcp *next; /* of the same bucket of its host */
    struct utcp_name local, remote;
    struct utcp_attr attr;
    enum utcp_state state;
    int error;      /* 0 or a negative errno, when it is over */
    bool sack;      /* both said so */
    bool option_on; /* both offered the option */
    struct utcp_tx tx;
    struct utcp_rx rx;
    struct utcp_stamps stamps;
    struct utcp_rtt rtt;
    struct utcp_rack rack;
    struct utcp_tlp tlp;
    struct utcp_cubic cubic;
    struct utcp_recovery recovery;
    struct utcp_board board;
    struct utcp_held held;
    struct utcp_timers timer;
    struct utcp_due due;
    struct utcp_count count;
};

/* Rooms that the connection works in; they must outlive it. */
struct utcp_rooms {
    struct utcp_sent *sent;
    uint32_t sents; /* a power of two: segments under way */
    struct utcp_held_range *held;
    uint32_t helds; /* holes in what arrived */
};

void utcp_attr_default(struct utcp_attr *attr);

/* Both begin a connection. The first SYN leaves with the next utcp_output(). */
void utcp_open(struct utcp *t, const struct utcp_attr *attr, const struct utcp_rooms *rooms,
               const struct utcp_user *user, void *of);
void utcp_connect(struct utcp *t, const struct utcp_name *local, const struct utcp_name *remote, uint64_t now_us);

/* A connection that somebody else has established: what both SYNs said, and where the stream is. Positions count on
 * from here. */
struct utcp_handshake {
    struct utcp_name local, remote;
    uint32_t send_next, receive_next;
    uint32_t window;          /* the peer's, in octets */
    uint32_t mss;             /* the peer's */
    uint8_t scale, own_scale; /* of the peer's window and of ours */
    bool sack, stamps, option;
    uint32_t stamp_recent;
    bool stamp_known;
    uint32_t edge; /* octets that we have promised to take, from receive_next on */
};
void utcp_adopt(struct utcp *t, const struct utcp_handshake *h, uint64_t now_us);

/* A segment of this connection came in. */
void utcp_input(struct utcp *t, const struct utcp_segment *s, uint64_t now_us);
/* A packet of ours was too big for the path. */
void utcp_too_big(struct utcp *t, uint32_t seq, uint32_t mtu);
/* Writes the next packet that has to leave now. False: none has. */
bool utcp_output(struct utcp *t, struct utcp_packet *p, uint64_t now_us);
/* Input may be taken in batches, but not more now: an acknowledgement cannot tell of more holes, or would be the only
 * one for so many segments that its loss would cost the peer a time-out. */
bool utcp_urgent(const struct utcp *t);
uint64_t utcp_deadline(const struct utcp *t);
void utcp_timeout(struct utcp *t, uint64_t now_us);

/* The stream ends at `position` for now: all before may be sent. */
void utcp_send(struct utcp *t, uint64_t position);
void utcp_finish(struct utcp *t); /* nothing follows */
void utcp_abort(struct utcp *t);  /* a reset, and over */
/* The user no longer keeps so many of the octets that arrived in order. */
void utcp_release(struct utcp *t, uint64_t octets);
/* Nothing behind this position is to be taken. UINT64_MAX at first. */
void utcp_limit(struct utcp *t, uint64_t position);
void utcp_set_mtu(struct utcp *t, uint32_t mtu);

uint64_t utcp_acked(const struct utcp *t);    /* all before has arrived at the peer */
uint64_t utcp_received(const struct utcp *t); /* all before has arrived here */
bool utcp_ended(const struct utcp *t);        /* the peer's FIN has arrived, in its turn */
/* The longest payload of a segment with an option of so many octets. */
uint32_t utcp_emss(const struct utcp *t, uint32_t option_length);

#endif
