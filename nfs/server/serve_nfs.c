/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_nfs.c - executes one call: finds its objects, checks the client's access, assumes the identity, runs the
 * procedure, and makes changes stable before the reply. */
#include "nfs/server/handle.h"
#include "nfs/server/serve_in.h"

#include <assert.h>
#include <errno.h>

enum {               /* what a procedure needs: */
       POST = 1,     /* the attributes of the object in the result */
       DIR = 2,      /* the attributes of the object as those of the directory */
       WCC = 4,      /* the object's attributes before and after in the result */
       TO_WCC = 8,   /* the same for the second object */
       CHANGES = 16, /* not allowed in a read-only export */
       IN_DIR = 32,  /* the first handle is that of a directory */
       STABLE = 64,  /* changed directories reach the disk before the reply */
       SLOW = 128,   /* it can block on the disk */
       DISK = 256,   /* it may ask the disk for what the kernel does not keep, so that it is not tried `cached` */
       MAKE = CHANGES | IN_DIR | STABLE | SLOW | WCC,
};

struct procedure {
    enum nfs3_status (*serve)(struct serve_call *c);
    unsigned wants;
};

/* clang-format off */
static const struct procedure procedures[NFS3_PROCS] = {
    [NFS3_GETATTR]     = {serve_getattr,  0},
    [NFS3_SETATTR]     = {serve_setattr,  WCC | CHANGES | SLOW},
    [NFS3_LOOKUP]      = {serve_lookup,   DIR | IN_DIR},
    [NFS3_ACCESS]      = {serve_access,   POST},
    [NFS3_READLINK]    = {serve_readlink, POST | DISK},
    [NFS3_READ]        = {serve_read,     POST},
    [NFS3_WRITE]       = {serve_write,    WCC | CHANGES | SLOW},
    [NFS3_CREATE]      = {serve_create,   MAKE},
    [NFS3_MKDIR]       = {serve_mkdir,    MAKE},
    [NFS3_SYMLINK]     = {serve_symlink,  MAKE},
    [NFS3_MKNOD]       = {serve_mknod,    MAKE},
    [NFS3_REMOVE]      = {serve_remove,   MAKE},
    [NFS3_RMDIR]       = {serve_rmdir,    MAKE},
    [NFS3_RENAME]      = {serve_rename,   MAKE | TO_WCC},
    [NFS3_LINK]        = {serve_link,     POST | TO_WCC | CHANGES | STABLE | SLOW},
    [NFS3_READDIR]     = {serve_readdir,  POST | IN_DIR | SLOW},
    [NFS3_READDIRPLUS] = {serve_readdir,  POST | IN_DIR | SLOW},
    [NFS3_FSSTAT]      = {serve_fsstat,   POST | DISK},
    [NFS3_FSINFO]      = {serve_fsinfo,   POST},
    [NFS3_PATHCONF]    = {serve_pathconf, POST | DISK},
    [NFS3_COMMIT]      = {serve_commit,   WCC | SLOW},
    [NFS3_DIGEST]      = {serve_digest,   POST | SLOW},
};
/* clang-format on */

enum { QUICK_READ = 65536 };

size_t nfs_result_size(enum nfs3_proc proc, const union nfs3_args *args)
{
    uint32_t wanted = 0;

    if (proc == NFS3_READ)
        wanted = args->range.count;
    else if (proc == NFS3_READLINK)
        wanted = NFS3_PATH_MAX;
    else if (proc == NFS3_READDIR || proc == NFS3_READDIRPLUS)
        wanted = args->list.maxcount;
    return wanted < NFS3_IO_MAX ? wanted : NFS3_IO_MAX;
}

bool nfs_is_slow(enum nfs3_proc proc, const union nfs3_args *args)
{
    if (proc == NFS3_READ)
        return args->range.count > QUICK_READ;
    return proc < NFS3_PROCS && procedures[proc].wants & SLOW;
}

struct export *nfs_export_of(const struct nfs_server *server, enum nfs3_proc proc, const union nfs3_args *args)
{
    if (proc == NFS3_NULL)
        return NULL;
    /* The arguments of every other procedure begin with the first handle. */
    for (unsigned i = 0; i < server->exports; i++)
        if (server->export[i].id == handle_export(&args->fh))
            return &server->export[i];
    return NULL;
}

