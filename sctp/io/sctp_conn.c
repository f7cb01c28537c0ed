/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_conn.c - passes events and messages between an association and its socket, one turn at a time. */
#include "sctp/io/sctp_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_FIRST = 64, KEPT_MAX = WINDOW_CHUNKS + 1 };

/* The active end takes memory for a whole window at once; a peer gets it when it has asked for a connection. */
static bool sctp_conn_find_slots(struct sctp_conn *c)
{
    if (!c->slots)
        c->slots = calloc(WINDOW_CHUNKS, sizeof(*c->slots));
    return c->slots;
}

int sctp_conn_init_active(struct sctp_conn *c, const struct assoc_attr *attr, struct qp *qp, const void *private_data,
                          uint16_t private_length, uint64_t now_us)
{
    if (!sctp_conn_find_slots(c))
        return -ENOMEM;
    return assoc_init_active(&c->assoc, attr, c->slots, qp, private_data, private_length, now_us);
}

void sctp_conn_init_passive(struct sctp_conn *c, const struct assoc_attr *attr, uint64_t now_us)
{
    assoc_init_passive(&c->assoc, attr, NULL, now_us);
    assoc_narrow(&c->assoc, c->early);
}

void sctp_conn_attach(struct sctp_conn *c, struct sctp_socket *socket, struct sctp_assoc *sctp)
{
    c->socket = socket;
    c->sctp = sctp;
}

void sctp_conn_fini(struct sctp_conn *c)
{
    for (uint32_t i = 0; i < c->kept_capacity; i++)
        sctp_news_free(&c->kept[i]);
    free(c->kept);
    free(c->held);
    free(c->copies);
    free(c->slots);
    if (c->sctp)
        c->socket->provider->close(c->sctp);
}

/* --- events ----------------------------------------------------------------------------------------------- */

/* Finds a free place in `kept`. Returns false if there is no memory, or more messages than an association may keep. */
static bool sctp_conn_find_place(struct sctp_conn *c)
{
    uint32_t space = c->kept_capacity ? 2 * c->kept_capacity : KEPT_FIRST;
    struct sctp_news *kept;

    for (; c->kept_free < c->kept_capacity; c->kept_free++)
        if (!c->kept[c->kept_free].data)
            return true;
    if (space > 2 * KEPT_MAX)
        return false;
    kept = realloc(c->kept, space * sizeof(*kept));
    if (!kept)
        return false;
    memset(kept + c->kept_capacity, 0, (space - c->kept_capacity) * sizeof(*kept));
    c->kept = kept;
    c->kept_capacity = space;
    return true;
}

/* Gives the message at this place to the association; frees the place unless the association keeps the message. */
static void sctp_conn_give(struct sctp_conn *c, uint32_t place, uint64_t now_us)
{
    struct sctp_news *news = &c->kept[place];
    const struct assoc_message m = {
        .data = news->data,
        .octets = news->octets,
        .tsn = news->tsn,
        .ppid = news->ppid,
        .name = place + 1,
        .stream = news->stream,
        .tsns = news->tsns ? news->tsns : 1,
        .whole = news->unordered && news->tsns <= 1,
    };

    if (assoc_wants_slots(&c->assoc)) {
        if (sctp_conn_find_slots(c))
            assoc_widen(&c->assoc, c->slots);
        else
            assoc_lost(&c->assoc, FAULT_MEMORY);
    }
    if (assoc_rx(&c->assoc, &m, now_us) == ASSOC_KEPT)
        return;
    sctp_news_free(news);
    if (place < c->kept_free)
        c->kept_free = place;
}

static void sctp_conn_take_message(struct sctp_conn *c, struct sctp_news *news, uint64_t now_us)
{
    uint32_t name;

    if (!sctp_conn_find_place(c)) {
        sctp_news_free(news);
        assoc_lost(&c->assoc, FAULT_MEMORY);
        return;
    }
    c->kept[c->kept_free] = *news;
    sctp_conn_give(c, c->kept_free, now_us);
    while (assoc_due(&c->assoc, &name))
        sctp_conn_give(c, name - 1, now_us);
}

