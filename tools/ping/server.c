/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* server.c - the server of `rddp ping`: one loop serves all clients, each with a session of the service. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "rpc/eviction.h"
#include "tools/ping/ping.h"

enum {
    SERVER_CQE = 4096,
    SESSION_WRS = 4,
    SESSIONS_MAX = SERVER_CQE / (2 * SESSION_WRS),
    SESSION_REST_MS = 20000, /* a client that sends nothing for this long may have to give way */
};

/* --- functions for a service --------------------------------------------------------------------------------- */

static uint64_t pack(struct ping_session *session, unsigned kind)
{
    return (uint64_t)(uintptr_t)session | kind;
}

int session_receive(struct ping_session *session, unsigned kind, size_t offset, uint32_t length)
{
    struct rddp_sge sge = region_sge(&session->memory, offset, length);
    struct rddp_recv_wr wr = {.wr_id = pack(session, kind), .sg_list = &sge, .num_sge = 1}, *bad;
    int error = rddp_post_recv(session->qp, &wr, &bad);
    return error ? fail(EXIT_FAILED, "%s: cannot post a receive: %s", session->peer, error_text(error)) : 0;
}

int session_post(struct ping_session *session, unsigned kind, enum rddp_wr_opcode opcode, size_t offset,
                 uint32_t length)
{
    struct rddp_sge sge = region_sge(&session->memory, offset, length);
    struct rddp_send_wr *bad, wr = {
                                  .wr_id = pack(session, kind),
                                  .sg_list = &sge,
                                  .num_sge = 1,
                                  .opcode = opcode,
                                  .send_flags = RDDP_SEND_SIGNALED,
                                  .remote_addr = session->remote.offset,
                                  .rkey = session->remote.key,
                              };
    int error = rddp_post_send(session->qp, &wr, &bad);
    return error ? fail(EXIT_FAILED, "%s: cannot send: %s", session->peer, error_text(error)) : 0;
}

/* --- our own protocol: echo ---------------------------------------------------------------------------------- */

/* Two slots, used for both receiving and sending. A client sends its next message only after the previous answer, so
 * one slot is always posted while the other may still be sent. */
enum { ECHO_SLOTS = 2, ECHO_SENT = 4 };

static size_t ping_server_echo_size(const struct ping_options *options)
{
    return ECHO_SLOTS * (options->size ? options->size : 1);
}

static int echo_receive(const struct server *server, struct ping_session *session, unsigned slot)
{
    return session_receive(session, slot, slot * session->memory.size / ECHO_SLOTS, (uint32_t)server->options->size);
}

static int echo_open(const struct server *server, struct ping_session *session)
{
    int code = echo_receive(server, session, 0);
    return code ? code : echo_receive(server, session, 1);
}

static int echo_complete(const struct server *server, struct ping_session *session, unsigned kind, uint32_t length)
{
    if (kind >= ECHO_SENT)
        return echo_receive(server, session, kind - ECHO_SENT);
    session->done++;
    return session_post(session, ECHO_SENT + kind, RDDP_WR_SEND, kind * session->memory.size / ECHO_SLOTS, length);
}

static bool echo_may_end(const struct server *server, const struct ping_session *session)
{
    (void)session;
    return !server->options->count || session->done >= server->options->count;
}

const struct service echo_service = {
    .what = "messages",
    .size = ping_server_echo_size,
    .open = echo_open,
    .complete = echo_complete,
    .may_end = echo_may_end,
};

/* --- sessions ------------------------------------------------------------------------------------------------ */

static void end_session(struct server *server, struct ping_session *session)
{
    struct ping_session **link = &server->sessions;
    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    if (session->established) {
        server->ended++;
        server->code = session->code;
        if (!server->options->quiet) {
            printf("%s: %s after %" PRIu64 " %s\n", session->peer, session->code ? "cut" : "closed", session->done,
                   server->service->what);
            fflush(stdout);
        }
    }
    rddp_destroy_qp(session->qp);
    region_free(&session->memory);
    free(session);
}

static int open_session(struct server *server, struct ping_session *session)
{
    struct rddp_qp_attr attr;
    rddp_qp_attr_init(&attr);
    attr.max_send_wr = attr.max_recv_wr = SESSION_WRS;
    attr.user = session;
    int code = region_make(&server->endpoint, server->service->size(server->options), RDDP_ACCESS_LOCAL_WRITE,
                           &session->memory);
    if (!code)
        code = endpoint_qp(&server->endpoint, &attr, &session->qp);
    return code ? code : server->service->open(server, session);
}

