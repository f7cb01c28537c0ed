/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* thread.c - who does the work: a thread, or an application that polls.
 *
 * Two workers at one loop would only get in each other's way. So a thread that finds a poller at work several times in
 * a row parks: it leaves arrivals to the poller and looks back now and then. When its looks find work that is left
 * undone, or a CQ is armed, it leaves the park, and arrivals wake it again. */
#include "drive/thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/spin.h"
#include "endpoint/objects.h"
#include "loop/descriptors.h"
#include "drive/arrivals.h"
#include "drive/closed.h"
#include "drive/doorbell_batch.h"
#include "drive/receives.h"
#include "endpoint/reclaim.h"

enum {
    HOT_TURNS = 16,           /* poll the socket that spoke last this many times before polling all */
    IN_VAIN = 8,              /* first polls after a sleep that found nothing: the next ones ask nothing ... */
    AGAIN = 16,               /* ... but for every sixteenth */
    SERVED = 4,               /* wake-ups in a row that found a poller at work: the thread parks */
    MISSED = 3,               /* looks in a row that found work and no poller: it leaves the park */
    HERE_US = 5,              /* a poller whose last poll is no older than this is still at work */
    LOOK_US = 600,            /* between two looks from the park: each costs a poller some microseconds. Twice ... */
    LOOK_MAX_US = 4800,       /* ... as long after each that finds a poller, up to this */
    SEEN_US = 100,            /* one that has polled so recently may have been displaced by the interrupt for a look */
    OFTENER_ARMED = 3,        /* times as often while a CQ is armed: its owner may sleep, and wait for the next one */
    IDLE_US = 3000,           /* without a poll and without work for this long the thread leaves the park */
    LONG_POLL_NS = 20000,     /* a poll that takes longer than HERE_US is looked at in steps of this */
    LET_IN_NS = 20000,        /* leave the loop lock to a thread that waits, in steps of this, ... */
    LET_IN_STEPS = 100,       /* ... at most this many times */
    SPINS_IN_VAIN = 4,        /* spins in a row that saw nothing come: the thread spins no more ... */
    NO_SPIN_US = 50000,       /* ... for this long */
    LOOK_AGAIN_US = 10000000, /* an idle thread looks after its descriptors this often */
    TIMER_SLACK_NS = 1000     /* with the kernel's default each sleep is 50 us longer */
};

/* --- one round ------------------------------------------------------------------------------------------------- */

/* What an endpoint withheld leaves, unless a poster holds it, who sends that. */
static void settle_debt(struct loop *loop)
{
    struct endpoint *endpoint = atomic_load_explicit(&loop->owing, memory_order_relaxed);

    if (!endpoint || !endpoint_try(endpoint))
        return;
    atomic_store_explicit(&loop->owing, NULL, memory_order_relaxed);
    if (endpoint->kind->release(endpoint))
        endpoint_pump(endpoint, ENDPOINT_DRIVER);
    endpoint_release(endpoint, ENDPOINT_DRIVER);
}

void loop_rouse(struct loop *loop)
{
    struct endpoint *endpoint = loop->resting;

    settle_debt(loop);
    loop->lone_polls = 0;
    if (endpoint)
        endpoint_rouse(endpoint);
}

void loop_lock_and_rouse(struct loop *loop)
{
    loop_lock(loop);
    loop_rouse(loop);
    loop_unlock(loop);
}

/* A turn that ends while this begins may wait as long as HOT_TURNS polls, but is not lost. */
static void run_round(struct loop *loop)
{
    atomic_store_explicit(&loop->asking.turn_over, false, memory_order_relaxed);
    reactor_run(&loop->reactor, &loop->wanted);
    batch_answer(loop);
    reclaim_if_asked(loop);
    receives_serve_if_asked(loop);
    arrivals_adopt(loop); /* these last: the round may have reset the eventfd that announced them */
}

void loop_work(struct loop *loop)
{
    loop_rouse(loop);
    run_round(loop);
    atomic_store_explicit(&loop->polled.refused, NULL, memory_order_relaxed); /* this was what a poller would do */
}

/* The socket that spoke last, unless it is time for all. Returns whether it has spoken again. */
static bool ask_hot(struct loop *loop)
{
    struct endpoint *hot = loop->hot;
    uint32_t before = loop->receipts;

    if (!hot || hot->blocked || !hot->kind->polls_for_sleepers || !(++loop->asking.turns % HOT_TURNS))
        return false;
    hot->kind->poll(hot);
    return loop->receipts != before;
}