/* Finds the second object of RENAME and LINK. It must be in the same export: the file system of another one is not
 * asked, since it may be silent. */
static enum nfs3_status find_second(struct serve_call *c)
{
    bool rename = c->request->proc == NFS3_RENAME;
    const struct nfs3_fh *fh = rename ? &c->args->rename.to.dir : &c->args->link.to.dir;
    enum nfs3_status status;

    if (handle_export(fh) != c->object->export->id)
        return object_is_ours(c->objects, fh) ? NFS3ERR_XDEV : NFS3ERR_BADHANDLE;
    status = object_find(c->objects, fh, c->request->search, &c->to);
    if (status != NFS3_OK)
        return status;
    return S_ISDIR(c->to->type) ? NFS3_OK : NFS3ERR_NOTDIR;
}

static enum nfs3_status find_first(struct serve_call *c)
{
    enum nfs3_status status;

    status = c->request->cached ? object_cached(c->objects, &c->args->fh, &c->object)
                                : object_find(c->objects, &c->args->fh, c->request->search, &c->object);
    c->later = c->request->cached && status == NFS3ERR_JUKEBOX;
    if (status == NFS3_OK && !export_allows(c->object->export, c->request->peer)) {
        object_put(c->objects, c->object);
        c->object = NULL;
        status = NFS3ERR_ACCES;
    }
    return status;
}

static void serve_before(struct serve_call *c, unsigned wants)
{
    if (wants & WCC && c->object)
        attr_before(c->object, &c->result->wcc);
    if (wants & TO_WCC && c->to)
        attr_before(c->to, &c->result->to_wcc);
}

static void after(struct serve_call *c, unsigned wants)
{
    struct nfs3_result *result = c->result;

    if (wants & POST && c->object)
        attr_post(c->object, &result->attr);
    if (wants & DIR && c->object)
        attr_post(c->object, &result->dir);
    if (wants & WCC && c->object)
        attr_post(c->object, &result->wcc.after);
    if (wants & TO_WCC && c->to)
        attr_post(c->to, &result->to_wcc.after);
}

/* Does all that precedes the procedure: finds the objects, checks access, assumes the identity. */
static enum nfs3_status serve_enter(struct serve_call *c, unsigned wants)
{
    enum nfs3_status status = find_first(c);

    if (status == NFS3_OK && wants & TO_WCC)
        status = find_second(c);
    serve_before(c, wants);
    if (status != NFS3_OK)
        return status;
    if (wants & CHANGES && c->object->export->attr.read_only)
        return NFS3ERR_ROFS;
    if (wants & IN_DIR && !S_ISDIR(c->object->type))
        return NFS3ERR_NOTDIR;
    export_identity(c->object->export, c->request->cred, &c->who);
    return identity_assume(&c->who) ? NFS3ERR_ACCES : NFS3_OK;
}

/* RFC 1813 4.7: changes are on the disk before the client hears of them. */
static enum nfs3_status serve_make_stable(struct serve_call *c)
{
    int error = 0;

    if (c->object->export->attr.async)
        return NFS3_OK;
    if (S_ISDIR(c->object->type))
        error = sync_dir(c->object);
    if (!error && c->to && c->to != c->object)
        error = sync_dir(c->to);
    return nfs3_status_of(-error);
}

bool nfs_serve(const struct nfs_request *request)
{
    struct serve_call c = {
        .request = request, .args = request->args, .result = request->result, .objects = request->server->objects};
    const struct procedure *p;
    enum nfs3_status status;

    assert(request->proc < NFS3_PROCS);
    p = &procedures[request->proc];
    if (!p->serve)
        return true;
    if (request->cached && p->wants & DISK)
        return false;
    status = serve_enter(&c, p->wants);
    c.later = c.later || (request->search && *request->search);
    if (status == NFS3_OK)
        status = p->serve(&c);
    if (status == NFS3_OK && p->wants & STABLE)
        status = serve_make_stable(&c);
    after(&c, p->wants);
    c.result->status = status;
    object_put(c.objects, c.to);
    object_put(c.objects, c.object);
    if (c.later)
        *c.result = (struct nfs3_result){0};
    return !c.later;
}
