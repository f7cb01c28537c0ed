/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_serve_digest.c - the digest of a range of a file, a procedure of our own. */
#include <string.h>
#include <unistd.h>

#include "tests/unit/nfs_serve.h"

/* DIGEST: of the octets that are there, and no more than one call may ask for. */
static void digests(void **state)
{
    static const uint8_t hello[NFS3_DIGEST_OCTETS] = {0xb5, 0xe9, 0xc1, 0xad, 0x07, 0x1b, 0x3e, 0x7f,
                                                      0xc7, 0x79, 0xcf, 0xaa, 0x5e, 0x52, 0x38, 0x18};
    struct bed *b = *state;
    union nfs3_args args = {.range = {.fh = file(b, "f", "hello", 0600), .count = 5}};
    uint8_t none[NFS3_DIGEST_OCTETS];

    assert_int_equal(call(b, NFS3_DIGEST, &args), NFS3_OK);
    assert_int_equal(b->result.digest.octets, 5);
    assert_memory_equal(b->result.digest.value, hello, sizeof(hello));
    args.range.count = 2;
    assert_int_equal(call(b, NFS3_DIGEST, &args), NFS3_OK);
    assert_int_equal(b->result.digest.octets, 2);
    args.range.count = UINT32_MAX;
    assert_int_equal(call(b, NFS3_DIGEST, &args), NFS3_OK);
    assert_int_equal(b->result.digest.octets, 5);
    assert_memory_equal(b->result.digest.value, hello, sizeof(hello));
    args.range.offset = 5;
    assert_int_equal(call(b, NFS3_DIGEST, &args), NFS3_OK);
    assert_int_equal(b->result.digest.octets, 0);
    memcpy(none, b->result.digest.value, sizeof(none));
    args.range.offset = 4;
    assert_int_equal(call(b, NFS3_DIGEST, &args), NFS3_OK);
    assert_int_equal(b->result.digest.octets, 1);
    assert_memory_not_equal(b->result.digest.value, none, sizeof(none));
    args.range.offset = INT64_MAX;
    assert_int_equal(call(b, NFS3_DIGEST, &args), NFS3ERR_INVAL);
    args.range.offset = 0;
    assert_int_equal(truncate(local(b, "f"), 2 * (off_t)NFS3_DIGEST_MAX), 0);
    assert_int_equal(call(b, NFS3_DIGEST, &args), NFS3_OK);
    assert_int_equal(b->result.digest.octets, NFS3_DIGEST_MAX);
    args.range.fh = b->root;
    assert_int_equal(call(b, NFS3_DIGEST, &args), NFS3ERR_INVAL);
}

/* Who may not read the file learns nothing of what is in it. */
static void rights(void **state)
{
    struct bed *b = *state;
    union nfs3_args args = {.range = {.fh = file(b, "f", "hello", 0600), .count = 5}};

    b->cred.uid = b->cred.gid = 12345;
    b->cred.groups = 0;
    if (call(b, NFS3_DIGEST, &args) == NFS3_OK) /* only root acts as others */
        skip();
    assert_int_equal(b->result.status, NFS3ERR_ACCES);
    assert_int_equal(b->result.digest.octets, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {bed_test(digests), bed_test(rights)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
