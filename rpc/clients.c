/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clients.c - a list of client addresses and prefixes: parses and searches it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/clients.h"

enum { NET_TEXT = 64 };

struct clients_net {
    int family;
    unsigned prefix; /* leading bits of `address` that count */
    uint8_t address[16];
};

__attribute__((format(printf, 3, 4))) static int clients_fail(char *message, int error, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(message, CLIENTS_TEXT, format, list);
    va_end(list);
    return error;
}

/* An IPv4-mapped IPv6 address (RFC 4291 2.5.5.2). */
static bool mapped(const uint8_t *address)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(address, prefix, sizeof(prefix));
}

static int parse_prefix(const char *text, unsigned limit, unsigned *prefix)
{
    size_t n = strspn(text, "0123456789");

    if (!n || n > 3 || text[n])
        return -EINVAL;
    *prefix = (unsigned)atoi(text);
    return *prefix <= limit ? 0 : -EINVAL;
}

static int parse_net(struct clients_net *net, const char *text, char *message)
{
    const char *slash = strchr(text, '/');
    char address[NET_TEXT];
    unsigned bits;

    snprintf(address, sizeof(address), "%.*s", (int)(slash ? slash - text : (ptrdiff_t)strlen(text)), text);
    *net = (struct clients_net){.family = AF_INET};
    if (inet_pton(AF_INET, address, net->address) != 1) {
        net->family = AF_INET6;
        if (inet_pton(AF_INET6, address, net->address) != 1)
            return clients_fail(message, -EINVAL, "'%.100s' is not an IPv4 or IPv6 address or prefix", text);
    }
    bits = net->family == AF_INET ? 32 : 128;
    net->prefix = bits;
    if (slash && parse_prefix(slash + 1, bits, &net->prefix))
        return clients_fail(message, -EINVAL, "'%.100s': the prefix length of an %s address is 0 to %u", text,
                            net->family == AF_INET ? "IPv4" : "IPv6", bits);
    if (net->family == AF_INET6 && net->prefix >= 96 && mapped(net->address)) {
        memmove(net->address, net->address + 12, 4);
        net->family = AF_INET;
        net->prefix -= 96;
    }
    return 0;
}

int clients_parse(struct clients *clients, const char *const *text, char *message)
{
    unsigned n = 0;
    int error = 0;

    *clients = (struct clients){0};
    while (text && text[n])
        n++;
    if (!text)
        return 0;
    /* One entry more than needed, so that an empty list is not NULL: NULL admits all clients, an empty list none. */
    clients->net = calloc(n + 1, sizeof(*clients->net));
    if (!clients->net)
        return clients_fail(message, -ENOMEM, "out of memory");
    for (clients->nets = 0; clients->nets < n && !error; clients->nets++)
        error = parse_net(&clients->net[clients->nets], text[clients->nets], message);
    if (error)
        clients_free(clients);
    return error;
}

void clients_free(struct clients *clients)
{
    free(clients->net);
    *clients = (struct clients){0};
}

static bool inside(const struct clients_net *net, int family, const uint8_t *address)
{
    unsigned whole = net->prefix / 8, rest = net->prefix % 8;

    if (net->family != family || memcmp(net->address, address, whole))
        return false;
    return !rest || (net->address[whole] ^ address[whole]) >> (8 - rest) == 0;
}

bool clients_have(const struct clients *clients, const struct sockaddr *peer)
{
    uint8_t address[16] = {0};
    int family = peer->sa_family;

    if (!clients->net)
        return true;
    if (family == AF_INET) {
        memcpy(address, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
    } else if (family == AF_INET6) {
        memcpy(address, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr, 16);
        if (mapped(address)) {
            memmove(address, address + 12, 4);
            family = AF_INET;
        }
    } else {
        return false;
    }
    for (unsigned i = 0; i < clients->nets; i++) {
        if (inside(&clients->net[i], family, address))
            return true;
    }
    return false;
}
