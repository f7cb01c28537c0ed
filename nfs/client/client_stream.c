/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client_stream.c - calls over a stream of ours, and their replies, which come in any order. Memory of a call is lent
 * to the stream until the server has acknowledged it: a connection on which a call ends earlier is given up. */
#include "nfs/client/client_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "nfs/placed.h"
#include "rpc/clock.h"
#include "rpc/xdrbytes.h"

enum { PART_MARK, PART_HEAD, PART_DATA, PART_ROUNDUP, PART_REST, PARTS };
enum { CALLER_STAGE = 65536, BACKOFF_MS = 100, BACKOFF_LIMIT_MS = 5000, CALLER_READS = 64 };

struct packet_call {
    struct request *q;
    struct packet_call *next;
    uint8_t mark[RECORD_MARK];
    unsigned parts; /* those of PARTS that are written */
    size_t left;    /* octets of the others */
    uint64_t end;   /* of the call in the stream, once it is written */
};

struct packet_caller {
    struct packet_attr attr;
    struct sockaddr_storage server;
    struct rddp_stream *stream; /* NULL: none until retry_ms */
    uint64_t retry_ms, written;
    unsigned backoff_ms;
    bool answered; /* on this connection */
    struct placed_rx rx;
    const uint8_t *at; /* the part that is next: `left` octets of it */
    size_t left;
    bool placed;
    uint64_t rid;
    struct packet_call *calls; /* in the order of their start; those in front are sent first */
    uint32_t next_xid;
    int ended, error; /* error: why the last connection failed */
    struct packet_stats stats;
    uint8_t stage[CALLER_STAGE];
};

/* --- one call -------------------------------------------------------------------------------------------------- */

static uint32_t caller_xid_of(const uint8_t *message)
{
    struct xdr_in in = {.at = message, .left = 4};

    return xdr_get32(&in);
}

/* Whether the stream may still send from the memory of the call. */
static bool is_lent(const struct packet_caller *p, const struct packet_call *call)
{
    if (!p->stream || !call->parts)
        return false;
    return call->parts < PARTS || call->end > p->written - rddp_stream_unacked(p->stream);
}

/* The connection is over: its calls will be sent again. */
static void caller_break(struct packet_caller *p, int error)
{
    if (!p->stream)
        return;
    rddp_stream_close(p->stream);
    p->stream = NULL;
    p->stats.lost++;
    p->error = error;
    record_fini(&p->rx.rx);
    p->rx.item = (struct stream_item){0};
    p->left = 0;
    for (struct packet_call *call = p->calls; call; call = call->next)
        call->parts = 0;
    p->backoff_ms = p->answered ? BACKOFF_MS : p->backoff_ms * 2;
    if (p->backoff_ms < BACKOFF_MS)
        p->backoff_ms = BACKOFF_MS;
    if (p->backoff_ms > BACKOFF_LIMIT_MS)
        p->backoff_ms = BACKOFF_LIMIT_MS;
    p->retry_ms = clock_ms() + p->backoff_ms;
    p->answered = false;
}

static bool is_result_of(const struct request *q, const void *at)
{
    size_t offset = (size_t)((const uint8_t *)at - (const uint8_t *)q->result[0].data);

    return (const uint8_t *)at >= (const uint8_t *)q->result[0].data && offset < q->result[0].length;
}

/* The memory of the call is its caller's again: nothing that was read points to it, and nothing will. */
static void caller_forget(struct packet_caller *p, const struct request *q)
{
    if (!p->stream || !q->results || !q->result[0].data)
        return;
    if (p->left && p->placed && is_result_of(q, p->at)) {
        (void)rddp_stream_unread(p->stream, p->left);
        p->left = 0;
    }
    if (p->rx.item.length && is_result_of(q, p->rx.item.data) && !placed_own(&p->rx))
        caller_break(p, -ENOMEM);
    else
        (void)rddp_stream_forget(p->stream, rddp_rid_nfs(q->xid, 0));
}

static void caller_end(struct packet_caller *p, struct packet_call *call, enum request_status status)
{
    struct packet_call **at = &p->calls;
    struct request *q = call->q;

    if (is_lent(p, call))
        caller_break(p, -ECONNABORTED);
    caller_forget(p, q);
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    free(call);
    q->status = status;
    q->state = REQUEST_DONE;
    p->ended++;
}

static struct packet_call *caller_find(const struct packet_caller *p, const struct request *q, uint32_t xid)
{
    struct packet_call *call = p->calls;

    while (call && (q ? call->q != q : call->q->xid != xid))
        call = call->next;
    return call;
}

void caller_start(struct packet_caller *p, struct request *q)
{
    struct packet_call *call = calloc(1, sizeof(*call)), **at = &p->calls;

    q->state = REQUEST_QUEUED;
    q->xid = caller_xid_of(q->call);
    q->deadline_ms = q->timeout_ms < 0 ? UINT64_MAX : clock_ms() + (uint64_t)q->timeout_ms;
    for (unsigned i = 0; i < q->results; i++)
        q->result[i].used = 0;
    if (!call) {
        q->status = REQUEST_NOT_SENT;
        q->state = REQUEST_DONE;
        p->ended++;
        return;
    }
    call->q = q;
    while (*at)
        at = &(*at)->next;
    *at = call;
}

