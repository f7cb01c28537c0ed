/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* repr_digest.c - the texts of Repr-Digest and Want-Repr-Digest (RFC 9530) for the one algorithm that both ends of ours
 * know: XXH3 with 128 bits, which costs little beside the transfer and is against accidents, not against forgers. */
#include <stdio.h>
#include <string.h>

#include "http/codec.h"

#define KEY "xxh3-128"

/* Base64 (RFC 4648). */
static void put_base64(char *to, const uint8_t *p, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t word = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
        *to++ = digit[word >> 18];
        *to++ = digit[word >> 12 & 63];
        *to++ = i + 1 < n ? digit[word >> 6 & 63] : '=';
        *to++ = i + 2 < n ? digit[word & 63] : '=';
    }
    *to = 0;
}

void http_format_digest(char text[HTTP_DIGEST_TEXT], const uint8_t value[HTTP_DIGEST])
{
    char octets[(HTTP_DIGEST + 2) / 3 * 4 + 1];
    put_base64(octets, value, HTTP_DIGEST);
    snprintf(text, HTTP_DIGEST_TEXT, KEY "=:%s:", octets);
}

/* Is this member of a dictionary (RFC 8941) of our algorithm? */
static bool is_ours(const struct http_words *member)
{
    return member->n > strlen(KEY) && !memcmp(member->at, KEY "=", strlen(KEY) + 1);
}

bool http_is_digest_wanted(struct http_words list)
{
    struct http_words member;
    bool wanted = false;
    while (http_next_member(&list, &member)) {
        if (is_ours(&member)) /* the last of several counts (RFC 8941, section 4.2.2) */
            wanted = member.n > strlen(KEY) + 1 && member.at[strlen(KEY) + 1] != '0';
    }
    return wanted;
}

bool http_has_digest(struct http_words list)
{
    return http_match_digest(list, "") != HTTP_DIGEST_NONE;
}

enum http_digest_match http_match_digest(struct http_words list, const char *text)
{
    enum http_digest_match match = HTTP_DIGEST_NONE;
    struct http_words member;
    while (http_next_member(&list, &member)) {
        if (!is_ours(&member))
            continue;
        const char *parameters = memchr(member.at, ';', member.n);
        if (parameters)
            member.n = (size_t)(parameters - member.at);
        match = member.n == strlen(text) && !memcmp(member.at, text, member.n) ? HTTP_DIGEST_SAME : HTTP_DIGEST_OTHER;
    }
    return match;
}
