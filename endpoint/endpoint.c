/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.c - the life of a connection of any kind: who works on it, when its news is reported, and when it is
 * closed. */
#include <errno.h>

#include "endpoint/objects.h"
#include "loop/cancel.h"

/* Closes the endpoint. The loop frees the struct when the token is given back, after its holder has let go. By the
 * driver, who holds it. */
static void close_endpoint(struct endpoint *endpoint)
{
    struct progress *progress = endpoint->progress;

    if (endpoint->qp) {
        endpoint_info(endpoint, &endpoint->qp->last);
        qp_set_endpoint(endpoint->qp, NULL);
    }
    if (endpoint->listener)
        request_answered(endpoint);
    loop_forget_timer(&progress->loop, &endpoint->timer);
    endpoint->kind->close(endpoint);
    if (progress->hot == endpoint)
        progress->hot = NULL;
    progress_bury(endpoint);
    endpoint->closed = true;
}

void endpoint_call_driver(struct endpoint *endpoint, uint64_t now_us)
{
    loop_set_timer(&endpoint->progress->loop, &endpoint->timer, now_us);
}

void endpoint_pump(struct endpoint *endpoint, enum endpoint_role role)
{
    struct life *life = endpoint->life;
    uint64_t now_us = loop_now_us();

    life->visit = endpoint->visit;
    if (endpoint->closed || (!endpoint->is_up && life->state != CONN_OVER))
        return;
    if (endpoint->is_up && !endpoint->kind->work(endpoint, role, now_us)) {
        endpoint_call_driver(endpoint, now_us);
        return;
    }
    if (endpoint->closed)
        return;
    if (life->news)
        endpoint_tell(endpoint);
    if (life->state != CONN_OVER)
        loop_set_timer(&endpoint->progress->loop, &endpoint->timer, endpoint->kind->rest(endpoint, now_us));
    else if (role == ENDPOINT_DRIVER)
        close_endpoint(endpoint);
    else
        endpoint_call_driver(endpoint, now_us);
}

/* From here until the holder leaves, nobody may be told that a key was invalidated (visit.h). The driver's one visit
 * covers all endpoints that it holds. */
static void endpoint_enter(struct endpoint *endpoint)
{
    struct progress *progress = endpoint->progress;

    if (!progress->holding++)
        visit_enter(&progress->context->mrs.visits, progress->visit);
    endpoint->visit = progress->visit;
    if (endpoint->life)
        endpoint->life->visit = progress->visit;
}

/* The endpoint may be gone here: its bell was released. */
static void endpoint_leave(struct progress *progress, struct visit *visit)
{
    if (visit != progress->visit || !--progress->holding)
        visit_leave(visit);
}

void endpoint_hold(struct endpoint *endpoint)
{
    doorbell_hold(&endpoint->bell);
    endpoint_enter(endpoint);
}

bool endpoint_try(struct endpoint *endpoint)
{
    if (!doorbell_try(&endpoint->bell))
        return false;
    endpoint_enter(endpoint);
    return true;
}

/* Releases the bell. Returns false if the bell was rung; the endpoint is then still held. */
static bool try_to_let_go(struct endpoint *endpoint)
{
    struct visit *visit = endpoint->visit;
    const struct out *out = endpoint->life->out;

    atomic_store_explicit(&endpoint->borrows, out && out->borrowed, memory_order_relaxed);
    endpoint->visit = endpoint->life->visit = NULL;
    if (doorbell_let_go(&endpoint->bell))
        return true;
    endpoint->visit = visit;
    return false;
}

/* More threads post at once than there are slots in context->visits: the driver does this one's work. */
static void leave_to_driver(struct endpoint *endpoint)
{
    do
        endpoint_call_driver(endpoint, loop_now_us());
    while (!doorbell_let_go(&endpoint->bell));
}

static void let_go(struct endpoint *endpoint, enum endpoint_role role)
{
    struct progress *progress = endpoint->progress;
    struct rddp_context *context = progress->context;
    struct visit *visit;

    if (!endpoint->visit) /* became the holder by ringing, so it has no visit yet */
        endpoint->visit = visit_enter_any(&context->mrs.visits, context->loops);
    visit = endpoint->visit;
    if (!visit) {
        leave_to_driver(endpoint);
        return;
    }
    while (!try_to_let_go(endpoint))
        endpoint_pump(endpoint, role);
    endpoint_leave(progress, visit);
}

/* A poster may be cancelled between its calls, but not while it holds a bell. progress_take() protects the driver. */
void endpoint_let_go(struct endpoint *endpoint, enum endpoint_role role)
{
    if (role == ENDPOINT_DRIVER) {
        let_go(endpoint, role);
        return;
    }
    cancel_hold();
    let_go(endpoint, role);
    cancel_release();
}

void endpoint_abort(struct endpoint *endpoint)
{
    endpoint->kind->lost(endpoint, FAULT_LOST);
    endpoint->life->news = 0;
    if (!endpoint->closed)
        close_endpoint(endpoint);
}

void endpoint_abandon(struct endpoint *endpoint)
{
    if (endpoint->life->out)
        out_drop(endpoint->life->out);
    endpoint->kind->lost(endpoint, FAULT_FORKED);
    endpoint_tell(endpoint);
    close_endpoint(endpoint);
}

void endpoint_fail_to_connect(struct endpoint *endpoint, int error)
{
    if (endpoint->qp)
        qp_fail(&endpoint->qp->qp, &(struct fault_note){.fault = FAULT_LOST});
    endpoint_tell_unreachable(endpoint, error);
    endpoint_abort(endpoint);
}

static void endpoint_on_time(struct timer *timer, uint64_t now_us)
{
    struct endpoint *endpoint = container_of(timer, struct endpoint, timer);

    endpoint_hold(endpoint);
    endpoint->kind->tick(endpoint, now_us);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
}

int endpoint_begin(struct endpoint *endpoint, struct progress *progress, const struct endpoint_kind *kind)
{
    endpoint->progress = progress;
    endpoint->kind = kind;
    endpoint->timer.fire = endpoint_on_time;
    if (loop_add_timer(&progress->loop, &endpoint->timer))
        return -ENOMEM;
    endpoint_hold(endpoint);
    progress_add(endpoint);
    return 0;
}

/* --- for other files ---------------------------------------------------------------------------------------- */

struct endpoint *qp_hold(struct rddp_qp *qp)
{
    struct progress *progress = qp->progress;
    struct endpoint *endpoint;

    if (!progress)
        return NULL;
    progress_take(progress);
    endpoint = qp->endpoint;
    if (endpoint)
        endpoint_hold(endpoint);
    else
        progress_give(progress); /* from here on another thread may connect the queue pair */
    return endpoint;
}

void qp_let_go(struct endpoint *endpoint)
{
    struct progress *progress = endpoint->progress;

    endpoint_let_go(endpoint, ENDPOINT_DRIVER);
    progress_give(progress);
}

void endpoint_info(const struct endpoint *endpoint, struct rddp_qp_info *info)
{
    *info = (struct rddp_qp_info){
        .terminate = endpoint->life->peer_term,
        .local = endpoint->local,
        .peer = endpoint->peer,
    };
    endpoint->kind->info(endpoint, info);
}
