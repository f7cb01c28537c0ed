/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs3_golden.c - compare encodings with octets derived by hand from RFC 1813, and decode values at and around each
 * bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nfs/nfs3_xdr.h"
#include "tests/lib/vectors.h"

/* A handle of 5 octets, and attributes in which no two adjacent fields are equal. */
#define FH "00000005 aabbccdd ee000000"
#define ATTR \
    "00000001 000001a4 00000001 000003e8 00000064 0000000000000005 0000000000001000 00000008 00000009 " \
    "0102030405060708 1112131415161718 0000000100000002 0000000300000004 0000000500000006"
#define POST_ATTR "00000001" ATTR
#define VERIFIER "f0f1f2f3f4f5f6f7"

static const struct nfs3_fh fh = {5, {0xaa, 0xbb, 0xcc, 0xdd, 0xee}};
static const struct nfs3_post_attr post_attr = {
    .present = true,
    .attr.type = NFS3_REG,
    .attr.mode = 0644,
    .attr.nlink = 1,
    .attr.uid = 1000,
    .attr.gid = 100,
    .attr.size = 5,
    .attr.used = 4096,
    .attr.major = 8,
    .attr.minor = 9,
    .attr.fsid = 0x0102030405060708,
    .attr.fileid = 0x1112131415161718,
    .attr.atime = {1, 2},
    .attr.mtime = {3, 4},
    .attr.ctime = {5, 6},
};
static const uint8_t verifier[NFS3_VERIFIER] = {0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7};

/* Decode hex digits and ignore the blanks between them. */
static size_t from_hex(const char *hex, uint8_t *to, size_t space)
{
    char digits[2048];
    size_t n = 0;
    ptrdiff_t length;

    for (; *hex; hex++)
        if (*hex != ' ' && n < sizeof(digits) - 1)
            digits[n++] = *hex;
    digits[n] = 0;
    length = hex_decode(digits, to, space);
    assert_true(length > 0);
    return (size_t)length;
}

/* --- golden octets --------------------------------------------------------------------------------------------- */

static void same(const struct coder *c, const uint8_t *got, const uint8_t *want, size_t n)
{
    assert_false(c->bad);
    assert_int_equal(coder_length(c), n);
    assert_memory_equal(got, want, n);
}

/* Assert that args encode to these octets, and that these octets survive a decode and an encode. */
static void check_args(enum nfs3_proc proc, const union nfs3_args *args, const char *hex)
{
    uint8_t want[1024], got[1024];
    union nfs3_args copy = *args;
    size_t n = from_hex(hex, want, sizeof(want));
    struct coder c;

    coder_write(&c, got, sizeof(got));
    nfs3_code_args(&c, proc, &copy);
    same(&c, got, want, n);
    memset(&copy, 0, sizeof(copy));
    coder_read(&c, want, n);
    nfs3_code_args(&c, proc, &copy);
    assert_false(c.bad);
    coder_write(&c, got, sizeof(got));
    nfs3_code_args(&c, proc, &copy);
    same(&c, got, want, n);
}

static void check_result(enum nfs3_proc proc, const struct nfs3_result *result, const char *hex)
{
    uint8_t want[1024], got[1024];
    struct nfs3_result copy = *result;
    size_t n = from_hex(hex, want, sizeof(want));
    struct coder c;

    coder_write(&c, got, sizeof(got));
    nfs3_code_result(&c, proc, &copy);
    same(&c, got, want, n);
    memset(&copy, 0, sizeof(copy));
    coder_read(&c, want, n);
    nfs3_code_result(&c, proc, &copy);
    assert_false(c.bad);
    coder_write(&c, got, sizeof(got));
    nfs3_code_result(&c, proc, &copy);
    same(&c, got, want, n);
}

/* RFC 1813 3.3.1 */
static void getattr_octets(void **state)
{
    union nfs3_args args = {.fh = fh};
    struct nfs3_result result = {.attr = post_attr};

    (void)state;
    check_args(NFS3_GETATTR, &args, FH);
    check_result(NFS3_GETATTR, &result, "00000000" ATTR);
    result.status = NFS3ERR_STALE;
    check_result(NFS3_GETATTR, &result, "00000046");
}

/* RFC 1813 3.3.3 */
static void lookup_octets(void **state)
{
    union nfs3_args args = {.where = {fh, {"file.c", 6}}};
    struct nfs3_result result = {.fh = fh, .attr = post_attr, .dir = {.present = false}};

    (void)state;
    check_args(NFS3_LOOKUP, &args, FH "00000006 66696c65 2e630000");
    check_result(NFS3_LOOKUP, &result, "00000000" FH POST_ATTR "00000000");
    result.status = NFS3ERR_NOENT;
    result.dir = post_attr;
    check_result(NFS3_LOOKUP, &result, "00000002" POST_ATTR);
}

