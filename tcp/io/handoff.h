/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handoff.h - connections that the kernel's TCP has begun go on with ours, at the host's own address. */
#ifndef RDDP_TCP_IO_HANDOFF_H
#define RDDP_TCP_IO_HANDOFF_H

#include "tcp/io/packet_device.h"

/* May this process do it? 0 or a negative errno. */
int handoff_check(void);

/* The device takes over what the kernel has begun: endpoints point to device->successor from here on. */
void handoff_init(struct rddp_device *device);

/* By the driver. Is there an endpoint that this device is to take over; one that the application still has? */
bool handoff_is_begun(const struct rddp_device *device);
bool handoff_is_awaited(const struct rddp_device *device);

#endif
