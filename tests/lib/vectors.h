/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* vectors.h - octets and the fields that they mean, read from tests/vectors/NAME.json. */
#ifndef TESTS_LIB_VECTORS_H
#define TESTS_LIB_VECTORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* None of these functions returns a failure: a vector file that the test cannot read ends the test with one line that
 * names the file, the entry and the key. */

/* Loads tests/vectors/NAME.json of the source tree. The caller releases it with json_decref(). */
json_t *vectors_load(const char *name);

/* Returns the entry whose "id" is `id` in the array `list` of `file`. Borrowed from `file`. */
json_t *vectors_find(json_t *file, const char *list, const char *id);

/* Iterates over the entries of the array `list` of `file`. */
#define vectors_each(file, list, index, entry) json_array_foreach(vectors_list(file, list), index, entry)
json_t *vectors_list(json_t *file, const char *list);

/* Return the value of `key`: a string; a number, written as such or as a string like "0x1f"; a truth value. */
const char *vector_text(const json_t *entry, const char *key);
uint64_t vector_number(const json_t *entry, const char *key);
bool vector_flag(const json_t *entry, const char *key);
/* Returns the number, or `otherwise` if the entry has no such key. */
uint64_t vector_number_or(const json_t *entry, const char *key, uint64_t otherwise);

/* Decodes the hex string `key` of `entry` into `to`, at most `space` octets, and returns its length. */
size_t vector_hex(const json_t *entry, const char *key, void *to, size_t space);

/* Decodes `hex`, two digits per octet without separators, into `to`. Returns the length, or -1 if it is not hex or
 * longer than `space`. */
ptrdiff_t hex_decode(const char *hex, void *to, size_t space);

#endif
