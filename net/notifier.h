/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notifier.h - a descriptor that is readable while something waits: a pipe, because an eventfd raises no SIGIO. */
#ifndef RDDP_NET_NOTIFIER_H
#define RDDP_NET_NOTIFIER_H

#include <stdbool.h>

struct notifier {
    int read_fd, write_fd;
    bool raised;
    bool is_parents; /* in a child of fork(): the pipe is the parent's as well */
};

int notifier_init(struct notifier *notifier); /* 0 or -EMFILE */
void notifier_fini(struct notifier *notifier);

/* Both under the lock that guards what waits. */
void notifier_raise(struct notifier *notifier);
void notifier_lower(struct notifier *notifier);

/* In a child of fork(): from here on the pipe stays as it is. Then, under the same lock, a pipe of its own with the
 * same numbers and flags: 0, or -EMFILE: to be tried again. */
void notifier_leave(struct notifier *notifier);
int notifier_renew(struct notifier *notifier);

/* Waits until it is raised: 0; -EAGAIN if the application made the descriptor O_NONBLOCK; -EINTR. At most `timeout_ms`
 * (-1: for ever; then 0, too). */
int notifier_wait(const struct notifier *notifier, int timeout_ms);

#endif
