/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* read_dir.c - reads a directory of a server, and copes with one that lies: invalid names, repeated cookies, no end. */
#include <errno.h>
#include <string.h>

#include "nfs/command/nfs.h"

void nfs_list_open(struct nfs_list *l, struct nfs_client *client, const struct nfs3_fh *dir, bool dots)
{
    *l = (struct nfs_list){.client = client, .dots = dots};
    l->op.proc = NFS3_READDIRPLUS;
    l->op.args.list.dir = *dir;
    l->op.args.list.dircount = NFS_LIST_OCTETS / 4;
    l->op.args.list.maxcount = NFS_LIST_OCTETS;
}

void nfs_list_close(struct nfs_list *l)
{
    nfs_forget(&l->op);
}

static int list_broken(struct nfs_list *l, const char *trouble)
{
    l->trouble = trouble;
    return -EPROTO;
}

/* Asks for the next block of entries. Returns 1; 0 at the end of the directory; or a negative errno. */
static int list_ask(struct nfs_list *l)
{
    if (l->end)
        return 0;
    int error = nfs_call(l->client, &l->op);
    if (error) {
        l->trouble = nfs_why(&l->op);
        return error;
    }
    l->end = l->op.result.list.eof;
    l->left = (struct xdr_in){.at = l->op.result.list.entries, .left = l->op.result.list.length};
    memcpy(l->op.args.list.verifier, l->op.result.list.verifier, NFS3_VERIFIER);
    if (!l->left.left && !l->end)
        return list_broken(l, "the server gives neither a name nor the end of the directory");
    return l->left.left > 0;
}

/* Asks for the handle and attributes that the server left out. */
static int list_complete(struct nfs_list *l, const struct nfs3_entry *entry, struct nfs_item *item)
{
    item->fh = entry->fh.fh;
    item->attr = entry->attr.attr;
    if (entry->fh.present && entry->attr.present)
        return 0;
    struct nfs_op op = {.proc = NFS3_LOOKUP};
    op.args.where.dir = l->op.args.list.dir;
    op.args.where.name = (struct nfs3_text){item->name, (uint32_t)strlen(item->name)};
    int error = nfs_call(l->client, &op);
    item->fh = op.result.fh;
    if (!error && !op.result.attr.present) {
        op.proc = NFS3_GETATTR;
        op.args.fh = item->fh;
        error = nfs_call(l->client, &op);
    }
    item->attr = op.result.attr.attr;
    if (error)
        l->trouble = nfs_why(&op);
    nfs_forget(&op);
    return error;
}

static bool list_is_dots(const struct nfs3_text *name)
{
    return (name->length == 1 && name->at[0] == '.') || (name->length == 2 && !memcmp(name->at, "..", 2));
}

/* Takes a name. Returns 1; 0 if it is to be skipped; or a negative errno. */
static int take_name(struct nfs_list *l, const struct nfs3_text *name, struct nfs_item *item)
{
    bool dots = list_is_dots(name);
    if (dots && !l->dots)
        return 0;
    if (!name->length || name->length > XFER_NAME)
        return list_broken(l, "the server returns a name that is empty or longer than 255 octets");
    memcpy(item->name, name->at, name->length);
    item->name[name->length] = 0;
    if (strlen(item->name) != name->length || (!dots && !xfer_name_ok(item->name)))
        return list_broken(l, "the server returns a name with a slash or a NUL");
    return 1;
}

int nfs_list_next(struct nfs_list *l, struct nfs_item *item)
{
    int error = 0;
    while (error == 0) {
        struct nfs3_entry entry;
        if (!l->left.left && (error = list_ask(l)) <= 0)
            return error;
        if (!nfs3_get_entry(&l->left, &entry, true))
            return list_broken(l, "the server's list of names is malformed");
        if (l->circle.entries == NFS_ENTRIES_MAX)
            return list_broken(l, "the directory does not end: more than 2097152 names");
        if (circle_closes(&l->circle, entry.cookie))
            return list_broken(l, "the server's list of names goes round in a circle");
        l->op.args.list.cookie = entry.cookie;
        error = take_name(l, &entry.name, item);
        if (error > 0)
            error = list_complete(l, &entry, item);
        else if (error == 0)
            continue;
        if (error == 0)
            return 1;
        /* The entry was removed meanwhile. */
        if (error == -ENOENT || error == -ESTALE)
            error = 0;
    }
    return error;
}
