/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.c - faults as text: a name for programs, a sentence that cites the document, and one line for the log. */
#include "core/fault.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* The subject of a line, in front of the sentence. */
enum about {
    ABOUT_NOTHING,
    ABOUT_OP,    /* "Send 7" */
    ABOUT_PLACE, /* "RDMA Write of 64 octets at offset 0x1000 of STag 0x12345678" */
};

/* `want` is the label of note->want, for faults with two numbers. */
static const struct {
    const char *name, *text;
    enum about about;
    const char *want;
} faults[FAULTS] = {
    [FAULT_NONE] = {"none", "no fault", ABOUT_NOTHING, NULL},
    [FAULT_KEY] = {"key", "no such STag, or it was invalidated (RFC 5041 7.1)", ABOUT_PLACE, NULL},
    [FAULT_DOMAIN] = {"domain", "the STag belongs to another protection domain (RFC 5041 8.2)", ABOUT_PLACE, NULL},
    [FAULT_RIGHT] = {"right", "the region or the queue pair does not allow this access (RFC 5040 8.1)", ABOUT_PLACE,
                     NULL},
    [FAULT_BOUNDS] = {"bounds", "outside the region (RFC 5041 7.1)", ABOUT_PLACE, NULL},
    [FAULT_WRAP] = {"wrap", "offset and length pass 2^64 (RFC 5041 7.1)", ABOUT_PLACE, NULL},
    [FAULT_ABSENT] = {"absent", "memory registered on demand that is not there", ABOUT_PLACE, NULL},
    [FAULT_QUEUE] = {"queue", "a queue number that does not exist (RFC 5041 7.1)", ABOUT_NOTHING, NULL},
    [FAULT_NO_RECEIVE] = {"no-receive", "no receive is posted for it (RFC 5041 7.1)", ABOUT_OP, NULL},
    [FAULT_MSN] = {"msn", "a message number out of turn (RFC 5041 7.1)", ABOUT_OP, "expected"},
    [FAULT_MO] = {"mo", "a message offset out of turn or out of the receive (RFC 5041 7.1)", ABOUT_OP, "expected"},
    [FAULT_TOO_LONG] = {"too-long", "longer than its receive (RFC 5041 7.1)", ABOUT_OP, "limit"},
    [FAULT_DDP_VERSION] = {"ddp-version", "an unknown DDP version (RFC 5041 4.1)", ABOUT_NOTHING, "expected"},
    [FAULT_RDMAP_VERSION] = {"rdmap-version", "an unknown RDMAP version (RFC 5040 4.1)", ABOUT_NOTHING, "expected"},
    [FAULT_OPCODE] = {"opcode", "an opcode that is unknown or out of place (RFC 5040 7.2)", ABOUT_NOTHING, NULL},
    [FAULT_SHORT] = {"short", "the length does not fit the headers (RFC 5040 4)", ABOUT_NOTHING, NULL},
    [FAULT_UNASKED] = {"unasked", "not the answer to the oldest RDMA Read (RFC 5040 5.2)", ABOUT_PLACE, NULL},
    [FAULT_READS] = {"reads", "more RDMA Reads at once than agreed (RFC 5040 6.1)", ABOUT_OP, "limit"},
    [FAULT_INVALIDATE] = {"invalidate", "an STag that the peer may not invalidate (RFC 5040 5.3)", ABOUT_PLACE, NULL},
    [FAULT_UNALIGNED] = {"unaligned", "an atomic operation on an address that is not a multiple of 8 (RFC 7306 8.2)",
                         ABOUT_PLACE, NULL},
    [FAULT_CRC] = {"crc", "the CRC is wrong (RFC 5044 8)", ABOUT_NOTHING, NULL},
    [FAULT_MARKER] = {"marker", "marker and length disagree about where an FPDU begins (RFC 5044 8)", ABOUT_NOTHING,
                      NULL},
    [FAULT_OVERLAP] = {"overlap", "a unit that overlaps one that arrived early", ABOUT_NOTHING, NULL},
    [FAULT_LENGTH] = {"length", "an FPDU longer than the limit (RFC 5044 4.1)", ABOUT_NOTHING, "limit"},
    [FAULT_SEG_VERSION] = {"seg-version", "an unknown Version of the segment format (segments 3.4)", ABOUT_NOTHING,
                           "expected"},
    [FAULT_SEG_LENGTH] = {"seg-length", "the Segment Length does not fit the headers (segments 3.4)", ABOUT_NOTHING,
                          "expected"},
    [FAULT_SEG_CLEN] = {"seg-clen", "CLEN goes past the end of the segment (segments 3.4)", ABOUT_NOTHING, "limit"},
    [FAULT_SEG_ID] = {"seg-id", "the Connection ID is not this connection's (segments 3.4)", ABOUT_NOTHING, NULL},
    [FAULT_SEG_CRC] = {"seg-crc", "the CRC-32 is wrong (segments 3.4)", ABOUT_NOTHING, NULL},
    [FAULT_SEG_NUMBER] = {"seg-number", "a Message Number out of turn (segments 3.4)", ABOUT_OP, "expected"},
    [FAULT_SEG_BEGIN] = {"seg-begin", "B and E do not frame the message (segments 3.4)", ABOUT_OP, NULL},
    [FAULT_SEG_TYPE] = {"seg-type", "the Type changes inside a message (segments 3.4)", ABOUT_OP, NULL},
    [FAULT_SEG_OFFSET] = {"seg-offset", "a Data Offset out of turn (segments 3.4)", ABOUT_OP, "expected"},
    [FAULT_SEG_BUFFER] = {"seg-buffer", "the RDMA Buffer ID changes inside a message (segments 3.4)", ABOUT_PLACE,
                          "expected"},
    [FAULT_SEG_PLACE] = {"seg-place", "an RDMA Buffer Offset out of turn or past 2^32 (segments 3.4)", ABOUT_PLACE,
                         "expected"},
    [FAULT_SEG_TOTAL] = {"seg-total", "the RDMA Length is not the length of the message (segments 3.4)", ABOUT_PLACE,
                         "expected"},
    [FAULT_CHUNK_SHORT] = {"chunk-short", "a message shorter than its header extension (SCTP DDP/RDMA 2.2)",
                           ABOUT_NOTHING, "expected"},
    [FAULT_CHUNK_R1] = {"chunk-no-placement", "R1: NO_PLACEMENT_MODE from an RDMA_ONLY peer (SCTP DDP/RDMA 3.2.1)",
                        ABOUT_NOTHING, NULL},
    [FAULT_CHUNK_R2] = {"chunk-ddp", "R2: DDP_MODE, but the peer did not indicate DDP (SCTP DDP/RDMA 3.2.1)",
                        ABOUT_PLACE, NULL},
    [FAULT_CHUNK_R3] = {"chunk-tag",
                        "R3: DDP_WITH_TAG_MODE, but the peer did not indicate DDP_WITH_TAG (SCTP DDP/RDMA 3.2.1)",
                        ABOUT_PLACE, NULL},
    [FAULT_CHUNK_R4] = {"chunk-rdma",
                        "R4: RDMA_PLACEMENT_MODE, but the peer indicated neither RDMA_ONLY nor RDMA_AND_NEGOTIATION "
                        "(SCTP DDP/RDMA 3.2.1)",
                        ABOUT_PLACE, NULL},
    [FAULT_CHUNK_MODE] = {"chunk-mode", "an unknown Placement Mode (SCTP DDP/RDMA 2.2)", ABOUT_NOTHING, "limit"},
    [FAULT_CHUNK_FLAGS] = {"chunk-flags", "data to be placed without U, B and E set (SCTP DDP/RDMA 2.2)", ABOUT_PLACE,
                           NULL},
    [FAULT_CHUNK_STREAM] = {"chunk-stream", "no buffer is bound to its stream (SCTP DDP/RDMA 2.1)", ABOUT_PLACE, NULL},
    [FAULT_CHUNK_RELEASED] = {"chunk-released", "the tag was released by an earlier chunk (SCTP DDP/RDMA 2.2)",
                              ABOUT_PLACE, NULL},
    [FAULT_CHUNK_AGAIN] = {"chunk-again", "a repeated sequence number (SCTP DDP/RDMA 2.2)", ABOUT_NOTHING, "expected"},
    [FAULT_CHUNK_AHEAD] = {"chunk-ahead", "a sequence number too far ahead to be held (SCTP DDP/RDMA 2.2)",
                           ABOUT_NOTHING, "expected"},
    [FAULT_NEG_SHORT] = {"neg-short", "a negotiation message that is cut off (SCTP negotiation 2)", ABOUT_NOTHING,
                         NULL},
    [FAULT_NEG_VERSION] = {"neg-version", "an unknown version of the negotiation (SCTP negotiation 2)", ABOUT_NOTHING,
                           "expected"},
    [FAULT_NEG_TYPE] = {"neg-type", "an unknown negotiation message (SCTP negotiation 2)", ABOUT_NOTHING, "limit"},
    [FAULT_NEG_FIELD] = {"neg-field", "a negotiation message that contradicts itself (SCTP negotiation 2)",
                         ABOUT_NOTHING, NULL},
    [FAULT_NEG_TURN] = {"neg-turn", "a negotiation message out of turn (SCTP negotiation 3)", ABOUT_NOTHING, NULL},
    [FAULT_NEG_UNLIKE] = {"neg-unlike", "the peer indicated another adaptation (SCTP DDP/RDMA 3.1)", ABOUT_NOTHING,
                          "expected"},
    [FAULT_NEG_UNSUPPORTED] = {"neg-unsupported", "our adaptation has no mode for the request (SCTP DDP/RDMA 3.2.2)",
                               ABOUT_OP, NULL},
    [FAULT_START_KEY] = {"start-key", "not an MPA start-up frame (RFC 5044 7.1.1)", ABOUT_NOTHING, NULL},
    [FAULT_START_REVISION] = {"start-revision", "an unknown MPA revision (RFC 6581 6)", ABOUT_NOTHING, "limit"},
    [FAULT_START_LENGTH] = {"start-length", "private data of a wrong length (RFC 5044 7.1.1)", ABOUT_NOTHING, "limit"},
    [FAULT_START_ENHANCED] = {"start-enhanced", "wrong enhanced start-up data (RFC 6581 9)", ABOUT_NOTHING, NULL},
    [FAULT_IRD] = {"ird", "the peer wants more RDMA Reads at once than this end allows (RFC 6581 9.1)", ABOUT_NOTHING,
                   "limit"},
    [FAULT_RTR] = {"rtr", "no ready-to-receive message in common (RFC 6581 9.2)", ABOUT_NOTHING, NULL},
    [FAULT_EARLY] = {"early", "FPDUs before the start-up allows them (RFC 5044 7.1.2)", ABOUT_NOTHING, NULL},
    [FAULT_REJECTED] = {"rejected", "the peer rejected the connection (RFC 5044 7.1.1)", ABOUT_NOTHING, NULL},
    [FAULT_LOST] = {"lost", "the connection below is lost: reset or unreachable (RFC 5044 8)", ABOUT_NOTHING, NULL},
    [FAULT_CUT] = {"cut", "the peer closed in the middle of a message or of the start-up", ABOUT_NOTHING, NULL},
    [FAULT_STALLED] = {"stalled",
                       "the peer did not go on with a frame, a message, the start-up or the end within its time limit, "
                       "or acknowledged nothing",
                       ABOUT_NOTHING, NULL},
    [FAULT_TERMINATED] = {"terminated", "the peer sent a Terminate (RFC 5040 5.4)", ABOUT_NOTHING, NULL},
    [FAULT_LOCAL_KEY] = {"local-key", "a request names local memory that it may not use", ABOUT_PLACE, NULL},
    [FAULT_CQ_FULL] = {"cq-full", "the completion queue is full (RFC 5040 8.1)", ABOUT_NOTHING, NULL},
    [FAULT_MEMORY] = {"memory", "out of memory", ABOUT_NOTHING, NULL},
    [FAULT_NO_ORD] = {"no-ord", "an RDMA Read, but the peer agreed to none (RFC 6581 9.1)", ABOUT_NOTHING, NULL},
    [FAULT_OWNER] = {"owner", "the queue pair was moved to error by its owner", ABOUT_NOTHING, NULL},
    [FAULT_FORKED] = {"forked", "the connection belongs to the process that forked this one", ABOUT_NOTHING, NULL},
    [FAULT_CLOSED] = {"closed", "the program closed the descriptors of the library", ABOUT_NOTHING, NULL},
    [FAULT_PACKET] = {"packet", "a packet out of turn or of a wrong length (InfiniBand 9.7.4)", ABOUT_OP, NULL},
    [FAULT_QP_ACCESS] = {"qp-access", "the queue pair allows the peer no such operation (InfiniBand 9.7.4)", ABOUT_OP,
                         NULL},
    [FAULT_RETRY] = {"retry", "the peer acknowledged nothing, after all retries (InfiniBand 9.7.6)", ABOUT_OP, NULL},
    [FAULT_RNR] = {"rnr", "the peer had no receive posted, after all retries (InfiniBand 9.7.5)", ABOUT_OP, NULL},
    [FAULT_NAK] = {"nak", "the peer refused the request (InfiniBand 9.7.5)", ABOUT_OP, NULL},
    [FAULT_RESPONSE] = {"response", "a response that does not fit its request (InfiniBand 9.7.5)", ABOUT_OP, NULL},
    [FAULT_NOT_NOW] = {"not-now", "out of order, and there is no room to place it yet", ABOUT_OP, NULL},
};

