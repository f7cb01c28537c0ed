/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reactor.c - watches that always have work are all served, however many there are, however often a round ends early,
 * and also when the epoll set does not take them back. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/container.h"
#include "loop/descriptors.h"
#include "loop/reactor.h"
#include "tests/lib/engine.h"
#include "tests/suite/interposed/full_set.h"

enum { WATCHES = 3 * REACTOR_EVENTS + 36, ROUNDS = 50 };

struct busy {
    struct watch watch;
    unsigned called;
};

static void count(struct watch *watch, uint32_t events)
{
    (void)events;
    container_of(watch, struct busy, watch)->called++;
}

static void open_busy(struct reactor *reactor, struct busy *busy, unsigned n)
{
    assert_int_equal(reactor_init(reactor), 0);
    for (unsigned i = 0; i < n; i++) {
        busy[i] = (struct busy){.watch = {.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), .ready = count}};
        assert_true(busy[i].watch.fd >= 0);
        assert_int_equal(reactor_watch(reactor, &busy[i].watch, EPOLLIN), 0);
    }
}

static void close_busy(struct reactor *reactor, struct busy *busy, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        reactor_unwatch(reactor, &busy[i].watch);
        close(busy[i].watch.fd);
    }
    reactor_fini(reactor);
}

/* A thread always waits for the loop, so each round serves one watch, and the next round continues behind it. */
static void test_turns(void **state)
{
    static const _Atomic uint32_t wanted = 1;
    struct busy busy[WATCHES];
    struct reactor reactor;

    (void)state;
    open_busy(&reactor, busy, WATCHES);
    for (unsigned i = 0; i < ROUNDS * WATCHES; i++)
        assert_int_equal(reactor_run(&reactor, &wanted), 1);
    for (unsigned i = 0; i < WATCHES; i++)
        assert_in_range(busy[i].called, ROUNDS / 2, 2 * ROUNDS);
    close_busy(&reactor, busy, WATCHES);
}

/* No thread waits: a round serves as many watches as the kernel reported, and all get their turn. */
static void test_rounds(void **state)
{
    static const _Atomic uint32_t no_waiters = 0;
    struct busy busy[WATCHES];
    struct reactor reactor;

    (void)state;
    open_busy(&reactor, busy, WATCHES);
    for (unsigned i = 0; i < 2 * ROUNDS; i++)
        assert_in_range(reactor_run(&reactor, &no_waiters), 1, REACTOR_EVENTS);
    for (unsigned i = 0; i < WATCHES; i++)
        assert_in_range(busy[i].called, ROUNDS / 2, 2 * ROUNDS);
    close_busy(&reactor, busy, WATCHES);
}

/* A watch that ends while it waits for its turn is not called. */
static void test_ends(void **state)
{
    static const _Atomic uint32_t wanted = 1;
    struct busy busy[4];
    struct reactor reactor;
    unsigned called = 0;

    (void)state;
    open_busy(&reactor, busy, 4);
    assert_int_equal(reactor_run(&reactor, &wanted), 1);
    for (unsigned i = 0; i < 4; i++)
        if (!busy[i].called)
            reactor_unwatch(&reactor, &busy[i].watch);
    for (unsigned i = 0; i < 8; i++)
        reactor_run(&reactor, &wanted);
    for (unsigned i = 0; i < 4; i++)
        called += busy[i].called > 0;
    assert_int_equal(called, 1);
    close_busy(&reactor, busy, 4);
}

/* Waiting without sleeping ends when it is told to, or later. */
static void test_spin(void **state)
{
    uint64_t start_us = reactor_now_us(), end_us = reactor_spin(start_us + 100);

    (void)state;
    assert_true(end_us >= start_us + 100);
    assert_true(reactor_now_us() >= end_us);
    assert_true(reactor_spin(0) >= end_us);
}

struct late {
    struct timer timer;
    const struct busy *busy;
    unsigned before; /* watches that were called before the timer fired */
    bool fired;
};

static void look_who_was_first(struct timer *timer, uint64_t now_us)
{
    struct late *late = container_of(timer, struct late, timer);

    (void)now_us;
    late->before = late->busy[0].called + late->busy[1].called;
    late->fired = true;
}

