/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc.h - one association of SCTP under the DDP/RDMA adaptation: its set-up, chunks in, chunks out, its end. Messages
 * and time are arguments.
 *
 * The host (a link, a test, a simulator, a fuzzer) has a provider of SCTP. It tells what the provider says: assoc_up(),
 * assoc_rx() with each message as it comes, assoc_peer_ended(), assoc_peer_aborted(), assoc_lost(). After each:
 *     while assoc_due(): assoc_rx() once more with the message that it names; while assoc_signal(): take it;
 *     while assoc_wants() & ASSOC_TX: assoc_emit(), give the chunk to the provider, assoc_sent(); on ASSOC_FIN shut the
 * association down and say assoc_fin(); on ASSOC_ABORT abort it with assoc_reason() and say assoc_lost(); read and
 * clear life.news; call assoc_tick() at assoc_deadline(). */
#ifndef RDDP_CONN_ASSOC_H
#define RDDP_CONN_ASSOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conn/assoc_window.h"
#include "conn/life.h"
#include "core/qp.h"
#include "wire/sctpddp.h"
#include "wire/sctpddp_neg.h"

enum {
    ASSOC_STREAMS = 16,           /* that a DDP peer's buffers may be bound to */
    ASSOC_SIGNALS = 64,           /* that may wait for the host */
    ASSOC_KEPT_OCTETS = 16 << 20, /* of chunks that wait for their turn */
    ASSOC_PAYLOAD_MIN = 128,      /* octets of a message, the least that a provider may take */
};

enum assoc_want {
    ASSOC_TX = 1 << 0,    /* assoc_emit() has something */
    ASSOC_FIN = 1 << 1,   /* shut the association down */
    ASSOC_ABORT = 1 << 2, /* abort it */
};

enum assoc_verdict {
    ASSOC_TAKEN, /* the message is done with */
    ASSOC_KEPT,  /* the host keeps the message, until assoc_due() names it or the association is over */
};

struct assoc_attr {
    enum sctpddp_adaptation adaptation; /* what we indicate */
    bool strict;                        /* the peer must indicate the same */
    uint16_t ird, ord;
    uint16_t stream;     /* that our chunks leave on, unless DDP_MODE says another */
    uint8_t write_flags; /* enum sctpddp_flag: what the last chunk of each Write asks for, of a peer that does not
                            negotiate */
    uint32_t ppid;       /* of our chunks: the layer's above */
    uint64_t seed;       /* 64 random bits: the sinks of our Reads get their tags from it */
    struct life_limits limits;
};

/* What a provider delivers. */
struct assoc_message {
    const uint8_t *data;
    uint32_t octets;
    uint32_t tsn;
    uint32_t ppid;
    uint32_t name; /* the host's own, if it has to keep the message */
    uint16_t stream;
    bool whole; /* U, B and E were set */
};

/* What a provider is given: a header, then spans of memory that is borrowed until assoc_sent(). */
struct assoc_chunk {
    uint8_t head[SCTPDDP_HEAD_MAX + NEG_HEAD_MAX];
    uint32_t head_length;
    uint32_t ppid;
    uint16_t stream;
    uint64_t end; /* for assoc_sent() */
    struct emit emit;
};

/* A flag of a chunk whose turn has come: everything before it is placed. */
struct assoc_signal {
    uint64_t pos; /* of the chunk in the peer's sequence, unwrapped */
    uint32_t tag;
    uint8_t flags; /* enum sctpddp_flag */
};

/* A Read of ours that is out: the tag it gave the peer, and where that leads. */
struct assoc_read {
    uint32_t tag, length;
    uint64_t key, offset;
};

struct assoc {
    struct life life;
    struct assoc_attr attr;
    enum sctpddp_adaptation own, peer; /* in force */
    bool up, negotiates;
    uint16_t ird, ord; /* agreed */
    uint32_t payload_max;
    uint32_t rx_ppid; /* of the last message */

    struct window window;
    uint32_t kept_octets;
    uint32_t stream_key[ASSOC_STREAMS]; /* 0: none */

