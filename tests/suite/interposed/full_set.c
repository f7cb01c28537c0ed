/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* full_set.c - epoll_ctl() in front of the C library's, which refuses to add anything while a test says so. */
#include "tests/suite/interposed/full_set.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

atomic_bool set_is_full;
atomic_uint set_refusals;

int epoll_ctl(int set, int what, int fd, struct epoll_event *event)
{
    static _Atomic(void *) next;
    int (*call)(int, int, int, struct epoll_event *);
    void *found = atomic_load(&next);

    if (what == EPOLL_CTL_ADD && atomic_load(&set_is_full)) {
        atomic_fetch_add(&set_refusals, 1);
        errno = ENOSPC;
        return -1;
    }
    if (!found)
        atomic_store(&next, found = dlsym(RTLD_NEXT, "epoll_ctl"));
    memcpy(&call, &found, sizeof(call));
    return call(set, what, fd, event);
}
