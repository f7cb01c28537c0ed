/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_fake_files.h - for nfsd_fake.h: two exports without objects, of which the second can be silent. */

enum { EXPORTS = 2, SILENT = 0x5e };
static struct export export[EXPORTS];

/* Handles that begin with SILENT are of the second export. */
struct export *nfs_export_of(const struct nfs_server *server, enum nfs3_proc proc, const union nfs3_args *args)
{
    return proc == NFS3_NULL ? NULL : &server->export[args->fh.data[0] == SILENT];
}

struct export *mount_export_of(const struct nfs_server *server, const struct nfs3_text *path)
{
    return &server->export[path->length == 7 && !memcmp(path->at, "/silent", 7)];
}

static void fake_wait(const struct export *e)
{
    fake.waiting++;
    while (fake.silent && e == &export[1])
        usleep(500);
    fake.waiting--;
}

void objects_tend(struct objects *objects, const struct export *e)
{
    (void)objects;
    (void)e;
}

void objects_settle(struct objects *objects, const struct export *e)
{
    (void)objects;
    (void)e;
}

bool objects_are_unsettled(const struct objects *objects, const struct export *e)
{
    (void)objects;
    (void)e;
    return false;
}

bool objects_are_open(const struct objects *objects)
{
    (void)objects;
    return false;
}
