/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bells.c - doorbells that are rung a little later, so that a burst of single posts leaves in one call.
 *
 * A request that is alone is rung for at once. One that follows others closely may wait for more of them: its poster
 * would otherwise spend a system call for each. Nothing waits longer than LATEST_US, whoever polls or does not. */
#include "drive/doorbell_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    BUSY = 8,       /* a burst has at least this many requests posted and not polled ... */
    MOST = 128,     /* a bell is rung for at most this many posts */
    RECENT_US = 20, /* ... and a connection that sent something no longer ago than this */
    LATEST_US = 50, /* a bell is rung after this time at the latest, ... */
    EARLY_US = 5,   /* ... or this much earlier, if the timer happens to run out then */
};

/* Puts a queue pair in front of those whose bell is put off. True: it is the only one. */
static bool bells_put_in(struct bells *bells, struct rddp_qp *qp)
{
    struct rddp_qp *first = atomic_load_explicit(&bells->waiting, memory_order_relaxed);

    if (qp->has_bell)
        return first == qp && !qp->next_bell;
    qp->has_bell = true;
    do
        qp->next_bell = first;
    while (!atomic_compare_exchange_weak_explicit(&bells->waiting, &first, qp, memory_order_release,
                                                  memory_order_relaxed));
    return !first;
}

enum bells_verdict bells_put_off(struct rddp_qp *qp, const struct endpoint *endpoint)
{
    struct bells *bells = &endpoint->progress->bells;
    uint64_t now_us;

    if (qp->context->manual || qp->put_off + 1 >= MOST ||
        atomic_load_explicit(&qp->qp.sq.taken, memory_order_relaxed) < BUSY)
        return BELLS_RING;
    if (qp->put_off)
        return BELLS_WAIT;
    now_us = loop_now_us();
    if (now_us - atomic_load_explicit(&endpoint->sent_us, memory_order_relaxed) > RECENT_US)
        return BELLS_RING;
    if (bells_put_in(bells, qp)) /* otherwise others may have waited longer */
        atomic_store_explicit(&bells->since_us, now_us, memory_order_relaxed);
    return atomic_load(&bells->timed) || atomic_exchange(&bells->timed, true) ? BELLS_WAIT : BELLS_SET_TIMER;
}

static void timer_start(struct bells *bells, uint64_t in_us)
{
    const struct itimerspec when = {.it_value.tv_nsec = (long)in_us * 1000};

    timerfd_settime(bells->timer.fd, 0, &when, NULL);
}

void bells_set_timer(struct progress *progress)
{
    timer_start(&progress->bells, LATEST_US);
}

/* Rings for the first of those that were taken: *endpoint is then to be let go of, or NULL. False: there is none. The
 * queue pair cannot go while they are locked, nor the endpoint while its bell is held. */
static bool ring_first(struct bells *bells, struct endpoint **endpoint)
{
    struct rddp_qp *qp;
    bool is_wanted;

    spin_lock(&bells->lock);
    qp = bells->taken;
    if (qp) {
        bells->taken = qp->next_bell;
        spin_lock(&qp->spin);
        qp->has_bell = false;
        is_wanted = qp->put_off && qp->endpoint;
        *endpoint = is_wanted && doorbell_ring(&qp->endpoint->bell) ? qp->endpoint : NULL;
        qp->put_off = 0;
        spin_unlock(&qp->spin);
    }
    spin_unlock(&bells->lock);
    return qp;
}

/* Takes those that wait, unless some that were taken have not been rung for. */
static void bells_take(struct bells *bells)
{
    spin_lock(&bells->lock);
    if (!bells->taken)
        bells->taken = atomic_exchange_explicit(&bells->waiting, NULL, memory_order_acquire);
    spin_unlock(&bells->lock);
}

/* What is put off meanwhile waits for the next call: others may go on posting. */
void bells_ring(struct progress *progress)
{
    struct bells *bells = &progress->bells;
    struct endpoint *endpoint;

    for (unsigned round = 0; round < 2; round++) { /* one for what somebody else has taken */
        if (!atomic_load_explicit(&bells->waiting, memory_order_relaxed) &&
            !atomic_load_explicit(&bells->taken, memory_order_relaxed))
            return;
        bells_take(bells);
        while (ring_first(bells, &endpoint))
            if (endpoint)
                endpoint_let_go(endpoint, ENDPOINT_POSTER);
    }
}

static bool is_waiting(struct rddp_qp *qp)
{
    bool has_bell;

    spin_lock(&qp->spin);
    has_bell = qp->has_bell;
    spin_unlock(&qp->spin);
    return has_bell;
}

void bells_forget(struct rddp_qp *qp)
{
    while (is_waiting(qp))
        bells_ring(qp->progress);
}

/* A burst that began after the timer was set has time left. So a thread that posts one burst after another leaves the
 * timer alone, which is dear to set. */
static void bells_on_time(struct watch *watch, uint32_t events)
{
    struct progress *progress = container_of(watch, struct progress, bells.timer);
    struct bells *bells = &progress->bells;
    uint64_t expirations, age_us;

    (void)events;
    if (read(watch->fd, &expirations, sizeof(expirations)) < 0) {
        if (errno != EAGAIN)
            abort();
        return;
    }
    age_us = loop_now_us() - atomic_load_explicit(&bells->since_us, memory_order_relaxed);
    if (age_us + EARLY_US < LATEST_US) {
        timer_start(bells, LATEST_US - age_us);
        return;
    }
    atomic_store(&bells->timed, false); /* a bell put off after this sets the timer; all others are rung now */
    bells_ring(progress);
}

int bells_init(struct progress *progress)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    progress->bells.timer = (struct watch){.fd = fd, .ready = bells_on_time};
    if (fd < 0)
        return -EMFILE;
    return loop_watch(&progress->loop, &progress->bells.timer, EPOLLIN);
}

void bells_fini(struct progress *progress)
{
    if (progress->bells.timer.fd >= 0)
        close(progress->bells.timer.fd);
    progress->bells.timer.fd = -1;
}
