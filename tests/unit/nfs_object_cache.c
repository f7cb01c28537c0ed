/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_object_cache.c - test that the cache of open objects limits its descriptors, closes the object that was idle
 * longest first, and works with several threads. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs/server/object_in.h"
#include "tests/lib/descriptors.h"

enum { FILES = 24, OPEN = 8, THREADS = 4, TURNS = 1500 };

static char top[64], error[EXPORT_TEXT];
static struct export export;
static struct objects *objects;
static struct nfs3_fh fh[FILES];
static bool kernel = true;

static int open_objects(unsigned open_max)
{
    struct objects_attr attr;

    objects_attr_init(&attr);
    attr.export = &export;
    attr.exports = 1;
    attr.open_max = open_max;
    attr.kernel_handles = kernel;
    objects = objects_open(&attr, error);
    return objects ? 0 : -1;
}

/* Look up the handles of the files "0" to "23". The only octet of each file is the number of the file. */
static int look(void)
{
    struct nfs3_fh root;
    struct object *dir;
    int bad = object_root(objects, &export, &root);

    if (bad || object_get(objects, &root, &dir) != NFS3_OK)
        return -1;
    for (unsigned i = 0; i < FILES && !bad; i++) {
        char name[4];
        struct stat st;

        snprintf(name, sizeof(name), "%u", i);
        bad = object_name(objects, dir, name, &fh[i], &st);
    }
    object_put(objects, dir);
    return bad;
}

static int setup(void **state)
{
    struct export_attr attr;

    (void)state;
    strcpy(top, "/tmp/rddp-cache.XXXXXX");
    if (!mkdtemp(top))
        return -1;
    for (unsigned i = 0; i < FILES; i++) {
        char path[96];
        uint8_t octet = (uint8_t)i;
        int fd;

        snprintf(path, sizeof(path), "%s/%u", top, i);
        fd = open(path, O_CREAT | O_WRONLY, 0600);
        if (fd < 0 || write(fd, &octet, 1) != 1 || close(fd))
            return -1;
    }
    export_attr_init(&attr);
    return export_open(&export, top, &attr, error) || open_objects(OPEN) || look();
}

static int teardown(void **state)
{
    char command[96];
    int bad;

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", top);
    bad = system(command);
    objects_close(objects); /* aborts if a failed test has not put back an object */
    export_close(&export);
    return bad;
}

static struct object *get(unsigned i)
{
    struct object *object;

    assert_int_equal(object_get(objects, &fh[i], &object), NFS3_OK);
    return object;
}

static void expect_octet(struct object *object, unsigned want, int flags)
{
    int fd = object_file(objects, object, flags);
    uint8_t octet = 0xff;

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &octet, 1, 0), 1);
    assert_int_equal(octet, want);
}

/* Start with an empty cache. The handle key is new, so the caller must call look() again. */
static unsigned start(unsigned open_max)
{
    objects_close(objects);
    assert_int_equal(open_objects(open_max), 0);
    return count_descriptors();
}

static void test_limit(void **state)
{
    (void)state;
    for (unsigned n = OPEN - 2; n <= OPEN + 2; n++) {
        unsigned before = start(OPEN), want = n < OPEN ? n : OPEN;

        assert_int_equal(look(), 0); /* look() adds the root, which is one of the n objects */
        for (unsigned i = 0; i < n - 1; i++)
            object_put(objects, get(i));
        assert_int_equal(count_descriptors() - before, want);
    }
}

static void test_files_count(void **state)
{
    unsigned before = start(OPEN);

    (void)state;
    assert_int_equal(look(), 0);
    for (unsigned i = 0; i < FILES; i++) {
        struct object *object = get(i);

        expect_octet(object, i, O_RDONLY);
        expect_octet(object, i, O_RDWR);
        object_put(objects, object);
        assert_true(count_descriptors() - before <= OPEN);
    }
    assert_true(count_descriptors() - before > OPEN - 3);
}

