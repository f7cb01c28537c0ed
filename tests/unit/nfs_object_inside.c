/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_object_inside.c - test that no handle, link, name or mount gives access to a file outside the export. */
#include <sched.h>
#include <sys/mount.h>
#include <time.h>

#include "tests/unit/nfs_object.h"

static void test_moved_out(void **state)
{
    struct nfs3_fh file, dir, below;

    (void)state;
    make_file("in/file", "text");
    assert_int_equal(mkdir("in/dir", 0755), 0);
    make_file("in/dir/below", "text");
    assert_int_equal(mkdir("in-2", 0755), 0); /* this name begins with the name of the export */
    file = look("file");
    dir = look("dir");
    below = look("dir/below");
    assert_int_equal(rename("in/file", "in-2/file"), 0);
    assert_int_equal(rename("in/dir", "in-2/dir"), 0);
    restart(); /* the server checks open objects less often: see test_moved_out_open() */
    expect_status(&file, NFS3ERR_STALE);
    expect_status(&dir, NFS3ERR_STALE);
    expect_status(&below, NFS3ERR_STALE);
    assert_int_equal(rename("in-2/file", "in/file"), 0);
    assert_int_equal(rename("in-2/dir", "in/dir"), 0);
    restart();
    expect_is(&file, "in/file");
    expect_is(&below, "in/dir/below");
    expect_is(&dir, "in/dir");
}

/* The handle of an open directory that is moved out of the export becomes stale within seconds. */
static void test_moved_out_open(void **state)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    enum nfs3_status status = NFS3_OK;
    struct object *held, *object;
    struct nfs3_fh dir, fh, hard;
    struct stat st;

    (void)state;
    assert_int_equal(mkdir("in/dir", 0755), 0);
    make_file("in/hard", "text");
    hard = look("hard");
    assert_int_equal(link("in/hard", "hard"), 0);
    expect_is(&hard, "hard");
    assert_int_equal(unlink("hard"), 0);
    dir = look("dir");
    held = get(&dir);
    assert_int_equal(rename("in/dir", "out"), 0);
    assert_int_equal(object_name(objects, held, "..", &fh, &st), -ESTALE);
    for (unsigned i = 0; i < 100 && status == NFS3_OK; i++) {
        status = object_get(objects, &dir, &object);
        if (object)
            object_put(objects, object);
        nanosleep(&pause, NULL);
    }
    assert_int_equal(status, NFS3ERR_STALE);
    object_put(objects, held);
    expect_is(&hard, "in/hard"); /* the name outside is removed, and the name inside remains */
}

static void test_export_moved(void **state)
{
    struct nfs3_fh fh;

    (void)state;
    make_file("in/file", "text");
    fh = look("file");
    assert_int_equal(rename("in", "elsewhere"), 0);
    expect_is(&fh, "elsewhere/file");
    assert_int_equal(rename("elsewhere", "in"), 0);
}

static void test_links(void **state)
{
    struct nfs3_fh soft, dir, fh;
    struct object *object;
    struct stat st;

    (void)state;
    assert_int_equal(mkdir("in/dir", 0755), 0);
    assert_int_equal(mkdir("out", 0755), 0);
    make_file("in/dir/file", "inside");
    make_file("out/file", "outside");
    assert_int_equal(symlink("../out", "in/link"), 0);
    soft = look("link");
    expect_is(&soft, "in/link");
    object = get(&soft);
    assert_int_equal(object_name(objects, object, "file", &fh, &st), -ENOTDIR);
    assert_int_equal(object_file(objects, object, O_RDONLY), -EINVAL);
    object_put(objects, object);
    fh = look("dir/file");
    dir = look("dir");
    /* A symbolic link to a directory with a file of the same name replaces a directory of the path. */
    assert_int_equal(rename("in/dir", "in/moved"), 0);
    assert_int_equal(symlink("../out", "in/dir"), 0);
    expect_is(&fh, "in/moved/file");
    expect_is(&dir, "in/moved");
    assert_int_equal(rename("in/moved", "moved"), 0);
    restart();
    expect_status(&fh, NFS3ERR_STALE);
    /* The kernel may report the name outside the export for a file with hard links. */
    make_file("in/hard", "text");
    fh = look("hard");
    assert_int_equal(link("in/hard", "out/hard"), 0);
    restart();
    expect_is(&fh, "out/hard");
}

/* The kernel does not report a path that is longer than PATH_MAX. */
static void test_deep(void **state)
{
    struct nfs3_fh fh = root_fh();
    char name[256];
    int dir = open("in", O_PATH | O_DIRECTORY);

    (void)state;
    memset(name, 'n', 255);
    name[255] = 0;
    for (unsigned i = 0; i < 40; i++) {
        int next;

        assert_int_equal(mkdirat(dir, name, 0755), 0);
        next = openat(dir, name, O_PATH | O_DIRECTORY);
        close(dir);
        dir = next;
        assert_int_equal(name_at(&fh, name, &fh), 0);
    }
    close(dir);
    restart();
    expect_status(&fh, NFS3_OK);
    assert_int_equal(chdir("in"), 0);
    assert_int_equal(rename(name, "../out"), 0);
    assert_int_equal(chdir(".."), 0);
    restart();
    expect_status(&fh, NFS3ERR_STALE);
}

/* Test mounts in a separate mount namespace; return 77 if this is not permitted. */
static int mounts(void)
{
    struct nfs3_fh root = root_fh(), fh;

    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "in/mount", "tmpfs", 0, NULL) || mount("out", "in/bind", NULL, MS_BIND, NULL))
        return 77;
    /* Only an export that was opened in this namespace sees the mounts. */
    objects_close(objects);
    export_close(&export);
    export_open(&export, "in", &(struct export_attr){.anon_uid = 1}, error);
    objects = open_objects(&export);
    return name_at(&root, "mount", &fh) == -EXDEV && name_at(&root, "bind", &fh) == -EXDEV ? 0 : 1;
}

static void test_mounts(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    assert_int_equal(mkdir("in/mount", 0755), 0);
    assert_int_equal(mkdir("in/bind", 0755), 0);
    assert_int_equal(mkdir("out", 0755), 0);
    pid = fork();
    if (!pid)
        _exit(mounts());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_moved_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_export_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mounts, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest slow[] = {
        cmocka_unit_test_setup_teardown(test_moved_out_open, setup, teardown),
    };
    int failed = three_ways(run);

    kernel = true;
    return (failed + cmocka_run_group_tests(slow, NULL, NULL)) != 0;
}
