/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpopt.h - the TCP RDMA option (tcp-rdma-option.txt), which says where in a buffer the payload of a segment
 * belongs. */
#ifndef RDDP_WIRE_TCPOPT_H
#define RDDP_WIRE_TCPOPT_H

#include <stdbool.h>
#include <stdint.h>

#define TCPOPT_RID_MAX 0x3fffffffffffULL /* 46 bits */

/* The kind and the four lengths of the option (3.1). */
enum {
    TCPOPT_KIND = 25,
    TCPOPT_OFFER = 2, /* in a SYN */
    TCPOPT_MARK = 4,  /* the A bit alone */
    TCPOPT_SHORT = 16,
    TCPOPT_LONG = 20, /* with the total length */
};

struct tcpopt {
    uint8_t length; /* one of the four lengths */
    bool aligned, unsolicited;
    uint64_t rid;
    uint32_t buffer_offset, total;
    uint16_t data_offset, data_length;
};

/* Errors of an option. After any of them the payload is delivered as if the segment had no option. */
enum tcpopt_fault {
    TCPOPT_GOOD,
    TCPOPT_BAD_LENGTH,
    TCPOPT_MISPLACED,   /* not at a multiple of four octets in the TCP header */
    TCPOPT_DATA_OFFSET, /* the data offset lies beyond the payload */
    TCPOPT_DATA_LENGTH, /* the data extends beyond the payload */
    TCPOPT_WRAP,        /* buffer offset plus length exceeds 2^32 */
    TCPOPT_PAST_TOTAL,  /* buffer offset plus length exceeds the total */
};

/* Decodes the option of `length` octets at `p`. `at` is its offset in the TCP header, `payload` the octets of payload
 * in the segment. *o is valid only on TCPOPT_GOOD. */
enum tcpopt_fault tcpopt_decode(struct tcpopt *o, const uint8_t *p, uint32_t length, uint32_t at, uint32_t payload);

/* Writes o->length octets to `q` and returns the address behind them. */
uint8_t *tcpopt_encode(uint8_t *q, const struct tcpopt *o);

/* Does the option describe a transfer? */
static inline bool tcpopt_transfers(const struct tcpopt *o)
{
    return o->length >= TCPOPT_SHORT;
}

#endif
