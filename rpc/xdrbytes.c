/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xdrbytes.c - reads and writes numbers and octets of an XDR stream. Every access goes through xdrbytes_take() or
 * xdrbytes_give(), which check the bounds. */
#include "rpc/xdrbytes.h"

#include <string.h>

static const uint8_t *xdrbytes_take(struct xdr_in *in, size_t n)
{
    const uint8_t *at = in->at;

    if (in->bad || n > in->left) {
        in->bad = true;
        return NULL;
    }
    in->at += n;
    in->left -= n;
    return at;
}

static uint8_t *xdrbytes_give(struct xdr_out *out, size_t n)
{
    uint8_t *at = out->at;

    if (out->bad || n > out->left) {
        out->bad = true;
        return NULL;
    }
    out->at += n;
    out->left -= n;
    return at;
}

uint32_t xdr_get32(struct xdr_in *in)
{
    const uint8_t *p = xdrbytes_take(in, 4);

    return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

uint64_t xdr_get64(struct xdr_in *in)
{
    uint64_t high = xdr_get32(in);

    return high << 32 | xdr_get32(in);
}

bool xdr_getbool(struct xdr_in *in)
{
    uint32_t v = xdr_get32(in);

    if (v > 1)
        in->bad = true;
    return v == 1 && !in->bad;
}

const uint8_t *xdr_getopaque(struct xdr_in *in, size_t n)
{
    if (n > in->left) {
        in->bad = true;
        return NULL;
    }
    return xdrbytes_take(in, n + xdr_roundup(n));
}

void xdr_put32(struct xdr_out *out, uint32_t v)
{
    uint8_t *p = xdrbytes_give(out, 4);

    if (p) {
        p[0] = (uint8_t)(v >> 24);
        p[1] = (uint8_t)(v >> 16);
        p[2] = (uint8_t)(v >> 8);
        p[3] = (uint8_t)v;
    }
}

void xdr_put64(struct xdr_out *out, uint64_t v)
{
    xdr_put32(out, (uint32_t)(v >> 32));
    xdr_put32(out, (uint32_t)v);
}

void xdr_putopaque(struct xdr_out *out, const void *from, size_t n)
{
    uint8_t *p = n > out->left ? NULL : xdrbytes_give(out, n + xdr_roundup(n));

    if (!p) {
        out->bad = true;
        return;
    }
    if (n)
        memcpy(p, from, n);
    memset(p + n, 0, xdr_roundup(n));
}
