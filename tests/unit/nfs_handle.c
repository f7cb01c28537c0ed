/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_handle.c - test that a file handle returns its contents, that a forged handle is refused, and that the key file
 * is private. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs/server/export.h"
#include "nfs/server/handle.h"

static const uint8_t key[HANDLE_KEY] = "0123456789abcde";

static struct handle kernel(uint8_t count)
{
    struct handle h = {.kind = HANDLE_KERNEL, .export = 0xfedcba98, .type = -7, .count = count};

    memset(h.kernel, 0xa5, count);
    return h;
}

static struct handle inode(uint8_t count)
{
    struct handle h = {.kind = HANDLE_INODE, .export = 1, .inode = UINT64_MAX - 1, .birth = 1ull << 63, .count = count};

    memset(h.hint, 0x5a, count);
    return h;
}

static void expect_same(const struct handle *a)
{
    struct handle b;
    struct nfs3_fh fh;

    handle_put(key, a, &fh);
    assert_true(fh.length <= NFS3_FH_MAX);
    assert_true(handle_get(key, &fh, &b));
    assert_int_equal(a->kind, b.kind);
    assert_int_equal(a->export, b.export);
    assert_int_equal(a->type, b.type);
    assert_int_equal(a->inode, b.inode);
    assert_int_equal(a->birth, b.birth);
    assert_int_equal(a->count, b.count);
    assert_memory_equal(a->kernel, b.kernel, a->count);
}

static void test_round(void **state)
{
    static const uint8_t counts[] = {0, 1, 8, HANDLE_HINTS_MAX - 1, HANDLE_HINTS_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(counts); i++) {
        struct handle k = kernel(counts[i]), n = inode(counts[i]);

        expect_same(&k);
        expect_same(&n);
    }
    for (uint8_t n = HANDLE_HINTS_MAX; n <= HANDLE_KERNEL_MAX; n++) {
        struct handle k = kernel(n);

        expect_same(&k);
    }
}

static void expect_no_forgery(const struct handle *h)
{
    struct nfs3_fh fh, bad;
    struct handle out;

    handle_put(key, h, &fh);
    for (uint32_t bit = 0; bit < fh.length * 8; bit++) {
        bad = fh;
        bad.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(handle_get(key, &bad, &out));
    }
    for (uint32_t n = 0; n <= NFS3_FH_MAX + 1; n++) {
        bad = fh;
        bad.length = n;
        assert_int_equal(handle_get(key, &bad, &out), n == fh.length);
    }
    bad = fh;
    bad.length = UINT32_MAX;
    assert_false(handle_get(key, &bad, &out));
}

static void test_forged(void **state)
{
    struct handle k = kernel(8), n = inode(3);
    uint8_t other[HANDLE_KEY];
    struct handle out;
    struct nfs3_fh fh;

    (void)state;
    expect_no_forgery(&k);
    expect_no_forgery(&n);
    handle_put(key, &k, &fh);
    for (unsigned bit = 0; bit < HANDLE_KEY * 8; bit++) {
        memcpy(other, key, sizeof(other));
        other[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(handle_get(other, &fh, &out));
    }
}

/* --- the key ---------------------------------------------------------------------------------------------------- */

static char dir[64], file[96], error[EXPORT_TEXT];

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/rddp-handle.XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(file, sizeof(file), "%s/handle-key", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(dir); /* fails if a test left another file in the directory */
}

static void write_key(size_t n, mode_t mode)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, mode);

    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(write(fd, "0123456789abcdefg", n), (ssize_t)n);
    close(fd);
}

static void test_key(void **state)
{
    uint8_t a[HANDLE_KEY], b[HANDLE_KEY], none[HANDLE_KEY] = {0};
    struct stat st;

    (void)state;
    umask(0);
    assert_int_equal(handle_key_open(a, dir, error), 0);
    assert_int_equal(handle_key_open(b, dir, error), 0);
    assert_memory_equal(a, b, HANDLE_KEY);
    assert_memory_not_equal(a, none, HANDLE_KEY);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(st.st_size, HANDLE_KEY);
    assert_int_equal(handle_key_open(b, NULL, error), 0); /* without a directory, the key is valid for this run only */
    assert_memory_not_equal(a, b, HANDLE_KEY);
    write_key(HANDLE_KEY, 0600);
    assert_int_equal(handle_key_open(a, dir, error), 0);
    assert_memory_equal(a, "0123456789abcdef", HANDLE_KEY);
}

static void expect_refused(int code, const char *words)
{
    uint8_t a[HANDLE_KEY];

    *error = 0;
    assert_int_equal(handle_key_open(a, dir, error), code);
    assert_non_null(strstr(error, words));
}

static void test_bad_key(void **state)
{
    (void)state;
    write_key(HANDLE_KEY - 1, 0600);
    expect_refused(-EINVAL, "16 octets");
    write_key(HANDLE_KEY + 1, 0600);
    expect_refused(-EINVAL, "16 octets");
    write_key(HANDLE_KEY, 0640);
    expect_refused(-EPERM, "only its owner");
    write_key(HANDLE_KEY, 0602);
    expect_refused(-EPERM, "only its owner");
    unlink(file);
    assert_int_equal(symlink("/etc/hostname", file), 0);
    expect_refused(-ELOOP, "handle-key");
    unlink(file);
    assert_int_equal(rmdir(dir), 0);
    expect_refused(-ENOENT, "handle-key");
    assert_int_equal(mkdir(dir, 0555), 0);
    if (geteuid())
        expect_refused(-EACCES, "handle-key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_forged),
        cmocka_unit_test_setup_teardown(test_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_key, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
