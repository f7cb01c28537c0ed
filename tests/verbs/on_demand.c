/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* on_demand.c - memory registered on demand: what the device says of it, what may be asked for, what is advised, and
 * what becomes of a request whose memory has gone. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/verbs/lib/looped.h"

#define FAR UINT64_C(0x220000000000)

enum {
    SIZE = 1 << 16,
    RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    PREFETCH = IBV_ADVISE_MR_ADVICE_PREFETCH,
    PREFETCH_WRITE = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
    NO_FAULT = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
    FLUSH = IBV_ADVISE_MR_FLAG_FLUSH,
};

static struct looped looped;
static struct ibv_mr *mr, *host;
static char *memory, plain[SIZE];

static void map(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

    memory = mmap((void *)FAR, SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_ptr_equal(memory, (void *)FAR);
}

static int set_up(void **state)
{
    (void)state;
    looped_open(&looped, 0);
    mr = ibv_reg_mr(looped.pd, (void *)FAR, SIZE, RIGHTS | IBV_ACCESS_ON_DEMAND); /* nothing is there yet */
    host = ibv_reg_mr(looped.pd, plain, SIZE, RIGHTS);
    map();
    return !mr || !host;
}

static int tear_down(void **state)
{
    (void)state;
    munmap(memory, SIZE);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dereg_mr(host), 0);
    looped_close(&looped);
    return 0;
}

static struct ibv_sge there(uint64_t at, uint32_t length)
{
    return (struct ibv_sge){.addr = FAR + at, .length = length, .lkey = mr->lkey};
}

static struct ibv_sge own(void)
{
    return (struct ibv_sge){.addr = (uintptr_t)plain, .length = SIZE, .lkey = host->lkey};
}

static enum ibv_wc_status ends(void)
{
    return looped_completion(&looped).status;
}

/* --- what the device says ----------------------------------------------------------------------------------------- */

static void test_attributes(void **state)
{
    const uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
                        IBV_ODP_SUPPORT_SRQ_RECV;
    struct ibv_device_attr_ex attr;

    (void)state;
    assert_int_equal(ibv_query_device_ex(looped.context, NULL, &attr), 0);
    assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
    assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, rc);
    assert_int_equal(attr.odp_caps.per_transport_caps.uc_odp_caps & IBV_ODP_SUPPORT_READ, 0);
    assert_int_equal(attr.odp_caps.per_transport_caps.ud_odp_caps & IBV_ODP_SUPPORT_WRITE, 0);
    assert_int_equal(attr.xrc_odp_caps, 0);
}

