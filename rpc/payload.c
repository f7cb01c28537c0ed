/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* payload.c - joins a Payload stream and the items that were taken out of it. */
#include "rpc/payload.h"

#include <assert.h>
#include <string.h>

#include "rpc/xdrbytes.h"

bool stream_is_sane(size_t payload, const struct stream_item *item, unsigned count)
{
    uint64_t outside = 0, end = 0;

    for (unsigned i = 0; i < count; i++) {
        if (item[i].position < end || item[i].position - outside > payload)
            return false;
        outside += (uint64_t)item[i].length + xdr_roundup(item[i].length);
        end = (uint64_t)item[i].position + item[i].length + xdr_roundup(item[i].length);
    }
    return true;
}

size_t stream_length(size_t payload, const struct stream_item *item, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        payload += (size_t)item[i].length + xdr_roundup(item[i].length);
    return payload;
}

void stream_join(uint8_t *to, const uint8_t *payload, size_t length, const struct stream_item *item, unsigned count)
{
    size_t in = 0, out = 0;

    assert(stream_is_sane(length, item, count));
    for (unsigned i = 0; i < count; i++) {
        size_t lead = item[i].position - out;

        memcpy(to + out, payload + in, lead);
        in += lead;
        out += lead;
        if (item[i].length)
            memcpy(to + out, item[i].data, item[i].length);
        out += item[i].length;
        memset(to + out, 0, xdr_roundup(item[i].length));
        out += xdr_roundup(item[i].length);
    }
    if (length > in)
        memcpy(to + out, payload + in, length - in);
}
