/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.c - the sentinel is a pair of sockets, since each socket has a number of its own: those of epoll and
 * eventfd do not. A poller of one end sees the other go, also when its own number is closed already: poll(2) holds the
 * file. */
#include "loop/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/cancel.h"

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
static unsigned users, guests; /* guests: as of descriptors_join() */
static int (*_Atomic users_give_up)(int (*then)(void));
static int generation; /* how many forks lie before this process: who joined in another one is no guest here */

/* Guards the above, but for those who only look. Held while the process forks, after fork.c has taken its locks: a
 * context that forks are watched for has opened the descriptors before. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

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

/* A program that closes all that it finds leaves the first three alone, which may be free before. */
static int out_of_the_first(int fd)
{
    int moved;

    if (fd > STDERR_FILENO)
        return fd;
    moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return moved;
}

static int open_pair(int fd[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
        return -EMFILE;
    for (int i = 0; i < 2; i++)
        fd[i] = out_of_the_first(fd[i]);
    if (fd[0] >= 0 && fd[1] >= 0)
        return 0;
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    return -EMFILE;
}

static int open_sentinel(void)
{
    int fd[2];

    if (open_pair(fd))
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

/* A program may keep what lies below some number, and one end in a hole there. Looks again if the sentinel changed
 * meanwhile. Not without end, since a thread that changes it may have to wait. */
static bool sentinel_is_lost(void)
{
    enum { LOOKS = 1000 };

    for (int i = 0; i < LOOKS; i++) {
        unsigned before = changes;
        int fd = sentinel, other = other_end;
        bool is_lost = (fd >= 0 && !is_the_same(fd, &sentinel_is)) || (other >= 0 && !is_the_same(other, &other_is));

        if (!(before & 1) && changes == before)
            return is_lost;
        if (before & 1)
            sched_yield();
    }
    return false;
}

/* --- fork() ----------------------------------------------------------------------------------------------------- */

static void hold_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void drop_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void leave_and_drop(void)
{
    descriptors_leave();
    guests = 0; /* streams are the parent's */
    generation = (generation + 1) & INT_MAX;
    drop_lock();
}

static void watch_descriptors(void)
{
    pthread_atfork(hold_lock, drop_lock, leave_and_drop);
}

/* A signal handler of the program may fork, and must not do so here, where it would wait for itself. */
static void descriptors_lock(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
    pthread_once(&once, watch_descriptors);
    pthread_mutex_lock(&lock);
    cancel_hold();
}

static void descriptors_unlock(const sigset_t *before)
{
    pthread_mutex_unlock(&lock);
    cancel_release();
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* --- users -------------------------------------------------------------------------------------------------------- */

static bool note_loss(void)
{
    if (!(losses & 1) && sentinel_is_lost())
        losses += 3;
    return losses & 1;
}

/* One that is shared with a parent goes with it. */
static int renew_if_needed(void)
{
    if (sentinel >= 0 && other_end >= 0 && !note_loss())
        return 0;
    close_sentinel();
    return open_sentinel();
}

int descriptors_open(void)
{
    sigset_t before;
    int error;

    descriptors_lock(&before);
    error = renew_if_needed();
    users += !error;
    descriptors_unlock(&before);
    return error;
}

void descriptors_close(void)
{
    sigset_t before;

    descriptors_lock(&before);
    if (!--users && !guests)
        close_sentinel();
    descriptors_unlock(&before);
}

/* One that is shared with a parent does not tell of a loss, but of the parent's end. */
static int add_guest(bool renews)
{
    sigset_t before;
    bool is_shared;
    int result;

    descriptors_lock(&before);
    is_shared = other_end < 0 && !note_loss();
    result = renews || !users || is_shared ? renew_if_needed() : 0;
    if (!result) {
        guests++;
        result = generation;
    }
    descriptors_unlock(&before);
    return result;
}

static int add_guest_after_loss(void)
{
    return add_guest(true);
}

/* A new sentinel would tell users that what they have lost is theirs. */
int descriptors_join(void)
{
    int (*give_up)(int (*then)(void)) = users_give_up;

    return give_up && descriptors_are_lost() ? give_up(add_guest_after_loss) : add_guest(false);
}

void descriptors_on_loss(int (*give_up)(int (*then)(void)))
{
    users_give_up = give_up;
}

void descriptors_part(int joined)
{
    sigset_t before;

    descriptors_lock(&before);
    guests -= joined == generation;
    if (!guests && !users)
        close_sentinel();
    descriptors_unlock(&before);
}

void descriptors_leave(void)
{
    close_end(&other_end, &other_is);
}

int descriptors_renew(void)
{
    sigset_t before;
    int error = 0;

    descriptors_lock(&before);
    if (note_loss()) {
        error = -EBADF;
    } else if (other_end < 0) {
        close_sentinel();
        error = open_sentinel();
    }
    descriptors_unlock(&before);
    return error;
}

bool descriptors_are_lost(void)
{
    sigset_t before;
    bool are_lost;

    descriptors_lock(&before);
    are_lost = note_loss();
    descriptors_unlock(&before);
    return are_lost;
}

/* --- who looks ---------------------------------------------------------------------------------------------------- */

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

int descriptors_sentinel(void)
{
    if (atomic_load_explicit(&other_end, memory_order_relaxed) < 0)
        return -1;
    return atomic_load_explicit(&sentinel, memory_order_relaxed);
}

void descriptor_close(int fd)
{
    if (descriptors_are_ours())
        close(fd);
}
