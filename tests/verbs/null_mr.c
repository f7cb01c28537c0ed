/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* null_mr.c - a null region reads as 0 at every address, drops what is placed there, and has no right for peers. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/verbs/lib/looped.h"

enum { SIZE = 1 << 20, RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

static struct looped looped;
static struct ibv_mr *null_mr, *host;
static char memory[SIZE], zeroes[SIZE];

static int set_up(void **state)
{
    (void)state;
    looped_open(&looped, 0);
    null_mr = ibv_alloc_null_mr(looped.pd);
    host = ibv_reg_mr(looped.pd, memory, SIZE, RIGHTS);
    return !null_mr || !host;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(ibv_dealloc_pd(looped.pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(null_mr), 0);
    assert_int_equal(ibv_dereg_mr(host), 0);
    looped_close(&looped);
    return 0;
}

static struct ibv_sge null_sge(uint64_t addr)
{
    return (struct ibv_sge){.addr = addr, .length = SIZE, .lkey = null_mr->lkey};
}

static void expect_done(int completions)
{
    while (completions--)
        assert_int_equal(looped_completion(&looped).status, IBV_WC_SUCCESS);
}

/* Also after much has been placed in it. */
static void expect_zeroes(uint64_t addr)
{
    memset(memory, 'x', SIZE);
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, null_sge(addr), (uintptr_t)memory, host->rkey);
    expect_done(1);
    assert_memory_equal(memory, zeroes, SIZE);
}

static void test_source_and_sink(void **state)
{
    static const uint64_t addr[] = {0, 1, 0x123456789abc, UINT64_MAX - SIZE};
    struct ibv_sge own = {.addr = (uintptr_t)memory, .length = SIZE, .lkey = host->lkey};

    (void)state;
    for (unsigned i = 0; i < sizeof(addr) / sizeof(addr[0]); i++) {
        expect_zeroes(addr[i]);
        memset(memory, 'r', SIZE);
        looped_post(looped.qp[0], IBV_WR_RDMA_READ, null_sge(addr[i]), (uintptr_t)memory, host->rkey);
        expect_done(1);
        looped_receive(looped.qp[1], 1, addr[i], SIZE, null_mr->lkey);
        looped_post(looped.qp[0], IBV_WR_SEND, own, 0, 0);
        expect_done(2);
        expect_zeroes(addr[i]);
    }
}

static void test_not_the_peers(void **state)
{
    struct ibv_sge own = {.addr = (uintptr_t)memory, .length = 8, .lkey = host->lkey};

    (void)state;
    assert_true(null_mr->length == SIZE_MAX);
    assert_int_equal(null_mr->rkey, 0);
    assert_int_equal(ibv_rereg_mr(null_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS), IBV_REREG_MR_ERR_INPUT);
    /* Nothing is advised where nothing is registered on demand. */
    assert_int_equal(ibv_advise_mr(looped.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &own, 1), ENOENT);
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, own, 0, null_mr->lkey);
    assert_int_equal(looped_completion(&looped).status, IBV_WC_REM_ACCESS_ERR);
}

/* The core file of a program that crashes does not have 4 GiB of it: "dd" of proc(5). */
static void test_no_core(void **state)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    bool is_sink = false;
    char line[512];
    int left_out = 0;

    (void)state;
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        if (strstr(line, "memfd:rddp-null"))
            is_sink = true;
        if (strncmp(line, "VmFlags:", 8))
            continue;
        assert_true(!is_sink || strstr(line, " dd"));
        left_out += is_sink;
        is_sink = false;
    }
    fclose(maps);
    assert_true(left_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_source_and_sink, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_not_the_peers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_core, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
