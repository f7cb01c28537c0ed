/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* request.c - one request of a client: what it wants, whether it may, and how the answer begins. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "http/http_conn.h"
#include "http/resource.h"
#include "tools/xfer/xfer.h"

/* MAP_MIN: smaller bodies are not worth a map of their own. */
enum { MAP_MIN = 16384, FIELDS_MAX = 768 };

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
    char date[HTTP_DATE_MAX];
    http_format_date(date, time(NULL));
    answer->length =
        (size_t)snprintf(answer->text, sizeof(answer->text), "HTTP/1.1 %d %s\r\nDate: %s\r\nServer: rddp\r\n%s%s\r\n",
                         status, http_phrase(status), date, fields,
                         conn->closes           ? "Connection: close\r\n"
                         : conn->request.is_1_0 ? "Connection: keep-alive\r\n"
                                                : "");
    answer->sent = 0;
    answer->from = answer->at = answer->end = answer->stop = 0;
    conn->state = HTTP_CONN_ANSWER;
}

/* NULL without memory: then there is no digest. */
static XXH3_state_t *new_sum(void)
{
    XXH3_state_t *sum = XXH3_createState();
    if (sum)
        XXH3_128bits_reset(sum);
    return sum;
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

/* HTTP/1.0 knows no chunks: there the end of the connection ends the listing. */
static void list(struct http_conn *conn, int fd)
{
    struct http_answer *answer = &conn->answer;
    int error = http_listing_open(&answer->listing, fd);
    if (error) {
        http_request_refuse(conn, http_status_of(error), NULL);
        return;
    }
    answer->chunked = !conn->request.is_1_0;
    conn->closes |= conn->request.is_1_0;
    answer->frame.length = answer->frame.sent = 0;
    answer->frame_is_last = false;
    head(conn, 200,
         answer->chunked ? "Content-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
                         : "Content-Type: text/html; charset=utf-8\r\n");
    if (conn->request.method == HTTP_HEAD)
        http_answer_drop(answer);
    say(conn, 200, 0);
}

/* The fields that tell of a version; `more` are lines, too. */
static void version_fields(char fields[FIELDS_MAX], const struct http_version *version, const char *more)
{
    char date[HTTP_DATE_MAX];
    http_format_date(date, version->modified);
    snprintf(fields, FIELDS_MAX, "ETag: %s\r\nLast-Modified: %s\r\n%s", version->tag, date, more);
}

/* Can the client have the digest of the whole file behind octets [first, end) of it? Only what is sent is hashed: what
 * lies before and behind them must have been sent earlier. */
static bool sums_part(struct http_conn *conn, int fd, const char *tag, uint64_t first, uint64_t end, uint64_t size)
{
    const struct http_head *request = &conn->request;
    struct http_answer *answer = &conn->answer;
    if (request->method != HTTP_GET || !request->wants_digest || !request->takes_trailers || request->is_1_0)
        return false;
    answer->summed = 0;
    bool whole = !first && end == size;
    answer->sum = whole ? new_sum() : kept_sums_copy(conn->served->sums, fd, tag, &answer->summed);
    if (answer->sum && answer->summed >= first && (end == size || answer->summed == size))
        return true;
    XXH3_freeState(answer->sum);
    answer->sum = NULL;
    return false;
}

static void give_part(struct http_conn *conn, int fd, const struct http_version *version, const char *type,
                      uint64_t size)
{
    struct http_answer *answer = &conn->answer;
    uint64_t first, length;
    char fields[FIELDS_MAX], content[FIELDS_MAX / 2], framing[FIELDS_MAX / 8], range[FIELDS_MAX / 4] = "";
    enum http_part part = http_choose_part(&conn->request, version, size, &first, &length);
    if (part == HTTP_PART_NONE) {
        close(fd);
        snprintf(range, sizeof(range), "Content-Range: bytes */%" PRIu64 "\r\n", size);
        answer_line(conn, 416, range, "the file has no such octets");
        return;
    }
    if (part == HTTP_PART_SOME)
        snprintf(range, sizeof(range), "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", first,
                 first + length - 1, size);
    bool sums = sums_part(conn, fd, version->tag, first, first + length, size);
    if (sums)
        strcpy(framing, "Transfer-Encoding: chunked\r\nTrailer: Repr-Digest\r\n");
    else
        snprintf(framing, sizeof(framing), "Content-Length: %" PRIu64 "\r\n", length);
    snprintf(content, sizeof(content), "Accept-Ranges: bytes\r\nContent-Type: %s\r\n%s%s", type, framing, range);
    version_fields(fields, version, content);
    head(conn, part == HTTP_PART_SOME ? 206 : 200, fields);
    if (conn->request.method == HTTP_HEAD) {
        close(fd);
    } else {
        answer->fd = fd;
        answer->from = answer->at = first;
        answer->end = answer->stop = first + length;
        if (sums) {
            strcpy(answer->tag, version->tag);
            answer->frame_is_last = false;
            http_answer_frame(answer);
        }
    }
    say(conn, part == HTTP_PART_SOME ? 206 : 200, length);
}

static void give_file(struct http_conn *conn, int fd, const char *name, const struct stat *st)
{
    struct http_version version;
    char fields[FIELDS_MAX];
    http_source_version(&version, st);
    int status = http_check_conditions(&conn->request, &version);
    if (!status) {
        give_part(conn, fd, &version, http_type_of(name), (uint64_t)st->st_size);
        return;
    }
    close(fd);
    if (status == 304) {
        version_fields(fields, &version, "");
        head(conn, 304, fields);
        say(conn, 304, 0);
    } else {
        http_request_refuse(conn, status, NULL);
    }
}

/* A directory's index.html stands for it; a directory without one is listed. */
static void give_directory(struct http_conn *conn, int fd)
{
    static const char index_name[] = "index.html";
    char path[HTTP_PATH_MAX + sizeof(index_name) + 1];
    struct stat st;
    snprintf(path, sizeof(path), "%s%s%s", conn->path, conn->path[0] ? "/" : "", index_name);
    int index = http_source_open(conn->served->root, path, &st);
    if (index == -ENOENT || (index >= 0 && !S_ISREG(st.st_mode))) {
        if (index >= 0)
            close(index);
        list(conn, fd);
        return;
    }
    close(fd);
    if (index < 0)
        http_request_refuse(conn, http_status_of(index), NULL);
    else
        give_file(conn, index, index_name, &st);
}

static void give(struct http_conn *conn, bool is_directory)
{
    struct stat st;
    int fd = http_source_open(conn->served->root, conn->path, &st);
    if (fd < 0) {
        http_request_refuse(conn, http_status_of(fd), NULL);
    } else if (S_ISDIR(st.st_mode) && is_directory) {
        give_directory(conn, fd);
    } else if (S_ISREG(st.st_mode) && !is_directory) {
        give_file(conn, fd, conn->path, &st);
    } else {
        close(fd);
        if (S_ISDIR(st.st_mode))
            redirect(conn);
        else
            http_request_refuse(conn, 404, NULL);
    }
}

/* --- PUT ----------------------------------------------------------------------------------------------------- */

/* Is the file that is to be replaced one that the client wants to be replaced? Returns 0 or a status. Asked when the
 * request comes, and again when the file would get its name: no other request is served between that and the name. */
static int may_replace(struct http_conn *conn, int parent, const char *name)
{
    struct http_version version;
    struct stat st;
    conn->existed = !fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW);
    if (conn->existed && !S_ISREG(st.st_mode))
        return http_status_of(-EISDIR);
    http_source_version(&version, conn->existed ? &st : NULL);
    return http_check_conditions(&conn->request, &version);
}

