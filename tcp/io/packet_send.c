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
static void write_raw(struct packet_link *l, struct utcp_packet *p, uint32_t packets)
{
    struct iovec piece[RAWIP_BATCH][1 + UTCP_SPANS];
    struct rawip_packet packet[RAWIP_BATCH];
    uint32_t mtu;

    for (uint32_t i = 0; i < packets; i++) {
        piece[i][0] = (struct iovec){p[i].head, p[i].head_length};
        for (uint32_t j = 0; j < p[i].spans; j++)
            piece[i][1 + j] = (struct iovec){(void *)(uintptr_t)p[i].span[j].at, p[i].span[j].length};
        packet[i] = (struct rawip_packet){piece[i], 1 + p[i].spans};
    }
    if (rawip_send(&l->device->rawip, packet, packets, l->scope) != -EMSGSIZE)
        return;
    mtu = repair_mtu(l->place_fd);
    if (mtu)
        utcp_path_narrowed(&l->tcp, mtu);
}

/* Octets of a packet stay where they are until they are acknowledged, so packets can be collected for a call. */
static void send_raw(struct packet_link *l)
{
    struct utcp_packet p[RAWIP_BATCH];
    uint32_t packets;

    do {
        packets = 0;
        while (packets < RAWIP_BATCH && utcp_output(&l->tcp, &p[packets], reactor_now_us()))
            packets += !packet_is_lost(l->device);
        if (packets)
            write_raw(l, p, packets);
    } while (packets == RAWIP_BATCH);
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
    if (l->device->attr.hand_off)
        send_raw(l);
    else
        packet_send_send_all(l);
    at_us = utcp_deadline(&l->tcp);
    if (l->gone_us && l->gone_us < at_us)
        at_us = l->gone_us;
    reactor_set_timer(l->link.reactor, &l->timer, at_us);
}
