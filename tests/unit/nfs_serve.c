/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve.c - test GETATTR, SETATTR, LOOKUP, FSSTAT, FSINFO and PATHCONF, and the checks of all procedures. */
#include "nfs_serve.h"

#include <sys/sysmacros.h>
#include <time.h>

static void attributes(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "hello", 0640);
    struct nfs3_attr *a = &b->result.attr.attr;
    struct stat st;

    assert_int_equal(chmod(local(b, "f"), 04640), 0);
    assert_int_equal(simple(b, NFS3_GETATTR, &fh), NFS3_OK);
    assert_int_equal(stat(local(b, "f"), &st), 0);
    assert_int_equal(a->type, NFS3_REG);
    assert_int_equal(a->mode, 04640);
    assert_int_equal(a->nlink, 1);
    assert_int_equal(a->uid, geteuid());
    assert_int_equal(a->size, 5);
    assert_int_equal(a->used, st.st_blocks * 512);
    assert_int_equal(a->fileid, st.st_ino);
    assert_int_equal(a->fsid, b->export.id);
    assert_int_equal(a->mtime.s, st.st_mtim.tv_sec);
    assert_int_equal(a->mtime.ns, st.st_mtim.tv_nsec);
    assert_int_equal(a->ctime.ns, st.st_ctim.tv_nsec);
    assert_int_equal(simple(b, NFS3_GETATTR, &b->root), NFS3_OK);
    assert_int_equal(a->type, NFS3_DIR);
    assert_int_equal(simple(b, NFS3_NULL, &b->root), NFS3_OK);
}

static void types(void **state)
{
    static const enum nfs3_type expected[] = {NFS3_FIFO, NFS3_SOCK, NFS3_LNK, NFS3_DIR, NFS3_CHR};
    struct bed *b = *state;
    char name[2] = "a";
    bool device = !mknod(local(b, "e"), S_IFCHR | 0600, makedev(1, 3));

    assert_int_equal(mkfifo(local(b, "a"), 0600), 0);
    assert_int_equal(mknod(local(b, "b"), S_IFSOCK | 0600, 0), 0);
    assert_int_equal(symlink("x", local(b, "c")), 0);
    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    for (unsigned i = 0; i < (device ? 5 : 4); i++, name[0]++) {
        struct nfs3_fh fh = lookup(b, name);

        assert_int_equal(simple(b, NFS3_GETATTR, &fh), NFS3_OK);
        assert_int_equal(b->result.attr.attr.type, expected[i]);
        assert_int_equal(b->result.attr.attr.major, i == 4 ? 1 : 0);
        assert_int_equal(b->result.attr.attr.minor, i == 4 ? 3 : 0);
    }
}

/* Every procedure refuses the handle of a removed file, a handle without a valid MAC and an empty handle. */
static void handles(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh gone = file(b, "f", "", 0600), none = {.length = 40};

    assert_int_equal(unlink(local(b, "f")), 0);
    for (enum nfs3_proc proc = NFS3_GETATTR; proc < NFS3_PROCS; proc++) {
        union nfs3_args args;

        memset(&args, 0, sizeof(args));
        args.fh = gone;
        assert_int_equal(call(b, proc, &args), NFS3ERR_STALE);
        args.fh = none;
        assert_int_equal(call(b, proc, &args), NFS3ERR_BADHANDLE);
        args.fh.length = 0;
        assert_int_equal(call(b, proc, &args), NFS3ERR_BADHANDLE);
        assert_false(b->result.attr.present || b->result.wcc.after.present || b->result.dir.present);
    }
    /* The second handle is bad; the reply to RENAME still has the attributes of the first directory. */
    assert_int_equal(move(b, &b->root, "a", &gone, "b"), NFS3ERR_STALE);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    assert_false(b->result.to_wcc.had || b->result.to_wcc.after.present);
    assert_int_equal(hard_link(b, &b->root, &none, "b"), NFS3ERR_BADHANDLE);
}

