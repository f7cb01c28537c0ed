/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_memory.c - device memory is copied to and from, and reached by requests under addresses from 0; its limits. */
#include <errno.h>
#include <string.h>

#include "tests/verbs/lib/looped.h"

enum {
    SIZE = 4096,
    AT = 256,
    OCTETS = 512,
    RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
             IBV_ACCESS_ZERO_BASED,
};

static struct looped looped;
static char memory[2 * SIZE], back[SIZE];

static int set_up(void **state)
{
    (void)state;
    looped_open(&looped, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    looped_close(&looped);
    return 0;
}

static struct ibv_dm *alloc(size_t length)
{
    struct ibv_alloc_dm_attr attr = {.length = length};

    return ibv_alloc_dm(looped.context, &attr);
}

static void expect_done(void)
{
    struct ibv_wc wc = looped_completion(&looped);

    assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* A region over the middle of the memory: octet 0 of the one is octet AT of the other, for both keys. */
static void test_requests(void **state)
{
    struct ibv_dm *dm = alloc(SIZE);
    struct ibv_mr *mr, *host = ibv_reg_mr(looped.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge out = {.addr = (uintptr_t)memory, .length = OCTETS, .lkey = host->lkey};
    struct ibv_sge in = {.addr = (uintptr_t)memory + SIZE, .length = OCTETS, .lkey = host->lkey};
    struct ibv_sge own = {.addr = 0, .length = OCTETS};

    (void)state;
    assert_non_null(dm);
    mr = ibv_reg_dm_mr(looped.pd, dm, AT, 2 * OCTETS, RIGHTS);
    assert_non_null(mr);
    assert_int_equal(mr->length, 2 * OCTETS);
    own.lkey = mr->lkey;
    memset(memory, 'w', OCTETS);
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, out, OCTETS, mr->rkey);
    expect_done();
    assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, SIZE), 0);
    assert_int_equal(back[AT + OCTETS - 1], 0); /* new memory is clean */
    assert_memory_equal(back + AT + OCTETS, memory, OCTETS);
    assert_int_equal(back[AT + 2 * OCTETS], 0);

    memset(back, 's', OCTETS);
    assert_int_equal(ibv_memcpy_to_dm(dm, AT, back, OCTETS), 0);
    looped_receive(looped.qp[1], 1, in.addr, OCTETS, host->lkey);
    looped_post(looped.qp[0], IBV_WR_SEND, own, 0, 0);
    expect_done();
    expect_done();
    assert_memory_equal(memory + SIZE, back, OCTETS);
    looped_post(looped.qp[0], IBV_WR_RDMA_READ, in, OCTETS, mr->rkey);
    expect_done();
    assert_memory_equal(memory + SIZE, memory, OCTETS);

    assert_int_equal(ibv_free_dm(dm), EBUSY);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    own.addr = 2 * OCTETS - 1; /* one octet too far */
    looped_post(looped.qp[0], IBV_WR_SEND, own, 0, 0);
    assert_int_equal(looped_completion(&looped).status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_free_dm(dm), 0);
    assert_int_equal(ibv_dereg_mr(host), 0);
}

static void expect_refused(struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access)
{
    errno = 0;
    assert_null(ibv_reg_dm_mr(looped.pd, dm, offset, length, access));
    assert_int_equal(errno, EINVAL);
}

static void test_bounds(void **state)
{
    struct ibv_dm *dm = alloc(OCTETS);
    struct ibv_mr *mr;

    (void)state;
    assert_int_equal(ibv_memcpy_to_dm(dm, OCTETS - 4, back, 4), 0);
    assert_int_equal(ibv_memcpy_to_dm(dm, OCTETS, back, 0), 0);
    assert_int_equal(ibv_memcpy_to_dm(dm, OCTETS, back, 4), EINVAL);
    assert_int_equal(ibv_memcpy_to_dm(dm, UINT64_MAX - 3, back, 8), EINVAL);
    assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, OCTETS + 4), EINVAL);
    assert_int_equal(ibv_memcpy_from_dm(back, dm, 4, SIZE_MAX - 3), EINVAL);
    for (uint64_t part = 1; part < 4; part++) { /* of a word */
        assert_int_equal(ibv_memcpy_to_dm(dm, part, back, 4), EINVAL);
        assert_int_equal(ibv_memcpy_to_dm(dm, 4, back, part), EINVAL);
        assert_int_equal(ibv_memcpy_from_dm(back, dm, part, 4), EINVAL);
        assert_int_equal(ibv_memcpy_from_dm(back, dm, 4, part), EINVAL);
    }
    expect_refused(dm, 0, OCTETS + 1, RIGHTS);
    expect_refused(dm, UINT64_MAX, 2, RIGHTS);
    expect_refused(dm, 0, OCTETS, RIGHTS & ~(unsigned)IBV_ACCESS_ZERO_BASED);
    expect_refused(dm, 0, OCTETS, RIGHTS | IBV_ACCESS_MW_BIND);
    mr = ibv_reg_dm_mr(looped.pd, dm, 0, OCTETS, RIGHTS);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_free_dm(dm), 0);
}

static void expect_no_memory(struct ibv_alloc_dm_attr attr, int error)
{
    errno = 0;
    assert_null(ibv_alloc_dm(looped.context, &attr));
    assert_int_equal(errno, error);
}

static void test_amount(void **state)
{
    struct ibv_device_attr_ex attr;
    struct ibv_dm *most;

    (void)state;
    assert_int_equal(ibv_query_device_ex(looped.context, NULL, &attr), 0);
    assert_true(attr.max_dm_size >= SIZE);
    expect_no_memory((struct ibv_alloc_dm_attr){.length = attr.max_dm_size + 1}, EINVAL);
    expect_no_memory((struct ibv_alloc_dm_attr){.length = 0}, EINVAL);
    expect_no_memory((struct ibv_alloc_dm_attr){.length = 1, .comp_mask = 1}, EINVAL);
    expect_no_memory((struct ibv_alloc_dm_attr){.length = 1, .log_align_req = 64}, EINVAL);
    for (int i = 0; i < 2; i++) { /* what was freed can be had again */
        most = alloc(attr.max_dm_size);
        assert_non_null(most);
        expect_no_memory((struct ibv_alloc_dm_attr){.length = 1}, ENOMEM);
        assert_int_equal(ibv_free_dm(most), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bounds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_amount, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
