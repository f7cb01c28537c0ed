/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tun.c - /dev/net/tun with a virtio header in front of each packet, which carries checksum and segmentation
 * offload. */
#include "tcp/io/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PAGE = 4096, TAIL_MAX = 1024 };

static int tun_give_up(int fd)
{
    int error = errno;

    close(fd);
    return -error;
}

static unsigned flags_of(unsigned offload)
{
    unsigned flags = offload & TUN_CHECKSUMS ? TUN_F_CSUM : 0;

    return offload & TUN_SEGMENTS ? flags | TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 : flags;
}

int tun_open(char name[IFNAMSIZ], unsigned offload)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), header = sizeof(struct virtio_net_hdr);

    if (fd < 0)
        return -errno;
    memcpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(fd, TUNSETIFF, &request) || ioctl(fd, TUNSETVNETHDRSZ, &header) ||
        ioctl(fd, TUNSETOFFLOAD, flags_of(offload)))
        return tun_give_up(fd);
    memcpy(name, request.ifr_name, IFNAMSIZ);
    return fd;
}

ssize_t tun_recv(int fd, const struct iovec *piece, uint32_t pieces, struct tun_note *note)
{
    struct virtio_net_hdr header;
    struct iovec iov[1 + TUN_PIECES] = {{&header, sizeof(header)}};
    ssize_t n;

    memcpy(iov + 1, piece, (pieces < TUN_PIECES ? pieces : TUN_PIECES) * sizeof(*piece));
    do
        n = readv(fd, iov, (int)(1 + (pieces < TUN_PIECES ? pieces : TUN_PIECES)));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if (n < (ssize_t)sizeof(header))
        return -EMSGSIZE;
    note->checked = header.flags & (VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID);
    return n - (ssize_t)sizeof(header);
}

/* Returns how many octets the kernel shall store in one piece, the rest in pages: the headers, and a tail that would
 * need a page more. */
static uint16_t piece_length(const struct span *span, uint32_t spans)
{
    uint32_t octets = 0, tail;

    for (uint32_t i = 0; i < spans; i++)
        octets += span[i].length;
    tail = octets % PAGE;
    return (uint16_t)(octets > PAGE && tail > span[0].length && tail <= TAIL_MAX ? tail : span[0].length);
}

int tun_send(int fd, const struct span *span, uint32_t spans, const struct tun_note *note)
{
    struct virtio_net_hdr header = {0};
    struct iovec iov[1 + TUN_SPANS] = {{&header, sizeof(header)}};
    ssize_t n;

    if (spans > TUN_SPANS)
        return -EMSGSIZE;
    if (note->partial) {
        header.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        header.csum_start = note->start;
        header.csum_offset = note->offset;
        header.hdr_len = piece_length(span, spans);
    }
    if (note->each) {
        header.gso_type = note->v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
        header.gso_size = note->each;
        header.hdr_len = note->head;
    }
    for (uint32_t i = 0; i < spans; i++)
        iov[1 + i] = (struct iovec){(void *)(uintptr_t)span[i].at, span[i].length};
    do
        n = writev(fd, iov, (int)(1 + spans));
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}
