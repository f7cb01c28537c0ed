/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* request.c - one request of a client: what it wants, whether it may, and how the answer begins. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/http_conn.h"
#include "tools/xfer/xfer.h"

enum { MAP_MIN = 16384 }; /* smaller bodies are not worth a map of their own */

int http_status_of(int error)
{
    switch (-error) {
    case ENOENT:
    case ENOTDIR:
    case EXDEV: /* it would lead out of the directory */
    case ELOOP:
    case ENAMETOOLONG:
        return 404;
    case EACCES:
    case EPERM:
    case EROFS:
        return 403;
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
        return 409;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return 507;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return 503;
    }
    return 500;
}

static void say(const struct http_conn *conn, int status, uint64_t octets)
{
    static const char *const methods[] = {"?", "GET", "HEAD", "PUT"};
    char path[XFER_TEXT];
    if (conn->served->options->quiet)
        return;
    printf("%s: %s /%s: %d, %" PRIu64 " octets", conn->peer, methods[conn->request.method],
           xfer_printable(path, conn->path), status, octets);
    if (conn->landing.placed)
        printf(", %" PRIu64 " placed in the file", conn->landing.placed);
    putchar('\n');
    fflush(stdout);
}

/* The head of an answer. `fields` are lines with their ends. */
static void head(struct http_conn *conn, int status, const char *fields)
{
    struct http_answer *answer = &conn->answer;
    answer->length = (size_t)snprintf(answer->text, sizeof(answer->text), "HTTP/1.1 %d %s\r\nServer: rddp\r\n%s%s\r\n",
                                      status, http_phrase(status), fields,
                                      conn->closes           ? "Connection: close\r\n"
                                      : conn->request.is_1_0 ? "Connection: keep-alive\r\n"
                                                             : "");
    answer->sent = 0;
    answer->at = answer->size = 0;
    conn->state = HTTP_CONN_ANSWER;
}

/* An answer of one line, after which the connection goes on unless conn->closes. */
static void answer_line(struct http_conn *conn, int status, const char *fields, const char *line)
{
    char all[HTTP_TEXT_MAX / 2];
    bool whole = conn->request.method != HTTP_HEAD;
    snprintf(all, sizeof(all), "%sContent-Type: text/plain\r\nContent-Length: %zu\r\n", fields, strlen(line) + 1);
    head(conn, status, all);
    struct http_answer *answer = &conn->answer;
    if (whole)
        answer->length +=
            (size_t)snprintf(answer->text + answer->length, sizeof(answer->text) - answer->length, "%s\n", line);
    say(conn, status, 0);
}

void http_request_refuse(struct http_conn *conn, int status, const char *why)
{
    http_answer_drop(&conn->answer);
    answer_line(conn, status, status == 405 ? "Allow: GET, HEAD, PUT\r\n" : "", why ? why : http_phrase(status));
}

/* --- GET and HEAD -------------------------------------------------------------------------------------------- */

/* A directory is listed under a name that ends in a slash alone: the names in the listing are relative. */
static void redirect(struct http_conn *conn)
{
    char fields[HTTP_TEXT_MAX / 2 - 128] = "Location: /";
    size_t n = strlen(fields);
    n += http_encode_path(fields + n, sizeof(fields) - n - 4, conn->path);
    strcpy(fields + n, "/\r\n");
    if (n == strlen("Location: /"))
        http_request_refuse(conn, 414, NULL);
    else
        answer_line(conn, 301, fields, "a directory: its name ends in a slash");
}

static void list(struct http_conn *conn, int fd)
{
    struct http_answer *answer = &conn->answer;
    bool to_end = conn->request.is_1_0; /* which knows no chunks */
    if (to_end) {
        close(fd);
        http_request_refuse(conn, 505, "listings need HTTP/1.1");
        return;
    }
    answer->names = fdopendir(fd);
    if (!answer->names) {
        close(fd);
        http_request_refuse(conn, 503, NULL);
        return;
    }
    answer->frame.length = answer->frame.sent = 0;
    answer->names_end = answer->frame_is_last = false;
    head(conn, 200, "Content-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n");
    if (conn->request.method == HTTP_HEAD)
        http_answer_drop(answer);
    say(conn, 200, 0);
}

static void give_file(struct http_conn *conn, int fd, uint64_t size)
{
    char fields[SMALL_TEXT * 3];
    snprintf(fields, sizeof(fields), "Content-Type: application/octet-stream\r\nContent-Length: %" PRIu64 "\r\n", size);
    head(conn, 200, fields);
    if (conn->request.method == HTTP_HEAD) {
        close(fd);
    } else {
        conn->answer.fd = fd;
        conn->answer.size = size;
    }
    say(conn, 200, size);
}

