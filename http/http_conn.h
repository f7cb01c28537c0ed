/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_conn.h - a connection that is served. */
#ifndef RDDP_HTTP_HTTP_CONN_H
#define RDDP_HTTP_HTTP_CONN_H

#include "http/codec.h"
#include "http/http.h"
#include "http/io.h"
#include "http/kept_sums.h"
#include "http/landing.h"
#include "http/listing.h"
#include <xxhash.h>

enum {
    HTTP_OFFERS = 4, /* buffers for bodies that come before their head is read */
    HTTP_OFFER_OCTETS = 262144,
    HTTP_AHEAD = 16 << 20,       /* octets of a body that have space on the disk before they come */
    HTTP_CHUNK_OCTETS = 4 << 20, /* of a file whose digest follows it */
    HTTP_TEXT_MAX = 2 * HTTP_TARGET_MAX + 512,
    HTTP_HEAD_S = 20,     /* for a head, from its first octet to its last */
    HTTP_LINGER_S = 5,    /* for the peer to close, too */
    HTTP_STALLED_S = 20,  /* after this time without an octet a request keeps no place from another client */
    HTTP_RATE_MIN = 1024, /* octets a second that must move while there are some to move */
};

enum http_conn_state {
    HTTP_CONN_HEAD,   /* a request's head is next */
    HTTP_CONN_BODY,   /* its body is next */
    HTTP_CONN_ANSWER, /* the answer leaves */
    HTTP_CONN_LINGER, /* the last answer is written: what still comes is thrown away */
    HTTP_CONN_OVER,
};

struct http_served {
    const struct http_options *options;
    int root; /* the directory */
    struct clients allowed;
    struct kept_sums *sums;
};

/* What an answer is made of: a text, then nothing, octets [from, end) of a file, or a directory's names. With `sum` the
 * file goes in chunks, each behind a text of its own, and the text behind the last of them has the file's digest. */
struct http_answer {
    char text[HTTP_TEXT_MAX];
    size_t length, sent;
    int fd;                       /* below 0: no file */
    uint64_t from, at, end, stop; /* stop: where the text that follows is due */
    XXH3_state_t *sum;
    uint64_t summed;        /* octets from the beginning of the file that `sum` has */
    char tag[HTTP_TAG_MAX]; /* with `sum`: of the file when its head was made */
    struct http_listing listing;
    struct http_frame frame; /* of the listing */
    bool chunked, frame_is_last;
};

struct http_offer {
    uint64_t rid;
    bool taken;
};

/* When octets moved last, and how many since when. */
struct http_pace {
    uint64_t moved, last_ns, begin_moved, begin_ns;
};

struct http_conn {
    const struct http_served *served;
    struct http_in in;
    struct http_out out;
    enum http_conn_state state;
    struct sockaddr_storage address;
    char peer[ADDRESS_TEXT]; /* the address as a text */
    uint8_t head[HTTP_HEAD_MAX];
    size_t head_have, head_scanned;
    uint32_t index; /* of the request */
    struct http_head request;
    char path[HTTP_PATH_MAX + 1];
    bool closes;
    uint64_t body_left;
    struct http_chunk chunk;
    struct landing landing;
    bool existed;      /* what is put replaces a file */
    XXH3_state_t *sum; /* of what is put, if its digest was asked for */
    struct http_answer answer;
    uint8_t *offered; /* HTTP_OFFERS buffers; NULL: none */
    struct http_offer offer[HTTP_OFFERS];
    struct http_pace pace;
};

/* Takes a connection; the stream is the connection's from now on. NULL: out of memory, and the stream is closed. */
struct http_conn *http_conn_open(const struct http_served *served, struct rddp_stream *stream, uint64_t now_ns);
/* Does what can be done, up to a bound. True: there may be more to do at once. */
bool http_conn_work(struct http_conn *conn);
/* Nanoseconds for which the peer has asked for nothing, with all answers acknowledged: the beginning of a request asks
 * for nothing; or for which nothing has moved of what it asked for, if it is HTTP_STALLED_S. 0: it is served. */
uint64_t http_conn_idle_ns(const struct http_conn *conn, uint64_t now_ns);
/* Ends a peer that is too slow. */
void http_conn_watch(struct http_conn *conn, uint64_t now_ns);
void http_conn_close(struct http_conn *conn);

/* request.c: decides on the request whose head has come. */
void http_request_begin(struct http_conn *conn, size_t length);
/* Names the part of the file that octets may land in. 0 or the errno of rddp_stream_expect(). */
int http_request_expect(struct http_conn *conn);
void http_request_put_done(struct http_conn *conn);
/* An answer of a line of text; `why` may be NULL. */
void http_request_refuse(struct http_conn *conn, int status, const char *why);
/* The status that tells of an errno below zero. */
int http_status_of(int error);

/* response.c */
/* Keeps what was hashed of a file for those who ask for the rest of it later. */
void http_answer_keep(struct http_answer *answer, struct kept_sums *sums, const struct sockaddr_storage *peer);
void http_answer_drop(struct http_answer *answer);
/* Puts the text that is due behind answer->at after the text that is there: of the next chunk, or of the end. */
void http_answer_frame(struct http_answer *answer);
/* Writes what fits. 1: all of it is written; 0: wait; -EIO: what was promised cannot be kept. */
int http_answer_write(struct http_answer *answer, struct http_out *out, uint32_t index);

#endif
