/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* network.c - a network namespace for one test, with loopback and forwarding, in which TUN devices can be made. */
#include "tests/suite/lib/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tcp/io/tun.h"
#include "tcp/io/tun_setup.h"

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return written;
}

static bool bring_up_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &request);

    if (fd >= 0)
        close(fd);
    return up;
}

/* Without privileges: with a user namespace in which we keep our identity. */
static bool unshare_all(void)
{
    char map[64];
    unsigned uid = getuid(), gid = getgid();

    if (!unshare(CLONE_NEWNET))
        return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
        return false;
    snprintf(map, sizeof(map), "%u %u 1", uid, uid);
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", map);
    snprintf(map, sizeof(map), "%u %u 1", gid, gid);
    write_file("/proc/self/gid_map", map);
    return true;
}

bool network_alone(void)
{
    return unshare_all() && bring_up_loopback();
}

bool network_own(void)
{
    return !access("/dev/net/tun", R_OK | W_OK) && network_alone() &&
           write_file("/proc/sys/net/ipv4/ip_forward", "1") &&
           (access("/proc/sys/net/ipv6", R_OK) || write_file("/proc/sys/net/ipv6/conf/all/forwarding", "1"));
}

bool network_add(const char *address)
{
    static unsigned added;
    struct ifreq request = {.ifr_addr.sa_family = AF_INET};
    struct sockaddr_in *at = (struct sockaddr_in *)&request.ifr_addr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done;

    snprintf(request.ifr_name, sizeof(request.ifr_name), "lo:%u", added++);
    done = fd >= 0 && inet_pton(AF_INET, address, &at->sin_addr) == 1 && !ioctl(fd, SIOCSIFADDR, &request);
    if (fd >= 0)
        close(fd);
    return done;
}

socklen_t network_address(struct sockaddr_storage *address, uint32_t net, uint32_t host, uint16_t port)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(10U << 24 | net << 16 | host), .sin_port = htons(port)};

    memset(address, 0, sizeof(*address));
    memcpy(address, &v4, sizeof(v4));
    return sizeof(v4);
}

socklen_t network_address_of(struct sockaddr_storage *address, bool v6, uint32_t net, uint32_t host, uint16_t port)
{
    struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    if (!v6)
        return network_address(address, net, host, port);
    name.sin6_addr.s6_addr[0] = 0xfd;
    name.sin6_addr.s6_addr[1] = (uint8_t)net;
    name.sin6_addr.s6_addr[15] = (uint8_t)host;
    memset(address, 0, sizeof(*address));
    memcpy(address, &name, sizeof(name));
    return sizeof(name);
}

/* The name of the device whose kernel end has the address of host 1 in `net`. */
static bool network_find(char name[IFNAMSIZ], bool v6, uint32_t net)
{
    struct sockaddr_storage wanted;
    socklen_t length = network_address_of(&wanted, v6, net, 1, 0);
    struct ifaddrs *all;
    bool found = false;

    if (getifaddrs(&all))
        return false;
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        found = i->ifa_addr && !memcmp(i->ifa_addr, &wanted, length);
        if (found)
            strncpy(name, i->ifa_name, IFNAMSIZ - 1);
    }
    freeifaddrs(all);
    return found;
}

bool network_narrow(bool v6, uint32_t net, uint32_t mtu)
{
    struct ifreq request = {.ifr_mtu = (int)mtu};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done = fd >= 0 && network_find(request.ifr_name, v6, net) && !ioctl(fd, SIOCSIFMTU, &request);

    if (fd >= 0)
        close(fd);
    return done;
}

bool network_remove(uint32_t net)
{
    char name[IFNAMSIZ] = "";
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
    } ask = {.head = {.nlmsg_len = sizeof(ask), .nlmsg_type = RTM_DELLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK}};

    if (!network_find(name, false, net))
        return false;
    ask.link.ifi_index = (int)if_nametoindex(name);
    return tun_ask(&ask.head) == 0;
}