    uint64_t tx_pos;                      /* AWS of the next chunk, unwrapped */
    struct assoc_read read[QP_READS_MAX]; /* by their number */
    uint32_t placed_aws;                  /* to be said to the peer, if placed_due */
    bool placed_due, hello_due, reject;
    bool shut; /* the provider is shutting down: nothing more leaves */

    struct neg peer_hello; /* private data in peer_data */
    uint8_t peer_data[NEG_PRIVATE_MAX], own_data[NEG_PRIVATE_MAX];
    uint16_t own_length;

    struct assoc_signal signal[ASSOC_SIGNALS];
    uint32_t signal_head, signal_tail;
    uint64_t released; /* a tag was, then: no signal is for the host until all who came before have left; or 0 */
};

/* `slots` is zeroed room for WINDOW_CHUNKS, the host's. 0, or -EINVAL: too much private data, or private data where
 * nobody negotiates. */
int assoc_init_active(struct assoc *a, const struct assoc_attr *attr, struct window_slot *slots, struct qp *qp,
                      const void *private_data, uint16_t private_length, uint64_t now_us);
void assoc_init_passive(struct assoc *a, const struct assoc_attr *attr, struct window_slot *slots, uint64_t now_us);

/* INIT and INIT-ACK have been exchanged. `indication` is the peer's, 0 if it had none; `tsn` its initial TSN; a message
 * may have up to `payload_max` octets, header extension included. */
void assoc_up(struct assoc *a, uint32_t indication, uint32_t tsn, uint32_t payload_max, uint64_t now_us);

/* Answers a request (CONN_WAIT_ANSWER). `ird`, `ord` are what the queue pair has room for. 0 or -EINVAL, as above. */
int assoc_accept(struct assoc *a, struct qp *qp, uint16_t ird, uint16_t ord, const void *private_data,
                 uint16_t private_length, uint64_t now_us);
int assoc_reject(struct assoc *a, const void *private_data, uint16_t private_length, uint64_t now_us);

/* DDP_MODE chunks on this stream go to the buffer `key`; 0 takes it away. 0 or -EINVAL. */
int assoc_bind(struct assoc *a, uint16_t stream, uint32_t key);

/* A message arrives, in whatever order. `m->data` is borrowed. Nothing is delivered when life.state says that the
 * association is ending. */
enum assoc_verdict assoc_rx(struct assoc *a, const struct assoc_message *m, uint64_t now_us);

/* Is it the turn of a message that was kept? */
bool assoc_due(const struct assoc *a, uint32_t *name);

/* The next signal whose turn has come; is there one? */
bool assoc_has_signal(const struct assoc *a);
bool assoc_signal(struct assoc *a, struct assoc_signal *signal, uint64_t now_us);

/* enum assoc_want. */
unsigned assoc_wants(const struct assoc *a);

/* The next chunk. False: there is none, or the queue pair has failed. */
bool assoc_emit(struct assoc *a, struct assoc_chunk *chunk, uint64_t now_us);

/* Everything up to `end` was copied by the provider, or acknowledged by the peer. */
void assoc_sent(struct assoc *a, uint64_t end, uint64_t now_us);

void assoc_fin(struct assoc *a, uint64_t now_us);

/* Why it has to be aborted, for the peer; returns its octets. */
size_t assoc_reason(const struct assoc *a, char reason[NEG_REASON_MAX]);

void assoc_peer_ended(struct assoc *a, uint64_t now_us);
void assoc_peer_aborted(struct assoc *a, const char *reason, size_t n, uint64_t now_us);
void assoc_lost(struct assoc *a, enum fault fault);

/* As those of conn.h. */
void assoc_check(struct assoc *a, uint64_t now_us);
void assoc_close(struct assoc *a, uint64_t now_us);
void assoc_detach(struct assoc *a, uint64_t now_us);
uint64_t assoc_deadline(const struct assoc *a);
void assoc_tick(struct assoc *a, uint64_t now_us);

#endif