static void not_a_directory(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "", 0600);

    assert_int_equal(by_name(b, NFS3_LOOKUP, &fh, "x"), NFS3ERR_NOTDIR);
    assert_true(b->result.dir.present);
    for (enum nfs3_proc proc = NFS3_CREATE; proc <= NFS3_RMDIR; proc++) {
        assert_int_equal(by_name(b, proc, &fh, "x"), NFS3ERR_NOTDIR);
        assert_true(b->result.wcc.had && b->result.wcc.after.present);
    }
    assert_int_equal(move(b, &fh, "a", &b->root, "b"), NFS3ERR_NOTDIR);
    assert_int_equal(move(b, &b->root, "f", &fh, "b"), NFS3ERR_NOTDIR);
    assert_int_equal(hard_link(b, &fh, &fh, "b"), NFS3ERR_NOTDIR);
    assert_int_equal(simple(b, NFS3_READDIR, &fh), NFS3ERR_NOTDIR);
    assert_int_equal(simple(b, NFS3_READDIRPLUS, &fh), NFS3ERR_NOTDIR);
}

static void set_attributes(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "hello", 0640);
    struct nfs3_sattr attr = {.set_mode = true, .mode = 0100604, .set_size = true, .size = 3};
    struct stat st;

    attr.set_atime = attr.set_mtime = NFS3_CLIENT_TIME;
    attr.atime = (struct nfs3_time){1000, 5};
    attr.mtime = (struct nfs3_time){4000000000U, 999999999};
    assert_int_equal(set(b, &fh, &attr), NFS3_OK);
    assert_int_equal(b->result.wcc.size, 5);
    assert_int_equal(b->result.wcc.after.attr.size, 3);
    assert_int_equal(stat(local(b, "f"), &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0604);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(st.st_atim.tv_sec, 1000);
    assert_int_equal(st.st_atim.tv_nsec, 5);
    assert_int_equal(st.st_mtim.tv_sec, 4000000000);
    assert_int_equal(st.st_mtim.tv_nsec, 999999999);
    attr = (struct nfs3_sattr){.set_mtime = NFS3_SERVER_TIME};
    assert_int_equal(set(b, &fh, &attr), NFS3_OK);
    assert_int_equal(stat(local(b, "f"), &st), 0);
    assert_int_equal(st.st_atim.tv_sec, 1000);
    assert_true(labs(st.st_mtim.tv_sec - time(NULL)) < 5);
    attr = (struct nfs3_sattr){.set_size = true, .size = 10};
    assert_int_equal(set(b, &fh, &attr), NFS3_OK);
    assert_int_equal(get(b, &fh, 0, 100), NFS3_OK);
    assert_int_equal(b->result.read.count, 10);
    assert_memory_equal(b->result.read.data, "hel\0\0\0\0\0\0\0", 10);
}

