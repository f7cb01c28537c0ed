/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* assoc.h - one SCTP association under the DDP/RDMA adaptation: set-up, chunks in, chunks out, end. Messages and time
 * are arguments.
 *
 * The host (a link, a test, a simulator, a fuzzer) owns the SCTP provider. It reports what the provider reports:
 * assoc_up(), assoc_rx() for each message in order of arrival, assoc_peer_ended(), assoc_peer_aborted(), assoc_lost().
 * After each of these calls the host does the following:
 *     while assoc_due(): call assoc_rx() again with the message that it names;
 *     while not assoc_wants_rx(): give it no further messages;
 *     while assoc_has_signal(): take it with assoc_signal();
 *     while assoc_wants() & ASSOC_TX: assoc_emit(), give the chunk to the provider, assoc_sent();
 *     on ASSOC_FIN: shut the association down and call assoc_fin();
 *     on ASSOC_ABORT: abort it with assoc_reason() and call assoc_lost();
 *     read and clear life.news; call assoc_tick() at assoc_deadline(). */
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
    ASSOC_STREAMS = 16,           /* streams that a DDP peer's buffers may be bound to */
    ASSOC_SIGNALS = 64,           /* signals that may wait for the host */
    ASSOC_KEPT_OCTETS = 16 << 20, /* octets of memory of kept chunks, which wait for their turn */
    ASSOC_KEPT_EARLY = 16 << 10,  /* the same before the HELLO, which is the first that a peer has to say */
    /* The same beside a message that waits for a receive: when there are as many the host is to read no more. */
    ASSOC_KEPT_WAITING = 256 << 10,
    ASSOC_KEPT_ENTRY = 128,  /* octets of memory that a kept chunk counts besides its own */
    ASSOC_PAYLOAD_MIN = 128, /* octets of a message; a provider must accept at least this many */
};

enum assoc_want {
    ASSOC_TX = 1 << 0,    /* assoc_emit() has a chunk */
    ASSOC_FIN = 1 << 1,   /* shut the association down */
    ASSOC_ABORT = 1 << 2, /* abort it */
};

enum assoc_verdict {
    ASSOC_TAKEN, /* the host may drop the message */
    ASSOC_KEPT,  /* the host keeps the message until assoc_due() names it or the association is over */
};

struct assoc_attr {
    enum sctpddp_adaptation adaptation; /* the adaptation that we indicate */
    bool strict;                        /* refuse a peer that indicates another adaptation */
    bool batches;                       /* the provider sends batches and wants to know whether the peer's does */
    uint16_t ird, ord;
    uint16_t stream; /* the stream of our chunks, except in DDP_MODE */
    /* enum sctpddp_flag: the signals that the last chunk of each Write requests from a peer that does not negotiate. */
    uint8_t write_flags;
    uint32_t ppid; /* of our chunks; the upper layer defines it */
    uint64_t seed; /* 64 random bits, from which the tags for the sinks of our Reads are drawn */
    struct life_limits limits;
};

/* A message from the provider. */
struct assoc_message {
    const uint8_t *data;
    uint32_t octets;
    uint32_t tsn, tsns; /* of its first chunk, and how many: 0 counts as 1 */
    uint32_t ppid;
    uint32_t name; /* the host's own name for the message, used if it is kept */
    uint16_t stream;
    bool whole; /* U, B and E were all set */
};

/* A message for the provider: a header, then spans of memory borrowed until assoc_sent(). */
struct assoc_chunk {
    uint8_t head[SCTPDDP_HEAD_MAX + NEG_HEAD_MAX];
    uint32_t head_length;
    uint32_t ppid;
    uint16_t stream;
    uint64_t end;     /* the argument for assoc_sent() */
    struct emit emit; /* its buffer is the caller's: payload_max octets */
};

/* The flags of a chunk whose turn has come: everything before it has been placed. */
struct assoc_signal {
    uint64_t pos; /* position of the chunk in the peer's sequence, unwrapped */
    uint32_t tag;
    uint8_t flags; /* enum sctpddp_flag */
};

/* A pending Read of ours: the tag given to the peer, and the sink that the tag stands for. */
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
    uint32_t rx_ppid; /* of the last message received */

    struct window window;
    uint32_t kept_octets;
    uint32_t stream_key[ASSOC_STREAMS]; /* key of the bound buffer; 0: none */

    uint64_t tx_pos;                      /* AWS of the next chunk, unwrapped */
    struct assoc_read read[QP_READS_MAX]; /* indexed by their number */
    uint32_t placed_aws;                  /* to be reported to the peer if placed_due */
    bool placed_due, hello_due, reject;
    bool shut; /* the provider is shutting down: nothing more may be sent */

    struct neg peer_hello; /* its private data are in peer_data */
    uint8_t peer_data[NEG_PRIVATE_MAX], own_data[NEG_PRIVATE_MAX];
    uint16_t own_length;

    struct assoc_signal signal[ASSOC_SIGNALS];
    uint32_t signal_head, signal_tail;
    /* The epoch of the last tag released: signals wait until all earlier readers have left; 0: none. */
    uint64_t released;
};

