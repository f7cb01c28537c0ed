/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notifier.c - the pipe behind a notifier's descriptor. */
#include "loop/notifier.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "loop/cancel.h"

int notifier_init(struct notifier *notifier)
{
    int fd[2];

    if (pipe2(fd, O_CLOEXEC))
        return -EMFILE;
    *notifier = (struct notifier){.read_fd = fd[0], .write_fd = fd[1]};
    return 0;
}

void notifier_fini(struct notifier *notifier)
{
    close(notifier->read_fd);
    close(notifier->write_fd);
}

/* The callers hold a lock and must be able to release it. */
void notifier_raise(struct notifier *notifier)
{
    cancel_hold();
    while (!notifier->raised && !notifier->is_parents && write(notifier->write_fd, "", 1) < 0 && errno == EINTR)
        continue;
    notifier->raised = true;
    cancel_release();
}

void notifier_lower(struct notifier *notifier)
{
    char octet;

    cancel_hold();
    while (notifier->raised && !notifier->is_parents && read(notifier->read_fd, &octet, 1) < 0 && errno == EINTR)
        continue;
    notifier->raised = false;
    cancel_release();
}

int notifier_wait(const struct notifier *notifier, int timeout_ms)
{
    struct pollfd fd = {.fd = notifier->read_fd, .events = POLLIN};

    if (fcntl(notifier->read_fd, F_GETFL) & O_NONBLOCK)
        return -EAGAIN;
    return poll(&fd, 1, timeout_ms) < 0 ? -errno : 0;
}

void notifier_leave(struct notifier *notifier)
{
    notifier->is_parents = true;
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
    if (pipe2(fd, O_CLOEXEC))
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
