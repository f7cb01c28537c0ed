/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.h - everything that a peer or the path can do wrong, as values. Each wire translates them once into its own
 * codes. */
#ifndef RDDP_CORE_FAULT_H
#define RDDP_CORE_FAULT_H

#include <stdint.h>

#include "core/seg.h"

enum fault {
    FAULT_NONE,
    /* placement by key (RFC 5041 7.1) */
    FAULT_KEY,    /* no such STag, or it was invalidated */
    FAULT_DOMAIN, /* the STag belongs to another protection domain */
    FAULT_RIGHT,  /* the region does not allow this access */
    FAULT_BOUNDS, /* outside the region */
    FAULT_WRAP,   /* offset + length passes 2^64 */
    FAULT_ABSENT, /* RDDP_ACCESS_ON_DEMAND: there is no memory, or none that allows this */
    /* placement by message number (RFC 5041 7.1) */
    FAULT_QUEUE,      /* a queue number that does not exist */
    FAULT_NO_RECEIVE, /* no receive is posted for the message */
    FAULT_MSN,        /* a message number out of turn */
    FAULT_MO,         /* a message offset out of turn or out of the receive */
    FAULT_TOO_LONG,   /* a Send longer than its receive */
    /* what the message is (RFC 5040 7.2) */
    FAULT_DDP_VERSION,
    FAULT_RDMAP_VERSION,
    FAULT_OPCODE,
    FAULT_SHORT,      /* shorter than its own header, or with payload where none may be */
    FAULT_UNASKED,    /* a Read Response that was not requested, or is for another place than requested */
    FAULT_READS,      /* more Read Requests than agreed (IRD) */
    FAULT_INVALIDATE, /* an STag that the peer may not invalidate */
    FAULT_UNALIGNED,  /* an atomic operation on an address that is no multiple of 8 (RFC 7306 8.2) */
    /* framing (RFC 5044 8) */
    FAULT_CRC,
    FAULT_MARKER,  /* marker and ULPDU_Length disagree about where an FPDU begins */
    FAULT_LENGTH,  /* a ULPDU_Length above 64768 */
    FAULT_OVERLAP, /* a unit does not end where the next one, which arrived earlier, begins */
    /* fields of a segment (rdma-tcp-segments.txt 3.4) */
    FAULT_SEG_VERSION,
    FAULT_SEG_LENGTH, /* shorter than its own header, or a Read Request with payload */
    FAULT_SEG_CLEN,   /* control data beyond the segment */
    FAULT_SEG_ID,     /* the Connection ID of another connection */
    FAULT_SEG_CRC,
    FAULT_SEG_NUMBER, /* not the next message number, or a new one before the E of the old */
    FAULT_SEG_BEGIN,  /* B or E is set where it may not be, or missing */
    FAULT_SEG_TYPE,   /* another type than the message began with */
    FAULT_SEG_OFFSET, /* a Data Offset out of turn */
    FAULT_SEG_BUFFER, /* the RDMA Buffer ID changes inside a message */
    FAULT_SEG_PLACE,  /* an RDMA Buffer Offset out of turn, or past 2^32 */
    FAULT_SEG_TOTAL,  /* an RDMA Length that changes, or differs from the octets received */
    /* start-up (RFC 5044 7.1, RFC 6581) */
    FAULT_START_KEY,
    FAULT_START_REVISION,
    FAULT_START_LENGTH, /* PD_Length above 512 */
    FAULT_START_ENHANCED,
    FAULT_IRD,   /* the peer's ORD is larger than our IRD */
    FAULT_RTR,   /* no ready-to-receive message in common */
    FAULT_EARLY, /* FPDUs before the end of the start-up */
    FAULT_REJECTED,
    /* the path */
    FAULT_LOST,    /* reset, timed out, unreachable */
    FAULT_CUT,     /* closed by the peer in the middle of a message or of the start-up */
    FAULT_STALLED, /* a time limit passed: a frame, a message, the start-up or the end */
    /* this side */
    FAULT_TERMINATED, /* the peer sent a Terminate */
    FAULT_LOCAL_KEY,  /* a work request named local memory that it may not use */
    FAULT_CQ_FULL,    /* no room for a completion */
    FAULT_MEMORY,     /* out of memory or another local catastrophic error */
    FAULT_NO_ORD,     /* an RDMA Read or atomic was posted, but the agreed ORD is 0 */
    FAULT_OWNER,      /* the owner moved the queue pair to error */
    FAULT_FORKED,     /* the connection belongs to the parent of this process */
    FAULT_CLOSED,     /* the program closed the descriptors of the library */
    FAULT_NOT_NOW,    /* no fault: a segment out of order that cannot be placed yet; the link keeps it */
    /* messages of an association (sctp-ddp-rdma.txt 3.2.1) */
    FAULT_CHUNK_SHORT,  /* shorter than its header extension */
    FAULT_CHUNK_R1,     /* R1: NO_PLACEMENT_MODE from an RDMA_ONLY peer */
    FAULT_CHUNK_R2,     /* R2: DDP_MODE, but the peer did not indicate DDP */
    FAULT_CHUNK_R3,     /* R3: DDP_WITH_TAG_MODE, but the peer did not indicate DDP_WITH_TAG */
    FAULT_CHUNK_R4,     /* R4: RDMA_PLACEMENT_MODE, but the peer indicated neither RDMA_ONLY nor RDMA_AND_NEGOTIATION */
    FAULT_CHUNK_MODE,   /* an unknown placement mode */
    FAULT_CHUNK_FLAGS,  /* data to be placed, without U, B and E all set */
    FAULT_CHUNK_STREAM, /* DDP_MODE on a stream without a buffer */
    FAULT_CHUNK_RELEASED, /* a chunk after the chunk that releases its tag */
    FAULT_CHUNK_AGAIN,    /* a sequence number (AWS or TSN) that was received before */
    FAULT_CHUNK_AHEAD,    /* a sequence number too far ahead to be kept */
    /* negotiation of an association (doc/sctp-negotiation.md) */
    FAULT_NEG_SHORT,       /* a truncated message */
    FAULT_NEG_VERSION,     /* a message of another version */
    FAULT_NEG_TYPE,        /* a message of an unknown type */
    FAULT_NEG_FIELD,       /* fields that contradict each other */
    FAULT_NEG_TURN,        /* a second HELLO, or another message before it */
    FAULT_NEG_UNLIKE,      /* the peer indicated another adaptation, and strict mode requires ours */
    FAULT_NEG_UNSUPPORTED, /* a request that our own adaptation has no mode for (S1, S2) */
    /* packets of a queue pair (InfiniBand 9) */
    FAULT_PACKET,    /* a packet out of turn, or of a wrong length */
    FAULT_QP_ACCESS, /* the queue pair allows the peer no such operation */
    FAULT_RETRY,     /* no acknowledgement after all retries */
    FAULT_RNR,       /* the peer posted no receive, after all retries */
    FAULT_NAK,       /* the peer refused a request; `got` is its reason */
    FAULT_RESPONSE,  /* a response that does not fit its request */
    FAULTS
};

/* A fault and what it was about: enough for one English line and for the peer's Terminate. */
struct fault_note {
    enum fault fault;
    enum seg_op op;
    uint64_t key, offset;
    uint64_t got, want; /* the value received and the limit it broke, by fault; if equal the line omits both */
    uint32_t length;
    uint32_t msg; /* message number of an untagged segment */
    /* With SEG_READ_REQ: the whole request, because its segment may be gone when the fault is found. */
    struct seg_read read;
};

/* Return a name for programs ("bounds"), and a sentence that cites the document ("outside the region (RFC 5041 7.1)").
 * Never NULL. */
const char *fault_name(enum fault fault);
const char *fault_text(enum fault fault);

/* Returns the fault in a result that is minus a fault, such as that of a wire's decode(). */
static inline enum fault fault_of(int result)
{
    return (enum fault) - result;
}

/* Returns the operation in the documents' words, such as "RDMA Write". Never NULL. */
const char *seg_op_name(enum seg_op op);

/* Writes the English line for `note`, without peer and prefix, to `line`; truncates and terminates it. Returns its
 * length. */
size_t fault_describe(const struct fault_note *note, char *line, size_t size);

#endif