/* A timer that is due and sockets that have something: the timer fires last, although it was ready first. */
static void test_timers(void **state)
{
    static const _Atomic uint32_t no_waiters = 0;
    struct busy busy[2];
    struct late late = {.timer.fire = look_who_was_first, .busy = busy};
    struct reactor reactor;
    eventfd_t octets;

    (void)state;
    open_busy(&reactor, busy, 2);
    assert_int_equal(reactor_add_timer(&reactor, &late.timer), 0);
    for (int i = 0; i < 10; i++) {
        late.fired = false;
        busy[0].called = busy[1].called = 0;
        for (int k = 0; k < 2; k++)
            assert_int_equal(eventfd_read(busy[k].watch.fd, &octets), 0);
        reactor_set_timer(&reactor, &late.timer, reactor_now_us());
        while (!reactor_sleep(&reactor, 0) || reactor_now_us() < late.timer.at_us + 1000)
            continue;
        for (int k = 0; k < 2; k++)
            assert_int_equal(eventfd_write(busy[k].watch.fd, 1), 0);
        while (!late.fired)
            reactor_run(&reactor, &no_waiters);
        assert_true(late.before >= 2);
    }
    reactor_forget_timer(&reactor, &late.timer);
    close_busy(&reactor, busy, 2);
}

/* What rests is not seen; it is again when it is wanted back, or when something else is waited for. */
static void test_rest(void **state)
{
    struct busy busy;
    struct reactor reactor;

    (void)state;
    open_busy(&reactor, &busy, 1);
    for (unsigned way = 0; way < 2; way++) {
        reactor_rest(&reactor, &busy.watch);
        assert_false(reactor_sleep(&reactor, 0));
        if (way)
            reactor_rewatch(&reactor, &busy.watch, EPOLLIN | EPOLLOUT);
        else
            reactor_rouse(&reactor, &busy.watch);
        assert_false(busy.watch.rests);
        assert_true(reactor_sleep(&reactor, 0));
    }
    close_busy(&reactor, &busy, 1);
}

/* The set takes none of these back. */
static void shut_out(struct reactor *reactor, struct busy *busy, unsigned n)
{
    set_refusals = 0;
    set_is_full = true;
    for (unsigned i = 0; i < n; i++) {
        reactor_rest(reactor, &busy[i].watch);
        reactor_rouse(reactor, &busy[i].watch);
        assert_true(busy[i].watch.is_shut_out);
        busy[i].called = 0;
    }
    assert_int_equal(set_refusals, n);
}

static void run_for(struct reactor *reactor, const _Atomic uint32_t *wanted, int ms)
{
    for (uint64_t end_us = reactor_now_us() + (uint64_t)ms * 1000; reactor_now_us() < end_us;) {
        reactor_sleep(reactor, 1);
        reactor_run(reactor, wanted);
    }
}

/* Until the set has taken back all. */
static void run_until_at_rest(struct reactor *reactor, const _Atomic uint32_t *wanted)
{
    uint64_t began_us = reactor_now_us();

    set_is_full = false;
    while (reactor->timers.count) {
        reactor_sleep(reactor, 1);
        reactor_run(reactor, wanted);
        assert_true(reactor_now_us() < began_us + 5000000);
    }
}

static void run_until_called(struct reactor *reactor, const _Atomic uint32_t *wanted, const struct busy *busy)
{
    uint64_t began_us = reactor_now_us();

    while (!busy->called) {
        reactor_sleep(reactor, 1);
        reactor_run(reactor, wanted);
        assert_true(reactor_now_us() < began_us + 5000000);
    }
}

/* All are served, more than a round has space for, also if each round ends early. */
static void test_shut_out(void **state)
{
    struct busy busy[WATCHES];
    struct reactor reactor;

    (void)state;
    open_busy(&reactor, busy, WATCHES);
    for (_Atomic uint32_t wanted = 0; wanted < 2; wanted++) {
        shut_out(&reactor, busy, WATCHES);
        for (unsigned i = 0; i < WATCHES; i++)
            run_until_called(&reactor, &wanted, &busy[i]);
        run_until_at_rest(&reactor, &wanted);
        for (unsigned i = 0; i < WATCHES; i++)
            assert_false(busy[i].watch.is_shut_out);
        assert_int_equal(reactor_run(&reactor, &wanted), wanted ? 1 : REACTOR_EVENTS);
    }
    close_busy(&reactor, busy, WATCHES);
}

/* In some looks, each twice as long after the last as that one. */
static void run_until_patient(struct reactor *reactor)
{
    static const _Atomic uint32_t no_waiters = 0;

    set_refusals = 0;
    while (reactor->again_us < 100000) {
        reactor_sleep(reactor, 1);
        reactor_run(reactor, &no_waiters);
    }
    assert_in_range(set_refusals, 2, 2 * 8);
}

/* What has nothing is not called, and is asked less and less often until something comes, or something else is waited
 * for. */
