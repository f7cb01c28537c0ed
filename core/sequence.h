/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sequence.h - the state of a queue pair whose wire numbers all requests in one sequence (SEG_NUMBERS_SEQUENCE). */
#ifndef RDDP_CORE_SEQUENCE_H
#define RDDP_CORE_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/order.h"
#include "core/seg.h"

enum {
    SEQUENCE_SOLICITED = 1 << 8, /* the bit of seg.reserved ("res") that carries SEG_SOLICITED */
    SEQUENCE_CONTROL_MAX = 1020, /* octets of control data: CLEN is 8 bits and counts words of 4 */
};

struct sequence {
    uint32_t tx_number; /* number of our next message */

    /* The peer's sequence in stream order: the open message, or the next one. */
    bool known; /* the first message has arrived, so `number` is valid */
    bool open;
    bool claimed; /* an open Write or Read Request has taken a receive for its control data */
    enum seg_op op;
    uint32_t number;
    uint64_t key, offset;   /* of an open Write: its buffer, and the offset where it continues */
    uint32_t total, octets; /* of an open message: RDMA Length, and the octets received */

    struct order order; /* messages that arrived completely; unanswered and undelivered ones are in their rings */
};

#endif
