/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tun_setup.c - addresses, routes and queues of TUN devices, by rtnetlink: most of its ioctl()s need privileges that
 * are not available in a user namespace, and one replaces addresses instead of adding one. */
#include "tcp/io/tun_setup.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tcp/io/tun.h"

/* Packets that wait for us in the device's queue. A sender does not see its length, and a few large windows have to
 * fit: with the kernel's default of 500 a single sender at an MTU of 1500 loses every third window. */
enum { QUEUE_PACKETS = 16384, ANSWER_MAX = 4096 };

/* A request with some attributes. */
struct tun_request {
    struct nlmsghdr head;
    union {
        struct ifinfomsg link;
        struct ifaddrmsg address;
        struct rtmsg route;
        uint8_t octets[128];
    } body;
};

static struct tun_request request_of(uint16_t type, uint16_t flags, uint32_t body)
{
    return (struct tun_request){.head = {.nlmsg_len = NLMSG_LENGTH(body),
                                         .nlmsg_type = type,
                                         .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)}};
}

static void add_attribute(struct tun_request *request, uint16_t type, const void *value, uint32_t length)
{
    uint8_t *at = (uint8_t *)request + NLMSG_ALIGN(request->head.nlmsg_len);
    struct rtattr attribute = {.rta_len = (uint16_t)RTA_LENGTH(length), .rta_type = type};

    memcpy(at, &attribute, sizeof(attribute));
    memcpy(at + RTA_LENGTH(0), value, length);
    request->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(request->head.nlmsg_len) + RTA_LENGTH(length));
}

/* Returns the octets of the answer, or a negative errno. */
static ssize_t tun_exchange(const struct nlmsghdr *ask, void *answer, size_t capacity)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ssize_t n = -1;

    if (fd < 0)
        return -errno;
    if (send(fd, ask, ask->nlmsg_len, 0) == (ssize_t)ask->nlmsg_len)
        n = recv(fd, answer, capacity, 0);
    if (n < 0)
        n = -errno;
    close(fd);
    return n;
}

int tun_ask(const struct nlmsghdr *ask)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
    } said = {.error.error = -EIO};
    ssize_t n = tun_exchange(ask, &said, sizeof(said));

    return n < 0 ? (int)n : said.error.error;
}

/* Adds an address to the device, or takes it away. */
static int change_address(uint16_t type, unsigned index, const struct tun_address *address)
{
    uint16_t flags = type == RTM_NEWADDR ? NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL : NLM_F_ACK;
    struct tun_request ask = request_of(type, flags, sizeof(ask.body.address));

    ask.body.address = (struct ifaddrmsg){
        .ifa_family = address->length == 16 ? AF_INET6 : AF_INET,
        .ifa_prefixlen = (uint8_t)address->prefix,
        .ifa_flags = address->length == 16 ? IFA_F_NODAD : 0,
        .ifa_index = index,
    };
    add_attribute(&ask, IFA_LOCAL, address->octets, address->length);
    return tun_ask(&ask.head);
}

static int change_link(unsigned index, uint32_t mtu, uint32_t queue, bool up)
{
    struct tun_request ask = request_of(RTM_NEWLINK, NLM_F_ACK, sizeof(ask.body.link));

    ask.body.link = (struct ifinfomsg){.ifi_index = (int)index, .ifi_flags = up ? IFF_UP : 0, .ifi_change = IFF_UP};
    add_attribute(&ask, IFLA_MTU, &mtu, sizeof(mtu));
    add_attribute(&ask, IFLA_TXQLEN, &queue, sizeof(queue));
    return tun_ask(&ask.head);
}

static int look_before(struct tun_before *before, const char *name)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;
    struct ifreq mtu = {0}, queue, flags;

    if (fd < 0)
        return -errno;
    strncpy(mtu.ifr_name, name, IFNAMSIZ - 1);
    flags = queue = mtu;
    error =
        ioctl(fd, SIOCGIFMTU, &mtu) || ioctl(fd, SIOCGIFTXQLEN, &queue) || ioctl(fd, SIOCGIFFLAGS, &flags) ? -errno : 0;
    close(fd);
    before->mtu = (uint32_t)mtu.ifr_mtu;
    before->queue = (uint32_t)queue.ifr_qlen;
    before->was_up = flags.ifr_flags & IFF_UP;
    return error;
}

int tun_configure(const char *name, const struct tun_address *address, uint32_t mtu, struct tun_before *before)
{
    struct tun_before unseen = {0};
    int error;

    before = before ? before : &unseen;
    before->index = if_nametoindex(name);
    error = look_before(before, name);
    if (error)
        return error;
    before->changed = true;
    error = change_address(RTM_NEWADDR, before->index, address);
    if (!error)
        before->added = *address;
    if (!error || error == -EEXIST) /* it has the address already */
        error = change_link(before->index, mtu, QUEUE_PACKETS, true);
    return error;
}

