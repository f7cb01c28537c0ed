/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sockaddr.c - an address as text. */
#include "loop/sockaddr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

char *sockaddr_text(const struct sockaddr_storage *addr, char *text)
{
    char host[INET6_ADDRSTRLEN] = "?";
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    bool mapped;

    if (addr->ss_family == AF_INET6) {
        memcpy(&v6, addr, sizeof(v6));
        /* Write IPv4-mapped addresses as IPv4. */
        mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
        if (mapped)
            inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, host, sizeof(host));
        else
            inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
        snprintf(text, SOCKADDR_TEXT, mapped ? "%s:%u" : "[%s]:%u", host, ntohs(v6.sin6_port));
    } else {
        memcpy(&v4, addr, sizeof(v4));
        inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
        snprintf(text, SOCKADDR_TEXT, "%s:%u", host, ntohs(v4.sin_port));
    }
    return text;
}
