/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tirpc_xdr.h - libtirpc XDR streams that take the eligible item out when they encode and put it back when they decode.
 * For tirpc_client.c and tirpc_server.c. */
#ifndef RDDP_RPC_TIRPC_XDR_H
#define RDDP_RPC_TIRPC_XDR_H

#include <rpc/rpc.h>

#include <rddp/rpc.h>

#include "rpc/payload.h"

const struct rddp_rpc_proc *binding_find(const struct rddp_rpc_attr *attr, uint32_t program, uint32_t version,
                                         uint32_t number);

/* libtirpc's xdr_void with the type of an xdrproc_t. */
bool_t xdr_nothing(XDR *xdr, ...);

/* --- encoding ---------------------------------------------------------------------------------------------------- */

/* An XDR stream that grows as it is written. An opaque of `item_length` octets at `item` is left out together with its
 * roundup (RFC 8166 3.4.4); `taken` is then set, and `position` says where it belongs. */
struct xdr_reducer {
    XDR xdr;
    uint8_t *buffer;
    size_t length, capacity; /* octets in the stream; octets of `buffer` */
    uint32_t position_now;
    const void *item;
    uint32_t item_length, position, swallow;
    bool taken;
};

void xdr_reducer_open(struct xdr_reducer *x); /* keeps the buffer of the previous use */
void xdr_reducer_close(struct xdr_reducer *x);

/* --- decoding ---------------------------------------------------------------------------------------------------- */

/* Asked for each opaque that is decoded: is `at` where the binding puts the eligible item? */
struct xdr_joiner;
typedef bool xdr_is_item(const struct xdr_joiner *x, const void *at);

/* An XDR stream that is decoded. The items lie outside of it, in the order of their positions. A requester does not
 * know the position of a result before it decodes it: it sets `by_place`. */
struct xdr_joiner {
    XDR xdr;
    const uint8_t *payload;
    size_t length, at;
    uint32_t position_now, skip;
    const struct stream_item *item;
    unsigned items, next;
    bool by_place, must_be_outside; /* an eligible item that is inline is an error */
    bool broken;                    /* peer error: an item that is not eligible, or of another length */
    xdr_is_item *is_item;
    const struct rddp_rpc_proc *proc;
    const void *object; /* arguments or results */
};

void xdr_joiner_open(struct xdr_joiner *x, const uint8_t *payload, size_t length);

/* Whether no error was found and all items outside of the stream were used. */
bool xdr_joiner_is_done(const struct xdr_joiner *x);

#endif
