/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa_start.h - MPA's Request and Reply frames and what two of them agree on (RFC 5044 7.1, RFC 6581). */
#ifndef RDDP_WIRE_MPA_START_H
#define RDDP_WIRE_MPA_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"

enum {
    MPA_PRIVATE_MAX = 512, /* octets of private data, the enhanced ones included */
    MPA_FRAME_HEAD = 20,
    MPA_FRAME_MAX = MPA_FRAME_HEAD + MPA_PRIVATE_MAX,
    MPA_ENHANCED = 4,            /* octets of private data that RFC 6581 takes */
    MPA_NO_NEGOTIATION = 0x3fff, /* IRD or ORD that is not to be negotiated */
};

/* Ready-to-receive messages of zero length (RFC 6581 9.2). The numbers are those of enum rddp_rtr. */
enum mpa_rtr { MPA_RTR_SEND = 1, MPA_RTR_WRITE = 2, MPA_RTR_READ = 4 };

struct mpa_frame {
    bool reply;
    bool markers;      /* M: the sender of this frame wants them in what it receives */
    bool crc;          /* C */
    bool reject;       /* R */
    bool enhanced;     /* S: ird, ord, peer_to_peer and rtr are said */
    bool peer_to_peer; /* A */
    unsigned rtr;      /* B, C, D as enum mpa_rtr bits; only with peer_to_peer */
    uint16_t ird, ord; /* 14 bits */
    uint8_t revision;
    const uint8_t *private_data; /* without the enhanced octets; borrowed */
    uint16_t private_length;
};

/* Takes a frame from the front of a stream. > 0: octets eaten; 0: more are needed, *need in all as far as known; < 0:
 * minus FAULT_START_KEY (as soon as one octet differs), FAULT_START_REVISION (above 2), FAULT_START_LENGTH or
 * FAULT_START_ENHANCED. */
int mpa_frame_decode(struct mpa_frame *frame, bool reply, const uint8_t *p, size_t n, size_t *need);

/* Writes a frame into `out` (MPA_FRAME_MAX octets; private_length fits, asserted). Returns its octets. */
size_t mpa_frame_encode(uint8_t *out, const struct mpa_frame *frame);

/* Responder: from the request and our own room for reads, fills the reply's enhanced part (ird, ord, peer_to_peer, the
 * chosen rtr bits) and what is in force for us. `rtr` are the bits we can take; a peer-to-peer request without a common
 * one gets what we can (RFC 6581 9.2). */
void mpa_agree_responder(const struct mpa_frame *request, uint16_t own_ird, uint16_t own_ord, unsigned rtr,
                         struct mpa_frame *reply, uint16_t *ird, uint16_t *ord);

/* Initiator: what is in force for us after the reply. FAULT_IRD if the responder's ORD is above what we can take (RFC
 * 6581 9.1). */
enum fault mpa_agree_initiator(const struct mpa_frame *reply, uint16_t own_ird, uint16_t own_ord, uint16_t *ird,
                               uint16_t *ord);

/* One of the ready-to-receive messages both can do (Write, then Send, then Read), or 0. */
unsigned mpa_choose_rtr(unsigned own, unsigned peer);

#endif
