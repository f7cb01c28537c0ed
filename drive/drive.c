/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* drive.c - rddp_progress(): the application does the work of a context itself; and what it does while it waits. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "endpoint/objects.h"
#include "loop/descriptors.h"
#include "drive/closed.h"
#include "drive/await.h"
#include "drive/doorbell_batch.h"
#include "drive/thread.h"
#include "drive/inherit.h"

/* Waits until one of the loops has something to do, a signal arrives, or the time is over. Returns whether something
 * came, or the descriptors are gone. Holds no lock. */
static bool sleep_at_loops(struct rddp_context *context, int timeout_ms)
{
    struct pollfd fd[LOOPS_MAX + 1];

    if (context->loops == 1)
        return reactor_sleep(&context->loop->reactor, timeout_ms);
    for (uint32_t i = 0; i < context->loops; i++)
        fd[i] = (struct pollfd){.fd = context->loop[i].reactor.epoll_fd, .events = POLLIN};
    fd[context->loops] = (struct pollfd){.fd = descriptors_sentinel()};
    if (poll(fd, context->loops + 1, timeout_ms) <= 0)
        return false;
    if (fd[context->loops].revents)
        context->loop->reactor.is_cut = true;
    return true;
}

/* Also of a thread that is cancelled as it sleeps. */
static void end_sleep(void *of)
{
    struct rddp_context *context = of;

    for (uint32_t i = 0; i < context->loops; i++) {
        batch_wake_up(&context->loop[i]);
        reactor_end_sleeper(&context->loop[i].reactor);
    }
}

/* What the deferred doorbells send is often complete at once, and no descriptor tells. Returns whether there were some.
 */
static bool begin_sleep(struct rddp_context *context)
{
    bool rang = false;

    for (uint32_t i = 0; i < context->loops; i++) {
        reactor_expect_sleeper(&context->loop[i].reactor);
        rang |= batch_sleep(&context->loop[i]);
        loop_lock_and_rouse(&context->loop[i]);
    }
    return rang;
}

/* In memory: a variable in a register may be lost where pthread_cleanup_push() returns twice. */
struct nap {
    struct rddp_context *context;
    int timeout_ms;
    bool came;
};

static void nap_counted(struct nap *nap)
{
    pthread_cleanup_push(end_sleep, nap->context);
    nap->came = sleep_at_loops(nap->context, nap->timeout_ms);
    pthread_cleanup_pop(true);
}

static bool sleep_for(struct rddp_context *context, int timeout_ms)
{
    struct nap nap = {context, begin_sleep(context) ? 0 : timeout_ms, false};

    nap_counted(&nap);
    return nap.came;
}

static bool is_context_closed(struct rddp_context *context)
{
    _Atomic bool *is_cut = &context->loop->reactor.is_cut;

    return (atomic_exchange(is_cut, false) || !descriptors_are_ours()) && context_close_down(context);
}

int rddp_progress(struct rddp_context *context, int timeout_ms)
{
    int error = context_use(context);
    bool came = false;

    if (error)
        return error;
    if (timeout_ms && descriptors_are_ours())
        came = sleep_for(context, timeout_ms);
    /* A sleep that something ended has watched the descriptors, too. */
    if (((timeout_ms && !came) || context->loop->reactor.is_cut) && is_context_closed(context))
        return -EBADF;
    for (uint32_t i = 0; i < context->loops; i++) {
        batch_ring(&context->loop[i]);
        loop_lock_to_work(&context->loop[i]);
        if (came && context->loops == 1)
            loop_work_woken(&context->loop[i]);
        else
            loop_work(&context->loop[i]);
        loop_unlock(&context->loop[i]);
    }
    /* Nor has the work, if it met descriptors that are closed. */
    return context->loop->reactor.is_cut && is_context_closed(context) ? -EBADF : 0;
}

int context_await(struct rddp_context *context, const struct notifier *notifier)
{
    int error = 0;

    if (!context->manual) {
        bool is_sound = descriptors_are_ours();
        if (is_sound)
            error = notifier_wait(notifier);
        if ((!is_sound || error) && !descriptors_are_ours() && context_close_down(context))
            return 0; /* there may be events of that */
        return error;
    }
    return notifier_may_wait(notifier) ? rddp_progress(context, 1) : -EAGAIN;
}

int rddp_progress_fd(const struct rddp_context *context)
{
    struct rddp_context *known = (struct rddp_context *)(uintptr_t)context;
    int error = context_use(known);

    if (error)
        return error;
    if (!descriptors_are_ours() && context_close_down(known))
        return -EBADF;
    if (!atomic_exchange(&known->is_fd_known, true)) {
        reactor_expect_sleeper(&known->loop->reactor);
        batch_sleep(known->loop);
        loop_lock_and_rouse(known->loop);
    }
    return known->loop->reactor.epoll_fd;
}
