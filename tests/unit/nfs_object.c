/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_object.c - test that a handle finds its object after renames and restarts, that a forged handle is refused, and
 * that the server opens files with its own rights and then restores the caller's identity. */
#include "tests/unit/nfs_object.h"

static void test_dots(void **state)
{
    struct nfs3_fh root = root_fh(), sub, deep, fh;
    struct object *object;
    struct stat st;

    (void)state;
    assert_int_equal(mkdir("in/sub", 0755), 0);
    assert_int_equal(mkdir("in/sub/deep", 0755), 0);
    expect_is(&root, "in");
    sub = look("sub");
    deep = look("sub/deep");
    expect_is(&deep, "in/sub/deep");
    assert_int_equal(name_at(&root, "..", &fh), 0);
    assert_true(same(&fh, &root));
    assert_int_equal(name_at(&root, ".", &fh), 0);
    assert_true(same(&fh, &root));
    assert_int_equal(name_at(&sub, "..", &fh), 0);
    assert_true(same(&fh, &root));
    assert_int_equal(name_at(&deep, "..", &fh), 0);
    assert_true(same(&fh, &sub));
    object = get(&deep);
    assert_int_equal(object_name(objects, object, NULL, &fh, &st), 0);
    assert_true(same(&fh, &deep));
    assert_true(S_ISDIR(st.st_mode));
    object_put(objects, object);
    assert_int_equal(name_at(&root, "none", &fh), -ENOENT);
    assert_int_equal(name_at(&root, "", &fh), -EINVAL);
    assert_int_equal(name_at(&root, "sub/deep", &fh), -EINVAL);
    assert_int_equal(name_at(&root, "/etc", &fh), -EINVAL);
    assert_int_equal(name_at(&root, "../state", &fh), -EINVAL);
}

static void test_survive(void **state)
{
    struct nfs3_fh a, b, again;

    (void)state;
    assert_int_equal(mkdir("in/a", 0755), 0);
    assert_int_equal(mkdir("in/b", 0755), 0);
    make_file("in/a/file", "text");
    a = look("a/file");
    again = look("a/file");
    assert_true(same(&a, &again));
    restart();
    expect_is(&a, "in/a/file");
    assert_int_equal(rename("in/a/file", "in/b/other"), 0);
    expect_is(&a, "in/b/other");
    restart();
    expect_is(&a, "in/b/other");
    again = look("b/other");
    assert_true(same(&a, &again));
    assert_int_equal(rename("in/b", "in/a/b"), 0);
    b = look("a/b");
    restart();
    expect_is(&a, "in/a/b/other");
    expect_is(&b, "in/a/b");
}

static void expect_stale_once_gone(bool cached)
{
    struct nfs3_fh fh;

    make_file("in/file", "old");
    fh = look("file");
    if (cached)
        expect_is(&fh, "in/file");
    assert_int_equal(unlink("in/file"), 0);
    make_file("in/file", "new");
    expect_status(&fh, NFS3ERR_STALE);
    restart();
    expect_status(&fh, NFS3ERR_STALE);
    unlink("in/file");
}

static void test_gone(void **state)
{
    struct nfs3_fh fh;

    (void)state;
    expect_stale_once_gone(true);
    expect_stale_once_gone(false);
    assert_int_equal(mkdir("in/dir", 0755), 0);
    fh = look("dir");
    expect_is(&fh, "in/dir");
    assert_int_equal(rmdir("in/dir"), 0);
    expect_status(&fh, NFS3ERR_STALE);
}

static void test_forged(void **state)
{
    struct nfs3_fh fh, bad;

    (void)state;
    make_file("in/file", "text");
    fh = look("file");
    for (unsigned cached = 0; cached < 2; cached++) {
        for (uint32_t bit = 0; bit < fh.length * 8; bit++) {
            bad = fh;
            bad.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            expect_status(&bad, NFS3ERR_BADHANDLE);
        }
        for (uint32_t n = 0; n <= NFS3_FH_MAX + 1; n++) {
            bad = fh;
            bad.length = n;
            expect_status(&bad, n == fh.length ? NFS3_OK : NFS3ERR_BADHANDLE);
        }
        expect_is(&fh, "in/file");
    }
}

static void test_others(void **state)
{
    struct objects *mine = objects, *others;
    struct export_attr attr;
    struct nfs3_fh fh;
    struct export e;

    (void)state;
    make_file("in/file", "text");
    assert_int_equal(mkdir("in/sub", 0755), 0);
    fh = look("file");
    export_attr_init(&attr);
    assert_int_equal(export_open(&e, "in/sub", &attr, error), 0);
    objects = others = open_objects(&e);
    expect_status(&fh, NFS3ERR_STALE); /* the key is the same, but these objects do not have the handle's export */
    objects_close(others);
    assert_int_equal(unlink("state/handle-key"), 0);
    objects = others = open_objects(&export);
    expect_status(&fh, NFS3ERR_BADHANDLE);
    objects_close(others);
    objects = mine;
    expect_is(&fh, "in/file");
    export_close(&e);
}