static void sctp_conn_take_news(struct sctp_conn *c, struct sctp_news *news, uint64_t now_us)
{
    struct assoc *a = &c->assoc;

    switch (news->kind) {
    case SCTP_NEWS_UP:
        if (news->payload_max < ASSOC_PAYLOAD_MIN)
            assoc_lost(a, FAULT_LOST);
        else
            assoc_up(a, news->indication, news->tsn, news->payload_max, now_us);
        break;
    case SCTP_NEWS_MESSAGE:
        sctp_conn_take_message(c, news, now_us);
        return;
    case SCTP_NEWS_SKIPPED:
        assoc_skipped(a, news->stream, now_us);
        break;
    case SCTP_NEWS_SHUTDOWN:
        assoc_peer_ended(a, now_us);
        break;
    case SCTP_NEWS_ABORTED:
        assoc_peer_aborted(a, (const char *)news->data, news->octets, now_us);
        break;
    case SCTP_NEWS_LOST:
        assoc_lost(a, a->up ? FAULT_LOST : FAULT_STALLED);
        break;
    case SCTP_NEWS_REFUSED:
        assoc_lost(a, FAULT_REJECTED);
        break;
    }
    sctp_news_free(news);
}

/* --- messages out ----------------------------------------------------------------------------------------- */

/* Copies a chunk that has to wait, because the memory of its spans is borrowed only for now. */
static bool sctp_conn_hold(struct sctp_conn *c, const struct assoc_chunk *chunk)
{
    uint32_t n = chunk->head_length;

    if (!c->held)
        c->held = malloc(c->assoc.payload_max);
    if (!c->held)
        return false;
    memcpy(c->held, chunk->head, n);
    for (uint32_t i = 0; i < chunk->emit.spans; i++) {
        if (chunk->emit.span[i].length)
            memcpy(c->held + n, chunk->emit.span[i].at, chunk->emit.span[i].length);
        n += chunk->emit.span[i].length;
    }
    c->held_octets = n;
    c->held_stream = chunk->stream;
    c->held_ppid = chunk->ppid;
    c->held_end = chunk->end;
    return true;
}

/* Sends the held chunk. Returns false if it still has to wait. */
static bool submit_held(struct sctp_conn *c, uint64_t now_us)
{
    const struct span span = {c->held, c->held_octets};
    int error;

    if (!c->held_octets)
        return true;
    error = c->socket->provider->submit(c->sctp, &span, 1, c->held_stream, c->held_ppid, false);
    if (error == -EAGAIN)
        return false;
    c->held_octets = 0;
    if (error)
        assoc_lost(&c->assoc, FAULT_LOST);
    else
        assoc_sent(&c->assoc, c->held_end, now_us);
    return true;
}

static bool submit(struct sctp_conn *c, const struct assoc_chunk *chunk, bool more, uint64_t now_us)
{
    struct span span[1 + EMIT_SPANS] = {{chunk->head, chunk->head_length}};
    int error;

    for (uint32_t i = 0; i < chunk->emit.spans; i++)
        span[1 + i] = chunk->emit.span[i];
    error = c->socket->provider->submit(c->sctp, span, 1 + chunk->emit.spans, chunk->stream, chunk->ppid, more);
    if (!error)
        assoc_sent(&c->assoc, chunk->end, now_us);
    else if (error != -EAGAIN)
        assoc_lost(&c->assoc, FAULT_LOST);
    else if (!sctp_conn_hold(c, chunk))
        assoc_lost(&c->assoc, FAULT_MEMORY);
    return !error;
}

