/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve_make.c - test CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME and LINK. */
#include "nfs_serve.h"

static enum nfs3_status create(struct bed *b, const char *name, enum nfs3_createmode how, const struct nfs3_sattr *attr)
{
    union nfs3_args args = {.make = {.where = where(&b->root, name), .how = how}};

    if (attr)
        args.make.attr = *attr;
    memcpy(args.make.verifier, "\xff\x01\x02\x83\xfe\x05\x06\x87", NFS3_VERIFIER);
    return call(b, NFS3_CREATE, &args);
}

static void creates(void **state)
{
    struct bed *b = *state;
    struct nfs3_sattr attr = {.set_mode = true, .mode = 0666, .set_size = true, .size = 7};
    struct nfs3_fh fh;
    struct stat st;

    assert_int_equal(create(b, "f", NFS3_GUARDED, &attr), NFS3_OK);
    assert_true(b->result.made.present && b->result.attr.present);
    assert_int_equal(b->result.attr.attr.mode, 0666); /* the server's umask has no effect */
    assert_int_equal(b->result.attr.attr.size, 7);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    assert_int_equal(stat(local(b, "f"), &st), 0);
    assert_int_equal(b->result.attr.attr.fileid, st.st_ino);
    fh = b->result.made.fh;
    assert_int_equal(get(b, &fh, 0, 10), NFS3_OK);
    assert_int_equal(b->result.read.count, 7);
    assert_int_equal(create(b, "f", NFS3_GUARDED, &attr), NFS3ERR_EXIST);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    /* UNCHECKED accepts an existing file and sets only its size. */
    attr.mode = 0600;
    attr.size = 3;
    assert_int_equal(create(b, "f", NFS3_UNCHECKED, &attr), NFS3_OK);
    assert_memory_equal(&b->result.made.fh, &fh, sizeof(fh.length) + fh.length);
    assert_int_equal(b->result.attr.attr.size, 3);
    assert_int_equal(b->result.attr.attr.mode, 0666);
    attr.set_size = false;
    assert_int_equal(create(b, "f", NFS3_UNCHECKED, &attr), NFS3_OK);
    assert_int_equal(b->result.attr.attr.size, 3);
    assert_int_equal(create(b, "new", NFS3_UNCHECKED, NULL), NFS3_OK);
    assert_int_equal(b->result.attr.attr.mode & 077, 0);
    /* CREATE does not follow a symbolic link and does not accept an existing directory. */
    assert_int_equal(symlink("f", local(b, "l")), 0);
    assert_int_equal(symlink("outside", local(b, "m")), 0);
    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    for (enum nfs3_createmode how = NFS3_UNCHECKED; how <= NFS3_EXCLUSIVE; how++) {
        assert_int_equal(create(b, "l", how, NULL), NFS3ERR_EXIST);
        assert_int_equal(create(b, "m", how, NULL), NFS3ERR_EXIST);
        assert_int_equal(create(b, "d", how, NULL), NFS3ERR_EXIST);
    }
    assert_int_equal(access(local(b, "outside"), F_OK), -1);
}

/* A repeated EXCLUSIVE call succeeds, also after a restart. A call with another verifier fails, and so does a repeated
 * call after a SETATTR. */
