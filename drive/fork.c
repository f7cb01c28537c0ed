/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.c - the list of contexts of this process, and fork().
 *
 * Only the forking thread exists in the child. While it forks it therefore holds every lock that keeps connections,
 * lists and memory consistent: loop locks, doorbells and mutexes. Spinlocks cannot be held; what they guard is
 * initialised again in the child (inherit.c). In the child itself, in_child() only records that it is one. */
#include "drive/fork.h"

#include <sched.h>
#include <signal.h>

#include "loop/cancel.h"

/* Longer than any turn, also on a machine that has far too much to do: a lock that is held for longer is held by the
 * forking thread itself, or by a stopped one. */
enum { PATIENCE_US = 5000000 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Guards the list, and is held while the process forks. First in the lock order. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rddp_context *contexts;
static _Thread_local bool is_mine; /* this thread holds it for a call of the library, whose log function may fork */

/* --- what is held --------------------------------------------------------------------------------------------- */

static bool take_bell(struct endpoint *endpoint, uint64_t until_us)
{
    while (!endpoint_try(endpoint)) {
        if (reactor_now_us() > until_us)
            return false;
        sched_yield();
    }
    return true;
}

/* Takes a loop lock. Its holder ends its round early when it sees `wanted`. */
static bool take_token(struct loop *loop, uint64_t until_us)
{
    bool taken;

    atomic_fetch_add_explicit(&loop->wanted, 1, memory_order_relaxed);
    while (!(taken = loop_trylock(loop)) && reactor_now_us() <= until_us)
        sched_yield();
    atomic_fetch_sub_explicit(&loop->wanted, 1, memory_order_relaxed);
    return taken;
}

/* Releases the doorbells of the endpoints up to `end`, then the loop lock. */
static void release_doorbells(struct loop *loop, const struct endpoint *end)
{
    for (struct endpoint *endpoint = loop->endpoints, *next; endpoint != end; endpoint = next) {
        next = endpoint->next;
        endpoint_release(endpoint, ENDPOINT_DRIVER);
    }
    loop_unlock(loop);
}

/* Takes the lock of a loop and then all its doorbells, or nothing. */
static bool take_doorbells(struct loop *loop, uint64_t until_us)
{
    if (!take_token(loop, until_us))
        return false;
    for (struct endpoint *endpoint = loop->endpoints; endpoint; endpoint = endpoint->next)
        if (!take_bell(endpoint, until_us)) {
            release_doorbells(loop, endpoint);
            return false;
        }
    return true;
}

/* The mutexes of a context that are held: the first `count` in the order of each_leaf(). */
struct held {
    uint64_t until_us;
    uint32_t count;
    bool is_late; /* one could not be taken: the others are not tried */
};

static void take_mutex(pthread_mutex_t *mutex, struct held *held)
{
    while (!held->is_late && pthread_mutex_trylock(mutex)) {
        held->is_late = reactor_now_us() > held->until_us;
        sched_yield();
    }
    held->count += !held->is_late;
}

static void give_mutex(pthread_mutex_t *mutex, struct held *held)
{
    if (!held->count)
        return;
    held->count--;
    pthread_mutex_unlock(mutex);
}

/* The mutexes whose holders wait for no lock but a channel's: that of the context, under which the channel of an event
 * is looked up, comes first. members.lock, held by the caller, keeps the lists stable. */
static void each_leaf(struct rddp_context *context, void (*action)(pthread_mutex_t *, struct held *), struct held *held)
{
    struct rddp_comp_channel *comp_channel;
    struct rddp_event_channel *event_channel;
    struct rddp_async_channel *async_channel;

    action(&context->lock, held);
    MEMBERS_EACH(&context->members, MEMBER_COMP_CHANNEL, struct rddp_comp_channel, comp_channel)
    action(&comp_channel->reports.lock, held);
    MEMBERS_EACH(&context->members, MEMBER_EVENT_CHANNEL, struct rddp_event_channel, event_channel)
    action(&event_channel->lock, held);
    MEMBERS_EACH(&context->members, MEMBER_ASYNC_CHANNEL, struct rddp_async_channel, async_channel)
    action(&async_channel->reports.lock, held);
    for (uint32_t i = 0; i < context->loops; i++)
        action(&context->loop[i].reactor.timer_lock, held);
    action(&context->mrs_lock, held);
}

static void give_leaves(struct rddp_context *context, uint32_t count)
{
    struct held held = {.count = count};

    each_leaf(context, give_mutex, &held);
    pthread_mutex_unlock(&context->members.lock);
}

/* Takes them all or none: the forking thread may have one itself, if a signal handler forks. */
static bool take_leaves(struct rddp_context *context, uint64_t until_us)
{
    struct held list = {.until_us = until_us}, held = list;

    take_mutex(&context->members.lock, &list);
    if (list.is_late)
        return false;
    each_leaf(context, take_mutex, &held);
    if (held.is_late)
        give_leaves(context, held.count);
    return !held.is_late;
}

static bool fork_hold(struct rddp_context *context, uint64_t until_us)
{
    uint32_t held = 0;

    while (held < context->loops && take_doorbells(&context->loop[held], until_us))
        held++;
    if (held == context->loops && take_leaves(context, until_us))
        return true;
    while (held)
        release_doorbells(&context->loop[--held], NULL);
    return false;
}

/* --- fork() ----------------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    uint64_t until_us = reactor_now_us() + PATIENCE_US;

    if (!is_mine)
        pthread_mutex_lock(&lock);
    for (struct rddp_context *context = contexts; context; context = context->next_open)
        context->is_held = !is_mine && context->home != CONTEXT_INHERITED && context->home != CONTEXT_TORN &&
                           fork_hold(context, until_us);
}

static void in_parent(void)
{
    for (struct rddp_context *context = contexts; context; context = context->next_open) {
        if (!context->is_held)
            continue;
        give_leaves(context, UINT32_MAX);
        for (uint32_t i = 0; i < context->loops; i++)
            release_doorbells(&context->loop[i], NULL);
    }
    if (!is_mine)
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
        give_leaves(context, UINT32_MAX);
        for (uint32_t i = 0; i < context->loops; i++)
            loop_unlock_inherited(&context->loop[i]);
    }
    is_mine = false; /* its calls need the lock, if only to be told that they cannot be made */
    pthread_mutex_unlock(&lock);
}

