/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usctp_bundle.c - joins consecutive packets of DATA chunks. */
#include "sctp/io/usctp_bundle.h"

#include <string.h>

#include "sctp/packet.h"

enum { SAME_HEAD = 8 }; /* octets of ports and verification tag */

bool bundle_add(struct bundle *b, uint8_t *p, uint32_t n)
{
    uint32_t tsn, next;

    if (!packet_read_data(p, n, &tsn, &next))
        return false;
    if (!b->packets) {
        *b = (struct bundle){.at = p, .octets = n, .packets = 1, .next = next};
        return true;
    }
    if (tsn != b->next || memcmp(p, b->at, SAME_HEAD) != 0)
        return false;
    memmove(b->at + b->octets, p + PACKET_COMMON, n - PACKET_COMMON);
    b->octets += n - PACKET_COMMON;
    b->next = next;
    b->packets++;
    return true;
}