static void exclusive(void **state)
{
    struct bed *b = *state;
    struct export_attr attr = bed_attr();
    struct nfs3_sattr sattr = {.set_mtime = NFS3_SERVER_TIME};
    union nfs3_args args;
    uint64_t fileid;
    struct nfs3_fh fh;

    assert_int_equal(create(b, "f", NFS3_EXCLUSIVE, NULL), NFS3_OK);
    fileid = b->result.attr.attr.fileid;
    bed_again(b, &attr);
    assert_int_equal(create(b, "f", NFS3_EXCLUSIVE, NULL), NFS3_OK);
    assert_int_equal(b->result.attr.attr.fileid, fileid);
    for (unsigned i = 0; i < NFS3_VERIFIER; i++) {
        args = (union nfs3_args){.make = {.where = where(&b->root, "f"), .how = NFS3_EXCLUSIVE}};
        memcpy(args.make.verifier, "\xff\x01\x02\x83\xfe\x05\x06\x87", NFS3_VERIFIER);
        for (unsigned bit = 1; bit < 256; bit += bit) {
            args.make.verifier[i] ^= (uint8_t)bit;
            assert_int_equal(call(b, NFS3_CREATE, &args), NFS3ERR_EXIST);
            args.make.verifier[i] ^= (uint8_t)bit;
        }
        assert_int_equal(call(b, NFS3_CREATE, &args), NFS3_OK);
    }
    fh = lookup(b, "f");
    assert_int_equal(set(b, &fh, &sattr), NFS3_OK);
    assert_int_equal(create(b, "f", NFS3_EXCLUSIVE, NULL), NFS3ERR_EXIST);
}

static void others(void **state)
{
    struct bed *b = *state;
    union nfs3_args args = {.make = {.where = where(&b->root, "n"), .attr = {.set_mode = true, .mode = 0622}}};
    static const enum nfs3_type bad[] = {NFS3_REG, NFS3_DIR, NFS3_LNK};

    args.make.attr.set_mtime = NFS3_CLIENT_TIME;
    args.make.attr.mtime.s = 1234;
    args.make.target = text("x");
    for (unsigned i = 0; i < 3; i++) {
        args.make.type = bad[i];
        assert_int_equal(call(b, NFS3_MKNOD, &args), NFS3ERR_BADTYPE);
    }
    for (args.make.type = NFS3_SOCK; args.make.type <= NFS3_FIFO; args.make.type++) {
        assert_int_equal(call(b, NFS3_MKNOD, &args), NFS3_OK);
        assert_int_equal(b->result.attr.attr.type, args.make.type);
        assert_int_equal(b->result.attr.attr.mode, 0622);
        assert_int_equal(b->result.attr.attr.mtime.s, 1234);
        assert_int_equal(call(b, NFS3_MKNOD, &args), NFS3ERR_EXIST);
        assert_int_equal(by_name(b, NFS3_REMOVE, &b->root, "n"), NFS3_OK);
    }
    args.make.type = NFS3_CHR;
    args.make.major = 0x1001; /* without its upper bits this would be the major number of another device */
    assert_int_equal(call(b, NFS3_MKNOD, &args), NFS3ERR_INVAL);
    args.make.major = 1;
    args.make.minor = 0x100003;
    assert_int_equal(call(b, NFS3_MKNOD, &args), NFS3ERR_INVAL);
    args.make.minor = 3;
    if (call(b, NFS3_MKNOD, &args) == NFS3_OK) {
        assert_int_equal(b->result.attr.attr.major, 1);
        assert_int_equal(b->result.attr.attr.minor, 3);
        assert_int_equal(by_name(b, NFS3_REMOVE, &b->root, "n"), NFS3_OK);
    } else {
        assert_int_equal(b->result.status, NFS3ERR_PERM);
    }
    args.make.attr.mode = 03755;
    assert_int_equal(call(b, NFS3_MKDIR, &args), NFS3_OK);
    assert_int_equal(b->result.attr.attr.mode, 03755);
    assert_int_equal(b->result.attr.attr.mtime.s, 1234);
    assert_int_equal(call(b, NFS3_MKDIR, &args), NFS3ERR_EXIST);
    assert_int_equal(call(b, NFS3_SYMLINK, &args), NFS3ERR_EXIST);
    args.make.where = where(&b->root, "l");
    assert_int_equal(call(b, NFS3_SYMLINK, &args), NFS3_OK);
    assert_int_equal(b->result.attr.attr.mtime.s, 1234);
}

