/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpcrdma.c - any message, decoded as a responder and as a requester. What is accepted is sane and encodes to the same
 * octets. */
#include <assert.h>
#include <string.h>

#include "rpc/private.h"
#include "rpc/rpcrdma.h"
#include "rpc/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static void check_same(const struct rpcrdma *h, const uint8_t *input, size_t length)
{
    static uint8_t buffer[RPCRDMA_HEADER_MAX];

    assert(h->length <= length && h->segments <= RPCRDMA_SEGMENTS && h->writes <= RPCRDMA_CHUNKS);
    assert(rpcrdma_size(h) == h->length);
    assert(rpcrdma_encode(h, buffer, sizeof(buffer)) == h->length);
    assert(memcmp(buffer, input, h->length) == 0);
}

/* Fills each chunk with half of its length and checks the sum; one octet more than its length does not fit. */
static void fill(struct rpcrdma *h)
{
    for (uint32_t i = 0; i < h->writes; i++) {
        uint64_t n = rpcrdma_chunk_length(h, h->write[i]);

        assert(!rpcrdma_fill(h, h->write[i], n + 1));
        assert(rpcrdma_fill(h, h->write[i], n / 2));
        assert(rpcrdma_chunk_length(h, h->write[i]) == n / 2);
    }
}

static void join(const uint8_t *input, size_t length)
{
    struct stream_item item[4];
    static uint8_t whole[1 << 18];
    unsigned n = 0;

    for (; n < 4 && length >= 8 * (n + 1); n++)
        item[n] = (struct stream_item){input[8 * n], input[8 * n + 1], input};
    for (unsigned i = 0; i < n; i++)
        if (item[i].length > length)
            return;
    if (stream_is_sane(length, item, n) && stream_length(length, item, n) <= sizeof(whole))
        stream_join(whole, input, length, item, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    struct private peer;
    struct rpcrdma h;

    rpcrdma_direction(input, length);
    if (rpcrdma_decode_call(&h, input, length) == RPCRDMA_ACCEPT) {
        check_same(&h, input, length);
        fill(&h);
    }
    if (rpcrdma_decode_reply(&h, input, length) == RPCRDMA_ACCEPT)
        check_same(&h, input, length);
    private_decode(&peer, input, length);
    assert(peer.send_size >= PRIVATE_SIZE_MIN && peer.receive_size <= PRIVATE_SIZE_MAX);
    join(input, length);
    return 0;
}
