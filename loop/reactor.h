/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loop.h - waits for sockets and timers; the only code that reads a clock. */
#ifndef RDDP_LOOP_REACTOR_H
#define RDDP_LOOP_REACTOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* A descriptor to watch. ready() is called with the events that happened: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP,
 * EPOLLRDHUP. */
struct watch {
    int fd;
    uint32_t events;
    void (*ready)(struct watch *watch, uint32_t events);
};

/* A timer. fire() is called once at that time, without timer_lock. Setting a timer again moves it. */
struct timer {
    _Atomic uint64_t at_us;
    _Atomic uint32_t place; /* position in the heap, counted from 1; 0: not set */
    void (*fire)(struct timer *timer, uint64_t now_us);
};

enum { LOOP_EVENTS = 64 };

/* One thread at a time runs a loop and calls loop_unwatch() on it (in api/: the holder of the loop's token). Any thread
 * may set timers and change watches, but only one thread at a time may change the same timer or watch. */
struct loop {
    int epoll_fd, timer_fd;
    int parents_fd; /* in a child of fork(): the number of the parent's epoll descriptor; otherwise -1 */
    /* Events of the last epoll_wait(); those from `at` to `count` were not processed. */
    struct epoll_event event[LOOP_EVENTS];
    int at, count;
    pthread_mutex_t timer_lock; /* guards the heap; released while a timer fires */
    struct timer **heap;
    uint32_t timers, users, heap_capacity; /* timers set; timers added; capacity of the heap */
    uint64_t armed_us;                     /* when timer_fd expires; never later than the earliest timer */
    struct watch timer_watch;
};

/* Returns the time of the monotonic clock in microseconds. */
uint64_t loop_now_us(void);

/* Initialises a loop. Returns 0 or -EMFILE. Call loop_fini() once after each loop_init(), even one that failed. */
int loop_init(struct loop *loop);
void loop_fini(struct loop *loop);

/* In a child of fork(): the parent shares the kernel objects, which must not be changed. After this call nothing
 * changes them. Timers remain set. */
void loop_leave(struct loop *loop);

/* After loop_leave(), if the loop shall run in the child: makes descriptors of its own; the epoll descriptor keeps its
 * number. Returns 0; -EMFILE: the loop is as loop_leave() left it. */
int loop_renew(struct loop *loop);

/* Start, change and end watching. With `events` 0 only errors are reported. loop_watch() returns 0 or a negative
 * errno. */
int loop_watch(struct loop *loop, struct watch *watch, uint32_t events);
void loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events);
void loop_unwatch(struct loop *loop, struct watch *watch);

/* Reserves room for one more timer, so that setting it cannot fail. Returns 0 or -ENOMEM. loop_forget_timer() releases
 * it. */
int loop_add_timer(struct loop *loop, struct timer *timer);
void loop_set_timer(struct loop *loop, struct timer *timer, uint64_t at_us); /* UINT64_MAX: unset */
void loop_forget_timer(struct loop *loop, struct timer *timer);

/* Waits until something is ready or a timer is due, and processes nothing: needs no lock. Returns false after the
 * time-out or a signal. */
bool loop_sleep(const struct loop *loop, int timeout_ms);

/* Waits until `end_us` without sleeping, for those who look again and again whether something has come. A sleeper costs
 * the sender of a packet some microseconds to wake, and much longer to arrive. Returns the time. */
uint64_t loop_spin(uint64_t end_us);

/* Calls back for everything that is ready or due now, and returns the number of callbacks. Returns early if another
 * thread waits for its turn (*wanted is not 0); the next call continues there, so that no watch starves. */
int loop_run(struct loop *loop, const _Atomic uint32_t *wanted);

#endif
