/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* seg.h - the meaning of one segment, independent of the wire: the interface between wires and the engine. */
#ifndef RDDP_CORE_SEG_H
#define RDDP_CORE_SEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum seg_op {
    SEG_SEND,        /* to the receive that `msg` names, at `offset` */
    SEG_WRITE,       /* to the region `key`, at `offset` */
    SEG_READ_REQ,    /* request `read`, numbered `msg` */
    SEG_READ_RESP,   /* to the sink of the Read that requested it */
    SEG_IMMEDIATE,   /* `immediate`; has the number of a Send and takes a receive */
    SEG_ATOMIC_REQ,  /* request `atomic`; numbered with the Read Requests */
    SEG_ATOMIC_RESP, /* `atomic` holds the identifier of the request and, in `data`, the old value of the word */
    SEG_TERMINATE,   /* the peer ends the connection; `data` is its Terminate header */
    SEG_OPS
};

enum seg_flag {
    SEG_LAST = 1 << 0,       /* the last segment of its message */
    SEG_SOLICITED = 1 << 1,  /* a Send that asks for an event */
    SEG_INVALIDATE = 1 << 2, /* a Send that invalidates the key `invalidate` of its target */
    SEG_FIRST = 1 << 3,      /* the first segment of its message, on wires that mark it */
    SEG_WITH_IMM = 1 << 4,   /* the message that took a receive brought immediate data */
    SEG_PLACED = 1 << 5,     /* arriving in order; qp_place_early() has placed it before */
    SEG_DATAGRAM = 1 << 6,   /* a message of a peer that is named in front of its payload */
    SEG_IPV4 = 1 << 7,       /* with SEG_DATAGRAM: the name is a header of IPv4 */
};

/* How a wire numbers messages. */
enum seg_numbering {
    SEG_NUMBERS_QUEUES, /* Sends and Read Requests each count from 1; Writes have no number (RFC 5041 4.3) */
    /* Sends, Writes and Read Requests share one sequence; a response has its request's number (segments 3.4). */
    SEG_NUMBERS_SEQUENCE,
};

/* Values of the lower half of `immediate`. RFC 7306 leaves all 64 bits to the application. Verbs use 32, and
 * distinguish a Write with immediate data from a Send. Peers that do not know this leave 0 there. */
enum { SEG_IMMEDIATE_OF_WRITE = 0, SEG_IMMEDIATE_OF_SEND = 1 };

/* seg.order of a message that waits for no other (rdma-tcp-segments.txt 3.4). */
enum { SEG_ORDER_ANY = 0xffff };

/* An RDMA Read Request: "put `length` octets of the responder's `source` into the requester's `sink`". */
struct seg_read {
    uint64_t sink_key, sink_offset;
    uint64_t source_key, source_offset;
    uint32_t length;
};

/* Atomic operations on the eight octets at `offset` of the region `key`. The numbers are those of RFC 7306 figure 5. */
enum seg_atomic_op { SEG_FETCH_ADD = 0, SEG_CMP_SWAP = 2 };

struct seg_atomic {
    enum seg_atomic_op op;
    uint32_t id; /* chosen by the requester and returned with the response */
    uint64_t key, offset;
    uint64_t data, mask;            /* fetch-add: value to add, highest bit of each field; swap: value, bits to swap */
    uint64_t compare, compare_mask; /* swap only if the word equals `compare` in the bits of the mask */
};

/* One segment, arriving or leaving. `data`, `control` and `head` are borrowed. Arriving, they point into the receive
 * buffer and are valid until the call returns. Leaving, the payload is in spans beside the struct, also that of a
 * Terminate. */
struct seg {
    enum seg_op op;
    unsigned flags;      /* enum seg_flag */
    uint32_t msg;        /* message number (MSN) of an untagged segment; of every segment with SEG_NUMBERS_SEQUENCE */
    uint64_t key;        /* STag of a tagged segment: 32 bits in iWARP, up to 46 elsewhere */
    uint64_t offset;     /* octets: tagged offset (TO), or message offset (MO) of an untagged segment */
    uint64_t invalidate; /* STag, with SEG_INVALIDATE */
    uint64_t immediate;  /* its first octet on the wire is the most significant */
    union {
        struct seg_read read;
        struct seg_atomic atomic;
    };
    const uint8_t *data;
    uint32_t length; /* octets of payload */
    uint32_t total;  /* octets of the whole message, if a Write says so (RDMA Length) */
    /* How many of the messages just before it need not be processed first; SEG_ORDER_ANY: all of them. */
    uint16_t order;
    uint16_t reserved; /* bits that a wire leaves to its client protocol: four bits, then an octet */
    uint32_t control_length;
    const uint8_t *control; /* octets beside the payload that are never placed with it */
    const uint8_t *head; /* the wire's header as it arrived, to be copied into a Terminate; or in front of a datagram */
    uint32_t head_length;
    uint32_t source;     /* the queue pair that sent a datagram */
    uint64_t begin, end; /* stream positions of the whole unit */
};

static inline bool seg_is_tagged(const struct seg *seg)
{
    return seg->op == SEG_WRITE || seg->op == SEG_READ_RESP;
}

#endif