/* The cache does not close an object in use, even beyond the limit. */
static void test_in_use(void **state)
{
    unsigned before = start(OPEN);
    struct object *object[FILES];

    (void)state;
    assert_int_equal(look(), 0);
    for (unsigned i = 0; i < FILES; i++)
        object[i] = get(i);
    assert_int_equal(count_descriptors() - before, FILES);
    for (unsigned i = 0; i < FILES; i++) {
        struct stat st;

        assert_int_equal(object_stat(object[i], &st), 0);
        assert_ptr_equal(get(i), object[i]); /* a file has only one object */
        object_put(objects, object[i]);
    }
    for (unsigned i = 0; i < FILES; i++)
        object_put(objects, object[i]);
    objects_settle(objects, &export);
    assert_int_equal(count_descriptors() - before, OPEN);
}

static void test_oldest_first(void **state)
{
    struct object *first;

    (void)state;
    start(3);
    assert_int_equal(look(), 0);
    first = get(0);
    object_put(objects, first);
    object_put(objects, get(1));
    object_put(objects, get(2));
    object_put(objects, get(0)); /* object 0 is the most recently used again */
    object_put(objects, get(3));
    object_put(objects, get(4));
    assert_ptr_equal(get(0), first);
    object_put(objects, first);
}

static void test_least(void **state)
{
    (void)state;
    start(0); /* the cache always keeps one object */
    assert_int_equal(look(), 0);
    for (unsigned i = 0; i < FILES; i++) {
        struct object *object = get(i);

        expect_octet(object, i, O_RDWR);
        object_put(objects, object);
    }
}

static void test_forget(void **state)
{
    struct object *object, *dir;
    struct nfs3_fh root;
    unsigned before, held;
    char path[96];

    (void)state;
    before = start(OPEN);
    assert_int_equal(look(), 0);
    assert_int_equal(object_root(objects, &export, &root), 0);
    assert_int_equal(object_get(objects, &root, &dir), NFS3_OK);
    object = get(0);
    expect_octet(object, 0, O_RDWR);
    object_put(objects, object);
    held = count_descriptors() - before;
    assert_int_equal(held, 3);
    snprintf(path, sizeof(path), "%s/0", top);
    assert_int_equal(unlink(path), 0);
    object_forget(objects, dir);
    assert_int_equal(count_descriptors() - before, 1);
    object_put(objects, dir);
    assert_int_equal(object_get(objects, &fh[0], &object), NFS3ERR_STALE);
}

/* An object whose file is removed while the object is in use stays open until object_put(). */
static void test_gone_in_use(void **state)
{
    struct object *object, *none;
    unsigned before = start(OPEN);
    char path[96];

    (void)state;
    assert_int_equal(look(), 0);
    object = get(1);
    snprintf(path, sizeof(path), "%s/1", top);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(object_get(objects, &fh[1], &none), NFS3ERR_STALE);
    assert_int_equal(object_get(objects, &fh[1], &none), NFS3ERR_STALE);
    expect_octet(object, 1, O_RDONLY);
    object_put(objects, object);
    /* Closing may wait for the disk: object_put() leaves it to the threads of the export. */
    assert_true(objects_are_unsettled(objects, &export));
    objects_settle(objects, &export);
    assert_false(objects_are_unsettled(objects, &export));
    assert_int_equal(count_descriptors() - before, 1);
}

