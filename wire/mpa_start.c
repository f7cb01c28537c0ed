/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa_start.c - converts Request and Reply frames to a struct and back, and computes what they agree on. */
#include "wire/mpa_start.h"

#include <assert.h>

#include "base/bytes.h"

enum { KEY = 16, FLAGS = 16, REVISION = 17, PD_LENGTH = 18 };

/* Bits of the octet behind the key. The others are reserved: sent as zero and ignored. */
enum { MARKERS = 0x80, CRC = 0x40, REJECT = 0x20, ENHANCED = 0x10 };

/* The control flags of RFC 6581 9, in two words above 14 bits of IRD and of ORD. */
enum { PEER_TO_PEER = 0x8000, RTR_SEND = 0x4000, RTR_WRITE = 0x8000, RTR_READ = 0x4000, DEPTH = 0x3fff };

enum { REVISION_MAX = 2 };

static const uint8_t *key(bool reply)
{
    return (const uint8_t *)(reply ? "MPA ID Rep Frame" : "MPA ID Req Frame");
}

/* Without control flag A the other three are ignored (RFC 6581 9.2). */
static void decode_enhanced(struct mpa_frame *frame, const uint8_t *p)
{
    uint16_t in = get16(p);
    uint16_t out = get16(p + 2);

    frame->ird = in & DEPTH;
    frame->ord = out & DEPTH;
    frame->peer_to_peer = in & PEER_TO_PEER;
    if (frame->peer_to_peer)
        frame->rtr = (in & RTR_SEND ? MPA_RTR_SEND : 0U) | (out & RTR_WRITE ? MPA_RTR_WRITE : 0U) |
                     (out & RTR_READ ? MPA_RTR_READ : 0U);
}

int mpa_frame_decode(struct mpa_frame *frame, bool reply, const uint8_t *p, size_t n, size_t *need)
{
    uint16_t length;

    if (memcmp(p, key(reply), n < KEY ? n : KEY))
        return -FAULT_START_KEY;
    if (n > REVISION && p[REVISION] > REVISION_MAX)
        return -FAULT_START_REVISION;
    *need = MPA_FRAME_HEAD;
    if (n < *need)
        return 0;
    length = get16(p + PD_LENGTH);
    if (length > MPA_PRIVATE_MAX)
        return -FAULT_START_LENGTH;
    *frame = (struct mpa_frame){
        .reply = reply,
        .markers = p[FLAGS] & MARKERS,
        .crc = p[FLAGS] & CRC,
        .reject = reply && p[FLAGS] & REJECT,
        .enhanced = p[FLAGS] & ENHANCED && p[REVISION] >= 2, /* reserved before revision 2 */
        .revision = p[REVISION],
        .private_data = p + MPA_FRAME_HEAD,
        .private_length = length,
    };
    if (frame->enhanced && length < MPA_ENHANCED)
        return -FAULT_START_ENHANCED;
    *need += length;
    if (n < *need)
        return 0;
    if (frame->enhanced) {
        decode_enhanced(frame, frame->private_data);
        frame->private_data += MPA_ENHANCED;
        frame->private_length = (uint16_t)(length - MPA_ENHANCED);
    }
    return (int)*need;
}

static uint8_t *encode_enhanced(uint8_t *p, const struct mpa_frame *frame)
{
    unsigned rtr = frame->peer_to_peer ? frame->rtr : 0;

    p = put16(p,
              (uint16_t)((frame->peer_to_peer ? PEER_TO_PEER : 0) | (rtr & MPA_RTR_SEND ? RTR_SEND : 0) | frame->ird));
    return put16(p,
                 (uint16_t)((rtr & MPA_RTR_WRITE ? RTR_WRITE : 0) | (rtr & MPA_RTR_READ ? RTR_READ : 0) | frame->ord));
}

size_t mpa_frame_encode(uint8_t *out, const struct mpa_frame *frame)
{
    uint16_t length = (uint16_t)(frame->private_length + (frame->enhanced ? MPA_ENHANCED : 0));
    uint8_t *p = put_bytes(out, key(frame->reply), KEY);

    assert(length <= MPA_PRIVATE_MAX && frame->private_length <= MPA_PRIVATE_MAX);
    assert(!frame->enhanced || (frame->revision >= 2 && frame->ird <= DEPTH && frame->ord <= DEPTH));
    p = put8(p, (uint8_t)((frame->markers ? MARKERS : 0) | (frame->crc ? CRC : 0) | (frame->reject ? REJECT : 0) |
                          (frame->enhanced ? ENHANCED : 0)));
    p = put8(p, frame->revision);
    p = put16(p, length);
    if (frame->enhanced)
        p = encode_enhanced(p, frame);
    return (size_t)(put_bytes(p, frame->private_data, frame->private_length) - out);
}

/* --- what two frames agree on (RFC 6581 9) ------------------------------------------------------------------- */

/* MPA_NO_NEGOTIATION is above every real IRD or ORD, so it limits nothing. */
static uint16_t mpa_start_at_most(uint16_t own, uint16_t peer)
{
    return own < peer ? own : peer;
}

static uint16_t mpa_start_answer(uint16_t asked, uint16_t ours)
{
    return asked == MPA_NO_NEGOTIATION ? MPA_NO_NEGOTIATION : ours;
}

void mpa_agree_responder(const struct mpa_frame *request, uint16_t own_ird, uint16_t own_ord, unsigned rtr,
                         struct mpa_frame *reply, uint16_t *ird, uint16_t *ord)
{
    unsigned chosen = mpa_choose_rtr(rtr, request->rtr);

    *ird = own_ird;
    *ord = request->enhanced ? mpa_start_at_most(own_ord, request->ird) : own_ord;
    reply->enhanced = request->enhanced;
    if (!request->enhanced)
        return;
    reply->ird = mpa_start_answer(request->ord, *ird);
    reply->ord = mpa_start_answer(request->ird, *ord);
    reply->peer_to_peer = request->peer_to_peer;
    reply->rtr = !request->peer_to_peer ? 0 : chosen ? chosen : rtr;
}

enum fault mpa_agree_initiator(const struct mpa_frame *reply, uint16_t own_ird, uint16_t own_ord, uint16_t *ird,
                               uint16_t *ord)
{
    *ird = own_ird;
    *ord = own_ord;
    if (!reply->enhanced)
        return FAULT_NONE;
    *ord = mpa_start_at_most(own_ord, reply->ird);
    return reply->ord == MPA_NO_NEGOTIATION || reply->ord <= own_ird ? FAULT_NONE : FAULT_IRD;
}

/* A Write comes first because it uses nothing of the responder: neither a receive nor a place in its queue of Reads. */
unsigned mpa_choose_rtr(unsigned own, unsigned peer)
{
    static const unsigned order[] = {MPA_RTR_WRITE, MPA_RTR_SEND, MPA_RTR_READ};

    for (unsigned i = 0; i < 3; i++)
        if (own & peer & order[i])
            return order[i];
    return 0;
}