/* RFC 1813 3.3.6 */
static void read_octets(void **state)
{
    union nfs3_args args = {.range = {fh, 0x100000000, 4096}};
    struct nfs3_result result = {.attr = post_attr, .read = {3, true, "xyz"}};

    (void)state;
    check_args(NFS3_READ, &args, FH "0000000100000000 00001000");
    check_result(NFS3_READ, &result, "00000000" POST_ATTR "00000003 00000001 00000003 78797a00");
    result.status = NFS3ERR_IO;
    result.attr.present = false;
    check_result(NFS3_READ, &result, "00000005 00000000");
}

/* RFC 1813 3.3.7 */
static void write_octets(void **state)
{
    union nfs3_args args = {.write = {fh, 8, 5, NFS3_FILE_SYNC, "hello", 5}};
    struct nfs3_result result = {
        .wcc = {true, 7, {1, 2}, {3, 4}, post_attr},
        .write = {.count = 5, .committed = NFS3_DATA_SYNC},
    };

    (void)state;
    memcpy(result.write.verifier, verifier, sizeof(verifier));
    check_args(NFS3_WRITE, &args, FH "0000000000000008 00000005 00000002 00000005 68656c6c 6f000000");
    check_result(NFS3_WRITE, &result,
                 "00000000 00000001 0000000000000007 0000000100000002 0000000300000004" POST_ATTR
                 "00000005 00000001" VERIFIER);
    result.status = NFS3ERR_NOSPC;
    result.wcc = (struct nfs3_wcc){.had = false};
    check_result(NFS3_WRITE, &result, "0000001c 00000000 00000000");
}

/* RFC 1813 3.3.17 */
static void readdirplus_octets(void **state)
{
    union nfs3_args args = {.list = {.dir = fh, .cookie = 2, .dircount = 512, .maxcount = 4096}};
    struct nfs3_result result = {.attr = post_attr, .list = {.eof = true}};
    struct nfs3_entry one = {.fileid = 9, .name = {"..", 2}, .cookie = 3};
    struct nfs3_entry two = {.fileid = 10, .name = {"a", 1}, .cookie = 4, .attr = post_attr, .fh = {true, fh}};
    uint8_t entries[512];
    struct xdr_out out = {.at = entries, .left = sizeof(entries)};

    (void)state;
    memcpy(args.list.verifier, verifier, sizeof(verifier));
    memcpy(result.list.verifier, verifier, sizeof(verifier));
    check_args(NFS3_READDIRPLUS, &args, FH "0000000000000002" VERIFIER "00000200 00001000");
    assert_true(nfs3_put_entry(&out, &one, true) && nfs3_put_entry(&out, &two, true));
    result.list.entries = entries;
    result.list.length = (uint32_t)(sizeof(entries) - out.left);
    check_result(NFS3_READDIRPLUS, &result,
                 "00000000" POST_ATTR VERIFIER
                 "00000001 0000000000000009 00000002 2e2e0000 0000000000000003 00000000 00000000 00000001 "
                 "000000000000000a 00000001 61000000 0000000000000004" POST_ATTR "00000001" FH "00000000 00000001");
}

/* --- bounds ---------------------------------------------------------------------------------------------------- */

/* Return true if the decoder accepts `hex` after `v` replaces the word at offset `at`. */
static bool takes(enum nfs3_proc proc, bool call, const char *hex, size_t at, uint32_t v)
{
    uint8_t octets[1024];
    size_t n = from_hex(hex, octets, sizeof(octets));
    struct xdr_out out = {.at = octets + at, .left = 4};
    struct nfs3_result result;
    union nfs3_args args;
    struct coder c;

    assert_true(at <= n - 4);
    xdr_put32(&out, v);
    coder_read(&c, octets, n);
    if (call)
        nfs3_code_args(&c, proc, &args);
    else
        nfs3_code_result(&c, proc, &result);
    return !c.bad;
}

#define FALSE4 "00000000 00000000 00000000 00000000"
#define WHERE FH "00000001 61000000"