static void test_refused(void **state)
{
    (void)state;
    assert_null(ibv_reg_mr(looped.pd, memory, SIZE, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_reg_mr(looped.pd, memory, SIZE_MAX, IBV_ACCESS_ON_DEMAND));
    assert_int_equal(errno, EINVAL);
}

/* --- advice ------------------------------------------------------------------------------------------------------- */

static int advise(int advice, uint32_t flags, struct ibv_sge sge, uint32_t entries)
{
    return ibv_advise_mr(looped.pd, (enum ibv_advise_mr_advice)advice, flags, &sge, entries);
}

static bool is_present(void)
{
    unsigned char here;

    assert_int_equal(mincore(memory, 1, &here), 0);
    return here & 1;
}

static void test_advice(void **state)
{
    (void)state;
    assert_false(is_present());
    assert_int_equal(advise(NO_FAULT, FLUSH, there(0, SIZE), 1), 0);
    assert_false(is_present());
    assert_int_equal(advise(PREFETCH_WRITE, 0, there(0, SIZE), 1), 0);
    assert_true(is_present());
    assert_int_equal(advise(PREFETCH, FLUSH, there(1, SIZE - 1), 1), 0);
    assert_int_equal(munmap(memory + SIZE / 2, SIZE / 2), 0);
    assert_int_equal(advise(PREFETCH, 0, there(0, SIZE), 1), 0); /* best effort */
    assert_int_equal(advise(PREFETCH, FLUSH, there(0, SIZE), 1), EFAULT);
    assert_int_equal(advise(PREFETCH_WRITE, FLUSH, there(0, SIZE / 2), 1), 0);
    assert_int_equal(mprotect(memory, SIZE / 2, PROT_READ), 0);
    assert_int_equal(advise(PREFETCH_WRITE, FLUSH, there(0, SIZE / 2), 1), EFAULT);
}

static void test_wrong_advice(void **state)
{
    struct ibv_pd *other = ibv_alloc_pd(looped.context);
    struct ibv_mr *read = ibv_reg_mr(looped.pd, memory, SIZE, IBV_ACCESS_ON_DEMAND);
    struct ibv_sge all = there(0, SIZE);

    (void)state;
    assert_int_equal(advise(PREFETCH, FLUSH, there(1, SIZE), 1), EFAULT);
    assert_int_equal(advise(PREFETCH, 2, all, 1), EINVAL);
    assert_int_equal(advise(PREFETCH, 0, all, 0), EINVAL);
    assert_int_equal(advise(3, 0, all, 1), EOPNOTSUPP);
    assert_int_equal(advise(PREFETCH, 0, own(), 1), ENOENT); /* it is not on demand */
    assert_int_equal(ibv_advise_mr(other, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &all, 1), EPERM);
    all.lkey = read->lkey;
    assert_int_equal(advise(PREFETCH, FLUSH, all, 1), 0);
    assert_int_equal(advise(PREFETCH_WRITE, FLUSH, all, 1), EPERM);
    assert_int_equal(ibv_dereg_mr(read), 0);
    assert_int_equal(advise(PREFETCH, FLUSH, all, 1), ENOENT);
    assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void test_there(void **state)
{
    (void)state;
    memset(plain, 'w', SIZE);
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, own(), FAR, mr->rkey);
    assert_int_equal(ends(), IBV_WC_SUCCESS);
    assert_memory_equal(memory, plain, SIZE);
    memset(memory, 'r', SIZE);
    looped_post(looped.qp[0], IBV_WR_RDMA_READ, own(), FAR, mr->rkey);
    assert_int_equal(ends(), IBV_WC_SUCCESS);
    assert_memory_equal(memory, plain, SIZE);
    memset(memory, 0, SIZE);
    looped_receive(looped.qp[1], 1, FAR, SIZE, mr->lkey);
    looped_post(looped.qp[0], IBV_WR_SEND, own(), 0, 0);
    assert_int_equal(ends(), IBV_WC_SUCCESS);
    assert_int_equal(ends(), IBV_WC_SUCCESS);
    assert_memory_equal(memory, plain, SIZE);
}

static void lose(void)
{
    assert_int_equal(munmap(memory + SIZE / 2, SIZE / 2), 0);
}

static void test_source(void **state)
{
    (void)state;
    lose();
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, there(0, SIZE), (uintptr_t)plain, host->rkey);
    assert_int_equal(ends(), IBV_WC_LOC_PROT_ERR);
}

static void test_sink_of_peer(void **state)
{
    (void)state;
    lose();
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, own(), FAR, mr->rkey);
    assert_int_equal(ends(), IBV_WC_REM_ACCESS_ERR);
}

static void test_source_of_peer(void **state)
{
    (void)state;
    lose();
    looped_post(looped.qp[0], IBV_WR_RDMA_READ, own(), FAR, mr->rkey);
    assert_int_equal(ends(), IBV_WC_REM_ACCESS_ERR);
}

static void test_receive(void **state)
{
    enum ibv_wc_status first, second;

    (void)state;
    lose();
    looped_receive(looped.qp[1], 1, FAR, SIZE, mr->lkey);
    looped_post(looped.qp[0], IBV_WR_SEND, own(), 0, 0);
    first = ends();
    second = ends();
    assert_true((first == IBV_WC_LOC_PROT_ERR && second == IBV_WC_REM_OP_ERR) ||
                (second == IBV_WC_LOC_PROT_ERR && first == IBV_WC_REM_OP_ERR));
}

