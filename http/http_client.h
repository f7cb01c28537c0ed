/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_client.h - files from and to one server, many at once on one connection. */
#ifndef RDDP_HTTP_HTTP_CLIENT_H
#define RDDP_HTTP_HTTP_CLIENT_H

#include "http/codec.h"
#include "http/http.h"
#include "http/io.h"
#include "http/landing.h"
#include <xxhash.h>

enum http_job_state {
    HTTP_JOB_NEW,   /* nothing was sent */
    HTTP_JOB_ASKED, /* a HEAD is on its way: how long is it? */
    HTTP_JOB_SIZED, /* that is known, or the server will not tell */
    HTTP_JOB_SENT,  /* its GET or PUT is on its way */
    HTTP_JOB_DONE,
    HTTP_JOB_FAILED,
};

/* HTTP_INTERIM_MAX: answers 1xx to one request. HTTP_PART_MIN: the part of a file that was received
 * is kept if it has at least this many octets. */
enum { HTTP_INTERIM_MAX = 32, HTTP_PART_MIN = 8 << 20 };

/* One file. */
struct http_job {
    enum http_job_state state;
    bool put, chunked; /* chunked: a pipe, and so not to be sent twice */
    char target[HTTP_TARGET_MAX], name[XFER_NAME + 1];
    int fd;        /* PUT: where it comes from */
    uint64_t size; /* UINT64_MAX: unknown */
    uint64_t end;  /* PUT: the octets written when the last of it was; UINT64_MAX: it has not left whole */
    unsigned tries;
    XXH3_state_t *sum; /* PUT: of what was sent; NULL: without memory for it */
    struct landing landing;
    char tag[HTTP_TAG_MAX], part[XFER_NAME + 1]; /* the file's strong ETag; what a part of that version is called */
};

/* A request whose answer is due. */
struct http_flight {
    struct http_job *job;
    enum http_method method;
    uint32_t index;
};

/* The request that leaves. */
struct http_sending {
    char text[HTTP_TARGET_MAX + ADDRESS_TEXT * 4 + 256];
    size_t length, sent;
    struct http_job *job; /* whose body follows; NULL: none */
    uint64_t at;
    uint32_t index;
    struct http_frame frame;
    bool is_last;
};

/* The answer that comes. */
struct http_answering {
    uint8_t octets[HTTP_HEAD_MAX];
    size_t have, scanned;
    struct http_head head;
    bool in_body;
    unsigned interim; /* answers 1xx since the last final one */
    uint64_t left;
    struct http_chunk chunk;
};

struct http_client {
    const struct http_options *options;
    struct rddp_stream_net *net;
    struct sockaddr_storage own;
    struct target server;
    const char *authority; /* as the URL has it */
    int directory;         /* GET: where files go */
    bool has_parts;        /* an earlier attempt left some of a file there */
    struct http_job *job;
    size_t jobs, first; /* those before `first` are over */
    struct http_in in;
    struct http_out out;
    uint32_t index, answers; /* of this connection */
    bool deep;               /* the server has kept a connection: requests may be sent ahead */
    bool leaves;             /* it will close: nothing more is sent */
    struct http_flight flight[HTTP_DEPTH_MAX];
    size_t flights, flight_first;
    struct http_sending sending;
    struct http_answering answering;
    uint64_t octets, placed, files, verified, failed;
    int code; /* of the command */
};

/* Does all jobs; an exit code. */
int http_client_run(struct http_client *client);

/* http_send.c: sends what fits of what is to be sent. True: something left. */
bool http_client_send(struct http_client *client);

/* receive.c: takes what came. 1: something; 0: nothing; a negative errno: the connection is over (-ENODATA: the server
 * has closed; -EPROTO: it does not speak HTTP/1.1, and a line was said about it). */
int http_client_receive(struct http_client *client);

/* job.c. Says what failed, and ends the job. */
void http_job_fail(struct http_client *client, struct http_job *job, int code, const char *why);
void http_job_done(struct http_client *client, struct http_job *job, uint64_t octets, bool verified);
/* Closes the file of an answer that did not come whole. What has come of a large one is kept, if a later request can
 * tell whether it is still the same version. */
void http_job_part(struct http_client *client, struct http_job *job);

#endif
