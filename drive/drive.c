/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* drive.c - rddp_progress(): the application does the work of a context itself. */
#include <poll.h>

#include "endpoint/objects.h"
#include "drive/doorbell_batch.h"
#include "drive/inherit.h"

/* Waits until one of the loops has something to do, a signal arrives, or the time is over. Holds no lock. */
static void sleep_for(struct rddp_context *context, int timeout_ms)
{
    struct pollfd fd[LOOPS_MAX];

    if (context->loops == 1) {
        loop_sleep(&context->progress->loop, timeout_ms);
        return;
    }
    for (uint32_t i = 0; i < context->loops; i++)
        fd[i] = (struct pollfd){.fd = context->progress[i].loop.epoll_fd, .events = POLLIN};
    poll(fd, context->loops, timeout_ms);
}

int rddp_progress(struct rddp_context *context, int timeout_ms)
{
    int error = context_use(context);

    if (error)
        return error;
    if (timeout_ms)
        sleep_for(context, timeout_ms);
    for (uint32_t i = 0; i < context->loops; i++) {
        bells_ring(&context->progress[i]);
        progress_take(&context->progress[i]);
        progress_work(&context->progress[i]);
        progress_give(&context->progress[i]);
    }
    return 0;
}

int rddp_progress_fd(const struct rddp_context *context)
{
    int error = context_use((struct rddp_context *)(uintptr_t)context);

    return error ? error : context->progress->loop.epoll_fd;
}
