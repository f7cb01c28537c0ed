/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* buf.c - memory that the device chooses: from a page on, registered as a whole or in part, and never beyond its end.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "tests/verbs/lib/looped.h"
#include "verbs/buf.h"

enum { OCTETS = 10000, RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static struct looped looped;

static void expect_no_region(struct verbs_buf *buf, char *at, size_t octets)
{
    errno = 0;
    assert_null(verbs_reg_buf_mr(looped.pd, buf, at, octets, RIGHTS));
    assert_int_equal(errno, EINVAL);
}

static void data_pass_from_one_to_another(void **state)
{
    struct verbs_buf *buf[2];
    struct ibv_mr *mr[2];
    char *at[2];

    (void)state;
    looped_open(&looped, 0);
    for (int i = 0; i < 2; i++) {
        at[i] = verbs_alloc_buf(looped.pd, OCTETS, &buf[i]);
        assert_non_null(at[i]);
        assert_int_equal((uintptr_t)at[i] % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
        memset(at[i], 'a' + i, OCTETS);
        mr[i] = verbs_reg_buf_mr(looped.pd, buf[i], at[i] + 1, OCTETS - 1, RIGHTS);
        assert_non_null(mr[i]);
        assert_ptr_equal(mr[i]->addr, at[i] + 1);
        expect_no_region(buf[i], at[i] + 1, OCTETS);
        expect_no_region(buf[i], at[i] - 1, OCTETS);
        expect_no_region(buf[i], at[i] + OCTETS + 1, 1);
    }
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE,
                (struct ibv_sge){.addr = (uintptr_t)at[0] + 1, .length = OCTETS - 1, .lkey = mr[0]->lkey},
                (uintptr_t)at[1] + 1, mr[1]->rkey);
    assert_int_equal(looped_completion(&looped).status, IBV_WC_SUCCESS);
    while (*(volatile char *)&at[1][OCTETS - 1] != 'a')
        continue;
    assert_int_equal(at[1][0], 'b');
    assert_memory_equal(at[1] + 1, at[0] + 1, OCTETS - 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_dereg_mr(mr[i]), 0);
        verbs_free_buf(buf[i]);
    }
    looped_close(&looped);
}

static void no_memory_and_too_much(void **state)
{
    struct verbs_buf *buf;

    (void)state;
    errno = 0;
    assert_null(verbs_alloc_buf(NULL, 0, &buf));
    assert_int_equal(errno, EINVAL);
    assert_null(verbs_alloc_buf(NULL, SIZE_MAX, &buf));
    assert_int_equal(errno, ENOMEM);
}

/* A buffer belongs to a protection domain, and no DMA-buf is behind it. */
static void another_domain_and_no_dmabuf(void **state)
{
    struct ibv_pd *other;
    struct verbs_buf *buf;
    char *at;

    (void)state;
    looped_open(&looped, 0);
    other = ibv_alloc_pd(looped.context);
    assert_non_null(other);
    at = verbs_alloc_buf(other, OCTETS, &buf);
    assert_non_null(at);
    expect_no_region(buf, at, OCTETS);
    errno = 0;
    assert_int_equal(verbs_export_buf(buf), -1);
    assert_int_equal(errno, ENODATA);
    verbs_free_buf(buf);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    looped_close(&looped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_pass_from_one_to_another),
        cmocka_unit_test(no_memory_and_too_much),
        cmocka_unit_test(another_domain_and_no_dmabuf),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
