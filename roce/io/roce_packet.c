/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_packet.c - packets of a batch, out and in. */
#include "roce/io/roce_packet.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32.h"

enum {
    PKEY_BITS = 0x7fff,
    PKEY_FULL = 0x8000, /* a full member of its partition */
    SMALL = 128,        /* octets of a packet that is copied before its ICRC is computed */
};

/* Where the next octet of a payload lies. */
struct payload {
    const struct span *span;
    uint32_t offset;
};

/* The next octets of it, up to the end of a span, and at most *length; *length is then how many they are. */
static const uint8_t *next_piece(struct payload *from, uint32_t *length)
{
    const uint8_t *at = from->span->at + from->offset;
    uint32_t rest = from->span->length - from->offset;

    if (*length < rest) {
        from->offset += *length;
        return at;
    }
    *length = rest;
    from->span++;
    from->offset = 0;
    return at;
}

/* A CRC of many octets costs little more than one of a few. */
static void put_small(struct udp *udp, const struct icrc_path *path, const struct rc_packet *packet,
                      struct payload *from, uint8_t *p, uint32_t octets)
{
    uint8_t *at = put_bytes(p, packet->head, packet->head_length);

    for (uint32_t left = packet->length; left;) {
        uint32_t n = left;
        const uint8_t *piece = next_piece(from, &n);

        at = put_bytes(at, piece, n);
        left -= n;
    }
    memset(at, 0, bth_pad(packet->length));
    icrc_seal(path, (uint16_t)udp_place(udp), p, octets);
}

/* Copies the payload behind its headers while its ICRC is computed: it may change meanwhile. */
static uint32_t copy_payload(struct payload *from, uint32_t crc, uint8_t *p, uint32_t length)
{
    while (length) {
        uint32_t n = length;
        const uint8_t *piece = next_piece(from, &n);

        crc = crc32_copy(crc, p, piece, n);
        p += n;
        length -= n;
    }
    return crc;
}

static void put_next(struct udp *udp, const struct sockaddr_storage *to, const struct icrc_path *path,
                     const struct rc_packet *packet, struct payload *from)
{
    uint32_t pad = bth_pad(packet->length), octets = packet->head_length + packet->length + pad + ICRC_OCTETS, crc;
    uint8_t *p = udp_buffer(udp, to, octets);

    if (octets <= SMALL) {
        put_small(udp, path, packet, from, p, octets);
        udp_put(udp, octets);
        return;
    }
    crc = icrc_begin_head(path, (uint16_t)udp_place(udp), octets, packet->head, packet->head_length);
    p = put_bytes(p, packet->head, packet->head_length);
    crc = copy_payload(from, crc, p, packet->length);
    p += packet->length;
    memset(p, 0, pad);
    put32le(p + pad, pad ? crc32(crc, p, pad) : crc);
    udp_put(udp, octets);
}

void roce_packet_put(struct udp *udp, const struct sockaddr_storage *to, const struct icrc_path *path,
                     struct rc_packet *packet)
{
    roce_packet_put_train(udp, to, path, packet, 1);
}

void roce_packet_put_train(struct udp *udp, const struct sockaddr_storage *to, const struct icrc_path *path,
                           struct rc_packet *packet, uint32_t packets)
{
    struct payload from = {.span = packet->emit.span};

    for (; packets; packets--) {
        put_next(udp, to, path, packet, &from);
        bth_advance(packet->head);
    }
}

static bool is_of_partition(uint16_t own, uint16_t pkey)
{
    return !((pkey ^ own) & PKEY_BITS) && (pkey | own) & PKEY_FULL;
}

enum roce_packet_result roce_packet_next(struct roce_host *host, const struct icrc_path *path,
                                         const struct roce_run *run, uint16_t pkey, uint32_t *at, struct bth *b,
                                         uint32_t *octets)
{
    const uint8_t *p = run->at + *at;
    uint32_t left = run->octets - *at;

    *octets = left < run->each ? left : run->each;
    *at += *octets;
    if (*octets < BTH_OCTETS + ICRC_OCTETS || bth_decode(b, p, *octets) != BTH_OK)
        return ROCE_PACKET_MALFORMED;
    if (!roce_host_verifies(host, path, (*at - *octets) / run->each, p, *octets))
        return ROCE_PACKET_ICRC;
    return is_of_partition(pkey, b->pkey) ? ROCE_PACKET_OK : ROCE_PACKET_MALFORMED;
}
