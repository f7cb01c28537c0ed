/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reactor.h - waits for descriptors and timers and calls back; the only code that reads a clock. */
#ifndef RDDP_LOOP_REACTOR_H
#define RDDP_LOOP_REACTOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "loop/timers.h"

/* A descriptor to watch. ready() is called with the events that happened: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP,
 * EPOLLRDHUP. */
struct watch {
    int fd;
    uint32_t events;
    bool rests;         /* out of the epoll set: see reactor_rest() */
    bool is_shut_out;   /* the set has not taken it back: it is asked, and tried again, by a timer */
    struct watch *next; /* of those */
    void (*ready)(struct watch *watch, uint32_t events);
};

enum { REACTOR_EVENTS = 64 };

/* One thread at a time runs a reactor and calls reactor_unwatch() on it (in a context: the holder of the loop lock).
 * Any thread may set timers and change watches, but only one thread at a time may change the same timer or watch. */
struct reactor {
    _Atomic int epoll_fd, timer_fd;
    _Atomic int parents_fd; /* in a child of fork(): the number of the parent's epoll descriptor; otherwise -1 */
    _Atomic bool is_cut;    /* a call has found descriptors closed */
    bool is_guarded;        /* a sleep watches the sentinel, too: not if there was none that was ours */
    unsigned losses;        /* of descriptors, before those of the reactor were made */
    /* Events of the last epoll_wait(); those from `at` to `count` were not processed. */
    struct epoll_event event[REACTOR_EVENTS];
    int at, count;
    unsigned nothing;           /* looks at the set that showed nothing */
    struct watch *shut_out;     /* those that the set has not taken back */
    struct timer again;         /* for them, ... */
    uint64_t again_us;          /* ... set so long before it is due, unless it was set already */
    pthread_mutex_t timer_lock; /* guards the heap, released while a timer fires; what is shut out */
    struct timers timers;
    uint64_t armed_us;         /* when timer_fd expires: not later than the earliest timer, unless attended to */
    _Atomic uint64_t first_us; /* when the earliest is due, or earlier */
    _Atomic bool is_attended;  /* see reactor_attend(): it was called with this, ... */
    bool has_attendant;
    unsigned sleepers; /* ... and none of these is there. Guarded by timer_lock, as the one before */
    struct watch timer_watch;
};

/* Returns the time of the monotonic clock in microseconds. */
uint64_t reactor_now_us(void);

/* The same as of the last tick of the scheduler, 1 to 10 ms ago: much cheaper. */
uint64_t reactor_tick_us(void);

/* The same in nanoseconds. */
uint64_t reactor_now_ns(void);

/* Initialises a reactor. Returns 0, -EMFILE or -ENOMEM. Call reactor_fini() once after each reactor_init(), even one
 * that failed.
 */
int reactor_init(struct reactor *reactor);
void reactor_fini(struct reactor *reactor);

/* In a child of fork(): the parent shares the kernel objects, which must not be changed. After this call nothing
 * changes them. Timers remain set. */
void reactor_leave(struct reactor *reactor);

/* Are its descriptors, and others that were made with them, still the library's? A system call. */
bool reactor_is_ours(const struct reactor *reactor);

/* The program has closed the descriptors: forgets them, whatever has their numbers now. By the driver. */
void reactor_forget_descriptors(struct reactor *reactor);

/* After reactor_leave(), if it shall run in the child: makes descriptors of its own; the epoll descriptor keeps
 * its number. Returns 0; -EMFILE: it is as reactor_leave() left it. */
int reactor_renew(struct reactor *reactor);

/* Start, change and end watching. With `events` 0 only errors are reported. reactor_watch() returns 0 or a negative
 * errno. */
int reactor_watch(struct reactor *reactor, struct watch *watch, uint32_t events);
void reactor_rewatch(struct reactor *reactor, struct watch *watch, uint32_t events);
void reactor_unwatch(struct reactor *reactor, struct watch *watch);

/* Takes a descriptor out of the set while a poller asks it all the time: each arrival otherwise costs its sender a walk
 * to the set. reactor_rouse() puts it back, and may be called at any time; reactor_rewatch() with other events puts it
 * back, too. If the system has no memory for that, the descriptor is asked now and then until it has, and ready() is
 * called as before, but later: by 1 ms, or by up to 100 ms where nothing has come for long. */
void reactor_rest(struct reactor *reactor, struct watch *watch);
void reactor_rouse(struct reactor *reactor, struct watch *watch);

/* Reserves room for one more timer, so that setting it cannot fail. Returns 0 or -ENOMEM. reactor_forget_timer()
 * releases it. */
int reactor_add_timer(struct reactor *reactor, struct timer *timer);
void reactor_set_timer(struct reactor *reactor, struct timer *timer, uint64_t at_us); /* UINT64_MAX: unset */
void reactor_forget_timer(struct reactor *reactor, struct timer *timer);

/* While timers are attended to, reactor_run() is called often, or a thread asks reactor_has_due(): no descriptor shows
 * them, and nothing that sleeps wakes for them. Each expiry of a descriptor interrupts a processor, which costs some
 * microseconds, and ten times as many on a virtual one. */
void reactor_attend(struct reactor *reactor, bool attended);
bool reactor_has_due(const struct reactor *reactor);

/* Whoever sleeps at the descriptors wakes for timers as well: from the first call on the descriptors show them, until
 * the second one takes it back. Of several sleepers the last one decides. */
void reactor_expect_sleeper(struct reactor *reactor);
void reactor_end_sleeper(struct reactor *reactor);

/* Waits until something is ready or a timer is due, and processes nothing: needs no lock. Returns false after the
 * time-out or a signal. It also ends when the program closes the descriptors: is_cut. */
bool reactor_sleep(struct reactor *reactor, int timeout_ms);
bool reactor_sleep_us(struct reactor *reactor, uint64_t timeout_us); /* UINT64_MAX: no limit */

/* Waits until `end_us` without sleeping, for those who look again and again whether something has come. A sleeper costs
 * the sender of a packet some microseconds to wake, and much longer to arrive. Returns the time. */
uint64_t reactor_spin(uint64_t end_us);

/* Calls back for everything that is ready or due now, and returns the number of callbacks. Returns early if another
 * thread waits for its turn (*wanted is not 0); the next call continues there, so that no watch starves. */
int reactor_run(struct reactor *reactor, const _Atomic uint32_t *wanted);

#endif
