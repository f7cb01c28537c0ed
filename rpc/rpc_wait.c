/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_wait.c - see rpc_wait.h. */
#include "rpc/rpc_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

int rpc_wait_add(struct rpc_wait *wait, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(wait->fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int rpc_wait_open(struct rpc_wait *wait, struct rddp_context *context, struct rddp_event_channel *events)
{
    int error;

    *wait = (struct rpc_wait){epoll_create1(EPOLL_CLOEXEC), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), false};
    if (wait->fd < 0 || wait->kick < 0 || fcntl(rddp_event_channel_fd(events), F_SETFL, O_NONBLOCK))
        return -errno;
    error = rpc_wait_add(wait, wait->kick);
    if (!error)
        error = rpc_wait_add(wait, rddp_event_channel_fd(events));
    return error ? error : rpc_wait_add(wait, rddp_progress_fd(context));
}

void rpc_wait_close(struct rpc_wait *wait)
{
    if (wait->fd >= 0)
        close(wait->fd);
    if (wait->kick >= 0)
        close(wait->kick);
}

void rpc_wait_kick(struct rpc_wait *wait)
{
    uint64_t one = 1;

    if (!wait->kicked)
        wait->kicked = write(wait->kick, &one, sizeof(one)) == sizeof(one);
}

void rpc_wait_unkick(struct rpc_wait *wait)
{
    uint64_t count;

    if (wait->kicked && read(wait->kick, &count, sizeof(count)) == sizeof(count))
        wait->kicked = false;
}
