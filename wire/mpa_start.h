/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa_start.h - MPA's Request and Reply frames, and the parameters two of them agree on (RFC 5044 7.1, RFC 6581). */
#ifndef RDDP_WIRE_MPA_START_H
#define RDDP_WIRE_MPA_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"

enum {
    MPA_PRIVATE_MAX = 512, /* octets of private data, including the four of RFC 6581 */
    MPA_FRAME_HEAD = 20,
    MPA_FRAME_MAX = MPA_FRAME_HEAD + MPA_PRIVATE_MAX,
    MPA_ENHANCED = 4,            /* octets of private data that RFC 6581 uses */
    MPA_NO_NEGOTIATION = 0x3fff, /* value of an IRD or ORD that is not negotiated */
};

/* Ready-to-receive messages of zero length (RFC 6581 9.2). The numbers equal those of enum rddp_rtr. */
enum mpa_rtr { MPA_RTR_SEND = 1, MPA_RTR_WRITE = 2, MPA_RTR_READ = 4 };

/* One start-up frame. M, C, R and S are bits of the flags octet (RFC 5044 7.1.1, RFC 6581 6); A to D are the control
 * flags in the two words of RFC 6581 9. The C of the flags octet and control flag C are different bits. */
struct mpa_frame {
    bool reply;
    bool markers;      /* M: the sender of this frame wants markers in what it receives */
    bool crc;          /* C of the flags octet: the sender wants CRCs */
    bool reject;       /* R: the responder rejects the connection */
    bool enhanced;     /* S: ird, ord, peer_to_peer and rtr are present */
    bool peer_to_peer; /* control flag A */
    unsigned rtr;      /* control flags B, C and D as enum mpa_rtr bits; 0 without peer_to_peer */
    uint16_t ird, ord; /* 14 bits each */
    uint8_t revision;
    const uint8_t *private_data; /* behind the enhanced octets; borrowed */
    uint16_t private_length;
};

/* Decodes a frame at the start of a stream; `reply` says which kind is expected.
 * > 0: the octets consumed. frame->private_data points into `p`.
 * 0: more octets are needed. *need is the total needed as far as it is known.
 * < 0: minus FAULT_START_KEY (as soon as one octet differs), FAULT_START_REVISION (above 2), FAULT_START_LENGTH or
 * FAULT_START_ENHANCED. */
int mpa_frame_decode(struct mpa_frame *frame, bool reply, const uint8_t *p, size_t n, size_t *need);

/* Writes a frame to `out`, which has room for MPA_FRAME_MAX octets, and returns its octets. Asserts that the private
 * data fits. */
size_t mpa_frame_encode(uint8_t *out, const struct mpa_frame *frame);

/* Responder: computes the enhanced fields of the reply (ird, ord, peer_to_peer, rtr) and the IRD and ORD in force at
 * this end, from the request and this end's limits. `rtr` has the RTR messages that this end can receive. If a
 * peer-to-peer request has none of them, the reply offers all of `rtr` (RFC 6581 9.2). */
void mpa_agree_responder(const struct mpa_frame *request, uint16_t own_ird, uint16_t own_ord, unsigned rtr,
                         struct mpa_frame *reply, uint16_t *ird, uint16_t *ord);

/* Initiator: computes the IRD and ORD in force at this end from the reply. Returns FAULT_IRD if the responder's ORD
 * exceeds own_ird (RFC 6581 9.1). */
enum fault mpa_agree_initiator(const struct mpa_frame *reply, uint16_t own_ird, uint16_t own_ord, uint16_t *ird,
                               uint16_t *ord);

/* Returns one ready-to-receive message that both ends support, in the order Write, Send, Read; 0 if there is none. */
unsigned mpa_choose_rtr(unsigned own, unsigned peer);

#endif
