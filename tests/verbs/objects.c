/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* objects.c - objects of verbs that change while they are in use, the event of an SRQ, and parent domains. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { DEPTH = 8, SIZE = 4096 };

static struct ibv_context *open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);

    assert_non_null(context);
    ibv_free_device_list(list);
    return context;
}

static void test_changed_objects(void **state)
{
    enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, IOVA = 0x10000 };
    static struct ibv_context *context; /* it stays, since it is closed first: no leak */
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq_attr srq_attr = {.srq_limit = 2, .max_wr = 9};
    struct ibv_async_event event;
    static char memory[SIZE];
    struct ibv_srq *srq;
    struct ibv_cq *cq;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    uint32_t key;
    (void)state;

    context = open_device();
    cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
    pd = ibv_alloc_pd(context);
    srq = ibv_create_srq(pd, &init);
    assert_int_equal(ibv_resize_cq(cq, 2 * DEPTH), 0);
    assert_int_equal(cq->cqe, 2 * DEPTH);
    assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);

    mr = ibv_reg_mr(pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
    key = mr->rkey;
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS), 0);
    assert_int_equal(mr->rkey, key);
    assert_int_equal(ibv_rereg_mr(mr, 1 << 7, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 64, 0), 0);
    assert_int_not_equal(mr->rkey, key);
    assert_int_equal(mr->length, 64);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = ibv_reg_mr_iova(pd, memory, SIZE, IOVA, ACCESS);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);

    assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR), 0);
    assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT), 0);
    assert_int_equal(ibv_get_async_event(context, &event), 0); /* fewer are posted already */
    assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(event.element.srq, srq);
    ibv_ack_async_event(&event);
    assert_int_equal(ibv_query_srq(srq, &srq_attr), 0);
    assert_int_equal(srq_attr.max_wr, 9);
    assert_int_equal(srq_attr.srq_limit, 0);
    srq_attr.srq_limit = 10;
    assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(ibv_close_device(context), 0); /* and what is left of it can still go */
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* libibverbs refuses some changes before it asks a device; the region is as it was. */
static void refuses_changes(struct ibv_context *context)
{
    enum { RIGHTS = IBV_ACCESS_LOCAL_WRITE, MEMORY = IBV_REREG_MR_CHANGE_TRANSLATION, DOMAIN = IBV_REREG_MR_CHANGE_PD };
    static char memory[SIZE];
    const struct {
        int flags;
        void *addr;
        size_t length;
        int access;
    } rows[] = {
        {0, NULL, 0, 0},           {8, NULL, 0, 0},
        {MEMORY, memory, 0, 0},    {MEMORY, NULL, 0, 0},
        {MEMORY, NULL, SIZE, 0},   {MEMORY, memory, 64, RIGHTS},
        {DOMAIN, NULL, 0, RIGHTS}, {DOMAIN, NULL, 0, 1 << 23},
    };
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, SIZE, RIGHTS);
    uint32_t key = mr->rkey;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        errno = 0;
        if (ibv_rereg_mr(mr, rows[i].flags, pd, rows[i].addr, rows[i].length, rows[i].access) != IBV_REREG_MR_ERR_INPUT)
            fail_msg("row %zu was not refused", i);
        assert_int_equal(errno, EINVAL);
        assert_true(mr->rkey == key && mr->addr == memory && mr->length == SIZE);
    }
    assert_int_equal(ibv_rereg_mr(mr, MEMORY, NULL, memory, 1, 0), 0);
    assert_int_equal(mr->length, 1);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(context), 0);
}

static void test_changes_refused(void **state)
{
    int devices;
    struct ibv_device **list = ibv_get_device_list(&devices);

    (void)state;
    assert_true(devices > 0);
    for (int i = 0; i < devices; i++)
        refuses_changes(ibv_open_device(list[i]));
    ibv_free_device_list(list);
}

static void test_parent_domain(void **state)
{
    struct ibv_context *context = open_device();
    struct ibv_pd *pd = ibv_alloc_pd(context), *parent;
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_td *td = ibv_alloc_td(context, &td_attr);
    struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
    (void)state;

    assert_non_null(td);
    parent = ibv_alloc_parent_domain(context, &attr);
    assert_non_null(parent);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dealloc_td(td), EBUSY);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    ibv_close_device(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_objects),
        cmocka_unit_test(test_changes_refused),
        cmocka_unit_test(test_parent_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
