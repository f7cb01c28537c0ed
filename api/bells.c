/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bells.c - doorbells that are rung a little later, so that a burst of single posts leaves in one call.
 *
 * A request that is alone is rung for at once. One that follows others closely may wait for more of them: its poster
 * would otherwise spend a system call for each. Nothing waits longer than LATEST_US, whoever polls or does not. */
#include "api/bells.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    BUSY = 8,       /* requests that are posted and not polled: fewer are no burst */
    MOST = 32,      /* requests that one bell is rung for */
    RECENT_US = 20, /* since the connection last sent something: else this is no burst either */
    LATEST_US = 50, /* until the bell is rung */
    RINGS = 64,     /* of one call: others may go on posting */
};

bool bells_may_wait(struct rddp_qp *qp, const struct endpoint *endpoint)
{
    uint64_t sent_us = atomic_load_explicit(&endpoint->sent_us, memory_order_relaxed);

    if (qp->context->manual || qp->put_off + 1 >= MOST ||
        atomic_load_explicit(&qp->qp.sq_taken, memory_order_relaxed) < BUSY)
        return false;
    return qp->put_off || loop_now_us() - sent_us <= RECENT_US;
}

/* The first of each burst moves the timer, so that it runs out only where a burst has no end. */
void bells_remember(struct rddp_qp *qp)
{
    const struct itimerspec latest = {.it_value.tv_nsec = LATEST_US * 1000L};
    struct progress *progress = qp->progress;

    spin_lock(&progress->bells_lock);
    if (!qp->has_bell) {
        qp->has_bell = true;
        qp->next_bell = progress->bells;
        progress->bells = qp;
    }
    spin_unlock(&progress->bells_lock);
    timerfd_settime(progress->bell_timer.fd, 0, &latest, NULL);
}

/* Takes the first from the list and rings for it: *endpoint is then to be let go of, or NULL. False: the list is empty.
 * The queue pair cannot go while the list is locked, nor the endpoint while its bell is held. */
static bool ring_first(struct progress *progress, struct endpoint **endpoint)
{
    struct rddp_qp *qp;

    spin_lock(&progress->bells_lock);
    qp = progress->bells;
    if (qp) {
        progress->bells = qp->next_bell;
        qp->has_bell = false;
        spin_lock(&qp->spin);
        qp->put_off = 0;
        *endpoint = qp->endpoint && doorbell_ring(&qp->endpoint->bell) ? qp->endpoint : NULL;
        spin_unlock(&qp->spin);
    }
    spin_unlock(&progress->bells_lock);
    return qp;
}

void bells_ring(struct progress *progress)
{
    struct endpoint *endpoint;

    if (!atomic_load_explicit(&progress->bells, memory_order_relaxed))
        return;
    for (unsigned i = 0; i < RINGS && ring_first(progress, &endpoint); i++)
        if (endpoint)
            endpoint_let_go(endpoint, ENDPOINT_POSTER);
}

void bells_forget(struct rddp_qp *qp)
{
    struct progress *progress = qp->progress;
    struct rddp_qp *before = NULL;

    if (!progress)
        return;
    spin_lock(&progress->bells_lock);
    for (struct rddp_qp *at = progress->bells; qp->has_bell && at != qp; at = at->next_bell)
        before = at;
    if (qp->has_bell && before)
        before->next_bell = qp->next_bell;
    else if (qp->has_bell)
        progress->bells = qp->next_bell;
    qp->has_bell = false;
    spin_unlock(&progress->bells_lock);
}

static void on_time(struct watch *watch, uint32_t events)
{
    uint64_t expirations;

    (void)events;
    if (read(watch->fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
        abort();
    bells_ring(container_of(watch, struct progress, bell_timer));
}

int bells_init(struct progress *progress)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    progress->bell_timer = (struct watch){.fd = fd, .ready = on_time};
    if (fd < 0)
        return -EMFILE;
    return loop_watch(&progress->loop, &progress->bell_timer, EPOLLIN);
}

void bells_fini(struct progress *progress)
{
    if (progress->bell_timer.fd >= 0)
        close(progress->bell_timer.fd);
}
