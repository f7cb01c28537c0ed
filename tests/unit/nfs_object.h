/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_object.h - an exported directory for the tests of objects, and the three ways to run them: with the kernel's
 * handles, without them, and as a server without privileges. */
#ifndef TESTS_UNIT_NFS_OBJECT_H
#define TESTS_UNIT_NFS_OBJECT_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs/server/object.h"

/* top/in is exported, top/state holds the key; top is the working directory. */
static char top[64], error[EXPORT_TEXT];
static struct export export;
static struct objects *objects;
static bool kernel;

static inline struct objects *open_objects(struct export *e)
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

static inline void restart(void)
{
    objects_close(objects);
    objects = open_objects(&export);
    assert_non_null(objects);
}

static inline int setup(void **state)
{
    struct export_attr attr;

    (void)state;
    strcpy(top, "/tmp/rddp-object.XXXXXX");
    if (!mkdtemp(top) || chdir(top) || mkdir("in", 0755) || mkdir("state", 0700))
        return -1;
    export_attr_init(&attr);
    if (export_open(&export, "in", &attr, error))
        return -1;
    objects = open_objects(&export);
    return objects ? 0 : -1;
}

static inline int teardown(void **state)
{
    char command[96];
    int bad;

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", top);
    bad = chdir("/") || system(command);
    objects_close(objects); /* aborts if a failed test did not put back what it got */
    export_close(&export);
    return bad;
}

static inline void make_file(const char *path, const char *text)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static inline struct object *get(const struct nfs3_fh *fh)
{
    struct object *object;

    assert_int_equal(object_get(objects, fh, &object), NFS3_OK);
    return object;
}

static inline struct nfs3_fh root_fh(void)
{
    struct nfs3_fh fh;

    assert_int_equal(object_root(objects, &export, &fh), 0);
    return fh;
}

static inline int name_at(const struct nfs3_fh *dir, const char *name, struct nfs3_fh *fh)
{
    struct object *object = get(dir);
    struct stat st;
    int bad = object_name(objects, object, name, fh, &st);

    object_put(objects, object);
    return bad;
}

/* Returns the handle of a path below the export. */
static inline struct nfs3_fh look(const char *path)
{
    char copy[512], *rest = copy;
    struct nfs3_fh fh = root_fh();

    snprintf(copy, sizeof(copy), "%s", path);
    for (char *name; (name = strsep(&rest, "/"));)
        assert_int_equal(name_at(&fh, name, &fh), 0);
    return fh;
}

static inline bool same(const struct nfs3_fh *a, const struct nfs3_fh *b)
{
    return a->length == b->length && !memcmp(a->data, b->data, a->length);
}

static inline void expect_status(const struct nfs3_fh *fh, enum nfs3_status status)
{
    struct object *object;
    enum nfs3_status got = object_get(objects, fh, &object);

    if (got != status)
        fail_msg("a handle is answered with %d instead of %d", got, status);
    if (got == NFS3_OK)
        object_put(objects, object);
    else
        assert_null(object);
}

static inline void expect_is(const struct nfs3_fh *fh, const char *path)
{
    struct object *object = get(fh);
    struct stat a, b;

    assert_int_equal(object_stat(object, &a), 0);
    assert_int_equal(lstat(path, &b), 0);
    assert_int_equal(a.st_ino, b.st_ino);
    assert_int_equal(object->type, b.st_mode & S_IFMT);
    assert_ptr_equal(object->export, &export);
    object_put(objects, object);
}

/* Returns the exit code. */
static inline int three_ways(int (*run)(void))
{
    int failed, status = 0;
    pid_t pid;

    kernel = true; /* where it is permitted */
    failed = run();
    kernel = false;
    failed += run();
    if (!identity_can_change())
        return failed != 0;
    pid = fork();
    if (!pid)
        _exit(setgid(3000) || setuid(3000) || run());
    return waitpid(pid, &status, 0) != pid || status || failed;
}

#endif