/* SETATTR of a symbolic link changes the link and never its target. */
static void set_attributes_of_others(void **state)
{
    struct bed *b = *state;
    struct nfs3_sattr times = {.set_mtime = NFS3_CLIENT_TIME, .mtime = {77, 0}},
                      mode = {.set_mode = true, .mode = 0711};
    struct nfs3_fh dir, link;
    struct stat st;

    local_write(b, "f", "", 0600);
    assert_int_equal(symlink("f", local(b, "l")), 0);
    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    dir = lookup(b, "d");
    link = lookup(b, "l");
    assert_int_equal(set(b, &dir, &mode), NFS3_OK);
    assert_int_equal(stat(local(b, "d"), &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0711);
    assert_int_equal(set(b, &link, &times), NFS3_OK);
    assert_int_equal(lstat(local(b, "l"), &st), 0);
    assert_int_equal(st.st_mtime, 77);
    assert_int_equal(stat(local(b, "f"), &st), 0);
    assert_int_not_equal(st.st_mtime, 77);
    assert_int_equal(set(b, &link, &mode), NFS3ERR_INVAL);
    assert_int_equal(stat(local(b, "f"), &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    mode = (struct nfs3_sattr){.set_size = true};
    assert_int_equal(set(b, &dir, &mode), NFS3ERR_INVAL);
    assert_int_equal(set(b, &link, &mode), NFS3ERR_INVAL);
}

static void guard(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "hello", 0640);
    union nfs3_args args = {.setattr = {.fh = fh, .guarded = true}};

    assert_int_equal(simple(b, NFS3_GETATTR, &fh), NFS3_OK);
    args.setattr.attr = (struct nfs3_sattr){.set_size = true, .size = 1};
    args.setattr.ctime = b->result.attr.attr.ctime;
    args.setattr.ctime.ns ^= 1;
    assert_int_equal(call(b, NFS3_SETATTR, &args), NFS3ERR_NOT_SYNC);
    assert_int_equal(b->result.wcc.after.attr.size, 5);
    args.setattr.ctime.ns ^= 1;
    args.setattr.ctime.s ^= 1;
    assert_int_equal(call(b, NFS3_SETATTR, &args), NFS3ERR_NOT_SYNC);
    args.setattr.ctime.s ^= 1;
    assert_int_equal(call(b, NFS3_SETATTR, &args), NFS3_OK);
    assert_int_equal(b->result.wcc.after.attr.size, 1);
}

/* Some of these values have a special meaning for the kernel: UTIME_NOW, UTIME_OMIT, and UINT32_MAX as an ID. */
static void bad_attributes(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "hello", 0640);
    const struct nfs3_sattr bad[] = {
        {.set_mtime = NFS3_CLIENT_TIME, .mtime = {1, 1000000000}},
        {.set_atime = NFS3_CLIENT_TIME, .atime = {1, UTIME_NOW}},
        {.set_atime = NFS3_CLIENT_TIME, .atime = {1, UTIME_OMIT}},
        {.set_uid = true, .uid = UINT32_MAX},
        {.set_gid = true, .gid = UINT32_MAX},
        {.set_size = true, .size = UINT64_MAX},
        {.set_size = true, .size = (uint64_t)INT64_MAX + 1},
        {.set_size = true, .size = INT64_MAX},
    };
    bool is_endless = !truncate(local(b, "f"), INT64_MAX); /* tmpfs takes this size, ext4 does not */

    assert_int_equal(truncate(local(b, "f"), 5), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad) - is_endless; i++) {
        union nfs3_args args = {.make = {.where = where(&b->root, "new"), .attr = bad[i], .type = NFS3_FIFO}};

        /* The server refuses all rows except the last one before it makes an object. */
        if (i + 1 < sizeof(bad) / sizeof(*bad)) {
            for (enum nfs3_proc proc = NFS3_CREATE; proc <= NFS3_MKNOD; proc++) {
                args.make.target = text("x");
                assert_int_equal(call(b, proc, &args), NFS3ERR_INVAL);
                assert_int_equal(access(local(b, "new"), F_OK), -1);
            }
        }
        assert_int_equal(set(b, &fh, &bad[i]), NFS3ERR_INVAL);
        assert_int_equal(b->result.wcc.after.attr.size, 5);
    }
}

static void lookups(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh dir, fh, sub;

    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    assert_int_equal(mkdir(local(b, "d/e"), 0700), 0);
    dir = lookup(b, "d");
    assert_true(b->result.attr.present && b->result.dir.present);
    assert_int_equal(lookup_in(b, &dir, "e", &sub), NFS3_OK);
    assert_int_equal(lookup_in(b, &sub, "..", &fh), NFS3_OK);
    assert_memory_equal(&fh, &dir, sizeof(fh.length) + fh.length);
    assert_int_equal(lookup_in(b, &sub, ".", &fh), NFS3_OK);
    assert_memory_equal(&fh, &sub, sizeof(fh.length) + fh.length);
    /* LOOKUP of ".." never leaves the export. */
    assert_int_equal(lookup_in(b, &dir, "..", &fh), NFS3_OK);
    assert_memory_equal(&fh, &b->root, sizeof(fh.length) + fh.length);
    assert_int_equal(lookup_in(b, &b->root, "..", &fh), NFS3_OK);
    assert_memory_equal(&fh, &b->root, sizeof(fh.length) + fh.length);
    assert_int_equal(lookup_in(b, &b->root, "no", &fh), NFS3ERR_NOENT);
    assert_true(b->result.dir.present);
    /* LOOKUP does not follow a symbolic link. */
    assert_int_equal(symlink("/etc", local(b, "l")), 0);
    fh = lookup(b, "l");
    assert_int_equal(b->result.attr.attr.type, NFS3_LNK);
    assert_int_equal(lookup_in(b, &fh, "passwd", &sub), NFS3ERR_NOTDIR);
}

