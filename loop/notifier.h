/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notifier.h - a descriptor that is readable while something is waiting: a pipe, because an eventfd raises no SIGIO. */
#ifndef RDDP_LOOP_NOTIFIER_H
#define RDDP_LOOP_NOTIFIER_H

#include <stdbool.h>

struct notifier {
    int read_fd, write_fd;
    bool raised;
    bool is_parents; /* in a child of fork(): the parent shares the pipe */
};

int notifier_init(struct notifier *notifier); /* 0 or -EMFILE */
void notifier_fini(struct notifier *notifier);

/* Make the descriptor readable, or not. The caller holds the lock that guards what is waiting. */
void notifier_raise(struct notifier *notifier);
void notifier_lower(struct notifier *notifier);

/* In a child of fork(): notifier_leave() stops all changes to the shared pipe. notifier_renew(), under the same lock,
 * replaces it by a pipe of the child's own with the same numbers and flags; returns 0, or -EMFILE: it can be
 * repeated. */
void notifier_leave(struct notifier *notifier);
int notifier_renew(struct notifier *notifier);

/* Waits until the descriptor is readable, at most `timeout_ms` milliseconds (-1: no limit). Returns 0, after the
 * time-out too; -EAGAIN if the application made the descriptor O_NONBLOCK; -EINTR. */
int notifier_wait(const struct notifier *notifier, int timeout_ms);

#endif
