/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reactor.c - epoll and timers; the only code that reads a clock. */
#include "loop/reactor.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/container.h"
#include "base/spin.h"
#include "loop/descriptors.h"

enum {
    NOTHING = 64, /* looks in vain, before one asks whether the set is still ours */
    /* What the set does not take back is asked that often, and less often after each look in vain. */
    AGAIN_US = 1000,
    AGAIN_MAX_US = 100000,
};

uint64_t reactor_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t reactor_now_us(void)
{
    return reactor_now_ns() / 1000;
}

uint64_t reactor_tick_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Streams may be opened before the first context, and after the program has closed the descriptors of all. */
bool reactor_is_ours(const struct reactor *reactor)
{
    return descriptors_losses() == reactor->losses;
}

/* --- timers ------------------------------------------------------------------------------------------------------ */

/* Moves the expiry of the descriptor only to earlier times: a timer that was moved later costs one empty wake-up, not a
 * system call. */
static void arm(struct reactor *reactor)
{
    uint64_t at_us = timers_first_us(&reactor->timers);
    struct itimerspec when = {.it_value = {0, 0}};

    atomic_store_explicit(&reactor->first_us, at_us, memory_order_relaxed);
    if (reactor->is_attended || at_us >= reactor->armed_us || !reactor_is_ours(reactor))
        return;
    reactor->armed_us = at_us;
    when.it_value.tv_sec = (time_t)(at_us / 1000000);
    when.it_value.tv_nsec = (long)(at_us % 1000000 * 1000) + 1; /* never all zero, which would disarm the timer */
    timerfd_settime(reactor->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int reactor_add_timer(struct reactor *reactor, struct timer *timer)
{
    int error;

    pthread_mutex_lock(&reactor->timer_lock);
    error = timers_add(&reactor->timers, timer);
    pthread_mutex_unlock(&reactor->timer_lock);
    return error;
}

void reactor_forget_timer(struct reactor *reactor, struct timer *timer)
{
    pthread_mutex_lock(&reactor->timer_lock);
    timers_forget(&reactor->timers, timer);
    pthread_mutex_unlock(&reactor->timer_lock);
}

static void move_timer(struct reactor *reactor, struct timer *timer, uint64_t at_us)
{
    timers_set(&reactor->timers, timer, at_us);
    if (at_us != UINT64_MAX)
        arm(reactor);
}

/* Checks without the lock whether the timer is already set to this time. If it is about to fire, its callback checks
 * everything again. */
void reactor_set_timer(struct reactor *reactor, struct timer *timer, uint64_t at_us)
{
    if (timer->place ? timer->at_us == at_us : at_us == UINT64_MAX)
        return;
    pthread_mutex_lock(&reactor->timer_lock);
    move_timer(reactor, timer, at_us);
    pthread_mutex_unlock(&reactor->timer_lock);
}

static void fire_due(struct watch *watch, uint32_t events)
{
    struct reactor *reactor = container_of(watch, struct reactor, timer_watch);
    uint64_t now_us = reactor_now_us(), expirations;
    struct timer *timer;
    ssize_t got;

    (void)events;
    pthread_mutex_lock(&reactor->timer_lock);
    got = read(reactor->timer_fd, &expirations, sizeof(expirations));
    assert(got > 0 || errno == EAGAIN || !reactor_is_ours(reactor));
    reactor->armed_us = UINT64_MAX;
    while ((timer = timers_take(&reactor->timers, now_us))) {
        pthread_mutex_unlock(&reactor->timer_lock);
        timer->fire(timer, now_us);
        pthread_mutex_lock(&reactor->timer_lock);
    }
    arm(reactor);
    pthread_mutex_unlock(&reactor->timer_lock);
}

bool reactor_has_due(const struct reactor *reactor)
{
    return atomic_load_explicit(&reactor->first_us, memory_order_relaxed) <= reactor_now_us();
}

static void decide_attended(struct reactor *reactor)
{
    reactor->is_attended = reactor->has_attendant && !reactor->sleepers;
    arm(reactor);
}

void reactor_attend(struct reactor *reactor, bool attended)
{
    pthread_mutex_lock(&reactor->timer_lock);
    reactor->has_attendant = attended;
    decide_attended(reactor);
    pthread_mutex_unlock(&reactor->timer_lock);
}

void reactor_expect_sleeper(struct reactor *reactor)
{
    pthread_mutex_lock(&reactor->timer_lock);
    reactor->sleepers++;
    decide_attended(reactor);
    pthread_mutex_unlock(&reactor->timer_lock);
}

void reactor_end_sleeper(struct reactor *reactor)
{
    pthread_mutex_lock(&reactor->timer_lock);
    reactor->sleepers--;
    decide_attended(reactor);
    pthread_mutex_unlock(&reactor->timer_lock);
}

/* --- readiness ----------------------------------------------------------------------------------------------- */

/* A set with the number of ours may be the program's, which would be shown our addresses, or lose its own descriptors.
 */
static int change_set(const struct reactor *reactor, int how, struct watch *watch)
{
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};

    if (!reactor_is_ours(reactor))
        return -EBADF;
    return epoll_ctl(reactor->epoll_fd, how, watch->fd, &event) ? -errno : 0;
}

int reactor_watch(struct reactor *reactor, struct watch *watch, uint32_t events)
{
    watch->events = events;
    return change_set(reactor, EPOLL_CTL_ADD, watch);
}

static void forget_shut_out(struct reactor *reactor, struct watch *watch)
{
    struct watch **at = &reactor->shut_out;

    if (!watch->is_shut_out)
        return;
    while (*at && *at != watch)
        at = &(*at)->next;
    if (*at)
        *at = watch->next;
    watch->is_shut_out = false;
}

static void reactor_put_back(struct reactor *reactor, struct watch *watch)
{
    int error = change_set(reactor, EPOLL_CTL_ADD, watch);

    watch->rests = false;
    watch->is_shut_out = error == -ENOMEM || error == -ENOSPC;
    if (!watch->is_shut_out)
        return;
    watch->next = reactor->shut_out;
    reactor->shut_out = watch;
}

/* Not later than they would be asked anyway. */
static void ask_after(struct reactor *reactor, uint64_t again_us)
{
    uint64_t at_us = reactor_now_us() + again_us;

    reactor->again_us = again_us;
    if (!reactor->again.place || reactor->again.at_us > at_us)
        move_timer(reactor, &reactor->again, at_us);
}

static uint64_t longer_us(uint64_t again_us)
{
    return again_us < AGAIN_MAX_US / 2 ? 2 * again_us : AGAIN_MAX_US;
}

static void reactor_ask(struct reactor *reactor, struct watch *watch)
{
    struct pollfd fd = {.fd = watch->fd, .events = (short)watch->events}; /* EPOLLIN and the like are POLLIN ... */

    if (poll(&fd, 1, 0) > 0)
        reactor->event[reactor->count++] = (struct epoll_event){(uint32_t)fd.revents, {.ptr = watch}};
}

/* Timers are last in a round: reactor_run() goes on with what this finds. Who is asked comes behind the others then. */
static void ask_shut_out(struct timer *timer, uint64_t now_us)
{
    struct reactor *reactor = container_of(timer, struct reactor, again);
    struct watch *watch, *next, **end = &watch;
    int before;

    (void)now_us;
    if (reactor->at == reactor->count)
        reactor->at = reactor->count = 0;
    before = reactor->count;
    pthread_mutex_lock(&reactor->timer_lock);
    watch = reactor->shut_out;
    for (reactor->shut_out = NULL; watch && reactor->count < REACTOR_EVENTS; watch = next) {
        next = watch->next;
        reactor_put_back(reactor, watch);
        if (watch->is_shut_out)
            reactor_ask(reactor, watch);
    }
    while (*end)
        end = &(*end)->next;
    *end = reactor->shut_out;
    reactor->shut_out = watch;
    if (watch)
        ask_after(reactor, reactor->count > before ? AGAIN_US : longer_us(reactor->again_us));
    pthread_mutex_unlock(&reactor->timer_lock);
}

void reactor_rest(struct reactor *reactor, struct watch *watch)
{
    if (!watch->rests)
        reactor_unwatch(reactor, watch);
    watch->rests = true;
}

void reactor_rouse(struct reactor *reactor, struct watch *watch)
{
    if (!watch->rests)
        return;
    pthread_mutex_lock(&reactor->timer_lock);
    reactor_put_back(reactor, watch);
    if (watch->is_shut_out)
        ask_after(reactor, AGAIN_US);
    pthread_mutex_unlock(&reactor->timer_lock);
}

/* Another thread may be trying to put back what is shut out. */
void reactor_rewatch(struct reactor *reactor, struct watch *watch, uint32_t events)
{
    if (watch->events == events)
        return;
    pthread_mutex_lock(&reactor->timer_lock);
    watch->events = events;
    if (watch->rests)
        reactor_put_back(reactor, watch);
    else if (!watch->is_shut_out)
        (void)change_set(reactor, EPOLL_CTL_MOD, watch);
    if (watch->is_shut_out)
        ask_after(reactor, AGAIN_US);
    pthread_mutex_unlock(&reactor->timer_lock);
}

void reactor_unwatch(struct reactor *reactor, struct watch *watch)
{
    pthread_mutex_lock(&reactor->timer_lock);
    forget_shut_out(reactor, watch);
    pthread_mutex_unlock(&reactor->timer_lock);
    (void)change_set(reactor, EPOLL_CTL_DEL, watch);
    for (int i = reactor->at; i < reactor->count; i++)
        if (reactor->event[i].data.ptr == watch)
            reactor->event[i].data.ptr = NULL;
}

/* epoll_wait() would put the event that it shows behind all others: connections that come one after the other are to be
 * seen in their order. */
static bool reactor_poll(struct reactor *reactor, const struct timespec *timeout)
{
    enum { CLOSED = POLLHUP | POLLERR | POLLNVAL };
    struct pollfd fd[] = {{.fd = reactor->epoll_fd, .events = POLLIN},
                          {.fd = reactor->is_guarded ? descriptors_sentinel() : -1}};

    if (fd[0].fd >= 0 && ppoll(fd, 2, timeout, NULL) <= 0)
        return false;
    if (fd[0].fd < 0 || (fd[0].revents | fd[1].revents) & CLOSED)
        reactor->is_cut = true;
    return true;
}

bool reactor_sleep(struct reactor *reactor, int timeout_ms)
{
    return reactor_sleep_us(reactor, timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000);
}

bool reactor_sleep_us(struct reactor *reactor, uint64_t timeout_us)
{
    const struct timespec timeout = {(time_t)(timeout_us / 1000000), (long)(timeout_us % 1000000) * 1000};

    return reactor_poll(reactor, timeout_us == UINT64_MAX ? NULL : &timeout);
}

uint64_t reactor_spin(uint64_t end_us)
{
    uint64_t now_us;

    while ((now_us = reactor_now_us()) < end_us)
        spin_pause();
    return now_us;
}

/* The descriptor does not show timers that are attended to, and may be the program's by now. */
static bool has_unshown(const struct reactor *reactor)
{
    return reactor->is_attended && reactor->count < REACTOR_EVENTS && reactor_has_due(reactor) &&
           reactor_is_ours(reactor);
}

/* Timers run after everything else: what they wait for may have arrived, but was not read by a thread that had to wait
 * for a processor. */
static void put_timers_last(struct reactor *reactor)
{
    for (int i = 0; i < reactor->count; i++) {
        if (reactor->event[i].data.ptr == &reactor->timer_watch) {
            struct epoll_event timers = reactor->event[i];

            memmove(&reactor->event[i], &reactor->event[i + 1], (size_t)(reactor->count - 1 - i) * sizeof(timers));
            reactor->event[reactor->count - 1] = timers;
            return;
        }
    }
    if (has_unshown(reactor))
        reactor->event[reactor->count++] = (struct epoll_event){EPOLLIN, {.ptr = &reactor->timer_watch}};
}

/* What a set shows that the program has opened at the number of ours is not ours. One that shows nothing for long may
 * be such. */
static void take_events(struct reactor *reactor)
{
    int most = REACTOR_EVENTS - reactor->is_attended; /* a place is for the timers then */

    reactor->at = 0;
    reactor->count = epoll_wait(reactor->epoll_fd, reactor->event, most, 0);
    if (reactor->count < 0 && errno == EINTR)
        reactor->count = 0;
    if (reactor->count < 0 || ((reactor->count || !(++reactor->nothing % NOTHING)) && !reactor_is_ours(reactor))) {
        reactor->is_cut = true;
        reactor->count = 0;
    }
    put_timers_last(reactor);
}

int reactor_run(struct reactor *reactor, const _Atomic uint32_t *wanted)
{
    int called = 0;

    if (reactor->at == reactor->count)
        take_events(reactor);
    while (reactor->at < reactor->count) {
        const struct epoll_event event = reactor->event[reactor->at++];
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

static int open_descriptors(struct reactor *reactor)
{
    reactor->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    reactor->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    reactor->timer_watch = (struct watch){.fd = reactor->timer_fd, .ready = fire_due};
    if (reactor->epoll_fd < 0 || reactor->timer_fd < 0 || reactor_watch(reactor, &reactor->timer_watch, EPOLLIN))
        return -EMFILE;
    return 0;
}

static void close_descriptor(const struct reactor *reactor, _Atomic int *fd)
{
    if (*fd >= 0 && reactor_is_ours(reactor))
        close(*fd);
    *fd = -1;
}

int reactor_init(struct reactor *reactor)
{
    int error;

    *reactor =
        (struct reactor){.armed_us = UINT64_MAX, .first_us = UINT64_MAX, .parents_fd = -1, .again.fire = ask_shut_out};
    reactor->losses = descriptors_losses();
    reactor->is_guarded = descriptors_sentinel() >= 0 && descriptors_are_ours();
    pthread_mutex_init(&reactor->timer_lock, NULL);
    error = open_descriptors(reactor);
    return error ? error : reactor_add_timer(reactor, &reactor->again);
}

void reactor_fini(struct reactor *reactor)
{
    close_descriptor(reactor, &reactor->epoll_fd);
    close_descriptor(reactor, &reactor->timer_fd);
    close_descriptor(reactor, &reactor->parents_fd);
    timers_fini(&reactor->timers);
    pthread_mutex_destroy(&reactor->timer_lock);
}

/* --- a child of fork() --------------------------------------------------------------------------------------- */

/* With descriptor -1 the calls that would change the parent's objects fail, as intended. */
void reactor_leave(struct reactor *reactor)
{
    if (reactor->parents_fd < 0) {
        reactor->parents_fd = reactor->epoll_fd;
        reactor->epoll_fd = -1;
    }
    close_descriptor(reactor, &reactor->epoll_fd);
    close_descriptor(reactor, &reactor->timer_fd);
    reactor->at = reactor->count = 0;
    reactor->shut_out = NULL;
    reactor->is_attended = reactor->has_attendant = false;
    reactor->armed_us = UINT64_MAX;
}

void reactor_forget_descriptors(struct reactor *reactor)
{
    reactor->epoll_fd = reactor->timer_fd = -1;
    pthread_mutex_lock(&reactor->timer_lock);
    reactor->shut_out = NULL; /* its owners do not end the watches */
    pthread_mutex_unlock(&reactor->timer_lock);
    reactor->at = reactor->count = 0;
}

int reactor_renew(struct reactor *reactor)
{
    int error = open_descriptors(reactor);

    if (!error && dup3(reactor->epoll_fd, reactor->parents_fd, O_CLOEXEC) < 0)
        error = -EMFILE;
    close_descriptor(reactor, &reactor->epoll_fd);
    if (error) {
        close_descriptor(reactor, &reactor->timer_fd);
        return error;
    }
    reactor->epoll_fd = reactor->parents_fd;
    reactor->parents_fd = -1;
    pthread_mutex_lock(&reactor->timer_lock);
    reactor->armed_us = UINT64_MAX; /* what was set meanwhile had nothing to arm */
    arm(reactor);
    pthread_mutex_unlock(&reactor->timer_lock);
    return 0;
}
