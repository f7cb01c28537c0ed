/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_options.h - the options --packet, --hand-off and their kin: the library's own TCP. */
#ifndef TOOLS_LIB_PACKET_OPTIONS_H
#define TOOLS_LIB_PACKET_OPTIONS_H

#include "tools/lib/tool.h"
#include <rddp/stream.h>

struct packet_options {
    const char *address; /* ADDR or ADDR/BITS; NULL: the kernel's TCP */
    const char *name, *neighbor;
    uint32_t mtu, window_kib, lose;
    bool checksums, hand_off;
};

/* Set by opt_parse() for commands that accept these options. */
extern struct packet_options packet_options;
extern const struct opt packet_opts[];

/* Creates the device in `endpoint`, if --packet was given. */
int tool_packet_open(struct tool_endpoint *endpoint);

/* A net of streams behind the device that was asked for, --packet given; `attr` has what the options do not say. *own:
 * our address. */
int packet_stream_net(struct rddp_stream_net_attr *attr, struct rddp_stream_net **net, struct sockaddr_storage *own);

/* The same for a command of NFS, with the usual attributes; without --packet *net stays as it is. packet_nfs_check()
 * ends the command if the options make no sense there. */
void packet_nfs_check(void);
int packet_nfs_net(struct rddp_stream_net **net, struct sockaddr_storage *own);

/* Returns `wire` with the device of `endpoint`. */
struct rddp_wire_attr packet_wire(const struct tool_endpoint *endpoint, const struct rddp_wire_attr *wire);

/* Replaces the wildcard `address` by that of the device, to listen on. */
void packet_own(const struct tool_endpoint *endpoint, struct sockaddr_storage *address, socklen_t *length);

#endif
