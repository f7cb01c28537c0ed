/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.c - the sentinel is one end of a pair of sockets, since each socket has a number of its own: those of
 * epoll and eventfd do not. A poller of it sees the other end go, also when its own number is closed already: poll(2)
 * holds the file. */
#include "loop/descriptors.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read beside changes, of which `changes` tells. */
struct descriptor_identity {
    _Atomic dev_t device;
    _Atomic ino_t inode;
};

/* `changes` is odd while the sentinel is being opened or closed. `losses` counts those that were noticed, twice, and is
 * odd until the next sentinel: the last one is lost. */
static _Atomic int sentinel = -1, other_end = -1;
static struct descriptor_identity sentinel_is, other_is;
static atomic_uint changes, losses;
static unsigned users;

static bool is_the_same(int fd, const struct descriptor_identity *as)
{
    struct stat about;

    return fd >= 0 && !fstat(fd, &about) && S_ISSOCK(about.st_mode) && about.st_dev == as->device &&
           about.st_ino == as->inode;
}

static void identify(int fd, struct descriptor_identity *out)
{
    struct stat about;

    if (fstat(fd, &about))
        return;
    out->device = about.st_dev;
    out->inode = about.st_ino;
}

static int open_sentinel(void)
{
    int fd[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
        return -EMFILE;
    changes++;
    identify(fd[0], &sentinel_is);
    identify(fd[1], &other_is);
    other_end = fd[1];
    sentinel = fd[0];
    changes++;
    losses &= ~1u;
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
    changes++;
    close_end(&other_end, &other_is);
    close_end(&sentinel, &sentinel_is);
    changes++;
}

int descriptors_open(void)
{
    int error = 0;

    if (sentinel < 0 || other_end < 0 || descriptors_are_lost()) { /* one that is shared with a parent goes with it */
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

/* Looks again if the sentinel changed meanwhile. Not without end, since a thread that changes it may have to wait. */
static bool sentinel_is_lost(void)
{
    enum { LOOKS = 1000 };

    for (int i = 0; i < LOOKS; i++) {
        unsigned before = changes;
        int fd = sentinel;
        bool is_lost = fd >= 0 && !is_the_same(fd, &sentinel_is);

        if (!(before & 1) && changes == before)
            return is_lost;
        if (before & 1)
            sched_yield();
    }
    return false;
}

/* Others may notice the loss that this sees, and make a new sentinel. */
unsigned descriptors_losses(void)
{
    unsigned noticed, count;

    do {
        noticed = losses;
        count = noticed / 2 + (!(noticed & 1) && sentinel_is_lost());
    } while (losses != noticed);
    return count;
}

bool descriptors_are_ours(void)
{
    return !(losses & 1) && !sentinel_is_lost();
}

bool descriptors_are_lost(void)
{
    bool other_is_lost = other_end >= 0 && !is_the_same(other_end, &other_is);

    if (!(losses & 1) && (sentinel_is_lost() || other_is_lost))
        losses += 3;
    return losses & 1;
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
