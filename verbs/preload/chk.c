/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* chk.c - the names under which programs find the same calls that were built with _FORTIFY_SOURCE, or for large files.
 */
#include <stdlib.h>

#include "verbs/preload/program_fds.h"

ssize_t preload_read(int fd, void *to, size_t n) __asm__("read");
ssize_t preload_recv(int fd, void *to, size_t n, int flags) __asm__("recv");
ssize_t preload_recvfrom(int fd, void *to, size_t n, int flags, struct sockaddr *address,
                         socklen_t *length) __asm__("recvfrom");
int preload_poll(struct pollfd *fds, nfds_t n, int timeout) __asm__("poll");
ssize_t preload_sendfile(int out, int in, off_t *offset, size_t n) __asm__("sendfile");

static void check_size(size_t n, size_t size)
{
    if (n > size)
        abort();
}

INTERPOSE(ssize_t, __read_chk, int fd, void *to, size_t n, size_t size)
{
    check_size(n, size);
    return preload_read(fd, to, n);
}

INTERPOSE(ssize_t, __recv_chk, int fd, void *to, size_t n, size_t size, int flags)
{
    check_size(n, size);
    return preload_recv(fd, to, n, flags);
}

INTERPOSE(ssize_t, __recvfrom_chk, int fd, void *to, size_t n, size_t size, int flags, struct sockaddr *address,
          socklen_t *length)
{
    check_size(n, size);
    return preload_recvfrom(fd, to, n, flags, address, length);
}

INTERPOSE(int, __poll_chk, struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
    check_size(n, size / sizeof(*fds));
    return preload_poll(fds, n, timeout);
}

INTERPOSE(ssize_t, sendfile64, int out, int in, off_t *offset, size_t n)
{
    return preload_sendfile(out, in, offset, n);
}
