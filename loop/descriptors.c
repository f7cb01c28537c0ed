/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.c - the sentinel is one end of a pair of sockets, since each socket has a number of its own: those of
 * epoll and eventfd do not. A poller of it sees the other end go, also when its own number is closed already: poll(2)
 * holds the file. */
#include "loop/descriptors.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct descriptor_identity {
    dev_t device;
    ino_t inode;
};

static _Atomic int sentinel = -1, other_end = -1;
static struct descriptor_identity sentinel_is, other_is; /* written before a thread looks */
static atomic_bool gone;
static unsigned users;

static bool identify(int fd, struct descriptor_identity *out)
{
    struct stat about;

    if (fd < 0 || fstat(fd, &about) || !S_ISSOCK(about.st_mode))
        return false;
    *out = (struct descriptor_identity){about.st_dev, about.st_ino};
    return true;
}

static bool is_the_same(int fd, const struct descriptor_identity *as)
{
    struct descriptor_identity now;

    return identify(fd, &now) && now.device == as->device && now.inode == as->inode;
}

static int open_sentinel(void)
{
    int fd[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
        return -EMFILE;
    identify(fd[0], &sentinel_is);
    identify(fd[1], &other_is);
    other_end = fd[1];
    sentinel = fd[0];
    gone = false;
    return 0;
}

static void close_end(_Atomic int *fd, const struct descriptor_identity *is)
{
    if (is_the_same(*fd, is))
        close(*fd);
    *fd = -1;
}

static void close_sentinel(void)
{
    close_end(&other_end, &other_is);
    close_end(&sentinel, &sentinel_is);
}

int descriptors_open(void)
{
    int error = 0;

    if (sentinel < 0 || descriptors_are_lost()) {
        close_sentinel();
        error = open_sentinel();
    }
    users += !error;
    return error;
}

void descriptors_close(void)
{
    if (!--users)
        close_sentinel();
}

void descriptors_leave(void)
{
    close_end(&other_end, &other_is);
}

int descriptors_renew(void)
{
    if (descriptors_are_lost())
        return -EBADF;
    if (other_end >= 0)
        return 0;
    close_sentinel();
    return open_sentinel();
}

static bool sentinel_is_lost(int fd, const struct descriptor_identity *is)
{
    return fd >= 0 && !is_the_same(fd, is);
}

bool descriptors_are_ours(void)
{
    return !gone && !sentinel_is_lost(sentinel, &sentinel_is);
}

bool descriptors_are_lost(void)
{
    if (sentinel_is_lost(sentinel, &sentinel_is) || sentinel_is_lost(other_end, &other_is))
        gone = true;
    return gone;
}

int descriptors_sentinel(void)
{
    return atomic_load_explicit(&sentinel, memory_order_relaxed);
}

void descriptor_close(int fd)
{
    if (descriptors_are_ours())
        close(fd);
}
