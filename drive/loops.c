/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loops.c - the loops of a context, and their threads. */
#include "drive/loops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drive/doorbell_batch.h"

/* bells_init() runs even after an error, because fini_loop() expects it. */
static int init_loop(struct rddp_context *context, struct progress *progress)
{
    int error = progress_init(progress, context), bells = bells_init(progress);

    return error ? error : bells;
}

static void fini_loop(struct progress *progress)
{
    bells_fini(progress);
    progress_fini(progress);
}

int loops_init(struct rddp_context *context)
{
    uint32_t loops = context->loops;
    int error = 0;

    context->loops = 0;
    context->progress = aligned_alloc(CACHE_LINE, loops * sizeof(*context->progress));
    context->visits = aligned_alloc(CACHE_LINE, (loops + POSTERS) * sizeof(*context->visits));
    if (!context->progress || !context->visits)
        return -ENOMEM;
    memset(context->visits, 0, (loops + POSTERS) * sizeof(*context->visits));
    visits_init(&context->mrs.visits, context->visits, loops + POSTERS);
    while (context->loops < loops && !error)
        error = init_loop(context, &context->progress[context->loops++]);
    return error;
}

void loops_fini(struct rddp_context *context)
{
    for (uint32_t i = 0; i < context->loops; i++)
        fini_loop(&context->progress[i]);
    free(context->progress);
    free(context->visits);
}

static void api_loops_stop(struct rddp_context *context, uint32_t started)
{
    atomic_store(&context->stopping, true);
    for (uint32_t i = 0; i < started; i++)
        progress_stop(&context->progress[i]);
}

int loops_start(struct rddp_context *context)
{
    uint32_t started = 0;
    int error = 0;

    while (started < context->loops && !error)
        if (!(error = progress_start(&context->progress[started])))
            started++;
    if (error)
        api_loops_stop(context, started);
    return error;
}

void loops_stop(struct rddp_context *context)
{
    api_loops_stop(context, context->loops);
}
