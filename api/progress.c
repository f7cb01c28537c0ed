/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.c - who does the work: the context's thread, or an application that polls. */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "api/api.h"

enum {
    HOT_TURNS = 16, /* so often the socket that spoke last is asked before all of them are */
    BUSY_POLLS = 4, /* rounds since the thread last looked that make a poller a busy one */
    PARK_MS = 2,    /* how often a parked thread looks whether the poller is still there */
};

static void work(struct rddp_context *context)
{
    loop_run(&context->loop);
    endpoint_free_dead(context);
}

void context_work(struct rddp_context *context)
{
    atomic_fetch_add_explicit(&context->polls, 1, memory_order_relaxed);
    if (context->hot && !context->hot->blocked && ++context->hot_turns % HOT_TURNS) {
        endpoint_poll(context->hot);
        endpoint_free_dead(context);
    } else {
        work(context);
    }
}

/* A busy poller does everything itself; two of us at one socket would only get in each other's way. An armed CQ means
 * that somebody sleeps and relies on the thread. */
static bool is_polled(struct rddp_context *context, uint32_t *seen)
{
    uint32_t polls = atomic_load_explicit(&context->polls, memory_order_relaxed);
    bool busy = polls - *seen >= BUSY_POLLS && !context->armed;

    *seen = polls;
    return busy;
}

static void park(struct rddp_context *context)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PARK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&context->unpark, &context->lock, &until);
}

static void *progress(void *arg)
{
    struct rddp_context *context = arg;
    uint32_t seen = 0;

    while (!atomic_load(&context->stopping)) {
        loop_sleep(&context->loop, -1);
        lock(context);
        work(context);
        while (is_polled(context, &seen) && !atomic_load(&context->stopping))
            park(context);
        unlock(context);
    }
    return NULL;
}

static void stay_ready(struct watch *watch, uint32_t events)
{
    (void)watch;
    (void)events; /* the descriptor speaks once, to end the thread */
}

/* Signals are the application's: none is ever handled on our thread, but SIGBUS, which says that volatile memory has
 * gone and comes to whoever touches it. */
int progress_start(struct rddp_context *context)
{
    sigset_t all, before;
    int error;

    context->stop = (struct watch){.fd = eventfd(0, EFD_CLOEXEC), .ready = stay_ready};
    if (context->stop.fd < 0)
        return -EMFILE;
    error = loop_watch(&context->loop, &context->stop, EPOLLIN);
    if (!error) {
        sigfillset(&all);
        sigdelset(&all, SIGBUS);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = -pthread_create(&context->thread, NULL, progress, context);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (error)
        close(context->stop.fd);
    return error;
}

void progress_stop(struct rddp_context *context)
{
    uint64_t one = 1;

    lock(context);
    atomic_store(&context->stopping, true);
    pthread_cond_signal(&context->unpark);
    unlock(context);
    if (write(context->stop.fd, &one, sizeof(one)) < 0)
        context_log(context, RDDP_LOG_ERROR, "cannot wake the progress thread");
    pthread_join(context->thread, NULL);
    close(context->stop.fd);
}

int rddp_progress(struct rddp_context *context, int timeout_ms)
{
    if (timeout_ms)
        loop_sleep(&context->loop, timeout_ms);
    lock(context);
    work(context);
    unlock(context);
    return 0;
}

int rddp_progress_fd(const struct rddp_context *context)
{
    return context->loop.epoll_fd;
}
