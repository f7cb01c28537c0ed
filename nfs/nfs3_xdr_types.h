/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_xdr_types.h - types that arguments and results share (RFC 1813 2.5, 2.6). Internal to the codec. */
#ifndef RDDP_NFS_NFS3_XDR_TYPES_H
#define RDDP_NFS_NFS3_XDR_TYPES_H

#include "nfs/nfs3_xdr.h"

/* Marks the stream bad: nothing more is encoded or decoded. */
void code_fail(struct coder *c);
/* Decoding: marks the stream bad if octets are left over, or if an item that came by RDMA was not used. */
void code_end(struct coder *c);

/* Codes and returns a value from `low` to `high`; another value marks the stream bad. */
uint32_t code_enum(struct coder *c, uint32_t v, uint32_t low, uint32_t high);
/* Codes the DDP-eligible item, opaque<max>, in the stream or outside of it. */
void code_item(struct coder *c, const void **data, uint32_t *length, uint32_t length_max);

void code_time(struct coder *c, struct nfs3_time *time);
void code_attr(struct coder *c, struct nfs3_attr *attr);
void code_post_attr(struct coder *c, struct nfs3_post_attr *attr);
void code_post_fh(struct coder *c, struct nfs3_post_fh *fh);

#endif