static void file_system(void **state)
{
    struct bed *b = *state;

    assert_int_equal(simple(b, NFS3_FSINFO, &b->root), NFS3_OK);
    assert_true(b->result.attr.present);
    assert_int_equal(b->result.fsinfo.rtmax, 1 << 20);
    assert_int_equal(b->result.fsinfo.wtpref, 1 << 20);
    assert_int_equal(b->result.fsinfo.dtpref, 65536);
    assert_int_equal(b->result.fsinfo.maxfilesize, INT64_MAX);
    assert_int_equal(b->result.fsinfo.time_delta.ns, 1);
    assert_int_equal(b->result.fsinfo.properties, 0x1b);
    assert_int_equal(simple(b, NFS3_FSSTAT, &b->root), NFS3_OK);
    assert_true(b->result.fsstat.total_bytes >= b->result.fsstat.free_bytes);
    assert_true(b->result.fsstat.free_bytes >= b->result.fsstat.available_bytes);
    assert_true(b->result.fsstat.total_files >= b->result.fsstat.free_files);
    assert_int_equal(simple(b, NFS3_PATHCONF, &b->root), NFS3_OK);
    assert_int_equal(b->result.pathconf.name_max, 255);
    assert_true(b->result.pathconf.linkmax > 1);
    assert_true(b->result.pathconf.no_trunc && b->result.pathconf.case_preserving);
    assert_false(b->result.pathconf.case_insensitive);
}

static void statuses(void **state)
{
    static const int same[] = {EPERM,   ENOENT, EIO,    ENXIO, EACCES, EEXIST, EXDEV, ENODEV,
                               ENOTDIR, EISDIR, EINVAL, EFBIG, ENOSPC, EROFS,  EMLINK};

    (void)state;
    assert_int_equal(nfs3_status_of(0), NFS3_OK);
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
        assert_int_equal(nfs3_status_of(same[i]), same[i]);
    assert_int_equal(nfs3_status_of(ENAMETOOLONG), NFS3ERR_NAMETOOLONG);
    assert_int_equal(nfs3_status_of(ENOTEMPTY), NFS3ERR_NOTEMPTY);
    assert_int_equal(nfs3_status_of(EDQUOT), NFS3ERR_DQUOT);
    assert_int_equal(nfs3_status_of(ESTALE), NFS3ERR_STALE);
    assert_int_equal(nfs3_status_of(ENOTSUP), NFS3ERR_NOTSUPP);
    assert_int_equal(nfs3_status_of(EMFILE), NFS3ERR_JUKEBOX);
    assert_int_equal(nfs3_status_of(EBADF), NFS3ERR_SERVERFAULT);
}

/* Times from 1970 to 2106 are told as they are, others as the nearest of these. */
static void times(void **state)
{
    static const struct {
        time_t local;
        uint32_t told;
    } row[] = {{-1, 0},
               {0, 0},
               {INT32_MAX, INT32_MAX},
               {INT32_MAX + INT64_C(1), INT32_MAX + 1U},
               {UINT32_MAX, UINT32_MAX},
               {UINT32_MAX + INT64_C(1), UINT32_MAX}};
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "", 0600);

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        const struct timespec t[2] = {{.tv_sec = row[i].local}, {.tv_sec = row[i].local}};
        struct nfs3_sattr attr = {.set_mtime = NFS3_CLIENT_TIME, .mtime = {row[i].told, 0}};
        struct stat st;

        assert_int_equal(utimensat(AT_FDCWD, local(b, "f"), t, 0), 0);
        assert_int_equal(stat(local(b, "f"), &st), 0);
        if (st.st_mtime != row[i].local) {
            print_message("this file system does not keep the time %lld\n", (long long)row[i].local);
            continue;
        }
        assert_int_equal(simple(b, NFS3_GETATTR, &fh), NFS3_OK);
        assert_int_equal(b->result.attr.attr.mtime.s, row[i].told);
        assert_int_equal(set(b, &fh, &attr), NFS3_OK);
        assert_int_equal(stat(local(b, "f"), &st), 0);
        assert_int_equal(st.st_mtime, row[i].told);
    }
}

