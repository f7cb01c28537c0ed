/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_attr.h - checks what a queue pair is given when it is connected by hand. */
#ifndef RDDP_ROCE_IO_ROCE_ATTR_H
#define RDDP_ROCE_IO_ROCE_ATTR_H

#include <rddp/rddp.h>

enum { ROCE_ATTR_CODE_MAX = 31 /* of a timer */ };

/* Are the members that RTR reads, or RTS, in range? */
bool roce_attr_may_receive(const struct rddp_ib_attr *attr);
bool roce_attr_may_send(const struct rddp_ib_attr *attr);

/* Is it a path MTU, or 0, which leaves the choice to us? */
bool roce_attr_is_mtu(uint32_t mtu);

#endif
