/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.c - a loop, its token, and the buffers and endpoints of its driver. */
#include "endpoint/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "loop/cancel.h"

/* --- endpoints -----------------------------------------------------------------------------------------------------
 */

static void progress_take_out(struct endpoint *endpoint)
{
    *endpoint->before = endpoint->next;
    if (endpoint->next)
        endpoint->next->before = endpoint->before;
}

static void progress_put_in(struct endpoint *endpoint, struct endpoint **list)
{
    endpoint->next = *list;
    endpoint->before = list;
    if (endpoint->next)
        endpoint->next->before = &endpoint->next;
    *list = endpoint;
}

void progress_add(struct endpoint *endpoint)
{
    progress_put_in(endpoint, &endpoint->progress->endpoints);
}

void progress_bury(struct endpoint *endpoint)
{
    progress_take_out(endpoint);
    progress_put_in(endpoint, &endpoint->progress->dead);
}

/* Frees the closed endpoints. The caller has the token and holds none of them. */
static void free_dead(struct progress *progress)
{
    struct endpoint *endpoint;

    while ((endpoint = progress->dead)) {
        progress_take_out(endpoint);
        free(endpoint);
    }
}

/* --- the token ------------------------------------------------------------------------------------------------------
 */

void progress_take(struct progress *progress)
{
    atomic_fetch_add_explicit(&progress->wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&progress->token);
    atomic_fetch_sub_explicit(&progress->wanted, 1, memory_order_relaxed);
    cancel_hold();
}

bool progress_try(struct progress *progress)
{
    if (pthread_mutex_trylock(&progress->token))
        return false;
    cancel_hold();
    return true;
}

void progress_give(struct progress *progress)
{
    free_dead(progress);
    pthread_mutex_unlock(&progress->token);
    cancel_release();
}

void progress_inherit(struct progress *progress)
{
    pthread_mutex_unlock(&progress->token);
    cancel_release();
}

void progress_wake(struct progress *progress)
{
    uint64_t one = 1;

    cancel_hold();
    /* The write can only fail if the counter is full; then the eventfd is readable anyway. */
    if (write(progress->wake.fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        abort();
    cancel_release();
}

static void on_wake(struct watch *watch, uint32_t events)
{
    (void)events;
    progress_hush(container_of(watch, struct progress, wake));
}

void progress_hush(struct progress *progress)
{
    uint64_t count;

    if (read(progress->wake.fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        abort();
}

/* --- begin and end -------------------------------------------------------------------------------------------------
 */

static int open_wake(struct progress *progress)
{
    progress->wake = (struct watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_wake};
    return progress->wake.fd < 0 ? -EMFILE : loop_watch(&progress->loop, &progress->wake, EPOLLIN);
}

static void close_wake(struct progress *progress)
{
    if (progress->wake.fd >= 0)
        close(progress->wake.fd);
    progress->wake.fd = -1;
}

int progress_init(struct progress *progress, struct rddp_context *context)
{
    static_assert(sizeof(struct out) <= OUT_BUFFER_AT, "the buffer would lie in the struct");
    static_assert((int)OUT_SPANS == (int)TCP_SPANS, "what is gathered leaves in one call");
    int error;

    *progress =
        (struct progress){.context = context, .visit = &context->visits[progress - context->progress], .wake.fd = -1};
    progress->outs.size = OUT_BUFFER_AT + OUT_BUFFER;
    progress->carries.size = STAGE_OCTETS + WIRE_UNIT_MAX; /* as much as the stage can hold of one connection */
    pthread_mutex_init(&progress->token, NULL);
    error = loop_init(&progress->loop);
    if (!error)
        error = open_wake(progress);
    progress->stage.buffer = aligned_alloc(PAGE, (STAGE_OCTETS + WIRE_UNIT_MAX + PAGE - 1) / PAGE * PAGE);
    return error || progress->stage.buffer ? error : -ENOMEM;
}

void progress_fini(struct progress *progress)
{
    loop_fini(&progress->loop);
    close_wake(progress);
    pool_fini(&progress->outs);
    pool_fini(&progress->carries);
    free(progress->stage.buffer);
    pthread_mutex_destroy(&progress->token);
}

struct progress *progress_next(struct rddp_context *context)
{
    uint32_t next = 0;

    if (context->loops > 1)
        next = atomic_fetch_add_explicit(&context->next_loop, 1, memory_order_relaxed) % context->loops;
    return &context->progress[next];
}

void progress_leave(struct progress *progress)
{
    loop_leave(&progress->loop);
    close_wake(progress);
}

int progress_renew(struct progress *progress)
{
    int error = loop_renew(&progress->loop);

    return error ? error : open_wake(progress);
}
