/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.h - which messages may be processed before others: the `order` field of a sequence of message numbers. */
#ifndef RDDP_CORE_ORDER_H
#define RDDP_CORE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum { ORDER_WINDOW = 1024 }; /* numbers that are kept apart behind the first that is missing; a power of two */

/* What is done of a sequence: everything before `next`, and of the ORDER_WINDOW numbers from there on those whose bit
 * is set, at their remainder. Numbers wrap (serial arithmetic). */
struct order {
    uint32_t next;
    uint64_t done[ORDER_WINDOW / 64];
};

/* `number` is done. Before `next`, or ORDER_WINDOW behind it and more, that is not noticed: then others wait longer
 * than they would have to, which no order forbids. */
void order_done(struct order *order, uint32_t number);

/* May message `number` be processed when `oldest` is the first that is not? "all EXCEPT the preceding N messages have
 * been processed" (rdma-tcp-segments.txt 3.4), N being `order`; SEG_ORDER_ANY waits for none. */
bool order_ready(uint32_t oldest, uint32_t number, uint16_t order);

static inline bool order_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

#endif