static const char *const ops[SEG_OPS] = {
    [SEG_SEND] = "Send",
    [SEG_WRITE] = "RDMA Write",
    [SEG_READ_REQ] = "RDMA Read Request",
    [SEG_READ_RESP] = "RDMA Read Response",
    [SEG_IMMEDIATE] = "Immediate Data",
    [SEG_ATOMIC_REQ] = "Atomic Request",
    [SEG_ATOMIC_RESP] = "Atomic Response",
    [SEG_TERMINATE] = "Terminate",
};

const char *fault_name(enum fault fault)
{
    return (unsigned)fault < FAULTS ? faults[fault].name : "unknown";
}

const char *fault_text(enum fault fault)
{
    return (unsigned)fault < FAULTS ? faults[fault].text : "an unknown fault";
}

const char *seg_op_name(enum seg_op op)
{
    return (unsigned)op < SEG_OPS ? ops[op] : "request";
}

/* A line that is truncated at `end`. */
struct line {
    char *at, *end;
};

static void fault_add(struct line *l, const char *text)
{
    size_t n = strlen(text), space = (size_t)(l->end - l->at);

    n = n < space ? n : space;
    memcpy(l->at, text, n);
    l->at += n;
}

static void add_number(struct line *l, uint64_t v, unsigned base)
{
    char digits[21], *p = digits + sizeof(digits);

    *--p = '\0';
    do {
        *--p = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    fault_add(l, base == 16 ? "0x" : "");
    fault_add(l, p);
}

static void add_op(struct line *l, const struct fault_note *note)
{
    fault_add(l, seg_op_name(note->op));
    if (note->op == SEG_SEND || note->op == SEG_READ_REQ) {
        fault_add(l, " ");
        add_number(l, note->msg, 10);
    }
}

static void add_place(struct line *l, const struct fault_note *note)
{
    fault_add(l, seg_op_name(note->op));
    fault_add(l, " of ");
    add_number(l, note->length, 10);
    fault_add(l, " octets at offset ");
    add_number(l, note->offset, 16);
    fault_add(l, " of STag ");
    add_number(l, note->key, 16);
}

size_t fault_describe(const struct fault_note *note, char *line, size_t size)
{
    unsigned fault = (unsigned)note->fault < FAULTS ? note->fault : FAULT_NONE;
    struct line l = {line, line + size - 1};

    assert(size);
    if (faults[fault].about == ABOUT_OP)
        add_op(&l, note);
    if (faults[fault].about == ABOUT_PLACE)
        add_place(&l, note);
    if (faults[fault].about != ABOUT_NOTHING)
        fault_add(&l, ": ");
    fault_add(&l, fault_text(note->fault));
    if (faults[fault].want && note->got != note->want) {
        fault_add(&l, ": ");
        add_number(&l, note->got, 10);
        fault_add(&l, ", ");
        fault_add(&l, faults[fault].want);
        fault_add(&l, " ");
        add_number(&l, note->want, 10);
    }
    *l.at = '\0';
    return (size_t)(l.at - line);
}
