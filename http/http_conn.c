/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_conn.c - a connection that is served: one request after the other, its answer before the next is looked at. What
 * a client sends ahead waits in its TCP window. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "http/http_conn.h"

enum { TURN = 32 };

#define SECOND_NS 1000000000ULL

/* --- buffers that are offered -------------------------------------------------------------------------------- */

static void offer_buffer(struct http_conn *conn, unsigned i)
{
    conn->offer[i].taken = false;
    (void)rddp_stream_offer(conn->in.stream, conn->offered + (size_t)i * HTTP_OFFER_OCTETS, HTTP_OFFER_OCTETS);
}

static void open_offers(struct http_conn *conn)
{
    if (!conn->served->options->writable || !rddp_stream_has_option(conn->in.stream))
        return;
    conn->offered = malloc((size_t)HTTP_OFFERS * HTTP_OFFER_OCTETS);
    for (unsigned i = 0; conn->offered && i < HTTP_OFFERS; i++)
        offer_buffer(conn, i);
}

/* Which of the offered buffers has the part that is next? */
static unsigned offer_of(const struct http_conn *conn)
{
    size_t at = (size_t)(conn->in.at - conn->offered);
    bool inside = conn->offered && conn->in.left && conn->in.placed && conn->in.at >= conn->offered &&
                  at < (size_t)HTTP_OFFERS * HTTP_OFFER_OCTETS;
    return inside ? (unsigned)(at / HTTP_OFFER_OCTETS) : HTTP_OFFERS;
}

static void note_offer(struct http_conn *conn)
{
    unsigned i = offer_of(conn);
    if (i < HTTP_OFFERS) {
        conn->offer[i].taken = true;
        conn->offer[i].rid = conn->in.rid;
    }
}

/* The request of this index is over: its buffer, and those of requests that were before, are free again. */
static void renew_offers(struct http_conn *conn)
{
    unsigned used = offer_of(conn);
    for (unsigned i = 0; i < HTTP_OFFERS; i++) {
        if (!conn->offer[i].taken || i == used || conn->offer[i].rid > rddp_rid_http(conn->index))
            continue;
        (void)rddp_stream_forget(conn->in.stream, conn->offer[i].rid);
        offer_buffer(conn, i);
    }
}

/* --- what comes ---------------------------------------------------------------------------------------------- */

static void finish(struct http_conn *conn)
{
    conn->state = rddp_stream_finish(conn->in.stream) ? HTTP_CONN_OVER : HTTP_CONN_LINGER;
}

/* The next part of the stream. False: there is none now, or the connection ends here. */
static bool look(struct http_conn *conn, bool may_end)
{
    int got = http_in_look(&conn->in);
    if (got > 0)
        note_offer(conn);
    else if (got == -ENODATA && may_end)
        finish(conn);
    else if (got < 0)
        conn->state = HTTP_CONN_OVER;
    return got > 0;
}

static bool take_head(struct http_conn *conn)
{
    if (!look(conn, !conn->head_have))
        return conn->state != HTTP_CONN_HEAD;
    size_t space = HTTP_HEAD_MAX - conn->head_have, n = conn->in.left < space ? conn->in.left : space;
    memcpy(conn->head + conn->head_have, conn->in.at, n);
    size_t end = http_head_end(conn->head, conn->head_have + n, &conn->head_scanned);
    if (end)
        n = end - conn->head_have;
    http_in_took(&conn->in, n);
    conn->head_have += n;
    if (end) {
        http_request_begin(conn, end);
        conn->head_have = conn->head_scanned = 0;
    } else if (conn->head_have == HTTP_HEAD_MAX) {
        conn->request = (struct http_head){0};
        conn->path[0] = 0;
        conn->closes = true;
        conn->head_have = 0;
        http_request_refuse(conn, 431, NULL);
    }
    return true;
}

static void give_body_up(struct http_conn *conn, int status)
{
    http_in_forget(&conn->in, rddp_rid_http(conn->index));
    landing_drop(&conn->landing);
    conn->closes = true;
    http_request_refuse(conn, status, NULL);
}

static bool body_is_whole(const struct http_conn *conn)
{
    return conn->request.body == HTTP_BODY_CHUNKED ? conn->chunk.state == HTTP_CHUNK_DONE : !conn->body_left;
}

/* A peer that says how much will come, and sends nothing, takes no more of the disk than HTTP_AHEAD. */
static void land_further(struct http_conn *conn)
{
    if (conn->landing.lands && landing_grow(&conn->landing))
        (void)http_request_expect(conn); /* else the rest comes as plain octets */
}

/* Takes data, or the framing in front of it. A status: the request fails. */
static int take_part(struct http_conn *conn)
{
    uint64_t data = conn->body_left;
    if (conn->request.body == HTTP_BODY_CHUNKED) {
        http_in_took(&conn->in, http_chunk_eat(&conn->chunk, conn->in.at, conn->in.left));
        if (conn->chunk.state == HTTP_CHUNK_BAD)
            return 400;
        data = conn->chunk.state == HTTP_CHUNK_DATA ? conn->chunk.left : 0;
    }
    size_t n = conn->in.left < data ? conn->in.left : (size_t)data;
    if (n > conn->served->options->limit - conn->landing.position)
        return 413;
    int error = n ? http_in_land(&conn->in, &conn->landing, rddp_rid_http(conn->index), n) : 0;
    if (error == -EAGAIN)
        return 0;
    if (error)
        return http_status_of(error);
    if (conn->sum)
        XXH3_128bits_update(conn->sum, conn->in.at, n);
    http_in_took(&conn->in, n);
    land_further(conn);
    if (conn->request.body == HTTP_BODY_CHUNKED && n)
        http_chunk_took(&conn->chunk, n);
    conn->body_left -= conn->request.body == HTTP_BODY_LENGTH ? n : 0;
    return 0;
}

