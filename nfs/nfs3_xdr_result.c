/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_xdr_result.c - codes the results of each procedure (RFC 1813 3.3) and tells how long they can be. */
#include "nfs/nfs3_xdr_types.h"

/* --- entries of a directory ------------------------------------------------------------------------------------ */

/* Codes the bool that precedes an entry, and the entry. Returns false if there is none. */
static bool code_entry(struct coder *c, struct nfs3_entry *entry, bool plus)
{
    bool another = true;

    code_bool(c, &another);
    if (c->bad || !another)
        return false;
    code64(c, &entry->fileid);
    code_text(c, &entry->name, NFS3_TEXT_MAX);
    code64(c, &entry->cookie);
    if (plus) {
        code_post_attr(c, &entry->attr);
        code_post_fh(c, &entry->fh);
    }
    return !c->bad;
}

bool nfs3_put_entry(struct xdr_out *out, const struct nfs3_entry *entry, bool plus)
{
    struct nfs3_entry copy = *entry;
    struct coder c;

    coder_write(&c, out->at, out->left);
    if (out->bad || !code_entry(&c, &copy, plus))
        return false;
    *out = c.out;
    return true;
}

bool nfs3_get_entry(struct xdr_in *in, struct nfs3_entry *entry, bool plus)
{
    struct coder c;
    bool got;

    *entry = (struct nfs3_entry){0};
    if (in->bad || in->left == 0)
        return false;
    coder_read(&c, in->at, in->left);
    got = code_entry(&c, entry, plus);
    *in = c.in;
    return got;
}

/* --- what results share ---------------------------------------------------------------------------------------- */

static void code_wcc(struct coder *c, struct nfs3_wcc *wcc)
{
    code_bool(c, &wcc->had);
    if (wcc->had) {
        code64(c, &wcc->size);
        code_time(c, &wcc->mtime);
        code_time(c, &wcc->ctime);
    }
    code_post_attr(c, &wcc->after);
}

/* A Write chunk carries no position: its data are the eligible result, without roundup (RFC 8166 3.4.6). */
static void code_chunk(struct coder *c, const void **data, uint32_t *length, uint32_t length_max)
{
    if (!c->writing)
        c->item.position = c->position + 4;
    code_item(c, data, length, length_max);
    if (!c->writing && c->reduced && c->item.length != *length)
        code_fail(c);
}

/* Whether the status is NFS3_OK. Otherwise only `attr` or `wcc` follows. */
static bool nfs3_xdr_result_done(const struct nfs3_result *result)
{
    return result->status == NFS3_OK;
}

/* --- the procedures, after the status -------------------------------------------------------------------------- */

static void code_getattr(struct coder *c, struct nfs3_result *result)
{
    if (!nfs3_xdr_result_done(result))
        return;
    result->attr.present = true;
    code_attr(c, &result->attr.attr);
}

/* SETATTR, REMOVE, RMDIR */
static void code_changed(struct coder *c, struct nfs3_result *result)
{
    code_wcc(c, &result->wcc);
}

static void code_lookup(struct coder *c, struct nfs3_result *result)
{
    if (nfs3_xdr_result_done(result)) {
        code_fh(c, &result->fh);
        code_post_attr(c, &result->attr);
    }
    code_post_attr(c, &result->dir);
}

static void nfs3_xdr_result_code_access(struct coder *c, struct nfs3_result *result)
{
    code_post_attr(c, &result->attr);
    if (nfs3_xdr_result_done(result))
        code32(c, &result->access);
}

static void code_readlink(struct coder *c, struct nfs3_result *result)
{
    const void *at = result->target.at;

    code_post_attr(c, &result->attr);
    if (!nfs3_xdr_result_done(result))
        return;
    code_chunk(c, &at, &result->target.length, NFS3_TEXT_MAX);
    result->target.at = at;
}

static void code_read(struct coder *c, struct nfs3_result *result)
{
    uint32_t length;

    code_post_attr(c, &result->attr);
    if (!nfs3_xdr_result_done(result))
        return;
    code32(c, &result->read.count);
    code_bool(c, &result->read.eof);
    length = result->read.count;
    code_chunk(c, &result->read.data, &length, UINT32_MAX);
    if (length != result->read.count)
        code_fail(c);
}

