/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* checksum.c - the Internet checksum, eight octets at a time. */
#include "tcp/checksum.h"

#include "base/bytes.h"

static uint64_t carry(uint64_t sum, uint64_t word)
{
    sum += word;
    return sum + (sum < word);
}

/* Sums words in memory order: the sum of byte-swapped words is the byte-swapped sum (RFC 1071 2 B). */
static uint64_t sum_words(const uint8_t *p, size_t n)
{
    uint64_t sum[4] = {0}, word[4];

    for (; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
        memcpy(word, p, sizeof(word));
        for (int i = 0; i < 4; i++)
            sum[i] = carry(sum[i], word[i]);
    }
    sum[0] = carry(carry(carry(sum[0], sum[1]), sum[2]), sum[3]);
    for (; n; n -= n < 8 ? n : 8, p += 8) {
        word[0] = 0;
        memcpy(word, p, n < 8 ? n : 8);
        sum[0] = carry(sum[0], word[0]);
    }
    return sum[0];
}

static uint16_t checksum_fold(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

void utcp_sum_add(struct utcp_sum *s, const void *octets, size_t n)
{
    uint16_t memory = checksum_fold(sum_words(octets, n)), word;
    uint8_t pair[2];

    memcpy(pair, &memory, sizeof(pair));
    word = get16(pair);
    s->sum += s->odd ? (uint32_t)(word << 8 & 0xff00) | word >> 8 : word;
    s->odd ^= n & 1;
}

uint16_t utcp_sum_fold(const struct utcp_sum *s)
{
    return checksum_fold(s->sum);
}
