/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.c - the window of processed messages in a sequence. */
#include "core/order.h"

#include "core/seg.h"

static uint64_t bit_of(uint32_t number)
{
    return (uint64_t)1 << number % 64;
}

static uint64_t *word_of(struct order *order, uint32_t number)
{
    return &order->done[number % ORDER_WINDOW / 64];
}

void order_done(struct order *order, uint32_t number)
{
    if (number - order->next >= ORDER_WINDOW)
        return;
    *word_of(order, number) |= bit_of(number);
    for (; *word_of(order, order->next) & bit_of(order->next); order->next++)
        *word_of(order, order->next) &= ~bit_of(order->next);
}

/* number - 1 - order is the last message that must be done. Messages before the start of the sequence count as done. */
bool order_ready(uint32_t oldest, uint32_t number, uint16_t order)
{
    return order == SEG_ORDER_ANY || !order_before(oldest, number - order);
}
