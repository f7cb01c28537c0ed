/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link_memory.c - two rings under one lock; an eventfd of each end tells its loop to look at them. */
#include "tests/suite/lib/link_memory.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/container.h"

struct end {
    struct link link;
    struct watch watch;
    struct memory *memory;
    unsigned wants;
    uint8_t octets[LINK_MEMORY_MAX]; /* for this end to read */
    uint64_t written, read;          /* of those, by the other end and by this one */
    bool has_ended, is_closed;       /* it will write no more; it is gone */
};

/* Freed by the end that is closed last. */
struct memory {
    pthread_mutex_t lock; /* guards everything but `link` and `watch` */
    struct end end[2];
    uint32_t capacity;
    bool is_cut;
};

static struct end *end_of(struct link *link)
{
    return container_of(link, struct end, link);
}

static struct end *other_of(struct end *end)
{
    return &end->memory->end[end == end->memory->end];
}

static bool is_lost(struct end *end)
{
    struct end *other = other_of(end);

    return end->memory->is_cut || (other->is_closed && !other->has_ended);
}

/* The events that an end waits for and that have happened. */
static unsigned news_of(struct end *end)
{
    struct end *other = other_of(end);
    unsigned news = is_lost(end) ? LINK_LOST : 0;

    if (end->wants & LINK_WANT_READ && (end->written > end->read || other->has_ended))
        news |= LINK_READABLE;
    if (end->wants & LINK_WANT_WRITE && other->written - other->read < end->memory->capacity)
        news |= LINK_WRITABLE;
    if (end->wants & LINK_WANT_END && other->has_ended)
        news |= LINK_ENDED;
    return news;
}

static void nudge(struct end *end)
{
    if (!end->is_closed && news_of(end))
        (void)eventfd_write(end->watch.fd, 1);
}

static void look(struct watch *watch, uint32_t events)
{
    struct end *end = container_of(watch, struct end, watch);
    eventfd_t count;
    unsigned news;

    (void)events;
    pthread_mutex_lock(&end->memory->lock);
    (void)eventfd_read(watch->fd, &count);
    news = news_of(end);
    pthread_mutex_unlock(&end->memory->lock);
    if (news)
        end->link.on_event(&end->link, news); /* it may close the link */
}

static void want(struct link *link, unsigned wants)
{
    struct end *end = end_of(link);

    pthread_mutex_lock(&end->memory->lock);
    end->wants = wants;
    nudge(end);
    pthread_mutex_unlock(&end->memory->lock);
}

static ssize_t receive(struct link *link, const struct link_buffers *buffers)
{
    struct end *end = end_of(link);
    size_t n = 0;
    bool is_over;

    assert(!buffers->then);
    pthread_mutex_lock(&end->memory->lock);
    for (; n < buffers->octets && end->read < end->written; n++)
        buffers->at[n] = end->octets[end->read++ % LINK_MEMORY_MAX];
    is_over = other_of(end)->has_ended;
    if (!n && is_lost(end))
        n = (size_t)-ECONNRESET;
    nudge(other_of(end));
    nudge(end);
    pthread_mutex_unlock(&end->memory->lock);
    return n || is_over ? (ssize_t)n : -EAGAIN;
}

static ssize_t send_octets(struct link *link, const struct span *span, uint32_t spans)
{
    struct end *end = end_of(link), *other = other_of(end);
    ssize_t n = 0;

    pthread_mutex_lock(&end->memory->lock);
    for (uint32_t i = 0; i < spans; i++)
        for (size_t at = 0; at < span[i].length && other->written - other->read < end->memory->capacity; at++, n++)
            other->octets[other->written++ % LINK_MEMORY_MAX] = span[i].at[at];
    if (is_lost(end))
        n = -EPIPE;
    nudge(other);
    pthread_mutex_unlock(&end->memory->lock);
    return n ? n : -EAGAIN;
}

static void finish(struct link *link)
{
    struct end *end = end_of(link);

    pthread_mutex_lock(&end->memory->lock);
    end->has_ended = true;
    nudge(other_of(end));
    pthread_mutex_unlock(&end->memory->lock);
}

static uint32_t segment_size(struct link *link)
{
    (void)link;
    return 1448;
}

static void names(struct link *link, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
    (void)link;
    *local = *peer = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
}

static void close_end(struct link *link)
{
    struct end *end = end_of(link);
    struct memory *memory = end->memory;
    bool is_last;

    reactor_unwatch(link->reactor, &end->watch);
    pthread_mutex_lock(&memory->lock);
    close(end->watch.fd);
    end->is_closed = true;
    is_last = other_of(end)->is_closed;
    nudge(other_of(end));
    pthread_mutex_unlock(&memory->lock);
    if (is_last) {
        pthread_mutex_destroy(&memory->lock);
        free(memory);
    }
}

static const struct link_kind kind = {
    .name = "memory",
    .in_order = true,
    .want = want,
    .receive = receive,
    .send = send_octets,
    .finish = finish,
    .segment_size = segment_size,
    .names = names,
    .close = close_end,
};

void link_memory_new(struct link *end[2], struct reactor *const reactor[2], uint32_t capacity)
{
    struct memory *memory = calloc(1, sizeof(*memory));

    assert(memory && capacity && capacity <= LINK_MEMORY_MAX);
    pthread_mutex_init(&memory->lock, NULL);
    memory->capacity = capacity;
    for (int i = 0; i < 2; i++) {
        struct end *e = &memory->end[i];

        e->memory = memory;
        e->link = (struct link){.kind = &kind, .reactor = reactor[i], .is_up = true};
        e->watch = (struct watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = look};
        assert(e->watch.fd >= 0);
        if (reactor_watch(reactor[i], &e->watch, EPOLLIN))
            abort();
        end[i] = &e->link;
    }
}

uint64_t link_memory_carried(struct link *end)
{
    struct memory *memory = end_of(end)->memory;
    uint64_t carried;

    pthread_mutex_lock(&memory->lock);
    carried = memory->end[0].written + memory->end[1].written;
    pthread_mutex_unlock(&memory->lock);
    return carried;
}

void link_memory_cut(struct link *end)
{
    struct memory *memory = end_of(end)->memory;

    pthread_mutex_lock(&memory->lock);
    memory->is_cut = true;
    nudge(&memory->end[0]);
    nudge(&memory->end[1]);
    pthread_mutex_unlock(&memory->lock);
}
