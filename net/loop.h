/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loop.h - readiness of sockets and the passing of time; the only place that looks at a clock. */
#ifndef RDDP_NET_LOOP_H
#define RDDP_NET_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Called with the readiness that came: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLLRDHUP. */
struct watch {
    int fd;
    uint32_t events;
    void (*ready)(struct watch *watch, uint32_t events);
};

/* `fire` is called once when its time has come. A timer that is set again just moves. */
struct timer {
    _Atomic uint64_t at_us;
    _Atomic uint32_t place; /* in the heap, counted from 1; 0: not set */
    void (*fire)(struct timer *timer, uint64_t now_us);
};

enum { LOOP_EVENTS = 64 };

/* One thread at a time runs a loop and ends watches of it. Timers are set, and watches changed, from any thread, but
 * each of them from one at a time. */
struct loop {
    int epoll_fd, timer_fd;
    int parents_fd; /* in a child of fork(): the number of the parent's epoll descriptor, or -1 */
    struct epoll_event event[LOOP_EVENTS]; /* what the last round was told: those from `at` on have not been called */
    int at, count;
    pthread_mutex_t timer_lock; /* guards the heap; not held while a timer fires */
    struct timer **heap;
    uint32_t timers, users, heap_room; /* set, added, room for */
    uint64_t armed_us;                 /* what timer_fd will tell, never later than the earliest timer */
    struct watch timer_watch;
};

/* Microseconds of the monotonic clock. */
uint64_t loop_now_us(void);

/* 0, -EMFILE. loop_fini() is called once for each loop_init(), also for one that failed. */
int loop_init(struct loop *loop);
void loop_fini(struct loop *loop);

/* In a child of fork(): the kernel's objects are the parent's as well and must not change. Whatever is called from here
 * on changes nothing there. The timers stay. */
void loop_leave(struct loop *loop);

/* Then, if the loop is to run in the child: descriptors of its own, the epoll one with the number it had. 0, -EMFILE:
 * as loop_leave() left it. */
int loop_renew(struct loop *loop);

/* Starts, changes and ends watching; `events` 0 keeps only errors. 0 or a negative errno. */
int loop_watch(struct loop *loop, struct watch *watch, uint32_t events);
void loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events);
void loop_unwatch(struct loop *loop, struct watch *watch);

/* Room for one more timer, so that setting one cannot fail. 0 or -ENOMEM. Given back by loop_forget_timer(). */
int loop_add_timer(struct loop *loop, struct timer *timer);
void loop_set_timer(struct loop *loop, struct timer *timer, uint64_t at_us); /* UINT64_MAX: not at all */
void loop_forget_timer(struct loop *loop, struct timer *timer);

/* Waits until something is ready or a timer is due, and does nothing about it: needs no lock. False: time-out or a
 * signal. */
bool loop_sleep(const struct loop *loop, int timeout_ms);

/* Calls what is ready or due now, and returns how many. It ends early when somebody else waits for his turn (`*wanted`
 * is not 0); the next round goes on where this one stopped, so that nobody starves. */
int loop_run(struct loop *loop, const _Atomic uint32_t *wanted);

#endif
