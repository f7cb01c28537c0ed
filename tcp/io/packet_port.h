/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_port.h - a port of a device that is listened to. */
#ifndef RDDP_TCP_IO_PACKET_PORT_H
#define RDDP_TCP_IO_PACKET_PORT_H

#include <stdbool.h>

#include "tcp/packet.h"

struct link;

/* A listener behind a device. The driver calls arrived() with a link that is up; the callee owns it. */
struct packet_port {
    struct utcp_name name; /* address all 0: any */
    struct packet_port *next;
    bool (*has_space)(const struct packet_port *port);
    void (*arrived)(struct packet_port *port, struct link *link);
};

#endif