void caller_cancel(struct packet_caller *p, struct request *q)
{
    struct packet_call *call = caller_find(p, q, 0);

    if (!call)
        return;
    caller_end(p, call, REQUEST_CANCELLED);
    p->ended--;
}

uint32_t caller_xid(struct packet_caller *p)
{
    return p->next_xid++;
}

/* --- sending --------------------------------------------------------------------------------------------------- */

/* Part `i` of a call: its mark, the octets in front of the data, the data, their roundup, and the octets behind it. */
static struct stream_item caller_part(const struct packet_call *call, unsigned i)
{
    static const uint8_t zeros[4];
    const struct request *q = call->q;
    struct request_item none = {.position = (uint32_t)q->call_length};
    const struct request_item *data = q->arguments ? &q->argument[0] : &none;

    switch (i) {
    case PART_MARK:
        return (struct stream_item){.length = RECORD_MARK, .data = call->mark};
    case PART_HEAD:
        return (struct stream_item){.length = data->position, .data = q->call};
    case PART_DATA:
        return (struct stream_item){.length = data->length, .data = data->data};
    case PART_ROUNDUP:
        return (struct stream_item){.length = xdr_roundup(data->length), .data = zeros};
    default:
        return (struct stream_item){.length = (uint32_t)q->call_length - data->position,
                                    .data = q->call + data->position};
    }
}

/* 5.1.3: the server does not expect the data of a WRITE. */
static int caller_write(struct packet_caller *p, struct packet_call *call)
{
    struct rddp_stream_mark mark = {.rid = rddp_rid_nfs(call->q->xid, 0), .has_total = true, .unsolicited = true};
    int error = 0;

    while (call->parts < PARTS && !error) {
        struct stream_item part = caller_part(call, call->parts);
        unsigned flags = call->parts == PART_MARK ? RDDP_STREAM_MESSAGE : 0U;

        mark.total = part.length;
        if (part.length < call->left)
            flags |= RDDP_STREAM_MORE;
        if (part.length)
            error =
                rddp_stream_write(p->stream, part.data, part.length, flags, call->parts == PART_DATA ? &mark : NULL);
        if (error)
            return error;
        p->written += part.length;
        call->left -= part.length;
        call->parts++;
    }
    return 0;
}

/* 5.1.2: the buffer is tied to the XID before the call leaves. */
static int caller_send(struct packet_caller *p, struct packet_call *call)
{
    struct request *q = call->q;
    int error = 0;

    if (!call->parts) {
        struct stream_item item = {q->argument[0].position, q->argument[0].length, q->argument[0].data};

        call->left = RECORD_MARK + stream_length(q->call_length, &item, q->arguments);
        record_mark(call->mark, call->left - RECORD_MARK);
        caller_forget(p, q);
        if (!p->stream)
            return -ECONNABORTED;
        if (q->results && q->result[0].data)
            error = rddp_stream_expect(p->stream, rddp_rid_nfs(q->xid, 0), q->result[0].data, q->result[0].length);
    }
    if (!error)
        error = caller_write(p, call);
    if (!error)
        call->end = p->written;
    q->state = REQUEST_SENT;
    return error;
}

static void caller_send_all(struct packet_caller *p)
{
    uint32_t under_way = 0;

    for (struct packet_call *call = p->calls; call && under_way < p->attr.credits; call = call->next, under_way++) {
        if (call->parts < PARTS && caller_send(p, call))
            break;
    }
}

/* --- receiving ------------------------------------------------------------------------------------------------- */

/* Takes a reply: the item is where the caller wants its data, or the message is made whole. */
static void caller_take(struct packet_caller *p, uint8_t *message, size_t length, const struct stream_item *item)
{
    struct packet_call *call = length >= 4 ? caller_find(p, NULL, caller_xid_of(message)) : NULL;
    struct request *q = call ? call->q : NULL;
    bool in_place = q && item->length && q->results && item->data == q->result[0].data;
    uint8_t *whole = message;

    if (q && item->length && !in_place) {
        size_t all = stream_length(length, item, 1);

        whole = malloc(all);
        if (whole)
            stream_join(whole, message, length, item, 1);
        free(message);
        length = all;
    }
    if (!q || !whole) {
        free(q ? NULL : message);
        if (q)
            caller_end(p, call, REQUEST_NOT_SENT);
        return;
    }
    p->answered = true;
    if (in_place) {
        q->result[0].used = item->length;
        p->stats.placed += item->length;
    }
    q->reply = whole;
    q->reply_length = length;
    caller_end(p, call, REQUEST_OK);
}