/* It is made with the first chunk: most associations that only listen have none. */
static bool find_copies(struct sctp_conn *c)
{
    if (!c->copies)
        c->copies = malloc(c->assoc.payload_max);
    if (!c->copies)
        assoc_lost(&c->assoc, FAULT_MEMORY);
    return c->copies;
}

/* Sends for one turn. Returns true if the turn is over and there may be more. The caller has entered the stack. */
static bool submit_all(struct sctp_conn *c, uint64_t now_us)
{
    struct assoc *a = &c->assoc;
    struct assoc_chunk chunk;
    bool more = assoc_wants(a) & ASSOC_TX;

    if (!submit_held(c, now_us) || (more && !find_copies(c)))
        return false;
    for (uint32_t given = 1; more && given <= SCTP_TURN_MESSAGES; given++) {
        chunk.emit.buffer = c->copies;
        if (!assoc_emit(a, &chunk, now_us))
            return false;
        more = assoc_wants(a) & ASSOC_TX;
        if (!submit(c, &chunk, more && given < SCTP_TURN_MESSAGES, now_us))
            return false;
    }
    return more;
}

static bool give_all(struct sctp_conn *c, bool wait, uint64_t now_us)
{
    bool more = true;

    if (!c->held_octets && !(assoc_wants(&c->assoc) & ASSOC_TX))
        return false;
    if (c->socket->provider->enter(c->socket, wait)) {
        more = submit_all(c, now_us);
        c->socket->provider->leave(c->socket);
    }
    return more;
}

static void sctp_conn_end(struct sctp_conn *c, uint64_t now_us)
{
    struct assoc *a = &c->assoc;
    char reason[NEG_REASON_MAX];

    if (assoc_wants(a) & ASSOC_FIN && !c->held_octets) {
        c->socket->provider->shutdown(c->sctp);
        assoc_fin(a, now_us);
    }
    if (assoc_wants(a) & ASSOC_ABORT) {
        c->socket->provider->abort(c->sctp, reason, assoc_reason(a, reason));
        assoc_lost(a, FAULT_LOST);
    }
}

bool sctp_conn_serve(struct sctp_conn *c, bool wait, uint64_t now_us)
{
    struct assoc *a = &c->assoc;
    bool more = false;

    assoc_check(a, now_us);
    if (!(assoc_wants(a) & ASSOC_ABORT))
        more = give_all(c, wait, now_us);
    assoc_check(a, now_us); /* a completion may have failed the queue pair: its CQ was full */
    if (!wait && assoc_wants(a) & (ASSOC_FIN | ASSOC_ABORT))
        return true;
    sctp_conn_end(c, now_us);
    return more;
}

/* If both stacks send batches, each may acknowledge the other's as a whole. */
static void report_batches(struct sctp_conn *c)
{
    if (c->reported || !c->assoc.attr.batches || !(c->assoc.peer_hello.flags & NEG_BATCHES))
        return;
    c->reported = true;
    c->socket->provider->batches(c->sctp);
}

static void report_kept(struct sctp_conn *c)
{
    if (c->reported_octets == c->assoc.kept_octets || !c->socket->provider->keeps)
        return;
    c->reported_octets = c->assoc.kept_octets;
    c->socket->provider->keeps(c->sctp, c->reported_octets);
}

bool sctp_conn_receive(struct sctp_conn *c, uint64_t now_us)
{
    struct assoc *a = &c->assoc;
    struct sctp_news news;
    uint32_t taken = 0, name;

    while (assoc_due(a, &name)) /* the application has answered */
        sctp_conn_give(c, name - 1, now_us);
    while (taken < SCTP_TURN_MESSAGES && !assoc_has_signal(a) && assoc_wants_rx(a) && a->life.state != CONN_OVER &&
           c->socket->provider->next(c->sctp, &news)) {
        sctp_conn_take_news(c, &news, now_us);
        taken++;
    }
    report_batches(c);
    report_kept(c);
    return taken == SCTP_TURN_MESSAGES || assoc_has_signal(a);
}
