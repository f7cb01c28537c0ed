/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notifier.c - the pair of sockets behind a notifier's descriptor. */
#include "loop/notifier.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/cancel.h"
#include "loop/descriptors.h"

static int notifier_pair(int fd[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) ? -EMFILE : 0;
}

int notifier_init(struct notifier *notifier)
{
    int fd[2];

    if (notifier_pair(fd))
        return -EMFILE;
    *notifier = (struct notifier){.read_fd = fd[0], .write_fd = fd[1]};
    return 0;
}

void notifier_fini(struct notifier *notifier)
{
    descriptor_close(notifier->read_fd);
    descriptor_close(notifier->write_fd);
}

/* The descriptors may be used: they are neither the parent's nor a file's of the program. */
static bool is_usable(const struct notifier *notifier)
{
    return !notifier->is_parents && descriptors_are_ours();
}

/* The callers hold a lock and must be able to release it. */
void notifier_raise(struct notifier *notifier)
{
    cancel_hold();
    while (!notifier->raised && is_usable(notifier) && write(notifier->write_fd, "", 1) < 0 && errno == EINTR)
        continue;
    notifier->raised = true;
    cancel_release();
}

void notifier_lower(struct notifier *notifier)
{
    char octet;

    cancel_hold();
    while (notifier->raised && is_usable(notifier) && read(notifier->read_fd, &octet, 1) < 0 && errno == EINTR)
        continue;
    notifier->raised = false;
    cancel_release();
}

int notifier_wait(const struct notifier *notifier)
{
    char octet;
    ssize_t n = recv(notifier->read_fd, &octet, 1, MSG_PEEK);

    if (n < 0)
        return -errno;
    return n ? 0 : -EBADF; /* the other end, which is ours too, is closed */
}

bool notifier_may_wait(const struct notifier *notifier)
{
    return !(fcntl(notifier->read_fd, F_GETFL) & O_NONBLOCK);
}

void notifier_leave(struct notifier *notifier)
{
    notifier->is_parents = true;
}

void notifier_forget_descriptors(struct notifier *notifier)
{
    notifier->read_fd = notifier->write_fd = -1;
}

/* Keeps O_NONBLOCK and close-on-exec, which the application may have changed. */
static int replace(int fd, int by)
{
    int flags = fcntl(fd, F_GETFL) & O_NONBLOCK, cloexec = fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;

    return fcntl(by, F_SETFL, fcntl(by, F_GETFL) | flags) || dup3(by, fd, cloexec) < 0 ? -EMFILE : 0;
}

int notifier_renew(struct notifier *notifier)
{
    int fd[2], error;

    if (!notifier->is_parents)
        return 0;
    if (notifier_pair(fd))
        return -EMFILE;
    error = replace(notifier->read_fd, fd[0]) || replace(notifier->write_fd, fd[1]) ? -EMFILE : 0;
    close(fd[0]);
    close(fd[1]);
    notifier->is_parents = error;
    if (!error && notifier->raised) {
        notifier->raised = false;
        notifier_raise(notifier);
    }
    return error;
}
