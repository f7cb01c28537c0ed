/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.c - the private data with which two rsockets begin. All words are in network order. */
#include <endian.h>
#include <string.h>

#include "verbs/rsock/rsocket.h"

/* version (8), flags (8), credits (16), reserved (24), iomaps (8), target SGL (128), first buffer (128) */
enum {
    AT_VERSION = 0,
    AT_FLAGS = 1,
    AT_CREDITS = 2,
    AT_IOMAPS = 7,
    AT_SGL = 8,
    AT_BUFFER = 24,
    VERSION = 1,
    FLAG_BIG_ENDIAN = 1,
    FLAG_IOMAPS = 2, /* the octet of iomaps has a meaning */
    COARSE = 128,    /* the octet counts units of 256 */
};

static uint8_t scale(uint32_t n)
{
    return (uint8_t)(n <= COARSE ? n : COARSE | (n + 255) >> 8);
}

static uint16_t unscale(uint8_t octet)
{
    return (uint16_t)(octet <= COARSE ? octet : (octet & (COARSE - 1)) << 8);
}

uint16_t rs_iomaps_announced(uint32_t n)
{
    return unscale(scale(n));
}

static void put_sge(uint8_t *to, const struct rs_sge *sge)
{
    const uint64_t addr = htobe64(sge->addr);
    const uint32_t key = htobe32(sge->key), length = htobe32(sge->length);

    memcpy(to, &addr, 8);
    memcpy(to + 8, &key, 4);
    memcpy(to + 12, &length, 4);
}

static void get_sge(struct rs_sge *sge, const uint8_t *from)
{
    memcpy(&sge->addr, from, 8);
    memcpy(&sge->key, from + 8, 4);
    memcpy(&sge->length, from + 12, 4);
    sge->addr = be64toh(sge->addr);
    sge->key = be32toh(sge->key);
    sge->length = be32toh(sge->length);
}

void rs_hello_encode(uint8_t out[RS_HELLO_SIZE], const struct rs_hello *hello)
{
    const uint16_t credits = htobe16(hello->credits);

    memset(out, 0, RS_HELLO_SIZE);
    out[AT_VERSION] = VERSION;
    out[AT_FLAGS] = (uint8_t)(FLAG_IOMAPS | (hello->is_big_endian ? FLAG_BIG_ENDIAN : 0));
    memcpy(out + AT_CREDITS, &credits, 2);
    out[AT_IOMAPS] = scale(hello->iomaps);
    put_sge(out + AT_SGL, &hello->sgl);
    put_sge(out + AT_BUFFER, &hello->buffer);
}

bool rs_hello_decode(struct rs_hello *hello, const void *data, size_t length)
{
    const uint8_t *in = data;
    uint16_t credits;

    if (length < RS_HELLO_SIZE || in[AT_VERSION] != VERSION)
        return false;
    memcpy(&credits, in + AT_CREDITS, 2);
    hello->is_big_endian = in[AT_FLAGS] & FLAG_BIG_ENDIAN;
    hello->credits = be16toh(credits);
    hello->iomaps = in[AT_FLAGS] & FLAG_IOMAPS ? unscale(in[AT_IOMAPS]) : 0;
    get_sge(&hello->sgl, in + AT_SGL);
    get_sge(&hello->buffer, in + AT_BUFFER);
    return hello->credits && hello->sgl.length >= RS_SGL_ENTRIES && hello->buffer.length;
}
