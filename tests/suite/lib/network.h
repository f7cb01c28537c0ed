/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* network.h - a network namespace of a test's own, with loopback and forwarding, in which TUN devices can be made. */
#ifndef RDDP_TESTS_SUITE_NETWORK_H
#define RDDP_TESTS_SUITE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Before any thread: the program moves into it. False: none can be had, and nothing has changed. */
bool network_own(void);

/* 10.NET.0.HOST, as a socket address. */
socklen_t network_address(struct sockaddr_storage *address, uint32_t net, uint32_t host, uint16_t port);

#endif
