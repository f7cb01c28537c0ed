/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_read.c - octets arrive in any order: the connection takes what it can at once, the rest waits in the link's
 * ring. The caller holds the endpoint, if there is one. */
#include <assert.h>
#include <string.h>

#include "tcp/io/packet_device.h"
#include "endpoint/transfer.h"

void packet_attach(struct link *link)
{
    struct endpoint *endpoint = link->owner;

    conn_attach_reorder(&endpoint->conn, packet_link_of(link)->reorder);
}

/* Has framing begun, behind the start-up? Then records where. */
static bool is_framed(struct packet_link *l, const struct conn *c)
{
    if (!l->framed && !life_in_startup(&c->life)) {
        l->framed = true;
        l->base = l->read_to - c->agreed.rx_pos;
    }
    return l->framed;
}

/* Returns the stream position up to which everything was read. */
static uint64_t read_to(const struct packet_link *l, const struct conn *c)
{
    return l->framed ? l->base + c->agreed.rx_pos : l->read_to;
}

/* Keeps octets in the ring. Returns false if they lie beyond it. */
static bool packet_read_keep(struct packet_link *l, const struct conn *c, uint64_t position, const uint8_t *from,
                             size_t n)
{
    if (position + n > (c ? read_to(l, c) : 0) + l->in_octets)
        return false;
    memcpy(l->in + (position & (l->in_octets - 1)), from, n);
    return true;
}

/* Offers octets to the connection. They belong to the device's buffer, so they may be modified. */
static enum conn_verdict packet_read_take(struct packet_link *l, struct conn *c, const struct utcp_arrival *a,
                                          uint32_t at, size_t *octets)
{
    uint8_t *p = (uint8_t *)(uintptr_t)a->data + at;

    *octets = a->length - at;
    if (!c || !is_framed(l, c))
        return CONN_KEEP;
    return conn_rx_out_of_order(c, p, *octets, a->position + at - l->base, octets, reactor_now_us());
}

struct utcp_verdict packet_arrived(void *user, const struct utcp_arrival *a)
{
    struct packet_link *l = user;
    struct endpoint *endpoint = l->link.owner;
    struct conn *c = endpoint ? &endpoint->conn : NULL;
    struct utcp_verdict v = {0, 0};
    size_t octets;

    l->is_unwanted |= l->gone_us != 0;
    for (; v.taken < a->length && !l->gone_us; v.taken += (uint32_t)octets) {
        enum conn_verdict verdict = packet_read_take(l, c, a, v.taken, &octets);

        assert(octets && octets <= a->length - v.taken);
        if (verdict == CONN_REFUSED ||
            (verdict == CONN_KEEP && !packet_read_keep(l, c, a->position + v.taken, a->data + v.taken, octets)))
            break;
        if (verdict == CONN_KEEP)
            v.kept += (uint32_t)octets;
        else if (a->early)
            l->placed_early += octets;
    }
    return v;
}

/* Finds the next kept octets in order: from *from to *to. Returns false if there are none. */
static bool next_kept(struct packet_link *l, struct conn *c, uint64_t *from, uint64_t *to)
{
    const struct seg *taken;

    *to = utcp_received(&l->tcp);
    *from = l->read_to;
    if (is_framed(l, c)) {
        *from = l->base + conn_advance(c, *to - l->base, reactor_now_us());
        taken = reorder_first(c->reorder);
        if (taken && l->base + taken->begin < *to)
            *to = l->base + taken->begin;
    }
    return *from < *to;
}

static void read_kept(struct packet_link *l, struct conn *c)
{
    uint64_t from, to;
    size_t eaten = 1;

    while (eaten && next_kept(l, c, &from, &to)) {
        bool was_framed = l->framed;

        eaten = conn_rx(c, l->in + (from & (l->in_octets - 1)), to - from, reactor_now_us());
        if (!was_framed)
            l->read_to += eaten;
        is_framed(l, c);
        utcp_release(&l->tcp, eaten);
    }
}

bool packet_present(struct link *link)
{
    struct endpoint *endpoint = link->owner;
    struct packet_link *l = packet_link_of(link);
    struct conn *c = &endpoint->conn;
    uint64_t before = read_to(l, c), received;

    read_kept(l, c);
    received = utcp_received(&l->tcp);
    if (c->life.state >= CONN_TERMINATING) {
        utcp_release(&l->tcp, l->tcp.rx.kept); /* octets after the end are dropped */
        utcp_limit(&l->tcp, UINT64_MAX);
    } else {
        packet_ring_grow_in(l, read_to(l, c));
        utcp_limit(&l->tcp, read_to(l, c) + l->in_octets / 2);
    }
    if (conn_wants(c, 0) & CONN_RX && utcp_ended(&l->tcp))
        conn_rx_end(c, received - read_to(l, c), reactor_now_us());
    else if (conn_wants(c, 0) & CONN_RX && l->tcp.state == UTCP_CLOSED)
        conn_lost(c, transfer_fault_of(l->tcp.error));
    return read_to(l, c) != before;
}