static void removes(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh fh = file(b, "f", "", 0600);

    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    assert_int_equal(mkdir(local(b, "d/e"), 0700), 0);
    assert_int_equal(by_name(b, NFS3_REMOVE, &b->root, "no"), NFS3ERR_NOENT);
    assert_int_equal(by_name(b, NFS3_RMDIR, &b->root, "no"), NFS3ERR_NOENT);
    assert_int_equal(by_name(b, NFS3_REMOVE, &b->root, "d"), NFS3ERR_ISDIR);
    assert_int_equal(by_name(b, NFS3_RMDIR, &b->root, "f"), NFS3ERR_NOTDIR);
    assert_int_equal(by_name(b, NFS3_RMDIR, &b->root, "d"), NFS3ERR_NOTEMPTY);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    assert_int_equal(hard_link(b, &fh, &b->root, "g"), NFS3_OK);
    assert_int_equal(b->result.attr.attr.nlink, 2);
    assert_true(b->result.to_wcc.had && b->result.to_wcc.after.present);
    assert_int_equal(by_name(b, NFS3_REMOVE, &b->root, "f"), NFS3_OK);
    assert_int_equal(simple(b, NFS3_GETATTR, &fh), NFS3_OK);
    assert_int_equal(b->result.attr.attr.nlink, 1);
    assert_int_equal(by_name(b, NFS3_REMOVE, &b->root, "g"), NFS3_OK);
    assert_int_equal(simple(b, NFS3_GETATTR, &fh), NFS3ERR_STALE);
    assert_int_equal(rmdir(local(b, "d/e")), 0);
    assert_int_equal(by_name(b, NFS3_RMDIR, &b->root, "d"), NFS3_OK);
}

static void renames(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh f = file(b, "f", "f", 0600), dir;

    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    assert_int_equal(mkdir(local(b, "e"), 0700), 0);
    dir = lookup(b, "d");
    assert_int_equal(move(b, &b->root, "f", &dir, "g"), NFS3_OK);
    assert_true(b->result.wcc.had && b->result.wcc.after.present);
    assert_true(b->result.to_wcc.had && b->result.to_wcc.after.present);
    assert_int_equal(simple(b, NFS3_GETATTR, &f), NFS3_OK);
    assert_int_equal(move(b, &b->root, "f", &dir, "g"), NFS3ERR_NOENT);
    assert_int_equal(move(b, &b->root, "e", &b->root, "d"), NFS3ERR_NOTEMPTY);
    assert_int_equal(move(b, &b->root, "d", &dir, "sub"), NFS3ERR_INVAL);
    assert_int_equal(move(b, &b->root, "e", &dir, "g"), NFS3ERR_NOTDIR);
    assert_int_equal(move(b, &dir, "g", &b->root, "e"), NFS3ERR_ISDIR);
    /* RENAME between two names of one file does nothing. */
    assert_int_equal(link(local(b, "d/g"), local(b, "h")), 0);
    assert_int_equal(move(b, &dir, "g", &b->root, "h"), NFS3_OK);
    assert_int_equal(access(local(b, "d/g"), F_OK), 0);
    /* RENAME replaces an existing target. */
    local_write(b, "x", "x", 0600);
    assert_int_equal(move(b, &b->root, "x", &dir, "g"), NFS3_OK);
    assert_int_equal(lookup_in(b, &dir, "g", &f), NFS3_OK);
    assert_int_equal(get(b, &f, 0, 1), NFS3_OK);
    assert_memory_equal(b->result.read.data, "x", 1);
}

