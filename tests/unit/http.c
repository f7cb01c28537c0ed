/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http.c - heads, targets and chunks against their vectors, whole and octet by octet; what is encoded is decoded again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/rng.h"
#include "tests/lib/vectors.h"
/* The tool is a program: what is to be tested of it comes in by its source. */
#include "http/chunked.c"
#include "http/condition.c"
#include "http/date.c"
#include "http/head.c"
#include "http/repr_digest.c"
#include "http/target.c"
#include "http/type.c"
#include "http/field_words.c"

enum { NAMES = 300, NOW = 1800000000 };

static const char *const methods[] = {"OTHER", "GET", "HEAD", "PUT"};
static const char *const bodies[] = {"none", "length", "chunked", "to_end"};

/* The text in memory of its own, so that a sanitizer sees each octet that is read behind it. */
static uint8_t *own(const json_t *entry, size_t *n)
{
    const char *text = vector_text(entry, "text");
    uint8_t *copy;

    *n = strlen(text);
    copy = malloc(*n ? *n : 1);
    assert_non_null(copy);
    memcpy(copy, text, *n);
    return copy;
}

static void compare(const json_t *entry, const struct http_head *head)
{
    assert_string_equal(bodies[head->body], vector_text(entry, "body"));
    assert_int_equal(head->stays, vector_flag(entry, "stays"));
    if (head->body == HTTP_BODY_LENGTH)
        assert_true(head->length == vector_number(entry, "length"));
}

static void requests(void **state)
{
    json_t *file = vectors_load("http"), *entry;
    size_t i, n;

    (void)state;
    vectors_each(file, "requests", i, entry) {
        uint8_t *octets = own(entry, &n);
        struct http_head head;
        int status = http_parse_request(&head, octets, n, NOW);

        if (status != (int)vector_number(entry, "status"))
            fail_msg("%s: %d", vector_text(entry, "id"), status);
        if (status) {
            assert_non_null(head.why);
            assert_string_not_equal(http_phrase(status), "Unknown");
        } else {
            assert_string_equal(methods[head.method], vector_text(entry, "method"));
            compare(entry, &head);
        }
        free(octets);
    }
    json_decref(file);
}

static void responses(void **state)
{
    json_t *file = vectors_load("http"), *entry;
    size_t i, n;

    (void)state;
    vectors_each(file, "responses", i, entry) {
        uint8_t *octets = own(entry, &n);
        struct http_head head;
        enum http_method method = strcmp(vector_text(entry, "method"), "HEAD") ? HTTP_GET : HTTP_HEAD;
        bool good = http_parse_response(&head, method, octets, n);

        if (good != vector_flag(entry, "good"))
            fail_msg("%s: %d", vector_text(entry, "id"), good);
        if (good) {
            assert_int_equal(head.status, vector_number(entry, "status"));
            compare(entry, &head);
        } else {
            assert_non_null(head.why);
        }
        free(octets);
    }
    json_decref(file);
}

/* The end is found however many octets have come, and no head has two. */
static void ends(void **state)
{
    json_t *file = vectors_load("http"), *entry;
    size_t i, n;

    (void)state;
    vectors_each(file, "requests", i, entry) {
        uint8_t *octets = own(entry, &n);
        size_t scanned = 0, end = 0, come = 0;

        while (!end && come < n)
            end = http_head_end(octets, ++come, &scanned);
        scanned = 0;
        assert_int_equal(end, http_head_end(octets, n, &scanned));
        assert_int_equal(end, come);
        free(octets);
    }
    json_decref(file);
}

static void targets(void **state)
{
    json_t *file = vectors_load("http"), *entry;
    char path[HTTP_PATH_MAX + 1];
    size_t i, n;

    (void)state;
    vectors_each(file, "targets", i, entry) {
        uint8_t *octets = own(entry, &n);
        bool is_directory;
        int status = http_decode_target(path, &is_directory, (const char *)octets, n);

        if (status != (int)vector_number(entry, "status"))
            fail_msg("%s: %d", vector_text(entry, "id"), status);
        if (!status) {
            assert_string_equal(path, vector_text(entry, "path"));
            assert_int_equal(is_directory, vector_flag(entry, "directory"));
        }
        free(octets);
    }
    json_decref(file);
}

