/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* thread.c - who does the work: a thread, or an application that polls.
 *
 * Two workers at one loop would only get in each other's way. So a thread that finds a poller at work several times in
 * a row parks: it leaves arrivals to the poller and looks back now and then. When its looks find work that nobody does,
 * it leaves the park, and arrivals wake it again. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "endpoint/objects.h"
#include "drive/arrivals.h"
#include "drive/doorbell_batch.h"

enum {
    HOT_TURNS = 16,       /* poll the socket that spoke last this many times before polling all */
    SERVED = 4,           /* wake-ups in a row that found a poller at work: the thread parks */
    MISSED = 3,           /* looks in a row that found work and no poller: it leaves the park */
    HERE_US = 5,          /* a poller whose last poll is no older than this is still at work */
    LOOK_US = 600,        /* between two looks from the park: each costs a poller some microseconds */
    IDLE_US = 3000,       /* without a poll and without work for this long the thread leaves the park */
    LONG_POLL_NS = 20000, /* a poll that takes longer than HERE_US is looked at in steps of this */
    LET_IN_NS = 20000,    /* leave the token to a thread that waits, in steps of this, ... */
    LET_IN_STEPS = 100,   /* ... at most so many */
    TIMER_SLACK_NS = 1000 /* with the kernel's default each sleep is 50 us longer */
};

/* --- one round ------------------------------------------------------------------------------------------------- */

void progress_work(struct progress *progress)
{
    loop_run(&progress->loop, &progress->wanted);
    arrivals_adopt(progress); /* last: the round may have silenced the bell that told of them */
}

void progress_poll(struct progress *progress)
{
    struct endpoint *hot = progress->hot;

    if (!progress->context->manual) /* otherwise there is no thread that wants to know */
        atomic_store_explicit(&progress->polled_us, loop_now_us(), memory_order_relaxed);
    if (hot && !hot->blocked && ++progress->hot_turns % HOT_TURNS)
        hot->kind->poll(hot);
    else
        progress_work(progress);
}

/* --- the thread ------------------------------------------------------------------------------------------------ */

/* What the thread has seen of pollers. */
struct habit {
    unsigned served;    /* wake-ups in a row that found a poller at work */
    uint64_t polled_us; /* when the poller that was counted last had polled */
    unsigned missed;    /* looks in a row that found work and no poller */
};

static uint64_t since_poll_us(const struct progress *progress)
{
    return loop_now_us() - atomic_load_explicit(&progress->polled_us, memory_order_relaxed);
}

/* A CQ of the context is armed: its owner may sleep and relies on the thread. */
static bool is_armed(const struct progress *progress)
{
    return atomic_load(&progress->context->armed);
}

static bool has_work(struct progress *progress)
{
    return progress->arrivals || loop_sleep(&progress->loop, 0);
}

/* The time of the last poll also shows a poller that this thread has just displaced from its processor. */
static bool poller_is_here(struct progress *progress)
{
    if (is_armed(progress))
        return false;
    if (since_poll_us(progress) <= HERE_US || !progress_try(progress))
        return true;
    progress_give(progress);
    return false;
}

/* The thread that gives a mutex back usually takes it again at once. So it leaves its processor until one of those who
 * want the token has it; but not for long, in case that thread hardly ever runs. */
static void let_another_in(const struct progress *progress)
{
    const struct timespec step = {.tv_nsec = LET_IN_NS};
    uint32_t waiting = atomic_load_explicit(&progress->wanted, memory_order_relaxed);

    if (waiting)
        sched_yield();
    for (int i = 0; i < LET_IN_STEPS; i++) {
        uint32_t still = atomic_load_explicit(&progress->wanted, memory_order_relaxed);

        if (!still || still < waiting)
            return;
        nanosleep(&step, NULL);
    }
}

/* A short poll counts once, because its poller may have stopped right before an arrival, which then must not wait for a
 * look. A long one counts as long as it lasts. */
static bool is_new_poll(const struct progress *progress, struct habit *habit)
{
    uint64_t polled_us = atomic_load_explicit(&progress->polled_us, memory_order_relaxed);

    if (polled_us == habit->polled_us)
        return false;
    habit->polled_us = polled_us;
    return true;
}

static void do_round(struct progress *progress)
{
    progress_take(progress);
    progress_work(progress);
    progress_give(progress);
    let_another_in(progress);
}

static void sleep_and_serve(struct progress *progress, struct habit *habit)
{
    const struct timespec poll = {.tv_nsec = LONG_POLL_NS};

    loop_sleep(&progress->loop, -1);
    bells_ring(progress);
    if (poller_is_here(progress)) {
        bool is_long = since_poll_us(progress) > HERE_US, is_new = is_new_poll(progress, habit);

        if (is_long && !is_new)
            nanosleep(&poll, NULL);
        if (is_long || is_new)
            habit->served++;
        progress_hush(progress); /* or the eventfd wakes us again at once */
        if (!progress->arrivals)
            return;
    }
    do_round(progress);
    habit->served = 0;
}

static void thread_rest(struct progress *progress)
{
    const struct timespec look = {.tv_nsec = LOOK_US * 1000L};
    struct pollfd fd[] = {{.fd = progress->wake.fd, .events = POLLIN},
                          {.fd = progress->bells.timer.fd, .events = POLLIN}};

    if (ppoll(fd, countof(fd), &look, NULL) <= 0)
        return;
    if (fd[0].revents)
        progress_hush(progress);
    if (fd[1].revents)
        progress->bells.timer.ready(&progress->bells.timer, EPOLLIN);
}

static void leave_park(struct progress *progress, struct habit *habit)
{
    *habit = (struct habit){0};
    atomic_store(&progress->parked, false);
}

static void thread_look(struct progress *progress, struct habit *habit)
{
    if (is_armed(progress)) {
        leave_park(progress, habit);
    } else if (since_poll_us(progress) <= HERE_US) {
        habit->missed = 0;
    } else if (!has_work(progress)) {
        if (since_poll_us(progress) > IDLE_US)
            leave_park(progress, habit);
    } else {
        do_round(progress);
        if (++habit->missed == MISSED)
            leave_park(progress, habit);
    }
}

static void *thread_run(void *arg)
{
    struct progress *progress = arg;
    struct habit habit = {0};

    prctl(PR_SET_TIMERSLACK, (unsigned long)TIMER_SLACK_NS);
    while (!atomic_load(&progress->context->stopping)) {
        if (habit.served < SERVED) {
            sleep_and_serve(progress, &habit);
            continue;
        }
        /* A CQ armed after this wakes us; one armed before is seen below. */
        atomic_store(&progress->parked, true);
        if (!is_armed(progress))
            thread_rest(progress);
        thread_look(progress, &habit);
    }
    return NULL;
}

/* Signals are the application's: none is ever handled on our thread, but SIGBUS, which says that volatile memory has
 * gone and comes to whoever touches it. */
int progress_start(struct progress *progress)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&progress->thread, NULL, thread_run, progress);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

void progress_stop(struct progress *progress)
{
    progress_wake(progress);
    pthread_join(progress->thread, NULL);
}