/* What else is ready stays so, and ends the next sleep at once. */
void loop_work_woken(struct loop *loop)
{
    bool is_called = loop_is_asked(loop) || atomic_load(&loop->batch.watch) != BATCH_UNWATCHED;

    loop->asking.was_woken = !is_called && ask_hot(loop);
    if (!loop->asking.was_woken)
        loop_work(loop);
}

static bool a_turn_is_over(const struct loop *loop)
{
    return atomic_load_explicit(&loop->asking.turn_over, memory_order_relaxed);
}

/* A round does not ask what rests. */
static void ask_links(struct loop *loop)
{
    struct endpoint *hot = loop->hot;
    bool asks_hot = hot && !hot->blocked && ++loop->asking.turns % HOT_TURNS && !a_turn_is_over(loop);

    if (!asks_hot) {
        run_round(loop);
        hot = loop->resting;
    }
    if (hot)
        hot->kind->poll(hot);
}

/* An application that sleeps until something comes, takes it, and polls until nothing is left asks once in vain before
 * it sleeps again. Its sleep sees what has come meanwhile. */
static void poll_after_sleep(struct loop *loop)
{
    uint32_t before = loop->receipts;

    loop->asking.was_woken = false;
    if (++loop->asking.in_vain > IN_VAIN && loop->asking.in_vain % AGAIN)
        return;
    ask_links(loop);
    if (loop->receipts != before)
        loop->asking.in_vain = 0;
}

void loop_poll(struct loop *loop)
{
    bool has_thread = !loop->context->manual; /* which wants to know */

    settle_debt(loop);
    if (has_thread)
        atomic_store_explicit(&loop->polled.us, reactor_now_us(), memory_order_relaxed);
    atomic_store_explicit(&loop->polled.lasts, true, memory_order_relaxed);
    if (loop->resting && loop->resting != loop->hot) /* then all are asked */
        loop_rouse(loop);
    if (loop->asking.was_woken)
        poll_after_sleep(loop);
    else
        ask_links(loop);
    atomic_store_explicit(&loop->polled.lasts, false, memory_order_relaxed);
}

/* --- the thread ------------------------------------------------------------------------------------------------ */

/* How a thread waits awake. */
struct vigil {
    uint64_t until_us;      /* 0: the next wait is asleep */
    uint64_t not_before_us; /* it was in vain for a while */
    unsigned in_vain;       /* spins in a row that saw nothing come */
};

/* What the thread has seen of pollers, and of its own waits. */
struct poll_stats {
    unsigned served;    /* wake-ups in a row that found a poller at work */
    uint64_t polled_us; /* when the poller that was counted last had polled */
    unsigned missed;    /* looks in a row that found work and no poller */
    uint32_t armings;   /* the context's, when it parked */
    uint64_t look_us;   /* until the next look from the park */
    struct vigil vigil;
};

static uint64_t since_poll_us(const struct loop *loop)
{
    return reactor_now_us() - atomic_load_explicit(&loop->polled.us, memory_order_relaxed);
}

static bool has_work(struct loop *loop)
{
    return loop_is_asked(loop) || atomic_load(&loop->owing) || reactor_has_due(&loop->reactor) ||
           reactor_sleep(&loop->reactor, 0);
}

/* The time of the last poll also shows a poller that this thread has just displaced from its processor. Who holds the
 * loop lock for another call does not do the work. */
static bool poller_is_here(const struct loop *loop)
{
    if (loop_is_relied_on(loop))
        return false;
    return since_poll_us(loop) <= HERE_US || atomic_load_explicit(&loop->polled.lasts, memory_order_relaxed);
}

/* The thread that gives a mutex back usually takes it again at once. So it leaves its processor until one of those who
 * want the loop lock have it; but not for long, in case that thread hardly ever runs. */
static void let_another_in(const struct loop *loop)
{
    const struct timespec step = {.tv_nsec = LET_IN_NS};
    uint32_t waiting = atomic_load_explicit(&loop->wanted, memory_order_relaxed);

    if (waiting)
        sched_yield();
    for (int i = 0; i < LET_IN_STEPS; i++) {
        uint32_t still = atomic_load_explicit(&loop->wanted, memory_order_relaxed);

        if (!still || still < waiting)
            return;
        nanosleep(&step, NULL);
    }
}

