/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_xdr.h - arguments and results of NFS version 3 to and from XDR (RFC 1813), one function for both directions,
 * with the item that may travel by RDMA beside the stream (RFC 8267 4.1: WRITE's data, SYMLINK's path, READ's data,
 * READLINK's path). */
#ifndef RDDP_NFS_NFS3_XDR_H
#define RDDP_NFS_NFS3_XDR_H

#include "nfs/nfs3.h"
#include "rpc/stream.h"
#include "rpc/xdrbytes.h"

/* Names and paths longer than NFS3_NAME_MAX and NFS3_PATH_MAX still pass, up to here, so that a server can say
 * NFS3ERR_NAMETOOLONG instead of RPC_GARBAGE_ARGS. */
enum { NFS3_TEXT_MAX = 8192 };

/* A stream that is being read or written. When something does not fit, is longer than it may be or has a value that its
 * type has not, `bad` is set in the end and everything after it is 0 (as of xdrbytes.h). */
struct coder {
    bool writing;
    bool reduce;        /* writing: leave the eligible item out of the stream and describe it in `item` */
    bool reduced;       /* writing: that was done; reading: the item came from beside the stream */
    struct xdr_in in;   /* reading */
    struct xdr_out out; /* writing */
    uint32_t position;  /* octets of the whole stream before `in.at` or `out.at`, from the XID on */
    /* Writing: the result of `reduce`. Reading: what came beside the stream, length 0: nothing. */
    struct stream_item item;
    bool bad;
    const uint8_t *start; /* writing: where the stream begins */
};

void coder_read(struct coder *c, const void *from, size_t length);
void coder_write(struct coder *c, void *to, size_t capacity);
/* Writing: octets that are in the stream. */
size_t coder_length(const struct coder *c);

/* The atoms, for whoever has a message of its own (rpcmsg.c, mount3.c). */
void code32(struct coder *c, uint32_t *v);
void code64(struct coder *c, uint64_t *v);
void code_bool(struct coder *c, bool *v);
void code_fixed(struct coder *c, void *octets, uint32_t length);              /* opaque<n>, copied */
void code_text(struct coder *c, struct nfs3_text *text, uint32_t length_max); /* string<max>, pointed at */
void code_fh(struct coder *c, struct nfs3_fh *fh);

/* The stream stands behind the RPC header. Reading: afterwards nothing may be left (`bad` otherwise), and an item
 * beside the stream must be the eligible one. Of arguments it must be at its position, and may have its roundup with it
 * (RFC 8166 3.4.5.2). Of results the position is an outcome: a Write chunk has none. */
void nfs3_code_args(struct coder *c, enum nfs3_proc proc, union nfs3_args *args);
void nfs3_code_result(struct coder *c, enum nfs3_proc proc, struct nfs3_result *result);

/* Entries of READDIR (`plus` false) and READDIRPLUS, each with the TRUE in front of it. A put that does not fit returns
 * false and leaves `out` as it was. A get returns false at the end, and sets in->bad if what is left is none. */
bool nfs3_put_entry(struct xdr_out *out, const struct nfs3_entry *entry, bool plus);
bool nfs3_get_entry(struct xdr_in *in, struct nfs3_entry *entry, bool plus);

/* Octets that the result of these arguments can have at most, without READ's data and READLINK's path and without the
 * RPC header: what a client's room must be. READDIR's and READDIRPLUS' `maxcount` is taken as Linux' server does, which
 * counts neither attributes nor verifier. `args` matters to these two alone. */
size_t nfs3_result_max(enum nfs3_proc proc, const union nfs3_args *args);

#endif