/* Initialise an association. `slots` points to WINDOW_CHUNKS zeroed slots that stay the host's and outlive *a. Private
 * data are copied. assoc_init_active() returns 0, or -EINVAL if the private data are too long or if the adaptation does
 * not negotiate. */
int assoc_init_active(struct assoc *a, const struct assoc_attr *attr, struct window_slot *slots, struct qp *qp,
                      const void *private_data, uint16_t private_length, uint64_t now_us);
void assoc_init_passive(struct assoc *a, const struct assoc_attr *attr, struct window_slot *slots, uint64_t now_us);

/* A host that gives so much memory only to peers that have asked for a connection calls assoc_narrow() before
 * assoc_up(), with WINDOW_EARLY zeroed slots, and passes no others to assoc_init_passive(). When assoc_wants_slots(),
 * it calls assoc_widen() with WINDOW_CHUNKS zeroed slots before the next assoc_rx(). */
void assoc_narrow(struct assoc *a, struct window_slot *early);
bool assoc_wants_slots(const struct assoc *a);
void assoc_widen(struct assoc *a, struct window_slot *slots);

/* The provider exchanged INIT and INIT-ACK. `indication` is the peer's, 0 if it sent none; `tsn` is the peer's initial
 * TSN; a message may have `payload_max` octets, header extension included. Call it once. */
void assoc_up(struct assoc *a, uint32_t indication, uint32_t tsn, uint32_t payload_max, uint64_t now_us);

/* Accept or reject a request (CONN_WAIT_ANSWER). `ird` and `ord` are what the queue pair has room for. The queue pair
 * stays the caller's. Both return 0 or -EINVAL as above. */
int assoc_accept(struct assoc *a, struct qp *qp, uint16_t ird, uint16_t ord, const void *private_data,
                 uint16_t private_length);
int assoc_reject(struct assoc *a, const void *private_data, uint16_t private_length, uint64_t now_us);

/* Binds DDP_MODE chunks on this stream to the buffer `key`; 0 unbinds it. Returns 0, or -EINVAL if the stream is too
 * high. */
int assoc_bind(struct assoc *a, uint16_t stream, uint32_t key);

/* Processes a message, in any order. `m->data` is borrowed for the call; on ASSOC_KEPT the host presents the message
 * again when assoc_due() names it. Once life.state says that the association is ending, messages are dropped. */
enum assoc_verdict assoc_rx(struct assoc *a, const struct assoc_message *m, uint64_t now_us);

/* A message on a stream that does not exist was acknowledged and is lost. A peer that counts its messages can never go
 * on behind it: the association ends. */
void assoc_skipped(struct assoc *a, uint16_t stream, uint64_t now_us);

/* Has the turn of a kept message come? Then *name is its name. */
bool assoc_due(const struct assoc *a, uint32_t *name);

/* May the host give it more messages? Not while it keeps enough beside one that waits for a receive. */
static inline bool assoc_wants_rx(const struct assoc *a)
{
    return !life_is_invalidating(&a->life) && (!life_awaits_receive(&a->life) || a->kept_octets < ASSOC_KEPT_WAITING);
}

/* assoc_has_signal(): is there a signal whose turn has come? assoc_signal() takes it, or returns false. */
bool assoc_has_signal(const struct assoc *a);
bool assoc_signal(struct assoc *a, struct assoc_signal *signal, uint64_t now_us);

/* Returns enum assoc_want bits. */
unsigned assoc_wants(const struct assoc *a);

/* Builds the next chunk. Returns false if there is none or if the queue pair has failed. */
bool assoc_emit(struct assoc *a, struct assoc_chunk *chunk, uint64_t now_us);

/* The provider copied, or the peer acknowledged, every chunk up to `end`. */
void assoc_sent(struct assoc *a, uint64_t end, uint64_t now_us);

/* The provider has begun to shut the association down. */
void assoc_fin(struct assoc *a, uint64_t now_us);

/* Writes the reason for the ABORT; returns its octets. */
size_t assoc_reason(const struct assoc *a, char reason[NEG_REASON_MAX]);

/* The peer shut the association down; the peer aborted it with this reason; the association was lost. */
void assoc_peer_ended(struct assoc *a, uint64_t now_us);
void assoc_peer_aborted(struct assoc *a, const char *reason, size_t n, uint64_t now_us);
void assoc_lost(struct assoc *a, enum fault fault);

/* Like the functions of conn.h with these names. */
void assoc_check(struct assoc *a, uint64_t now_us);
void assoc_close(struct assoc *a, uint64_t now_us);
void assoc_detach(struct assoc *a, uint64_t now_us);
uint64_t assoc_deadline(const struct assoc *a);
void assoc_tick(struct assoc *a, uint64_t now_us);

#endif
