/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tun.c - /dev/net/tun with a virtio header in front of each packet, which carries checksum and segmentation
 * offload. */
#include "tcp/io/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Packets that wait for us in the device's queue. A sender does not see its length, and a few large windows have to
 * fit: with the kernel's default of 500 a single sender at an MTU of 1500 loses every third window. */
enum { QUEUE_PACKETS = 16384 };

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

/* struct in6_ifreq of <linux/ipv6.h>, which conflicts with <netinet/in.h>. */
struct v6_request {
    struct in6_addr address;
    uint32_t prefix;
    int index;
};

static int set_v6(int fd, struct ifreq *request, const uint8_t *address, uint32_t prefix)
{
    struct v6_request own = {.prefix = prefix};

    if (ioctl(fd, SIOCGIFINDEX, request))
        return -1;
    own.index = request->ifr_ifindex;
    memcpy(&own.address, address, sizeof(own.address));
    return ioctl(fd, SIOCSIFADDR, &own);
}

static int set_v4(int fd, struct ifreq *request, const uint8_t *address, uint32_t prefix)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};

    memcpy(&v4.sin_addr, address, sizeof(v4.sin_addr));
    memcpy(&request->ifr_addr, &v4, sizeof(v4));
    if (ioctl(fd, SIOCSIFADDR, request))
        return -1;
    v4.sin_addr.s_addr = prefix ? htonl(~0U << (32 - prefix)) : 0;
    memcpy(&request->ifr_netmask, &v4, sizeof(v4));
    return ioctl(fd, SIOCSIFNETMASK, request);
}

static int bring_up(int fd, struct ifreq *request)
{
    if (ioctl(fd, SIOCGIFFLAGS, request))
        return -1;
    request->ifr_flags |= IFF_UP;
    return ioctl(fd, SIOCSIFFLAGS, request);
}

int tun_ask(const struct nlmsghdr *ask)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
    } said = {.error.error = -EIO};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0)
        return -errno;
    if (send(fd, ask, ask->nlmsg_len, 0) == (ssize_t)ask->nlmsg_len)
        (void)recv(fd, &said, sizeof(said), 0);
    close(fd);
    return said.error.error;
}

/* By netlink, because the ioctl() needs privileges that are not available in a user namespace. */
static int lengthen_queue(const char *name)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
        struct rtattr queue;
        uint32_t packets;
    } ask = {
        .head = {.nlmsg_len = sizeof(ask), .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .link = {.ifi_family = AF_UNSPEC, .ifi_index = (int)if_nametoindex(name)},
        .queue = {.rta_len = RTA_LENGTH(sizeof(ask.packets)), .rta_type = IFLA_TXQLEN},
        .packets = QUEUE_PACKETS,
    };

    return tun_ask(&ask.head);
}

int tun_configure(const char *name, const uint8_t *address, uint32_t length, uint32_t prefix, uint32_t mtu)
{
    int fd = socket(length == 16 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;
    struct ifreq request = {0};

    if (fd < 0)
        return -errno;
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    request.ifr_mtu = (int)mtu;
    error = ioctl(fd, SIOCSIFMTU, &request);
    if (!error)
        error = length == 16 ? set_v6(fd, &request, address, prefix) : set_v4(fd, &request, address, prefix);
    if (!error)
        error = bring_up(fd, &request);
    error = error ? -errno : lengthen_queue(name);
    close(fd);
    return error;
}

static int set_up(const char *name, const struct sockaddr *neighbor, uint32_t prefix, uint32_t mtu)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    switch (neighbor->sa_family) {
    case AF_INET:
        memcpy(&v4, neighbor, sizeof(v4));
        return tun_configure(name, (const uint8_t *)&v4.sin_addr, 4, prefix, mtu);
    case AF_INET6:
        memcpy(&v6, neighbor, sizeof(v6));
        return tun_configure(name, (const uint8_t *)&v6.sin6_addr, 16, prefix, mtu);
    default:
        return -EAFNOSUPPORT;
    }
}

int tun_set_up(const char *name, const struct sockaddr *neighbor, uint32_t prefix, uint32_t mtu, unsigned offload)
{
    char chosen[IFNAMSIZ] = "";
    int fd, error = 0;

    if (name)
        strncpy(chosen, name, IFNAMSIZ - 1);
    fd = tun_open(chosen, offload);
    if (fd >= 0 && neighbor)
        error = set_up(chosen, neighbor, prefix, mtu);
    if (!error)
        return fd;
    close(fd);
    return error;
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
