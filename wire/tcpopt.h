/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpopt.h - the TCP RDMA option (tcp-rdma-option.txt): what of a segment's payload belongs where in a buffer. */
#ifndef RDDP_WIRE_TCPOPT_H
#define RDDP_WIRE_TCPOPT_H

#include <stdbool.h>
#include <stdint.h>

#define TCPOPT_RID_MAX 0x3fffffffffffULL /* 46 bits */

enum {
    TCPOPT_KIND = 25,
    TCPOPT_OFFER = 2, /* lengths, 3.1: in a SYN */
    TCPOPT_MARK = 4,  /* A alone */
    TCPOPT_SHORT = 16,
    TCPOPT_LONG = 20, /* with the total */
};

struct tcpopt {
    uint8_t length; /* one of the four */
    bool aligned, unsolicited;
    uint64_t rid;
    uint32_t buffer_offset, total;
    uint16_t data_offset, data_length;
};

/* What is wrong with an option. Whatever it is: the payload is delivered as if there were none. */
enum tcpopt_fault {
    TCPOPT_GOOD,
    TCPOPT_BAD_LENGTH,
    TCPOPT_MISPLACED,   /* not on a boundary of four octets of the TCP header */
    TCPOPT_DATA_OFFSET, /* behind the payload */
    TCPOPT_DATA_LENGTH, /* data goes on behind the payload */
    TCPOPT_WRAP,        /* buffer offset and length go over 2^32 */
    TCPOPT_PAST_TOTAL,  /* the buffer offset and the length go over the total */
};

/* Reads the option of `length` octets that lies `at` octets behind the start of the TCP header, in a segment with this
 * much payload. `o` is filled in when it is good. */
enum tcpopt_fault tcpopt_decode(struct tcpopt *o, const uint8_t *p, uint32_t length, uint32_t at, uint32_t payload);

/* Writes o->length octets; returns where the next one goes. */
uint8_t *tcpopt_encode(uint8_t *q, const struct tcpopt *o);

/* Does it describe a transfer? */
static inline bool tcpopt_transfers(const struct tcpopt *o)
{
    return o->length >= TCPOPT_SHORT;
}

/* Sections 5.1 to 5.3: how upper protocols make up their RIDs. */
static inline uint64_t tcpopt_rid_nfs(uint32_t xid, uint8_t operation)
{
    return (uint64_t)operation << 32 | xid;
}

static inline uint64_t tcpopt_rid_http(uint32_t request)
{
    return request;
}

static inline uint64_t tcpopt_rid_cifs(uint16_t pid, uint16_t mid, uint8_t operation)
{
    return (uint64_t)operation << 32 | (uint32_t)pid << 16 | mid;
}

#endif
