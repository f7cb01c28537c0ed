/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tirpc_xdr.h - XDR streams of libtirpc that take the eligible item out, and put it in again. For tirpc_client.c and
 * tirpc_server.c. */
#ifndef RDDP_RPC_TIRPC_XDR_H
#define RDDP_RPC_TIRPC_XDR_H

#include <rpc/rpc.h>

#include <rddp/rpc.h>

#include "rpc/stream.h"

const struct rddp_rpc_proc *binding_find(const struct rddp_rpc_attr *attr, uint32_t program, uint32_t version,
                                         uint32_t number);

/* libtirpc's xdr_void with the type that it is used with. */
bool_t xdr_nothing(XDR *xdr, ...);

/* --- encoding ---------------------------------------------------------------------------------------------------- */

/* The stream grows. An opaque of `length` octets at `item` leaves it with its roundup (RFC 8166 3.4.4): then `taken`,
 * and `position` says where it belongs. */
struct xdr_reducer {
    XDR xdr;
    uint8_t *buffer;
    size_t length, capacity; /* of what stays */
    uint32_t position_now;
    const void *item;
    uint32_t item_length, position, swallow;
    bool taken;
};

void xdr_reducer_open(struct xdr_reducer *x); /* keeps the buffer of the last time */
void xdr_reducer_close(struct xdr_reducer *x);

/* --- decoding ---------------------------------------------------------------------------------------------------- */

/* What decoding is asked when it meets an opaque: is `at` the place of the item that the binding names? */
struct xdr_joiner;
typedef bool xdr_is_item(const struct xdr_joiner *x, const void *at);

/* `item` lie outside of the stream, in the order of their positions. At a requester the position of a result is known
 * only when it is met: then `by_place`. */
struct xdr_joiner {
    XDR xdr;
    const uint8_t *payload;
    size_t length, at;
    uint32_t position_now, skip;
    const struct stream_item *item;
    unsigned items, next;
    bool by_place, must_be_outside; /* an eligible item that is inline breaks the rules */
    bool broken;                    /* by the peer: items that are not eligible, or of another length */
    xdr_is_item *is_item;
    const struct rddp_rpc_proc *proc;
    const void *object; /* arguments or results */
};

void xdr_joiner_open(struct xdr_joiner *x, const uint8_t *payload, size_t length);

/* Everything that lay outside was asked for. */
bool xdr_joiner_is_done(const struct xdr_joiner *x);

#endif
