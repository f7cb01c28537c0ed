/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagram_ends.h - rsockets for datagrams at loopback's address, and what they send to each other. */
#ifndef RDDP_TESTS_VERBS_DATAGRAM_ENDS_H
#define RDDP_TESTS_VERBS_DATAGRAM_ENDS_H

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

enum { DATAGRAM_WAIT_MS = 20000 };

union address {
    struct sockaddr_storage any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

socklen_t datagram_length(const union address *address);
union address datagram_loopback(int family);
union address datagram_name(int fd);

/* An rsocket at loopback's address, whose name is stored. */
int datagram_bound(int family, union address *name);
int datagram_events(int fd, short events, int timeout_ms);
ssize_t datagram_send(int fd, const void *data, size_t n, const union address *to);

/* Receives one message, and says whose it is. */
void datagram_expect(int fd, const void *data, size_t n, const union address *from);

#endif
