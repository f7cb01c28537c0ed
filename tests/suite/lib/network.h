/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* network.h - a network namespace for one test, with loopback and forwarding, in which TUN devices can be made. */
#ifndef RDDP_TESTS_SUITE_NETWORK_H
#define RDDP_TESTS_SUITE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Moves the program into a new namespace. Call it before any thread is started. False: not possible; nothing has
 * changed. */
bool network_own(void);

/* Fills in the address 10.NET.0.HOST; returns its length. */
socklen_t network_address(struct sockaddr_storage *address, uint32_t net, uint32_t host, uint16_t port);

#endif