static bool take_body(struct http_conn *conn)
{
    struct http_answer *interim = &conn->answer; /* 100 Continue, if anything */
    interim->sent += http_out_text(&conn->out, interim->text + interim->sent, interim->length - interim->sent, true);
    if (interim->sent < interim->length)
        return false;
    if (!body_is_whole(conn)) {
        if (!look(conn, false))
            return false;
        int status = take_part(conn);
        if (status) {
            give_body_up(conn, status);
            return true;
        }
    }
    if (body_is_whole(conn)) {
        http_in_forget(&conn->in, rddp_rid_http(conn->index));
        http_request_put_done(conn);
    }
    return true;
}

/* --- what leaves --------------------------------------------------------------------------------------------- */

static bool give_answer(struct http_conn *conn)
{
    uint64_t written = conn->out.written;
    int done = http_answer_write(&conn->answer, &conn->out, conn->index);
    if (done < 0)
        conn->state = HTTP_CONN_OVER;
    if (done <= 0)
        return done || conn->out.written != written;
    http_answer_keep(&conn->answer, conn->served->sums, &conn->address);
    http_answer_drop(&conn->answer);
    renew_offers(conn);
    conn->index++;
    if (conn->closes)
        finish(conn);
    else
        conn->state = HTTP_CONN_HEAD;
    return true;
}

/* A reset could overtake the last answer: what still comes is read until the peer has closed, too. */
static bool linger(struct http_conn *conn)
{
    int got = http_in_look(&conn->in);
    if (got > 0)
        http_in_took(&conn->in, conn->in.left);
    int state = rddp_stream_state(conn->in.stream);
    if (state < 0 || state == RDDP_STREAM_ENDED || (got < 0 && got != -ENODATA))
        conn->state = HTTP_CONN_OVER;
    return got > 0;
}

static bool http_conn_step(struct http_conn *conn)
{
    switch (conn->state) {
    case HTTP_CONN_HEAD:
        return take_head(conn);
    case HTTP_CONN_BODY:
        return take_body(conn);
    case HTTP_CONN_ANSWER:
        return give_answer(conn);
    case HTTP_CONN_LINGER:
        return linger(conn);
    case HTTP_CONN_OVER:
        break;
    }
    return false;
}

bool http_conn_work(struct http_conn *conn)
{
    for (int i = 0; i < TURN; i++) {
        if (!http_conn_step(conn))
            return false;
    }
    return true;
}

/* --- beginning and end --------------------------------------------------------------------------------------- */

uint64_t http_conn_idle_ns(const struct http_conn *conn, uint64_t now_ns)
{
    bool idle = conn->state == HTTP_CONN_HEAD && !conn->in.left && !rddp_stream_unacked(conn->out.stream);
    uint64_t since_ns = idle && conn->head_have ? conn->pace.begin_ns : conn->pace.last_ns;
    uint64_t idle_ns = now_ns > since_ns ? now_ns - since_ns : 0;
    return idle || idle_ns >= HTTP_STALLED_S * SECOND_NS ? idle_ns : 0;
}

void http_conn_watch(struct http_conn *conn, uint64_t now_ns)
{
    struct http_pace *pace = &conn->pace;
    uint64_t unacked = rddp_stream_unacked(conn->out.stream), moved = conn->in.octets + conn->out.written - unacked;
    uint64_t timeout_ns = (uint64_t)(conn->served->options->timeout_s * 1e9);
    bool in_head = conn->state == HTTP_CONN_HEAD;
    if (rddp_stream_state(conn->in.stream) < 0) { /* reset, while nothing was read from it */
        conn->state = HTTP_CONN_OVER;
        return;
    }
    if (moved != pace->moved) {
        pace->moved = moved;
        pace->last_ns = now_ns;
    }
    if (in_head && !conn->head_have && !unacked) {
        pace->begin_ns = now_ns;
        pace->begin_moved = moved;
    }
    uint64_t since_ns = now_ns - pace->begin_ns, pass_s = since_ns / SECOND_NS;
    bool slow = since_ns > timeout_ns && moved - pace->begin_moved < pass_s * HTTP_RATE_MIN;
    if (in_head && conn->head_have && !unacked && since_ns > HTTP_HEAD_S * SECOND_NS) {
        conn->request = (struct http_head){0};
        conn->path[0] = 0;
        conn->closes = true;
        http_request_refuse(conn, 408, NULL);
    } else if (now_ns - pace->last_ns > timeout_ns || slow ||
               (conn->state == HTTP_CONN_LINGER && !unacked && now_ns - pace->last_ns > HTTP_LINGER_S * SECOND_NS)) {
        conn->state = HTTP_CONN_OVER;
    }
}

struct http_conn *http_conn_open(const struct http_served *served, struct rddp_stream *stream, uint64_t now_ns)
{
    struct http_conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        rddp_stream_close(stream);
        return NULL;
    }
    conn->served = served;
    conn->answer.fd = conn->landing.fd = -1;
    conn->pace.last_ns = conn->pace.begin_ns = now_ns;
    rddp_stream_peer(stream, &conn->address);
    address_text(conn->peer, &conn->address);
    if (!http_io_open(&conn->in, &conn->out, stream)) {
        http_conn_close(conn);
        return NULL;
    }
    open_offers(conn);
    return conn;
}

void http_conn_close(struct http_conn *conn)
{
    /* The stream first: it writes to the buffers. */
    http_io_close(&conn->in, &conn->out);
    landing_drop(&conn->landing);
    http_answer_keep(&conn->answer, conn->served->sums, &conn->address);
    http_answer_drop(&conn->answer);
    XXH3_freeState(conn->sum);
    free(conn->offered);
    free(conn);
}
