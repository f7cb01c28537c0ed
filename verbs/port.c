/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port.c - the one port of rddp0: its state, its GID and its partition key. */
#include <errno.h>
#include <string.h>

#include "verbs/device.h"
#include "verbs/verbs_object.h"

/* Only ibv_devinfo calls it. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type);

int port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    const struct ibv_port_attr all = {
        .state = IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = IBV_MTU_4096,
        .gid_tbl_len = 1,
        .port_cap_flags = IBV_PORT_CM_SUP,
        .max_msg_sz = UINT32_C(1) << 31,
        .pkey_tbl_len = 1,
        .active_width = 2, /* 4 lanes of 10 Gb/s: there is no value that says "software" */
        .active_speed = 4,
        .phys_state = 5, /* the link is up */
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };

    (void)context;
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

/* As those of all iWARP adapters: a MAC address and zeroes. */
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    (void)context;
    if (port != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    memset(gid, 0, sizeof(*gid));
    device_mac(gid->raw);
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t size)
{
    struct ibv_gid_entry all = {.gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_IB};

    if (flags || port != 1)
        return EINVAL;
    if (index)
        return ENODATA; /* an entry of the table that is empty */
    ibv_query_gid(context, 1, 0, &all.gid);
    memset(entry, 0, size);
    memcpy(entry, &all, size < sizeof(all) ? size : sizeof(all));
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
                             size_t size)
{
    int error = max ? _ibv_query_gid_ex(context, 1, 0, entries, flags, size) : EINVAL;

    return error ? -error : 1;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type)
{
    (void)context;
    if (port != 1 || index) {
        errno = EINVAL;
        return -1;
    }
    *type = 0; /* of an InfiniBand or RoCE version 1 table: what the kernel says for iWARP */
    return 0;
}

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
