/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cookie.c - 1 bit of the period, 3 bits for the MSS and 28 bits of MAC; in timestamps the low bits hold the options.
 */
#include "tcp/cookie.h"

#include "base/bytes.h"
#include "base/siphash.h"
#include "tcp/inner.h"

enum { PERIOD_SHIFT = 26, MSS_SHIFT = 28, MAC_MASK = (1 << MSS_SHIFT) - 1, HASH_COOKIE = 4 };
enum { BIT_SACK = 1 << 4, BIT_OPTION = 1 << 5, BIT_ECN = 1 << 6, BITS = 1 << 7, SCALE_NONE = 15 };

_Static_assert(UTCP_COOKIE_US == 2 << PERIOD_SHIFT, "a cookie is good in its period and the next");

/* What peers offer, rounded down. */
static const uint16_t mss[] = {UTCP_MSS_MIN, UTCP_DEFAULT_MSS_V4, UTCP_DEFAULT_MSS_V6, 1400, 1440, 1460, 8940, 32728};

static uint32_t cookie_of(const uint64_t key[2], const struct utcp_half *half, uint64_t period, uint32_t size)
{
    uint8_t octets[50], *q = octets;

    q = put16(put_bytes(q, half->local.ip, 16), half->local.port);
    q = put16(put_bytes(q, half->remote.ip, 16), half->remote.port);
    q = put8(put32(put64(q, period), half->irs), (uint8_t)size);
    q = put8(q, HASH_COOKIE);
    return (uint32_t)(period & 1) << 31 | size << MSS_SHIFT |
           ((uint32_t)siphash(key, octets, (size_t)(q - octets)) & MAC_MASK);
}

uint32_t utcp_cookie_make(const uint64_t key[2], const struct utcp_half *half, uint64_t now_us)
{
    uint32_t size = sizeof(mss) / sizeof(mss[0]) - 1;
    uint32_t offered = half->mss ? half->mss : utcp_is_v4(&half->remote) ? UTCP_DEFAULT_MSS_V4 : UTCP_DEFAULT_MSS_V6;

    while (size && mss[size] > offered)
        size--;
    return cookie_of(key, half, now_us >> PERIOD_SHIFT, size);
}

uint32_t utcp_cookie_stamp(const struct utcp_half *half, uint32_t stamp)
{
    uint32_t bits = (half->use_scale ? half->scale : SCALE_NONE) | (half->sack ? BIT_SACK : 0U) |
                    (half->option ? BIT_OPTION : 0U) | (half->ecn ? BIT_ECN : 0U);
    uint32_t made = (stamp & ~(BITS - 1U)) | bits;

    return (int32_t)(made - stamp) > 0 ? made - BITS : made;
}

bool utcp_cookie_open(const uint64_t key[2], const struct utcp_segment *s, uint64_t now_us, struct utcp_half *half)
{
    uint32_t cookie = s->ack - 1, size = cookie >> MSS_SHIFT & 7;
    uint64_t period = now_us >> PERIOD_SHIFT;

    *half = (struct utcp_half){.local = s->to, .remote = s->from, .irs = s->seq - 1, .isn = cookie, .mss = mss[size]};
    if ((period & 1) != cookie >> 31)
        period--;
    if (cookie_of(key, half, period, size) != cookie)
        return false;
    if (!s->opt.has_stamp)
        return true;
    half->stamps = true;
    half->stamp = s->opt.stamp;
    half->sack = s->opt.echo & BIT_SACK;
    half->option = s->opt.echo & BIT_OPTION;
    half->ecn = s->opt.echo & BIT_ECN;
    half->scale = s->opt.echo & 15;
    half->use_scale = half->scale != SCALE_NONE;
    return true;
}
