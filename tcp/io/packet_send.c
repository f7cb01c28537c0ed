/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_send.c - sends what links have to send, as packets of the device. */
#include <errno.h>
#include <string.h>

#include "tcp/io/packet_device.h"
#include "tcp/io/repair.h"
#include "tcp/io/tun_packet.h"

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

void packet_write(struct rddp_device *device, const struct utcp_packet *p, uint32_t each)
{
    if (!packet_is_lost(device))
        tun_send_packet(device->fd, p, each);
}

/* Sends by the host's own routes. When the first hop has become too narrow, no router sends a message about it. */
static void write_raw(struct packet_link *l, const struct utcp_packet *p)
{
    struct span span[1 + UTCP_SPANS] = {{p->head, p->head_length}};
    uint32_t mtu;

    memcpy(span + 1, p->span, p->spans * sizeof(span[0]));
    if (packet_is_lost(l->device) || rawip_send(&l->device->rawip, span, 1 + p->spans, l->scope) != -EMSGSIZE)
        return;
    mtu = repair_mtu(l->place_fd);
    if (mtu)
        utcp_path_narrowed(&l->tcp, mtu);
}

/* Drops the records of units that were acknowledged. */
static void forget_acked(struct packet_link *l)
{
    uint64_t acked = utcp_acked(&l->tcp);

    while (l->units && l->unit_end[l->unit_head & (PACKET_UNITS - 1)] <= acked) {
        l->unit_head++;
        l->units--;
    }
}

/* Joins segments of equal length into one packet if the device cuts them again. */
static void packet_send_send_all(struct packet_link *l)
{
    struct rddp_device *device = l->device;
    struct utcp_packet p, next;
    uint32_t each = 0;
    bool waits = false;

    while (utcp_output(&l->tcp, &next, reactor_now_us())) {
        if (device->attr.hand_off) {
            write_raw(l, &next);
            continue;
        }
        if (waits && device->joins && utcp_packet_join(&p, &next, each))
            continue;
        if (waits)
            packet_write(device, &p, each);
        p = next;
        each = p.length;
        waits = true;
    }
    if (waits)
        packet_write(device, &p, each);
}

void packet_flush(struct packet_link *l)
{
    uint64_t at_us;

    forget_acked(l);
    packet_send_send_all(l);
    at_us = utcp_deadline(&l->tcp);
    if (l->gone_us && l->gone_us < at_us)
        at_us = l->gone_us;
    reactor_set_timer(l->link.reactor, &l->timer, at_us);
}
