/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polled_park.c - a parked thread hardly ever looks at a poller that goes on, and beside it, too, the socket that a
 * poller asks leaves the epoll set, and is back when the poller is gone: that of a stream, and that of queue pairs of
 * RoCE, which share it. */
#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/container.h"
#include "endpoint/objects.h"
#include "roce/io/roce_host.h"
#include "roce/io/roce_pair.h"
#include "tests/suite/interposed/full_set.h"
#include "tests/suite/lib/by_hand.h"
#include "tests/suite/lib/manual.h"

enum {
    WAIT_US = PAIR_WAIT_MS * 1000,
    POLLS = 100,         /* after a message: enough for a socket to leave */
    GONE_MS = 20,        /* a thread that finds no poller for so long has left the park */
    SOON_US = 7000,      /* a look from the park has come by then; the thread leaves it by itself later */
    LONG_US = 60000,     /* a poller polls so long, */
    LOOKS = 30,          /* and is looked at so often at most: by 100 looks, if there were no fewer with time; */
    SOME = 2,            /* and so often at least, where the thread gets a processor */
    TIMES = 3,           /* in a row that are to be in time */
    ROUNDS = 100,        /* that a busy machine may need for that, ... */
    LOADED_US = 5000000, /* ... unless it is busy for as long */
    OCTETS = 8,
};

/* The end that polls, and who speaks to it. */
static struct polled {
    struct rddp_context *context;
    struct rddp_cq *cq;
    void (*hear)(void); /* has a message for it sent */
} polled;

static pthread_t speaker;
static atomic_bool is_asked, is_over; /* the speaker, for a message; it may end */
static struct rddp_comp_channel *channel;
static struct rddp_cq *beside;   /* of the same context; nothing ever comes to it */
static struct hands pair, other; /* two pairs of queue pairs between the same contexts, at the same sockets */
static atomic_int under_way;     /* their messages whose completions were not taken */
static atomic_uint looks;        /* sleeps of the thread in the park */

/* In front of the C library's, or of a sanitizer's. */
int ppoll(struct pollfd *fd, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    static _Atomic(void *) next;
    int (*call)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    void *found = atomic_load(&next);

    atomic_fetch_add(&looks, n == 1); /* a sleep in front of an epoll set watches the sentinel, too */
    if (!found)
        atomic_store(&next, found = dlsym(RTLD_NEXT, "ppoll"));
    memcpy(&call, &found, sizeof(call));
    return call(fd, n, timeout, mask);
}

/* Speaks when it is asked to, so that the poller polls when the message comes. */
static void *speak(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over))
        if (atomic_exchange(&is_asked, false))
            polled.hear();
        else
            sched_yield();
    return NULL;
}

static void begin(void)
{
    is_over = is_asked = false;
    channel = rddp_create_comp_channel(polled.context);
    beside = rddp_create_cq(polled.context, 4, NULL, channel);
    assert_non_null(beside);
    assert_int_equal(pthread_create(&speaker, NULL, speak, NULL), 0);
}

static void end(void)
{
    is_over = true;
    pthread_join(speaker, NULL);
    assert_int_equal(rddp_destroy_cq(beside), 0);
    assert_int_equal(rddp_destroy_comp_channel(channel), 0);
}

/* --- a stream ------------------------------------------------------------------------------------------------------
 */

static void stream_hear(void)
{
    manual_send(&here, &there);
}

static int stream_open(void **state)
{
    manual_open(state);
    polled = (struct polled){there.context, there.cq, stream_hear};
    begin();
    return 0;
}

static int stream_close(void **state)
{
    end();
    return manual_close(state);
}

/* --- RoCE ----------------------------------------------------------------------------------------------------------
 */

/* What was sent before completes when its peer is polled again; on a busy machine, as many messages later as fit into
 * the queue. */
static void hear_from(struct hands *h)
{
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;
    int taken;

    while ((taken = rddp_poll_cq(h->end[0].cq, 1, &wc)) || atomic_load(&under_way) >= HAND_DEPTH) {
        atomic_fetch_sub(&under_way, taken);
        assert_true(reactor_now_us() - began_us < WAIT_US);
    }
    atomic_fetch_add(&under_way, 1);
    hand_receive(&h->end[1], 0, 0, OCTETS);
    hand_post(&h->end[0], &h->end[1], RDDP_WR_SEND, 0, OCTETS, 0);
}

static void pair_hear(void)
{
    hear_from(&pair);
}

static int roce_open(void **state)
{
    (void)state;
    hands_open(&pair, RDDP_QPT_RC, "127.0.0.1");
    other = pair;
    hands_make(&pair);
    hands_connect(&pair);
    hands_make(&other);
    hands_connect(&other);
    polled = (struct polled){pair.end[1].context, pair.end[1].cq, pair_hear};
    under_way = 0;
    begin();
    return 0;
}

static int roce_close(void **state)
{
    (void)state;
    end();
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rddp_destroy_qp(other.end[i].qp), 0);
    hands_close(&pair);
    return 0;
}

