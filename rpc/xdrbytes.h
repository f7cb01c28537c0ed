/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xdrbytes.h - reads and writes numbers and octets of an XDR stream (RFC 4506) within known bounds. After an access
 * that does not fit, `bad` is set: later gets return 0 and later puts do nothing, so checking `bad` once at the end is
 * enough. (A file named rpc/xdr.h would hide libtirpc's.) */
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

/* Octets of zeros that follow an item of `n` octets (RFC 8166 2.2.4.2). */
static inline uint32_t xdr_roundup(size_t n)
{
    return (uint32_t)(-n & 3);
}

uint32_t xdr_get32(struct xdr_in *in);
uint64_t xdr_get64(struct xdr_in *in);
/* Reads an XDR bool: any value but 0 and 1 sets `bad`. */
bool xdr_getbool(struct xdr_in *in);
/* Returns a pointer to `n` octets in the stream and skips their roundup, whose content is ignored. NULL if the stream
 * is shorter. */
const uint8_t *xdr_getopaque(struct xdr_in *in, size_t n);

void xdr_put32(struct xdr_out *out, uint32_t v);
void xdr_put64(struct xdr_out *out, uint64_t v);
void xdr_putopaque(struct xdr_out *out, const void *from, size_t n);

#endif
