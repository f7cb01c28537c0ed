/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* work.c - thread pools for calls that may block: a queue and a lock for each pool, and one queue for what is done. */
#include "nfs/server/work.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "nfs/server/export.h"

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct finished *finished;
    struct queue todo;
    bool ending;
    unsigned queued, idle; /* work in `todo`; threads that wait for some */
    unsigned threads, max;
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

/* --- what is done ------------------------------------------------------------------------------------------------ */

int finished_init(struct finished *finished)
{
    queue_init(&finished->queue);
    finished->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (finished->fd < 0)
        return -errno;
    pthread_mutex_init(&finished->lock, NULL);
    return 0;
}

void finished_fini(struct finished *finished)
{
    close(finished->fd);
    pthread_mutex_destroy(&finished->lock);
}

static void finished_put(struct finished *finished, struct work *work)
{
    static const uint64_t one = 1;
    ssize_t n = sizeof(one);

    pthread_mutex_lock(&finished->lock);
    if (queue_push(&finished->queue, work))
        n = write(finished->fd, &one, sizeof(one));
    assert(n == sizeof(one)); /* the counter of an eventfd cannot overflow here, so the write cannot fail */
    pthread_mutex_unlock(&finished->lock);
}

struct work *finished_take(struct finished *finished)
{
    struct work *all;
    uint64_t count;

    pthread_mutex_lock(&finished->lock);
    if (read(finished->fd, &count, sizeof(count)) < 0)
        count = 0; /* EAGAIN: nothing was written since the last read */
    all = finished->queue.first;
    queue_init(&finished->queue);
    pthread_mutex_unlock(&finished->lock);
    return all;
}

/* --- a pool ------------------------------------------------------------------------------------------------------ */

static void *work_on(void *user)
{
    struct workers *workers = user;

    pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct work *work;

        workers->idle++;
        while (!workers->todo.first && !workers->ending)
            pthread_cond_wait(&workers->more, &workers->lock);
        workers->idle--;
        if (!workers->todo.first)
            break;
        work = queue_pop(&workers->todo);
        workers->queued--;
        pthread_mutex_unlock(&workers->lock);
        work->run(work);
        finished_put(workers->finished, work);
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* A thread begins with the rights of the one that starts it, which may have assumed the identity of a caller: it would
 * keep them for good, as if they were the server's. */
static void workers_start(struct workers *workers)
{
    sigset_t all, before;

    identity_drop();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    workers->threads += pthread_create(&workers->thread[workers->threads], NULL, work_on, workers) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct workers *workers_open(struct finished *finished, unsigned max)
{
    struct workers *workers = calloc(1, sizeof(*workers));

    if (!workers)
        return NULL;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->more, NULL);
    queue_init(&workers->todo);
    workers->finished = finished;
    workers->max = max < 1 ? 1 : max > WORKERS_MAX ? WORKERS_MAX : max;
    return workers;
}

void workers_close(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->more);
    pthread_mutex_unlock(&workers->lock);
    while (workers->threads)
        pthread_join(workers->thread[--workers->threads], NULL);
    pthread_cond_destroy(&workers->more);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

bool workers_give(struct workers *workers, struct work *work)
{
    bool taken;

    pthread_mutex_lock(&workers->lock);
    if (workers->queued >= workers->idle && workers->threads < workers->max)
        workers_start(workers);
    taken = workers->threads > 0;
    if (taken) {
        queue_push(&workers->todo, work);
        workers->queued++;
        pthread_cond_signal(&workers->more);
    }
    pthread_mutex_unlock(&workers->lock);
    return taken;
}
