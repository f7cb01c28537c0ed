/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount3.c - MOUNT version 3: golden octets of RFC 1813 appendix I, bounds, lists, and every cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nfs/mount3.h"

static char letters[NFS3_TEXT_MAX + 1];

static struct nfs3_text text(const char *from, uint32_t length)
{
    return (struct nfs3_text){from, length};
}

static void assert_text(struct nfs3_text got, const char *want)
{
    assert_int_equal(got.length, strlen(want));
    assert_memory_equal(got.at, want, got.length);
}

/* MNT's path, of which only these two procedures have one. */
static void arguments(void **state)
{
    static const uint8_t octets[] = {0, 0, 0, 5, '/', 'd', 'a', 't', 'a', 0, 0, 0};
    struct nfs3_text path;
    uint8_t buffer[32];
    struct coder c;

    (void)state;
    for (enum mount3_proc proc = MOUNT3_NULL; proc <= MOUNT3_PROCS; proc++) {
        bool has = proc == MOUNT3_MNT || proc == MOUNT3_UMNT;

        for (size_t n = 0; n <= sizeof(octets); n++) {
            coder_read(&c, octets, n);
            mount3_code_args(&c, proc, &path);
            assert_int_equal(!c.bad, proc < MOUNT3_PROCS && n == (has ? sizeof(octets) : 0));
        }
        if (has)
            assert_text(path, "/data");
        coder_write(&c, buffer, sizeof(buffer));
        mount3_code_args(&c, proc, &path);
        assert_int_equal(c.bad, proc == MOUNT3_PROCS);
        assert_int_equal(coder_length(&c), has ? sizeof(octets) : 0);
        if (has)
            assert_memory_equal(buffer, octets, sizeof(octets));
    }
}

static void long_paths(void **state)
{
    static uint8_t buffer[2 * NFS3_TEXT_MAX];
    struct coder c;

    (void)state;
    for (uint32_t n = NFS3_TEXT_MAX - 1; n <= NFS3_TEXT_MAX + 1; n++) {
        struct xdr_out out = {.at = buffer, .left = sizeof(buffer)};
        struct nfs3_text path;

        xdr_put32(&out, n);
        xdr_putopaque(&out, letters, n);
        coder_read(&c, buffer, sizeof(buffer) - out.left);
        mount3_code_args(&c, MOUNT3_MNT, &path);
        assert_int_equal(c.bad, n > NFS3_TEXT_MAX);
        assert_int_equal(path.length, c.bad ? 0 : n);
    }
}

static void mnt(void **state)
{
    static const uint8_t octets[] = {0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0};
    struct mount3_result result = {.fh = {3, {1, 2, 3}}, .flavors = 2, .flavor = {1, 0}}, got;
    uint8_t buffer[64];
    struct coder c;

    (void)state;
    coder_write(&c, buffer, sizeof(buffer));
    mount3_code_mnt(&c, &result);
    assert_false(c.bad);
    assert_int_equal(coder_length(&c), sizeof(octets));
    assert_memory_equal(buffer, octets, sizeof(octets));
    for (size_t n = 0; n <= sizeof(octets); n++) {
        uint8_t *copy = malloc(n + 1);

        assert_non_null(copy);
        memcpy(copy, octets, n);
        memset(&got, 0, sizeof(got));
        coder_read(&c, copy, n);
        mount3_code_mnt(&c, &got);
        assert_int_equal(!c.bad, n == sizeof(octets));
        free(copy);
    }
    assert_memory_equal(&got, &result, sizeof(got));
}

static void mnt_failed(void **state)
{
    static const uint8_t octets[] = {0, 0, 0, 13, 0, 0, 0, 0};
    struct mount3_result got;
    struct coder c;

    (void)state;
    for (size_t n = 0; n <= sizeof(octets); n++) {
        coder_read(&c, octets, n);
        mount3_code_mnt(&c, &got);
        assert_int_equal(!c.bad, n == 4);
    }
    assert_int_equal(got.status, MNT3ERR_ACCES);
}

