/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_xdr.h - encodes and decodes the arguments and results of NFS version 3 (RFC 1813) as XDR; one function does
 * both. The item that may travel by RDMA is taken out of the stream or put back (RFC 8267 4.1: WRITE's data, SYMLINK's
 * path, READ's data, READLINK's path). */
#ifndef RDDP_NFS_NFS3_XDR_H
#define RDDP_NFS_NFS3_XDR_H

#include "nfs/nfs3.h"
#include "rpc/payload.h"
#include "rpc/xdrbytes.h"

/* Names longer than NFS3_NAME_MAX and paths longer than NFS3_PATH_MAX are accepted up to this length in octets, so that
 * a server can answer NFS3ERR_NAMETOOLONG instead of RPC_GARBAGE_ARGS. */
enum { NFS3_TEXT_MAX = 8192 };

/* A stream that is encoded or decoded. `bad` is set when something does not fit, is too long, or has a value that its
 * type does not have; everything after it is 0 (as in xdrbytes.h). */
struct coder {
    bool writing;
    bool reduce;        /* encoding: leave the eligible item out of the stream and describe it in `item` */
    bool reduced;       /* encoding: the item was left out; decoding: the item came from outside of the stream */
    struct xdr_in in;   /* decoding */
    struct xdr_out out; /* encoding */
    uint32_t position;  /* octets of the whole stream before `in.at` or `out.at`, counted from the XID */
    /* Encoding: the item that was left out. Decoding: the item that came by RDMA; length 0: none. */
    struct stream_item item;
    bool bad;
    const uint8_t *start; /* encoding: the start of the stream */
};

void coder_read(struct coder *c, const void *from, size_t length);
void coder_write(struct coder *c, void *to, size_t capacity);
/* Encoding: the length of the stream in octets. */
size_t coder_length(const struct coder *c);

/* The basic types, for other messages (rpcmsg.c, mount3.c). */
void code32(struct coder *c, uint32_t *v);
void code64(struct coder *c, uint64_t *v);
void code_bool(struct coder *c, bool *v);
void code_fixed(struct coder *c, void *octets, uint32_t length); /* opaque<n>, copied to `octets` */
void code_text(struct coder *c, struct nfs3_text *text,
               uint32_t length_max); /* string<max>; decoding points into the message */
void code_fh(struct coder *c, struct nfs3_fh *fh);

/* Code what follows the RPC header. Decoding: octets left over make the message bad, and an item outside of the stream
 * must be the eligible one. An argument must be at its position and may include its roundup (RFC 8166 3.4.5.2). A
 * result has no position: Write chunks carry none. */
void nfs3_code_args(struct coder *c, enum nfs3_proc proc, union nfs3_args *args);
void nfs3_code_result(struct coder *c, enum nfs3_proc proc, struct nfs3_result *result);

/* Directory entries of READDIR (`plus` false) and READDIRPLUS, each with the TRUE that precedes it. nfs3_put_entry()
 * returns false if the entry does not fit, and leaves `out` as it was. nfs3_get_entry() returns false at the end, and
 * sets in->bad if the rest is not an entry. */
bool nfs3_put_entry(struct xdr_out *out, const struct nfs3_entry *entry, bool plus);
bool nfs3_get_entry(struct xdr_in *in, struct nfs3_entry *entry, bool plus);

/* The longest result in octets for these arguments, without READ's data, READLINK's path and the RPC header: the size
 * of the buffer that a client needs. For READDIR and READDIRPLUS it adds attributes and verifier to `maxcount`, since
 * Linux' server does not count them. Only these two use `args`. */
size_t nfs3_result_max(enum nfs3_proc proc, const union nfs3_args *args);

#endif
