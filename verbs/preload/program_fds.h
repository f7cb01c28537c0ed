/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* program_fds.h - which descriptors of a program are rsockets, and the calls of the C library that are behind those
 * that are interposed. A program's descriptor is one of /dev/null, which keeps the number for the rsocket; any thread
 * may call.
 */
#ifndef VERBS_PRELOAD_HELD_H
#define VERBS_PRELOAD_HELD_H

#include <poll.h>
#include <stdbool.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Defines the function that a program finds under the name of one of the C library. The headers may know that name as a
 * macro, an inline function, or with other types. */
#define INTERPOSE(type, name, ...) \
    type preload_##name(__VA_ARGS__) __asm__(#name); \
    type preload_##name(__VA_ARGS__)

/* The C library's own. */
struct real {
    int (*socket)(int, int, int);
    int (*bind)(int, const struct sockaddr *, socklen_t);
    int (*listen)(int, int);
    int (*accept4)(int, struct sockaddr *, socklen_t *, int);
    int (*accept)(int, struct sockaddr *, socklen_t *);
    int (*connect)(int, const struct sockaddr *, socklen_t);
    int (*shutdown)(int, int);
    int (*close)(int);
    int (*dup2)(int, int);
    ssize_t (*read)(int, void *, size_t);
    ssize_t (*readv)(int, const struct iovec *, int);
    ssize_t (*recv)(int, void *, size_t, int);
    ssize_t (*recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
    ssize_t (*recvmsg)(int, struct msghdr *, int);
    ssize_t (*write)(int, const void *, size_t);
    ssize_t (*writev)(int, const struct iovec *, int);
    ssize_t (*send)(int, const void *, size_t, int);
    ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    ssize_t (*sendmsg)(int, const struct msghdr *, int);
    ssize_t (*sendfile)(int, int, off_t *, size_t);
    int (*poll)(struct pollfd *, nfds_t, int);
    int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
    int (*getpeername)(int, struct sockaddr *, socklen_t *);
    int (*getsockname)(int, struct sockaddr *, socklen_t *);
    int (*getsockopt)(int, int, int, void *, socklen_t *);
    int (*setsockopt)(int, int, int, const void *, socklen_t);
    int (*fcntl)(int, int, ...);
    int (*dup)(int);
    int (*dup3)(int, int, int);
    int (*ioctl)(int, unsigned long, ...);
};

const struct real *real(void);

/* Returns the rsocket behind a descriptor; -1: there is none. */
int held(int fd);

/* Gives an rsocket a descriptor. Returns it, or closes the rsocket and returns -1 with errno. */
int held_open(int rs);

/* Another descriptor is the same rsocket from now on. */
void held_share(int fd, int rs);

/* A descriptor was replaced by another: by one of the rsocket, or by none of any (-1). */
void held_replace(int fd, int rs);

/* Closes what a descriptor was. The last of an rsocket closes it, too. */
int held_close(int fd);

/* Is this code of the libraries that rsockets are made of? Its sockets are the kernel's. */
bool held_is_ours(const void *code);

#endif
