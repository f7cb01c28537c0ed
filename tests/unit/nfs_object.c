/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_object.c - handles lead to their objects through renames and restarts, and never out of their export: with the
 * kernel's handles, without them, and as a server without any rights. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs/server/object.h"

/* top/in is exported, top/state has the key; top is the working directory. */
static char top[64], error[EXPORT_TEXT];
static struct export export;
static struct objects *os;
static bool kernel;

static struct objects *open_objects(struct export *e)
{
    struct objects_attr attr;
    struct objects *new;

    objects_attr_init(&attr);
    attr.export = e;
    attr.exports = 1;
    attr.state = "state";
    attr.kernel_handles = kernel;
    new = objects_open(&attr, error);
    if (!new)
        print_error("%s\n", error);
    return new;
}

static void restart(void)
{
    objects_close(os);
    os = open_objects(&export);
    assert_non_null(os);
}

static int setup(void **state)
{
    struct export_attr attr;

    (void)state;
    strcpy(top, "/tmp/rddp-object.XXXXXX");
    if (!mkdtemp(top) || chdir(top) || mkdir("in", 0755) || mkdir("state", 0700))
        return -1;
    export_attr_init(&attr);
    if (export_open(&export, "in", &attr, error))
        return -1;
    os = open_objects(&export);
    return os ? 0 : -1;
}

static int teardown(void **state)
{
    char command[96];

    (void)state;
    objects_close(os);
    export_close(&export);
    snprintf(command, sizeof(command), "rm -rf %s", top);
    return chdir("/") || system(command);
}

static void make_file(const char *path, const char *text)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static struct object *get(const struct nfs3_fh *fh)
{
    struct object *object;

    assert_int_equal(object_get(os, fh, &object), NFS3_OK);
    return object;
}

static struct nfs3_fh root_fh(void)
{
    struct nfs3_fh fh;

    assert_int_equal(object_root(os, &export, &fh), 0);
    return fh;
}

static int name_at(const struct nfs3_fh *dir, const char *name, struct nfs3_fh *fh)
{
    struct object *object = get(dir);
    struct stat st;
    int bad = object_name(os, object, name, fh, &st);

    object_put(os, object);
    return bad;
}

/* The handle of a path below the export. */
static struct nfs3_fh look(const char *path)
{
    char copy[512], *rest = copy;
    struct nfs3_fh fh = root_fh();

    snprintf(copy, sizeof(copy), "%s", path);
    for (char *name; (name = strsep(&rest, "/"));)
        assert_int_equal(name_at(&fh, name, &fh), 0);
    return fh;
}

static bool same(const struct nfs3_fh *a, const struct nfs3_fh *b)
{
    return a->length == b->length && !memcmp(a->data, b->data, a->length);
}

static void expect_status(const struct nfs3_fh *fh, enum nfs3_status status)
{
    struct object *object;
    enum nfs3_status got = object_get(os, fh, &object);

    if (got != status)
        fail_msg("a handle is answered with %d instead of %d", got, status);
    if (got == NFS3_OK)
        object_put(os, object);
    else
        assert_null(object);
}

static void expect_is(const struct nfs3_fh *fh, const char *path)
{
    struct object *object = get(fh);
    struct stat a, b;

    assert_int_equal(object_stat(object, &a), 0);
    assert_int_equal(lstat(path, &b), 0);
    assert_int_equal(a.st_ino, b.st_ino);
    assert_int_equal(object->type, b.st_mode & S_IFMT);
    assert_ptr_equal(object->export, &export);
    object_put(os, object);
}

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
    assert_int_equal(object_name(os, object, NULL, &fh, &st), 0);
    assert_true(same(&fh, &deep));
    assert_true(S_ISDIR(st.st_mode));
    object_put(os, object);
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
    struct objects *mine = os, *others;
    struct export_attr attr;
    struct nfs3_fh fh;
    struct export e;

    (void)state;
    make_file("in/file", "text");
    assert_int_equal(mkdir("in/sub", 0755), 0);
    fh = look("file");
    export_attr_init(&attr);
    assert_int_equal(export_open(&e, "in/sub", &attr, error), 0);
    os = others = open_objects(&e);
    expect_status(&fh, NFS3ERR_STALE); /* the same key, and no such export */
    objects_close(others);
    assert_int_equal(unlink("state/handle-key"), 0);
    os = others = open_objects(&export);
    expect_status(&fh, NFS3ERR_BADHANDLE);
    objects_close(others);
    os = mine;
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

