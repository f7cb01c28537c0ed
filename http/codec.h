/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* codec.h - the octets of HTTP/1.1 (RFC 9112): heads, chunks and targets. Pure functions: nothing here has memory, a
 * socket or a clock.
 *
 * What two readers of a message could take for different messages is refused, not guessed at: bare CR or LF, folded
 * lines, blanks before a colon, a second Content-Length, Content-Length beside Transfer-Encoding. */
#ifndef RDDP_HTTP_CODEC_H
#define RDDP_HTTP_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_HEAD_MAX = 16384,  /* octets of a head, with the empty line */
    HTTP_FIELDS_MAX = 100,  /* its fields */
    HTTP_TARGET_MAX = 4096, /* octets of a target */
    HTTP_PATH_MAX = 4095,
};

enum http_method { HTTP_OTHER, HTTP_GET, HTTP_HEAD, HTTP_PUT };

/* Where the body ends. */
enum http_body {
    HTTP_BODY_NONE,
    HTTP_BODY_LENGTH,  /* after `length` octets */
    HTTP_BODY_CHUNKED, /* with the last chunk */
    HTTP_BODY_TO_END,  /* with the connection: of responses alone */
};

/* A head. `target` points into the octets that were parsed. */
struct http_head {
    int status; /* of a response */
    enum http_method method;
    const char *target;
    size_t target_length;
    enum http_body body;
    uint64_t length;
    bool is_1_0, stays, expects_continue; /* stays: the connection outlives this message */
    const char *why;                      /* what was wrong: the end of a line */
};

/* Octets up to the end of the head, its empty line included; 0: it has not come whole. *scanned, 0 at first, says where
 * to go on. */
size_t http_head_end(const uint8_t *octets, size_t n, size_t *scanned);

/* Parses a request's head, of http_head_end() octets. Returns 0, or the status to refuse it with: 400, 414, 417, 431,
 * 501, 505; head->why says why. */
int http_parse_request(struct http_head *head, const uint8_t *octets, size_t n);

/* Parses a response's head; `method` is the request's. False: it does not keep to RFC 9112, and head->why says why. */
bool http_parse_response(struct http_head *head, enum http_method method, const uint8_t *octets, size_t n);

/* The phrase of a status, as "Not Found". */
const char *http_phrase(int status);

/* Decodes a target to a path below the served directory: "" is the directory itself. *is_directory: it ends in a slash.
 * Returns 0, or the status to refuse it with: 400, 414. Never gives "." or "..", an empty part, or an octet 0. */
int http_decode_target(char path[HTTP_PATH_MAX + 1], bool *is_directory, const char *target, size_t n);

/* Writes `path` as part of a target; slashes stay. Returns the octets, without the 0 that ends them; or 0 if `capacity`
 * is too small. */
size_t http_encode_path(char *to, size_t capacity, const char *path);

/* --- chunks -------------------------------------------------------------------------------------------------- */

enum {
    HTTP_CHUNK_LINE_MAX = 256,    /* of a size with its extensions */
    HTTP_CHUNK_TRAILER_MAX = 4096 /* of all that follows the last chunk */
};

enum http_chunk_state {
    HTTP_CHUNK_SIZE,      /* in the digits of a size */
    HTTP_CHUNK_EXTENSION, /* behind them, in the same line */
    HTTP_CHUNK_SIZE_LF,   /* that line's LF is next */
    HTTP_CHUNK_DATA,      /* `left` octets are data */
    HTTP_CHUNK_CR,        /* behind the data */
    HTTP_CHUNK_LF,
    HTTP_CHUNK_TRAILER, /* a line of the trailer begins, or the empty one */
    HTTP_CHUNK_IN_TRAILER,
    HTTP_CHUNK_TRAILER_LF,
    HTTP_CHUNK_END_LF,
    HTTP_CHUNK_DONE,
    HTTP_CHUNK_BAD,
};

/* All 0 is the beginning of a body. */
struct http_chunk {
    enum http_chunk_state state;
    uint64_t left;
    uint32_t line, digits; /* octets of this line or of the trailer; digits of this size */
};

/* Takes framing up to the next data, the end, or the end of these octets; returns how many octets that is. Then in
 * state DATA the next chunk->left octets are data; http_chunk_took() says how many were taken. */
size_t http_chunk_eat(struct http_chunk *chunk, const uint8_t *octets, size_t n);
void http_chunk_took(struct http_chunk *chunk, uint64_t n);

#endif