/* Run the program and return the errno of execl(). */
static int run_program(const char *path)
{
    int status = 0;
    pid_t pid;

    assert_int_equal(chmod(path, 0755), 0);
    pid = fork();
    if (pid == 0) {
        execl(path, path, (char *)NULL);
        _exit(errno);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

/* The kernel refuses to run a program while the server has it open for writing. The cache closes the writing
 * descriptor of an idle object CACHE_WRITER_MS after the last request for this descriptor. */
static void test_written_program(void **state)
{
    unsigned before = start(OPEN), held;
    struct object *object;
    char path[96];

    (void)state;
    assert_int_equal(look(), 0);
    object = get(0);
    assert_true(object_file(objects, object, O_RDWR) >= 0);
    snprintf(path, sizeof(path), "%s/0", top);
    held = count_descriptors() - before;
    cache_tend(&objects->cache, &objects->place->closing, now_ms() + 2 * CACHE_WRITER_MS);
    assert_int_equal(count_descriptors() - before, held); /* the object is in use */
    object_put(objects, object);
    cache_tend(&objects->cache, &objects->place->closing, ((struct kept *)object)->written + CACHE_WRITER_MS - 1);
    assert_int_equal(count_descriptors() - before, held);
    assert_int_equal(run_program(path), ETXTBSY);
    cache_tend(&objects->cache, &objects->place->closing, ((struct kept *)object)->written + CACHE_WRITER_MS);
    assert_int_equal(count_descriptors() - before, held - 1);
    assert_int_equal(run_program(path), ENOEXEC);
    object = get(0);
    expect_octet(object, 0, O_RDWR);
    object_put(objects, object);
}

/* objects_tend() closes a file that was removed locally, so that the file system can free the file's space. */
static void test_removed_behind_our_back(void **state)
{
    unsigned before = start(OPEN);
    struct object *object;
    char path[96];

    (void)state;
    assert_int_equal(look(), 0);
    object = get(2);
    expect_octet(object, 2, O_RDONLY);
    object_put(objects, object);
    object = get(3);
    object_put(objects, object);
    assert_int_equal(count_descriptors() - before, 4); /* the directory, two objects and one open file */
    snprintf(path, sizeof(path), "%s/2", top);
    assert_int_equal(unlink(path), 0);
    objects_tend(objects, &export);
    assert_true(objects_are_open(objects));
    assert_int_equal(count_descriptors() - before, 2);
    assert_int_equal(object_get(objects, &fh[2], &object), NFS3ERR_STALE);
    object = get(3);
    object_put(objects, object);
}

/* The cache leaves a quarter of the process's descriptors to other users. */
static int small_process(void)
{
    struct rlimit limit = {64, 64};
    unsigned before;

    objects_close(objects);
    if (setrlimit(RLIMIT_NOFILE, &limit) || open_objects(4096) || look())
        return 1;
    before = count_descriptors();
    for (unsigned i = 0; i < FILES; i++) {
        struct object *object = get(i);

        expect_octet(object, i, O_RDONLY);
        expect_octet(object, i, O_RDWR);
        object_put(objects, object);
    }
    return count_descriptors() - before < 48 && count_descriptors() - before > 40 ? 0 : 2;
}

static void test_rlimit(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (!pid)
        _exit(small_process());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* --- threads ---------------------------------------------------------------------------------------------------- */

static void *hammer(void *arg)
{
    unsigned seed = *(unsigned *)arg;

    for (unsigned turn = 0; turn < TURNS; turn++) {
        unsigned i = (unsigned)rand_r(&seed) % FILES;
        struct object *object;
        uint8_t octet = 0xff;
        int fd;

        if (object_get(objects, &fh[i], &object) != NFS3_OK)
            return "an object is not found";
        fd = object_file(objects, object, rand_r(&seed) % 2 ? O_RDONLY : O_RDWR);
        if (fd < 0 || pread(fd, &octet, 1, 0) != 1 || octet != i)
            return "a descriptor is not that of its object";
        object_put(objects, object);
        if (turn % 64 == 0)
            objects_settle(objects, &export);
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t thread[THREADS];
    unsigned seed[THREADS];
    unsigned before = start(OPEN);

    (void)state;
    assert_int_equal(look(), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        seed[i] = i + 1;
        assert_int_equal(pthread_create(&thread[i], NULL, hammer, &seed[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *wrong;

        pthread_join(thread[i], &wrong);
        if (wrong)
            fail_msg("%s", (char *)wrong);
    }
    assert_true(count_descriptors() - before <= OPEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_count, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_use, setup, teardown),
        cmocka_unit_test_setup_teardown(test_oldest_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_least, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gone_in_use, setup, teardown),
        cmocka_unit_test_setup_teardown(test_written_program, setup, teardown),
        cmocka_unit_test_setup_teardown(test_removed_behind_our_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rlimit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    kernel = false;
    return (failed + cmocka_run_group_tests(tests, NULL, NULL)) != 0;
}
