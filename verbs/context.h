/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* context.h - an open device as the files of its objects see it. */
#ifndef VERBS_CONTEXT_H
#define VERBS_CONTEXT_H

#include <infiniband/verbs.h>
#include <rddp/rddp.h>

/* Providers of other devices look behind a context as they look behind a device. */
struct open_device {
    struct verbs_context verbs; /* ends with what the application sees */
    void *behind[64];
    struct rddp_async_channel *async; /* where the asynchronous events of what is made in the context go */
};

static inline struct open_device *open_device_of(struct ibv_context *context)
{
    return (struct open_device *)verbs_get_ctx(context);
}

#endif
