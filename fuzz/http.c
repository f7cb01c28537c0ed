/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http.c - heads, targets and chunks: what is taken keeps within what came, paths never lead upwards, and chunks are
 * the same in one piece and in many.
 *
 * Input: an octet that says what the rest is: q a request, s a response, t a target, c chunks. */
#include <assert.h>
#include <stdlib.h>

#include "http/chunked.c"
#include "http/condition.c"
#include "http/date.c"
#include "http/head.c"
#include "http/repr_digest.c"
#include "http/target.c"
#include "http/type.c"
#include "http/field_words.c"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static void fuzz_head(const uint8_t *p, size_t n, bool request)
{
    size_t scanned = 0, end = http_head_end(p, n, &scanned);
    struct http_head head;

    assert(end <= n);
    if (!end)
        return;
    if (request && !http_parse_request(&head, p, end, 0)) {
        assert(head.target >= (const char *)p && head.target + head.target_length <= (const char *)p + end);
        assert(head.target_length <= HTTP_TARGET_MAX && head.body != HTTP_BODY_TO_END);
    }
    for (int m = HTTP_GET; m <= HTTP_PUT && !request; m++) {
        if (http_parse_response(&head, (enum http_method)m, p, end))
            assert(head.status >= 100 && head.status <= 999);
    }
}

static void fuzz_target(const uint8_t *p, size_t n)
{
    char path[HTTP_PATH_MAX + 1], again[3 * HTTP_PATH_MAX + 5] = "/", second[HTTP_PATH_MAX + 1];
    bool is_directory;
    size_t m;

    if (http_decode_target(path, &is_directory, (const char *)p, n))
        return;
    assert(path[0] != '/' && !strstr(path, "//"));
    for (char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        assert(strcmp(part, "..") && strncmp(part, "../", 3) && strcmp(part, ".") && strncmp(part, "./", 2));
    }
    m = http_encode_path(again + 1, sizeof(again) - 1, path);
    assert((m || !*path) && !http_decode_target(second, &is_directory, again, m + 1) && !strcmp(path, second));
}

/* Returns how many octets are data, and how it ended. */
static uint64_t fuzz_eat(const uint8_t *p, size_t n, size_t step, enum http_chunk_state *state)
{
    struct http_chunk chunk = {0};
    uint64_t data = 0;

    for (size_t at = 0; at < n && chunk.state < HTTP_CHUNK_DONE;) {
        size_t end = n - at < step ? n : at + step;

        at += http_chunk_eat(&chunk, p + at, end - at);
        if (chunk.state == HTTP_CHUNK_DATA) {
            size_t take = end - at < chunk.left ? end - at : (size_t)chunk.left;

            data += take;
            at += take;
            if (take)
                http_chunk_took(&chunk, take);
        }
    }
    *state = chunk.state;
    return data;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    enum http_chunk_state one, many;
    uint8_t *p;

    if (!length)
        return 0;
    p = malloc(length);
    assert(p);
    memcpy(p, input + 1, length - 1);
    if (input[0] == 't')
        fuzz_target(p, length - 1);
    else if (input[0] == 'c')
        assert(fuzz_eat(p, length - 1, 1, &one) == fuzz_eat(p, length - 1, SIZE_MAX, &many) && one == many);
    else
        fuzz_head(p, length - 1, input[0] == 'q');
    free(p);
    return 0;
}