static void hard_links(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh f = file(b, "f", "", 0600), link, dir;
    struct stat st;

    assert_int_equal(mkdir(local(b, "d"), 0700), 0);
    dir = lookup(b, "d");
    assert_int_equal(symlink("f", local(b, "l")), 0);
    link = lookup(b, "l");
    assert_int_equal(hard_link(b, &f, &b->root, "f"), NFS3ERR_EXIST);
    assert_true(b->result.attr.present && b->result.to_wcc.had);
    assert_int_equal(hard_link(b, &dir, &b->root, "x"), NFS3ERR_INVAL);
    /* LINK of a symbolic link makes a name for the link and not for its target. */
    assert_int_equal(hard_link(b, &link, &dir, "m"), NFS3_OK);
    assert_int_equal(lstat(local(b, "d/m"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

/* Every procedure that takes a name refuses these names (RFC 1813 3.2). */
static void hostile_names(void **state)
{
    struct bed *b = *state;
    static const enum nfs3_proc procs[] = {NFS3_LOOKUP, NFS3_CREATE, NFS3_MKDIR, NFS3_SYMLINK,
                                           NFS3_MKNOD,  NFS3_REMOVE, NFS3_RMDIR};
    struct nfs3_fh f = file(b, "f", "", 0600);
    char longest[NFS3_NAME_MAX + 1], huge[8192];
    struct {
        struct nfs3_text name;
        enum nfs3_status expected;
    } row[] = {
        {{"", 0}, NFS3ERR_ACCES},
        {{"/", 1}, NFS3ERR_ACCES},
        {{"a/b", 3}, NFS3ERR_ACCES},
        {{"../x", 4}, NFS3ERR_ACCES},
        {{"/etc", 4}, NFS3ERR_ACCES},
        {{"f\0g", 3}, NFS3ERR_ACCES},
        {{"\0", 1}, NFS3ERR_ACCES},
        {{longest, 256}, NFS3ERR_NAMETOOLONG},
        {{huge, 8192}, NFS3ERR_NAMETOOLONG},
    };

    memset(longest, 'n', sizeof(longest));
    memset(huge, 'n', sizeof(huge));
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        union nfs3_args args;
        struct nfs3_where bad = {b->root, row[i].name}, good = where(&b->root, "good");

        for (size_t j = 0; j < sizeof(procs) / sizeof(*procs); j++) {
            args = (union nfs3_args){.make = {.where = bad, .type = NFS3_FIFO, .target = text("t")}};
            assert_int_equal(call(b, procs[j], &args), row[i].expected);
        }
        args = (union nfs3_args){.rename = {bad, good}};
        assert_int_equal(call(b, NFS3_RENAME, &args), row[i].expected);
        args = (union nfs3_args){.rename = {where(&b->root, "f"), bad}};
        assert_int_equal(call(b, NFS3_RENAME, &args), row[i].expected);
        args = (union nfs3_args){.link = {f, bad}};
        assert_int_equal(call(b, NFS3_LINK, &args), row[i].expected);
    }
    longest[NFS3_NAME_MAX] = 0;
    assert_int_equal(by_name(b, NFS3_CREATE, &b->root, longest), NFS3_OK);
}

static void dots(void **state)
{
    struct bed *b = *state;
    struct nfs3_fh f = file(b, "f", "", 0600);
    static const char *const dot[] = {".", ".."};

    for (unsigned i = 0; i < 2; i++) {
        for (enum nfs3_proc proc = NFS3_CREATE; proc <= NFS3_MKNOD; proc++)
            assert_int_equal(by_name(b, proc, &b->root, dot[i]), NFS3ERR_EXIST);
        assert_int_equal(by_name(b, NFS3_REMOVE, &b->root, dot[i]), NFS3ERR_ACCES);
        assert_int_equal(by_name(b, NFS3_RMDIR, &b->root, dot[i]), i ? NFS3ERR_EXIST : NFS3ERR_INVAL);
        assert_int_equal(move(b, &b->root, dot[i], &b->root, "x"), NFS3ERR_INVAL);
        assert_int_equal(move(b, &b->root, "f", &b->root, dot[i]), NFS3ERR_INVAL);
        assert_int_equal(hard_link(b, &f, &b->root, dot[i]), NFS3ERR_EXIST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        bed_test(creates), bed_test(exclusive),  bed_test(others),        bed_test(removes),
        bed_test(renames), bed_test(hard_links), bed_test(hostile_names), bed_test(dots),
    };

    umask(077);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