/* --- both ----------------------------------------------------------------------------------------------------------
 */

static void take_by_poll(void)
{
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;

    while (!rddp_poll_cq(polled.cq, 1, &wc))
        assert_true(reactor_now_us() - began_us < WAIT_US);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
}

/* Without a poll that drives the loop: the thread has to. Returns how long it took. */
static uint64_t take_from_thread(void)
{
    uint64_t began_us = reactor_now_us(), took_us = 0;
    struct rddp_wc wc;

    while (!cq_poll(&polled.cq->cq, &wc, 1)) {
        took_us = reactor_now_us() - began_us;
        assert_true(took_us < WAIT_US);
    }
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
    return took_us;
}

/* Messages for a poller until the thread is parked, and the socket out. */
static void poll_until_out(void)
{
    const struct loop *loop = polled.context->loop;
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;

    do {
        assert_true(reactor_now_us() - began_us < WAIT_US);
        atomic_store(&is_asked, true);
        take_by_poll();
        for (int i = 0; i < POLLS; i++)
            assert_int_equal(rddp_poll_cq(polled.cq, 1, &wc), 0);
    } while (!loop->resting);
}

static void messages_go_on(void **state)
{
    (void)state;
    poll_until_out();
    for (int i = 0; i < POLLS; i++) {
        polled.hear();
        take_by_poll();
    }
}

static void it_is_back_for_the_thread(void **state)
{
    (void)state;
    poll_until_out();
    for (int ms = 0; polled.context->loop->resting; ms++) {
        assert_true(ms < PAIR_WAIT_MS);
        poll(NULL, 0, 1);
    }
    polled.hear();
    (void)take_from_thread();
}

/* The thread leaves the park at once, without a look. */
static void it_is_back_when_a_cq_is_armed(void **state)
{
    (void)state;
    for (int i = 0; i < TIMES; i++) {
        poll_until_out();
        assert_int_equal(rddp_req_notify_cq(beside, false), 0);
        polled.hear();
        (void)take_from_thread();
    }
}

/* What comes right behind the last poll waits for a look, as it does beside a socket in the set. */
static void a_look_finds_it(void **state)
{
    uint64_t began_us = reactor_now_us();
    int times = 0;

    (void)state;
    for (int round = 0; round < ROUNDS && times < TIMES; round++) {
        if (reactor_now_us() - began_us > LOADED_US)
            skip();
        poll_until_out();
        polled.hear();
        times = take_from_thread() < SOON_US ? times + 1 : 0;
    }
    assert_int_equal(times, TIMES);
}

static void poll_for(uint64_t us)
{
    uint64_t began_us = reactor_now_us();
    struct rddp_wc wc;

    while (reactor_now_us() - began_us < us)
        assert_int_equal(rddp_poll_cq(polled.cq, 1, &wc), 0);
}

/* Each look interrupts the poller. Once it has paused, the next pause is seen soon again. */
static void looks_become_rare(void **state)
{
    uint64_t began_us = reactor_now_us();
    unsigned before, count = 0;

    (void)state;
    do {
        if (reactor_now_us() - began_us > LOADED_US) {
            assert_in_range(count, SOME, UINT_MAX);
            skip();
        }
        poll_until_out();
        poll_for(LONG_US / 2);
        before = looks;
        poll_for(LONG_US);
        count = looks - before;
    } while (count < SOME || count > LOOKS);
}

struct alarm {
    struct timer timer;
    atomic_bool rings;
};

static void ring_alarm(struct timer *timer, uint64_t now_us)
{
    (void)now_us;
    container_of(timer, struct alarm, timer)->rings = true;
}

/* By a poller, or, if none is there, after the next look. */
static void timers_go_on(void **state)
{
    struct reactor *reactor = &polled.context->loop->reactor;
    struct alarm alarm = {.timer.fire = ring_alarm};

    (void)state;
    assert_int_equal(reactor_add_timer(reactor, &alarm.timer), 0);
    for (int polls = 0; polls < 2; polls++) {
        poll_until_out();
        alarm.rings = false;
        reactor_set_timer(reactor, &alarm.timer, reactor_now_us() + 1000);
        for (int ms = 0; !alarm.rings; ms++) {
            assert_true(ms < PAIR_WAIT_MS);
            if (polls)
                poll_for(1000);
            else
                poll(NULL, 0, 1);
        }
    }
    reactor_forget_timer(reactor, &alarm.timer);
}

/* None that sleeps in rddp_progress() is passed over, and none leaves beside it. */
static void a_sleeper_beside_the_thread(void **state)
{
    struct loop *loop = polled.context->loop;
    struct rddp_wc wc;

    (void)state;
    poll_until_out();
    atomic_fetch_add(&loop->batch.sleepers, 1);
    loop_lock(loop);
    endpoint_rouse(loop->resting);
    loop_unlock(loop);
    for (int i = 0; i < POLLS; i++)
        assert_int_equal(rddp_poll_cq(polled.cq, 1, &wc), 0);
    assert_null(loop->resting);
    atomic_fetch_sub(&loop->batch.sleepers, 1);
}

