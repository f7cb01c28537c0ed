/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loop.c - a loop, its lock, and the buffers and endpoints of its driver. */
#include "endpoint/loop.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "loop/cancel.h"
#include "loop/descriptors.h"

/* Leave the lock to a poller whose turn was refused: yield the CPU, then sleep, each at most this many times. */
enum { ASIDE_YIELDS = 10, ASIDE_STEPS = 10, ASIDE_NS = 20000 };

/* --- endpoints -----------------------------------------------------------------------------------------------------
 */

static void loop_list_remove(struct endpoint *endpoint)
{
    *endpoint->before = endpoint->next;
    if (endpoint->next)
        endpoint->next->before = endpoint->before;
}

static void loop_list_insert(struct endpoint *endpoint, struct endpoint **list)
{
    endpoint->next = *list;
    endpoint->before = list;
    if (endpoint->next)
        endpoint->next->before = &endpoint->next;
    *list = endpoint;
}

void loop_add(struct endpoint *endpoint)
{
    loop_list_insert(endpoint, &endpoint->loop->endpoints);
}

void loop_retire(struct endpoint *endpoint)
{
    loop_list_remove(endpoint);
    loop_list_insert(endpoint, &endpoint->loop->dead);
}

/* Frees the closed endpoints. The caller has locked the loop and holds none of them. */
static void free_dead(struct loop *loop)
{
    struct endpoint *endpoint;

    while ((endpoint = loop->dead)) {
        loop_list_remove(endpoint);
        free(endpoint);
    }
}

/* --- the lock -------------------------------------------------------------------------------------------------------
 */

/* Is there a poller to wait for? *refused: who is noted, which may be this thread. */
static bool has_refused(const struct loop *loop, const struct cancel **refused)
{
    *refused = atomic_load_explicit(&loop->polled.refused, memory_order_relaxed);
    return *refused && *refused != &cancel_mine;
}

/* Polls never wait, and threads that take the lock again at once would leave it free for moments that they miss. A
 * poller that does not come again, or is this thread, delays no other. */
static void step_aside(struct loop *loop)
{
    const struct timespec step = {.tv_nsec = ASIDE_NS};
    const struct cancel *refused;

    cancel_hold();
    for (int i = 0; has_refused(loop, &refused) && i < ASIDE_YIELDS + ASIDE_STEPS; i++)
        if (i < ASIDE_YIELDS)
            sched_yield();
        else
            nanosleep(&step, NULL);
    if (refused) /* not one that was refused since */
        atomic_compare_exchange_strong(&loop->polled.refused, &refused, NULL);
    cancel_release();
}

void loop_lock(struct loop *loop)
{
    if (atomic_load_explicit(&loop->polled.refused, memory_order_relaxed))
        step_aside(loop);
    loop_lock_to_work(loop);
}

void loop_lock_to_work(struct loop *loop)
{
    atomic_fetch_add_explicit(&loop->wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&loop->lock);
    atomic_fetch_sub_explicit(&loop->wanted, 1, memory_order_relaxed);
    atomic_store_explicit(&loop->polled.is_turn, true, memory_order_relaxed);
    cancel_hold();
}

bool loop_trylock(struct loop *loop)
{
    if (pthread_mutex_trylock(&loop->lock))
        return false;
    cancel_hold();
    return true;
}

void loop_unlock(struct loop *loop)
{
    free_dead(loop);
    pthread_mutex_unlock(&loop->lock);
    cancel_release();
}

void loop_unlock_inherited(struct loop *loop)
{
    pthread_mutex_unlock(&loop->lock);
    cancel_release();
}

void loop_wake(struct loop *loop)
{
    int fd = __atomic_load_n(&loop->wake.fd, __ATOMIC_RELAXED);
    uint64_t one = 1;
    ssize_t written;

    if (fd < 0 || !descriptors_are_ours()) /* the number may be that of a file of the program */
        return;
    cancel_hold();
    /* The write can only fail if the counter is full; then the eventfd is readable anyway. */
    written = write(fd, &one, sizeof(one));
    assert(written > 0 || errno == EAGAIN || !descriptors_are_ours());
    cancel_release();
}

