/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* network.h - a network namespace for one test. */
#ifndef RDDP_TESTS_SUITE_NETWORK_H
#define RDDP_TESTS_SUITE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Moves the program into a new namespace with a loopback; network_own(): also with forwarding, and where TUN devices
 * can be made. Call it before any thread is started. False: not possible. */
bool network_alone(void);
bool network_own(void);

/* Adds an IPv4 address to the loopback of that namespace. Returns false if it cannot. */
bool network_add(const char *address);

/* Fills in the address 10.NET.0.HOST; returns its length. */
socklen_t network_address(struct sockaddr_storage *address, uint32_t net, uint32_t host, uint16_t port);
/* Fills in the address fdNET::HOST if `v6`, else as network_address() does. */
socklen_t network_address_of(struct sockaddr_storage *address, bool v6, uint32_t net, uint32_t host, uint16_t port);

/* Removes the device whose kernel end has the address of host 1 in `net`. Returns false if it cannot. */
bool network_remove(uint32_t net);

/* Changes the MTU of the device whose kernel end has the address of host 1 in `net`. Returns false if it cannot. */
bool network_narrow(bool v6, uint32_t net, uint32_t mtu);

#endif
