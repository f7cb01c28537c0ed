/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notify.c - turns the news of a connection into events for the application and log lines for people. The caller holds
 * the endpoint. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint/objects.h"
#include "loop/sockaddr.h"

enum { LINE = 320 };

static int errno_of(enum fault fault)
{
    switch (fault) {
    case FAULT_NONE:
        return 0;
    case FAULT_STALLED:
    case FAULT_RETRY:
        return -ETIMEDOUT;
    case FAULT_REJECTED:
        return -ECONNREFUSED;
    case FAULT_LOST:
    case FAULT_CUT:
    case FAULT_TERMINATED:
        return -ECONNRESET;
    case FAULT_MEMORY:
    case FAULT_CQ_FULL:
        return -ENOMEM;
    case FAULT_OWNER:
    case FAULT_FORKED:
        return -ECONNABORTED;
    case FAULT_CLOSED:
        return -EBADF;
    case FAULT_LOCAL_KEY:
        return -EFAULT;
    default:
        return -EPROTO;
    }
}

static void log_unanswered(const struct endpoint *endpoint, const char *peer)
{
    char line[LINE], why[LINE];

    fault_describe(&endpoint->life->note, line, sizeof(line));
    endpoint->kind->explain(endpoint, why, sizeof(why));
    context_log(endpoint->loop->context, RDDP_LOG_WARN, "%s: %s; %s", peer, line, why);
}

/* Logs the end. A peer that goes away is normal, also in the middle of a message: one that is killed leaves a FIN or a
 * RST, as chance will have it. Everything else is a warning. */
static void notify_log_end(struct endpoint *endpoint, bool established)
{
    const struct life *life = endpoint->life;
    struct rddp_context *context = endpoint->loop->context;
    bool gone = established && life->note.fault == FAULT_CUT;
    char peer[SOCKADDR_TEXT], line[LINE];

    sockaddr_text(&endpoint->peer, peer);
    switch (life->note.fault) {
    case FAULT_NONE:
        context_log(context, RDDP_LOG_INFO, "%s: closed", peer);
        break;
    case FAULT_TERMINATED:
        context_log(context, RDDP_LOG_WARN, "%s: the peer ended the connection: %s 0x%04x: %s", peer,
                    endpoint->kind->termination, life->peer_term, life->peer_term_text);
        break;
    case FAULT_RETRY:
        log_unanswered(endpoint, peer);
        break;
    case FAULT_LOST:
    case FAULT_OWNER:
    case FAULT_FORKED:
    case FAULT_CLOSED:
        context_log(context, RDDP_LOG_INFO, "%s: %s", peer, fault_text(life->note.fault));
        break;
    default:
        fault_describe(&life->note, line, sizeof(line));
        context_log(context, gone ? RDDP_LOG_INFO : RDDP_LOG_WARN, "%s: %s", peer, line);
    }
}

/* Queues an event for the queue pair's channel, which qp_claim() has set and only qp_strip() or a failed attempt
 * clears. */
static void notify_event(struct endpoint *endpoint, enum rddp_event_type type, int status)
{
    struct rddp_qp *qp = endpoint->qp;
    struct rddp_event event = {.type = type, .status = status, .qp = qp};

    if (!qp || endpoint->by_hand)
        return;
    event.user = qp->user;
    if (type == RDDP_EVENT_ESTABLISHED || type == RDDP_EVENT_REJECTED)
        endpoint->kind->fill_event(endpoint, &event);
    if (!endpoint->life->active)
        event.private_data_length = 0; /* private data came with the request event */
    event_post_qp(qp, &event);
}

void endpoint_notify_unreachable(struct endpoint *endpoint, int error)
{
    char peer[SOCKADDR_TEXT];

    notify_event(endpoint, RDDP_EVENT_UNREACHABLE, error);
    context_log(endpoint->loop->context, RDDP_LOG_INFO, "%s: cannot connect: %s", sockaddr_text(&endpoint->peer, peer),
                strerror(-error));
}

void request_answered(struct endpoint *endpoint)
{
    if (endpoint->request)
        endpoint->request->endpoint = NULL;
    endpoint->request = NULL;
    if (endpoint->listener)
        endpoint->listener->pending--;
    endpoint->listener = NULL;
}

/* Whoever asks and gives up leaves an event: an application that takes none must not hold more and more of them. */
static bool post_request(struct rddp_listener *listener, const struct rddp_event *event)
{
    if (++listener->untaken <= LISTENER_UNTAKEN_MAX && event_post(listener->context, &listener->channel, event))
        return true;
    listener->untaken--;
    return false;
}

static void notify_request(struct endpoint *endpoint)
{
    struct rddp_listener *listener = endpoint->listener;
    struct rddp_request *request = calloc(1, sizeof(*request));
    struct rddp_event event = {
        .type = RDDP_EVENT_CONNECT_REQUEST,
        .listener = listener,
        .request = request,
        .user = listener->user,
    };

    endpoint->kind->fill_event(endpoint, &event);
    /* Complete before the application can see it. */
    if (request)
        *request = (struct rddp_request){.endpoint = endpoint,
                                         .loop = endpoint->loop,
                                         .wire = listener->wire.wire,
                                         .local = endpoint->local,
                                         .peer = endpoint->peer};
    endpoint->request = request;
    if (!request || !post_request(listener, &event)) {
        endpoint->request = NULL;
        if (listener->untaken < LISTENER_UNTAKEN_MAX) /* peers must not fill the log */
            context_log(endpoint->loop->context, RDDP_LOG_ERROR, "out of memory: a connection request is dropped");
        free(request);
        endpoint->kind->lost(endpoint, FAULT_MEMORY);
        endpoint->life->news = 0;
    }
}

void endpoint_notify(struct endpoint *endpoint)
{
    struct life *life = endpoint->life;
    unsigned news = life->news;
    int status = errno_of(life->note.fault);

    life->news = 0;
    if (news & CONN_NEWS_REQUEST)
        notify_request(endpoint);
    if (news & CONN_NEWS_ESTABLISHED)
        notify_event(endpoint, RDDP_EVENT_ESTABLISHED, 0);
    if (news & CONN_NEWS_REJECTED)
        notify_event(endpoint, RDDP_EVENT_REJECTED, status);
    if (news & (CONN_NEWS_FAILED | CONN_NEWS_DISCONNECTED))
        notify_log_end(endpoint, news & CONN_NEWS_DISCONNECTED);
    if (news & CONN_NEWS_FAILED)
        notify_event(endpoint, RDDP_EVENT_CONNECT_ERROR, status);
    if (news & CONN_NEWS_DISCONNECTED)
        notify_event(endpoint, RDDP_EVENT_DISCONNECTED, status);
}
