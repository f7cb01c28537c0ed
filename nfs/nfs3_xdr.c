/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_xdr.c - codes the basic XDR types, and the types of RFC 1813 that arguments and results share. */
#include "nfs/nfs3_xdr.h"

#include <string.h>

#include "nfs/nfs3_xdr_types.h"

/* --- the stream ------------------------------------------------------------------------------------------------ */

void coder_read(struct coder *c, const void *from, size_t length)
{
    *c = (struct coder){.in = {.at = from, .left = length}};
}

void coder_write(struct coder *c, void *to, size_t capacity)
{
    *c = (struct coder){.writing = true, .out = {.at = to, .left = capacity}, .start = to};
}

size_t coder_length(const struct coder *c)
{
    return (size_t)(c->out.at - c->start);
}

void code_fail(struct coder *c)
{
    c->in.bad = c->out.bad = c->bad = true;
}

/* Advances the position by `n` octets, or marks the stream bad if coding them failed. */
static void nfs3_xdr_advance(struct coder *c, size_t n)
{
    if (c->in.bad || c->out.bad)
        code_fail(c);
    else
        c->position += (uint32_t)n;
}

void code_end(struct coder *c)
{
    if (!c->writing && (c->in.left || (c->item.length && !c->reduced)))
        code_fail(c);
}

/* --- atoms ----------------------------------------------------------------------------------------------------- */

void code32(struct coder *c, uint32_t *v)
{
    if (c->writing)
        xdr_put32(&c->out, *v);
    else
        *v = xdr_get32(&c->in);
    nfs3_xdr_advance(c, 4);
}

void code64(struct coder *c, uint64_t *v)
{
    if (c->writing)
        xdr_put64(&c->out, *v);
    else
        *v = xdr_get64(&c->in);
    nfs3_xdr_advance(c, 8);
    if (c->bad && !c->writing)
        *v = 0;
}

void code_bool(struct coder *c, bool *v)
{
    if (c->writing)
        xdr_put32(&c->out, *v);
    else
        *v = xdr_getbool(&c->in);
    nfs3_xdr_advance(c, 4);
}

uint32_t code_enum(struct coder *c, uint32_t v, uint32_t low, uint32_t high)
{
    code32(c, &v);
    if (v < low || v > high) {
        code_fail(c);
        return c->writing ? v : 0;
    }
    return v;
}

/* Codes the octets of an item without its length. Encoding reads them from `at`. Decoding returns where they are in the
 * message. NULL: bad. */
static const void *nfs3_xdr_octets(struct coder *c, const void *at, uint32_t length)
{
    if (c->writing)
        xdr_putopaque(&c->out, at, length);
    else
        at = xdr_getopaque(&c->in, length);
    nfs3_xdr_advance(c, (size_t)length + xdr_roundup(length));
    return c->bad ? NULL : at;
}

/* Codes the length word of an item. Returns false if the length exceeds `length_max` or the stream is too short. */
static bool code_length(struct coder *c, uint32_t *length, uint32_t length_max)
{
    code32(c, length);
    if (*length > length_max)
        code_fail(c);
    if (c->bad && !c->writing)
        *length = 0;
    return !c->bad;
}

void code_fixed(struct coder *c, void *bytes, uint32_t length)
{
    const void *at = nfs3_xdr_octets(c, bytes, length);

    if (c->writing)
        return;
    if (at)
        memcpy(bytes, at, length);
    else
        memset(bytes, 0, length);
}

void code_text(struct coder *c, struct nfs3_text *text, uint32_t length_max)
{
    if (code_length(c, &text->length, length_max)) {
        const char *at = nfs3_xdr_octets(c, text->at, text->length);

        if (!c->writing)
            *text = (struct nfs3_text){at, at ? text->length : 0};
    } else if (!c->writing) {
        text->at = NULL;
    }
}

void code_fh(struct coder *c, struct nfs3_fh *fh)
{
    if (code_length(c, &fh->length, NFS3_FH_MAX))
        code_fixed(c, fh->data, fh->length);
    if (c->bad && !c->writing)
        fh->length = 0;
}

/* --- the item that may lie beside the stream --------------------------------------------------------------------- */

static void leave_out(struct coder *c, const void *data, uint32_t length)
{
    if (length > UINT32_MAX - 3 - c->position) {
        code_fail(c);
        return;
    }
    c->item = (struct stream_item){c->position, length, data};
    c->reduced = true;
    nfs3_xdr_advance(c, length + xdr_roundup(length));
}

/* Takes the item that came by RDMA; it must have this length and be at the current position. */
static const void *take_in(struct coder *c, uint32_t length)
{
    uint32_t came = c->item.length;

    if (c->reduced || c->item.position != c->position || (came != length && came - length != xdr_roundup(length))) {
        code_fail(c);
        return NULL;
    }
    c->reduced = true;
    nfs3_xdr_advance(c, (size_t)length + xdr_roundup(length));
    return c->item.data;
}

void code_item(struct coder *c, const void **data, uint32_t *length, uint32_t length_max)
{
    const void *at = NULL;

    if (code_length(c, length, length_max)) {
        if (c->writing && c->reduce && *length)
            leave_out(c, *data, *length);
        else if (!c->writing && c->item.length)
            at = take_in(c, *length);
        else
            at = nfs3_xdr_octets(c, *data, *length);
    }
    if (!c->writing) {
        *data = c->bad ? NULL : at;
        *length = c->bad ? 0 : *length;
    }
}

/* --- shared types ---------------------------------------------------------------------------------------------- */

void code_time(struct coder *c, struct nfs3_time *time)
{
    code32(c, &time->s);
    code32(c, &time->ns);
}

/* fattr3 */
void code_attr(struct coder *c, struct nfs3_attr *attr)
{
    attr->type = code_enum(c, attr->type, NFS3_REG, NFS3_FIFO);
    code32(c, &attr->mode);
    code32(c, &attr->nlink);
    code32(c, &attr->uid);
    code32(c, &attr->gid);
    code64(c, &attr->size);
    code64(c, &attr->used);
    code32(c, &attr->major);
    code32(c, &attr->minor);
    code64(c, &attr->fsid);
    code64(c, &attr->fileid);
    code_time(c, &attr->atime);
    code_time(c, &attr->mtime);
    code_time(c, &attr->ctime);
}

void code_post_attr(struct coder *c, struct nfs3_post_attr *attr)
{
    code_bool(c, &attr->present);
    if (attr->present)
        code_attr(c, &attr->attr);
}

void code_post_fh(struct coder *c, struct nfs3_post_fh *fh)
{
    code_bool(c, &fh->present);
    if (fh->present)
        code_fh(c, &fh->fh);
}