/* Makes way for another client, if all places are taken. Returns false if none gives way. */
static bool session_make_place(struct server *server, const struct sockaddr_storage *peer)
{
    static const struct eviction_limits limits = {SESSIONS_MAX, SESSIONS_MAX, SESSION_REST_MS};
    struct rpc_eviction place[SESSIONS_MAX];
    struct ping_session *session[SESSIONS_MAX];
    unsigned n = 0;
    uint64_t now_ns = clock_ns();
    for (struct ping_session *s = server->sessions; s; s = s->next) {
        place[n] = (struct rpc_eviction){.peer = &s->address, .idle_ms = (now_ns - s->moved_ns) / 1000000};
        session[n++] = s;
    }
    if (server->options->once && (n || server->ended))
        return false;
    int found = eviction_find_fair(place, n, &limits, peer);
    if (found >= 0) {
        warn_seldom("%s: ended, to serve another client", session[found]->peer);
        end_session(server, session[found]);
    }
    return found != PLACE_NONE;
}

static void accept_session(struct server *server, struct rddp_request *request)
{
    struct ping_session *session = calloc(1, sizeof(*session));
    struct sockaddr_storage peer = {0};
    rddp_request_addr(request, &peer);
    if (!session || !session_make_place(server, &peer)) {
        free(session);
        rddp_reject(request, NULL, 0);
        return;
    }
    session->address = peer;
    session->moved_ns = clock_ns();
    address_text(session->peer, &peer);
    struct rddp_conn_attr attr;
    rddp_conn_attr_init(&attr);
    if (server->service->reads)
        attr.ird = attr.ord = server->service->reads;
    if (open_session(server, session)) {
        if (session->qp)
            rddp_destroy_qp(session->qp);
        region_free(&session->memory);
        free(session);
        rddp_reject(request, NULL, 0);
        return;
    }
    session->next = server->sessions;
    server->sessions = session;
    int error = rddp_accept(request, session->qp, &attr);
    if (error) {
        warn("%s: cannot accept: %s", session->peer, error_text(error));
        end_session(server, session);
    }
}

/* Ends the session of a closed connection. Closing is an error if something is under way. */
static void leave_session(struct server *server, struct ping_session *session, int status)
{
    if (!session->established) {
        warn("%s: no connection: %s", session->peer, error_text(status));
    } else if (!session->code && (status || !server->service->may_end(server, session))) {
        struct rddp_qp_info info;
        bool explained = !rddp_query_qp(session->qp, &info) && (info.terminate || info.fault);
        session->code = fail(EXIT_FAILED, "%s: %s after %" PRIu64 " %s", session->peer,
                             explained || !status ? qp_trouble(session->qp) : error_text(status), session->done,
                             server->service->what);
    }
    end_session(server, session);
}

static void handle_event(struct server *server, const struct rddp_event *event)
{
    struct ping_session *session = event->user;
    switch (event->type) {
    case RDDP_EVENT_CONNECT_REQUEST:
        accept_session(server, event->request);
        break;
    case RDDP_EVENT_ESTABLISHED:
        session->established = true;
        if (!server->options->quiet) {
            printf("%s: connected\n", session->peer);
            fflush(stdout);
        }
        break;
    default:
        leave_session(server, session, event->status);
    }
}

static void handle_completion(struct server *server, const struct rddp_wc *wc)
{
    unsigned kind = (unsigned)(wc->wr_id % WR_KINDS);
    struct ping_session *session = (struct ping_session *)(uintptr_t)(wc->wr_id - kind);
    /* A closed connection flushes the posted requests; the event that follows has the reason. */
    if (wc->status == RDDP_WC_WR_FLUSH_ERR)
        return;
    session->moved_ns = clock_ns();
    if (wc->status != RDDP_WC_SUCCESS)
        session->code = fail(EXIT_FAILED, "%s: %s", session->peer, wc_trouble(session->qp, wc));
    else
        session->code = server->service->complete(server, session, kind, wc->byte_len);
    if (session->code)
        end_session(server, session);
}

static bool is_finished(const struct server *server)
{
    return tool_stopped || (server->options->once && server->ended);
}

static int ping_server_serve(struct server *server)
{
    while (!is_finished(server)) {
        struct rddp_wc wc;
        int n;
        while ((n = rddp_poll_cq(server->endpoint.cq, 1, &wc)) > 0)
            handle_completion(server, &wc);
        if (n < 0)
            return fail(EXIT_FAILED, "cannot poll the completion queue: %s", error_text(n));
        struct rddp_event *event;
        while (endpoint_event(&server->endpoint, &event)) {
            handle_event(server, event);
            rddp_ack_event(event);
        }
        if (!is_finished(server))
            endpoint_wait(&server->endpoint, -1);
    }
    return server->options->once && server->ended ? server->code : EXIT_OK;
}

int ping_server(const struct ping_options *options, const struct service *service, const struct target *target)
{
    struct server server = {.options = options, .service = service};
    int code = endpoint_open(&server.endpoint,
                             &(struct endpoint_attr){.cqe = SERVER_CQE, .wire = options->wire.wire, .server = true});
    if (!code)
        code = endpoint_listen(&server.endpoint, target, &options->wire, NULL);
    if (!code)
        code = ping_server_serve(&server);
    while (server.sessions)
        end_session(&server, server.sessions);
    endpoint_close(&server.endpoint);
    return code;
}
