/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* channel.h - what channels of every kind have in common: how they are created, destroyed and waited for. */
#ifndef RDDP_API_CHANNEL_H
#define RDDP_API_CHANNEL_H

#include "endpoint/objects.h"

/* Allocates a channel of the context: `size` octets, zeroed. NULL with errno. */
void *channel_new(struct rddp_context *context, size_t size);

/* Adds the channel to its context when its parts are made; frees it if they could not be: `error` is 0 or a negative
 * errno. Returns `channel`, or NULL with errno. */
void *channel_complete(void *channel, struct rddp_context *context, enum member_kind kind, struct member *member,
                       int error);

/* Takes the channel out of its context, after which its parts can go. Returns 0; -EBUSY while it has users. */
int channel_leave(struct rddp_context *context, struct member *member, uint32_t users);

/* Takes a report and stores its reporter and its kind. Waits for one unless the descriptor is O_NONBLOCK. Returns 0, or
 * a negative errno. */
int channel_await(struct rddp_context *context, struct reports *reports, struct reporter **reporter, unsigned *kind);

/* Returns its descriptor, or a negative errno. */
int channel_fd(struct rddp_context *context, const struct notifier *notifier);

#endif