static void nfs3_xdr_result_code_write(struct coder *c, struct nfs3_result *result)
{
    code_wcc(c, &result->wcc);
    if (!nfs3_xdr_result_done(result))
        return;
    code32(c, &result->write.count);
    result->write.committed = code_enum(c, result->write.committed, NFS3_UNSTABLE, NFS3_FILE_SYNC);
    code_fixed(c, result->write.verifier, NFS3_VERIFIER);
}

/* CREATE, MKDIR, SYMLINK, MKNOD */
static void code_made(struct coder *c, struct nfs3_result *result)
{
    if (nfs3_xdr_result_done(result)) {
        code_post_fh(c, &result->made);
        code_post_attr(c, &result->attr);
    }
    code_wcc(c, &result->wcc);
}

static void nfs3_xdr_result_code_rename(struct coder *c, struct nfs3_result *result)
{
    code_wcc(c, &result->wcc);
    code_wcc(c, &result->to_wcc);
}

static void nfs3_xdr_result_code_link(struct coder *c, struct nfs3_result *result)
{
    code_post_attr(c, &result->attr);
    code_wcc(c, &result->to_wcc);
}

static void code_entries(struct coder *c, struct nfs3_result *result, bool plus)
{
    const uint8_t *from = c->in.at;
    struct nfs3_entry entry;
    bool another = false;

    if (c->writing) {
        /* Whole entries are a multiple of four octets, so there is no roundup. */
        if (result->list.length % 4)
            code_fail(c);
        code_fixed(c, (void *)(uintptr_t)result->list.entries, result->list.length);
        code_bool(c, &another);
        return;
    }
    while (code_entry(c, &entry, plus))
        ;
    result->list.entries = c->bad ? NULL : from;
    result->list.length = c->bad ? 0 : (uint32_t)(c->in.at - from) - 4;
}

static void code_list(struct coder *c, struct nfs3_result *result, bool plus)
{
    code_post_attr(c, &result->attr);
    if (!nfs3_xdr_result_done(result))
        return;
    code_fixed(c, result->list.verifier, NFS3_VERIFIER);
    code_entries(c, result, plus);
    code_bool(c, &result->list.eof);
}

static void nfs3_xdr_result_code_readdir(struct coder *c, struct nfs3_result *result)
{
    code_list(c, result, false);
}

static void nfs3_xdr_result_code_readdirplus(struct coder *c, struct nfs3_result *result)
{
    code_list(c, result, true);
}

static void code_fsstat(struct coder *c, struct nfs3_result *result)
{
    code_post_attr(c, &result->attr);
    if (!nfs3_xdr_result_done(result))
        return;
    code64(c, &result->fsstat.total_bytes);
    code64(c, &result->fsstat.free_bytes);
    code64(c, &result->fsstat.available_bytes);
    code64(c, &result->fsstat.total_files);
    code64(c, &result->fsstat.free_files);
    code64(c, &result->fsstat.available_files);
    code32(c, &result->fsstat.invariant_s);
}

static void code_fsinfo(struct coder *c, struct nfs3_result *result)
{
    code_post_attr(c, &result->attr);
    if (!nfs3_xdr_result_done(result))
        return;
    code32(c, &result->fsinfo.rtmax);
    code32(c, &result->fsinfo.rtpref);
    code32(c, &result->fsinfo.rtmult);
    code32(c, &result->fsinfo.wtmax);
    code32(c, &result->fsinfo.wtpref);
    code32(c, &result->fsinfo.wtmult);
    code32(c, &result->fsinfo.dtpref);
    code64(c, &result->fsinfo.maxfilesize);
    code_time(c, &result->fsinfo.time_delta);
    code32(c, &result->fsinfo.properties);
}

static void code_pathconf(struct coder *c, struct nfs3_result *result)
{
    code_post_attr(c, &result->attr);
    if (!nfs3_xdr_result_done(result))
        return;
    code32(c, &result->pathconf.linkmax);
    code32(c, &result->pathconf.name_max);
    code_bool(c, &result->pathconf.no_trunc);
    code_bool(c, &result->pathconf.chown_restricted);
    code_bool(c, &result->pathconf.case_insensitive);
    code_bool(c, &result->pathconf.case_preserving);
}

