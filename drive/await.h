/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* await.h - an application waits at a channel. */
#ifndef RDDP_DRIVE_AWAIT_H
#define RDDP_DRIVE_AWAIT_H

#include "endpoint/objects.h"

/* Waits until something may have come to the channel behind the notifier; in a context with manual progress also does
 * its work. Returns 0: look again; -EAGAIN: the descriptor is O_NONBLOCK; or -EINTR. */
int context_await(struct rddp_context *context, const struct notifier *notifier);

#endif