/* If there is no memory for this, a child may only exit or execute another program, as without it. */
static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

/* --- contexts --------------------------------------------------------------------------------------------------- */

static void block_signals(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

/* A signal handler that forks finds this lock free, or that the thread it interrupted has it (`is_mine`). */
static void lock_list(sigset_t *before)
{
    block_signals(before);
    pthread_mutex_lock(&lock);
}

static void unlock_list(const sigset_t *before)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void fork_add(struct rddp_context *context)
{
    sigset_t before;

    pthread_once(&once, watch_forks);
    lock_list(&before);
    context->next_open = contexts;
    context->before_open = &contexts;
    if (contexts)
        contexts->before_open = &context->next_open;
    contexts = context;
    unlock_list(&before);
}

void fork_remove(struct rddp_context *context)
{
    sigset_t before;

    lock_list(&before);
    *context->before_open = context->next_open;
    if (context->next_open)
        context->next_open->before_open = context->before_open;
    unlock_list(&before);
}

void fork_each(void (*action)(struct rddp_context *))
{
    for (struct rddp_context *context = contexts; context; context = context->next_open)
        action(context);
}

/* The log, and other calls that are made meanwhile, may be cancellation points. */
void fork_lock(void)
{
    sigset_t before;

    lock_list(&before);
    is_mine = true;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    cancel_hold();
}

void fork_unlock(void)
{
    sigset_t before;

    block_signals(&before);
    if (is_mine)
        pthread_mutex_unlock(&lock);
    is_mine = false;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    cancel_release();
}
