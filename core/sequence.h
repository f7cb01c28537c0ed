/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sequence.h - what a queue pair holds when its wire numbers all requests in one sequence (SEG_NUMBERS_SEQUENCE). */
#ifndef RDDP_CORE_SEQUENCE_H
#define RDDP_CORE_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/order.h"
#include "core/seg.h"

enum {
    SEQUENCE_SOLICITED = 1 << 8, /* which of seg.reserved says SEG_SOLICITED: the use this client makes of "res" */
    SEQUENCE_CONTROL_MAX = 1020, /* octets of control data: CLEN is 8 bits of words */
};

struct sequence {
    uint32_t tx_number; /* of our next message */

    /* The peer's sequence in the order of the stream: the message that is open, or the next one. */
    bool known; /* the first has come, and `number` says something */
    bool open;
    bool claimed; /* a Write or Read Request: it has taken a receive for its control data */
    enum seg_op op;
    uint32_t number;
    uint64_t key, offset;   /* of an open Write: its buffer, and where it goes on */
    uint32_t total, octets; /* of an open message: RDMA Length, and how many octets came */

    struct order order; /* what has arrived as a whole; what is unanswered or undelivered is in its ring */
};

#endif
