/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_send.c - what links have to say becomes packets. */
#include <string.h>

#include "api/packet.h"

enum { TCP_CHECKSUM_AT = 16 };

bool packet_is_lost(struct rddp_device *device)
{
    uint64_t random;

    if (!device->attr.lose)
        return false;
    random = atomic_load_explicit(&device->random, memory_order_relaxed);
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    atomic_store_explicit(&device->random, random, memory_order_relaxed);
    return (random >> 33) % PACKET_CHANCES < device->attr.lose;
}

void packet_write(struct rddp_device *device, const struct utcp_packet *p)
{
    struct span span[1 + UTCP_SPANS] = {{p->head, p->head_length}};
    struct tun_note note = {.partial = p->partial, .start = (uint16_t)p->ip_length, .offset = TCP_CHECKSUM_AT};

    memcpy(span + 1, p->span, p->spans * sizeof(span[0]));
    /* A packet that the device does not take is lost, as on any path. */
    if (!packet_is_lost(device))
        (void)tun_send(device->fd, span, 1 + p->spans, &note);
}

/* What was acknowledged need not be kept any more. */
static void forget_acked(struct packet_link *l)
{
    uint64_t acked = utcp_acked(&l->tcp);

    while (l->units && l->unit_end[l->unit_head & (PACKET_UNITS - 1)] <= acked) {
        l->unit_head++;
        l->units--;
    }
}

void packet_flush(struct packet_link *l)
{
    struct utcp_packet p;
    uint64_t at_us;

    forget_acked(l);
    while (utcp_output(&l->tcp, &p, loop_now_us()))
        packet_write(l->device, &p);
    at_us = utcp_deadline(&l->tcp);
    if (l->gone_us && l->gone_us < at_us)
        at_us = l->gone_us;
    loop_set_timer(l->link.loop, &l->timer, at_us);
}