void tun_put_back(const struct tun_before *before)
{
    if (!before->stays || !before->changed)
        return;
    if (before->added.length)
        (void)change_address(RTM_DELADDR, before->index, &before->added);
    (void)change_link(before->index, before->mtu, before->queue, before->was_up);
}

static int address_of(struct tun_address *to, const struct sockaddr *from, uint32_t prefix)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    *to = (struct tun_address){.prefix = prefix};
    switch (from->sa_family) {
    case AF_INET:
        memcpy(&v4, from, sizeof(v4));
        memcpy(to->octets, &v4.sin_addr, to->length = 4);
        return 0;
    case AF_INET6:
        memcpy(&v6, from, sizeof(v6));
        memcpy(to->octets, &v6.sin6_addr, to->length = 16);
        return 0;
    default:
        return -EAFNOSUPPORT;
    }
}

int tun_set_up(const char *name, const struct sockaddr *neighbor, uint32_t prefix, uint32_t mtu, unsigned offload,
               struct tun_before *before)
{
    struct tun_before unseen = {0};
    struct tun_address address;
    char chosen[IFNAMSIZ] = "";
    int fd, error = 0;

    before = before ? before : &unseen;
    *before = (struct tun_before){.stays = name && if_nametoindex(name)};
    if (name)
        strncpy(chosen, name, IFNAMSIZ - 1);
    fd = tun_open(chosen, offload);
    if (fd < 0)
        return fd;
    before->index = if_nametoindex(chosen);
    if (neighbor)
        error = address_of(&address, neighbor, prefix);
    if (neighbor && !error)
        error = tun_configure(chosen, &address, mtu, before);
    if (!error)
        return fd;
    tun_put_back(before);
    close(fd);
    return error;
}

/* What the kernel says of an address to which it sends no packet: the codes of the routes "blackhole", "unreachable"
 * and "prohibit", of a rule like that, and of no route. */
static bool is_no_route(int error)
{
    return error == -EINVAL || error == -EHOSTUNREACH || error == -EACCES || error == -ENETUNREACH;
}

/* Asks which way a packet to this address goes: the type of the route and the index of its device. Without one the
 * type is RTN_UNREACHABLE. Returns a negative errno if it cannot be asked. */
static int find_route(const struct tun_address *to, uint8_t *type, uint32_t *index)
{
    struct tun_request ask = request_of(RTM_GETROUTE, 0, sizeof(ask.body.route));
    union {
        struct nlmsghdr head;
        struct {
            struct nlmsghdr head;
            struct nlmsgerr said;
        } refusal;
        uint8_t octets[ANSWER_MAX];
    } answer;
    ssize_t n;
    uint32_t at = NLMSG_LENGTH(sizeof(struct rtmsg));
    struct rtattr attribute;
    struct rtmsg route;

    ask.body.route =
        (struct rtmsg){.rtm_family = to->length == 16 ? AF_INET6 : AF_INET, .rtm_dst_len = (uint8_t)(8 * to->length)};
    add_attribute(&ask, RTA_DST, to->octets, to->length);
    n = tun_exchange(&ask.head, &answer, sizeof(answer));
    *type = RTN_UNREACHABLE;
    *index = 0;
    if (n >= (ssize_t)sizeof(answer.refusal) && answer.head.nlmsg_type == NLMSG_ERROR)
        return is_no_route(answer.refusal.said.error) ? 0 : answer.refusal.said.error;
    if (n < (ssize_t)at || answer.head.nlmsg_type != RTM_NEWROUTE)
        return -EIO;
    memcpy(&route, answer.octets + NLMSG_LENGTH(0), sizeof(route));
    *type = route.rtm_type;
    while (at + RTA_LENGTH(0) <= (uint32_t)n) {
        memcpy(&attribute, answer.octets + at, sizeof(attribute));
        if (attribute.rta_len < RTA_LENGTH(0) || attribute.rta_len > (uint32_t)n - at)
            break;
        if (attribute.rta_type == RTA_OIF && attribute.rta_len == RTA_LENGTH(sizeof(*index)))
            memcpy(index, answer.octets + at + RTA_LENGTH(0), sizeof(*index));
        at += RTA_ALIGN(attribute.rta_len);
    }
    return 0;
}

int tun_check_route(const struct tun_before *before, const struct sockaddr *address)
{
    struct tun_address to;
    uint32_t index;
    uint8_t type;

    /* What cannot be asked is no error, and a route may still come to a device that others configure. */
    if (!before->index || address_of(&to, address, 0) || find_route(&to, &type, &index))
        return 0;
    if (type == RTN_LOCAL || type == RTN_BROADCAST || type == RTN_MULTICAST)
        return -EADDRINUSE;
    return before->changed && index != before->index ? -EADDRINUSE : 0;
}
