/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* seg.h - what one segment says, whatever wire carries it: the waist between wires and the engine. */
#ifndef RDDP_CORE_SEG_H
#define RDDP_CORE_SEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum seg_op {
    SEG_SEND,        /* into the receive that `msg` names, at `offset` */
    SEG_WRITE,       /* into the region `key`, at `offset` */
    SEG_READ_REQ,    /* `read` says what, `msg` is its number */
    SEG_READ_RESP,   /* into the sink of the read that asked for it */
    SEG_IMMEDIATE,   /* `immediate`, with the number of a Send: it takes a receive */
    SEG_ATOMIC_REQ,  /* `atomic` says what; numbered with the Read Requests */
    SEG_ATOMIC_RESP, /* `atomic` has the identifier of the request and, as `data`, what the word was */
    SEG_TERMINATE,   /* the peer gives up; `data` is its Terminate header */
    SEG_OPS
};

enum seg_flag {
    SEG_LAST = 1 << 0,       /* the last segment of its message */
    SEG_SOLICITED = 1 << 1,  /* a Send that asks for an event */
    SEG_INVALIDATE = 1 << 2, /* a Send that invalidates the key `invalidate` */
    SEG_FIRST = 1 << 3,      /* the first segment of its message, where a wire says so */
    SEG_WITH_IMM = 1 << 4,   /* of a message that takes a receive: it brought immediate data */
    SEG_PLACED = 1 << 5,     /* arriving in its turn: qp_place_early() has had it */
};

/* How a wire numbers messages. */
enum seg_numbering {
    SEG_NUMBERS_QUEUES,   /* Sends and Read Requests each from 1 on, Writes not at all (RFC 5041 4.3) */
    SEG_NUMBERS_SEQUENCE, /* Sends, Writes and Read Requests in one sequence, a response as its request (segments 3.4)
                           */
};

/* How the lower half of `immediate` is used: RFC 7306 leaves all 64 bits to the application, verbs has 32 and tells a
 * Write with immediate data from a Send with them. Those who know nothing of this leave 0 there. */
enum { SEG_IMMEDIATE_OF_WRITE = 0, SEG_IMMEDIATE_OF_SEND = 1 };

/* Of a message that waits for no other (rdma-tcp-segments.txt 3.4). */
enum { SEG_ORDER_ANY = 0xffff };

/* An RDMA Read Request: "put `length` octets of my peer's `source` into my `sink`". */
struct seg_read {
    uint64_t sink_key, sink_offset;
    uint64_t source_key, source_offset;
    uint32_t length;
};

/* What an atomic operation does to the eight octets at `offset` of the region `key`, and numbers of RFC 7306 figure 5.
 */
enum seg_atomic_op { SEG_FETCH_ADD = 0, SEG_CMP_SWAP = 2 };

struct seg_atomic {
    enum seg_atomic_op op;
    uint32_t id; /* the requester's own: it comes back with the response */
    uint64_t key, offset;
    uint64_t data, mask; /* to add, and the highest bit of each field; or to swap in, where the mask has bits */
    uint64_t compare, compare_mask; /* swapped if the word is like this in the bits of the mask */
};

/* One segment, arriving or leaving. `data` and `head` are borrowed: arriving, they point into the receive buffer and
 * die with the call; leaving, the payload is in spans beside the struct and `data` is unused except for a Terminate. */
struct seg {
    enum seg_op op;
    unsigned flags;      /* enum seg_flag */
    uint32_t msg;        /* message number (MSN) of an untagged segment; of any, in SEG_NUMBERS_SEQUENCE */
    uint64_t key;        /* STag of a tagged segment: 32 bits in iWARP, up to 46 elsewhere */
    uint64_t offset;     /* octets: tagged offset (TO), or message offset (MO) of an untagged segment */
    uint64_t invalidate; /* STag, with SEG_INVALIDATE */
    uint64_t immediate;  /* the first of its octets is the highest */
    union {
        struct seg_read read;
        struct seg_atomic atomic;
    };
    const uint8_t *data;
    uint32_t length;   /* octets of payload */
    uint32_t total;    /* of the whole message, where a Write says so (RDMA Length) */
    uint16_t order;    /* all but that many of the messages before it come first; SEG_ORDER_ANY: none does */
    uint16_t reserved; /* bits a wire leaves to its client protocol: four of them, then an octet */
    uint32_t control_length;
    const uint8_t *control; /* octets beside the payload that are never placed with it; borrowed as `data` is */
    const uint8_t *head;    /* the wire's header as it arrived, for the copy a Terminate carries */
    uint32_t head_length;
    uint64_t begin, end; /* stream positions of the whole unit: who else has arrived, and when has it left */
};

static inline bool seg_is_tagged(const struct seg *seg)
{
    return seg->op == SEG_WRITE || seg->op == SEG_READ_RESP;
}

#endif
