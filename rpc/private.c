/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* private.c - the private data of RFC 8797: magic f6ab0e18, version, flags, two sizes. */
#include "rpc/private.h"

#include <string.h>

enum { PRIVATE_VERSION = 1, FLAG_REMOTE_INVALIDATION = 1 };

static const uint8_t magic[4] = {0xf6, 0xab, 0x0e, 0x18};

static uint8_t size_code(uint32_t octets)
{
    if (octets < PRIVATE_SIZE_MIN)
        octets = PRIVATE_SIZE_MIN;
    if (octets > PRIVATE_SIZE_MAX)
        octets = PRIVATE_SIZE_MAX;
    return (uint8_t)(octets / 1024 - 1);
}

static const struct private defaults = {PRIVATE_SIZE_MIN, PRIVATE_SIZE_MIN, false};

struct private private_own(bool sends_private_data, uint32_t send_size, uint32_t receive_size)
{
    return sends_private_data ? (struct private){send_size, receive_size, true} : defaults;
}

void private_encode(uint8_t to[PRIVATE_OCTETS], const struct private *mine)
{
    memcpy(to, magic, sizeof(magic));
    to[4] = PRIVATE_VERSION;
    to[5] = mine->remote_invalidation ? FLAG_REMOTE_INVALIDATION : 0;
    to[6] = size_code(mine->send_size);
    to[7] = size_code(mine->receive_size);
}

bool private_decode(struct private *peer, const uint8_t *p, size_t n)
{
    *peer = defaults;
    for (size_t i = 0; n >= PRIVATE_OCTETS && i <= n - PRIVATE_OCTETS; i++) {
        if (memcmp(p + i, magic, sizeof(magic)) != 0 || p[i + 4] != PRIVATE_VERSION)
            continue;
        peer->remote_invalidation = p[i + 5] & FLAG_REMOTE_INVALIDATION;
        peer->send_size = (p[i + 6] + 1U) * 1024;
        peer->receive_size = (p[i + 7] + 1U) * 1024;
        return true;
    }
    return false;
}
