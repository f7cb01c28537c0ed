/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http_serve.c - `rddp http serve`: the files of one directory for everybody who speaks HTTP/1.1. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/http_conn.h"
#include "rpc/eviction.h"

/* BACKLOG: connections that wait for a place. */
enum { WATCH_MS = 100, REST_S = 1, BACKLOG = 64 };

struct http_server {
    struct http_served served;
    struct rddp_stream_net *net;
    struct http_conn *conn[HTTP_CLIENTS_MAX];
    uint64_t conns;
    struct rpc_eviction place[HTTP_CLIENTS_MAX]; /* for share_places() */
    struct rddp_stream *next;                    /* waits for a place; may be NULL */
};

static void serve_drop(struct http_server *server, uint64_t i)
{
    http_conn_close(server->conn[i]);
    server->conn[i] = server->conn[--server->conns];
}

/* All are busy: who has the most of them gives one up to another who would still have fewer, that of which the least
 * has moved. */
static bool share_places(struct http_server *server, const struct sockaddr_storage *address)
{
    unsigned n = (unsigned)server->conns;
    const struct eviction_limits limits = {n, n, UINT64_MAX};
    char peer[ADDRESS_TEXT];
    for (unsigned i = 0; i < n; i++) {
        const struct http_conn *conn = server->conn[i];
        server->place[i] = (struct rpc_eviction){&conn->address, UINT64_MAX - conn->pace.moved, true};
    }
    int found = eviction_find_fair(server->place, n, &limits, address);
    if (found < 0)
        return false;
    warn_seldom("%s: ended, to serve %s", server->conn[found]->peer, address_text(peer, address));
    serve_drop(server, (uint64_t)found);
    return true;
}

/* Makes way for another connection: the one that has been idle for the longest time gives way, if it is REST_S or more.
 * False: all are served, and none can be taken from an address that has many. */
static bool make_place(struct http_server *server, const struct sockaddr_storage *address, uint64_t now_ns, bool watch)
{
    uint64_t most_ns = REST_S * 1000000000ULL, found = server->conns;
    if (server->conns < server->served.options->clients)
        return true;
    for (uint64_t i = 0; i < server->conns; i++) {
        uint64_t idle_ns = http_conn_idle_ns(server->conn[i], now_ns);
        if (idle_ns >= most_ns) {
            most_ns = idle_ns;
            found = i;
        }
    }
    if (found == server->conns)
        return watch && share_places(server, address);
    serve_drop(server, found);
    return true;
}

/* The next connection that is allowed, and whose it is. False: there is none. */
static bool await_next(struct http_server *server, struct sockaddr_storage *address)
{
    char peer[ADDRESS_TEXT];
    while (server->next || (server->next = rddp_stream_accept(server->net))) {
        rddp_stream_peer(server->next, address);
        if (clients_have(&server->served.allowed, (const struct sockaddr *)address))
            return true;
        warn_seldom("%s: refused: no --allow has its address", address_text(peer, address));
        rddp_stream_close(server->next);
        server->next = NULL;
    }
    return false;
}

/* `watch`: look once at who has how many places, too, which takes long. */
static void take_all(struct http_server *server, uint64_t now_ns, bool watch)
{
    struct sockaddr_storage address;
    while (await_next(server, &address) && make_place(server, &address, now_ns, watch)) {
        struct http_conn *conn = http_conn_open(&server->served, server->next, now_ns);
        server->next = NULL;
        watch = false;
        if (conn)
            server->conn[server->conns++] = conn;
        else
            warn_seldom("no memory for another client");
    }
}

/* Gives every connection its turn. True: one of them has more to do. */
static bool turn_all(struct http_server *server, bool watch)
{
    bool more = false;
    for (uint64_t i = 0; i < server->conns;) {
        struct http_conn *conn = server->conn[i];
        more |= http_conn_work(conn);
        if (watch && conn->state != HTTP_CONN_OVER)
            http_conn_watch(conn, clock_ns());
        if (conn->state != HTTP_CONN_OVER) {
            i++;
            continue;
        }
        serve_drop(server, i);
        more = true;
    }
    return more;
}

static int serve_until_end(struct http_server *server)
{
    uint64_t watched_ns = clock_ns();
    bool more = false, gone = false;
    while (!tool_stopped && !gone) {
        gone = rddp_stream_progress(server->net, more ? 0 : WATCH_MS) == -ENODEV;
        uint64_t now_ns = clock_ns();
        bool watch = now_ns - watched_ns > WATCH_MS * 1000000ULL;
        if (watch)
            watched_ns = now_ns;
        take_all(server, now_ns, watch);
        more = turn_all(server, watch);
    }
    while (server->conns)
        serve_drop(server, 0);
    if (server->next)
        rddp_stream_close(server->next);
    return gone ? fail(EXIT_FAILED, "the TUN device was removed") : EXIT_OK;
}

int http_serve(const struct http_options *options, int argc, char **argv)
{
    static struct http_server server;
    static struct kept_sums sums;
    struct sockaddr_storage own;
    char error[CLIENTS_TEXT], text[ADDRESS_TEXT];
    (void)argc;
    server.served.options = options;
    server.served.sums = &sums;
    if (clients_parse(&server.served.allowed, options->allow.count ? options->allow.word : NULL, error))
        usage_error("--allow: %s", error);
    server.served.root = open(argv[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (server.served.root < 0)
        return fail(EXIT_FAILED, "%s: %s", argv[0], error_text(errno));
    raise_file_limit();
    int code = http_open_net(options, (uint32_t)options->clients + BACKLOG + 1, &server.net, &own);
    if (!code && rddp_stream_listen(server.net, (uint16_t)options->port, BACKLOG))
        code = fail(EXIT_FAILED, "cannot listen");
    if (!code) {
        if (options->writable && !options->allow.count)
            warn("everyone who reaches this address can write to %s: see --allow", argv[0]);
        address_set_port(&own, (uint16_t)options->port);
        printf("listening on %s\n", address_text(text, &own));
        fflush(stdout);
        tool_notify("READY=1");
        code = serve_until_end(&server);
        tool_notify("STOPPING=1");
    }
    if (server.net)
        rddp_stream_net_close(server.net);
    close(server.served.root);
    kept_sums_fini(&sums);
    clients_free(&server.served.allowed);
    return code;
}