/* Gets the next part of the stream: 1, 0 if nothing has come, or a negative errno. */
static int caller_look(struct packet_caller *p)
{
    struct rddp_stream_record record;
    int got = p->left ? 1 : rddp_stream_read(p->stream, p->stage, CALLER_STAGE, &record);

    if (p->left || got <= 0)
        return got;
    if (record.kind == RDDP_STREAM_FINISH)
        return -ECONNRESET;
    p->placed = record.kind == RDDP_STREAM_PLACED;
    p->at = p->placed ? record.at : p->stage;
    p->left = record.length;
    p->rid = record.rid;
    return 1;
}

static void caller_read(struct packet_caller *p)
{
    for (int i = 0; i < CALLER_READS && p->stream; i++) {
        int got = caller_look(p);
        size_t eaten = 0;

        if (got > 0)
            got = p->placed ? placed_eat(&p->rx, p->at, p->left, p->rid, &eaten)
                            : record_eat(&p->rx.rx, p->at, p->left, &eaten);
        else if (got == 0)
            return;
        p->at += eaten;
        p->left -= eaten;
        if (got > 0) {
            struct stream_item item;
            size_t length;
            uint8_t *message = placed_take(&p->rx, &length, &item);

            if (message)
                caller_take(p, message, length, &item);
            else
                got = -ENOMEM;
        }
        if (got < 0)
            caller_break(p, got);
    }
}

/* --- the connection -------------------------------------------------------------------------------------------- */

static void caller_connect(struct packet_caller *p)
{
    p->stream =
        rddp_stream_connect(p->attr.net, (const struct sockaddr *)&p->attr.own, (const struct sockaddr *)&p->server);
    p->written = 0;
    if (!p->stream) {
        p->error = -errno;
        p->retry_ms = clock_ms() + BACKOFF_MS;
    }
}

static void caller_step(struct packet_caller *p)
{
    uint64_t now = clock_ms();
    int state;

    for (struct packet_call *call = p->calls, *next; call; call = next) {
        next = call->next;
        if (call->q->deadline_ms <= now)
            caller_end(p, call, REQUEST_TIMED_OUT);
    }
    if (!p->stream && now >= p->retry_ms)
        caller_connect(p);
    if (!p->stream)
        return;
    state = rddp_stream_state(p->stream);
    if (state < 0) {
        caller_break(p, state);
    } else if (state != RDDP_STREAM_CONNECTING) {
        p->stats.has_option = rddp_stream_has_option(p->stream);
        caller_read(p);
        if (p->stream)
            caller_send_all(p);
    }
}

/* Milliseconds until something is due without a packet. */
static int caller_patience(const struct packet_caller *p, uint64_t until)
{
    uint64_t now = clock_ms();

    for (const struct packet_call *call = p->calls; call; call = call->next)
        until = call->q->deadline_ms < until ? call->q->deadline_ms : until;
    if (!p->stream)
        until = p->retry_ms < until ? p->retry_ms : until;
    if (p->left)
        return 0;
    return until <= now ? 0 : until - now > 1000 ? 1000 : (int)(until - now);
}

int caller_wait(struct packet_caller *p, int timeout_ms)
{
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : clock_ms() + (uint64_t)timeout_ms;
    int ended, interrupted = 0;

    for (;;) {
        caller_step(p);
        if (p->ended || interrupted || (clock_ms() >= until && timeout_ms))
            break;
        interrupted = rddp_stream_progress(p->attr.net, caller_patience(p, until));
        if (!timeout_ms) {
            caller_step(p);
            break;
        }
    }
    ended = p->ended;
    p->ended = 0;
    return ended;
}

int caller_fd(const struct packet_caller *p)
{
    return rddp_stream_net_fd(p->attr.net);
}

void caller_stats(const struct packet_caller *p, struct packet_stats *stats)
{
    *stats = p->stats;
}

struct packet_caller *caller_open(const struct sockaddr_storage *server, const struct packet_attr *attr, int timeout_ms)
{
    struct packet_caller *p = calloc(1, sizeof(*p));
    uint64_t until = clock_ms() + (uint64_t)timeout_ms;

    if (!p)
        return NULL;
    p->attr = *attr;
    p->server = *server;
    record_init(&p->rx.rx, RECORD_MAX);
    if (getrandom(&p->next_xid, sizeof(p->next_xid), 0) < 0)
        p->next_xid = (uint32_t)clock_ms();
    do {
        caller_step(p);
        if (p->stream && rddp_stream_state(p->stream) == RDDP_STREAM_OPEN)
            return p;
        if (!p->stream)
            break;
        rddp_stream_progress(p->attr.net, 50);
    } while (clock_ms() < until);
    errno = p->stream ? ETIMEDOUT : -p->error;
    until = (uint64_t)errno;
    caller_close(p);
    errno = (int)until;
    return NULL;
}

void caller_close(struct packet_caller *p)
{
    caller_break(p, -ECANCELED);
    while (p->calls)
        caller_end(p, p->calls, REQUEST_CLOSED);
    record_fini(&p->rx.rx);
    free(p);
}
