/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tun_packet.c - what the device has to know of a packet of our TCP. */
#include "tcp/io/tun_packet.h"

#include <string.h>

#include "tcp/io/tun.h"

enum { TCP_CHECKSUM_AT = 16 };

void tun_send_packet(int fd, const struct utcp_packet *p, uint32_t each)
{
    struct span span[1 + UTCP_SPANS] = {{p->head, p->head_length}};
    struct tun_note note = {.partial = p->partial, .start = (uint16_t)p->ip_length, .offset = TCP_CHECKSUM_AT};

    if (p->length > each) {
        note.each = (uint16_t)each;
        note.head = (uint16_t)p->head_length;
        note.v6 = p->head[0] >> 4 == 6;
    }
    memcpy(span + 1, p->span, p->spans * sizeof(span[0]));
    (void)tun_send(fd, span, 1 + p->spans, &note);
}
