/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gid.c - the GIDs of rddpe0: the addresses of this host, each with an index that it keeps.
 *
 * An address that has come takes the first index that is free, and one that is gone leaves its index empty: indexes
 * that a program has told its peers keep their meaning. At first those of interfaces to the world come first, since
 * programs take index 0 when they are told nothing.
 *
 * To read the addresses of a host costs many system calls, and programs ask for each datagram. So what was found is
 * believed for FRESH_NS, and only who finds nothing always causes the addresses to be read again. */
#include "verbs/gid.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "verbs/verbs_object.h"

static struct {
    union ibv_gid gid;
    unsigned interface; /* 0: the index is free */
    bool is_there;      /* for table_refresh() */
} table[GID_TABLE];
static uint64_t read_ns; /* when */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

enum { FRESH_NS = 10000000 };

static bool gid_is_mapped(const union ibv_gid *gid)
{
    return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)gid->raw);
}

void gid_of_address(const struct sockaddr_storage *address, union ibv_gid *gid)
{
    memset(gid, 0, sizeof(*gid));
    if (address->ss_family == AF_INET6) {
        memcpy(gid->raw, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof(gid->raw));
    } else if (address->ss_family == AF_INET) {
        gid->raw[10] = gid->raw[11] = 0xff;
        memcpy(gid->raw + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    }
}

void gid_to_address(const union ibv_gid *gid, unsigned interface, struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

    memset(address, 0, sizeof(*address));
    if (gid_is_mapped(gid)) {
        v4->sin_family = AF_INET;
        memcpy(&v4->sin_addr, gid->raw + 12, 4);
        return;
    }
    v6->sin6_family = AF_INET6;
    memcpy(&v6->sin6_addr, gid->raw, sizeof(gid->raw));
    if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
        v6->sin6_scope_id = interface;
}

/* How early an address comes in a new table: 0 first, and -1 not at all. */
static int address_class(const struct ifaddrs *i)
{
    struct sockaddr_in6 v6;

    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
        return -1;
    if (i->ifa_addr->sa_family == AF_INET)
        return i->ifa_flags & IFF_LOOPBACK ? 3 : 0;
    if (i->ifa_addr->sa_family != AF_INET6)
        return -1;
    memcpy(&v6, i->ifa_addr, sizeof(v6));
    return i->ifa_flags & IFF_LOOPBACK ? 4 : IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) ? 2 : 1;
}

/* Without a descriptor the number of an interface cannot be asked for: then the address is where it was. */
static void table_enter(const struct ifaddrs *i)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    unsigned interface = if_nametoindex(i->ifa_name);
    union ibv_gid gid;
    int place = -1;

    memcpy(&address, i->ifa_addr,
           i->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    gid_of_address(&address, &gid);
    for (int at = GID_TABLE - 1; at >= 0; at--) {
        if (!table[at].interface) {
            place = at;
        } else if (!memcmp(&table[at].gid, &gid, sizeof(gid)) && (!interface || table[at].interface == interface)) {
            table[at].is_there = true;
            return;
        }
    }
    if (place < 0 || !interface)
        return;
    table[place].gid = gid;
    table[place].interface = interface;
    table[place].is_there = true;
}

/* The caller has table_lock. */
static void table_refresh(void)
{
    enum { CLASSES = 5 };
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all))
        return;
    read_ns = clock_device_ns();
    for (int at = 0; at < GID_TABLE; at++)
        table[at].is_there = false;
    for (int class = 0; class < CLASSES; class ++) {
        for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
            if (address_class(i) == class)
                table_enter(i);
        }
    }
    freeifaddrs(all);
    for (int at = 0; at < GID_TABLE; at++) {
        if (!table[at].is_there)
            table[at].interface = 0;
    }
}

static void table_refresh_old(void)
{
    if (clock_device_ns() - read_ns >= FRESH_NS)
        table_refresh();
}

static int table_entry(unsigned index, union ibv_gid *gid, unsigned *interface)
{
    if (!table[index].interface)
        return ENODATA;
    *gid = table[index].gid;
    *interface = table[index].interface;
    return 0;
}

int verbs_gid_get(unsigned index, union ibv_gid *gid, unsigned *interface)
{
    int error, state;

    if (index >= GID_TABLE)
        return EINVAL;
    state = verbs_take(&table_lock);
    table_refresh_old();
    error = table_entry(index, gid, interface);
    if (error) {
        table_refresh();
        error = table_entry(index, gid, interface);
    }
    verbs_give_back(&table_lock, state);
    return error;
}

void gid_read_all(struct gid_entry entries[GID_TABLE])
{
    int state = verbs_take(&table_lock);

    table_refresh();
    for (unsigned index = 0; index < GID_TABLE; index++) {
        entries[index].interface = 0;
        (void)table_entry(index, &entries[index].gid, &entries[index].interface);
    }
    verbs_give_back(&table_lock, state);
}

static bool gid_is_at(int index, const union ibv_gid *gid, unsigned interface)
{
    const unsigned of = table[index].interface;

    return of && (!interface || interface == of) && !memcmp(&table[index].gid, gid, sizeof(*gid));
}

static int table_search(const union ibv_gid *gid, unsigned interface)
{
    int index = 0;

    while (index < GID_TABLE && !gid_is_at(index, gid, interface))
        index++;
    return index < GID_TABLE ? index : -1;
}

int gid_find(const union ibv_gid *gid, unsigned interface)
{
    int state = verbs_take(&table_lock), index;

    table_refresh_old();
    index = table_search(gid, interface);
    if (index < 0) {
        table_refresh();
        index = table_search(gid, interface);
    }
    verbs_give_back(&table_lock, state);
    return index;
}

void gid_hold(void)
{
    pthread_mutex_lock(&table_lock);
}

void gid_release(void)
{
    pthread_mutex_unlock(&table_lock);
}

enum ibv_mtu gid_active_mtu(void)
{
    /* BTH, RETH, immediate data and ICRC, in UDP and IPv6: what a packet has beside its payload at most. */
    enum { LEAST = 256, MOST = 4096, HEADERS = 12 + 16 + 4 + 4 + 8 + 40 };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), least = MOST + HEADERS, mtu = LEAST;
    enum ibv_mtu code = IBV_MTU_256;
    struct ifaddrs *all = NULL;

    if (fd >= 0 && getifaddrs(&all))
        all = NULL;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        struct ifreq ask = {0};
        strncpy(ask.ifr_name, i->ifa_name, sizeof(ask.ifr_name) - 1);
        if (address_class(i) >= 0 && !ioctl(fd, SIOCGIFMTU, &ask) && ask.ifr_mtu < least)
            least = ask.ifr_mtu;
    }
    if (all)
        freeifaddrs(all);
    if (fd >= 0)
        close(fd);
    for (; mtu < MOST && 2 * mtu + HEADERS <= least; mtu *= 2)
        code++;
    return code;
}