static void test_twice(void **state)
{
    struct objects_attr attr;
    struct export two[2] = {export, export};

    (void)state;
    objects_attr_init(&attr);
    attr.export = two;
    attr.exports = 2;
    assert_null(objects_open(&attr, error));
    assert_int_equal(errno, EEXIST);
    assert_non_null(strstr(error, "twice"));
}

static void test_files(void **state)
{
    struct object *object;
    char text[8] = "";
    struct nfs3_fh fh, root = root_fh();
    int reader, writer;

    (void)state;
    make_file("in/file", "text");
    fh = look("file");
    object = get(&fh);
    reader = object_file(objects, object, O_RDONLY);
    assert_true(reader >= 0);
    assert_int_equal(object_file(objects, object, O_RDONLY), reader);
    assert_int_equal(pread(reader, text, 8, 0), 4);
    assert_int_equal(pwrite(reader, "no", 2, 0), -1);
    writer = object_file(objects, object, O_RDWR);
    assert_true(writer >= 0);
    assert_int_equal(object_file(objects, object, O_RDWR), writer);
    assert_int_equal(pwrite(writer, "TEXT", 4, 0), 4);
    assert_int_equal(pread(reader, text, 8, 0), 4);
    assert_string_equal(text, "TEXT");
    object_put(objects, object);
    restart();
    object = get(&fh);
    writer = object_file(objects, object, O_RDWR);
    assert_int_equal(object_file(objects, object, O_RDONLY), writer);
    object_put(objects, object);
    object = get(&root);
    assert_int_equal(object_file(objects, object, O_RDONLY), -EISDIR);
    object_put(objects, object);
    assert_int_equal(mkfifo("in/fifo", 0600), 0);
    fh = look("fifo");
    object = get(&fh);
    assert_int_equal(object_file(objects, object, O_RDONLY), -EINVAL);
    object_put(objects, object);
}

/* A server that is not root can write its own file that it may not read. */
static void test_write_only(void **state)
{
    struct object *object;
    struct nfs3_fh fh;
    int fd;

    (void)state;
    make_file("in/file", "text");
    assert_int_equal(chmod("in/file", 0200), 0);
    fh = look("file");
    object = get(&fh);
    fd = object_file(objects, object, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "TEXT", 4, 0), 4);
    fd = object_file(objects, object, O_RDONLY);
    assert_int_equal(fd < 0, geteuid() != 0);
    object_put(objects, object);
}

/* object_may() agrees with the kernel's permission checks. The thread still has the caller's identity after the server
 * opened a file with its own rights. */
static void test_may(void **state)
{
    const struct identity owner = {.uid = 1000, .gid = 1}, alien = {.uid = 1001, .gid = 1}, root = {.uid = 0};
    struct nfs3_fh fh, closed;
    struct object *object;

    (void)state;
    if (!identity_can_change())
        skip();
    make_file("in/file", "text");
    assert_int_equal(mkdir("in/closed", 0700), 0);
    make_file("in/closed/file", "text");
    assert_int_equal(chown("in/file", 1000, 1000) || chmod("in/file", 0600), 0);
    assert_int_equal(chmod(top, 0755), 0);
    fh = look("file");
    closed = look("closed");
    restart();
    identity_assume(&alien);
    object = get(&fh);
    assert_int_equal(open("in/file", O_RDONLY), -1);
    assert_true(object_file(objects, object, O_RDWR) >= 0);
    assert_int_equal(open("in/file", O_RDONLY), -1);
    assert_int_equal(object_may(object, NULL, R_OK), -EACCES);
    assert_int_equal(object_may(object, &owner, R_OK | W_OK), 0);
    assert_int_equal(object_may(object, &owner, X_OK), -EACCES);
    assert_int_equal(object_may(object, &alien, W_OK), -EACCES);
    assert_int_equal(object_may(object, &root, R_OK | W_OK), 0);
    assert_int_equal(object_may(object, &root, X_OK), -EACCES);
    object_put(objects, object);
    identity_assume(&alien);
    assert_int_equal(name_at(&closed, "file", &fh), -EACCES);
    identity_drop();
    assert_int_equal(name_at(&closed, "file", &fh), 0);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dots, setup, teardown),
        cmocka_unit_test_setup_teardown(test_survive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_may, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return three_ways(run);
}
