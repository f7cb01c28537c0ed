/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.c - the life of a connection of any kind: who works on it, when its news is reported, and when it is
 * closed. */
#include <errno.h>

#include "endpoint/objects.h"
#include "loop/cancel.h"
#include "loop/descriptors.h"

enum { LONE_POLLS = 64 }; /* of an endpoint, before it leaves the epoll set, and before that is tried again */

/* Closes the endpoint. The loop frees the struct when the loop is unlocked, after its holder has released it. By the
 * driver, who holds it. */
static void close_endpoint(struct endpoint *endpoint)
{
    struct loop *loop = endpoint->loop;

    if (endpoint->qp) {
        endpoint_info(endpoint, &endpoint->qp->last);
        endpoint->qp->was_established = endpoint->life->established;
        qp_set_endpoint(endpoint->qp, NULL);
    }
    if (endpoint_is_unanswered(endpoint))
        request_answered(endpoint);
    waiting_leave(endpoint);
    reactor_forget_timer(&loop->reactor, &endpoint->timer);
    endpoint->kind->close(endpoint);
    if (loop->hot == endpoint)
        loop->hot = NULL;
    if (loop->resting == endpoint)
        loop->resting = NULL;
    if (loop->owing == endpoint)
        loop->owing = NULL;
    loop_retire(endpoint);
    endpoint->closed = true;
}

/* Makes the driver work on this endpoint at once, by its timer. */
static void endpoint_call_driver(struct endpoint *endpoint, uint64_t now_us)
{
    reactor_set_timer(&endpoint->loop->reactor, &endpoint->timer, now_us);
}

/* The timer only moves to earlier times: one that was set for an earlier deadline fires in vain, once, and is set again
 * then, which costs less than moving it with each packet. */
static void set_deadline(struct endpoint *endpoint, uint64_t at_us)
{
    const struct timer *timer = &endpoint->timer;

    if (!timer->place || timer->at_us > at_us)
        reactor_set_timer(&endpoint->loop->reactor, &endpoint->timer, at_us);
}

/* What is posted while it connects leaves when it is up: until then the timer is that of the attempt. */
static bool is_still_called(const struct endpoint *endpoint)
{
    return !endpoint->is_up && endpoint->life->state != CONN_OVER;
}

static bool post_straight(struct endpoint *endpoint)
{
    endpoint->life->reader = endpoint->reader;
    return endpoint->kind->post && !endpoint->closed && endpoint->kind->post(endpoint);
}

void endpoint_pump(struct endpoint *endpoint, enum endpoint_role role)
{
    if (role == ENDPOINT_POSTER && post_straight(endpoint))
        return;
    endpoint_pump_at(endpoint, role, reactor_now_us());
}

void endpoint_pump_at(struct endpoint *endpoint, enum endpoint_role role, uint64_t now_us)
{
    struct life *life = endpoint->life;

    life->reader = endpoint->reader;
    if (endpoint->closed || is_still_called(endpoint))
        return;
    if (endpoint->is_up && !endpoint->kind->work(endpoint, role, now_us)) {
        endpoint_call_driver(endpoint, now_us);
        return;
    }
    if (endpoint->closed)
        return;
    if (life->news)
        endpoint_notify(endpoint);
    if (life->awaits_spans)
        loops_ask_for_spans(endpoint->loop->context);
    if (role == ENDPOINT_DRIVER)
        waiting_update(endpoint);
    if (life->state != CONN_OVER)
        set_deadline(endpoint, endpoint->kind->rest(endpoint, now_us));
    else if (role == ENDPOINT_DRIVER)
        close_endpoint(endpoint);
    else
        endpoint_call_driver(endpoint, now_us);
}

/* From here until the holder leaves, no invalidation that begins may complete (epoch.h). The driver enters once for all
 * endpoints that it holds. */
static void endpoint_enter(struct endpoint *endpoint)
{
    struct loop *loop = endpoint->loop;

    if (!loop->holding++)
        epoch_enter(&loop->context->mrs.epochs, loop->reader);
    endpoint->reader = loop->reader;
    if (endpoint->life)
        endpoint->life->reader = loop->reader;
}

