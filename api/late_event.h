/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* late_event.h - events of the program's own that come after a while. */
#ifndef RDDP_API_LATE_EVENT_H
#define RDDP_API_LATE_EVENT_H

#include "endpoint/objects.h"

/* Takes away those of this channel that have not come yet: with this `user`, or all. Returns how many. */
uint32_t late_events_drop(struct rddp_event_channel *channel, bool all, const void *user);

/* Those with this `user` will come on the other channel. Returns how many. */
uint32_t late_events_move(struct rddp_event_channel *from, struct rddp_event_channel *to, const void *user);

#endif
