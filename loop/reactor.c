/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loop.c - epoll and a heap of timers; the only code that reads a clock. */
#include "loop/reactor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/container.h"
#include "base/spin.h"

uint64_t loop_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* --- timers: a binary heap, earliest first ------------------------------------------------------------------- */

static void put_timer(struct loop *loop, uint32_t place, struct timer *timer)
{
    loop->heap[place] = timer;
    timer->place = place;
}

static void sift_up(struct loop *loop, uint32_t place, struct timer *timer)
{
    while (place > 1 && loop->heap[place / 2]->at_us > timer->at_us) {
        put_timer(loop, place, loop->heap[place / 2]);
        place /= 2;
    }
    put_timer(loop, place, timer);
}

static void sift_down(struct loop *loop, uint32_t place, struct timer *timer)
{
    for (uint32_t child; (child = 2 * place) <= loop->timers; place = child) {
        if (child < loop->timers && loop->heap[child + 1]->at_us < loop->heap[child]->at_us)
            child++;
        if (loop->heap[child]->at_us >= timer->at_us)
            break;
        put_timer(loop, place, loop->heap[child]);
    }
    put_timer(loop, place, timer);
}

static void unset_timer(struct loop *loop, struct timer *timer)
{
    uint32_t place = timer->place;
    struct timer *last;

    if (!place)
        return;
    timer->place = 0;
    last = loop->heap[loop->timers--];
    if (last == timer)
        return;
    if (place > 1 && loop->heap[place / 2]->at_us > last->at_us)
        sift_up(loop, place, last);
    else
        sift_down(loop, place, last);
}

/* Moves the expiry of the descriptor only to earlier times: a timer that was moved later costs one empty wake-up, not a
 * system call. */