/* The endpoint may be gone here: its bell was released. */
static void endpoint_leave(struct loop *loop, struct epoch_reader *reader)
{
    if (reader != loop->reader || !--loop->holding)
        epoch_leave(reader);
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
static bool try_to_release(struct endpoint *endpoint)
{
    struct epoch_reader *reader = endpoint->reader;
    const struct out *out = endpoint->life->out;

    atomic_store_explicit(&endpoint->borrows, out && out->borrowed, memory_order_relaxed);
    endpoint->reader = endpoint->life->reader = NULL;
    if (doorbell_release(&endpoint->bell))
        return true;
    endpoint->reader = reader;
    return false;
}

/* More threads post at once than there are slots in context->readers: the driver does this one's work. */
static void leave_to_driver(struct endpoint *endpoint)
{
    do
        if (!is_still_called(endpoint))
            endpoint_call_driver(endpoint, reactor_now_us());
    while (!doorbell_release(&endpoint->bell));
}

static void endpoint_work_and_release(struct endpoint *endpoint, enum endpoint_role role)
{
    struct loop *loop = endpoint->loop;
    struct epoch_reader *reader = endpoint->reader;

    while (!try_to_release(endpoint))
        endpoint_pump(endpoint, role);
    endpoint_leave(loop, reader);
}

/* A poster may be cancelled between its calls, but not while it holds a bell. loop_lock() protects the driver. */
void endpoint_release(struct endpoint *endpoint, enum endpoint_role role)
{
    if (role == ENDPOINT_DRIVER) {
        endpoint_work_and_release(endpoint, role);
        return;
    }
    cancel_hold();
    endpoint_work_and_release(endpoint, role);
    cancel_release();
}

/* Whoever became the holder by ringing has not entered yet. */
void endpoint_answer(struct endpoint *endpoint)
{
    struct loop *loop = endpoint->loop;
    struct rddp_context *context = loop->context;

    cancel_hold();
    endpoint->reader =
        epoch_enter_any(&context->mrs.epochs, context->loops, (uint32_t)(loop->reader - context->readers));
    if (endpoint->reader) {
        endpoint_pump(endpoint, ENDPOINT_POSTER);
        endpoint_work_and_release(endpoint, ENDPOINT_POSTER);
    } else {
        leave_to_driver(endpoint);
    }
    cancel_release();
}

/* Each arrival costs its sender less if the socket is in no epoll set. Nothing may sleep at the loop meanwhile: who
 * wants to counts as a sleeper, or leaves the park, then locks the loop and rouses the endpoint. */
void endpoint_rest_if_polled(struct endpoint *endpoint)
{
    struct loop *loop = endpoint->loop;

    if (loop->hot != endpoint || ++loop->lone_polls % LONE_POLLS || (loop->resting && loop->resting != endpoint) ||
        loop_has_sleepers(loop) || (!loop->resting && !descriptors_are_ours()) ||
        !endpoint->kind->stay_out(endpoint, true))
        return;
    loop->resting = endpoint;
}

void endpoint_rouse(struct endpoint *endpoint)
{
    if (!descriptors_are_ours())
        return; /* a set with our number is the program's */
    endpoint_hold(endpoint);
    if (endpoint->loop->resting == endpoint)
        endpoint->loop->resting = NULL;
    (void)endpoint->kind->stay_out(endpoint, false);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

void endpoint_abort(struct endpoint *endpoint)
{
    endpoint->kind->lost(endpoint, FAULT_LOST);
    endpoint->life->news = 0;
    if (!endpoint->closed)
        close_endpoint(endpoint);
}

void endpoint_abandon(struct endpoint *endpoint, enum fault fault)
{
    if (endpoint->life->out)
        out_drop(endpoint->life->out);
    endpoint->kind->lost(endpoint, fault);
    endpoint_notify(endpoint);
    close_endpoint(endpoint);
}

/* If the owner has failed the queue pair meanwhile, that it will not be connected is known. */
void endpoint_fail_to_connect(struct endpoint *endpoint, int error)
{
    bool is_known = endpoint->qp && !endpoint->by_hand && event_has_begun(endpoint->qp);

    if (endpoint->qp)
        qp_fail(&endpoint->qp->qp, &(struct fault_note){.fault = FAULT_LOST});
    if (!is_known)
        endpoint_notify_unreachable(endpoint, error);
    endpoint_abort(endpoint);
}

static void endpoint_on_time(struct timer *timer, uint64_t now_us)
{
    struct endpoint *endpoint = container_of(timer, struct endpoint, timer);

    endpoint_hold(endpoint);
    endpoint->kind->tick(endpoint, now_us);
    endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

int endpoint_begin(struct endpoint *endpoint, struct loop *loop, const struct endpoint_kind *kind)
{
    endpoint->loop = loop;
    endpoint->kind = kind;
    endpoint->timer.fire = endpoint_on_time;
    if (reactor_add_timer(&loop->reactor, &endpoint->timer))
        return -ENOMEM;
    endpoint_hold(endpoint);
    loop_add(endpoint);
    return 0;
}

/* --- for other files ---------------------------------------------------------------------------------------- */

/* Returns the endpoint if it is of this loop, which the caller has locked: then it stays. *moved: it is of another. */
static struct endpoint *endpoint_here(struct rddp_qp *qp, const struct loop *loop, bool *moved)
{
    struct endpoint *endpoint;

    spin_lock(&qp->spin);
    endpoint = qp->endpoint;
    *moved = endpoint && endpoint->loop != loop;
    spin_unlock(&qp->spin);
    return *moved ? NULL : endpoint;
}

/* For the application, who may end the connection now: what was withheld leaves before. */
static void hold_and_settle(struct endpoint *endpoint)
{
    struct loop *loop = endpoint->loop;

    endpoint_hold(endpoint);
    if (loop->owing != endpoint)
        return;
    loop->owing = NULL;
    if (endpoint->kind->release(endpoint))
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
}

/* While one thread waits for a loop lock, others may reset the queue pair and connect it again, on another loop. */
struct endpoint *qp_hold(struct rddp_qp *qp)
{
    struct endpoint *endpoint = NULL;
    struct loop *loop;
    bool moved = true;

    while (moved && (loop = qp->loop)) {
        loop_lock(loop);
        endpoint = endpoint_here(qp, loop, &moved);
        if (endpoint)
            hold_and_settle(endpoint);
        else
            loop_unlock(loop); /* from here on another thread may connect the queue pair */
    }
    return endpoint;
}

void qp_release(struct endpoint *endpoint)
{
    struct loop *loop = endpoint->loop;

    endpoint_release(endpoint, ENDPOINT_DRIVER);
    loop_unlock(loop);
}

struct endpoint *qp_hold_or_lock(struct rddp_qp *qp)
{
    struct endpoint *endpoint;

    while (!(endpoint = qp_hold(qp))) {
        pthread_mutex_lock(&qp->context->lock);
        if (!qp->endpoint)
            break;
        pthread_mutex_unlock(&qp->context->lock); /* it has got one meanwhile */
    }
    return endpoint;
}

void qp_release_or_unlock(struct rddp_qp *qp, struct endpoint *endpoint)
{
    if (endpoint)
        qp_release(endpoint);
    else
        pthread_mutex_unlock(&qp->context->lock);
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
