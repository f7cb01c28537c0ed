/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve.c - `rddp http serve`: the files of one directory for everybody who speaks HTTP/1.1. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/http/conn.h"

enum { WATCH_MS = 100 };

struct http_server {
    struct http_served served;
    struct rddp_stream_net *net;
    struct http_conn *conn[HTTP_CLIENTS_MAX];
    uint64_t conns;
};

static void http_take(struct http_server *server, struct rddp_stream *stream)
{
    struct sockaddr_storage peer;
    char text[ADDRESS_TEXT];
    rddp_stream_peer(stream, &peer);
    if (!clients_have(&server->served.allowed, (const struct sockaddr *)&peer)) {
        warn_seldom("%s: turned away: no --allow has its address", address_text(text, &peer));
        rddp_stream_close(stream);
        return;
    }
    struct http_conn *conn = http_conn_open(&server->served, stream, clock_ns());
    if (conn)
        server->conn[server->conns++] = conn;
    else
        warn_seldom("%s: no memory for another client", address_text(text, &peer));
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
        http_conn_close(conn);
        server->conn[i] = server->conn[--server->conns];
        more = true;
    }
    return more;
}

static void http_run_server(struct http_server *server)
{
    uint64_t watched_ns = clock_ns();
    bool more = false;
    while (!tool_stopped) {
        struct rddp_stream *stream;
        rddp_stream_progress(server->net, more ? 0 : WATCH_MS);
        while (server->conns < server->served.options->clients && (stream = rddp_stream_accept(server->net)))
            http_take(server, stream);
        uint64_t now_ns = clock_ns();
        bool watch = now_ns - watched_ns > WATCH_MS * 1000000ULL;
        if (watch)
            watched_ns = now_ns;
        more = turn_all(server, watch);
    }
    while (server->conns)
        http_conn_close(server->conn[--server->conns]);
}

int http_serve(const struct http_options *options, int argc, char **argv)
{
    static struct http_server server;
    struct sockaddr_storage own;
    char error[CLIENTS_TEXT], text[ADDRESS_TEXT];
    (void)argc;
    server.served.options = options;
    if (clients_parse(&server.served.allowed, options->allow.count ? options->allow.word : NULL, error))
        usage_error("--allow: %s", error);
    server.served.root = open(argv[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (server.served.root < 0)
        return fail(EXIT_FAILED, "%s: %s", argv[0], error_text(errno));
    raise_file_limit();
    int code = http_open_net(options, (uint32_t)options->clients, &server.net, &own);
    if (!code && rddp_stream_listen(server.net, (uint16_t)options->port, (uint32_t)options->clients))
        code = fail(EXIT_FAILED, "cannot listen");
    if (!code) {
        if (options->writable && !options->allow.count)
            warn("everyone who reaches this address can write to %s: see --allow", argv[0]);
        address_set_port(&own, (uint16_t)options->port);
        printf("listening on %s\n", address_text(text, &own));
        fflush(stdout);
        http_run_server(&server);
    }
    if (server.net)
        rddp_stream_net_close(server.net);
    close(server.served.root);
    clients_free(&server.served.allowed);
    return code;
}
