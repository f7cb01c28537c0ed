/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* head.c - the head of a request or a response: its first line, and the fields that say where its body ends. */
#include <string.h>
#include <strings.h>

#include "http/codec.h"

/* What the fields said. */
struct http_seen {
    int64_t now; /* in seconds since 1970 */
    unsigned hosts, lengths, encodings, fields;
    struct http_words modified_since, unmodified_since;
    bool chunked, close, keeps, partial, encoded, other_expectation;
};

size_t http_head_end(const uint8_t *octets, size_t n, size_t *scanned)
{
    for (size_t i = *scanned; i + 4 <= n; i++) {
        if (!memcmp(octets + i, "\r\n\r\n", 4))
            return i + 4;
        *scanned = i + 1;
    }
    return 0;
}

static int refuse(struct http_head *head, int status, const char *why)
{
    head->why = why;
    return status;
}

static bool is_token(const char *p, size_t n)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        bool good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!good && !(c && strchr(marks, c)))
            return false;
    }
    return n > 0;
}

static bool words_are(const struct http_words *w, const char *text)
{
    return w->n == strlen(text) && !strncasecmp(w->at, text, w->n);
}

/* Takes the next line. False: a CR or LF stands alone in it, or an octet that no line may have. */
static bool next_line(struct http_words *rest, struct http_words *line)
{
    line->at = rest->at;
    for (size_t i = 0; i + 1 < rest->n; i++) {
        unsigned char c = (unsigned char)rest->at[i];
        if (c == '\r' && rest->at[i + 1] == '\n') {
            line->n = i;
            rest->at += i + 2;
            rest->n -= i + 2;
            return true;
        }
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return false;
}

static bool parse_length(const struct http_words *value, uint64_t *length)
{
    *length = 0;
    for (size_t i = 0; i < value->n; i++) {
        if (value->at[i] < '0' || value->at[i] > '9')
            return false;
        *length = *length * 10 + (uint64_t)(value->at[i] - '0');
    }
    return value->n > 0 && value->n <= HTTP_DIGITS_MAX;
}

static void parse_connection(struct http_seen *seen, struct http_words list)
{
    struct http_words one;
    while (http_next_member(&list, &one)) {
        seen->close |= words_are(&one, "close");
        seen->keeps |= words_are(&one, "keep-alive");
    }
}

/* What the other end wants to be told, or was told, of the octets of a file. Any of it may be left alone. */
static bool parse_digest(struct http_head *head, const struct http_words *name, struct http_words value)
{
    struct http_words one;
    if (words_are(name, "want-repr-digest"))
        head->wants_digest |= http_is_digest_wanted(value);
    else if (words_are(name, "repr-digest") && http_has_digest(value))
        head->digest = value;
    else if (words_are(name, "te"))
        while (http_next_member(&value, &one))
            head->takes_trailers |= words_are(&one, "trailers");
    else
        return false;
    return true;
}

/* Fields of conditions and ranges: what they have is looked at when the file is known. Two of one kind are refused: one
 * of them alone could do what the other was to prevent. */
static int parse_condition(struct http_head *head, struct http_seen *seen, const struct http_words *name,
                           const struct http_words *value)
{
    const struct {
        const char *name;
        struct http_words *to;
    } words[] = {
        {"if-match", &head->if_match},
        {"if-none-match", &head->if_none_match},
        {"if-range", &head->if_range},
        {"range", &head->range},
        {"etag", &head->tag},
        {"if-modified-since", &seen->modified_since},
        {"if-unmodified-since", &seen->unmodified_since},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!words_are(name, words[i].name))
            continue;
        if (words[i].to->at)
            return refuse(head, 400, "a second condition, range or ETag");
        *words[i].to = *value;
    }
    return 0;
}

/* "bytes 0-499/1234", "bytes 0-499" and "/" and "*" for a total that is not known, and "*" for no part. */
static bool parse_content_range(struct http_content_range *range, struct http_words value)
{
    struct http_words last, total;
    uint64_t end;
    const char *slash = memchr(value.at, '/', value.n), *dash = memchr(value.at, '-', value.n);
    *range = (struct http_content_range){.given = true, .total = UINT64_MAX};
    if (value.n < 6 || strncasecmp(value.at, "bytes ", 6) || !slash)
        return false;
    total = (struct http_words){slash + 1, value.n - (size_t)(slash + 1 - value.at)};
    if (!(total.n == 1 && *total.at == '*') && !parse_length(&total, &range->total))
        return false;
    value = (struct http_words){value.at + 6, (size_t)(slash - value.at) - 6};
    if (value.n == 1 && *value.at == '*')
        return true;
    if (!dash || dash > slash)
        return false;
    last = (struct http_words){dash + 1, (size_t)(slash - dash) - 1};
    value.n = (size_t)(dash - value.at);
    if (!parse_length(&value, &range->first) || !parse_length(&last, &end) || end < range->first || end >= range->total)
        return false;
    range->length = end - range->first + 1;
    return true;
}

