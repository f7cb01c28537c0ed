/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* table.c - the rsockets of a process by their numbers. One is freed when no call uses it any more. A child can use
 * none of its parent's: their locks may be those of threads that it has not. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/rsock/rsock_datagram.h"

enum { CHUNK = 1024, CHUNKS = 1024 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of these */
static struct rsocket **chunks[CHUNKS];
static bool table_is_used;
static pid_t table_owner; /* this process */

int rs_fail(int error)
{
    errno = error;
    return -1;
}

int rs_leave(struct rsocket *rs, int error)
{
    rs_unlock(rs);
    rs_put(rs);
    return rs_result(error);
}

static void table_hold(void)
{
    pthread_mutex_lock(&table_lock);
}

static void table_release(void)
{
    pthread_mutex_unlock(&table_lock);
}

static void table_inherit(void)
{
    table_owner = getpid();
    table_release();
}

static struct rsocket **table_place(int fd)
{
    if (fd < 0 || fd >= CHUNK * CHUNKS || !chunks[fd / CHUNK])
        return NULL;
    return &chunks[fd / CHUNK][fd % CHUNK];
}

struct rsocket *rs_get(int fd)
{
    struct rsocket **place, *rs = NULL;

    table_hold();
    place = table_place(fd);
    if (place && *place && (*place)->owner == table_owner) {
        rs = *place;
        atomic_fetch_add(&rs->users, 1);
    }
    table_release();
    if (!rs)
        errno = EBADF;
    return rs;
}

bool rs_is_parents(int fd)
{
    struct rsocket **place;
    bool is_parents;

    table_hold();
    place = table_place(fd);
    is_parents = place && *place && (*place)->owner != table_owner;
    table_release();
    return is_parents;
}

struct rsocket *rs_new(int family, const struct rs_sizes *sizes)
{
    struct rsocket *rs = calloc(1, sizeof(*rs));

    if (!rs)
        return NULL;
    rs->events = rdma_create_event_channel();
    if (!rs->events) {
        free(rs);
        return NULL;
    }
    fcntl(rs->events->fd, F_SETFL, fcntl(rs->events->fd, F_GETFL) | O_NONBLOCK);
    pthread_mutex_init(&rs->lock, NULL);
    atomic_init(&rs->users, 1);
    rs->fd = rs->events->fd;
    rs->family = family;
    rs->owner = getpid();
    rs->sizes = *sizes;
    rs->options.max_segment = RS_SEGMENT;
    return rs;
}

static void rs_free(struct rsocket *rs)
{
    rs_datagram_free(rs);
    rs_queues_free(rs);
    if (rs->id)
        rdma_destroy_id(rs->id);
    rdma_destroy_event_channel(rs->events);
    pthread_mutex_destroy(&rs->lock);
    free(rs);
}

/* A thread that is cancelled finishes it first. */
void rs_put(struct rsocket *rs)
{
    int state;

    if (atomic_fetch_sub(&rs->users, 1) != 1)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    rs_free(rs);
    pthread_setcancelstate(state, NULL);
}

int rs_publish(struct rsocket *rs)
{
    struct rsocket **chunk = NULL;
    int fd = rs->fd, error = 0;

    if (fd >= CHUNK * CHUNKS)
        return EMFILE;
    table_hold();
    if (!table_is_used) { /* a child must not find the lock held by a thread that it has not */
        error = pthread_atfork(table_hold, table_release, table_inherit);
        table_is_used = !error;
        table_owner = rs->owner;
    }
    if (!error && !chunks[fd / CHUNK]) {
        chunk = calloc(CHUNK, sizeof(struct rsocket *));
        chunks[fd / CHUNK] = chunk;
        error = chunk ? 0 : ENOMEM;
    }
    if (!error)
        *table_place(fd) = rs;
    table_release();
    return error;
}

struct rsocket *rs_withdraw(int fd)
{
    struct rsocket **place, *rs = NULL;

    table_hold();
    place = table_place(fd);
    if (place) {
        rs = *place;
        *place = NULL;
    }
    table_release();
    if (!rs)
        errno = EBADF;
    return rs;
}

void rs_each(void (*visit)(struct rsocket *rs))
{
    for (int fd = 0; fd < CHUNK * CHUNKS; fd++) {
        struct rsocket *rs;
        if (!chunks[fd / CHUNK]) {
            fd += CHUNK - 1;
            continue;
        }
        rs = rs_get(fd);
        if (!rs)
            continue;
        visit(rs);
        rs_put(rs);
    }
}