/* A window is for memory that is there, too, and then for what is not. */
static void test_window(void **state)
{
    struct ibv_mr *region = ibv_reg_mr(looped.pd, memory, SIZE, RIGHTS | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND);
    struct ibv_mw *mw = ibv_alloc_mw(looped.pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {.mr = region, .addr = FAR, .length = SIZE, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};

    (void)state;
    assert_int_equal(ibv_bind_mw(looped.qp[1], mw, &bind), 0);
    assert_int_equal(ends(), IBV_WC_SUCCESS);
    memset(plain, 'm', SIZE);
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, own(), FAR, mw->rkey);
    assert_int_equal(ends(), IBV_WC_SUCCESS);
    assert_memory_equal(memory, plain, SIZE);
    lose();
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, own(), FAR, mw->rkey);
    assert_int_equal(ends(), IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_dereg_mr(region), 0);
}

/* Programs ask for all rights, as of adapters; but the kernel copies, and has no atomics for that. */
static void refuses_atomics(uint32_t key)
{
    uint64_t was;
    struct ibv_sge sge = own();
    struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.atomic = {.remote_addr = FAR, .compare_add = 1, .rkey = key}};
    struct ibv_send_wr *bad;

    memset(memory, 'a', SIZE);
    sge.length = sizeof(was);
    assert_int_equal(ibv_post_send(looped.qp[0], &wr, &bad), 0);
    assert_int_equal(ends(), IBV_WC_REM_ACCESS_ERR);
    memset(&was, 'a', sizeof(was));
    assert_memory_equal(memory, &was, sizeof(was));
}

static void test_atomics(void **state)
{
    struct ibv_mr *region =
        ibv_reg_mr(looped.pd, memory, SIZE, RIGHTS | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ON_DEMAND);

    (void)state;
    assert_non_null(region);
    refuses_atomics(region->rkey);
    assert_int_equal(ibv_dereg_mr(region), 0);
}

static void test_window_for_atomics(void **state)
{
    struct ibv_mr *region = ibv_reg_mr(looped.pd, memory, SIZE, RIGHTS | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND);
    struct ibv_mw *mw = ibv_alloc_mw(looped.pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {.mr = region, .addr = FAR, .length = SIZE, .mw_access_flags = IBV_ACCESS_REMOTE_ATOMIC}};

    (void)state;
    assert_int_equal(ibv_bind_mw(looped.qp[1], mw, &bind), 0);
    assert_int_equal(ends(), IBV_WC_SUCCESS);
    refuses_atomics(mw->rkey);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_dereg_mr(region), 0);
}

/* Local requests find any memory of the process by one key. */
static void test_implicit(void **state)
{
    struct ibv_mr *all = ibv_reg_mr(looped.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    struct ibv_sge sge = {.addr = FAR, .length = SIZE, .lkey = all ? all->lkey : 0};

    (void)state;
    assert_non_null(all);
    memset(memory, 'i', SIZE);
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, sge, (uintptr_t)plain, host->rkey);
    assert_int_equal(ends(), IBV_WC_SUCCESS);
    assert_memory_equal(memory, plain, SIZE);
    assert_int_equal(advise(PREFETCH, FLUSH, sge, 1), 0);
    looped_post(looped.qp[0], IBV_WR_RDMA_WRITE, own(), FAR, all->rkey); /* it has no remote right */
    assert_int_equal(ends(), IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dereg_mr(all), 0);
}

/* --- where it is forbidden ---------------------------------------------------------------------------------------- */

/* As in a container. It stays forbidden to the process: this is the last test. */
static void forbid(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        skip(); /* the kernel has no filters */
}

static void test_forbidden(void **state)
{
    const struct ibv_odp_caps none = {0};
    struct ibv_device_attr_ex attr;

    (void)state;
    forbid();
    assert_null(ibv_reg_mr(looped.pd, memory, SIZE, RIGHTS | IBV_ACCESS_ON_DEMAND));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_query_device_ex(looped.context, NULL, &attr), 0);
    assert_memory_equal(&attr.odp_caps, &none, sizeof(none));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_attributes), TEST(test_refused),   TEST(test_advice),       TEST(test_wrong_advice),
        TEST(test_there),      TEST(test_source),    TEST(test_sink_of_peer), TEST(test_source_of_peer),
        TEST(test_receive),    TEST(test_window),    TEST(test_atomics),      TEST(test_window_for_atomics),
        TEST(test_implicit),   TEST(test_forbidden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
