/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sctp_link.c - passes events and messages between an association and its provider, one turn at a time. */
#include "sctp/io/sctp_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_FIRST = 64, KEPT_MAX = WINDOW_CHUNKS + 1 };

void sctp_link_init(struct sctp_link *l, struct assoc *assoc, struct sctp_socket *socket, struct sctp_assoc *sctp)
{
    *l = (struct sctp_link){.assoc = assoc, .socket = socket, .sctp = sctp};
}

void sctp_link_fini(struct sctp_link *l)
{
    for (uint32_t i = 0; i < l->kept_capacity; i++)
        sctp_news_free(&l->kept[i]);
    free(l->kept);
    free(l->held);
}

/* --- events ----------------------------------------------------------------------------------------------- */

/* Finds a free place in `kept`. Returns false if there is no memory, or more messages than an association may keep. */
static bool sctp_link_find_place(struct sctp_link *l)
{
    uint32_t space = l->kept_capacity ? 2 * l->kept_capacity : KEPT_FIRST;
    struct sctp_news *kept;

    for (; l->kept_free < l->kept_capacity; l->kept_free++)
        if (!l->kept[l->kept_free].data)
            return true;
    if (space > 2 * KEPT_MAX)
        return false;
    kept = realloc(l->kept, space * sizeof(*kept));
    if (!kept)
        return false;
    memset(kept + l->kept_capacity, 0, (space - l->kept_capacity) * sizeof(*kept));
    l->kept = kept;
    l->kept_capacity = space;
    return true;
}

/* Gives the message at this place to the association; frees the place unless the association keeps the message. */
static void sctp_link_give(struct sctp_link *l, uint32_t place, uint64_t now_us)
{
    struct sctp_news *news = &l->kept[place];
    const struct assoc_message m = {
        .data = news->data,
        .octets = news->octets,
        .tsn = news->tsn,
        .ppid = news->ppid,
        .name = place + 1,
        .stream = news->stream,
        .whole = news->unordered,
    };

    if (assoc_rx(l->assoc, &m, now_us) == ASSOC_KEPT)
        return;
    sctp_news_free(news);
    if (place < l->kept_free)
        l->kept_free = place;
}

static void hear_message(struct sctp_link *l, struct sctp_news *news, uint64_t now_us)
{
    uint32_t name;

    if (!sctp_link_find_place(l)) {
        sctp_news_free(news);
        assoc_lost(l->assoc, FAULT_MEMORY);
        return;
    }
    l->kept[l->kept_free] = *news;
    sctp_link_give(l, l->kept_free, now_us);
    while (assoc_due(l->assoc, &name))
        sctp_link_give(l, name - 1, now_us);
}

