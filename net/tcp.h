/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp.h - kernel TCP sockets, non-blocking, with Nagle off (mpa.txt 7.3). */
#ifndef RDDP_NET_TCP_H
#define RDDP_NET_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/span.h"

/* A descriptor, or a negative errno. A connection is usually still in progress: writable when tcp_result() is known. */
int tcp_connect(const struct sockaddr *addr, socklen_t length);
int tcp_listen(const struct sockaddr *addr, socklen_t length, int backlog);
int tcp_accept(int fd);

/* Makes ours a TCP socket that somebody else made: connected, or listening. 0; -EBADF, -ENOTSOCK, -EINVAL: it is no
 * such socket; -ENOTCONN. It stays the caller's if this fails. */
int tcp_adopt(int fd, bool listening);

/* How a connection attempt ended: 0 or a negative errno. */
int tcp_result(int fd);

/* Octets taken, -EAGAIN, or another negative errno. Up to TCP_SPANS spans. Never a signal. `record`: what is sent later
 * does not fill up the last segment of this (MSG_EOR). */
enum { TCP_SPANS = 96 };
ssize_t tcp_send(int fd, const struct span *span, uint32_t spans, bool record);

/* Octets read, 0 at the end of the stream, -EAGAIN, or another negative errno. */
ssize_t tcp_recv(int fd, void *to, size_t capacity);

/* The same, the first octets to one place and those behind them to another. */
ssize_t tcp_recv_apart(int fd, void *to, size_t capacity, void *then, size_t then_room);

/* Ends the outgoing stream. */
void tcp_finish(int fd);

/* The segment size TCP uses now, octets. */
uint32_t tcp_emss(int fd);

/* "10.0.0.1:80" or "[fd00::1]:80" into `text` (TCP_NAME octets); returns it. */
enum { TCP_NAME = 64 };
char *tcp_name(const struct sockaddr_storage *addr, char *text);

#endif