static int parse_framing(struct http_head *head, struct http_seen *seen, const struct http_words *name,
                         const struct http_words *value)
{
    if (words_are(name, "content-length")) {
        if (seen->lengths++ || !parse_length(value, &head->length))
            return refuse(head, 400, "a Content-Length that is no number, or a second one");
    } else if (words_are(name, "transfer-encoding")) {
        seen->chunked = words_are(value, "chunked");
        if (seen->encodings++)
            return refuse(head, 400, "more than one Transfer-Encoding");
    } else if (words_are(name, "content-range")) {
        seen->partial = true;
        if (head->content.given || !parse_content_range(&head->content, *value))
            return refuse(head, 400, "a Content-Range that is none");
    }
    return 0;
}

static int parse_field(struct http_head *head, struct http_seen *seen, const struct http_words *line)
{
    const char *colon = memchr(line->at, ':', line->n);
    struct http_words name = {line->at, colon ? (size_t)(colon - line->at) : 0}, value;
    if (!colon || !is_token(name.at, name.n))
        return refuse(head, 400, "a field without a name");
    value = (struct http_words){colon + 1, line->n - name.n - 1};
    http_trim_words(&value);
    if (words_are(&name, "host")) {
        seen->hosts++;
        if (!http_is_host(value))
            return refuse(head, 400, "a Host that is none");
    } else if (words_are(&name, "connection")) {
        parse_connection(seen, value);
    } else if (words_are(&name, "expect")) {
        /* A client of HTTP/1.0 would take the interim answer for the answer (RFC 9110, section 10.1.1). */
        head->expects_continue = !head->is_1_0 && words_are(&value, "100-continue");
        seen->other_expectation |= !head->is_1_0 && !head->expects_continue;
    } else if (words_are(&name, "content-encoding")) {
        seen->encoded |= !words_are(&value, "identity");
    } else if (!parse_digest(head, &name, value)) {
        int status = parse_condition(head, seen, &name, &value);
        return status ? status : parse_framing(head, seen, &name, &value);
    }
    return 0;
}

static int parse_fields(struct http_head *head, struct http_seen *seen, struct http_words rest)
{
    struct http_words line;
    int status = 0;
    while (!status) {
        if (!next_line(&rest, &line))
            return refuse(head, 400, "a line with a control character");
        if (!line.n)
            break;
        if (++seen->fields > HTTP_FIELDS_MAX)
            return refuse(head, 431, "too many fields");
        status = parse_field(head, seen, &line);
    }
    /* Whoever reads one of the two would see another message begin where the other reader sees data. */
    if (!status && seen->encodings && seen->lengths)
        status = refuse(head, 400, "both Content-Length and Transfer-Encoding");
    if (!status && seen->encodings && head->is_1_0)
        status = refuse(head, 400, "Transfer-Encoding in HTTP/1.0");
    if (!status && seen->encodings && !seen->chunked)
        status = refuse(head, 501, "a Transfer-Encoding other than chunked");
    if (seen->modified_since.at)
        head->if_modified_since = http_parse_date(seen->modified_since, seen->now);
    if (seen->unmodified_since.at)
        head->if_unmodified_since = http_parse_date(seen->unmodified_since, seen->now);
    head->stays = head->is_1_0 ? seen->keeps && !seen->close : !seen->close;
    return status;
}

struct http_words http_chunk_digest(const struct http_chunk *chunk)
{
    struct http_words rest = {chunk->trailer, chunk->kept}, line, digest = {0};
    while (next_line(&rest, &line) && line.n) {
        const char *colon = memchr(line.at, ':', line.n);
        struct http_words name = {line.at, colon ? (size_t)(colon - line.at) : 0};
        struct http_words value = {colon ? colon + 1 : line.at, colon ? line.n - name.n - 1 : 0};
        http_trim_words(&value);
        if (words_are(&name, "repr-digest") && http_has_digest(value))
            digest = value;
    }
    return digest;
}

