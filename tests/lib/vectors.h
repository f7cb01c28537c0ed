/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* vectors.h - bytes and the fields they mean, read from tests/vectors/NAME.json. */
#ifndef TESTS_LIB_VECTORS_H
#define TESTS_LIB_VECTORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* None of these returns a failure: a vector file that cannot be read as the test expects ends the test with one line
 * that says which file, entry and key. */

/* Loads tests/vectors/NAME.json of the source tree. The caller ends with json_decref(). */
json_t *vectors_load(const char *name);

/* The entry of the array `list` of `file` whose "id" is `id`. Borrowed from `file`. */
json_t *vectors_find(json_t *file, const char *list, const char *id);

/* For each entry of the array `list` of `file`. */
#define vectors_each(file, list, index, entry) json_array_foreach(vectors_list(file, list), index, entry)
json_t *vectors_list(json_t *file, const char *list);

/* The value of `key`: a string; a number, written as one or as a string "0x1f"; a truth value. */
const char *vector_text(const json_t *entry, const char *key);
uint64_t vector_number(const json_t *entry, const char *key);
bool vector_flag(const json_t *entry, const char *key);
/* The same number, or `otherwise` where the entry has no such key. */
uint64_t vector_number_or(const json_t *entry, const char *key, uint64_t otherwise);

/* Decodes the hex string `key` of `entry` into `to` and returns its length, at most `room`. */
size_t vector_hex(const json_t *entry, const char *key, void *to, size_t room);

/* Decodes `hex`, two digits an octet and nothing between, into `to`; returns the length, or -1 when it is not hex or
 * longer than `room`. */
ptrdiff_t hex_decode(const char *hex, void *to, size_t room);

#endif
