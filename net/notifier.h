/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notifier.h - a descriptor that is readable while something waits: a pipe, because an eventfd raises no SIGIO. */
#ifndef RDDP_NET_NOTIFIER_H
#define RDDP_NET_NOTIFIER_H

#include <stdbool.h>

struct notifier {
    int read_fd, write_fd;
    bool raised;
};

int notifier_init(struct notifier *notifier); /* 0 or -EMFILE */
void notifier_fini(struct notifier *notifier);

/* Both under the lock that guards what waits. */
void notifier_raise(struct notifier *notifier);
void notifier_lower(struct notifier *notifier);

/* Waits until it is raised: 0; -EAGAIN if the application made the descriptor O_NONBLOCK; -EINTR. At most `timeout_ms`
 * (-1: for ever; then 0, too). */
int notifier_wait(const struct notifier *notifier, int timeout_ms);

#endif
