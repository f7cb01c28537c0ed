/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_pack.c - fills a packet with DATA chunks. */
#include "sctp/io/usctp_pack.h"

#include <string.h>

#include "base/bytes.h"
#include "sctp/packet.h"

enum { PACK_SAME = 8 }; /* octets of ports and verification tag */

bool pack_takes(const struct pack *pack, const uint8_t *p)
{
    return !pack->octets || memcmp(pack->at, p, PACK_SAME) == 0;
}

bool pack_is_full(const struct pack *pack)
{
    return pack->size - pack->octets < PACK_CHUNK_MIN;
}

uint32_t pack_fill(struct pack *pack, const uint8_t *p, uint32_t n, uint32_t at)
{
    uint32_t end = at, head = pack->octets ? 0 : PACKET_COMMON;
    uint32_t space = pack->size - pack->octets - head;

    while (end < n) {
        uint32_t octets = ((uint32_t)get16(p + end + 2) + 3) & ~3u;

        if (octets > n - end || octets > space - (end - at))
            break;
        end += octets;
    }
    if (end == at)
        return at;
    memcpy(pack->at + pack->octets, p, head);
    memcpy(pack->at + pack->octets + head, p + at, end - at);
    pack->octets += head + end - at;
    return end;
}
