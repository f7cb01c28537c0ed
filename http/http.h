/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http.h - what the files of `rddp http` share. One thread drives all connections of a net. */
#ifndef RDDP_HTTP_HTTP_H
#define RDDP_HTTP_HTTP_H

#include "rpc/clients.h"
#include "tools/lib/tool.h"
#include <rddp/stream.h>

enum { HTTP_PORT = 80, HTTP_CLIENTS = 64, HTTP_CLIENTS_MAX = 1024, HTTP_DEPTH_MAX = 64 };

struct http_options {
    uint64_t port, clients, limit, depth;
    struct opt_list allow;
    double timeout_s;
    bool writable, sync, quiet, no_option;
    const char *output;
};

/* The device that --packet asks for, and our address behind it. 0 or an exit code. */
int http_open_net(const struct http_options *options, uint32_t streams, struct rddp_stream_net **net,
                  struct sockaddr_storage *own);

/* The forms of the command: words behind its verb; an exit code. */
int http_serve(const struct http_options *options, int argc, char **argv);
int http_get(const struct http_options *options, int argc, char **argv);
int http_put(const struct http_options *options, int argc, char **argv);

#endif