static void api_sctp_link_hear(struct sctp_link *l, struct sctp_news *news, uint64_t now_us)
{
    struct assoc *a = l->assoc;

    switch (news->kind) {
    case SCTP_NEWS_UP:
        if (news->payload_max < ASSOC_PAYLOAD_MIN)
            assoc_lost(a, FAULT_LOST);
        else
            assoc_up(a, news->indication, news->tsn, news->payload_max, now_us);
        break;
    case SCTP_NEWS_MESSAGE:
        hear_message(l, news, now_us);
        return;
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
static bool sctp_link_hold(struct sctp_link *l, const struct assoc_chunk *chunk)
{
    uint32_t n = chunk->head_length;

    if (!l->held)
        l->held = malloc(l->assoc->payload_max);
    if (!l->held)
        return false;
    memcpy(l->held, chunk->head, n);
    for (uint32_t i = 0; i < chunk->emit.spans; i++) {
        if (chunk->emit.span[i].length)
            memcpy(l->held + n, chunk->emit.span[i].at, chunk->emit.span[i].length);
        n += chunk->emit.span[i].length;
    }
    l->held_octets = n;
    l->held_stream = chunk->stream;
    l->held_ppid = chunk->ppid;
    l->held_end = chunk->end;
    return true;
}

/* Sends the held chunk. Returns false if it still has to wait. */
static bool submit_held(struct sctp_link *l, uint64_t now_us)
{
    const struct span span = {l->held, l->held_octets};
    int error;

    if (!l->held_octets)
        return true;
    error = l->sctp->provider->submit(l->sctp, &span, 1, l->held_stream, l->held_ppid, false);
    if (error == -EAGAIN)
        return false;
    l->held_octets = 0;
    if (error)
        assoc_lost(l->assoc, FAULT_LOST);
    else
        assoc_sent(l->assoc, l->held_end, now_us);
    return true;
}

static bool submit(struct sctp_link *l, const struct assoc_chunk *chunk, bool more, uint64_t now_us)
{
    struct span span[1 + EMIT_SPANS] = {{chunk->head, chunk->head_length}};
    int error;

    for (uint32_t i = 0; i < chunk->emit.spans; i++)
        span[1 + i] = chunk->emit.span[i];
    error = l->sctp->provider->submit(l->sctp, span, 1 + chunk->emit.spans, chunk->stream, chunk->ppid, more);
    if (!error)
        assoc_sent(l->assoc, chunk->end, now_us);
    else if (error != -EAGAIN)
        assoc_lost(l->assoc, FAULT_LOST);
    else if (!sctp_link_hold(l, chunk))
        assoc_lost(l->assoc, FAULT_MEMORY);
    return !error;
}

/* Sends for one turn. Returns true if the turn is over and there may be more. The caller has entered the stack. */
static bool submit_all(struct sctp_link *l, uint64_t now_us)
{
    struct assoc *a = l->assoc;
    struct assoc_chunk chunk;
    bool more = assoc_wants(a) & ASSOC_TX;

    if (!submit_held(l, now_us))
        return false;
    for (uint32_t given = 1; more && given <= LINK_TURN_MESSAGES; given++) {
        if (!assoc_emit(a, &chunk, now_us))
            return false;
        more = assoc_wants(a) & ASSOC_TX;
        if (!submit(l, &chunk, more && given < LINK_TURN_MESSAGES, now_us))
            return false;
    }
    return more;
}

static bool give_all(struct sctp_link *l, bool wait, uint64_t now_us)
{
    bool more = true;

    if (!l->held_octets && !(assoc_wants(l->assoc) & ASSOC_TX))
        return false;
    if (l->sctp->provider->enter(l->socket, wait)) {
        more = submit_all(l, now_us);
        l->sctp->provider->flush(l->socket);
        l->sctp->provider->leave(l->socket);
    }
    return more;
}

static void sctp_link_end(struct sctp_link *l, uint64_t now_us)
{
    struct assoc *a = l->assoc;
    char reason[NEG_REASON_MAX];

    if (assoc_wants(a) & ASSOC_FIN && !l->held_octets) {
        l->sctp->provider->shutdown(l->sctp);
        assoc_fin(a, now_us);
    }
    if (assoc_wants(a) & ASSOC_ABORT) {
        l->sctp->provider->abort(l->sctp, reason, assoc_reason(a, reason));
        assoc_lost(a, FAULT_LOST);
    }
}

bool sctp_link_serve(struct sctp_link *l, bool wait, uint64_t now_us)
{
    struct assoc *a = l->assoc;
    bool more = false;

    assoc_check(a, now_us);
    if (!(assoc_wants(a) & ASSOC_ABORT))
        more = give_all(l, wait, now_us);
    assoc_check(a, now_us); /* a completion may have failed the queue pair: its CQ was full */
    if (!wait && assoc_wants(a) & (ASSOC_FIN | ASSOC_ABORT))
        return true;
    sctp_link_end(l, now_us);
    return more;
}

/* If both stacks send batches, each may acknowledge the other's as a whole. */
static void tell_batches(struct sctp_link *l)
{
    if (l->told || !l->assoc->attr.batches || !(l->assoc->peer_hello.flags & NEG_BATCHES))
        return;
    l->told = true;
    l->sctp->provider->batches(l->sctp);
}

bool sctp_link_hear(struct sctp_link *l, uint64_t now_us)
{
    struct assoc *a = l->assoc;
    struct sctp_news news;
    uint32_t taken = 0, name;

    while (assoc_due(a, &name)) /* the application has answered */
        sctp_link_give(l, name - 1, now_us);
    while (taken < LINK_TURN_MESSAGES && !assoc_has_signal(a) && !life_is_withheld(&a->life) &&
           a->life.state != CONN_OVER && l->sctp->provider->next(l->sctp, &news)) {
        api_sctp_link_hear(l, &news, now_us);
        taken++;
    }
    tell_batches(l);
    return taken == LINK_TURN_MESSAGES || assoc_has_signal(a);
}

bool sctp_link_turn(struct sctp_link *l, uint64_t now_us)
{
    bool more = sctp_link_hear(l, now_us), waited = life_is_withheld(&l->assoc->life);

    assoc_tick(l->assoc, now_us);
    more |= waited && !life_is_withheld(&l->assoc->life);
    return sctp_link_serve(l, true, now_us) || more;
}