/* HTTP/1.0 knows no expectations (RFC 9110, section 10.1.1). */
static void expectations(void **state)
{
    static const struct {
        const char *version, *expected;
        bool continues;
        int status;
    } rows[] = {
        {"1.1", "100-continue", true, 0}, {"1.1", "100-Continue", true, 0}, {"1.0", "100-continue", false, 0},
        {"1.1", "wonders", false, 417},   {"1.0", "wonders", false, 0},
    };
    char text[200];
    struct http_head head;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(text, sizeof(text), "PUT /x HTTP/%s\r\nHost: a\r\nExpect: %s\r\nContent-Length: 1\r\n\r\n",
                 rows[i].version, rows[i].expected);
        int status = http_parse_request(&head, (const uint8_t *)text, strlen(text), 0);

        if (status != rows[i].status || head.expects_continue != rows[i].continues)
            fail_msg("HTTP/%s, %s: %d, %d", rows[i].version, rows[i].expected, status, head.expects_continue);
    }
}

/* Any name comes back as it was. */
static void names_return(void **state)
{
    char name[64], path[HTTP_PATH_MAX + 1], target[256] = "/";
    struct rng r = {11};
    bool is_directory;

    (void)state;
    for (int i = 0; i < NAMES; i++) {
        size_t n = 1 + rng_below(&r, sizeof(name) - 2);

        for (size_t k = 0; k < n; k++)
            name[k] = (char)(1 + rng_below(&r, 255));
        for (size_t k = 0; k < n; k++)
            name[k] = name[k] == '/' || name[k] == '.' ? '_' : name[k];
        name[n] = 0;
        n = http_encode_path(target + 1, sizeof(target) - 1, name);
        assert_true(n);
        assert_int_equal(http_decode_target(path, &is_directory, target, n + 1), 0);
        assert_string_equal(path, name);
        assert_false(is_directory);
    }
    assert_int_equal(http_encode_path(target, 4, "abcd"), 0);
    assert_int_equal(http_encode_path(target, 3, "\xff"), 0);
}

/* Decodes with `step` octets at a time. False: refused. */
static bool decode(const uint8_t *octets, size_t n, size_t step, char *data)
{
    struct http_chunk chunk = {0};
    size_t length = 0;

    for (size_t at = 0; at < n;) {
        size_t end = at + step < n ? at + step : n;

        at += http_chunk_eat(&chunk, octets + at, end - at);
        if (chunk.state == HTTP_CHUNK_BAD || chunk.state == HTTP_CHUNK_DONE)
            break;
        if (chunk.state == HTTP_CHUNK_DATA && at < end) {
            size_t take = end - at < chunk.left ? end - at : (size_t)chunk.left;

            memcpy(data + length, octets + at, take);
            length += take;
            at += take;
            http_chunk_took(&chunk, take);
        }
    }
    data[length] = 0;
    return chunk.state == HTTP_CHUNK_DONE;
}

static void chunks(void **state)
{
    json_t *file = vectors_load("http"), *entry;
    char data[1024];
    size_t i, n;

    (void)state;
    vectors_each(file, "chunks", i, entry) {
        uint8_t *octets = own(entry, &n);

        for (size_t step = 1; step <= n; step++) {
            bool good = decode(octets, n, step, data);

            if (good != vector_flag(entry, "good"))
                fail_msg("%s, %zu at a time: %d", vector_text(entry, "id"), step, good);
            if (good)
                assert_string_equal(data, vector_text(entry, "data"));
        }
        free(octets);
    }
    json_decref(file);
}

/* A trailer has an end, however the peer goes on. */
static void trailer_limit(void **state)
{
    static const uint8_t line[] = "X: y\r\n", end[] = "\r\n";
    struct http_chunk chunk = {0};
    size_t n = 0;

    (void)state;
    http_chunk_eat(&chunk, (const uint8_t *)"0\r\n", 3);
    while (chunk.state != HTTP_CHUNK_BAD && n < 2 * HTTP_CHUNK_TRAILER_MAX)
        n += http_chunk_eat(&chunk, line, sizeof(line) - 1);
    assert_int_equal(chunk.state, HTTP_CHUNK_BAD);
    assert_in_range(n, HTTP_CHUNK_TRAILER_MAX, 2 * HTTP_CHUNK_TRAILER_MAX);
    assert_int_equal(http_chunk_eat(&chunk, end, 2), 0);
}

