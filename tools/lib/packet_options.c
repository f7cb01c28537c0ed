/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_options.c - the options --packet, --hand-off and their kin: the library's own TCP. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/lib/packet_options.h"

#define AT(field) offsetof(struct packet_options, field)

/* RELEASE_MS: a process that is about to end may have the address for so long. */
enum { WINDOW_KIB_MAX = 1048576, RELEASE_MS = 3000, RELEASE_LOOK_MS = 50 };

struct packet_options packet_options = {.mtu = 1500};

const struct opt packet_opts[] = {
    {0, "packet", "ADDR[/BITS]", "use a TCP in user space at this address, behind a TUN device", OPT_TEXT, AT(address),
     0, 0},
    {0, "hand-off", NULL, "let the kernel's TCP connect and accept, then take its connections over", OPT_FLAG,
     AT(hand_off), 0, 0},
    {0, "packet-device", "NAME", "name the device NAME (default: the kernel chooses)", OPT_TEXT, AT(name), 0, 0},
    {0, "packet-neighbor", "ADDR", "give the kernel's end ADDR (default: the first other address of the prefix)",
     OPT_TEXT, AT(neighbor), 0, 0},
    {0, "packet-window", "KIB", "let KIB of a connection wait for their turn, 4 to 1048576 (default: 1024, growing)",
     OPT_U32, AT(window_kib), 4, WINDOW_KIB_MAX},
    {0, "packet-checksums", NULL, NULL, OPT_FLAG, AT(checksums), 0, 0},
    {0, "packet-lose", "N", NULL, OPT_U32, AT(lose), 0, 100000},
    {0},
};

/* An address and its length in octets: 4 or 16. */
struct name {
    struct sockaddr_storage address;
    uint8_t *octets;
    uint32_t length;
};

static bool parse_name(struct name *name, const char *text)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&name->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&name->address;
    *name = (struct name){.length = 4};
    v4->sin_family = AF_INET;
    name->octets = (uint8_t *)&v4->sin_addr;
    if (inet_pton(AF_INET, text, name->octets) == 1)
        return true;
    *name = (struct name){.length = 16};
    v6->sin6_family = AF_INET6;
    name->octets = (uint8_t *)&v6->sin6_addr;
    return inet_pton(AF_INET6, text, name->octets) == 1;
}

