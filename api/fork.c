/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.c - the contexts of this process, and the moment in which fork() copies them.
 *
 * Only the thread that forks exists in the child. So it holds, while it forks, whatever keeps connections, lists and
 * memory whole: the tokens, the bells and the mutexes. The spinlocks it cannot hold, and what they guard is begun anew
 * in the child: see inherit.c. The child itself does nothing here but to note that it is one. */
#include "api/fork.h"

#include <sched.h>

enum { PATIENCE_US = 1000000 }; /* no turn is as long: who holds something then is this thread, or stands still */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, and is held while the process forks */
static struct rddp_context *contexts;

/* --- what is held --------------------------------------------------------------------------------------------- */

static bool take_bell(struct endpoint *endpoint, uint64_t until_us)
{
    while (!endpoint_try(endpoint)) {
        if (loop_now_us() > until_us)
            return false;
        sched_yield();
    }
    return true;
}

/* Whoever has it gives it back soon when he sees that it is wanted. */
static bool take_token(struct progress *progress, uint64_t until_us)
{
    bool taken;

    atomic_fetch_add_explicit(&progress->wanted, 1, memory_order_relaxed);
    while (!(taken = progress_try(progress)) && loop_now_us() <= until_us)
        sched_yield();
    atomic_fetch_sub_explicit(&progress->wanted, 1, memory_order_relaxed);
    return taken;
}

static void give_bells(struct progress *progress, const struct endpoint *end)
{
    for (struct endpoint *endpoint = progress->endpoints, *next; endpoint != end; endpoint = next) {
        next = endpoint->next;
        endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    }
    progress_give(progress);
}

static bool take_bells(struct progress *progress, uint64_t until_us)
{
    if (!take_token(progress, until_us))
        return false;
    for (struct endpoint *endpoint = progress->endpoints; endpoint; endpoint = endpoint->next)
        if (!take_bell(endpoint, until_us)) {
            give_bells(progress, endpoint);
            return false;
        }
    return true;
}

/* Nobody who has one of these waits for anything else. */
static void each_leaf(struct rddp_context *context, int (*action)(pthread_mutex_t *))
{
    struct rddp_comp_channel *comp_channel;
    struct rddp_event_channel *event_channel;

    MEMBERS_EACH(&context->members, MEMBER_COMP_CHANNEL, struct rddp_comp_channel, comp_channel)
    action(&comp_channel->lock);
    MEMBERS_EACH(&context->members, MEMBER_EVENT_CHANNEL, struct rddp_event_channel, event_channel)
    action(&event_channel->lock);
    for (uint32_t i = 0; i < context->loops; i++)
        action(&context->progress[i].loop.timer_lock);
    action(&context->mrs_lock);
    action(&context->lock);
}

static bool fork_hold(struct rddp_context *context, uint64_t until_us)
{
    uint32_t held = 0;

    while (held < context->loops && take_bells(&context->progress[held], until_us))
        held++;
    if (held == context->loops) {
        pthread_mutex_lock(&context->members.lock);
        each_leaf(context, pthread_mutex_lock);
        return true;
    }
    while (held)
        give_bells(&context->progress[--held], NULL);
    return false;
}

/* --- fork() ----------------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    uint64_t until_us = loop_now_us() + PATIENCE_US;

    pthread_mutex_lock(&lock);
    for (struct rddp_context *context = contexts; context; context = context->next_open)
        context->is_held =
            context->home != CONTEXT_INHERITED && context->home != CONTEXT_TORN && fork_hold(context, until_us);
}

static void in_parent(void)
{
    for (struct rddp_context *context = contexts; context; context = context->next_open) {
        if (!context->is_held)
            continue;
        each_leaf(context, pthread_mutex_unlock);
        pthread_mutex_unlock(&context->members.lock);
        for (uint32_t i = 0; i < context->loops; i++)
            give_bells(&context->progress[i], NULL);
    }
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    for (struct rddp_context *context = contexts; context; context = context->next_open) {
        if (context->home == CONTEXT_INHERITED)
            continue;
        context->home = context->is_held ? CONTEXT_INHERITED : CONTEXT_TORN;
        if (!context->is_held)
            continue;
        each_leaf(context, pthread_mutex_unlock);
        pthread_mutex_unlock(&context->members.lock);
        for (uint32_t i = 0; i < context->loops; i++)
            progress_inherit(&context->progress[i]);
    }
    pthread_mutex_unlock(&lock);
}

/* Without memory for this a child has what it had without: it may exit, or start another program. */
static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

/* --- contexts --------------------------------------------------------------------------------------------------- */

void fork_add(struct rddp_context *context)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    context->next_open = contexts;
    context->before_open = &contexts;
    if (contexts)
        contexts->before_open = &context->next_open;
    contexts = context;
    pthread_mutex_unlock(&lock);
}

void fork_remove(struct rddp_context *context)
{
    pthread_mutex_lock(&lock);
    *context->before_open = context->next_open;
    if (context->next_open)
        context->next_open->before_open = context->before_open;
    pthread_mutex_unlock(&lock);
}

void fork_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fork_unlock(void)
{
    pthread_mutex_unlock(&lock);
}