/* RFC 9110, 5.6.7: the three forms; every day comes back. */
static int64_t date_of(const char *text)
{
    return http_parse_date((struct http_words){text, strlen(text)}, NOW);
}

static void dates(void **state)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "Sun, 06 Nov 1994 08:49:37",
                                        "Sun, 31 Feb 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 24:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:37 GMT ",
                                        "Sun, 06 Nox 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 1969 08:49:37 GMT",
                                        "Sun, -6 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:37 GMTxxxxxxxxxxxxxxxxxxxx"};
    char text[HTTP_DATE_MAX];

    (void)state;
    assert_true(date_of("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777);
    assert_true(date_of("Sunday, 06-Nov-94 08:49:37 GMT") == 784111777);
    assert_true(date_of("Sun Nov  6 08:49:37 1994") == 784111777);
    assert_true(date_of("Sunday, 06-Nov-94 08:49:37 GMT") < date_of("Sunday, 06-Nov-20 08:49:37 GMT"));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (date_of(wrong[i]) != HTTP_NO_DATE)
            fail_msg("'%s' is a date", wrong[i]);
    for (int64_t at = 3599; at < 5000000000; at += 86400) {
        http_format_date(text, at);
        assert_true(date_of(text) == at);
    }
    http_format_date(text, INT64_MAX);
    assert_string_equal(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    http_format_date(text, -1);
    assert_string_equal(text, "Thu, 01 Jan 1970 00:00:00 GMT");
}

static struct http_head head_of(const char *method, const char *fields)
{
    static char text[1000]; /* what the head points into */
    struct http_head head;

    snprintf(text, sizeof(text), "%s /x HTTP/1.1\r\nHost: a\r\n%s\r\n", method, fields);
    assert_int_equal(http_parse_request(&head, (const uint8_t *)text, strlen(text), NOW), 0);
    return head;
}

#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define SINCE "Sun, 06 Nov 1994 08:49:37 GMT"
#define AFTER "Sun, 06 Nov 1994 08:49:38 GMT"

/* RFC 9110, 13.2.2: what is asked first, and what each says of a file with a strong tag, a weak one, and of none. */
static void conditions(void **state)
{
    static const struct http_version versions[] = {
        {true, "\"a\"", 784111777}, {true, "W/\"a\"", 784111777}, {.exists = false}};
    static const struct {
        const char *fields;
        int get[3], put[3];
    } rows[] = {
        {"", {0, 0, 0}, {0, 0, 0}},
        {"If-Match: *\r\n", {0, 0, 412}, {0, 0, 412}},
        {"If-Match: \"a\"\r\n", {0, 412, 412}, {0, 412, 412}},
        {"If-Match: \"b\" ,, \"a\"\r\n", {0, 412, 412}, {0, 412, 412}},
        {"If-Match: W/\"a\"\r\n", {412, 412, 412}, {412, 412, 412}},
        {"If-Match: \"b\"\r\n", {412, 412, 412}, {412, 412, 412}},
        {"If-Match:\r\n", {412, 412, 412}, {412, 412, 412}},
        {"If-Match: a\r\n", {400, 400, 400}, {400, 400, 400}},
        {"If-Match: \"b\" \"a\"\r\n", {400, 400, 400}, {400, 400, 400}},
        {"If-None-Match: \"b\", \"a\r\n", {400, 400, 400}, {400, 400, 400}},
        {"If-None-Match: *\r\n", {304, 304, 0}, {412, 412, 0}},
        {"If-None-Match: W/\"a\"\r\n", {304, 304, 0}, {412, 412, 0}},
        {"If-None-Match: \"a\"\r\n", {304, 304, 0}, {412, 412, 0}},
        {"If-None-Match: \"b\"\r\n", {0, 0, 0}, {0, 0, 0}},
        {"If-Modified-Since: " SINCE "\r\n", {304, 304, 0}, {0, 0, 0}},
        {"If-Modified-Since: " AFTER "\r\n", {304, 304, 0}, {0, 0, 0}},
        {"If-Modified-Since: " BEFORE "\r\n", {0, 0, 0}, {0, 0, 0}},
        {"If-Modified-Since: yesterday\r\n", {0, 0, 0}, {0, 0, 0}},
        {"If-None-Match: \"b\"\r\nIf-Modified-Since: " AFTER "\r\n", {0, 0, 0}, {0, 0, 0}},
        {"If-Unmodified-Since: " SINCE "\r\n", {0, 0, 0}, {0, 0, 0}},
        {"If-Unmodified-Since: " BEFORE "\r\n", {412, 412, 0}, {412, 412, 0}},
        {"If-Match: *\r\nIf-Unmodified-Since: " BEFORE "\r\n", {0, 0, 412}, {0, 0, 412}},
        {"If-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n", {412, 412, 412}, {412, 412, 412}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int v = 0; v < 3; v++) {
            struct http_head get = head_of("GET", rows[i].fields);
            int got = http_check_conditions(&get, &versions[v]);
            struct http_head put = head_of("PUT", rows[i].fields);
            int did = http_check_conditions(&put, &versions[v]);

            if (got != rows[i].get[v] || did != rows[i].put[v])
                fail_msg("%sversion %d: %d, %d", rows[i].fields, v, got, did);
        }
}

/* RFC 9110, 14.1.2, and its errors: a range that is none is as if it were not there. */
static void parts(void **state)
{
    static const struct http_version version = {true, "\"a\"", 784111777}, weak = {true, "W/\"a\"", 784111777};
    static const struct {
        const char *fields;
        uint64_t size;
        enum http_part part;
        uint64_t first, length;
    } rows[] = {
        {"", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=0-0\r\n", 100, HTTP_PART_SOME, 0, 1},
        {"Range: bytes=99-\r\n", 100, HTTP_PART_SOME, 99, 1},
        {"Range: BYTES=10-19\r\n", 100, HTTP_PART_SOME, 10, 10},
        {"Range: bytes=10-99\r\n", 100, HTTP_PART_SOME, 10, 90},
        {"Range: bytes=10-100\r\n", 100, HTTP_PART_SOME, 10, 90},
        {"Range: bytes=0-999999999999999999\r\n", 100, HTTP_PART_SOME, 0, 100},
        {"Range: bytes=0-9223372036854775808\r\n", 100, HTTP_PART_SOME, 0, 100},
        {"Range: bytes=0-18446744073709551617\r\n", 100, HTTP_PART_SOME, 0, 100},
        {"Range: bytes=18446744073709551617-\r\n", 100, HTTP_PART_NONE, 0, 0},
        {"Range: bytes=1000000000000000000000000000000-1\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=-99999999999999999999999\r\n", 100, HTTP_PART_SOME, 0, 100},
        {"Range: bytes=00000000000000000000005-5\r\n", 100, HTTP_PART_SOME, 5, 1},
        {"Range: bytes=7-0x9\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=100-\r\n", 100, HTTP_PART_NONE, 0, 0},
        {"Range: bytes=0-\r\n", 0, HTTP_PART_NONE, 0, 0},
        {"Range: bytes=-1\r\n", 100, HTTP_PART_SOME, 99, 1},
        {"Range: bytes=-100\r\n", 100, HTTP_PART_SOME, 0, 100},
        {"Range: bytes=-101\r\n", 100, HTTP_PART_SOME, 0, 100},
        {"Range: bytes=-0\r\n", 100, HTTP_PART_NONE, 0, 0},
        {"Range: bytes=20-10\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=0-1,5-6\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=-\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=x-\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=1-2 \r\n", 100, HTTP_PART_SOME, 1, 2},
        {"Range: lines=1-2\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=1-2\r\nIf-Range: \"a\"\r\n", 100, HTTP_PART_SOME, 1, 2},
        {"Range: bytes=1-2\r\nIf-Range: \"b\"\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=1-2\r\nIf-Range: W/\"a\"\r\n", 100, HTTP_PART_ALL, 0, 100},
        {"Range: bytes=1-2\r\nIf-Range: " SINCE "\r\n", 100, HTTP_PART_SOME, 1, 2},
        {"Range: bytes=1-2\r\nIf-Range: " AFTER "\r\n", 100, HTTP_PART_ALL, 0, 100},
    };
    uint64_t first, length;
    struct http_head head;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        head = head_of("GET", rows[i].fields);
        enum http_part part = http_choose_part(&head, &version, rows[i].size, &first, &length);

        if (part != rows[i].part || (part != HTTP_PART_NONE && (first != rows[i].first || length != rows[i].length)))
            fail_msg("%s: %d, %d from %d", rows[i].fields, part, (int)length, (int)first);
    }
    head = head_of("HEAD", "Range: bytes=1-2\r\n");
    assert_int_equal(http_choose_part(&head, &version, 100, &first, &length), HTTP_PART_ALL);
    head = head_of("GET", "Range: bytes=1-2\r\nIf-Range: \"a\"\r\n");
    assert_int_equal(http_choose_part(&head, &weak, 100, &first, &length), HTTP_PART_ALL);
    head = head_of("GET", "Range: bytes=1-2\r\nIf-Range: " SINCE "\r\n");
    assert_int_equal(http_choose_part(&head, &weak, 100, &first, &length), HTTP_PART_ALL);
}

static void content_ranges(void **state)
{
    static const struct {
        const char *field;
        bool good;
        uint64_t first, length, total;
    } rows[] = {
        {"bytes 0-499/1234", true, 0, 500, 1234},
        {"bytes 734-1233/1234", true, 734, 500, 1234},
        {"bytes 0-0/*", true, 0, 1, UINT64_MAX},
        {"bytes */1234", true, 0, 0, 1234},
        {"bytes 0-1234/1234", false, 0, 0, 0},
        {"bytes 5-4/1234", false, 0, 0, 0},
        {"bytes 0-499", false, 0, 0, 0},
        {"bytes 0/499-1", false, 0, 0, 0},
        {"items 0-4/10", false, 0, 0, 0},
        {"bytes -4/10", false, 0, 0, 0},
        {"bytes 0-/10", false, 0, 0, 0},
        {"", false, 0, 0, 0},
        {"bytes 0-4/10\r\nContent-Range: bytes 0-4/10", false, 0, 0, 0},
    };
    char text[200];
    struct http_head head;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(text, sizeof(text), "HTTP/1.1 206 P\r\nContent-Range: %s\r\nETag: \"t\"\r\n\r\n", rows[i].field);
        if (http_parse_response(&head, HTTP_GET, (const uint8_t *)text, strlen(text)) != rows[i].good)
            fail_msg("%s", rows[i].field);
        if (!rows[i].good)
            continue;
        assert_true(head.content.given && head.content.total == rows[i].total);
        assert_true(head.content.first == rows[i].first && head.content.length == rows[i].length);
        assert_true(head.tag.n == 3 && http_tag_is_strong(head.tag));
    }
    assert_false(http_tag_is_strong((struct http_words){"W/\"a\"", 5}));
    assert_false(http_tag_is_strong((struct http_words){"\"a\"b", 4}));
    assert_false(http_tag_is_strong((struct http_words){NULL, 0}));
}

static void media_types(void **state)
{
    (void)state;
    assert_string_equal(http_type_of("index.html"), "text/html; charset=utf-8");
    assert_string_equal(http_type_of("a.b/c.JPG"), "image/jpeg");
    assert_string_equal(http_type_of("a.tar.gz"), "application/gzip");
    assert_string_equal(http_type_of("a.txt/b"), "application/octet-stream");
    assert_string_equal(http_type_of("a."), "application/octet-stream");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),     cmocka_unit_test(responses),     cmocka_unit_test(ends),
        cmocka_unit_test(expectations), cmocka_unit_test(targets),       cmocka_unit_test(names_return),
        cmocka_unit_test(chunks),       cmocka_unit_test(trailer_limit), cmocka_unit_test(dates),
        cmocka_unit_test(conditions),   cmocka_unit_test(parts),         cmocka_unit_test(content_ranges),
        cmocka_unit_test(media_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
