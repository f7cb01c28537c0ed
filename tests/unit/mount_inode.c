/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount_inode.c - the inodes of a mount: found both ways, kept as long as they are known, and no longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The tool is a program, so the functions under test are included as source. */
#include "nfs/mount/inode.c"

static struct nfs3_fh fh_of(uint64_t n, uint32_t length)
{
    struct nfs3_fh fh = {.length = length};

    memcpy(fh.data, &n, length < sizeof(n) ? length : sizeof(n));
    return fh;
}

static void test_root(void **state)
{
    struct nfs3_fh root = fh_of(7, 32);
    struct inodes t;

    (void)state;
    assert_true(inodes_init(&t, &root));
    assert_int_equal(inodes_find(&t, INODE_ROOT)->ino, INODE_ROOT);
    assert_ptr_equal(inodes_seek(&t, &root), inodes_find(&t, INODE_ROOT));
    inode_forget(&t, inodes_find(&t, INODE_ROOT), 1000);
    assert_non_null(inodes_find(&t, INODE_ROOT));
    inodes_fini(&t);
}

/* Handles that differ in their length alone are different files. */
static void test_both_ways(void **state)
{
    enum { MANY = 5000 };
    struct nfs3_fh root = fh_of(0, 64);
    struct inodes t;

    (void)state;
    assert_true(inodes_init(&t, &root));
    for (uint64_t i = 1; i <= MANY; i++) {
        struct nfs3_fh fh = fh_of(i, i % 2 ? 8 : 28);
        struct inode *inode = inodes_get(&t, &fh);

        assert_non_null(inode);
        inode->lookups++;
        assert_ptr_equal(inodes_get(&t, &fh), inode);
        assert_int_equal(inode->pins, 2);
        inode_unpin(&t, inode);
        inode_unpin(&t, inode);
    }
    assert_int_equal(t.count, MANY + 1);
    for (uint64_t i = 1; i <= MANY; i++) {
        struct nfs3_fh fh = fh_of(i, i % 2 ? 8 : 28), other = fh_of(i, i % 2 ? 28 : 8);
        struct inode *inode = inodes_seek(&t, &fh);

        assert_non_null(inode);
        assert_null(inodes_seek(&t, &other));
        assert_ptr_equal(inodes_find(&t, inode->ino), inode);
    }
    inodes_fini(&t);
}

/* ... even in the same chain. */
static void test_same_chain(void **state)
{
    struct nfs3_fh root = fh_of(0, 64), fh, other;
    struct inodes t;
    uint64_t n = 1;

    (void)state;
    assert_true(inodes_init(&t, &root));
    do {
        fh = fh_of(n, 8);
        other = fh_of(n++, 28);
    } while ((hash_fh(&fh) ^ hash_fh(&other)) & (t.buckets - 1));
    assert_non_null(inodes_get(&t, &other));
    assert_null(inodes_seek(&t, &fh));
    inodes_fini(&t);
}

static void test_lifetime(void **state)
{
    struct nfs3_fh root = fh_of(0, 64), fh = fh_of(1, 16);
    struct inode *inode;
    struct inodes t;
    uint64_t ino;

    (void)state;
    assert_true(inodes_init(&t, &root));
    inode = inodes_get(&t, &fh);
    ino = inode->ino;
    inode->lookups = 3;
    inode_unpin(&t, inode);
    inode_forget(&t, inode, 2);
    assert_ptr_equal(inodes_find(&t, ino), inode);
    inode_pin(inode);
    inode_forget(&t, inode, 1);
    assert_ptr_equal(inodes_seek(&t, &fh), inode); /* in use here */
    inode_unpin(&t, inode);
    assert_null(inodes_find(&t, ino));
    assert_null(inodes_seek(&t, &fh));
    assert_int_equal(t.count, 1);

    /* The kernel may still have the number in mind. */
    inode = inodes_get(&t, &fh);
    assert_int_not_equal(inode->ino, ino);
    inode_unpin(&t, inode);
    inodes_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_same_chain),
        cmocka_unit_test(test_lifetime),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
