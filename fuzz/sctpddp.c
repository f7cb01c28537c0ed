/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctpddp.c - messages of a peer in an association, judged by the peer's indication.
 *
 * Input: an octet with the indication, an octet whose lowest bit says that U, B and E are set, then one message. */
#include <assert.h>
#include <string.h>

#include "wire/sctpddp.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static void one_message(enum sctpddp_adaptation sender, bool whole, const uint8_t *p, size_t n)
{
    uint8_t again[SCTPDDP_HEAD_MAX];
    struct sctpddp_chunk chunk;
    enum fault fault = sctpddp_decode(sender, &chunk, p, n);

    if (fault) {
        assert(fault == FAULT_CHUNK_SHORT && n < sctpddp_head(sender));
        return;
    }
    assert(chunk.data == p + sctpddp_head(sender) && chunk.data + chunk.length == p + n);
    assert(sctpddp_encode(sender, &chunk, again) == sctpddp_head(sender));
    assert(memcmp(again, p, sctpddp_head(sender)) == 0);
    fault = sctpddp_judge(sender, &chunk, whole);
    if (fault)
        assert(fault >= FAULT_CHUNK_R1 && fault <= FAULT_CHUNK_FLAGS);
    else
        assert(sctpddp_may_send(sender, chunk.mode) && (whole || !chunk.mode));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    enum sctpddp_adaptation found;

    if (length < 2)
        return 0;
    if (sctpddp_get_parameter(input, length, &found))
        assert(found != SCTPDDP_PLAIN && found < SCTPDDP_ADAPTATIONS);
    one_message((enum sctpddp_adaptation)(input[0] % SCTPDDP_ADAPTATIONS), input[1] & 1, input + 2, length - 2);
    return 0;
}