/* A short poll counts once, because its poller may have stopped right before an arrival, which then must not wait for a
 * look. A long one counts as long as it lasts. */
static bool is_new_poll(const struct loop *loop, struct poll_stats *stats)
{
    uint64_t polled_us = atomic_load_explicit(&loop->polled.us, memory_order_relaxed);

    if (polled_us == stats->polled_us)
        return false;
    stats->polled_us = polled_us;
    return true;
}

static void do_round(struct loop *loop)
{
    loop_lock_to_work(loop);
    loop_work(loop);
    loop_unlock(loop);
    let_another_in(loop);
}

/* After a round: more may come at once. */
static void vigil_begin(const struct loop *loop, struct vigil *vigil)
{
    uint64_t now_us;

    if (!loop->context->spin_us)
        return;
    now_us = reactor_now_us();
    vigil->until_us = now_us >= vigil->not_before_us ? now_us + loop->context->spin_us : 0;
}

static void vigil_end(struct vigil *vigil, bool in_vain, uint64_t now_us)
{
    vigil->until_us = 0;
    vigil->in_vain = in_vain ? vigil->in_vain + 1 : 0;
    if (vigil->in_vain < SPINS_IN_VAIN)
        return;
    vigil->in_vain = 0;
    vigil->not_before_us = now_us + NO_SPIN_US;
}

/* Looks again and again, without a lock, whether something has come. Nothing comes in time if the program that would
 * answer needs the processor that this takes. */
static bool vigil_sees(struct loop *loop, struct vigil *vigil, uint64_t end_us)
{
    uint64_t now_us = reactor_now_us();

    for (; now_us < vigil->until_us && now_us < end_us; now_us = reactor_now_us()) {
        if (reactor_sleep(&loop->reactor, 0)) {
            vigil_end(vigil, false, now_us);
            return true;
        }
        if (since_poll_us(loop) <= HERE_US || atomic_load(&loop->context->stopping))
            break;
        spin_pause();
    }
    if (now_us < end_us)
        vigil_end(vigil, now_us >= vigil->until_us, now_us);
    return false;
}

/* No longer than after which it looks at its descriptors again: their loss may have been missed between the last look
 * and the sleep. */
static bool thread_sleep(struct loop *loop, uint64_t timeout_us)
{
    return reactor_sleep_us(&loop->reactor, timeout_us < LOOK_AGAIN_US ? timeout_us : LOOK_AGAIN_US);
}

/* Waits for something to come: awake for spin_us, then asleep. Returns false if a deferred doorbell is due first. */
static bool await_arrival(struct loop *loop, struct vigil *vigil)
{
    uint64_t wait_us = batch_serve(loop);
    uint64_t now_us, end_us;

    if (!vigil->until_us)
        return thread_sleep(loop, wait_us);
    now_us = reactor_now_us();
    end_us = wait_us < UINT64_MAX - now_us ? now_us + wait_us : UINT64_MAX;
    if (vigil_sees(loop, vigil, end_us))
        return true;
    return !vigil->until_us && thread_sleep(loop, batch_serve(loop));
}

/* Whoever does not sleep beside the sentinel asks before it uses a descriptor. */
static bool is_cut(struct loop *loop)
{
    loop->reactor.is_cut |= !descriptors_are_ours();
    return loop->reactor.is_cut;
}

static void sleep_and_serve(struct loop *loop, struct poll_stats *stats)
{
    const struct timespec poll = {.tv_nsec = LONG_POLL_NS};

    if (!await_arrival(loop, &stats->vigil) || loop->reactor.is_cut)
        return;
    if (poller_is_here(loop)) {
        bool is_long = since_poll_us(loop) > HERE_US, is_new = is_new_poll(loop, stats);

        if (is_long && !is_new)
            nanosleep(&poll, NULL);
        if (is_long || is_new)
            stats->served++;
        if (is_cut(loop))
            return;
        loop_clear_wake(loop); /* or the eventfd wakes us again at once */
        if (!loop_is_asked(loop))
            return;
    }
    do_round(loop);
    stats->served = 0;
    vigil_begin(loop, &stats->vigil);
}

