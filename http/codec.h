/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* codec.h - the octets of HTTP/1.1 (RFC 9112): heads, chunks and targets. Pure functions: nothing here has memory, a
 * socket or a clock.
 *
 * What two readers of a message could take for different messages is refused, not guessed at: bare CR or LF, folded
 * lines, blanks before a colon, a second Content-Length, Content-Length beside Transfer-Encoding, a Host that is none.
 */
#ifndef RDDP_HTTP_CODEC_H
#define RDDP_HTTP_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_DIGITS_MAX = 18,   /* of a length or an offset */
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

/* Octets of a line, or of a part of it. `at` NULL: there is none. */
struct http_words {
    const char *at;
    size_t n;
};

/* The part of a file that a 206 or 416 tells of. `total` UINT64_MAX: unknown. */
struct http_content_range {
    bool given;
    uint64_t first, length, total; /* length 0: "bytes * / TOTAL" */
};

#define HTTP_NO_DATE INT64_MIN

/* A head. `target` and all words point into the octets that were parsed. */
struct http_head {
    int status; /* of a response */
    enum http_method method;
    const char *target;
    size_t target_length;
    enum http_body body;
    uint64_t length;
    struct http_words if_match, if_none_match, if_range, range; /* of a request */
    int64_t if_modified_since, if_unmodified_since;             /* HTTP_NO_DATE: not given, or no date */
    struct http_words tag, digest;                              /* of a response: its ETag, its Repr-Digest */
    struct http_content_range content;
    bool is_1_0, stays, expects_continue; /* stays: the connection outlives this message */
    bool wants_digest, takes_trailers;    /* of a request */
    const char *why;                      /* what was wrong: the end of a line */
};

/* Octets up to the end of the head, its empty line included; 0: it has not come whole. *scanned, 0 at first, says where
 * to go on. */
size_t http_head_end(const uint8_t *octets, size_t n, size_t *scanned);

/* Parses a request's head, of http_head_end() octets; `now` is in seconds since 1970. Returns 0, or the status to
 * refuse it with: 400, 414, 417, 431, 501, 505; head->why says why. */
int http_parse_request(struct http_head *head, const uint8_t *octets, size_t n, int64_t now);

/* Parses a response's head; `method` is the request's. False: it does not keep to RFC 9112, and head->why says why. */
bool http_parse_response(struct http_head *head, enum http_method method, const uint8_t *octets, size_t n);

void http_trim_words(struct http_words *w);
/* Takes the next member of a list with commas. False: there is none. */
bool http_next_member(struct http_words *list, struct http_words *member);

/* The phrase of a status, as "Not Found". */
const char *http_phrase(int status);

/* --- dates, conditions and ranges ---------------------------------------------------------------------------- */

enum { HTTP_DATE_MAX = 64, HTTP_TAG_MAX = 80 }; /* of their texts, with the 0 that ends them */

/* Seconds since 1970 as "Sun, 06 Nov 1994 08:49:37 GMT"; years 1970 to 9999, others become the nearest of them. */
void http_format_date(char text[HTTP_DATE_MAX], int64_t seconds);
/* All three forms of RFC 9110, 5.6.7. HTTP_NO_DATE: it is none of them. `now` decides on the century of two digits. */
int64_t http_parse_date(struct http_words text, int64_t now);

/* What a client may ask about a file. */
struct http_version {
    bool exists;
    char tag[HTTP_TAG_MAX]; /* with its quotes, and W/ in front of a weak one */
    int64_t modified;
};

/* Checks the conditions of a request in the order of RFC 9110, 13.2.2. Returns 0: it may go on; 304, 412, or 400. */
int http_check_conditions(const struct http_head *head, const struct http_version *version);
/* Is this a strong entity tag (RFC 9110, 8.8.3) that http_version has space for? */
bool http_tag_is_strong(struct http_words tag);

/* --- digests (RFC 9530) ---------------------------------------------------------------------------------------- */

enum {
    HTTP_DIGEST = 16,      /* octets: XXH3 with 128 bits, in its canonical form */
    HTTP_DIGEST_TEXT = 40, /* of its text, with the 0 that ends it */
};

enum http_digest_match {
    HTTP_DIGEST_NONE, /* there is no digest by this algorithm */
    HTTP_DIGEST_SAME,
    HTTP_DIGEST_OTHER,
};

/* The member of a Repr-Digest that has this value. */
void http_format_digest(char text[HTTP_DIGEST_TEXT], const uint8_t value[HTTP_DIGEST]);
/* Does this Want-Repr-Digest ask for our algorithm? */
bool http_is_digest_wanted(struct http_words list);
/* Has this Repr-Digest a member of our algorithm? Of several lines that have one, the last counts (RFC 8941, 4.2). */
bool http_has_digest(struct http_words list);
/* Compares a Repr-Digest with the text of one's own value. */
enum http_digest_match http_match_digest(struct http_words list, const char *text);

enum http_part {
    HTTP_PART_ALL,  /* no range was asked for, or none that has to be looked at */
    HTTP_PART_SOME, /* `length` octets from `first` on */
    HTTP_PART_NONE, /* the range has none of them: 416 */
};

/* Which octets of a file of `size` does a GET want? Of several ranges in one request none is looked at. */
enum http_part http_choose_part(const struct http_head *head, const struct http_version *version, uint64_t size,
                                uint64_t *first, uint64_t *length);

/* The media type of a name by its extension. */
const char *http_type_of(const char *name);

/* Is this what a Host field may say: a name or an address, perhaps with a port, or nothing (RFC 9110, section 7.2; RFC
 * 3986, section 3.2)? An address of version 6 stands in brackets. */
bool http_is_host(struct http_words value);

/* Decodes a target to a path below the served directory: "" is the directory itself. *is_directory: it ends in a slash.
 * Returns 0, or the status to refuse it with: 400, 414. Never gives "." or "..", an empty part, or an octet 0. */
int http_decode_target(char path[HTTP_PATH_MAX + 1], bool *is_directory, const char *target, size_t n);

/* Writes `path` as part of a target; slashes stay. Returns the octets, without the 0 that ends them; or 0 if `capacity`
 * is too small. */
size_t http_encode_path(char *to, size_t capacity, const char *path);

/* --- chunks -------------------------------------------------------------------------------------------------- */

enum {
    HTTP_CHUNK_LINE_MAX = 256,     /* of a size with its extensions */
    HTTP_CHUNK_TRAILER_MAX = 4096, /* of all that follows the last chunk */
    HTTP_CHUNK_TRAILER_KEPT = 512, /* octets of it that can be looked at */
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
    uint32_t kept;
    char trailer[HTTP_CHUNK_TRAILER_KEPT]; /* its first octets */
};

/* Takes framing up to the next data, the end, or the end of these octets; returns how many octets that is. Then in
 * state DATA the next chunk->left octets are data; http_chunk_took() says how many were taken. */
size_t http_chunk_eat(struct http_chunk *chunk, const uint8_t *octets, size_t n);
void http_chunk_took(struct http_chunk *chunk, uint64_t n);
/* The value of the trailer's Repr-Digest. `at` NULL: what was kept of the trailer has none. */
struct http_words http_chunk_digest(const struct http_chunk *chunk);

#endif
