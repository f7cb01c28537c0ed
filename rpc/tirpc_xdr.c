/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tirpc_xdr.c - libtirpc XDR streams that take the eligible item out when they encode and put it back when they decode.
 * libtirpc's routines pass an opaque and its roundup in two calls. */
#include "rpc/tirpc_xdr.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/xdrbytes.h"

enum { REDUCER_START = 1024, REDUCER_MAX = 64 << 20 };

const struct rddp_rpc_proc *binding_find(const struct rddp_rpc_attr *attr, uint32_t program, uint32_t version,
                                         uint32_t number)
{
    for (unsigned i = 0; i < attr->bindings; i++) {
        const struct rddp_rpc_binding *b = &attr->binding[i];

        for (unsigned k = 0; b->program == program && b->version == version && k < b->procs; k++)
            if (b->proc[k].number == number)
                return &b->proc[k];
    }
    return NULL;
}

bool_t xdr_nothing(XDR *xdr, ...)
{
    (void)xdr;
    return TRUE;
}

/* --- encoding ---------------------------------------------------------------------------------------------------- */

static uint8_t *tirpc_xdr_grow(struct xdr_reducer *x, size_t n)
{
    size_t space = x->capacity ? x->capacity : REDUCER_START;
    uint8_t *buffer;

    if (n > REDUCER_MAX - x->length)
        return NULL;
    while (space < x->length + n)
        space *= 2;
    buffer = space == x->capacity ? x->buffer : realloc(x->buffer, space);
    if (!buffer)
        return NULL;
    x->buffer = buffer;
    x->capacity = space;
    x->length += n;
    x->position_now += (uint32_t)n;
    return x->buffer + x->length - n;
}

static bool_t put_long(XDR *xdr, const long *v)
{
    uint8_t *p = tirpc_xdr_grow((struct xdr_reducer *)xdr, 4);
    uint32_t word = (uint32_t)*v;

    if (!p)
        return FALSE;
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(word >> (24 - 8 * i));
    return TRUE;
}

static bool_t tirpc_xdr_put_bytes(XDR *xdr, const char *from, u_int n)
{
    struct xdr_reducer *x = (struct xdr_reducer *)xdr;
    uint8_t *p;

    if (x->swallow && n == x->swallow) {
        x->position_now += n;
        x->swallow = 0;
        return TRUE;
    }
    if (!x->taken && n && from == x->item && n == x->item_length) {
        x->taken = true;
        x->position = x->position_now;
        x->position_now += n;
        x->swallow = xdr_roundup(n);
        return TRUE;
    }
    p = tirpc_xdr_grow(x, n);
    if (p && n)
        memcpy(p, from, n);
    return p != NULL;
}

static u_int get_position(XDR *xdr)
{
    return ((struct xdr_reducer *)xdr)->position_now;
}

static bool_t no_long(XDR *xdr, long *v)
{
    (void)xdr;
    (void)v;
    return FALSE;
}

static bool_t no_bytes(XDR *xdr, char *to, u_int n)
{
    (void)xdr;
    (void)to;
    (void)n;
    return FALSE;
}

static bool_t no_put_long(XDR *xdr, const long *v)
{
    (void)xdr;
    (void)v;
    return FALSE;
}

static bool_t no_put_bytes(XDR *xdr, const char *from, u_int n)
{
    (void)xdr;
    (void)from;
    (void)n;
    return FALSE;
}

static bool_t no_position(XDR *xdr, u_int position)
{
    (void)xdr;
    (void)position;
    return FALSE;
}

/* An XDR stream may always return NULL here: the routines then go word by word. */
static int32_t *no_inline(XDR *xdr, u_int n)
{
    (void)xdr;
    (void)n;
    return NULL;
}

static void no_destroy(XDR *xdr)
{
    (void)xdr;
}

static bool_t no_control(XDR *xdr, int request, void *info)
{
    (void)xdr;
    (void)request;
    (void)info;
    return FALSE;
}

void xdr_reducer_open(struct xdr_reducer *x)
{
    static const struct xdr_ops ops = {
        no_long, put_long, no_bytes, tirpc_xdr_put_bytes, get_position, no_position, no_inline, no_destroy, no_control,
    };

    x->xdr = (XDR){.x_op = XDR_ENCODE, .x_ops = &ops};
    x->length = 0;
    x->position_now = x->item_length = x->swallow = 0;
    x->item = NULL;
    x->taken = false;
}

void xdr_reducer_close(struct xdr_reducer *x)
{
    free(x->buffer);
    *x = (struct xdr_reducer){0};
}

/* --- decoding ---------------------------------------------------------------------------------------------------- */

/* Takes the next `n` octets of the stream. They must not cross the position of an item that was taken out. */
static const uint8_t *tirpc_xdr_take(struct xdr_joiner *x, size_t n)
{
    const uint8_t *at = x->payload + x->at;

    if (n && !x->by_place && x->next < x->items && x->item[x->next].position - x->position_now < n)
        x->broken = true;
    if (x->broken || n > x->length - x->at)
        return NULL;
    x->at += n;
    x->position_now += (uint32_t)n;
    return at;
}

static bool_t get_long(XDR *xdr, long *v)
{
    const uint8_t *p = tirpc_xdr_take((struct xdr_joiner *)xdr, 4);

    if (p)
        *v = (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
    return p != NULL;
}

/* The item has the length of the opaque, or the peer has included the roundup (RFC 8166 3.4.5.2). */
static bool_t get_item(struct xdr_joiner *x, char *to, u_int n)
{
    const struct stream_item *item = &x->item[x->next++];

    if (item->length != n && (x->by_place || item->length != n + xdr_roundup(n))) {
        x->broken = true;
        return FALSE;
    }
    if (to != item->data)
        memcpy(to, item->data, n);
    x->position_now += n;
    x->skip = xdr_roundup(n);
    return TRUE;
}

static bool_t get_bytes(XDR *xdr, char *to, u_int n)
{
    struct xdr_joiner *x = (struct xdr_joiner *)xdr;
    bool eligible, outside;
    const uint8_t *p;

    if (x->skip && n == x->skip) {
        x->position_now += n;
        x->skip = 0;
        return TRUE;
    }
    eligible = x->is_item && n && x->is_item(x, to);
    outside = x->next < x->items && (x->by_place ? eligible : x->item[x->next].position == x->position_now);
    if (outside && eligible)
        return get_item(x, to, n);
    if ((outside && n) || (eligible && x->must_be_outside)) {
        x->broken = true;
        return FALSE;
    }
    p = tirpc_xdr_take(x, n);
    if (p && n)
        memcpy(to, p, n);
    return p != NULL;
}

static u_int get_joiner_position(XDR *xdr)
{
    return ((struct xdr_joiner *)xdr)->position_now;
}

void xdr_joiner_open(struct xdr_joiner *x, const uint8_t *payload, size_t length)
{
    static const struct xdr_ops ops = {
        get_long,    no_put_long, get_bytes,  no_put_bytes, get_joiner_position,
        no_position, no_inline,   no_destroy, no_control,
    };

    *x = (struct xdr_joiner){.payload = payload, .length = length};
    x->xdr = (XDR){.x_op = XDR_DECODE, .x_ops = &ops};
}

bool xdr_joiner_is_done(const struct xdr_joiner *x)
{
    return !x->broken && x->next == x->items;
}
