/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_order.c - check that adjacent fields of one type are encoded in the order of RFC 1813 3.3. A round trip does not
 * detect that two such fields are swapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nfs/nfs3_xdr.h"

static uint8_t buffer[1024];

/* Assert that the stream consists of these words. */
static void assert_words(const struct coder *c, const uint32_t *want, size_t count)
{
    struct xdr_in in = {.at = buffer, .left = coder_length(c)};

    assert_false(c->bad);
    assert_int_equal(in.left, 4 * count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(xdr_get32(&in), want[i]);
}

#define check_args(proc, args, ...) \
    do { \
        static const uint32_t words[] = {__VA_ARGS__}; \
        struct coder coder; \
        coder_write(&coder, buffer, sizeof(buffer)); \
        nfs3_code_args(&coder, proc, args); \
        assert_words(&coder, words, sizeof(words) / sizeof(words[0])); \
    } while (0)
#define check_result(proc, result, ...) \
    do { \
        static const uint32_t words[] = {__VA_ARGS__}; \
        struct coder coder; \
        coder_write(&coder, buffer, sizeof(buffer)); \
        nfs3_code_result(&coder, proc, result); \
        assert_words(&coder, words, sizeof(words) / sizeof(words[0])); \
    } while (0)

static void arguments(void **state)
{
    union nfs3_args setattr = {
        .setattr = {
            .attr = {true, true, true, true, 11, 12, 13, 14, NFS3_CLIENT_TIME, NFS3_CLIENT_TIME, {15, 16}, {17, 18}},
            .guarded = true,
            .ctime = {19, 20},
        }};
    union nfs3_args rename = {.rename = {{.name = {"\0\0\0\1", 4}}, {.name = {"\0\0\0\2", 4}}}};
    union nfs3_args node = {.make = {.type = NFS3_BLK, .major = 8, .minor = 9}};
    union nfs3_args list = {.list = {.cookie = 7, .verifier = {0, 0, 0, 3, 0, 0, 0, 4}, .maxcount = 6}};

    (void)state;
    check_args(NFS3_SETATTR, &setattr, 0, 1, 11, 1, 12, 1, 13, 1, 0, 14, 2, 15, 16, 2, 17, 18, 1, 19, 20);
    check_args(NFS3_RENAME, &rename, 0, 4, 1, 0, 4, 2);
    check_args(NFS3_MKNOD, &node, 0, 0, 3, 0, 0, 0, 0, 0, 0, 8, 9);
    check_args(NFS3_READDIR, &list, 0, 0, 7, 3, 4, 6);
}

static void results(void **state)
{
    struct nfs3_wcc one = {.had = true, .size = 1, .mtime = {2, 3}, .ctime = {4, 5}};
    struct nfs3_result rename = {.wcc = one};
    struct nfs3_result link = {.to_wcc = one};
    struct nfs3_result create = {.made = {true, {4, {0, 0, 0, 9}}}, .wcc = one};
    struct nfs3_result stat = {.fsstat = {1, 2, 3, 4, 5, 6, 7}};
    struct nfs3_result info = {.fsinfo = {1, 2, 3, 4, 5, 6, 7, 8, {9, 10}, 11}};

    (void)state;
    check_result(NFS3_RENAME, &rename, 0, 1, 0, 1, 2, 3, 4, 5, 0, 0, 0);
    check_result(NFS3_LINK, &link, 0, 0, 1, 0, 1, 2, 3, 4, 5, 0);
    check_result(NFS3_CREATE, &create, 0, 1, 4, 9, 0, 1, 0, 1, 2, 3, 4, 5, 0);
    check_result(NFS3_FSSTAT, &stat, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 7);
    check_result(NFS3_FSINFO, &info, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11);
}

/* Set each of the first three booleans alone. */
static void pathconf(void **state)
{
    struct nfs3_result conf = {.pathconf = {1, 2, true, false, false, false}};

    (void)state;
    check_result(NFS3_PATHCONF, &conf, 0, 0, 1, 2, 1, 0, 0, 0);
    conf.pathconf.no_trunc = false;
    conf.pathconf.chown_restricted = true;
    check_result(NFS3_PATHCONF, &conf, 0, 0, 1, 2, 0, 1, 0, 0);
    conf.pathconf.chown_restricted = false;
    conf.pathconf.case_insensitive = true;
    check_result(NFS3_PATHCONF, &conf, 0, 0, 1, 2, 0, 0, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),
        cmocka_unit_test(results),
        cmocka_unit_test(pathconf),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
