/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port.c - the one port of each device: its state, its GIDs and its partition key. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "verbs/device.h"
#include "verbs/drivers.h"
#include "verbs/gid.h"
#include "verbs/verbs_object.h"

/* Only ibv_devinfo calls it. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type);

int port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    bool is_ib = device_is_ib(context->device);
    const struct ibv_port_attr all = {
        .state = IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = is_ib ? gid_active_mtu() : IBV_MTU_4096,
        .gid_tbl_len = is_ib ? GID_TABLE : 1,
        .port_cap_flags = IBV_PORT_CM_SUP,
        .max_msg_sz = UINT32_C(1) << 31,
        .pkey_tbl_len = 1,
        .active_width = 2, /* 4 lanes of 10 Gb/s: there is no value that says "software" */
        .active_speed = 4,
        .phys_state = 5, /* the link is up */
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };

    if (port != 1)
        return EINVAL;
    memset(attr, 0, size);
    memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
    return 0;
}

/* What programs call that were built before the struct got longer. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return port_query(context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* The one of rddp0 is as those of all iWARP adapters: a MAC address and zeroes. Returns 0, EINVAL, or ENODATA for an
 * entry that is empty. */
static int port_gid(struct ibv_context *context, uint32_t port, unsigned index, struct ibv_gid_entry *entry)
{
    unsigned interface = 0;
    int error = port != 1 ? EINVAL : 0;

    *entry = (struct ibv_gid_entry){.gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_IB};
    if (!error && device_is_ib(context->device)) {
        entry->gid_type = IBV_GID_TYPE_ROCE_V2;
        error = verbs_gid_get(index, &entry->gid, &interface);
        entry->ndev_ifindex = interface;
    } else if (index) {
        error = EINVAL; /* its table has one entry */
    } else {
        device_mac(entry->gid.raw);
    }
    return error;
}

/* An entry that is empty is zeroes, as in the files of the kernel. */
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;
    int error = index < 0 ? EINVAL : port_gid(context, port, (unsigned)index, &entry);

    if (error == EINVAL) {
        errno = EINVAL;
        return -1;
    }
    *gid = entry.gid;
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t size)
{
    struct ibv_gid_entry all;
    int error = flags ? EINVAL : port_gid(context, port, index, &all);

    if (error)
        return error;
    memset(entry, 0, size);
    memcpy(entry, &all, size < sizeof(all) ? size : sizeof(all));
    return 0;
}

/* The entries of the table that are not empty. */
static unsigned gids_of(struct ibv_context *context, struct ibv_gid_entry out[GID_TABLE])
{
    struct gid_entry table[GID_TABLE];
    unsigned n = 0;

    if (!device_is_ib(context->device))
        return port_gid(context, 1, 0, out) ? 0 : 1;
    gid_read_all(table);
    for (unsigned index = 0; index < GID_TABLE; index++) {
        if (!table[index].interface)
            continue;
        out[n++] = (struct ibv_gid_entry){.gid = table[index].gid,
                                          .gid_index = index,
                                          .port_num = 1,
                                          .gid_type = IBV_GID_TYPE_ROCE_V2,
                                          .ndev_ifindex = table[index].interface};
    }
    return n;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
                             size_t size)
{
    struct ibv_gid_entry all[GID_TABLE];
    uint8_t *to = (uint8_t *)entries;
    unsigned n = flags ? 0 : gids_of(context, all);

    if (flags || n > max)
        return -EINVAL;
    memset(to, 0, n * size);
    for (unsigned i = 0; i < n; i++)
        memcpy(to + i * size, &all[i], size < sizeof(all[i]) ? size : sizeof(all[i]));
    return n;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type)
{
    enum { IB_OR_ROCE_V1, ROCE_V2 }; /* as the kernel's files have it: the first for iWARP and for empty entries, too */
    struct ibv_gid_entry entry;
    int error = port_gid(context, port, index, &entry);

    if (error && error != ENODATA) {
        errno = error;
        return -1;
    }
    *type = !error && entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? ROCE_V2 : IB_OR_ROCE_V1;
    return 0;
}
PRIVATE(ibv_query_gid_type)

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void)context;
    if (port != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = 0xffff; /* the default partition, in any byte order */
    return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    __be16 own;

    return !ibv_query_pkey(context, port, 0, &own) && own == pkey ? 0 : -1;
}