static void test_moved_out(void **state)
{
    struct nfs3_fh file, dir, below;

    (void)state;
    make_file("in/file", "text");
    assert_int_equal(mkdir("in/dir", 0755), 0);
    make_file("in/dir/below", "text");
    assert_int_equal(mkdir("in-2", 0755), 0); /* begins like the export */
    file = look("file");
    dir = look("dir");
    below = look("dir/below");
    assert_int_equal(rename("in/file", "in-2/file"), 0);
    assert_int_equal(rename("in/dir", "in-2/dir"), 0);
    restart(); /* what is open is looked at less often: below */
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

/* What is open is looked after, too: within seconds. */
static void test_moved_out_open(void **state)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    enum nfs3_status status = NFS3_OK;
    struct object *held, *object;
    struct nfs3_fh dir, fh;
    struct stat st;

    (void)state;
    assert_int_equal(mkdir("in/dir", 0755), 0);
    dir = look("dir");
    held = get(&dir);
    assert_int_equal(rename("in/dir", "out"), 0);
    assert_int_equal(object_name(os, held, "..", &fh, &st), -ESTALE);
    for (unsigned i = 0; i < 100 && status == NFS3_OK; i++) {
        status = object_get(os, &dir, &object);
        if (object)
            object_put(os, object);
        nanosleep(&pause, NULL);
    }
    assert_int_equal(status, NFS3ERR_STALE);
    object_put(os, held);
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
    assert_int_equal(object_name(os, object, "file", &fh, &st), -ENOTDIR);
    assert_int_equal(object_file(os, object, O_RDONLY), -EINVAL);
    object_put(os, object);
    fh = look("dir/file");
    dir = look("dir");
    /* A name on the way becomes a link to another file of the same name. */
    assert_int_equal(rename("in/dir", "in/moved"), 0);
    assert_int_equal(symlink("../out", "in/dir"), 0);
    expect_is(&fh, "in/moved/file");
    expect_is(&dir, "in/moved");
    assert_int_equal(rename("in/moved", "moved"), 0);
    restart();
    expect_status(&fh, NFS3ERR_STALE);
    /* A hard link of which the kernel knows the other name. */
    make_file("out/hard", "text");
    assert_int_equal(link("out/hard", "in/hard"), 0);
    fh = look("hard");
    restart();
    expect_is(&fh, "out/hard");
    assert_int_equal(unlink("out/hard"), 0);
    expect_is(&fh, "in/hard");
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
    reader = object_file(os, object, O_RDONLY);
    assert_true(reader >= 0);
    assert_int_equal(object_file(os, object, O_RDONLY), reader);
    assert_int_equal(pread(reader, text, 8, 0), 4);
    assert_int_equal(pwrite(reader, "no", 2, 0), -1);
    writer = object_file(os, object, O_RDWR);
    assert_true(writer >= 0);
    assert_int_equal(object_file(os, object, O_RDWR), writer);
    assert_int_equal(pwrite(writer, "TEXT", 4, 0), 4);
    assert_int_equal(pread(reader, text, 8, 0), 4);
    assert_string_equal(text, "TEXT");
    object_put(os, object);
    restart();
    object = get(&fh);
    writer = object_file(os, object, O_RDWR);
    assert_int_equal(object_file(os, object, O_RDONLY), writer);
    object_put(os, object);
    object = get(&root);
    assert_int_equal(object_file(os, object, O_RDONLY), -EISDIR);
    object_put(os, object);
    assert_int_equal(mkfifo("in/fifo", 0600), 0);
    fh = look("fifo");
    object = get(&fh);
    assert_int_equal(object_file(os, object, O_RDONLY), -EINVAL);
    object_put(os, object);
}

/* A server without rights may write what it may not read. */
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
    fd = object_file(os, object, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "TEXT", 4, 0), 4);
    fd = object_file(os, object, O_RDONLY);
    assert_int_equal(fd < 0, geteuid() != 0);
    object_put(os, object);
}

/* Paths that are longer than PATH_MAX: the kernel does not tell them. */
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

/* In a mount namespace of its own. */
static int mounts(void)
{
    struct nfs3_fh root = root_fh(), fh;

    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "in/mount", "tmpfs", 0, NULL) || mount("out", "in/bind", NULL, MS_BIND, NULL))
        return 77;
    /* The mounts are seen from an export that was opened in this namespace. */
    objects_close(os);
    export_close(&export);
    export_open(&export, "in", &(struct export_attr){.anon_uid = 1}, error);
    os = open_objects(&export);
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

/* What the kernel lets the caller do; and the caller remains who he was when the server's rights were needed. */
static void test_may(void **state)
{
    const struct identity owner = {.uid = 1000, .gid = 1}, alien = {.uid = 1001, .gid = 1}, root = {.uid = 0};
    struct nfs3_fh fh, closed;
    struct object *object;

    (void)state;
    if (geteuid())
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
    assert_true(object_file(os, object, O_RDWR) >= 0);
    assert_int_equal(open("in/file", O_RDONLY), -1);
    assert_int_equal(object_may(object, NULL, R_OK), -EACCES);
    assert_int_equal(object_may(object, &owner, R_OK | W_OK), 0);
    assert_int_equal(object_may(object, &owner, X_OK), -EACCES);
    assert_int_equal(object_may(object, &alien, W_OK), -EACCES);
    assert_int_equal(object_may(object, &root, R_OK | W_OK), 0);
    assert_int_equal(object_may(object, &root, X_OK), -EACCES);
    object_put(os, object);
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
        cmocka_unit_test_setup_teardown(test_moved_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_export_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mounts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_may, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

static int run_without_rights(void)
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(setgid(3000) || setuid(3000) || run());
    return waitpid(pid, &status, 0) != pid || status;
}

int main(void)
{
    const struct CMUnitTest slow[] = {
        cmocka_unit_test_setup_teardown(test_moved_out_open, setup, teardown),
    };
    int failed;

    kernel = true; /* where it is permitted */
    failed = run() + cmocka_run_group_tests(slow, NULL, NULL);
    kernel = false;
    failed += run();
    if (geteuid() == 0)
        failed += run_without_rights();
    return failed != 0;
}