static void the_end_of_its_queue_pair(void **state)
{
    (void)state;
    poll_until_out();
    if (polled.hear == pair_hear) {
        assert_int_equal(rddp_destroy_qp(pair.end[1].qp), 0);
        pair.end[1].qp = NULL;
        poll(NULL, 0, GONE_MS);
        hear_from(&other);
        (void)take_from_thread();
        return;
    }
    assert_int_equal(rddp_disconnect(here.qp), 0);
    manual_event(&here, RDDP_EVENT_DISCONNECTED);
    manual_event(&there, RDDP_EVENT_DISCONNECTED);
}

/* --- RoCE alone ----------------------------------------------------------------------------------------------------
 */

static void another_pair_at_the_socket(void **state)
{
    (void)state;
    poll_until_out();
    hear_from(&other);
    take_by_poll();
    hear_from(&other);
    (void)take_from_thread();
}

/* Packets come by another socket from now on: that one is polled, and the thread's set has the first one again. */
static void packets_come_by_another_socket(void **state)
{
    struct loop *loop = polled.context->loop;
    struct endpoint_roce *e;
    struct roce_socket *before;
    struct rddp_wc wc;
    bool is_out = true;

    (void)state;
    poll_until_out();
    loop_lock(loop);
    e = container_of(loop->hot, struct endpoint_roce, endpoint);
    before = roce_pair_polled(e);
    e->socket = before == &e->slot->port->own ? &e->slot->port->host->shared : &e->slot->port->own;
    loop_unlock(loop);
    for (int i = 0; i < POLLS && is_out; i++) { /* some ask all, or leave the lock to the thread */
        assert_int_equal(rddp_poll_cq(polled.cq, 1, &wc), 0);
        loop_lock(loop);
        is_out = e->out == before || before->watch.rests;
        loop_unlock(loop);
    }
    assert_false(is_out);
    pair_hear();
    take_by_poll();
}

/* How many sockets of the polled end are shut out of the epoll set? */
static unsigned count_shut_out(void)
{
    struct loop *loop = polled.context->loop;
    unsigned count = 0;

    loop_lock(loop);
    for (const struct roce_port *port = loop->roce->ports; port; port = port->next) {
        count += port->own.watch.is_shut_out;
        for (uint32_t i = 0; i < port->homes; i++)
            count += port->home[i].watch.is_shut_out;
    }
    loop_unlock(loop);
    return count;
}

/* Between the two the system adds nothing to an epoll set, and is asked to. */
static void refuse_all(void)
{
    set_refusals = 0;
    set_is_full = true;
}

static void refuse_no_more(void)
{
    assert_true(set_refusals);
    set_is_full = false;
}

/* The system takes the socket back only after some time: it is asked meanwhile, for all queue pairs that share it. */
static void the_set_is_full(void **state)
{
    (void)state;
    poll_until_out();
    refuse_all();
    poll(NULL, 0, 1); /* its queue pair is not asked any more, and the thread looks */
    hear_from(&other);
    (void)take_from_thread();
    pair_hear();
    (void)take_from_thread();
    refuse_no_more();
    pair_hear();
    (void)take_from_thread();
    for (int ms = 0; count_shut_out(); ms++) {
        assert_true(ms < PAIR_WAIT_MS);
        poll(NULL, 0, 1);
    }
}

static void the_set_is_full_at_its_end(void **state)
{
    (void)state;
    poll_until_out();
    refuse_all();
    assert_int_equal(rddp_destroy_qp(pair.end[1].qp), 0);
    pair.end[1].qp = NULL;
    hear_from(&other);
    (void)take_from_thread();
    refuse_no_more();
}

#define OVER_STREAM(test) \
    { \
#test ", stream", test, stream_open, stream_close, NULL \
    }
#define OVER_ROCE(test) \
    { \
#test ", RoCE", test, roce_open, roce_close, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_STREAM(messages_go_on),
        OVER_STREAM(it_is_back_for_the_thread),
        OVER_STREAM(it_is_back_when_a_cq_is_armed),
        OVER_STREAM(a_look_finds_it),
        OVER_STREAM(looks_become_rare),
        OVER_STREAM(timers_go_on),
        OVER_STREAM(a_sleeper_beside_the_thread),
        OVER_STREAM(the_end_of_its_queue_pair),
        OVER_ROCE(messages_go_on),
        OVER_ROCE(it_is_back_for_the_thread),
        OVER_ROCE(it_is_back_when_a_cq_is_armed),
        OVER_ROCE(a_look_finds_it),
        OVER_ROCE(a_sleeper_beside_the_thread),
        OVER_ROCE(the_end_of_its_queue_pair),
        OVER_ROCE(another_pair_at_the_socket),
        OVER_ROCE(packets_come_by_another_socket),
        OVER_ROCE(the_set_is_full),
        OVER_ROCE(the_set_is_full_at_its_end),
    };

    return cmocka_run_group_tests_name("polled_park", tests, NULL, NULL);
}
