/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_xdr_types.h - the types that arguments and results share (RFC 1813 2.5, 2.6), inside of the codec. */
#ifndef RDDP_NFS_NFS3_XDR_TYPES_H
#define RDDP_NFS_NFS3_XDR_TYPES_H

#include "nfs/nfs3_xdr.h"

/* Nothing after this is read or written. */
void code_fail(struct coder *c);
/* Reading: nothing is left, and no item but the eligible one came. */
void code_end(struct coder *c);

/* The value, which is at least `low` and at most `high`. */
uint32_t code_enum(struct coder *c, uint32_t v, uint32_t low, uint32_t high);
/* The DDP-eligible item: opaque<max>, in the stream or beside it. */
void code_item(struct coder *c, const void **data, uint32_t *length, uint32_t length_max);

void code_time(struct coder *c, struct nfs3_time *time);
void code_attr(struct coder *c, struct nfs3_attr *attr);
void code_post_attr(struct coder *c, struct nfs3_post_attr *attr);
void code_post_fh(struct coder *c, struct nfs3_post_fh *fh);

#endif
