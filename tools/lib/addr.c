/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* addr.c - parses and prints addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "tools/lib/tool.h"

/* Splits `text` into host and port (NULL: none). A text with several colons and no brackets is an IPv6 address. */
static bool split(char *text, char **host, char **port)
{
    *host = text;
    *port = NULL;
    char *colon = strrchr(text, ':');
    if (text[0] == '[') {
        char *close = strchr(text, ']');
        if (!close || (close[1] && close[1] != ':'))
            return false;
        *close = 0;
        *host = text + 1;
        *port = close[1] ? close + 2 : NULL;
    } else if (colon && colon == strchr(text, ':')) {
        *colon = 0;
        *port = colon + 1;
    }
    return **host && (!*port || **port);
}

int target_parse(struct target *target, const char *text, uint16_t default_port, bool passive)
{
    char copy[256] = "", service[SMALL_TEXT];
    char *host = NULL, *port = NULL;
    if (text) {
        if (strlen(text) >= sizeof(copy))
            return fail(EXIT_USAGE, "address too long");
        strcpy(copy, text);
        uint64_t number = 0;
        if (!split(copy, &host, &port) || (port && (!parse_u64(port, &number) || number > 65535)))
            return fail(EXIT_USAGE, "'%s' is not an address: expected HOST, HOST:PORT or [IPV6]:PORT", text);
    }
    snprintf(service, sizeof(service), "%u", default_port);
    const char *wanted = port ? port : service;
    bool bracket = host && strchr(host, ':');
    snprintf(target->text, sizeof(target->text), "%s%s%s:%s", bracket ? "[" : "", host ? host : "*", bracket ? "]" : "",
             wanted);

    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0)};
    struct addrinfo *list = NULL;
    int error = getaddrinfo(host, wanted, &hints, &list);
    if (error)
        return fail(EXIT_CONNECT, "cannot resolve %s: %s", host ? host : "an address",
                    error == EAI_SYSTEM ? error_text(errno) : gai_strerror(error));
    target->count = 0;
    for (struct addrinfo *a = list; a && target->count < ADDRESSES; a = a->ai_next) {
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
            continue;
        memcpy(&target->address[target->count], a->ai_addr, a->ai_addrlen);
        target->length[target->count++] = a->ai_addrlen;
    }
    freeaddrinfo(list);
    return target->count ? 0 : fail(EXIT_CONNECT, "%s has no IPv4 or IPv6 address", target->text);
}

char *address_text(char text[ADDRESS_TEXT], const struct sockaddr_storage *address)
{
    char host[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        /* An IPv4 peer of a dual-stack socket: print the IPv4 address in the last four octets. */
        inet_ntop(AF_INET, in6->sin6_addr.s6_addr + 12, host, sizeof(host));
        snprintf(text, ADDRESS_TEXT, "%s:%u", host, ntohs(in6->sin6_port));
    } else if (address->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
        snprintf(text, ADDRESS_TEXT, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
        inet_ntop(AF_INET, &in4->sin_addr, host, sizeof(host));
        snprintf(text, ADDRESS_TEXT, "%s:%u", host, ntohs(in4->sin_port));
    }
    return text;
}

socklen_t address_length(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Both address families have the port at the same offset. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port), "ports");

uint16_t address_port(const struct sockaddr_storage *address)
{
    return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

void address_set_port(struct sockaddr_storage *address, uint16_t port)
{
    ((struct sockaddr_in *)address)->sin_port = htons(port);
}
