/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.c - which messages may be processed before others. */
#include "core/order.h"

#include "core/seg.h"

void order_done(struct order *order, uint32_t number)
{
    uint32_t ahead = number - order->next;

    if (ahead >= ORDER_WINDOW)
        return;
    for (order->done |= (uint64_t)1 << ahead; order->done & 1; order->done >>= 1)
        order->next++;
}

/* number - 1 - order is the last that must be done; what never was counts as done, however far back that reaches. */
bool order_ready(uint32_t oldest, uint32_t number, uint16_t order)
{
    return order == SEG_ORDER_ANY || !order_before(oldest, number - order);
}
