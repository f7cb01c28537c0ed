/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notifier.h - a descriptor that is readable while something is waiting: a socket, because an eventfd raises no SIGIO,
 * and of the calls that wait and take nothing recv() alone goes on after a signal whose handler has SA_RESTART. */
#ifndef RDDP_LOOP_NOTIFIER_H
#define RDDP_LOOP_NOTIFIER_H

#include <stdbool.h>

struct notifier {
    _Atomic int read_fd, write_fd; /* -1: the program has closed them */
    bool raised;
    bool is_parents; /* in a child of fork(): the parent shares the sockets */
};

int notifier_init(struct notifier *notifier); /* 0 or -EMFILE */
void notifier_fini(struct notifier *notifier);

/* Make the descriptor readable, or not. The caller holds the lock that guards what is waiting. */
void notifier_raise(struct notifier *notifier);
void notifier_lower(struct notifier *notifier);

/* In a child of fork(): notifier_leave() stops all changes to the shared sockets. notifier_renew(), under the same
 * lock, replaces them by sockets of the child's own with the same numbers and flags; returns 0, or -EMFILE: it can be
 * repeated. */
void notifier_leave(struct notifier *notifier);
int notifier_renew(struct notifier *notifier);

/* The program has closed the descriptors: forgets them, whatever has their numbers now. Under the same lock. */
void notifier_forget_descriptors(struct notifier *notifier);

/* Waits until the descriptor is readable. Returns 0; -EAGAIN if it is not and the application made it O_NONBLOCK;
 * -EINTR: a handler without SA_RESTART ran; or -EBADF: the program has closed the descriptors. */
int notifier_wait(const struct notifier *notifier);

/* False: the application made the descriptor O_NONBLOCK. */
bool notifier_may_wait(const struct notifier *notifier);

#endif
