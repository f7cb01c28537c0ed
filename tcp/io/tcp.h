/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp.h - kernel TCP sockets, non-blocking, with Nagle off (mpa.txt 7.3). */
#ifndef RDDP_TCP_IO_TCP_H
#define RDDP_TCP_IO_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/span.h"

/* Return a descriptor or a negative errno. A connection usually continues in the background: when the descriptor is
 * writable, tcp_result() is known. `local`: connect from this address, of IPv4 or IPv6; NULL: from any. */
int tcp_connect(const struct sockaddr *addr, socklen_t length, const struct sockaddr *local);
int tcp_listen(const struct sockaddr *addr, socklen_t length, int backlog);
int tcp_accept(int fd);

/* Connects a socket, whose attempt failed, once more from the same local address. Returns 0 or a negative errno. */
int tcp_connect_again(int fd, const struct sockaddr_storage *addr);

/* Prepares a TCP socket that the application made, connected or `listening`, for the calls below. Returns 0; -EBADF;
 * -ENOTSOCK; -EINVAL: it is no such socket; -ENOTCONN. The socket stays the caller's if this fails. */
int tcp_adopt(int fd, bool listening);

/* Returns how a connection attempt ended: 0 or a negative errno. */
int tcp_result(int fd);

/* Sends up to TCP_SPANS spans. Returns the octets accepted; -EAGAIN; or another negative errno. Raises no SIGPIPE.
 * `record`: octets sent later do not fill up the last segment of these (MSG_EOR). */
enum { TCP_SPANS = 96 };
ssize_t tcp_send(int fd, const struct span *span, uint32_t spans, bool record);

/* Receives. Returns the octets read; 0: the end of the stream; -EAGAIN; or another negative errno. */
ssize_t tcp_recv(int fd, void *to, size_t capacity);

/* Like tcp_recv(), with a second place for the octets after the first `capacity`. */
ssize_t tcp_recv_apart(int fd, void *to, size_t capacity, void *then, size_t then_capacity);

/* Ends the outgoing stream. */
void tcp_finish(int fd);

/* Returns the segment size that TCP uses now, in octets. */
uint32_t tcp_emss(int fd);

#endif
