/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* vectors.c - loads a whole vector file; a missing key or a wrong type ends the test. */
#include "tests/lib/vectors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void bad(const json_t *entry, const char *key, const char *what)
{
    const char *id = json_string_value(json_object_get(entry, "id"));

    fprintf(stderr, "vectors: entry %s, key %s: %s\n", id ? id : "(no id)", key, what);
    exit(EXIT_FAILURE);
}

static const json_t *value(const json_t *entry, const char *key)
{
    const json_t *v = json_object_get(entry, key);

    if (!v)
        bad(entry, key, "missing");
    return v;
}

json_t *vectors_load(const char *name)
{
    const char *root = getenv("RDDP_SOURCE_DIR");
    json_error_t error;
    char path[4096];
    json_t *file;

    snprintf(path, sizeof(path), "%s/tests/vectors/%s.json", root ? root : RDDP_SOURCE_DIR, name);
    file = json_load_file(path, 0, &error);
    if (!file) {
        fprintf(stderr, "vectors: %s:%d: %s\n", path, error.line, error.text);
        exit(EXIT_FAILURE);
    }
    return file;
}

json_t *vectors_list(json_t *file, const char *list)
{
    json_t *array = json_object_get(file, list);

    /* A test that loops over an empty list would pass without checking anything. */
    if (json_array_size(array) == 0)
        bad(file, list, "no such array, or an empty one");
    return array;
}

json_t *vectors_find(json_t *file, const char *list, const char *id)
{
    json_t *entry;
    size_t i;

    vectors_each(file, list, i, entry) {
        const char *own = json_string_value(json_object_get(entry, "id"));

        if (own && strcmp(own, id) == 0)
            return entry;
    }
    bad(file, id, "no entry with this id");
}

const char *vector_text(const json_t *entry, const char *key)
{
    const char *text = json_string_value(value(entry, key));

    if (!text)
        bad(entry, key, "not a string");
    return text;
}

uint64_t vector_number(const json_t *entry, const char *key)
{
    const json_t *v = value(entry, key);
    unsigned long long number;
    char *end;

    if (json_is_integer(v))
        return (uint64_t)json_integer_value(v);
    if (!json_is_string(v))
        bad(entry, key, "not a number");
    errno = 0;
    number = strtoull(json_string_value(v), &end, 0);
    if (errno || end == json_string_value(v) || *end)
        bad(entry, key, "not a number");
    return number;
}

uint64_t vector_number_or(const json_t *entry, const char *key, uint64_t otherwise)
{
    return json_object_get(entry, key) ? vector_number(entry, key) : otherwise;
}

bool vector_flag(const json_t *entry, const char *key)
{
    const json_t *v = value(entry, key);

    if (!json_is_boolean(v))
        bad(entry, key, "neither true nor false");
    return json_is_true(v);
}

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) % 16 : -1;
}

ptrdiff_t hex_decode(const char *hex, void *to, size_t space)
{
    uint8_t *p = to;
    size_t n;

    for (n = 0; hex[2 * n]; n++) {
        int high = digit(hex[2 * n]);
        int low = digit(hex[2 * n + 1]);

        if (high < 0 || low < 0 || n == space)
            return -1;
        p[n] = (uint8_t)(high << 4 | low);
    }
    return (ptrdiff_t)n;
}

size_t vector_hex(const json_t *entry, const char *key, void *to, size_t space)
{
    ptrdiff_t n = hex_decode(vector_text(entry, key), to, space);

    if (n < 0)
        bad(entry, key, "not hex, or longer than the test's buffer");
    return (size_t)n;
}
