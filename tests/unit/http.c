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
#include "http/head.c"
#include "http/target.c"

enum { NAMES = 300 };

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
        int status = http_parse_request(&head, octets, n);

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),      cmocka_unit_test(responses),    cmocka_unit_test(ends),
        cmocka_unit_test(targets),       cmocka_unit_test(names_return), cmocka_unit_test(chunks),
        cmocka_unit_test(trailer_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
