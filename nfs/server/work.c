/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* work.c - a thread pool for calls that may block: two queues and one lock. */
#include "nfs/server/work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct queue {
    struct work *first, **last;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct queue todo, done;
    bool ending;
    int fd; /* eventfd: readable while `done` is not empty */
    unsigned threads;
    pthread_t thread[WORKERS_MAX];
};

static void queue_init(struct queue *queue)
{
    *queue = (struct queue){.last = &queue->first};
}

/* Appends `work`. Returns whether the queue was empty before. */
static bool queue_push(struct queue *queue, struct work *work)
{
    bool first = !queue->first;

    work->next = NULL;
    *queue->last = work;
    queue->last = &work->next;
    return first;
}

static struct work *queue_pop(struct queue *queue)
{
    struct work *work = queue->first;

    queue->first = work->next;
    if (!queue->first)
        queue->last = &queue->first;
    return work;
}

static void *work_on(void *user)
{
    static const uint64_t one = 1;
    struct workers *w = user;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct work *work;

        while (!w->todo.first && !w->ending)
            pthread_cond_wait(&w->more, &w->lock);
        if (!w->todo.first)
            break;
        work = queue_pop(&w->todo);
        pthread_mutex_unlock(&w->lock);
        work->run(work);
        pthread_mutex_lock(&w->lock);
        /* The counter of an eventfd cannot overflow here, so the write cannot fail. */
        if (queue_push(&w->done, work) && write(w->fd, &one, sizeof(one)) < 0)
            abort();
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static int start_threads(struct workers *w, unsigned threads)
{
    sigset_t all, before;
    int error = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (w->threads < threads && error == 0) {
        error = pthread_create(&w->thread[w->threads], NULL, work_on, w);
        w->threads += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

struct workers *workers_open(unsigned threads)
{
    struct workers *w = calloc(1, sizeof(*w));
    int error;

    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    queue_init(&w->todo);
    queue_init(&w->done);
    w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    error = w->fd < 0 ? errno : 0;
    threads = threads < 1 ? 1 : threads > WORKERS_MAX ? WORKERS_MAX : threads;
    if (!error)
        error = start_threads(w, threads);
    if (!error)
        return w;
    workers_close(w);
    errno = error;
    return NULL;
}

void workers_close(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    while (w->threads)
        pthread_join(w->thread[--w->threads], NULL);
    if (w->fd >= 0)
        close(w->fd);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void workers_give(struct workers *w, struct work *work)
{
    pthread_mutex_lock(&w->lock);
    queue_push(&w->todo, work);
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

int workers_fd(const struct workers *w)
{
    return w->fd;
}

struct work *workers_take(struct workers *w)
{
    struct work *all;
    uint64_t count;

    pthread_mutex_lock(&w->lock);
    if (read(w->fd, &count, sizeof(count)) < 0)
        count = 0; /* EAGAIN: nothing was written since the last read */
    all = w->done.first;
    queue_init(&w->done);
    pthread_mutex_unlock(&w->lock);
    return all;
}
