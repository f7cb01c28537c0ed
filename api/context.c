/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* context.c - contexts: the loops and the table of keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "drive/closed.h"
#include "drive/fork.h"
#include "drive/inherit.h"
#include "drive/loops.h"
#include "api/on_demand.h"

enum { DRAIN_TURN_MS = 10, SPIN_MAX_US = 1000000 };

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

/* 0 means one loop per processor. With manual_progress there is one loop. context->loops counts those that were made,
 * so that context_fini() can follow any failure. */
static int count_loops(const struct rddp_context_attr *attr, uint32_t *loops)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (attr->loops > LOOPS_MAX || (attr->manual_progress && attr->loops > 1))
        return -EINVAL;
    *loops = attr->loops;
    if (!attr->loops)
        *loops = processors < 1 || attr->manual_progress ? 1
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
    context->mrs.copier = &on_demand_copier;
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
    uint32_t loops = 0;
    int error = attr->spin_us > SPIN_MAX_US ? -EINVAL : count_loops(attr, &loops);

    context->log_level = attr->log_level;
    context->log = attr->log;
    context->log_user = attr->log_user;
    context->manual = attr->manual_progress;
    context->spin_us = attr->spin_us;
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->mrs_lock, NULL);
    pthread_mutex_init(&context->members.lock, NULL);
    if (!error)
        error = init_memory(context);
    if (!error)
        error = init_numbers(context);
    if (!error)
        error = loops_init(context, loops);
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
    error = context_take_descriptors();
    if (error) {
        free(context);
        errno = -error;
        return NULL;
    }
    rddp_context_attr_init(&defaults);
    error = context_init(context, attr ? attr : &defaults);
    if (error) {
        context_fini(context);
        context_give_descriptors();
        errno = -error;
        return NULL;
    }
    fork_add(context);
    return context;
}

/* --- the end ----------------------------------------------------------------------------------------------------- */

static bool loop_owes(struct loop *loop)
{
    bool owes = false;

    loop_lock(loop);
    for (struct endpoint *endpoint = loop->endpoints; endpoint && !owes; endpoint = endpoint->next) {
        endpoint_hold(endpoint);
        owes = endpoint->kind->owes(endpoint);
        endpoint_release(endpoint, ENDPOINT_POSTER); /* closes nothing, so that the list stays */
    }
    loop_unlock(loop);
    return owes;
}

static bool context_owes(struct rddp_context *context)
{
    bool owes = false;

    for (uint32_t i = 0; i < context->loops && !owes; i++)
        owes = loop_owes(&context->loop[i]);
    return owes;
}

/* Each turn ends early when something happens. */
int rddp_drain(struct rddp_context *context, int timeout_ms)
{
    uint64_t until_us = timeout_ms < 0 ? UINT64_MAX : reactor_now_us() + (uint64_t)timeout_ms * 1000;
    int error = context_enter(context);

    while (!error && context_owes(context)) {
        if (reactor_now_us() >= until_us)
            error = -ETIMEDOUT;
        else
            rddp_progress(context, DRAIN_TURN_MS);
    }
    return error;
}

static bool has_endpoints(struct loop *loop)
{
    bool has;

    loop_lock(loop);
    has = loop->endpoints;
    loop_unlock(loop);
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
        while (has_endpoints(&context->loop[i]))
            rddp_progress(context, DRAIN_TURN_MS);
    if (!context->manual && (context->home == CONTEXT_OURS || context->stopping))
        loops_stop(context);
    context_fini(context);
    context_give_descriptors();
    return 0;
}
