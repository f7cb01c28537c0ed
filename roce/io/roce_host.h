/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_host.h - for roce_port.c and roce_cm.c alone: the part that the ports of a loop share. */
#ifndef RDDP_ROCE_IO_ROCE_HOST_H
#define RDDP_ROCE_IO_ROCE_HOST_H

#include "roce/io/roce_port.h"

/* The host of a loop, made if there is none. Returns 0 or a negative errno. By the driver. */
int roce_host_get(struct loop *loop, struct roce_host **host);

/* Opens a socket of UDP at this port (0: one that the system selects) and watches it. Returns 0 or a negative errno;
 * after an error nothing needs to be closed. */
int roce_socket_open(struct roce_host *host, struct roce_socket *socket, uint16_t port, unsigned options);
void roce_socket_close(struct roce_socket *socket);

/* The same at the port of `own`, for packets to this address alone. */
int roce_socket_open_beside(struct roce_host *host, struct roce_socket *socket, const struct roce_socket *own,
                            const struct roce_address *address);

/* Frees a port whose sockets are closed. */
void roce_host_free_port(struct roce_port *port);

/* Takes what was passed on to this socket. */
void roce_host_take_passed(struct roce_host *host, int fd);

/* Between these two the host and its ports stay; then what was collected is passed on, and the host swept. */
void roce_host_begin(struct roce_host *host);
void roce_host_end(struct roce_host *host);

#endif