/* Returns 0 or a status. */
static int open_landing(struct http_conn *conn)
{
    char *slash = strrchr(conn->path, '/');
    const char *name = slash ? slash + 1 : conn->path;
    uint64_t space = conn->request.body == HTTP_BODY_LENGTH && conn->request.length >= MAP_MIN &&
                             conn->request.length <= UINT32_MAX && rddp_stream_has_option(conn->in.stream)
                         ? conn->request.length
                         : 0;
    if (strlen(name) > XFER_NAME)
        return http_status_of(-ENAMETOOLONG);
    if (slash)
        *slash = 0;
    int parent = path_open(conn->served->root, slash ? conn->path : "", O_RDONLY | O_DIRECTORY, 0);
    if (slash)
        *slash = '/';
    if (parent < 0) /* 409: the directory has to be made first (RFC 4918, 9.7.1) */
        return http_status_of(parent == -ENOENT ? -EEXIST : parent);
    int status = may_replace(conn, parent, name);
    if (status) {
        close(parent);
        return status;
    }
    int error = landing_open(&conn->landing, parent, name, space, HTTP_AHEAD);
    return error ? http_status_of(error) : 0;
}

int http_request_expect(struct http_conn *conn)
{
    return rddp_stream_expect(conn->in.stream, rddp_rid_http(conn->index), conn->landing.map, conn->landing.reserved);
}

