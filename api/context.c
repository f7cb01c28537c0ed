/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* context.c - contexts: the loops and the table of keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "drive/fork.h"
#include "drive/inherit.h"
#include "drive/loops.h"

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
    *attr = (struct rddp_context_attr){.log_level = level_from_environment(), .loops = 1};
}

/* 0 means one loop per processor. With manual_progress there is one loop. */
static int count_loops(struct rddp_context *context, const struct rddp_context_attr *attr)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (attr->loops > LOOPS_MAX || (attr->manual_progress && attr->loops > 1))
        return -EINVAL;
    context->loops = attr->loops;
    if (!attr->loops)
        context->loops = processors < 1 || attr->manual_progress ? 1
                         : processors > LOOPS_MAX                ? LOOPS_MAX
                                                                 : (uint32_t)processors;
    return 0;
}

static int init_memory(struct rddp_context *context)
{
    void *buffer = calloc(1, mr_slots_size(MR_SLOTS));

    if (!buffer)
        return -ENOMEM;
    mr_table_init(&context->mrs, buffer, MR_SLOTS);
    return 0;
}

/* The first queue pair number is random. 0 and 1 have a special meaning in verbs and stay allocated. The bitmap is
 * large, but its pages are used only as numbers are allocated. */
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

static void context_fini(struct rddp_context *context)
{
    loops_fini(context);
    free(context->mrs.slots);
    free(context->qp_numbers.taken);
    pthread_mutex_destroy(&context->members.lock);
    pthread_mutex_destroy(&context->mrs_lock);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

static int context_init(struct rddp_context *context, const struct rddp_context_attr *attr)
{
    int error = count_loops(context, attr);

    context->log_level = attr->log_level;
    context->log = attr->log;
    context->log_user = attr->log_user;
    context->manual = attr->manual_progress;
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->mrs_lock, NULL);
    pthread_mutex_init(&context->members.lock, NULL);
    if (!error)
        error = init_memory(context);
    if (!error)
        error = init_numbers(context);
    if (!error)
        error = loops_init(context);
    if (!error && !context->manual)
        error = loops_start(context);
    return error;
}

struct rddp_context *rddp_open(const struct rddp_context_attr *attr)
{
    struct rddp_context_attr defaults;
    struct rddp_context *context = calloc(1, sizeof(*context));
    int error;

    if (!context)
        return NULL;
    rddp_context_attr_init(&defaults);
    error = context_init(context, attr ? attr : &defaults);
    if (error) {
        context_fini(context);
        errno = -error;
        return NULL;
    }
    fork_add(context);
    return context;
}

static bool has_endpoints(struct progress *progress)
{
    bool has;

    progress_take(progress);
    has = progress->endpoints;
    progress_give(progress);
    return has;
}

/* Ends, because every closing connection has a time limit. The caller is the only user of the context. */
int rddp_close(struct rddp_context *context)
{
    int error = context_enter(context);

    if (error)
        return error;
    if (context->objects)
        return -EBUSY;
    fork_remove(context);
    for (uint32_t i = 0; i < context->loops; i++)
        while (has_endpoints(&context->progress[i]))
            rddp_progress(context, 10);
    if (!context->manual && context->home == CONTEXT_OURS)
        loops_stop(context);
    context_fini(context);
    return 0;
}
