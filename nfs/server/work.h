/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* work.h - thread pools for calls that may block: one thread gives work, and takes what is done from all pools. */
#ifndef RDDP_NFS_SERVER_WORK_H
#define RDDP_NFS_SERVER_WORK_H

#include <pthread.h>
#include <stdbool.h>

enum { WORKERS_MAX = 64 };

struct work {                        /* embedded in the caller's structure */
    void (*run)(struct work *work);  /* called in a thread of the pool */
    void (*done)(struct work *work); /* for the thread that takes it back */
    struct work *next;
};

struct queue {
    struct work *first, **last;
};

/* The work that is done, of any number of pools. */
struct finished {
    pthread_mutex_t lock;
    struct queue queue;
    int fd; /* eventfd: readable while `queue` is not empty */
};

/* Returns 0 or a negative errno. */
int finished_init(struct finished *finished);
void finished_fini(struct finished *finished);
/* Returns the work in the order in which it was done, as a list by `next`, or NULL. */
struct work *finished_take(struct finished *finished);

struct workers;

/* A pool that starts a thread when work finds none idle, up to `max`. Returns NULL and sets errno on failure.
 * `finished` is borrowed. */
struct workers *workers_open(struct finished *finished, unsigned max);
/* All work must be done. */
void workers_close(struct workers *workers);
/* Returns false if the pool has no thread and none can be started. The threads block all signals, and begin with the
 * server's own identity: one that the caller has assumed may be dropped. */
bool workers_give(struct workers *workers, struct work *work);

#endif
