/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa_start.c - a start-up frame of a peer, whole and in every prefix, and the negotiation with that peer.
 *
 * Input: an octet with our choices, two with our IRD and ORD, then the frame. */
#include <assert.h>
#include <string.h>

#include "wire/mpa_start.h"

enum { IS_REPLY = 1, OPTIONS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static void check_same(const struct mpa_frame *a, const struct mpa_frame *b)
{
    assert(a->reply == b->reply && a->markers == b->markers && a->crc == b->crc && a->reject == b->reject);
    assert(a->enhanced == b->enhanced && a->peer_to_peer == b->peer_to_peer && a->rtr == b->rtr);
    assert(a->ird == b->ird && a->ord == b->ord && a->revision == b->revision);
    assert(a->private_length == b->private_length);
    assert(memcmp(a->private_data, b->private_data, a->private_length) == 0);
}

static void send_back(const struct mpa_frame *frame, size_t octets)
{
    uint8_t buffer[MPA_FRAME_MAX];
    struct mpa_frame again;
    size_t need;

    assert(mpa_frame_encode(buffer, frame) == octets);
    assert(mpa_frame_decode(&again, frame->reply, buffer, octets, &need) == (int)octets && need == octets);
    check_same(frame, &again);
}

/* Whatever the peer asks for, the reply can be encoded, and neither side has more reads outstanding than the other
 * accepts. */
static void agree(const struct mpa_frame *peer, unsigned rtr, uint16_t own_ird, uint16_t own_ord)
{
    struct mpa_frame reply = {.reply = true, .revision = peer->revision};
    uint8_t buffer[MPA_FRAME_MAX];
    uint16_t ird, ord;

    mpa_agree_responder(peer, own_ird, own_ord, rtr, &reply, &ird, &ord);
    assert(ird == own_ird && ord <= own_ord && reply.enhanced == peer->enhanced);
    assert(!peer->enhanced || peer->ird == MPA_NO_NEGOTIATION || ord <= peer->ird);
    assert(mpa_frame_encode(buffer, &reply) == MPA_FRAME_HEAD + (peer->enhanced ? MPA_ENHANCED : 0U));
    if (mpa_agree_initiator(peer, own_ird, own_ord, &ird, &ord) == FAULT_NONE)
        assert(!peer->enhanced || peer->ord == MPA_NO_NEGOTIATION || peer->ord <= ird);
    assert(!peer->enhanced || peer->ird == MPA_NO_NEGOTIATION || ord <= peer->ird);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct mpa_frame frame, early;
    size_t n, need = 0, limit;
    bool reply;
    int eaten;

    if (length < OPTIONS)
        return 0;
    reply = input[0] & IS_REPLY;
    n = length - OPTIONS;
    eaten = mpa_frame_decode(&frame, reply, input + OPTIONS, n, &need);
    limit = eaten > 0 ? (size_t)eaten : n < MPA_FRAME_HEAD ? n : MPA_FRAME_HEAD;
    assert(eaten <= (int)n && (eaten != 0 || (need > n && need <= MPA_FRAME_MAX)));
    assert(eaten >= 0 || -eaten < FAULTS);
    /* No prefix of a valid frame is refused or taken for a whole frame. */
    for (size_t k = 0; k < limit; k++) {
        int got = mpa_frame_decode(&early, reply, input + OPTIONS, k, &need);

        assert(got == 0 ? need > k && need <= MPA_FRAME_MAX : eaten == got);
    }
    if (eaten > 0) {
        assert(frame.private_data + frame.private_length == input + OPTIONS + eaten);
        send_back(&frame, (size_t)eaten);
        agree(&frame, input[0] >> 1 & 7, input[1], input[2]);
    }
    return 0;
}
