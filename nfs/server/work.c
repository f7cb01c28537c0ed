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
    struct workers *workers = user;

    pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct work *work;

        while (!workers->todo.first && !workers->ending)
            pthread_cond_wait(&workers->more, &workers->lock);
        if (!workers->todo.first)
            break;
        work = queue_pop(&workers->todo);
        pthread_mutex_unlock(&workers->lock);
        work->run(work);
        pthread_mutex_lock(&workers->lock);
        /* The counter of an eventfd cannot overflow here, so the write cannot fail. */
        if (queue_push(&workers->done, work) && write(workers->fd, &one, sizeof(one)) < 0)
            abort();
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static int start_threads(struct workers *workers, unsigned threads)
{
    sigset_t all, before;
    int error = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (workers->threads < threads && error == 0) {
        error = pthread_create(&workers->thread[workers->threads], NULL, work_on, workers);
        workers->threads += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

struct workers *workers_open(unsigned threads)
{
    struct workers *workers = calloc(1, sizeof(*workers));
    int error;

    if (!workers)
        return NULL;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->more, NULL);
    queue_init(&workers->todo);
    queue_init(&workers->done);
    workers->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    error = workers->fd < 0 ? errno : 0;
    threads = threads < 1 ? 1 : threads > WORKERS_MAX ? WORKERS_MAX : threads;
    if (!error)
        error = start_threads(workers, threads);
    if (!error)
        return workers;
    workers_close(workers);
    errno = error;
    return NULL;
}

void workers_close(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->more);
    pthread_mutex_unlock(&workers->lock);
    while (workers->threads)
        pthread_join(workers->thread[--workers->threads], NULL);
    if (workers->fd >= 0)
        close(workers->fd);
    pthread_cond_destroy(&workers->more);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

void workers_give(struct workers *workers, struct work *work)
{
    pthread_mutex_lock(&workers->lock);
    queue_push(&workers->todo, work);
    pthread_cond_signal(&workers->more);
    pthread_mutex_unlock(&workers->lock);
}

int workers_fd(const struct workers *workers)
{
    return workers->fd;
}

struct work *workers_take(struct workers *workers)
{
    struct work *all;
    uint64_t count;

    pthread_mutex_lock(&workers->lock);
    if (read(workers->fd, &count, sizeof(count)) < 0)
        count = 0; /* EAGAIN: nothing was written since the last read */
    all = workers->done.first;
    queue_init(&workers->done);
    pthread_mutex_unlock(&workers->lock);
    return all;
}
