/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loops.c - the loops of a context, and their threads. */
#include "drive/loops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drive/doorbell_batch.h"
#include "drive/thread.h"
#include "drive/transports.h"

static int init_loop(struct rddp_context *context, struct loop *loop)
{
    int error = loop_init(loop, context);

    batch_init(loop);
    if (context->manual)
        reactor_attend(&loop->reactor, true); /* who polls sees to the timers, and who sleeps is counted */
    return error;
}

int loops_init(struct rddp_context *context, uint32_t loops)
{
    int error = 0;

    context->loop = aligned_alloc(CACHE_LINE, loops * sizeof(*context->loop));
    context->readers = aligned_alloc(CACHE_LINE, (loops + POSTERS) * sizeof(*context->readers));
    if (!context->loop || !context->readers)
        return -ENOMEM;
    memset(context->readers, 0, (loops + POSTERS) * sizeof(*context->readers));
    epochs_init(&context->mrs.epochs, context->readers, loops + POSTERS);
    while (context->loops < loops && !error)
        error = init_loop(context, &context->loop[context->loops++]);
    return error;
}

void loops_fini(struct rddp_context *context)
{
    for (uint32_t i = 0; i < context->loops; i++) {
        transports_close(&context->loop[i]);
        loop_fini(&context->loop[i]);
    }
    free(context->loop);
    free(context->readers);
}

static void stop_started(struct rddp_context *context, uint32_t started)
{
    atomic_store(&context->stopping, true);
    for (uint32_t i = 0; i < started; i++)
        loop_stop(&context->loop[i]);
}

int loops_start(struct rddp_context *context)
{
    uint32_t started = 0;
    int error = 0;

    while (started < context->loops && !error)
        if (!(error = loop_start(&context->loop[started])))
            started++;
    if (error)
        stop_started(context, started);
    return error;
}

void loops_stop(struct rddp_context *context)
{
    stop_started(context, context->loops);
}