/* Once asked, a loop need not be woken again. */
void loops_ask_for_spans(struct rddp_context *context)
{
    for (uint32_t i = 0; i < context->loops; i++)
        if (!atomic_exchange(&context->loop[i].spans_wanted, true))
            loop_wake(&context->loop[i]);
}

bool loop_is_relied_on(const struct loop *loop)
{
    const struct rddp_context *context = loop->context;

    return atomic_load(&context->armed) &&
           atomic_load(&context->armings) != atomic_load_explicit(&loop->polled.armings, memory_order_relaxed);
}

bool loop_has_sleepers(const struct loop *loop)
{
    uint32_t sleepers = atomic_load(&loop->batch.sleepers), threads = !loop->context->manual;

    return sleepers > threads || (threads && !atomic_load(&loop->parked));
}

bool loop_is_asked(const struct loop *loop)
{
    return loop->arrivals || loop->spans_wanted || loop->receives_posted;
}

/* A poller leaves to the thread what the thread was woken for. */
static void on_wake(struct watch *watch, uint32_t events)
{
    struct loop *loop = container_of(watch, struct loop, wake);

    (void)events;
    if (loop->context->manual || loop->batch.watch != BATCH_WOKEN)
        loop_clear_wake(loop);
}

void loop_clear_wake(struct loop *loop)
{
    uint64_t count;
    ssize_t got = read(loop->wake.fd, &count, sizeof(count));

    assert(got > 0 || errno == EAGAIN || !descriptors_are_ours());
}

/* --- begin and end -------------------------------------------------------------------------------------------------
 */

static int open_wake(struct loop *loop)
{
    loop->wake = (struct watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_wake};
    return loop->wake.fd < 0 ? -EMFILE : reactor_watch(&loop->reactor, &loop->wake, EPOLLIN);
}

static void close_wake(struct loop *loop)
{
    if (loop->wake.fd >= 0)
        descriptor_close(loop->wake.fd);
    loop->wake.fd = -1;
}

int loop_init(struct loop *loop, struct rddp_context *context)
{
    static_assert(sizeof(struct out) <= OUT_BUFFER_AT, "the buffer would lie in the struct");
    int error;

    *loop = (struct loop){.context = context, .reader = &context->readers[loop - context->loop], .wake.fd = -1};
    loop->outs.size = OUT_BUFFER_AT + OUT_BUFFER;
    loop->carries.size = STAGE_OCTETS + WIRE_UNIT_MAX; /* as much as the stage can hold of one connection */
    waiting_init(&loop->waiting);
    pthread_mutex_init(&loop->lock, NULL);
    error = reactor_init(&loop->reactor);
    if (!error)
        error = open_wake(loop);
    loop->stage.buffer = aligned_alloc(PAGE, (STAGE_OCTETS + WIRE_UNIT_MAX + PAGE - 1) / PAGE * PAGE);
    return error || loop->stage.buffer ? error : -ENOMEM;
}

void loop_fini(struct loop *loop)
{
    reactor_fini(&loop->reactor);
    close_wake(loop);
    pool_fini(&loop->outs);
    pool_fini(&loop->carries);
    free(loop->stage.buffer);
    pthread_mutex_destroy(&loop->lock);
}

struct loop *loop_next(struct rddp_context *context)
{
    uint32_t next = 0;

    if (context->loops > 1)
        next = atomic_fetch_add_explicit(&context->next_loop, 1, memory_order_relaxed) % context->loops;
    return &context->loop[next];
}

void loop_leave(struct loop *loop)
{
    reactor_leave(&loop->reactor);
    close_wake(loop);
}

int loop_renew(struct loop *loop)
{
    int error = reactor_renew(&loop->reactor);

    return error ? error : open_wake(loop);
}

void loop_forget_descriptors(struct loop *loop)
{
    reactor_forget_descriptors(&loop->reactor);
    __atomic_store_n(&loop->wake.fd, -1, __ATOMIC_RELAXED); /* loop_wake() reads it without the lock */
}
