/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* channel.c - see channel.h. */
#include "api/channel.h"

#include <errno.h>
#include <stdlib.h>

#include "drive/await.h"
#include "drive/inherit.h"

void *channel_new(struct rddp_context *context, size_t size)
{
    int error = context_enter(context);

    if (!error)
        return calloc(1, size);
    errno = -error;
    return NULL;
}

void *channel_complete(void *channel, struct rddp_context *context, enum member_kind kind, struct member *member,
                       int error)
{
    if (error) {
        free(channel);
        errno = -error;
        return NULL;
    }
    context->objects++;
    member_add(&context->members, kind, member);
    return channel;
}

int channel_leave(struct rddp_context *context, struct member *member, uint32_t users)
{
    int error = context_enter(context);

    if (error)
        return error;
    if (users)
        return -EBUSY;
    member_remove(&context->members, member);
    context->objects--;
    return 0;
}

int channel_await(struct rddp_context *context, struct reports *reports, struct reporter **reporter, unsigned *kind)
{
    int error = context_enter(context);

    while (!error && !(*reporter = reports_take(reports, kind))) {
        error = context_use(context);
        if (!error)
            error = context_await(context, &reports->notifier);
    }
    return error;
}

int channel_fd(struct rddp_context *context, const struct notifier *notifier)
{
    int error = context_use(context);

    return error ? error : notifier->read_fd;
}
