/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* work.h - a thread pool for calls that may block: one thread gives work and takes it back when it is done. */
#ifndef RDDP_NFS_SERVER_WORK_H
#define RDDP_NFS_SERVER_WORK_H

enum { WORKERS_MAX = 64 };

struct work {                       /* embedded in the caller's structure */
    void (*run)(struct work *work); /* called in a thread of the pool */
    struct work *next;
};

struct workers;

/* Returns NULL and sets errno on failure. The threads block all signals. */
struct workers *workers_open(unsigned threads);
/* All work must have been taken back. */
void workers_close(struct workers *workers);

void workers_give(struct workers *workers, struct work *work);
/* A descriptor that is readable when work is done. */
int workers_fd(const struct workers *workers);
/* Returns the finished work in the order in which it finished, as a list by `next`, or NULL. */
struct work *workers_take(struct workers *workers);

#endif
