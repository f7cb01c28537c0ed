/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet_name.c - converts addresses between sockaddr and the form of our TCP. */
#include "tcp/io/packet_name.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

int packet_name_of(struct utcp_name *name, const struct sockaddr *from, socklen_t length)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    memset(name, 0, sizeof(*name));
    if (length >= sizeof(v4) && from->sa_family == AF_INET) {
        memcpy(&v4, from, sizeof(v4));
        name->port = ntohs(v4.sin_port);
        name->ip[10] = name->ip[11] = 0xff;
        memcpy(name->ip + 12, &v4.sin_addr, 4);
        return 0;
    }
    if (length >= sizeof(v6) && from->sa_family == AF_INET6) {
        memcpy(&v6, from, sizeof(v6));
        memcpy(name->ip, &v6.sin6_addr, 16);
        name->port = ntohs(v6.sin6_port);
        return 0;
    }
    return -EAFNOSUPPORT;
}

int packet_name_from(struct utcp_name *name, const struct sockaddr *from, socklen_t length)
{
    static const uint8_t any[4];
    int error = packet_name_of(name, from, length);

    if (!error && utcp_is_v4(name) && !memcmp(name->ip + 12, any, sizeof(any)))
        memset(name->ip, 0, sizeof(name->ip));
    return error;
}

void packet_name_to(const struct utcp_name *name, struct sockaddr_storage *to)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(name->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(name->port)};

    memset(to, 0, sizeof(*to));
    if (utcp_is_v4(name)) {
        memcpy(&v4.sin_addr, name->ip + 12, 4);
        memcpy(to, &v4, sizeof(v4));
    } else {
        memcpy(&v6.sin6_addr, name->ip, 16);
        memcpy(to, &v6, sizeof(v6));
    }
}
