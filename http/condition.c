/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* condition.c - under which conditions a request is done, and to which part of a file (RFC 9110, sections 13 and 14).
 */
#include <string.h>
#include <strings.h>

#include "http/codec.h"

enum tag_match { TAG_OTHER, TAG_SAME, TAG_MALFORMED };

/* An entity tag at the beginning of `list`: its octets with the quotes, and W/ in front. 0: there is none. */
static size_t tag_length(const struct http_words *list)
{
    size_t i = list->n > 2 && !memcmp(list->at, "W/", 2) ? 2 : 0;
    if (i >= list->n || list->at[i] != '"')
        return 0;
    for (i++; i < list->n; i++) {
        unsigned char c = (unsigned char)list->at[i];
        if (c == '"')
            return i + 1;
        if (c <= 0x20 || c == 0x7f)
            return 0;
    }
    return 0;
}

static struct http_words opaque_of(const char *tag, size_t n)
{
    bool weak = n > 2 && tag[0] == 'W';
    return weak ? (struct http_words){tag + 2, n - 2} : (struct http_words){tag, n};
}

/* The comparisons of RFC 9110, 8.8.3.2. */
static bool tags_equal(const char *a, size_t n, const char *ours, bool strong)
{
    struct http_words one = opaque_of(a, n), two = opaque_of(ours, strlen(ours));
    if (strong && (a[0] == 'W' || ours[0] == 'W'))
        return false;
    return one.n == two.n && !memcmp(one.at, two.at, one.n);
}

/* Is our tag in the list? "*" stands for every file that there is. */
static enum tag_match match_list(struct http_words list, const struct http_version *version, bool strong)
{
    enum tag_match match = TAG_OTHER;
    bool wants_tag = true;
    if (list.n == 1 && list.at[0] == '*')
        return version->exists ? TAG_SAME : TAG_OTHER;
    while (list.n) {
        size_t n = 1;
        if (list.at[0] == ',') {
            wants_tag = true;
        } else if (list.at[0] != ' ' && list.at[0] != '\t') {
            n = wants_tag ? tag_length(&list) : 0;
            if (!n)
                return TAG_MALFORMED;
            wants_tag = false;
            if (version->exists && tags_equal(list.at, n, version->tag, strong))
                match = TAG_SAME;
        }
        list.at += n;
        list.n -= n;
    }
    return match;
}

int http_check_conditions(const struct http_head *head, const struct http_version *version)
{
    bool reads = head->method == HTTP_GET || head->method == HTTP_HEAD;
    enum tag_match match = head->if_match.at ? match_list(head->if_match, version, true) : TAG_SAME;
    enum tag_match none = head->if_none_match.at ? match_list(head->if_none_match, version, false) : TAG_OTHER;
    if (match == TAG_MALFORMED || none == TAG_MALFORMED)
        return 400;
    if (match == TAG_OTHER)
        return 412;
    if (!head->if_match.at && version->exists && head->if_unmodified_since != HTTP_NO_DATE &&
        version->modified > head->if_unmodified_since)
        return 412;
    if (none == TAG_SAME)
        return reads ? 304 : 412;
    if (!head->if_none_match.at && reads && version->exists && head->if_modified_since != HTTP_NO_DATE &&
        version->modified <= head->if_modified_since)
        return 304;
    return 0;
}

bool http_tag_is_strong(struct http_words tag)
{
    return tag.at && tag.n < HTTP_TAG_MAX && tag.at[0] == '"' && tag_length(&tag) == tag.n;
}

/* Is the file still the one that the client has a part of? A date counts only if the file was at rest by then. */
static bool range_holds(const struct http_head *head, const struct http_version *version)
{
    char date[HTTP_DATE_MAX];
    struct http_words given = head->if_range;
    if (!given.at)
        return true;
    if (tag_length(&given) == given.n && given.n)
        return tags_equal(given.at, given.n, version->tag, true);
    http_format_date(date, version->modified);
    return version->tag[0] != 'W' && given.n == strlen(date) && !memcmp(given.at, date, given.n);
}

/* Takes digits. False: there is none. A value above INT64_MAX is behind the end of every file, and becomes that. */
static bool take_position(struct http_words *words, uint64_t *value)
{
    size_t i = 0;
    *value = 0;
    for (; i < words->n && words->at[i] >= '0' && words->at[i] <= '9'; i++)
        *value = *value > INT64_MAX / 10 - 1 ? INT64_MAX : *value * 10 + (uint64_t)(words->at[i] - '0');
    words->at += i;
    words->n -= i;
    return i > 0;
}

enum http_part http_choose_part(const struct http_head *head, const struct http_version *version, uint64_t size,
                                uint64_t *first, uint64_t *length)
{
    struct http_words words = head->range;
    uint64_t from = 0, last = UINT64_MAX;
    *first = 0;
    *length = size;
    if (head->method != HTTP_GET || words.n < 7 || strncasecmp(words.at, "bytes=", 6) || !range_holds(head, version))
        return HTTP_PART_ALL;
    words.at += 6;
    words.n -= 6;
    bool from_end = words.at[0] == '-';
    if (!from_end && !take_position(&words, &from))
        return HTTP_PART_ALL;
    bool good = words.n && words.at[0] == '-';
    words.at += good;
    words.n -= good;
    if (!good || (words.n && !take_position(&words, &last)) || words.n || (from_end && last == UINT64_MAX) ||
        (!from_end && last < from))
        return HTTP_PART_ALL;
    if (from_end) {
        *length = last < size ? last : size;
        *first = size - *length;
        return *length ? HTTP_PART_SOME : HTTP_PART_NONE;
    }
    if (from >= size)
        return HTTP_PART_NONE;
    *first = from;
    *length = last - from < size - from - 1 ? last - from + 1 : size - from;
    return HTTP_PART_SOME;
}
