/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.c - the two devices, each with one port: rddpe0, rxe's twin, a software adapter for RoCE version 2; and rddp0,
 * siw's twin, one for iWARP. */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/device.h"
#include "verbs/verbs_object.h"

/* Providers of other devices that a program links (libmlx5, libefa) take any ibv_device for the start of a larger
 * struct and compare a pointer in the rest of it: theirs is none of the zeroes there. */
static struct verbs_device {
    struct ibv_device ibv;
    void *behind[64];
    int index; /* as the kernel counts them */
} devices[] = {
    {
        .ibv =
            {
                .node_type = IBV_NODE_CA,
                .transport_type = IBV_TRANSPORT_IB,
                .name = "rddpe0",
                .dev_name = "uverbs1",
                .dev_path = "/sys/class/infiniband_verbs/uverbs1",
                .ibdev_path = "/sys/class/infiniband/rddpe0",
            },
        .index = 2,
    },
    {
        .ibv =
            {
                .node_type = IBV_NODE_RNIC,
                .transport_type = IBV_TRANSPORT_IWARP,
                .name = "rddp0",
                .dev_name = "uverbs0",
                .dev_path = "/sys/class/infiniband_verbs/uverbs0",
                .ibdev_path = "/sys/class/infiniband/rddp0",
            },
        .index = 1,
    },
};

enum { DEVICES = sizeof(devices) / sizeof(devices[0]) };

/* No header of rdma-core declares them for programs, but its own call them. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
const char *ibv_get_sysfs_path(void);

/* Is the name one of a list with commas? An empty list, or none, has all names. */
static bool is_in_list(const char *list, const char *name)
{
    size_t length = strlen(name);

    if (!list || !*list)
        return true;
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (!strncmp(list, name, length) && (!list[length] || list[length] == ','))
            return true;
    }
    return false;
}

/* A build may leave out RoCE. Asking takes sockets, so it is done once. */
static bool is_in_build(const struct ibv_device *device)
{
    enum { UNKNOWN, MISSING, THERE };
    static atomic_int roce;
    const struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (!device_is_ib(device))
        return true;
    if (roce == UNKNOWN)
        roce = rddp_path_mtu((const struct sockaddr *)&here, sizeof(here)) == -EPROTONOSUPPORT ? MISSING : THERE;
    return roce == THERE;
}

struct ibv_device *verbs_device_at(unsigned n)
{
    const char *asked = getenv("RDDP_DEVICE");

    for (unsigned i = 0; i < DEVICES; i++) {
        if (is_in_list(asked, devices[i].ibv.name) && is_in_build(&devices[i].ibv) && !n--)
            return &devices[i].ibv;
    }
    return NULL;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct ibv_device **list = calloc(DEVICES + 1, sizeof(*list));
    int n = 0;

    while (list && n < DEVICES && (list[n] = verbs_device_at((unsigned)n)))
        n++;
    if (num_devices)
        *num_devices = n;
    return list;
}

bool device_is_ours(const struct ibv_device *device)
{
    return device == &devices[0].ibv || device == &devices[1].ibv;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *ibv)
{
    return ibv ? ibv->name : NULL;
}

int ibv_get_device_index(struct ibv_device *ibv)
{
    return device_is_ours(ibv) ? ((struct verbs_device *)ibv)->index : -1;
}

/* The number of this host when no interface has a MAC address: from what the kernel chose at its start, with the bit
 * that says "locally administered". */
static void mac_of_boot(uint8_t mac[6])
{
    uint8_t text[64] = {0};
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < n; i++)
        hash = (hash ^ text[i]) * 0x100000001b3;
    memcpy(mac, &hash, 6);
    mac[0] = 2;
}

void device_mac(uint8_t mac[6])
{
    static const uint8_t none[6];
    struct ifaddrs *all = NULL;
    bool found = false;

    if (getifaddrs(&all))
        all = NULL;
    for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        struct sockaddr_ll link;
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_PACKET || i->ifa_flags & IFF_LOOPBACK)
            continue;
        memcpy(&link, i->ifa_addr, sizeof(link));
        found = link.sll_halen == 6 && memcmp(link.sll_addr, none, 6);
        if (found)
            memcpy(mac, link.sll_addr, 6);
    }
    if (all)
        freeifaddrs(all);
    if (!found)
        mac_of_boot(mac);
}

/* Each device has a GUID of its own: two with the same would be one to programs that look for paths. */
__be64 ibv_get_device_guid(struct ibv_device *ibv)
{
    uint8_t mac[6], guid[8];
    __be64 value;

    device_mac(mac);
    memcpy(guid, mac, 3); /* an EUI-64 of an EUI-48 */
    guid[0] ^= 2;
    guid[3] = 0xff;
    guid[4] = 0xfe;
    memcpy(guid + 5, mac + 3, 3);
    if (device_is_ours(ibv) && device_is_ib(ibv))
        guid[4] = 0xfd;
    memcpy(&value, guid, sizeof(value));
    return value;
}

int device_query(struct ibv_device *device, struct ibv_device_attr *attr)
{
    enum {
        MANY = 65536,     /* nothing but memory bounds these numbers */
        VENDOR = 0xffffff /* that of rxe: no vendor has it */
    };

    *attr = (struct ibv_device_attr){
        .fw_ver = RDDP_VERSION,
        .node_guid = ibv_get_device_guid(device),
        .sys_image_guid = ibv_get_device_guid(&devices[0].ibv),
        .max_mr_size = UINT64_MAX,
        .page_size_cap = 0xfffff000,
        .vendor_id = VENDOR,
        .max_qp = MANY,
        .max_qp_wr = VERBS_DEPTH_MAX,
        .device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B,
        .max_sge = VERBS_SGE_MAX,
        .max_sge_rd = device_is_ib(device) ? VERBS_SGE_MAX : 1,
        .max_cq = MANY,
        .max_cqe = VERBS_CQE_MAX,
        .max_mr = MANY,
        .max_mw = MANY,
        .max_pd = MANY,
        .max_qp_rd_atom = VERBS_READS_MAX,
        .max_res_rd_atom = VERBS_READS_MAX * MANY,
        .max_qp_init_rd_atom = VERBS_READS_MAX,
        .atomic_cap = IBV_ATOMIC_GLOB,
        .max_srq = MANY,
        .max_srq_wr = VERBS_DEPTH_MAX,
        .max_srq_sge = VERBS_SGE_MAX,
        .max_pkeys = 1,
        .phys_port_cnt = 1,
    };
    if (device_is_ib(device)) {
        attr->device_cap_flags |=
            IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_CURR_QP_STATE_MOD;
        attr->max_ah = MANY;
    }
    return 0;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[IBV_SYSFS_PATH_MAX];
    ssize_t n;
    int fd;

    if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path) || !size)
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, buf, size - 1);
    close(fd);
    if (n < 0)
        return -1;
    if (n > 0 && buf[n - 1] == '\n')
        n--;
    buf[n] = '\0';
    return (int)n;
}

const char *ibv_get_sysfs_path(void)
{
    const char *path = getenv("SYSFS_PATH");

    return path ? path : "/sys";
}