static void code_commit(struct coder *c, struct nfs3_result *result)
{
    code_wcc(c, &result->wcc);
    if (nfs3_xdr_result_done(result))
        code_fixed(c, result->write.verifier, NFS3_VERIFIER);
}

static void code_digest(struct coder *c, struct nfs3_result *result)
{
    code_post_attr(c, &result->attr);
    if (!nfs3_xdr_result_done(result))
        return;
    code64(c, &result->digest.octets);
    code_fixed(c, result->digest.value, NFS3_DIGEST_OCTETS);
}

/* --- the table ------------------------------------------------------------------------------------------------- */

/* The longest encoding of each type in octets. */
enum { ATTR = 84, POST_ATTR = 4 + ATTR, WCC = 4 + 24 + POST_ATTR, FH = 4 + NFS3_FH_MAX, POST_FH = 4 + FH };

/* The longest result is that of NFS3_OK. `octets` is its length after the status; for READDIR and READDIRPLUS without
 * the entries and the end of the list. */
static const struct {
    void (*code)(struct coder *c, struct nfs3_result *result);
    uint32_t octets;
} table[NFS3_PROCS] = {
    [NFS3_GETATTR] = {code_getattr, ATTR},
    [NFS3_SETATTR] = {code_changed, WCC},
    [NFS3_LOOKUP] = {code_lookup, FH + POST_ATTR + POST_ATTR},
    [NFS3_ACCESS] = {nfs3_xdr_result_code_access, POST_ATTR + 4},
    [NFS3_READLINK] = {code_readlink, POST_ATTR + 4},
    [NFS3_READ] = {code_read, POST_ATTR + 4 + 4 + 4},
    [NFS3_WRITE] = {nfs3_xdr_result_code_write, WCC + 4 + 4 + NFS3_VERIFIER},
    [NFS3_CREATE] = {code_made, POST_FH + POST_ATTR + WCC},
    [NFS3_MKDIR] = {code_made, POST_FH + POST_ATTR + WCC},
    [NFS3_SYMLINK] = {code_made, POST_FH + POST_ATTR + WCC},
    [NFS3_MKNOD] = {code_made, POST_FH + POST_ATTR + WCC},
    [NFS3_REMOVE] = {code_changed, WCC},
    [NFS3_RMDIR] = {code_changed, WCC},
    [NFS3_RENAME] = {nfs3_xdr_result_code_rename, WCC + WCC},
    [NFS3_LINK] = {nfs3_xdr_result_code_link, POST_ATTR + WCC},
    [NFS3_READDIR] = {nfs3_xdr_result_code_readdir, POST_ATTR + NFS3_VERIFIER},
    [NFS3_READDIRPLUS] = {nfs3_xdr_result_code_readdirplus, POST_ATTR + NFS3_VERIFIER},
    [NFS3_FSSTAT] = {code_fsstat, POST_ATTR + 6 * 8 + 4},
    [NFS3_FSINFO] = {code_fsinfo, POST_ATTR + 7 * 4 + 8 + 8 + 4},
    [NFS3_PATHCONF] = {code_pathconf, POST_ATTR + 6 * 4},
    [NFS3_COMMIT] = {code_commit, WCC + NFS3_VERIFIER},
    [NFS3_DIGEST] = {code_digest, POST_ATTR + 8 + NFS3_DIGEST_OCTETS},
};

void nfs3_code_result(struct coder *c, enum nfs3_proc proc, struct nfs3_result *result)
{
    if (proc >= NFS3_PROCS) {
        code_fail(c);
    } else if (table[proc].code) {
        uint32_t status = result->status;

        code32(c, &status);
        result->status = status;
        table[proc].code(c, result);
    }
    code_end(c);
}

size_t nfs3_result_max(enum nfs3_proc proc, const union nfs3_args *args)
{
    enum { LIST_END = 8 }; /* the FALSE that ends the list, and eof */

    if (proc >= NFS3_PROCS || !table[proc].code)
        return 0;
    if (proc != NFS3_READDIR && proc != NFS3_READDIRPLUS)
        return 4 + table[proc].octets;
    return 4 + table[proc].octets + (args->list.maxcount > LIST_END ? (size_t)args->list.maxcount : LIST_END);
}
