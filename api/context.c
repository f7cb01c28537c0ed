/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* context.c - what everything else lives in: the loop, the thread, the buffers, the table of keys. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "api/api.h"

static enum rddp_log_level level_from_environment(void)
{
    static const char *const name[] = {"none", "error", "warn", "info", "debug"};
    const char *value = getenv("RDDP_LOG");

    for (unsigned i = 0; value && i < sizeof(name) / sizeof(*name); i++)
        if (!strcasecmp(value, name[i]))
            return (enum rddp_log_level)i;
    return RDDP_LOG_WARN;
}

void rddp_context_attr_init(struct rddp_context_attr *attr)
{
    *attr = (struct rddp_context_attr){.log_level = level_from_environment()};
}

static int init_sync(struct rddp_context *context)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&context->lock, NULL);
    pthread_cond_init(&context->unpark, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return loop_init(&context->loop);
}

static int init_memory(struct rddp_context *context)
{
    struct mr_slot *slot = calloc(MR_SLOTS, sizeof(*slot));

    static_assert(sizeof(struct out) <= OUT_ROOM_AT, "the room would lie in the struct");
    static_assert((int)OUT_SPANS == (int)TCP_SPANS, "what is gathered leaves in one call");
    context->outs.size = OUT_ROOM_AT + OUT_ROOM;
    context->carries.size = STAGE_OCTETS + WIRE_UNIT_MAX; /* as much as the stage can have of one connection */
    context->stage.room = aligned_alloc(PAGE, (STAGE_OCTETS + WIRE_UNIT_MAX + PAGE - 1) / PAGE * PAGE);
    if (!slot || !context->stage.room) {
        free(slot);
        return -ENOMEM;
    }
    mr_table_init(&context->mrs, slot, MR_SLOTS);
    return 0;
}

/* Where queue pair numbers start is nobody's business. 0 and 1 mean something else to verbs, and stay taken. The room
 * is large, but a page of it is there only once its numbers have been given out. */
static int init_numbers(struct rddp_context *context)
{
    uint64_t *taken = calloc(QP_NUMBERS / 64, sizeof(*taken));
    uint32_t first;

    if (!taken)
        return -ENOMEM;
    taken[0] = 3;
    ids_init(&context->qp_numbers, taken, QP_NUMBERS, 0);
    if (getrandom(&first, sizeof(first), 0) != sizeof(first))
        return -EAGAIN;
    context->qp_numbers.next = first % QP_NUMBERS;
    return 0;
}

static void fini(struct rddp_context *context)
{
    loop_fini(&context->loop);
    pool_fini(&context->outs);
    pool_fini(&context->carries);
    free(context->mrs.slot);
    free(context->qp_numbers.taken);
    free(context->stage.room);
    pthread_cond_destroy(&context->unpark);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

struct rddp_context *rddp_open(const struct rddp_context_attr *attr)
{
    struct rddp_context_attr defaults;
    struct rddp_context *context = calloc(1, sizeof(*context));
    int error;

    if (!context)
        return NULL;
    rddp_context_attr_init(&defaults);
    if (!attr)
        attr = &defaults;
    context->log_level = attr->log_level;
    context->log = attr->log;
    context->log_user = attr->log_user;
    context->manual = attr->manual_progress;
    error = init_sync(context);
    if (!error)
        error = init_memory(context);
    if (!error)
        error = init_numbers(context);
    if (!error && !context->manual)
        error = progress_start(context);
    if (error) {
        fini(context);
        errno = -error;
        return NULL;
    }
    return context;
}

/* Connections that are closing have their own time limit, so this ends. */
static void wait_for_endpoints(struct rddp_context *context)
{
    lock(context);
    while (context->endpoints) {
        unlock(context);
        rddp_progress(context, 10);
        lock(context);
    }
    unlock(context);
}

int rddp_close(struct rddp_context *context)
{
    bool busy;

    lock(context);
    busy = context->objects;
    unlock(context);
    if (busy)
        return -EBUSY;
    wait_for_endpoints(context);
    if (!context->manual)
        progress_stop(context);
    fini(context);
    return 0;
}
