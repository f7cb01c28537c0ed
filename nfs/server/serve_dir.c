/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_dir.c - serves READDIR and READDIRPLUS. A cookie is the file system's own position after an entry, so that
 * creating or removing other entries, or a restart, does not invalidate it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <string.h>
#include <unistd.h>

#include "nfs/server/serve_in.h"

enum {
    AROUND = 4 + 84 + NFS3_VERIFIER + 4 + 4, /* octets: attributes of the directory, verifier, end of the list, eof */
    INFORMATION = 8 + 4 + 8, /* octets of an entry without its name: fileid, length of the name, cookie */
    STAGE = 32768,
};

struct serve_listing {
    struct serve_call *c;
    bool plus;
    struct xdr_out out; /* limited to the size that the client wants */
    uint64_t left;      /* octets of names, fileids and cookies that the client still wants */
    bool full, any;
};

/* Adds the attributes and the handle, if the caller may see them and the object still exists. */
static void add_object(const struct serve_listing *l, const char *name, struct nfs3_entry *entry)
{
    struct serve_call *c = l->c;
    struct stat st;

    if (object_name(c->objects, c->object, name, &entry->fh.fh, &st))
        return;
    entry->fh.present = entry->attr.present = true;
    attr_of(c->object->export, &st, &entry->attr.attr);
    entry->fileid = st.st_ino;
}

/* The fileid of "..". The parent that the file system lists may be outside: that of the root is, and that of a
 * directory which has just been moved out. The directory itself stands in for it. */
static uint64_t parent_of(const struct serve_call *c)
{
    struct nfs3_fh fh;
    struct stat st;

    if (object_name(c->objects, c->object, "..", &fh, &st) && object_stat(c->object, &st))
        return 0;
    return st.st_ino;
}

/* Returns false if the entry does not fit. */
static bool serve_dir_put(struct serve_listing *l, const struct dirent64 *d)
{
    struct nfs3_entry entry = {.fileid = d->d_ino, .cookie = (uint64_t)d->d_off};
    size_t n = strlen(d->d_name);
    uint64_t needs = INFORMATION + n + xdr_roundup(n);

    if (needs > l->left)
        return false;
    if (!strcmp(d->d_name, ".."))
        entry.fileid = parent_of(l->c);
    entry.name = (struct nfs3_text){d->d_name, (uint32_t)n};
    if (l->plus)
        add_object(l, d->d_name, &entry);
    if (!nfs3_put_entry(&l->out, &entry, l->plus))
        return false;
    l->left -= needs;
    l->any = true;
    return true;
}

/* Returns 1 if there may be more, 0 at the end of the directory, or a negative errno. */
static int put_some(struct serve_listing *l, int fd)
{
    alignas(struct dirent64) char stage[STAGE];
    ssize_t n = getdents64(fd, stage, sizeof(stage));

    if (n < 0)
        return -errno;
    for (ssize_t at = 0; at < n && !l->full;) {
        const struct dirent64 *d = (const void *)(stage + at);

        l->full = !serve_dir_put(l, d);
        at += d->d_reclen;
    }
    return n > 0;
}

static enum nfs3_status put_all(struct serve_listing *l, int fd, const struct nfs3_list *args)
{
    struct nfs3_result *result = l->c->result;
    int more = 1;

    if (args->cookie && lseek(fd, (off_t)args->cookie, SEEK_SET) < 0)
        return NFS3ERR_BAD_COOKIE;
    while (more > 0 && !l->full)
        more = put_some(l, fd);
    /* Return the entries found before an error: the client's next call gets the error. */
    if (more < 0 && !l->any)
        return more == -ENOENT ? NFS3ERR_STALE : nfs3_status_of(-more);
    if (l->full && !l->any)
        return NFS3ERR_TOOSMALL;
    result->list.eof = more == 0;
    return NFS3_OK;
}

/* Serves READDIR and READDIRPLUS. The verifier is always zero, since cookies stay valid. */
enum nfs3_status serve_readdir(struct serve_call *c)
{
    static const uint8_t zero[NFS3_VERIFIER];
    const struct nfs3_list *args = &c->args->list;
    struct serve_listing l = {.c = c, .plus = c->request->proc == NFS3_READDIRPLUS, .left = UINT64_MAX};
    size_t space = c->request->capacity;
    char path[SELF_PATH];
    enum nfs3_status status;
    int fd;

    if (args->cookie > INT64_MAX || (args->cookie && memcmp(args->verifier, zero, sizeof(zero)) != 0))
        return NFS3ERR_BAD_COOKIE;
    if (args->maxcount < AROUND)
        return NFS3ERR_TOOSMALL;
    if (space > args->maxcount - AROUND)
        space = args->maxcount - AROUND;
    l.out = (struct xdr_out){.at = c->request->buffer, .left = space};
    if (l.plus)
        l.left = args->dircount;
    self_path(path, c->object->fd);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return nfs3_status_of(errno);
    status = put_all(&l, fd, args);
    close(fd);
    c->result->list.entries = c->request->buffer;
    c->result->list.length = (uint32_t)(space - l.out.left);
    return status;
}