static bool is_served_cached(struct bed *b, enum nfs3_proc proc, const union nfs3_args *args)
{
    bool served;

    b->now = b->cached = true;
    call(b, proc, args);
    served = b->served;
    b->now = b->cached = false;
    return served;
}

/* `cached` calls look at nothing that is not in memory: each is served only after one that could wait. */
static void cached(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "0123456789", 0600);
    union nfs3_args args = {.fh = fh}, read = {.range = {.fh = fh, .count = 10}},
                    access = {.access = {.fh = fh, .access = NFS3_ACCESS_READ}},
                    found = {.where = where(&b->root, "f")}, lost = {.where = where(&b->root, "no such name")};

    assert_false(is_served_cached(b, NFS3_GETATTR, &args));
    assert_int_equal(call(b, NFS3_GETATTR, &args), NFS3_OK);
    assert_true(is_served_cached(b, NFS3_GETATTR, &args));
    assert_int_equal(b->result.attr.attr.size, 10);
    assert_false(is_served_cached(b, NFS3_ACCESS, &access));
    assert_int_equal(call(b, NFS3_ACCESS, &access), NFS3_OK);
    assert_true(is_served_cached(b, NFS3_ACCESS, &access));
    assert_int_equal(b->result.access, NFS3_ACCESS_READ);
    assert_false(is_served_cached(b, NFS3_READ, &read));
    assert_int_equal(call(b, NFS3_READ, &read), NFS3_OK);
    assert_true(is_served_cached(b, NFS3_READ, &read));
    assert_memory_equal(b->result.read.data, "0123456789", 10);
    assert_int_equal(call(b, NFS3_LOOKUP, &found), NFS3_OK);
    assert_true(is_served_cached(b, NFS3_LOOKUP, &found));
    assert_memory_equal(&b->result.fh, &fh, sizeof(fh));
    assert_false(is_served_cached(b, NFS3_LOOKUP, &lost));
    assert_false(is_served_cached(b, NFS3_FSSTAT, &args));
    assert_false(is_served_cached(b, NFS3_READLINK, &args));
    assert_true(is_served_cached(b, NFS3_FSINFO, &args));
}

static void buffers(void **state)
{
    union nfs3_args args = {.range = {.count = 65536}};

    (void)state;
    assert_int_equal(nfs_result_size(NFS3_READ, &args), 65536);
    assert_false(nfs_is_slow(NFS3_READ, &args));
    args.range.count++;
    assert_true(nfs_is_slow(NFS3_READ, &args));
    args.range.count = UINT32_MAX;
    assert_int_equal(nfs_result_size(NFS3_READ, &args), NFS3_IO_MAX);
    args.list.maxcount = UINT32_MAX;
    assert_int_equal(nfs_result_size(NFS3_READDIR, &args), NFS3_IO_MAX);
    assert_int_equal(nfs_result_size(NFS3_WRITE, &args), 0);
    assert_true(nfs_is_slow(NFS3_CREATE, &args));
    assert_true(nfs_is_slow(NFS3_COMMIT, &args));
    assert_false(nfs_is_slow(NFS3_GETATTR, &args));
    assert_false(nfs_is_slow(NFS3_LOOKUP, &args));
    assert_false(nfs_is_slow(NFS3_NULL, &args));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        bed_test(attributes),
        bed_test(types),
        bed_test(handles),
        bed_test(not_a_directory),
        bed_test(set_attributes),
        bed_test(set_attributes_of_others),
        bed_test(guard),
        bed_test(bad_attributes),
        bed_test(lookups),
        bed_test(file_system),
        bed_test(times),
        bed_test(cached),
        cmocka_unit_test(statuses),
        cmocka_unit_test(buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
