/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xdrbytes.h - numbers and octets in and out of an XDR stream (RFC 4506) with known bounds. A stream that once ran
 * short stays short: gets give 0, puts do nothing, and one look at `bad` in the end is enough. (A file of the name
 * rpc/xdr.h would hide the one of libtirpc.) */
#ifndef RDDP_RPC_XDRBYTES_H
#define RDDP_RPC_XDRBYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xdr_in {
    const uint8_t *at;
    size_t left;
    bool bad;
};

struct xdr_out {
    uint8_t *at;
    size_t left;
    bool bad;
};

/* Octets of zero behind an item of `n` octets (RFC 8166 2.2.4.2). */
static inline uint32_t xdr_roundup(size_t n)
{
    return (uint32_t)(-n & 3);
}

uint32_t xdr_get32(struct xdr_in *in);
uint64_t xdr_get64(struct xdr_in *in);
/* An XDR bool: anything but 0 and 1 spoils the stream. */
bool xdr_getbool(struct xdr_in *in);
/* `n` octets and their roundup, whose content does not matter; they lie in the stream. NULL if it is shorter. */
const uint8_t *xdr_getopaque(struct xdr_in *in, size_t n);

void xdr_put32(struct xdr_out *out, uint32_t v);
void xdr_put64(struct xdr_out *out, uint64_t v);
void xdr_putopaque(struct xdr_out *out, const void *from, size_t n);

#endif
