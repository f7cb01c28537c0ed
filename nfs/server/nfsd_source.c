/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_source.c - descriptors that the main thread waits for. */
#include <errno.h>
#include <sys/epoll.h>

#include "nfs/server/nfsd_in.h"

int source_watch(struct nfsd *d, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    return epoll_ctl(d->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0 ? 0 : -errno;
}

void source_change(struct nfsd *d, const struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = (void *)(uintptr_t)source};

    epoll_ctl(d->epoll, EPOLL_CTL_MOD, source->fd, &event);
}
