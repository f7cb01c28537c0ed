/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* work.h - threads for what may wait: one thread gives work and takes back what is done. */
#ifndef RDDP_NFS_SERVER_WORK_H
#define RDDP_NFS_SERVER_WORK_H

enum { WORKERS_MAX = 64 };

struct work {                       /* embedded in what is to be done */
    void (*run)(struct work *work); /* in a thread of the pool */
    struct work *next;
};

struct workers;

/* NULL and errno. Signals stay with the thread that calls this. */
struct workers *workers_open(unsigned threads);
/* Nothing may be in work. */
void workers_close(struct workers *workers);

void workers_give(struct workers *workers, struct work *work);
/* Readable when something is done. */
int workers_fd(const struct workers *workers);
/* What is done, in the order in which it was, or NULL. */
struct work *workers_take(struct workers *workers);

#endif
