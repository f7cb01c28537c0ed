/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reports.h - a queue of objects that have something to report, behind a descriptor. A report needs no memory, and an
 * object stays until every report that was taken is acknowledged. */
#ifndef RDDP_LOOP_REPORTS_H
#define RDDP_LOOP_REPORTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/notifier.h"

/* Part of an object that reports; initially zeroed. Guarded by the lock of its queue. */
struct reporter {
    struct reporter *next; /* in the queue, while something is pending */
    uint32_t pending;      /* a bit for each kind of report that was not taken */
    uint32_t taken;        /* reports that were taken and not acknowledged */
};

struct reports {
    pthread_mutex_t lock; /* a leaf */
    pthread_cond_t acknowledged;
    struct notifier notifier;
    struct reporter *first, *last;
};

int reports_init(struct reports *reports); /* 0 or -EMFILE */
void reports_fini(struct reports *reports);

/* Queues a report of this kind (0 to 31). One of the same kind that still waits stands for both. */
void reports_add(struct reports *reports, struct reporter *from, unsigned kind);

/* Takes the oldest object's report with the lowest kind, without waiting, and counts it as taken. Returns NULL if there
 * is none. */
struct reporter *reports_take(struct reports *reports, unsigned *kind);

/* Acknowledges up to `n` reports that were taken. */
void reports_acknowledge(struct reports *reports, struct reporter *from, uint32_t n);

/* Drop the object's reports that were not taken. reports_withdraw() then waits until all that were taken are
 * acknowledged. */
void reports_drop(struct reports *reports, struct reporter *from);
void reports_withdraw(struct reports *reports, struct reporter *from);

/* In a child of fork(), whose other threads do not exist: reports_forget_taken() acknowledges all that was taken,
 * reports_leave() and reports_renew() are as of the notifier. Each takes no lock except the last. */
void reports_forget_taken(struct reporter *from);
void reports_leave(struct reports *reports);
int reports_renew(struct reports *reports);

/* As of the notifier. */
void reports_forget_descriptors(struct reports *reports);

#endif
