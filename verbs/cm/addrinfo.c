/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* addrinfo.c - names become addresses, as getaddrinfo(3) and a program's hints have them. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/cm/cm.h"

static int addrinfo_ask(const char *node, const char *service, const struct rdma_addrinfo *hints,
                        struct addrinfo **found)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};

    wanted.ai_flags =
        (hints->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) | (hints->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
    if (hints->ai_family == AF_INET || hints->ai_family == AF_INET6)
        wanted.ai_family = hints->ai_family;
    return getaddrinfo(node, service, &wanted, found);
}

/* Copies an address. Returns 0, also for none, or EAI_MEMORY. */
static int addrinfo_copy(struct sockaddr **to, socklen_t *to_length, const struct sockaddr *from, socklen_t length)
{
    if (!from || !length)
        return 0;
    *to = calloc(1, sizeof(struct sockaddr_storage));
    if (!*to)
        return EAI_MEMORY;
    memcpy(*to, from, length);
    *to_length = length;
    return 0;
}

static int addrinfo_fill(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints, const struct addrinfo *found)
{
    bool is_passive = hints->ai_flags & RAI_PASSIVE;
    const struct addrinfo *src = is_passive ? found : NULL, *dst = is_passive ? NULL : found;
    int error;

    info->ai_flags = hints->ai_flags;
    info->ai_qp_type = hints->ai_qp_type;
    info->ai_port_space = hints->ai_port_space;
    if (!info->ai_port_space) /* the one follows from the other */
        info->ai_port_space = info->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
    if (!info->ai_qp_type)
        info->ai_qp_type = info->ai_port_space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
    error = addrinfo_copy(&info->ai_src_addr, &info->ai_src_len, src ? src->ai_addr : hints->ai_src_addr,
                          src ? src->ai_addrlen : hints->ai_src_len);
    if (!error)
        error = addrinfo_copy(&info->ai_dst_addr, &info->ai_dst_len, dst ? dst->ai_addr : hints->ai_dst_addr,
                              dst ? dst->ai_addrlen : hints->ai_dst_len);
    if (info->ai_dst_addr)
        info->ai_family = info->ai_dst_addr->sa_family;
    else if (info->ai_src_addr)
        info->ai_family = info->ai_src_addr->sa_family;
    return error;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **out)
{
    static const struct rdma_addrinfo none;
    struct rdma_addrinfo *info;
    struct addrinfo *found = NULL;
    int error = 0;

    if (!hints)
        hints = &none;
    if (!node && !service && !hints->ai_src_len && !hints->ai_dst_len)
        return cm_fail(EINVAL);
    if (node || service)
        error = addrinfo_ask(node, service, hints, &found);
    if (error)
        return error;
    info = calloc(1, sizeof(*info));
    error = info ? addrinfo_fill(info, hints, found) : EAI_MEMORY;
    if (found)
        freeaddrinfo(found);
    if (error) {
        rdma_freeaddrinfo(info);
        return error;
    }
    *out = info;
    return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *info)
{
    struct rdma_addrinfo *next;

    for (; info; info = next) {
        next = info->ai_next;
        free(info->ai_src_addr);
        free(info->ai_dst_addr);
        free(info);
    }
}
