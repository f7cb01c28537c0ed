/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp.c - a UDP socket and its batches: recvmmsg() with UDP_GRO, sendmsg() with UDP_SEGMENT. */
#include "loop/udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

union udp_control {
    struct cmsghdr align;
    char buffer[CMSG_SPACE(sizeof(int))];
};

static socklen_t udp_length_of(const struct sockaddr_storage *addr)
{
    return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* --- the socket ---------------------------------------------------------------------------------------------- */

/* Enlarges a buffer of the socket, beyond the system's limit if permitted. */
static void enlarge(int fd, int forced, int usual)
{
    int octets = UDP_SOCKET_OCTETS;

    if (setsockopt(fd, SOL_SOCKET, forced, &octets, sizeof(octets)))
        setsockopt(fd, SOL_SOCKET, usual, &octets, sizeof(octets));
}

int udp_open(struct udp *u, const struct sockaddr *local, socklen_t length)
{
    int on = 1, off = 0, error;

    *u = (struct udp){.fd = socket(local->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (u->fd < 0)
        return -errno;
    u->out = malloc(UDP_BATCH_OCTETS);
    error = u->out ? 0 : -ENOMEM;
    if (!error && bind(u->fd, local, length))
        error = -errno;
    if (error) {
        udp_close(u);
        return error;
    }
    enlarge(u->fd, SO_RCVBUFFORCE, SO_RCVBUF);
    enlarge(u->fd, SO_SNDBUFFORCE, SO_SNDBUF);
    setsockopt(u->fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
    u->cuts = setsockopt(u->fd, SOL_UDP, UDP_SEGMENT, &off, sizeof(off)) == 0;
    return 0;
}

void udp_close(struct udp *u)
{
    if (u->fd >= 0)
        close(u->fd);
    free(u->out);
    u->fd = -1;
    u->out = NULL;
}

int udp_connect(struct udp *u, const struct sockaddr_storage *peer)
{
    return connect(u->fd, (const struct sockaddr *)peer, udp_length_of(peer)) ? -errno : 0;
}

void udp_local(const struct udp *u, struct sockaddr_storage *local)
{
    socklen_t length = sizeof(*local);

    memset(local, 0, sizeof(*local));
    getsockname(u->fd, (struct sockaddr *)local, &length);
}

int udp_source(const struct sockaddr_storage *peer, struct sockaddr_storage *local)
{
    struct udp u = {.fd = socket(peer->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    int error;

    *local = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (u.fd < 0)
        return -errno;
    error = udp_connect(&u, peer);
    if (!error)
        udp_local(&u, local);
    close(u.fd);
    return error;
}

/* --- in ------------------------------------------------------------------------------------------------------ */

/* Returns the length of each packet if the kernel joined several, otherwise `octets`. */
static uint32_t each_of(struct msghdr *m, uint32_t octets)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        int each;

        if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO)
            continue;
        memcpy(&each, CMSG_DATA(c), sizeof(each));
        if (each > 0)
            return (uint32_t)each;
    }
    return octets;
}

int udp_recv(struct udp *u, const struct udp_stage *stage, struct udp_batch *batch)
{
    struct mmsghdr m[UDP_BUFFERS];
    struct iovec iov[UDP_BUFFERS];
    union udp_control control[UDP_BUFFERS] = {0};
    int n;

    memset(m, 0, sizeof(m));
    for (int i = 0; i < UDP_BUFFERS; i++) {
        iov[i] = (struct iovec){stage->buffer + (size_t)i * UDP_BUFFER_OCTETS, UDP_BUFFER_OCTETS};
        m[i].msg_hdr = (struct msghdr){
            .msg_name = &batch[i].from,
            .msg_namelen = sizeof(batch[i].from),
            .msg_iov = &iov[i],
            .msg_iovlen = 1,
            .msg_control = control[i].buffer,
            .msg_controllen = sizeof(control[i].buffer),
        };
    }
    n = recvmmsg(u->fd, m, UDP_BUFFERS, 0, NULL);
    u->refused |= n < 0 && errno == ECONNREFUSED;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED || errno == EHOSTUNREACH ||
                       errno == ENETUNREACH
                   ? 0
                   : -errno;
    for (int i = 0; i < n; i++) {
        batch[i].at = iov[i].iov_base;
        batch[i].octets = m[i].msg_hdr.msg_flags & MSG_TRUNC ? 0 : m[i].msg_len;
        batch[i].each = each_of(&m[i].msg_hdr, m[i].msg_len);
        batch[i].from_length = m[i].msg_hdr.msg_namelen;
    }
    return n;
}

/* --- out ----------------------------------------------------------------------------------------------------- */

/* Sends packets, all but the last of `each` octets. */
static bool udp_send_out(struct udp *u, struct iovec *packet, uint32_t packets, uint32_t each)
{
    union udp_control control;
    struct msghdr m = {
        .msg_name = &u->out_to,
        .msg_namelen = udp_length_of(&u->out_to),
        .msg_iov = packet,
        .msg_iovlen = packets,
    };

    if (packets > 1) {
        struct cmsghdr *c;
        uint16_t segment = (uint16_t)each;

        memset(&control, 0, sizeof(control));
        m.msg_control = control.buffer;
        m.msg_controllen = CMSG_SPACE(sizeof(segment));
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof(segment));
        memcpy(CMSG_DATA(c), &segment, sizeof(segment));
    }
    if (sendmsg(u->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return true;
    u->refused |= errno == ECONNREFUSED;
    return false;
}

static void send_singly(struct udp *u)
{
    for (uint32_t i = 0; i < u->out_packets; i++)
        u->dropped += !udp_send_out(u, &u->packet[i], 1, 0);
}

void udp_forget(struct udp *u)
{
    u->out_octets = u->out_packets = u->out_each = u->out_used = 0;
    u->out_closed = u->out_borrows = false;
}

void udp_flush(struct udp *u)
{
    if (!u->out_packets)
        return;
    if (u->out_packets == 1 || !u->cuts) {
        send_singly(u);
    } else if (!udp_send_out(u, u->packet, u->out_packets, u->out_each)) {
        /* A route may refuse batches that the socket accepts (EINVAL, EIO, EMSGSIZE): send the packets one by one. */
        if (errno == EAGAIN || errno == ENOBUFS) {
            u->dropped += u->out_packets;
        } else {
            u->cuts = errno != EINVAL && errno != EIO;
            send_singly(u);
        }
    }
    udp_forget(u);
}

static bool same_peer(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    return a->ss_family == b->ss_family && memcmp(a, b, udp_length_of(a)) == 0;
}

/* Makes space in the batch for a packet to this peer. */
static bool udp_make_space(struct udp *u, const struct sockaddr_storage *to, uint32_t octets)
{
    bool fits = u->out_packets && !u->out_closed && octets <= u->out_each && u->out_packets < UDP_BATCH_PACKETS &&
                octets <= UDP_BATCH_OCTETS - u->out_octets && same_peer(&u->out_to, to);

    if (octets > UDP_BATCH_OCTETS)
        return false;
    if (!fits) {
        udp_flush(u);
        u->out_to = *to;
    }
    return true;
}

static void udp_add(struct udp *u, const uint8_t *p, uint32_t octets)
{
    if (!u->out_packets)
        u->out_each = octets;
    u->out_closed = octets < u->out_each;
    u->packet[u->out_packets++] = (struct iovec){(void *)(uintptr_t)p, octets};
    u->out_octets += octets;
}

uint8_t *udp_buffer(struct udp *u, const struct sockaddr_storage *to, uint32_t octets)
{
    return udp_make_space(u, to, octets) ? u->out + u->out_used : NULL;
}

void udp_put(struct udp *u, uint32_t octets)
{
    udp_add(u, u->out + u->out_used, octets);
    u->out_used += octets;
}

bool udp_lend(struct udp *u, const struct sockaddr_storage *to, const uint8_t *p, uint32_t octets)
{
    if (!udp_make_space(u, to, octets))
        return false;
    udp_add(u, p, octets);
    u->out_borrows = true;
    return true;
}
