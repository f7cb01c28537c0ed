/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* target.c - from the target of a request to a path below the served directory, and back. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/codec.h"

static int target_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

static bool is_hex(char c)
{
    return target_digit(c) >= 0;
}

/* Letters, digits, marks, and octets as %XX. */
static bool is_registered_name(const char *at, size_t n)
{
    static const char marks[] = "-._~!$&'()*+,;=";
    for (size_t i = 0; i < n; i++) {
        char c = at[i];
        if (c == '%' && i + 2 < n && is_hex(at[i + 1]) && is_hex(at[i + 2]))
            i += 2;
        else if (!c || !((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || strchr(marks, c)))
            return false;
    }
    return true;
}

static bool is_v6_address(const char *at, size_t n)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr ip;
    if (n >= sizeof(text) || memchr(at, 0, n))
        return false;
    memcpy(text, at, n);
    text[n] = 0;
    return inet_pton(AF_INET6, text, &ip) == 1;
}

bool http_is_host(struct http_words value)
{
    size_t colon = value.n;
    while (colon && value.at[colon - 1] >= '0' && value.at[colon - 1] <= '9')
        colon--;
    size_t n = colon && value.at[colon - 1] == ':' ? colon - 1 : value.n;
    if (n && value.at[0] == '[')
        return n > 2 && value.at[n - 1] == ']' && is_v6_address(value.at + 1, n - 2);
    return is_registered_name(value.at, n);
}

/* "http://host/path" has its path behind the host, which is not empty there (RFC 9110, section 4.2.1). Returns what is
 * left of the target, or NULL. */
static const char *without_authority(const char *target, size_t *n)
{
    size_t end = 7;
    if (*n && target[0] == '/')
        return target;
    if (*n < end || strncasecmp(target, "http://", end))
        return NULL;
    while (end < *n && target[end] != '/' && target[end] != '?' && target[end] != '#')
        end++;
    if (end == 7 || target[7] == ':' || !http_is_host((struct http_words){target + 7, end - 7}))
        return NULL;
    *n -= end;
    return target + end;
}

/* One character at `from` of `n`; how many octets it took, or 0. An encoded slash is not a slash: no name has one. */
static size_t decode_one(const char *from, size_t n, char *to)
{
    unsigned char c = (unsigned char)from[0];
    if (c == '%') {
        int high = n > 2 ? target_digit(from[1]) : -1, low = n > 2 ? target_digit(from[2]) : -1;
        *to = (char)(high * 16 + low);
        return high < 0 || low < 0 || !*to || *to == '/' ? 0 : 3;
    }
    *to = (char)c;
    return c <= 0x20 || c == 0x7f || c == '#' ? 0 : 1;
}

/* Is the part of `path` that ends at `n` one that names something? */
static bool part_is_name(const char *path, size_t n)
{
    size_t from = n;
    while (from && path[from - 1] != '/')
        from--;
    size_t length = n - from;
    return length && !(length == 1 && path[from] == '.') &&
           !(length == 2 && path[from] == '.' && path[from + 1] == '.');
}

int http_decode_target(char path[HTTP_PATH_MAX + 1], bool *is_directory, const char *target, size_t n)
{
    size_t length = 0;
    const char *from = without_authority(target, &n);
    if (!from)
        return 400;
    if (n && *from == '/') {
        from++;
        n--;
    }
    const char *query = memchr(from, '?', n);
    if (query)
        n = (size_t)(query - from);
    *is_directory = !n;
    while (n) {
        if (length == HTTP_PATH_MAX)
            return 414;
        size_t took = decode_one(from, n, path + length);
        if (!took || (path[length] == '/' && !part_is_name(path, length)))
            return 400;
        *is_directory = path[length++] == '/';
        from += took;
        n -= took;
    }
    if (length && *is_directory)
        length--;
    path[length] = 0;
    return length && !part_is_name(path, length) ? 400 : 0;
}

size_t http_encode_path(char *to, size_t capacity, const char *path)
{
    /* Not '&': in an attribute of HTML it would begin a character. */
    static const char plain[] = "-._~/!$'()*+,;=:@";
    size_t n = 0;
    for (; *path; path++) {
        char c = *path;
        bool as_is = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr(plain, c);
        if (n + 4 > capacity)
            return 0;
        if (as_is)
            to[n++] = c;
        else
            n += (size_t)snprintf(to + n, 4, "%%%02X", (unsigned char)c);
    }
    if (n >= capacity)
        return 0;
    to[n] = 0;
    return n;
}
