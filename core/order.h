/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.h - which messages may be processed before others, by the `order` field in a sequence of message numbers. */
#ifndef RDDP_CORE_ORDER_H
#define RDDP_CORE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum { ORDER_WINDOW = 1024 }; /* numbers tracked behind the first that is missing; a power of two */

/* The processed messages of a sequence: all before `next`, and of the ORDER_WINDOW numbers from there those whose bit
 * is set (bit number % ORDER_WINDOW). Numbers wrap (serial arithmetic). */
struct order {
    uint32_t next;
    uint64_t done[ORDER_WINDOW / 64];
};

/* Marks `number` as done. Numbers before `next`, or ORDER_WINDOW or more after it, are ignored: others then wait longer
 * than necessary, which is always allowed. */
void order_done(struct order *order, uint32_t number);

/* May message `number` be processed if `oldest` is the first that is not? "all EXCEPT the preceding N messages have
 * been processed" (rdma-tcp-segments.txt 3.4), with N = `order`; SEG_ORDER_ANY: it waits for none. */
bool order_ready(uint32_t oldest, uint32_t number, uint16_t order);

static inline bool order_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

#endif