static void enums(void **state)
{
    static const struct {
        enum nfs3_proc proc;
        bool call;
        const char *hex;
        size_t at;
        uint32_t value;
        bool taken;
    } row[] = {
        /* ftype3 */
        {NFS3_GETATTR, false, "00000000" ATTR, 4, 0, false},
        {NFS3_GETATTR, false, "00000000" ATTR, 4, 1, true},
        {NFS3_GETATTR, false, "00000000" ATTR, 4, 7, true},
        {NFS3_GETATTR, false, "00000000" ATTR, 4, 8, false},
        {NFS3_MKNOD, true, WHERE "00000001", 20, 0, false},
        {NFS3_MKNOD, true, WHERE "00000001", 20, 1, true},
        {NFS3_MKNOD, true, WHERE "00000007" FALSE4 "00000000 00000000", 20, 7, true},
        {NFS3_MKNOD, true, WHERE "00000008", 20, 8, false},
        /* stable_how in a call and in a reply */
        {NFS3_WRITE, true, FH "0000000000000008 00000005 00000002 00000000", 24, 0, true},
        {NFS3_WRITE, true, FH "0000000000000008 00000005 00000002 00000000", 24, 2, true},
        {NFS3_WRITE, true, FH "0000000000000008 00000005 00000002 00000000", 24, 3, false},
        {NFS3_WRITE, false, FALSE4 "00000000" VERIFIER, 16, 2, true},
        {NFS3_WRITE, false, FALSE4 "00000000" VERIFIER, 16, 3, false},
        /* createmode3 */
        {NFS3_CREATE, true, WHERE "00000002" VERIFIER, 20, 2, true},
        {NFS3_CREATE, true, WHERE "00000002" VERIFIER, 20, 3, false},
        {NFS3_CREATE, true, WHERE "00000001" FALSE4 "00000000 00000000", 20, 1, true},
        {NFS3_CREATE, true, WHERE "00000001" FALSE4 "00000000 00000000", 20, 3, false},
        /* time_how */
        {NFS3_SETATTR, true, FH FALSE4 "00000000 00000000 00000000", 28, 1, true},
        {NFS3_SETATTR, true, FH FALSE4 "00000000 00000000 00000000", 28, 3, false},
        {NFS3_SETATTR, true, FH FALSE4 "00000002 0000000100000002 00000000 00000000", 28, 2, true},
        {NFS3_SETATTR, true, FH FALSE4 "00000000 00000000 00000000", 32, 1, true},
        {NFS3_SETATTR, true, FH FALSE4 "00000000 00000000 00000000", 32, 3, false},
        /* Booleans: the guard, the flags of the attributes to set, the flags of optional fields, the end of a file. */
        {NFS3_SETATTR, true, FH FALSE4 "00000000 00000000 00000000", 36, 0, true},
        {NFS3_SETATTR, true, FH FALSE4 "00000000 00000000 00000001 0000000100000002", 36, 1, true},
        {NFS3_SETATTR, true, FH FALSE4 "00000000 00000000 00000000", 36, 2, false},
        {NFS3_SETATTR, true, FH FALSE4 "00000000 00000000 00000000", 12, 2, false},
        {NFS3_ACCESS, false, "00000000 00000000 00000001", 4, 0, true},
        {NFS3_ACCESS, false, "00000000" POST_ATTR "00000001", 4, 1, true},
        {NFS3_ACCESS, false, "00000000 00000000 00000001", 4, 2, false},
        {NFS3_REMOVE, false, "00000000 00000000 00000000", 4, 2, false},
        {NFS3_READ, false, "00000000 00000000 00000000 00000001 00000000", 12, 1, true},
        {NFS3_READ, false, "00000000 00000000 00000000 00000001 00000000", 12, 2, false},
        {NFS3_READDIR, false, "00000000 00000000" VERIFIER "00000000 00000001", 16, 0, true},
        {NFS3_READDIR, false, "00000000 00000000" VERIFIER "00000000 00000001", 16, 2, false},
        /* The count of a READ result must equal the length of its data. */
        {NFS3_READ, false, "00000000 00000000 00000003 00000001 00000003 78797a00", 8, 3, true},
        {NFS3_READ, false, "00000000 00000000 00000003 00000001 00000003 78797a00", 8, 2, false},
        {NFS3_READ, false, "00000000 00000000 00000003 00000001 00000003 78797a00", 8, 4, false},
        /* The length of an opaque field must agree with the length of the stream. */
        {NFS3_WRITE, true, FH "0000000000000008 00000005 00000002 00000003 78797a00", 28, 4, true},
        {NFS3_WRITE, true, FH "0000000000000008 00000005 00000002 00000003 78797a00", 28, 5, false},
        {NFS3_WRITE, true, FH "0000000000000008 00000005 00000002 00000003 78797a00", 28, 0, false},
        {NFS3_WRITE, true, FH "0000000000000008 00000005 00000002 00000003 78797a00", 28, UINT32_MAX, false},
        {NFS3_LOOKUP, true, WHERE, 12, UINT32_MAX - 2, false},
        /* A result with an unknown status has the fields of a failure. */
        {NFS3_ACCESS, false, "00000000 00000000", 0, 12345, true},
        {NFS3_ACCESS, false, "00000000 00000000", 0, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (takes(row[i].proc, row[i].call, row[i].hex, row[i].at, row[i].value) != row[i].taken)
            fail_msg("row %zu: %u at %zu of %s", i, row[i].value, row[i].at, nfs3_proc_str(row[i].proc));
    assert_false(takes(NFS3_PROCS, true, "00000000", 0, 0));
    assert_false(takes(NFS3_PROCS, false, "00000000", 0, 0));
}

/* Code handles and names one octet below, at and above their longest length. */
static void lengths(void **state)
{
    static uint8_t buffer[2 * NFS3_TEXT_MAX];
    static char name[NFS3_TEXT_MAX + 1];
    union nfs3_args args = {.fh = {.length = NFS3_FH_MAX - 1}};
    struct coder c;

    (void)state;
    for (uint32_t n = NFS3_FH_MAX - 1; n <= NFS3_FH_MAX + 1; n++) {
        struct xdr_out out = {.at = buffer, .left = sizeof(buffer)};

        xdr_put32(&out, n);
        coder_read(&c, buffer, 4 + n + xdr_roundup(n));
        nfs3_code_args(&c, NFS3_GETATTR, &args);
        assert_int_equal(c.bad, n > NFS3_FH_MAX);
        assert_int_equal(args.fh.length, c.bad ? 0 : n);
        args.fh.length = n;
        coder_write(&c, buffer, sizeof(buffer));
        nfs3_code_args(&c, NFS3_GETATTR, &args);
        assert_int_equal(c.bad, n > NFS3_FH_MAX);
    }
    for (uint32_t n = NFS3_TEXT_MAX - 1; n <= NFS3_TEXT_MAX + 1; n++) {
        struct xdr_out out = {.at = buffer, .left = sizeof(buffer)};

        xdr_put32(&out, 0);
        xdr_put32(&out, n);
        xdr_putopaque(&out, name, n);
        coder_read(&c, buffer, sizeof(buffer) - out.left);
        nfs3_code_args(&c, NFS3_LOOKUP, &args);
        assert_int_equal(c.bad, n > NFS3_TEXT_MAX);
        args = (union nfs3_args){.where.name = {name, n}};
        coder_write(&c, buffer, sizeof(buffer));
        nfs3_code_args(&c, NFS3_LOOKUP, &args);
        assert_int_equal(c.bad, n > NFS3_TEXT_MAX);
    }
}

/* nfs3_put_entry() does not advance if the entry does not fit. nfs3_get_entry() stops at the end of the input, at FALSE
 * and at a word that is not a boolean. */
static void entries_end(void **state)
{
    static const uint8_t no[4], neither[4] = {0, 0, 0, 2};
    struct nfs3_entry entry = {.fileid = 1, .name = {"abc", 3}, .cookie = 2}, got;
    uint8_t buffer[28];
    struct xdr_in in;

    (void)state;
    for (size_t n = 0; n <= sizeof(buffer); n++) {
        struct xdr_out out = {.at = buffer, .left = n};

        assert_int_equal(nfs3_put_entry(&out, &entry, false), n == sizeof(buffer));
        assert_ptr_equal(out.at, n == sizeof(buffer) ? buffer + n : buffer);
        assert_false(out.bad);
    }
    for (size_t n = 0; n <= sizeof(buffer); n++) {
        in = (struct xdr_in){.at = buffer, .left = n};
        assert_int_equal(nfs3_get_entry(&in, &got, false), n == sizeof(buffer));
        assert_int_equal(in.bad, n > 0 && n < sizeof(buffer));
    }
    assert_int_equal(got.cookie, 2);
    assert_memory_equal(got.name.at, "abc", 3);
    in = (struct xdr_in){.at = no, .left = 4};
    assert_false(nfs3_get_entry(&in, &got, true) || in.bad || in.left);
    in = (struct xdr_in){.at = neither, .left = 4};
    assert_false(nfs3_get_entry(&in, &got, true));
    assert_true(in.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(getattr_octets), cmocka_unit_test(lookup_octets),      cmocka_unit_test(read_octets),
        cmocka_unit_test(write_octets),   cmocka_unit_test(readdirplus_octets), cmocka_unit_test(enums),
        cmocka_unit_test(lengths),        cmocka_unit_test(entries_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
