/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve_mount.c - MNT: paths of exports, paths inside and outside of them, and one export inside another. */
#include "nfs_serve.h"

static enum mount3_status mount_text(struct bed *b, const char *path, uint32_t length, struct mount3_result *result)
{
    struct nfs3_text p = {path, length};

    mount_serve(&b->server, (const struct sockaddr *)&b->peer, &b->cred, &p, result);
    return result->status;
}

static enum mount3_status mount_path(struct bed *b, const char *below, struct mount3_result *result)
{
    char path[2048];

    snprintf(path, sizeof(path), "%s%s", b->dir, below);
    return mount_text(b, path, (uint32_t)strlen(path), result);
}

static void paths(void **state)
{
    struct bed *b = *state;
    struct mount3_result m;
    struct nfs3_fh dir;
    char name[NFS3_NAME_MAX + 3] = "/";

    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    assert_int_equal(mkdir(local(b, "d/e"), 0700), 0);
    assert_int_equal(symlink("d", local(b, "l")), 0);
    assert_int_equal(symlink("/etc", local(b, "out")), 0);
    local_write(b, "f", "", 0600);
    dir = lookup(b, "d");
    assert_int_equal(mount_path(b, "", &m), MNT3_OK);
    assert_memory_equal(&m.fh, &b->root, sizeof(m.fh.length) + m.fh.length);
    assert_int_equal(m.flavors, 2);
    assert_int_equal(m.flavor[0], RPC_AUTH_SYS);
    assert_int_equal(m.flavor[1], RPC_AUTH_NONE);
    assert_int_equal(mount_path(b, "//", &m), MNT3_OK);
    assert_memory_equal(&m.fh, &b->root, sizeof(m.fh.length) + m.fh.length);
    assert_int_equal(mount_path(b, "/d/", &m), MNT3_OK);
    assert_memory_equal(&m.fh, &dir, sizeof(m.fh.length) + m.fh.length);
    assert_int_equal(mount_path(b, "//./d/./e", &m), MNT3_OK);
    assert_int_equal(simple(b, NFS3_GETATTR, &m.fh), NFS3_OK);
    assert_int_equal(mount_path(b, "/no", &m), MNT3ERR_NOENT);
    assert_int_equal(mount_path(b, "/d/no/e", &m), MNT3ERR_NOENT);
    assert_int_equal(mount_path(b, "/f", &m), MNT3ERR_NOTDIR);
    assert_int_equal(mount_path(b, "/f/x", &m), MNT3ERR_NOTDIR);
    assert_int_equal(mount_path(b, "/l", &m), MNT3ERR_NOTDIR);
    assert_int_equal(mount_path(b, "/out", &m), MNT3ERR_NOTDIR);
    assert_int_equal(mount_path(b, "/out/ssl", &m), MNT3ERR_NOTDIR);
    assert_int_equal(mount_path(b, "/..", &m), MNT3ERR_ACCES);
    assert_int_equal(mount_path(b, "/d/../../etc", &m), MNT3ERR_ACCES);
    assert_int_equal(mkdir(local(b, "x"), 0700), 0); /* the next path extends the export's name and must not find "x" */
    assert_int_equal(mount_path(b, "x", &m), MNT3ERR_NOENT);
    assert_int_equal(mount_text(b, "", 0, &m), MNT3ERR_NOENT);
    assert_int_equal(mount_text(b, "/", 1, &m), MNT3ERR_NOENT);
    assert_int_equal(mount_text(b, "/tm", 3, &m), MNT3ERR_NOENT);
    assert_int_equal(mount_text(b, "tmp", 3, &m), MNT3ERR_NOENT);
    assert_int_equal(mount_text(b, "/tmp\0x", 6, &m), MNT3ERR_INVAL);
    assert_int_equal(mount_text(b, b->dir, (uint32_t)strlen(b->dir) + 1, &m), MNT3ERR_INVAL);
    memset(name + 1, 'n', NFS3_NAME_MAX + 1);
    assert_int_equal(mount_path(b, name, &m), MNT3ERR_NAMETOOLONG);
    name[NFS3_NAME_MAX + 1] = 0;
    assert_int_equal(mount_path(b, name, &m), MNT3ERR_NOENT);
}

static void long_paths(void **state)
{
    struct bed *b = *state;
    struct mount3_result m;
    char path[MOUNT_PATH_MAX + 1];

    memset(path, '/', sizeof(path));
    memcpy(path, b->dir, strlen(b->dir));
    assert_int_equal(mount_text(b, path, MOUNT_PATH_MAX, &m), MNT3_OK);
    assert_int_equal(mount_text(b, path, MOUNT_PATH_MAX + 1, &m), MNT3ERR_NAMETOOLONG);
}

/* One export lies inside another: the rules of the inner one apply to it, and RENAME and LINK between them fail. */
static void two_exports(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct export both[2];
    struct objects_attr objects;
    struct mount3_result m;
    struct nfs3_fh outer, inner, f;
    char error[EXPORT_TEXT];

    assert_int_equal(mkdir(local(b, "in"), 0755), 0);
    local_write(b, "f", "", 0600);
    assert_int_equal(export_open(&both[0], b->dir, &attr, error), 0);
    attr.read_only = true;
    assert_int_equal(export_open(&both[1], local(b, "in"), &attr, error), 0);
    objects_attr_init(&objects);
    objects.export = both;
    objects.exports = 2;
    bed_close(b);
    b->server.objects = objects_open(&objects, error);
    b->server.export = both;
    b->server.exports = 2;
    assert_int_equal(mount_path(b, "", &m), MNT3_OK);
    outer = m.fh;
    assert_int_equal(mount_path(b, "/in/", &m), MNT3_OK);
    inner = m.fh;
    assert_int_equal(by_name(b, NFS3_MKDIR, &inner, "x"), NFS3ERR_ROFS);
    assert_int_equal(by_name(b, NFS3_MKDIR, &outer, "x"), NFS3_OK);
    assert_int_equal(lookup_in(b, &outer, "f", &f), NFS3_OK);
    assert_int_equal(move(b, &outer, "f", &inner, "f"), NFS3ERR_XDEV);
    assert_int_equal(hard_link(b, &f, &inner, "f"), NFS3ERR_XDEV);
    assert_true(b->result.attr.present);
    assert_false(b->result.to_wcc.had || b->result.to_wcc.after.present);
    /* LOOKUP of ".." in the inner root returns the inner root. */
    assert_int_equal(lookup_in(b, &inner, "..", &f), NFS3_OK);
    assert_memory_equal(&f, &inner, sizeof(f.length) + f.length);
    objects_close(b->server.objects);
    export_close(&both[0]);
    export_close(&both[1]);
    attr = bed_attr();
    bed_open(b, &attr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        bed_test(paths),
        bed_test(long_paths),
        bed_test(two_exports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