/* Of more flavors than we keep the first stay; a count that the stream has not is bad before anything is read. */
static void flavors(void **state)
{
    static const uint32_t counts[] = {0, MOUNT_FLAVORS_MAX - 1, MOUNT_FLAVORS_MAX, MOUNT_FLAVORS_MAX + 1, 40};
    struct mount3_result result = {.fh = {.length = 0}};
    uint8_t buffer[256];
    struct coder c;

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct xdr_out out = {.at = buffer, .left = sizeof(buffer)};
        uint32_t kept = counts[i] < MOUNT_FLAVORS_MAX ? counts[i] : MOUNT_FLAVORS_MAX;

        xdr_put32(&out, MNT3_OK);
        xdr_put32(&out, 0);
        xdr_put32(&out, counts[i]);
        for (uint32_t k = 0; k < counts[i]; k++)
            xdr_put32(&out, 100 + k);
        coder_read(&c, buffer, sizeof(buffer) - out.left);
        mount3_code_mnt(&c, &result);
        assert_false(c.bad);
        assert_int_equal(result.flavors, kept);
        for (uint32_t k = 0; k < kept; k++)
            assert_int_equal(result.flavor[k], 100 + k);
        coder_read(&c, buffer, sizeof(buffer) - out.left - 4);
        mount3_code_mnt(&c, &result);
        assert_true(c.bad);
        assert_int_equal(result.flavors, 0);
    }
    result.flavors = MOUNT_FLAVORS_MAX + 1;
    coder_write(&c, buffer, sizeof(buffer));
    mount3_code_mnt(&c, &result);
    assert_true(c.bad);
}

static void mounted(void **state)
{
    static const uint8_t octets[] = {0, 0, 0, 1, 0, 0, 0, 2, 'h', '1', 0, 0, 0, 0, 0, 2, '/', 'a', 0, 0, 0, 0, 0, 0};
    struct nfs3_text host = text("h1", 2), path = text("/a", 2);
    uint8_t buffer[sizeof(octets)];
    struct coder c;
    bool no = false;

    (void)state;
    coder_write(&c, buffer, sizeof(buffer));
    assert_true(mount3_code_mounted(&c, &host, &path));
    code_bool(&c, &no);
    assert_false(c.bad);
    assert_memory_equal(buffer, octets, sizeof(octets));
    for (size_t n = 0; n <= sizeof(octets); n++) {
        coder_read(&c, octets, n);
        assert_int_equal(mount3_code_mounted(&c, &host, &path), n >= 20);
        if (c.bad)
            continue;
        assert_text(host, "h1");
        assert_text(path, "/a");
        assert_false(mount3_code_mounted(&c, &host, &path));
        assert_int_equal(!c.bad, n == sizeof(octets));
    }
}

static void exports(void **state)
{
    static const uint8_t octets[] = {0,   0, 0, 1, 0, 0, 0, 2, '/', 'a', 0, 0, 0,   0,   0, 1, 0, 0, 0, 1,
                                     '*', 0, 0, 0, 0, 0, 0, 1, 0,   0,   0, 2, 'h', '2', 0, 0, 0, 0, 0, 0};
    struct nfs3_text group[3] = {text("*", 1), text("h2", 2)}, path = text("/a", 2);
    uint32_t groups = 2;
    uint8_t buffer[sizeof(octets)];
    struct coder c;

    (void)state;
    coder_write(&c, buffer, sizeof(buffer));
    assert_true(mount3_code_export(&c, &path, group, &groups, 3));
    assert_int_equal(coder_length(&c), sizeof(octets));
    assert_memory_equal(buffer, octets, sizeof(octets));
    for (size_t n = 0; n <= sizeof(octets); n++) {
        coder_read(&c, octets, n);
        assert_int_equal(mount3_code_export(&c, &path, group, &groups, 3), n == sizeof(octets));
        assert_int_equal(groups, c.bad ? 0 : 2);
    }
    assert_text(path, "/a");
    assert_text(group[0], "*");
    assert_text(group[1], "h2");
    /* One group is one too many: the first is kept, and the stream is read to its end. */
    group[1] = text("untouched", 9);
    coder_read(&c, octets, sizeof(octets));
    assert_true(mount3_code_export(&c, &path, group, &groups, 1));
    assert_int_equal(groups, 1);
    assert_text(group[1], "untouched");
    assert_int_equal(c.in.left, 0);
}

/* Names and paths of the lists at their bounds. */
static void bounds(void **state)
{
    static uint8_t buffer[4096];
    struct nfs3_text host, path;
    struct coder c;

    (void)state;
    for (uint32_t by = 0; by <= 2; by++) {
        host = text(letters, MOUNT_NAME_MAX - 1 + by);
        path = text(letters, MOUNT_PATH_MAX);
        coder_write(&c, buffer, sizeof(buffer));
        assert_int_equal(mount3_code_mounted(&c, &host, &path), by < 2);
        host = text(letters, MOUNT_NAME_MAX);
        path = text(letters, MOUNT_PATH_MAX - 1 + by);
        coder_write(&c, buffer, sizeof(buffer));
        assert_int_equal(mount3_code_mounted(&c, &host, &path), by < 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),  cmocka_unit_test(long_paths), cmocka_unit_test(mnt),
        cmocka_unit_test(mnt_failed), cmocka_unit_test(flavors),    cmocka_unit_test(mounted),
        cmocka_unit_test(exports),    cmocka_unit_test(bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