/* "HTTP/1.1" */
static int parse_version(struct http_head *head, const char *p, size_t n)
{
    if (n != 8 || memcmp(p, "HTTP/", 5) || p[5] < '0' || p[5] > '9' || p[6] != '.' || p[7] < '0' || p[7] > '9')
        return refuse(head, 400, "not HTTP");
    if (p[5] != '1')
        return refuse(head, 505, "another version of HTTP than 1");
    head->is_1_0 = p[7] == '0';
    return 0;
}

static enum http_method method_of(const char *p, size_t n)
{
    static const struct {
        const char *name;
        enum http_method method;
    } methods[] = {{"GET", HTTP_GET}, {"HEAD", HTTP_HEAD}, {"PUT", HTTP_PUT}};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (n == strlen(methods[i].name) && !memcmp(p, methods[i].name, n))
            return methods[i].method;
    }
    return HTTP_OTHER;
}

static int parse_request_line(struct http_head *head, const struct http_words *line)
{
    const char *first = memchr(line->at, ' ', line->n);
    size_t method = first ? (size_t)(first - line->at) : 0, rest = line->n - method - 1;
    const char *second = first ? memchr(first + 1, ' ', rest) : NULL;
    if (!second || !is_token(line->at, method) || second == first + 1)
        return refuse(head, 400, "not a request");
    head->method = method_of(line->at, method);
    head->target = first + 1;
    head->target_length = (size_t)(second - first) - 1;
    if (head->target_length > HTTP_TARGET_MAX)
        return refuse(head, 414, "too long a target");
    return parse_version(head, second + 1, rest - head->target_length - 1);
}

int http_parse_request(struct http_head *head, const uint8_t *octets, size_t n, int64_t now)
{
    struct http_words rest = {(const char *)octets, n}, line;
    struct http_seen seen = {.now = now};
    *head = (struct http_head){.if_modified_since = HTTP_NO_DATE, .if_unmodified_since = HTTP_NO_DATE};
    if (!next_line(&rest, &line))
        return refuse(head, 400, "a line with a control character");
    int status = parse_request_line(head, &line);
    if (!status)
        status = parse_fields(head, &seen, rest);
    if (status) {
        head->stays = false;
        return status;
    }
    head->body = seen.encodings ? HTTP_BODY_CHUNKED : seen.lengths ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
    if (seen.hosts > 1 || (!seen.hosts && !head->is_1_0))
        return refuse(head, 400, "not one Host");
    if (seen.other_expectation)
        return refuse(head, 417, "an unknown expectation");
    if (head->method == HTTP_PUT && (seen.partial || seen.encoded))
        return refuse(head, seen.partial ? 400 : 415, "part of a file, or one that is encoded");
    return 0;
}

bool http_parse_response(struct http_head *head, enum http_method method, const uint8_t *octets, size_t n)
{
    struct http_words rest = {(const char *)octets, n}, line;
    struct http_seen seen = {0};
    *head = (struct http_head){.method = method};
    /* "HTTP/1.1 200 OK"; the phrase may be missing, and with it the blank. */
    if (!next_line(&rest, &line) || line.n < 12 || line.at[8] != ' ' || parse_version(head, line.at, 8) ||
        (line.n > 12 && line.at[12] != ' '))
        return refuse(head, 0, "not HTTP/1");
    for (int i = 9; i < 12; i++) {
        if (line.at[i] < '0' || line.at[i] > '9')
            return refuse(head, 0, "a status that is no number");
        head->status = head->status * 10 + (line.at[i] - '0');
    }
    if (head->status < 100)
        return refuse(head, 0, "a status below 100");
    if (parse_fields(head, &seen, rest))
        return false;
    if (method == HTTP_HEAD || head->status < 200 || head->status == 204 || head->status == 304)
        head->body = HTTP_BODY_NONE;
    else
        head->body = seen.encodings ? HTTP_BODY_CHUNKED : seen.lengths ? HTTP_BODY_LENGTH : HTTP_BODY_TO_END;
    /* Of a HEAD the length is that of the body that a GET would have. */
    if (!seen.lengths)
        head->length = UINT64_MAX;
    return true;
}

const char *http_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++) {
        if (phrases[i].status == status)
            return phrases[i].phrase;
    }
    return "Unknown";
}
