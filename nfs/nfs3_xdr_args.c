/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_xdr_args.c - codes the arguments of each procedure (RFC 1813 3.3). */
#include "nfs/nfs3_xdr_types.h"

static void code_where(struct coder *c, struct nfs3_where *where)
{
    code_fh(c, &where->dir);
    code_text(c, &where->name, NFS3_TEXT_MAX);
}

static void code_set32(struct coder *c, bool *set, uint32_t *v)
{
    code_bool(c, set);
    if (*set)
        code32(c, v);
}

static enum nfs3_settime code_set_time(struct coder *c, enum nfs3_settime set, struct nfs3_time *time)
{
    set = code_enum(c, set, NFS3_DONT_CHANGE, NFS3_CLIENT_TIME);
    if (set == NFS3_CLIENT_TIME)
        code_time(c, time);
    return set;
}

static void code_sattr(struct coder *c, struct nfs3_sattr *attr)
{
    code_set32(c, &attr->set_mode, &attr->mode);
    code_set32(c, &attr->set_uid, &attr->uid);
    code_set32(c, &attr->set_gid, &attr->gid);
    code_bool(c, &attr->set_size);
    if (attr->set_size)
        code64(c, &attr->size);
    attr->set_atime = code_set_time(c, attr->set_atime, &attr->atime);
    attr->set_mtime = code_set_time(c, attr->set_mtime, &attr->mtime);
}

static void code_nothing(struct coder *c, union nfs3_args *args)
{
    (void)c;
    (void)args;
}

/* GETATTR, READLINK, FSSTAT, FSINFO, PATHCONF */
static void code_handle(struct coder *c, union nfs3_args *args)
{
    code_fh(c, &args->fh);
}

static void code_setattr(struct coder *c, union nfs3_args *args)
{
    code_fh(c, &args->setattr.fh);
    code_sattr(c, &args->setattr.attr);
    code_bool(c, &args->setattr.guarded);
    if (args->setattr.guarded)
        code_time(c, &args->setattr.ctime);
}

/* LOOKUP, REMOVE, RMDIR */
static void code_name(struct coder *c, union nfs3_args *args)
{
    code_where(c, &args->where);
}

static void nfs3_xdr_args_code_access(struct coder *c, union nfs3_args *args)
{
    code_fh(c, &args->access.fh);
    code32(c, &args->access.access);
}

/* READ, COMMIT */
static void nfs3_xdr_args_code_range(struct coder *c, union nfs3_args *args)
{
    code_fh(c, &args->range.fh);
    code64(c, &args->range.offset);
    code32(c, &args->range.count);
}

static void nfs3_xdr_args_code_write(struct coder *c, union nfs3_args *args)
{
    code_fh(c, &args->write.fh);
    code64(c, &args->write.offset);
    code32(c, &args->write.count);
    args->write.stable = code_enum(c, args->write.stable, NFS3_UNSTABLE, NFS3_FILE_SYNC);
    code_item(c, &args->write.data, &args->write.length, UINT32_MAX);
}

static void code_create(struct coder *c, union nfs3_args *args)
{
    struct nfs3_make *make = &args->make;

    code_where(c, &make->where);
    make->how = code_enum(c, make->how, NFS3_UNCHECKED, NFS3_EXCLUSIVE);
    if (make->how == NFS3_EXCLUSIVE)
        code_fixed(c, make->verifier, NFS3_VERIFIER);
    else
        code_sattr(c, &make->attr);
}

static void code_mkdir(struct coder *c, union nfs3_args *args)
{
    code_where(c, &args->make.where);
    code_sattr(c, &args->make.attr);
}

static void code_symlink(struct coder *c, union nfs3_args *args)
{
    const void *target = args->make.target.at;

    code_where(c, &args->make.where);
    code_sattr(c, &args->make.attr);
    code_item(c, &target, &args->make.target.length, NFS3_TEXT_MAX);
    args->make.target.at = target;
}

/* NFS3_REG, NFS3_DIR and NFS3_LNK are legal types without a body; the server answers NFS3ERR_BADTYPE. */
static void code_mknod(struct coder *c, union nfs3_args *args)
{
    struct nfs3_make *make = &args->make;
    bool device;

    code_where(c, &make->where);
    make->type = code_enum(c, make->type, NFS3_REG, NFS3_FIFO);
    device = make->type == NFS3_CHR || make->type == NFS3_BLK;
    if (device || make->type == NFS3_SOCK || make->type == NFS3_FIFO)
        code_sattr(c, &make->attr);
    if (device) {
        code32(c, &make->major);
        code32(c, &make->minor);
    }
}

static void nfs3_xdr_args_code_rename(struct coder *c, union nfs3_args *args)
{
    code_where(c, &args->rename.from);
    code_where(c, &args->rename.to);
}

static void nfs3_xdr_args_code_link(struct coder *c, union nfs3_args *args)
{
    code_fh(c, &args->link.fh);
    code_where(c, &args->link.to);
}

static void code_cookie(struct coder *c, struct nfs3_list *list)
{
    code_fh(c, &list->dir);
    code64(c, &list->cookie);
    code_fixed(c, list->verifier, NFS3_VERIFIER);
}

static void nfs3_xdr_args_code_readdir(struct coder *c, union nfs3_args *args)
{
    code_cookie(c, &args->list);
    code32(c, &args->list.maxcount);
}

static void nfs3_xdr_args_code_readdirplus(struct coder *c, union nfs3_args *args)
{
    code_cookie(c, &args->list);
    code32(c, &args->list.dircount);
    code32(c, &args->list.maxcount);
}

void nfs3_code_args(struct coder *c, enum nfs3_proc proc, union nfs3_args *args)
{
    static void (*const code[NFS3_PROCS])(struct coder *, union nfs3_args *) = {
        [NFS3_NULL] = code_nothing,
        [NFS3_GETATTR] = code_handle,
        [NFS3_SETATTR] = code_setattr,
        [NFS3_LOOKUP] = code_name,
        [NFS3_ACCESS] = nfs3_xdr_args_code_access,
        [NFS3_READLINK] = code_handle,
        [NFS3_READ] = nfs3_xdr_args_code_range,
        [NFS3_WRITE] = nfs3_xdr_args_code_write,
        [NFS3_CREATE] = code_create,
        [NFS3_MKDIR] = code_mkdir,
        [NFS3_SYMLINK] = code_symlink,
        [NFS3_MKNOD] = code_mknod,
        [NFS3_REMOVE] = code_name,
        [NFS3_RMDIR] = code_name,
        [NFS3_RENAME] = nfs3_xdr_args_code_rename,
        [NFS3_LINK] = nfs3_xdr_args_code_link,
        [NFS3_READDIR] = nfs3_xdr_args_code_readdir,
        [NFS3_READDIRPLUS] = nfs3_xdr_args_code_readdirplus,
        [NFS3_FSSTAT] = code_handle,
        [NFS3_FSINFO] = code_handle,
        [NFS3_PATHCONF] = code_handle,
        [NFS3_COMMIT] = nfs3_xdr_args_code_range,
        [NFS3_DIGEST] = nfs3_xdr_args_code_range,
    };

    if (proc < NFS3_PROCS)
        code[proc](c, args);
    else
        code_fail(c);
    code_end(c);
}