/* Who arms a CQ relies on the thread until it is seen to poll others. */
static bool is_armed_anew(const struct loop *loop, const struct poll_stats *stats)
{
    return atomic_load(&loop->context->armings) != stats->armings;
}

/* In the park: until it is time for a look, or something else than a poster has woken the thread. */
static void thread_rest(struct loop *loop, const struct poll_stats *stats)
{
    uint64_t now_us = reactor_now_us(), end_us = now_us + stats->look_us / (loop->context->armed ? OFTENER_ARMED : 1);
    bool is_called = false;

    for (; now_us < end_us && !is_called; now_us = reactor_now_us()) {
        uint64_t batch_us = batch_serve(loop), rest_us = end_us - now_us;
        const struct timespec rest = {.tv_nsec = 1000 * (long)(batch_us < rest_us ? batch_us : rest_us)};
        struct pollfd fd = {.fd = loop->wake.fd, .events = POLLIN};

        if (ppoll(&fd, 1, &rest, NULL) <= 0)
            continue;
        if (is_cut(loop))
            return;
        loop_clear_wake(loop);
        is_called = loop->batch.watch != BATCH_WOKEN || is_armed_anew(loop, stats);
    }
}

/* A CQ armed after this wakes us; one armed before is seen by the next look. */
static void enter_park(struct loop *loop, struct poll_stats *stats)
{
    stats->armings = loop->context->armings;
    stats->look_us = LOOK_US;
    atomic_store(&loop->parked, true);
    reactor_attend(&loop->reactor, true);
}

/* From here on nothing leaves the epoll set; what has left it before is back when the thread sleeps there. */
static void leave_park(struct loop *loop, struct poll_stats *stats)
{
    *stats = (struct poll_stats){0};
    atomic_store(&loop->parked, false);
    reactor_attend(&loop->reactor, false);
    loop_lock_and_rouse(loop);
}

/* A link that rests does not show whether it has something. */
static bool park_has_work(struct loop *loop)
{
    if (loop->resting)
        loop_lock_and_rouse(loop);
    return has_work(loop);
}

/* One that goes on is looked at less and less often. */
static void see_poller(struct poll_stats *stats)
{
    stats->missed = 0;
    stats->look_us = stats->look_us < LOOK_MAX_US / 2 ? 2 * stats->look_us : LOOK_MAX_US;
}

static void miss_poller(struct loop *loop, struct poll_stats *stats)
{
    stats->look_us = LOOK_US;
    if (!park_has_work(loop)) {
        if (since_poll_us(loop) > IDLE_US)
            leave_park(loop, stats);
        return;
    }
    do_round(loop);
    if (++stats->missed == MISSED || loop->context->armed)
        leave_park(loop, stats);
}

static void thread_look(struct loop *loop, struct poll_stats *stats)
{
    if (is_armed_anew(loop, stats) || loop_is_relied_on(loop))
        leave_park(loop, stats);
    else if (poller_is_here(loop) || since_poll_us(loop) <= SEEN_US)
        see_poller(stats);
    else
        miss_poller(loop, stats);
}

/* Looks before the thread sleeps, where it delays nothing; the sleep ends when the program closes the descriptors. */
static bool is_closed_down(struct loop *loop)
{
    if (!atomic_exchange(&loop->reactor.is_cut, false) && descriptors_are_ours())
        return false;
    return context_close_down(loop->context);
}

static void *thread_run(void *arg)
{
    struct loop *loop = arg;
    struct poll_stats stats = {0};

    prctl(PR_SET_TIMERSLACK, (unsigned long)TIMER_SLACK_NS);
    while (!atomic_load(&loop->context->stopping) && !is_closed_down(loop)) {
        if (stats.served < SERVED) {
            sleep_and_serve(loop, &stats);
            continue;
        }
        if (!loop->parked)
            enter_park(loop, &stats);
        if (!loop_is_relied_on(loop))
            thread_rest(loop, &stats);
        if (!is_cut(loop))
            thread_look(loop, &stats);
    }
    reactor_attend(&loop->reactor, false);
    return NULL;
}

/* Signals are the application's: none is ever handled on our thread, but SIGBUS, which says that volatile memory has
 * gone and comes to whoever touches it. */
int loop_start(struct loop *loop)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&loop->thread, NULL, thread_run, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

void loop_stop(struct loop *loop)
{
    loop_wake(loop);
    pthread_join(loop->thread, NULL);
}
