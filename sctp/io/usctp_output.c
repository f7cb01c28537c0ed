/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_output.c - the packets of the stack on their way out: small messages share packets. */
#ifdef RDDP_USRSCTP

#include "sctp/io/usctp_inner.h"

#include <errno.h>
#include <string.h>

static void put_packet(struct usctp_path *path, const uint8_t *p, uint32_t n)
{
    uint8_t *at = udp_buffer(&path->port->udp, &path->peer, n);

    packet_seal(at, p, n);
    udp_put(&path->port->udp, n);
}

/* Sends what is in the pack, if anything is. */
static void close_pack(void)
{
    struct pack *pack = &usctp_stack.pack;

    if (pack->octets)
        put_packet(usctp_stack.packed, pack->at, pack->octets);
    pack->octets = 0;
}

/* Packs a packet of DATA chunks that leaves space for others, or that can follow others. */
static void put_data(struct usctp_path *path, const uint8_t *p, uint32_t n)
{
    struct pack *pack = &usctp_stack.pack;
    uint32_t at = PACKET_COMMON;

    if (usctp_stack.packed != path || !pack_takes(pack, p))
        close_pack();
    usctp_stack.packed = path;
    pack->size = path->port->packet_max;
    while ((at = pack_fill(pack, p, n, at)) < n || pack_is_full(pack))
        close_pack();
}

/* Sends a packet of the stack to a path. If it is lost, SCTP retransmits it. */
int usctp_output(void *addr, void *buffer, size_t length, uint8_t tos, uint8_t set_df)
{
    struct usctp_path *path = addr;
    uint32_t tsn, next, n = (uint32_t)length;

    (void)tos;
    (void)set_df;
    if (!path->port || path->port->silent || length < PACKET_COMMON || length > UDP_BATCH_OCTETS)
        return EINVAL;
    if (packet_source(buffer) == path->port->inner)
        packet_set_source(buffer, path->port->sctp_port);
    if (n <= path->port->packet_max && (usctp_stack.pack.octets || n <= path->port->packet_max - PACK_CHUNK_MIN) &&
        packet_read_data(buffer, n, &tsn, &next)) {
        put_data(path, buffer, n);
        return 0;
    }
    close_pack();
    packet_read_sack(buffer, length, &path->gaps);
    put_packet(path, buffer, n);
    return 0;
}

void usctp_send(struct usctp_port *port)
{
    close_pack();
    udp_flush(&port->udp);
}

#endif