static void take(struct http_conn *conn, bool is_directory)
{
    const struct http_options *options = conn->served->options;
    bool stays = !conn->closes;
    conn->closes = true; /* the body is not read */
    if (!options->writable) {
        http_request_refuse(conn, 403, "read-only");
    } else if (conn->request.body == HTTP_BODY_NONE) {
        http_request_refuse(conn, 411, NULL);
    } else if (conn->request.body == HTTP_BODY_LENGTH && conn->request.length > options->limit) {
        http_request_refuse(conn, 413, NULL);
    } else if (is_directory) {
        http_request_refuse(conn, 409, "a directory's name");
    } else {
        int status = open_landing(conn);
        if (status) {
            http_request_refuse(conn, status, NULL);
            return;
        }
        /* What comes from here on lands in the file itself, unless an offered buffer has it. */
        conn->landing.lands = conn->landing.map && !http_request_expect(conn);
        XXH3_freeState(conn->sum);
        conn->sum = conn->request.wants_digest ? new_sum() : NULL;
        conn->closes = !stays;
        conn->body_left = conn->request.length;
        conn->chunk = (struct http_chunk){0};
        conn->answer.length = conn->answer.sent = 0;
        if (conn->request.expects_continue && !conn->in.left)
            conn->answer.length = (size_t)sprintf(conn->answer.text, "HTTP/1.1 100 Continue\r\n\r\n");
        conn->state = HTTP_CONN_BODY;
    }
}

/* The fields of the answer to a PUT: what was stored has this digest. */
static void put_fields(const struct http_conn *conn, char fields[FIELDS_MAX])
{
    char digest[HTTP_DIGEST_TEXT];
    XXH128_canonical_t value;
    size_t n = (size_t)snprintf(fields, FIELDS_MAX, "%s", conn->existed ? "" : "Content-Length: 0\r\n");
    if (!conn->sum)
        return;
    XXH128_canonicalFromHash(&value, XXH3_128bits_digest(conn->sum));
    http_format_digest(digest, value.digest);
    snprintf(fields + n, FIELDS_MAX - n, "Repr-Digest: %s\r\n", digest);
}

void http_request_put_done(struct http_conn *conn)
{
    struct landing *landing = &conn->landing;
    uint64_t octets = landing->position;
    bool must_be_new = conn->request.if_none_match.n == 1 && *conn->request.if_none_match.at == '*';
    unsigned flags = (conn->served->options->sync ? LANDING_SYNC : 0) | (must_be_new ? LANDING_NEW : 0);
    int status = may_replace(conn, landing->parent, landing->name);
    char fields[FIELDS_MAX];
    if (status) {
        landing_drop(landing);
        http_request_refuse(conn, status, NULL);
        return;
    }
    int error = landing_finish(landing, flags);
    if (error) {
        http_request_refuse(conn, error == -EEXIST ? 412 : http_status_of(error), NULL);
        return;
    }
    put_fields(conn, fields);
    head(conn, conn->existed ? 204 : 201, fields);
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
    int status = http_parse_request(&conn->request, conn->head + skip, length - skip, time(NULL));
    if (!status) {
        status = http_decode_target(conn->path, &is_directory, conn->request.target, conn->request.target_length);
        conn->request.why = "not the name of anything here";
        if (status)
            conn->path[0] = 0;
    }
    const char *slash = strrchr(conn->path, '/');
    if (!status && is_temp(slash ? slash + 1 : conn->path)) {
        status = 404; /* what another client has not finished */
        conn->request.why = NULL;
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