static void test_shut_out_idle(void **state)
{
    static const _Atomic uint32_t no_waiters = 0;
    struct busy busy[2];
    struct reactor reactor;
    eventfd_t octets;

    (void)state;
    open_busy(&reactor, busy, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(eventfd_read(busy[i].watch.fd, &octets), 0);
    shut_out(&reactor, busy, 2);
    run_until_patient(&reactor);
    assert_int_equal(busy[0].called + busy[1].called, 0);
    assert_int_equal(eventfd_write(busy[0].watch.fd, 1), 0);
    run_until_called(&reactor, &no_waiters, &busy[0]);
    assert_int_equal(reactor.again_us, 1000);
    assert_int_equal(eventfd_read(busy[0].watch.fd, &octets), 0);
    run_until_patient(&reactor);
    assert_int_equal(busy[1].called, 0);
    reactor_rewatch(&reactor, &busy[1].watch, EPOLLOUT);
    assert_in_range(reactor.again.at_us, 0, reactor_now_us() + 1000);
    run_until_called(&reactor, &no_waiters, &busy[1]);
    set_is_full = false;
    close_busy(&reactor, busy, 2);
}

/* What ends, rests again, or waits for its turn then, is not called. */
static void test_shut_out_ends(void **state)
{
    static const _Atomic uint32_t no_waiters = 0, wanted = 1;
    struct busy busy[4];
    struct reactor reactor;

    (void)state;
    open_busy(&reactor, busy, 4);
    shut_out(&reactor, busy, 4);
    reactor_unwatch(&reactor, &busy[1].watch);
    reactor_rest(&reactor, &busy[2].watch);
    while (!busy[0].called && !busy[3].called) {
        reactor_sleep(&reactor, 1);
        reactor_run(&reactor, &wanted);
    }
    for (unsigned i = 0; i < 4; i++)
        if (!busy[i].called)
            reactor_unwatch(&reactor, &busy[i].watch);
    run_for(&reactor, &no_waiters, 20);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(busy[i].called > 0, i == 0 || i == 3 ? busy[i].watch.is_shut_out : 0);
    set_is_full = false;
    close_busy(&reactor, busy, 4);
}

static void expect_both_to_work(struct reactor *reactor, struct late *late, struct busy *busy)
{
    static const _Atomic uint32_t no_waiters = 0;
    uint64_t began_us = reactor_now_us();

    busy->called = 0;
    late->fired = false;
    reactor_set_timer(reactor, &late->timer, began_us + 1000);
    while (!late->fired || !busy->called) {
        reactor_run(reactor, &no_waiters);
        assert_true(reactor_now_us() < began_us + 5000000);
    }
}

/* A reactor whose timers are attended to, and one of them. */
static void open_attended(struct reactor *reactor, struct late *late)
{
    static const struct busy none[2];

    *late = (struct late){.timer.fire = look_who_was_first, .busy = none};
    assert_int_equal(reactor_init(reactor), 0);
    assert_int_equal(reactor_add_timer(reactor, &late->timer), 0);
    reactor_attend(reactor, true);
}

/* While timers are attended to, none wakes a sleeper, and each fires in the first round that comes; then they wake
 * again, those that were set meanwhile, too. */
static void test_attended(void **state)
{
    static const _Atomic uint32_t no_waiters = 0;
    struct reactor reactor;
    struct late late;

    (void)state;
    open_attended(&reactor, &late);
    assert_false(reactor_has_due(&reactor));
    reactor_set_timer(&reactor, &late.timer, reactor_now_us() + 2000);
    assert_false(reactor_has_due(&reactor));
    assert_int_equal(reactor_run(&reactor, &no_waiters), 0);
    assert_false(reactor_sleep(&reactor, 10));
    assert_true(reactor_has_due(&reactor));
    assert_int_equal(reactor_run(&reactor, &no_waiters), 1);
    assert_true(late.fired);
    assert_false(reactor_has_due(&reactor));
    late.fired = false;
    reactor_set_timer(&reactor, &late.timer, reactor_now_us() + 2000);
    reactor_attend(&reactor, false);
    assert_true(reactor_sleep(&reactor, 5000));
    assert_int_equal(reactor_run(&reactor, &no_waiters), 1);
    assert_true(late.fired);
    reactor_forget_timer(&reactor, &late.timer);
    reactor_fini(&reactor);
}

/* Whoever sleeps wakes for a timer that is attended to otherwise, whichever of both came first, and until the last
 * sleeper has gone. */
static void test_attended_but_for_sleepers(void **state)
{
    static const _Atomic uint32_t no_waiters = 0;
    struct reactor reactor;
    struct late late;

    (void)state;
    open_attended(&reactor, &late);
    reactor_set_timer(&reactor, &late.timer, reactor_now_us() + 2000);
    reactor_expect_sleeper(&reactor);
    reactor_expect_sleeper(&reactor);
    reactor_end_sleeper(&reactor);
    assert_true(reactor_sleep(&reactor, 5000));
    assert_int_equal(reactor_run(&reactor, &no_waiters), 1);
    reactor_set_timer(&reactor, &late.timer, reactor_now_us() + 2000);
    assert_true(reactor_sleep(&reactor, 5000));
    reactor_end_sleeper(&reactor);
    assert_int_equal(reactor_run(&reactor, &no_waiters), 1); /* once, though the descriptor shows it */
    late.fired = false;
    reactor_set_timer(&reactor, &late.timer, reactor_now_us() + 2000);
    assert_false(reactor_sleep(&reactor, 10));
    assert_int_equal(reactor_run(&reactor, &no_waiters), 1);
    assert_true(late.fired);
    reactor_forget_timer(&reactor, &late.timer);
    reactor_fini(&reactor);
}

/* As many descriptors are ready in each round as it takes at most: timers that are attended to have their turn. */
static void test_attended_beside_many(void **state)
{
    static const _Atomic uint32_t no_waiters = 0;
    const struct busy none[2] = {{.called = 0}};
    struct late late = {.timer.fire = look_who_was_first, .busy = none};
    struct busy busy[REACTOR_EVENTS];
    struct reactor reactor;

    (void)state;
    open_busy(&reactor, busy, REACTOR_EVENTS);
    assert_int_equal(reactor_add_timer(&reactor, &late.timer), 0);
    reactor_attend(&reactor, true);
    reactor_set_timer(&reactor, &late.timer, reactor_now_us());
    for (int round = 0; round < 1000 && !late.fired; round++)
        reactor_run(&reactor, &no_waiters);
    assert_true(late.fired);
    reactor_forget_timer(&reactor, &late.timer);
    close_busy(&reactor, busy, REACTOR_EVENTS);
}

/* As in a child of fork(): a timer that is set before there are descriptors again is armed with these, and what was
 * shut out of the parent's set is not asked here. */
static void test_renewed(void **state)
{
    static const _Atomic uint32_t no_waiters = 0;
    uint64_t began_us = reactor_now_us();
    struct busy busy[2];
    struct late late = {.timer.fire = look_who_was_first, .busy = busy};
    struct reactor reactor;

    (void)state;
    open_busy(&reactor, busy, 2);
    assert_int_equal(reactor_add_timer(&reactor, &late.timer), 0);
    shut_out(&reactor, busy, 2);
    set_is_full = false;
    reactor_leave(&reactor);
    reactor_set_timer(&reactor, &late.timer, began_us);
    assert_int_equal(reactor_renew(&reactor), 0);
    while (reactor.timers.count) {
        reactor_sleep(&reactor, 1);
        reactor_run(&reactor, &no_waiters);
        assert_true(reactor_now_us() < began_us + 5000000);
    }
    assert_true(late.fired);
    run_for(&reactor, &no_waiters, 10);
    assert_int_equal(busy[0].called + busy[1].called, 0);
    reactor_forget_timer(&reactor, &late.timer);
    close_busy(&reactor, busy, 2);
}

/* A stream's, which counts on no sentinel, after the program has closed the descriptors of all contexts. A sleep of it
 * does not end by what has the sentinel's number now, and its own descriptors are closed. */
static void test_after_a_loss(void **state)
{
    struct busy busy[2];
    struct late late = {.timer.fire = look_who_was_first, .busy = busy};
    struct reactor reactor;
    int number, fd, end[2];

    (void)state;
    assert_int_equal(descriptors_open(), 0);
    number = descriptors_sentinel();
    assert_int_equal(pipe(end), 0);
    assert_int_equal(dup2(end[0], number), number);
    close(end[0]);
    close(end[1]);
    assert_true(descriptors_are_lost());
    open_busy(&reactor, busy, 2);
    fd = reactor.epoll_fd;
    assert_int_equal(reactor_add_timer(&reactor, &late.timer), 0);
    expect_both_to_work(&reactor, &late, busy);
    for (unsigned i = 0; i < 2; i++)
        reactor_unwatch(&reactor, &busy[i].watch);
    assert_false(reactor_sleep(&reactor, 10));
    reactor_forget_timer(&reactor, &late.timer);
    close_busy(&reactor, busy, 2);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    close(number);
    descriptors_close();
    assert_int_equal(descriptors_open(), 0); /* as it was */
    descriptors_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_spin),
        cmocka_unit_test(test_timers),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_shut_out),
        cmocka_unit_test(test_shut_out_idle),
        cmocka_unit_test(test_shut_out_ends),
        cmocka_unit_test(test_renewed),
        cmocka_unit_test(test_after_a_loss),
        cmocka_unit_test(test_attended),
        cmocka_unit_test(test_attended_but_for_sleepers),
        cmocka_unit_test(test_attended_beside_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
