/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wr.c - the numbers of <rddp/wr.h> equal those of <infiniband/verbs.h>. */
#include <string.h>

#include <rddp/wr.h>

#include "base/container.h"
#include "tests/lib/engine.h"

/* Each name that both headers have, and its number in verbs, which the ABI of rdma-core fixes. */
/* clang-format off */
#define NUMBERS(is) \
    is(WR_RDMA_WRITE, 0) is(WR_RDMA_WRITE_WITH_IMM, 1) is(WR_SEND, 2) is(WR_SEND_WITH_IMM, 3) is(WR_RDMA_READ, 4) \
    is(WR_ATOMIC_CMP_AND_SWP, 5) is(WR_ATOMIC_FETCH_AND_ADD, 6) \
    is(WR_LOCAL_INV, 7) is(WR_SEND_WITH_INV, 9) \
    is(SEND_FENCE, 1) is(SEND_SIGNALED, 2) is(SEND_SOLICITED, 4) is(SEND_INLINE, 8) \
    is(ACCESS_LOCAL_WRITE, 1) is(ACCESS_REMOTE_WRITE, 2) is(ACCESS_REMOTE_READ, 4) is(ACCESS_REMOTE_ATOMIC, 8) \
    is(ACCESS_ZERO_BASED, 32) \
    is(WC_SUCCESS, 0) is(WC_LOC_LEN_ERR, 1) is(WC_LOC_QP_OP_ERR, 2) is(WC_LOC_PROT_ERR, 4) is(WC_WR_FLUSH_ERR, 5) \
    is(WC_REM_INV_REQ_ERR, 9) is(WC_REM_ACCESS_ERR, 10) is(WC_REM_OP_ERR, 11) is(WC_FATAL_ERR, 19) \
    is(WC_GENERAL_ERR, 21) \
    is(WC_SEND, 0) is(WC_RDMA_WRITE, 1) is(WC_RDMA_READ, 2) is(WC_COMP_SWAP, 3) is(WC_FETCH_ADD, 4) \
    is(WC_LOCAL_INV, 6) is(WC_RECV, 128) \
    is(WC_RECV_RDMA_WITH_IMM, 129) \
    is(WC_WITH_IMM, 2) is(WC_WITH_INV, 8)
/* clang-format on */

#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#define SAME(name, number) _Static_assert((int)RDDP_##name == (int)IBV_##name, #name " is verbs' own number");
NUMBERS(SAME)
#endif

static void test_numbers(void **state)
{
    static const struct {
        const char *name;
        int ours, verbs;
    } numbers[] = {
#define ROW(name, number) {#name, RDDP_##name, number},
        NUMBERS(ROW)};

    (void)state;
    for (size_t i = 0; i < countof(numbers); i++)
        if (numbers[i].ours != numbers[i].verbs)
            fail_msg("RDDP_%s is %d, and %d in verbs", numbers[i].name, numbers[i].ours, numbers[i].verbs);
}

/* Flags and opcodes that verbs lacks use no number that verbs uses or reserves. */
static void test_own(void **state)
{
    const unsigned verbs_flags = 0x1f, verbs_access = 0x3ff | 0x3ff00000;

    (void)state;
    assert_int_equal((RDDP_SEND_ORDER | RDDP_SEND_MASKED) & verbs_flags, 0);
    assert_int_equal((RDDP_ACCESS_STABLE | RDDP_ACCESS_VOLATILE) & verbs_access, 0);
    assert_true(RDDP_WC_RECV_RDMA_READ & RDDP_WC_RECV);
    assert_true(RDDP_WC_RECV_RDMA_READ > 136); /* IBV_WC_DRIVER3 is the last opcode of verbs */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_own)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
