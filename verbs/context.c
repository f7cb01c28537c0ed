/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* context.c - an open device: a view of the process's one rddp context, and the calls that verbs.h makes through it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/context.h"
#include "verbs/device.h"
#include "verbs/verbs_object.h"

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    return device_query(context->device, attr);
}

/* What verbs.on_demand, suite.roce_sqe and the matrix of programs do. Atomics of peers are refused. */
static void describe_odp(struct ibv_device *device, struct ibv_odp_caps *caps)
{
    const uint32_t messages = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;

    caps->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    caps->per_transport_caps.rc_odp_caps =
        messages | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
    if (!device_is_ib(device))
        return;
    caps->per_transport_caps.uc_odp_caps = messages | IBV_ODP_SUPPORT_WRITE;
    caps->per_transport_caps.ud_odp_caps = messages | IBV_ODP_SUPPORT_SRQ_RECV;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    struct ibv_device_attr_ex all = {
        .completion_timestamp_mask = UINT64_MAX,
        .hca_core_clock = 1000000, /* kHz: of clock.c, which counts nanoseconds */
        .max_dm_size = VERBS_DM_OCTETS,
        .phys_port_cnt_ex = 1,
    };

    if (mr_is_odp_known())
        describe_odp(context->device, &all.odp_caps);
    if ((input && input->comp_mask) || size < sizeof(all.orig_attr))
        return verbs_refuse(EINVAL, "ibv_query_device_ex: comp_mask is not 0, or the struct is too short");
    device_query(context->device, &all.orig_attr);
    memset(attr, 0, size);
    memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
    return 0;
}

/* verbs.h answers EOPNOTSUPP for what is not set here, except in `ops`, which it calls unchecked. */
static void set_calls(struct verbs_context *verbs)
{
    verbs->sz = sizeof(*verbs);
    verbs->query_port = port_query;
    verbs->query_device_ex = query_device_ex;
    verbs->query_rt_values = clock_query;
    verbs->alloc_null_mr = mr_alloc_null;
    verbs->advise_mr = mr_advise;
    verbs->alloc_dm = dm_alloc;
    verbs->free_dm = dm_free;
    verbs->reg_dm_mr = dm_reg_mr;
    verbs->create_cq_ex = cq_create_ex;
    verbs->create_qp_ex = qp_create_ex;
    verbs->create_srq_ex = srq_create_ex;
    verbs->alloc_td = td_alloc;
    verbs->dealloc_td = td_dealloc;
    verbs->alloc_parent_domain = pd_alloc_parent;
    verbs->context.ops.poll_cq = verbs_cq_poll;
    verbs->context.ops.req_notify_cq = verbs_cq_arm;
    verbs->context.ops.post_send = post_send;
    verbs->context.ops.post_recv = post_recv;
    verbs->context.ops.post_srq_recv = post_srq_recv;
    verbs->context.ops.alloc_mw = mw_alloc;
    verbs->context.ops.dealloc_mw = mw_dealloc;
    verbs->context.ops.bind_mw = mw_post;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct open_device *open;
    if (!device_is_ours(device)) {
        verbs_refuse(ENODEV, "ibv_open_device: the device is not of a list of ibv_get_device_list()");
        return NULL;
    }
    if (!verbs_process() || !(open = calloc(1, sizeof(*open))))
        return NULL;
    open->async = rddp_create_async_channel(verbs_process());
    if (!open->async) {
        free(open);
        return NULL;
    }
    set_calls(&open->verbs);
    open->verbs.context.device = device;
    open->verbs.context.async_fd = rddp_async_channel_fd(open->async);
    open->verbs.context.cmd_fd = open->verbs.context.async_fd; /* there are no commands, but programs dup() it */
    open->verbs.context.num_comp_vectors = 1;
    open->verbs.context.abi_compat = (void *)UINTPTR_MAX; /* "there is an upper half" */
    pthread_mutex_init(&open->verbs.context.mutex, NULL);
    return &open->verbs.context;
}

/* Programs leave objects behind, and adapters close all the same. Such an object, and what it refers to, stays until
 * the program ends. */
int ibv_close_device(struct ibv_context *context)
{
    struct open_device *open = open_device_of(context);

    if (rddp_destroy_async_channel(open->async))
        return 0;
    pthread_mutex_destroy(&context->mutex);
    free(open);
    return 0;
}

struct ibv_context *verbs_shared_context(struct ibv_device *device)
{
    static _Atomic(struct ibv_context *) both[2];
    _Atomic(struct ibv_context *) *shared = &both[device_is_ib(device)];
    struct ibv_context *context = atomic_load(shared), *other = NULL;

    if (context)
        return context;
    context = ibv_open_device(device);
    if (!context || atomic_compare_exchange_strong(shared, &other, context))
        return context;
    ibv_close_device(context); /* another thread was faster */
    return other;
}

/* Nothing is pinned, and rddp's objects live on in a child: there is nothing to prepare. */
int ibv_fork_init(void)
{
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

int ibv_dofork_range(void *base, size_t size);
int ibv_dontfork_range(void *base, size_t size);

int ibv_dofork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}

int ibv_dontfork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}