/* Nothing but a file or a directory is opened to be read: opening may have effects. */
static int open_source(const struct http_conn *conn, struct stat *st)
{
    int look = path_open(conn->served->root, conn->path, O_PATH, 0);
    if (look < 0)
        return look;
    int error = fstat(look, st) ? -errno : !S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) ? -EACCES : 0;
    close(look);
    if (error)
        return error;
    int fd = path_open(conn->served->root, conn->path, O_RDONLY | O_NONBLOCK, 0);
    if (fd >= 0 && fstat(fd, st)) {
        error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

static void give(struct http_conn *conn, bool is_directory)
{
    struct stat st;
    int fd = open_source(conn, &st);
    if (fd < 0) {
        http_request_refuse(conn, http_status_of(fd), NULL);
    } else if (S_ISDIR(st.st_mode) && is_directory) {
        list(conn, fd);
    } else if (S_ISREG(st.st_mode) && !is_directory) {
        give_file(conn, fd, (uint64_t)st.st_size);
    } else {
        close(fd);
        if (S_ISDIR(st.st_mode))
            redirect(conn);
        else
            http_request_refuse(conn, 404, NULL);
    }
}

/* --- PUT ----------------------------------------------------------------------------------------------------- */

static int open_landing(struct http_conn *conn)
{
    char *slash = strrchr(conn->path, '/');
    const char *name = slash ? slash + 1 : conn->path;
    struct stat st;
    uint64_t space = conn->request.body == HTTP_BODY_LENGTH && conn->request.length >= MAP_MIN &&
                             conn->request.length <= UINT32_MAX && rddp_stream_has_option(conn->in.stream)
                         ? conn->request.length
                         : 0;
    if (strlen(name) > XFER_NAME)
        return -ENAMETOOLONG;
    if (slash)
        *slash = 0;
    int parent = path_open(conn->served->root, slash ? conn->path : "", O_RDONLY | O_DIRECTORY, 0);
    if (slash)
        *slash = '/';
    if (parent < 0)
        return parent == -ENOENT ? -EEXIST : parent; /* 409: the directory has to be made first (RFC 4918, 9.7.1) */
    conn->existed = !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW);
    if (conn->existed && !S_ISREG(st.st_mode)) {
        close(parent);
        return -EISDIR;
    }
    return landing_open(&conn->landing, parent, name, space, HTTP_AHEAD);
}

int http_request_expect(struct http_conn *conn)
{
    return rddp_stream_expect(conn->in.stream, rddp_rid_http(conn->index), conn->landing.map, conn->landing.reserved);
}

static void take(struct http_conn *conn, bool is_directory)
{
    const struct http_options *options = conn->served->options;
    bool stays = !conn->closes;
    conn->closes = true; /* a body that nobody reads */
    if (!options->writable) {
        http_request_refuse(conn, 403, "read-only");
    } else if (conn->request.body == HTTP_BODY_NONE) {
        http_request_refuse(conn, 411, NULL);
    } else if (conn->request.body == HTTP_BODY_LENGTH && conn->request.length > options->limit) {
        http_request_refuse(conn, 413, NULL);
    } else if (is_directory) {
        http_request_refuse(conn, 409, "a directory's name");
    } else {
        int error = open_landing(conn);
        if (error) {
            http_request_refuse(conn, http_status_of(error), NULL);
            return;
        }
        /* What comes from here on lands in the file itself, unless an offered buffer has it. */
        conn->lands = conn->landing.map && !http_request_expect(conn);
        conn->closes = !stays;
        conn->body_left = conn->request.length;
        conn->chunk = (struct http_chunk){0};
        conn->answer.length = conn->answer.sent = 0;
        if (conn->request.expects_continue && !conn->in.left)
            conn->answer.length = (size_t)sprintf(conn->answer.text, "HTTP/1.1 100 Continue\r\n\r\n");
        conn->state = HTTP_CONN_BODY;
    }
}

void http_request_put_done(struct http_conn *conn)
{
    uint64_t octets = conn->landing.position;
    int error = landing_finish(&conn->landing, conn->served->options->sync);
    if (error) {
        http_request_refuse(conn, http_status_of(error), NULL);
        return;
    }
    head(conn, conn->existed ? 204 : 201, conn->existed ? "" : "Content-Length: 0\r\n");
    say(conn, conn->existed ? 204 : 201, octets);
}

/* --- which of them ------------------------------------------------------------------------------------------- */

void http_request_begin(struct http_conn *conn, size_t length)
{
    /* An empty line in front is left over from what a careless client sent behind a body (RFC 9112, section 2.2). */
    size_t skip = !memcmp(conn->head, "\r\n", 2) && length > 4 ? 2 : 0;
    bool is_directory = false;
    conn->landing.placed = 0;
    conn->path[0] = 0;
    int status = http_parse_request(&conn->request, conn->head + skip, length - skip);
    if (!status) {
        status = http_decode_target(conn->path, &is_directory, conn->request.target, conn->request.target_length);
        conn->request.why = "not the name of anything here";
        if (status)
            conn->path[0] = 0;
    }
    bool reads_body = conn->request.method == HTTP_PUT && !status;
    conn->closes = !conn->request.stays || (!reads_body && conn->request.body != HTTP_BODY_NONE);
    if (status)
        http_request_refuse(conn, status, conn->request.why);
    else if (conn->request.method == HTTP_PUT)
        take(conn, is_directory);
    else if (conn->request.method == HTTP_OTHER)
        http_request_refuse(conn, 405, NULL);
    else
        give(conn, is_directory);
}
