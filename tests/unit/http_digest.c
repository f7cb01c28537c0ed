/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_digest.c - digests in heads and in trailers (RFC 9530). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The tool is a program: what is to be tested of it comes in by its source. */
#include "http/chunked.c"
#include "http/date.c"
#include "http/head.c"
#include "http/repr_digest.c"
#include "http/target.c"
#include "http/field_words.c"

static struct http_words words_of(const char *text)
{
    return (struct http_words){text, strlen(text)};
}

/* RFC 9530, for one algorithm. */
static void digests(void **state)
{
    static const uint8_t hello[HTTP_DIGEST] = {0xb5, 0xe9, 0xc1, 0xad, 0x07, 0x1b, 0x3e, 0x7f,
                                               0xc7, 0x79, 0xcf, 0xaa, 0x5e, 0x52, 0x38, 0x18}; /* of "hello" */
    static const char trailer[] = "0\r\nA: b\r\nREPR-digest:  xxh3-128=:AAA: \r\n\r\n";
    char text[HTTP_DIGEST_TEXT], list[2 * HTTP_DIGEST_TEXT];
    struct http_chunk chunk = {0};
    struct http_words value;

    (void)state;
    http_format_digest(text, hello);
    assert_string_equal(text, "xxh3-128=:tenBrQcbPn/Hec+qXlI4GA==:");
    assert_int_equal(http_match_digest(words_of(text), text), HTTP_DIGEST_SAME);
    snprintf(list, sizeof(list), "sha-256=:AAAA:, %s ", text);
    assert_int_equal(http_match_digest(words_of(list), text), HTTP_DIGEST_SAME);
    snprintf(list, sizeof(list), "%s,xxh3-128=:AAAA:", text);
    assert_int_equal(http_match_digest(words_of(list), text), HTTP_DIGEST_OTHER); /* the last counts */
    text[12] ^= 1;
    assert_int_equal(http_match_digest(words_of("xxh3-128=:tenBrQcbPn/Hec+qXlI4GA==:"), text), HTTP_DIGEST_OTHER);
    assert_int_equal(http_match_digest(words_of("sha-256=:AAAA:"), text), HTTP_DIGEST_NONE);
    assert_int_equal(http_match_digest((struct http_words){0}, text), HTTP_DIGEST_NONE);
    assert_true(http_is_digest_wanted(words_of("sha-256=1, xxh3-128=10")));
    assert_false(http_is_digest_wanted(words_of("sha-256=1, xxh3-128=0")));
    assert_false(http_is_digest_wanted(words_of("xxh3-128=")));
    assert_false(http_is_digest_wanted(words_of("xxh3-1280=3")));
    for (size_t i = 0; i < sizeof(trailer) - 1; i++)
        http_chunk_eat(&chunk, (const uint8_t *)trailer + i, 1);
    assert_int_equal(chunk.state, HTTP_CHUNK_DONE);
    value = http_chunk_digest(&chunk);
    assert_int_equal(value.n, strlen("xxh3-128=:AAA:"));
    assert_memory_equal(value.at, "xxh3-128=:AAA:", value.n);
    assert_null(http_chunk_digest(&(struct http_chunk){0}).at);
}

/* Several lines are one dictionary, of which the last member counts; others leave ours alone. */
static void several_lines(void **state)
{
    static const char head_text[] = "HTTP/1.1 200 OK\r\nRepr-Digest: xxh3-128=:AAA:\r\nRepr-Digest: sha-256=:A:, "
                                    "xxh3-128=:BBB:\r\nRepr-Digest: sha-512=:A:\r\n\r\n";
    static const char trailer[] = "0\r\nRepr-Digest: sha-256=:A:\r\nRepr-Digest: xxh3-128=:AAA:\r\n"
                                  "Repr-Digest: xxh3-128=:BBB:;a=1\r\nRepr-Digest: sha-512=:A:\r\n\r\n";
    struct http_chunk chunk = {0};
    struct http_head head;

    (void)state;
    assert_true(http_parse_response(&head, HTTP_GET, (const uint8_t *)head_text, sizeof(head_text) - 1));
    assert_int_equal(http_match_digest(head.digest, "xxh3-128=:BBB:"), HTTP_DIGEST_SAME);
    http_chunk_eat(&chunk, (const uint8_t *)trailer, sizeof(trailer) - 1);
    assert_int_equal(chunk.state, HTTP_CHUNK_DONE);
    assert_int_equal(http_match_digest(http_chunk_digest(&chunk), "xxh3-128=:BBB:"), HTTP_DIGEST_SAME);
}

/* What does not fit is no field. */
static void long_trailers(void **state)
{
    static const char line[] = "A: b\r\n", digest[] = "Repr-Digest: xxh3-128=:AAA:\r\n\r\n";
    struct http_chunk chunk = {0};

    (void)state;
    http_chunk_eat(&chunk, (const uint8_t *)"0\r\n", 3);
    for (size_t i = 0; i < HTTP_CHUNK_TRAILER_KEPT - 20; i += sizeof(line) - 1)
        http_chunk_eat(&chunk, (const uint8_t *)line, sizeof(line) - 1);
    http_chunk_eat(&chunk, (const uint8_t *)digest, sizeof(digest) - 1);
    assert_int_equal(chunk.state, HTTP_CHUNK_DONE);
    assert_null(http_chunk_digest(&chunk).at);
}

/* What a client asks for, and what it takes. */
static void asked_for(void **state)
{
    static const char asks[] =
        "GET / HTTP/1.1\r\nHost: a\r\nTE: gzip, trailers\r\nWant-Repr-Digest: xxh3-128=3\r\n\r\n";
    static const char other[] = "GET / HTTP/1.1\r\nHost: a\r\nTE: gzip\r\nWant-Repr-Digest: sha-256=3\r\n\r\n";
    struct http_head head;

    (void)state;
    assert_int_equal(http_parse_request(&head, (const uint8_t *)asks, sizeof(asks) - 1, 0), 0);
    assert_true(head.wants_digest && head.takes_trailers);
    assert_int_equal(http_parse_request(&head, (const uint8_t *)other, sizeof(other) - 1, 0), 0);
    assert_false(head.wants_digest || head.takes_trailers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests),
        cmocka_unit_test(several_lines),
        cmocka_unit_test(long_trailers),
        cmocka_unit_test(asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