/* The first address of the prefix that is not `own`. */
static void choose_neighbor(struct name *neighbor, const struct name *own, uint32_t bits)
{
    *neighbor = *own;
    neighbor->octets = (uint8_t *)&neighbor->address + (own->octets - (const uint8_t *)&own->address);
    for (uint32_t bit = bits; bit < 8 * own->length; bit++)
        neighbor->octets[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    neighbor->octets[own->length - 1] |= 1;
    if (!memcmp(neighbor->octets, own->octets, own->length))
        neighbor->octets[own->length - 1] = (uint8_t)((neighbor->octets[own->length - 1] & ~1) | 2);
}

/* Parses "ADDR" or "ADDR/BITS". Without BITS the device is expected to be set up already. */
static void parse_address(struct name *own, uint32_t *bits, bool *has_bits)
{
    char text[64] = "";
    uint64_t value = 0;
    if (strlen(packet_options.address) < sizeof(text))
        strcpy(text, packet_options.address);
    char *slash = strchr(text, '/');
    *has_bits = slash;
    if (slash)
        *slash = 0;
    if (!parse_name(own, text) || (slash && (!parse_u64(slash + 1, &value) || !value || value > 8 * own->length - 2)))
        usage_error("--packet %s: expected an address or an address with its prefix, such as 10.9.0.2/24",
                    packet_options.address);
    *bits = (uint32_t)value;
}

static void parse_neighbor(struct name *neighbor, const struct name *own, uint32_t bits)
{
    if (!packet_options.neighbor)
        choose_neighbor(neighbor, own, bits);
    else if (!parse_name(neighbor, packet_options.neighbor) || neighbor->length != own->length)
        usage_error("--packet-neighbor %s: expected an address of the same family as that of --packet",
                    packet_options.neighbor);
}

/* A window that was asked for stays as it is; the default grows. */
static void set_window(uint32_t *window, uint32_t *window_max)
{
    if (packet_options.window_kib) {
        *window = packet_options.window_kib * 1024;
        *window_max = 0;
    }
}

static void set_common(struct rddp_device_attr *attr)
{
    rddp_device_attr_init(attr);
    set_window(&attr->window, &attr->window_max);
    attr->lose = packet_options.lose;
}

/* May the address be free soon? One of the host's own will not, nor one to which a route forbids packets. */
static bool may_be_released(const struct sockaddr_storage *own)
{
    const struct sockaddr *address = (const struct sockaddr *)own;
    int fd = socket(own->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool is_host = !bind(fd, address, sizeof(*own));
    bool may = !is_host && (!connect(fd, address, sizeof(*own)) || errno == ENETUNREACH);
    close(fd);
    return may;
}

/* Is it worth while to try again to get the address? Who unmounts and mounts again meets the process of the first
 * mount, which ends some time after umount(8). Waits a little; *until_ns is 0 at first. */
static bool await_release(const struct sockaddr_storage *own, uint64_t *until_ns)
{
    const struct timespec look = {0, RELEASE_LOOK_MS * 1000000L};
    if (errno != EADDRINUSE)
        return false;
    bool may = may_be_released(own) && !tool_stopped;
    if (!*until_ns)
        *until_ns = clock_ns() + RELEASE_MS * UINT64_C(1000000);
    if (!may || clock_ns() >= *until_ns) {
        errno = EADDRINUSE;
        return false;
    }
    nanosleep(&look, NULL);
    return true;
}

/* Without the privileges the kernel's TCP does it all, as without the option. */
static int open_hand_off(struct tool_endpoint *endpoint)
{
    struct rddp_device_attr attr;
    if (packet_options.address)
        usage_error("give either --hand-off or --packet, not both");
    set_common(&attr);
    attr.hand_off = true;
    endpoint->device = rddp_open_device(endpoint->context, &attr);
    if (endpoint->device)
        return 0;
    if (errno != EPERM && errno != EACCES)
        return fail(EXIT_FAILED, "cannot take connections over: %s", error_text(errno));
    warn("--hand-off needs CAP_NET_ADMIN and CAP_NET_RAW: the kernel's TCP is used");
    return 0;
}

static int no_device(void)
{
    if (errno == EADDRINUSE)
        return fail(EXIT_FAILED,
                    "--packet %s: it is the host's own address, or behind another device, or the host refuses it",
                    packet_options.address);
    return fail(EXIT_FAILED, "cannot create a TUN device: %s", error_text(errno));
}

int tool_packet_open(struct tool_endpoint *endpoint)
{
    struct rddp_device_attr attr;
    struct name own, neighbor;
    uint64_t until_ns = 0;
    bool has_bits;
    if (!packet_options.address && (packet_options.name || packet_options.neighbor))
        usage_error("--packet-device and --packet-neighbor need --packet");
    if (packet_options.hand_off)
        return open_hand_off(endpoint);
    if (!packet_options.address && packet_options.lose)
        usage_error("--packet-lose needs --packet or --hand-off");
    if (!packet_options.address)
        return 0;
    set_common(&attr);
    parse_address(&own, &attr.prefix, &has_bits);
    if (has_bits) {
        parse_neighbor(&neighbor, &own, attr.prefix);
        attr.neighbor = (const struct sockaddr *)&neighbor.address;
    } else if (packet_options.neighbor) {
        usage_error("--packet-neighbor needs the prefix: --packet ADDR/BITS");
    }
    attr.address = (const struct sockaddr *)&own.address;
    attr.name = packet_options.name;
    attr.mtu = packet_options.mtu;
    attr.checksums = packet_options.checksums;
    do
        endpoint->device = rddp_open_device(endpoint->context, &attr);
    while (!endpoint->device && await_release(&own.address, &until_ns));
    endpoint->own = own.address;
    return endpoint->device ? 0 : no_device();
}

int packet_stream_net(struct rddp_stream_net_attr *attr, struct rddp_stream_net **net, struct sockaddr_storage *own)
{
    struct name name, neighbor;
    uint64_t until_ns = 0;
    bool has_bits;
    parse_address(&name, &attr->prefix, &has_bits);
    if (has_bits) {
        parse_neighbor(&neighbor, &name, attr->prefix);
        attr->neighbor = (const struct sockaddr *)&neighbor.address;
    } else if (packet_options.neighbor) {
        usage_error("--packet-neighbor needs the prefix: --packet ADDR/BITS");
    }
    attr->device = packet_options.name;
    attr->mtu = packet_options.mtu;
    set_window(&attr->window, &attr->window_max);
    attr->checksums = packet_options.checksums;
    attr->lose = packet_options.lose;
    *own = name.address;
    attr->address = (const struct sockaddr *)&name.address;
    do
        *net = rddp_stream_net_open(attr);
    while (!*net && await_release(own, &until_ns));
    attr->address = attr->neighbor = NULL;
    return *net ? 0 : no_device();
}

void packet_nfs_check(void)
{
    struct name own;
    uint32_t bits;
    bool has_bits;
    if (packet_options.hand_off)
        usage_error("NFS cannot use --hand-off: use --packet");
    if (packet_options.address)
        parse_address(&own, &bits, &has_bits);
    else if (packet_options.name || packet_options.neighbor || packet_options.lose)
        usage_error("--packet-device, --packet-neighbor and --packet-lose need --packet");
}

int packet_nfs_net(struct rddp_stream_net **net, struct sockaddr_storage *own)
{
    struct rddp_stream_net_attr attr;
    packet_nfs_check();
    if (!packet_options.address)
        return 0;
    rddp_stream_net_attr_init(&attr);
    return packet_stream_net(&attr, net, own);
}

struct rddp_wire_attr packet_wire(const struct tool_endpoint *endpoint, const struct rddp_wire_attr *wire)
{
    struct rddp_wire_attr with = *wire;
    with.device = endpoint->device;
    return with;
}

static bool is_any(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    return address->ss_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr)
                                          : v4->sin_addr.s_addr == htonl(INADDR_ANY);
}

void packet_own(const struct tool_endpoint *endpoint, struct sockaddr_storage *address, socklen_t *length)
{
    if (!endpoint->device || packet_options.hand_off || !is_any(address))
        return;
    uint16_t port = address_port(address);
    *address = endpoint->own;
    address_set_port(address, port);
    *length = address_length(address);
}