static void arm(struct loop *loop)
{
    uint64_t at_us = loop->timers ? loop->heap[1]->at_us : UINT64_MAX;
    struct itimerspec when = {.it_value = {0, 0}};

    if (at_us >= loop->armed_us)
        return;
    loop->armed_us = at_us;
    when.it_value.tv_sec = (time_t)(at_us / 1000000);
    when.it_value.tv_nsec = (long)(at_us % 1000000 * 1000) + 1; /* never all zero, which would disarm the timer */
    timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static int grow_heap(struct loop *loop)
{
    uint32_t space = 2 * loop->heap_capacity + 64;
    struct timer **heap = realloc(loop->heap, ((size_t)space + 1) * sizeof(*heap)); /* place 0 is not used */

    if (!heap)
        return -ENOMEM;
    loop->heap = heap;
    loop->heap_capacity = space;
    return 0;
}

int loop_add_timer(struct loop *loop, struct timer *timer)
{
    int error = 0;

    pthread_mutex_lock(&loop->timer_lock);
    timer->place = 0;
    if (loop->users == loop->heap_capacity)
        error = grow_heap(loop);
    loop->users += !error;
    pthread_mutex_unlock(&loop->timer_lock);
    return error;
}

void loop_forget_timer(struct loop *loop, struct timer *timer)
{
    pthread_mutex_lock(&loop->timer_lock);
    unset_timer(loop, timer);
    loop->users--;
    pthread_mutex_unlock(&loop->timer_lock);
}

/* Checks without the lock whether the timer is already set to this time. If it is about to fire, its callback checks
 * everything anew. */
void loop_set_timer(struct loop *loop, struct timer *timer, uint64_t at_us)
{
    if (timer->place ? timer->at_us == at_us : at_us == UINT64_MAX)
        return;
    pthread_mutex_lock(&loop->timer_lock);
    unset_timer(loop, timer);
    if (at_us != UINT64_MAX) {
        timer->at_us = at_us;
        loop->timers++;
        sift_up(loop, loop->timers, timer);
        arm(loop);
    }
    pthread_mutex_unlock(&loop->timer_lock);
}

static void fire_due(struct watch *watch, uint32_t events)
{
    struct loop *loop = container_of(watch, struct loop, timer_watch);
    uint64_t now_us = loop_now_us(), expirations;

    (void)events;
    pthread_mutex_lock(&loop->timer_lock);
    if (read(loop->timer_fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
        abort();
    loop->armed_us = UINT64_MAX;
    while (loop->timers && loop->heap[1]->at_us <= now_us) {
        struct timer *timer = loop->heap[1];

        unset_timer(loop, timer);
        pthread_mutex_unlock(&loop->timer_lock);
        timer->fire(timer, now_us);
        pthread_mutex_lock(&loop->timer_lock);
    }
    arm(loop);
    pthread_mutex_unlock(&loop->timer_lock);
}

/* --- readiness ----------------------------------------------------------------------------------------------- */

int loop_watch(struct loop *loop, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    watch->events = events;
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) ? -errno : 0;
}

void loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (watch->events == events)
        return;
    watch->events = events;
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
}

void loop_unwatch(struct loop *loop, struct watch *watch)
{
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    for (int i = loop->at; i < loop->count; i++)
        if (loop->event[i].data.ptr == watch)
            loop->event[i].data.ptr = NULL;
}

bool loop_sleep(const struct loop *loop, int timeout_ms)
{
    struct epoll_event event;

    return epoll_wait(loop->epoll_fd, &event, 1, timeout_ms) > 0;
}

uint64_t loop_spin(uint64_t end_us)
{
    uint64_t now_us;

    while ((now_us = loop_now_us()) < end_us)
        spin_pause();
    return now_us;
}

/* Timers run after everything else: what they wait for may have arrived, but was not read by a thread that had to wait
 * for a processor. */
static void put_timers_last(struct loop *loop)
{
    for (int i = 0; i + 1 < loop->count; i++) {
        if (loop->event[i].data.ptr == &loop->timer_watch) {
            struct epoll_event timers = loop->event[i];

            loop->event[i] = loop->event[loop->count - 1];
            loop->event[loop->count - 1] = timers;
            return;
        }
    }
}

int loop_run(struct loop *loop, const _Atomic uint32_t *wanted)
{
    int called = 0;

    if (loop->at == loop->count) {
        loop->at = 0;
        loop->count = epoll_wait(loop->epoll_fd, loop->event, LOOP_EVENTS, 0);
        if (loop->count < 0)
            loop->count = 0;
        put_timers_last(loop);
    }
    while (loop->at < loop->count) {
        const struct epoll_event event = loop->event[loop->at++];
        struct watch *watch = event.data.ptr;

        if (!watch)
            continue;
        watch->ready(watch, event.events);
        called++;
        if (atomic_load_explicit(wanted, memory_order_relaxed))
            break;
    }
    return called;
}

static int open_descriptors(struct loop *loop)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    loop->timer_watch = (struct watch){.fd = loop->timer_fd, .ready = fire_due};
    if (loop->epoll_fd < 0 || loop->timer_fd < 0 || loop_watch(loop, &loop->timer_watch, EPOLLIN))
        return -EMFILE;
    return 0;
}

static void close_descriptor(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int loop_init(struct loop *loop)
{
    *loop = (struct loop){.armed_us = UINT64_MAX, .parents_fd = -1};
    pthread_mutex_init(&loop->timer_lock, NULL);
    return open_descriptors(loop);
}

void loop_fini(struct loop *loop)
{
    close_descriptor(&loop->epoll_fd);
    close_descriptor(&loop->timer_fd);
    close_descriptor(&loop->parents_fd);
    free(loop->heap);
    loop->heap = NULL;
    pthread_mutex_destroy(&loop->timer_lock);
}

/* --- a child of fork() --------------------------------------------------------------------------------------- */

/* With descriptor -1 the calls that would change the parent's objects fail, as intended. */
void loop_leave(struct loop *loop)
{
    if (loop->parents_fd < 0) {
        loop->parents_fd = loop->epoll_fd;
        loop->epoll_fd = -1;
    }
    close_descriptor(&loop->epoll_fd);
    close_descriptor(&loop->timer_fd);
    loop->at = loop->count = 0;
    loop->armed_us = UINT64_MAX;
}

int loop_renew(struct loop *loop)
{
    int error = open_descriptors(loop);

    if (!error && dup3(loop->epoll_fd, loop->parents_fd, O_CLOEXEC) < 0)
        error = -EMFILE;
    close_descriptor(&loop->epoll_fd);
    if (error) {
        close_descriptor(&loop->timer_fd);
        return error;
    }
    loop->epoll_fd = loop->parents_fd;
    loop->parents_fd = -1;
    return 0;
}
