/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* http.c - `rddp http`: serves files by HTTP/1.1, gets and puts them; their octets land in place where both ends have
 * the TCP RDMA option. */
#include <errno.h>
#include <string.h>

#include "http/http.h"
#include "tools/lib/packet_options.h"

#define AT(field) offsetof(struct http_options, field)

static const struct opt opts[] = {
    {'p', "port", "PORT", "serve: listen on this port (default 80)", OPT_U64, AT(port), 1, 65535},
    {'w', "writable", NULL, "serve: take files, too (default: give them only)", OPT_FLAG, AT(writable), 0, 0},
    {0, "allow", "NET", "serve: admit these clients only: 10.0.0.0/8, fd77::1; may be repeated", OPT_LIST, AT(allow), 0,
     0},
    {0, "clients", "N", "serve: limit connections (default 64)", OPT_U64, AT(clients), 1, HTTP_CLIENTS_MAX},
    {0, "limit", "SIZE", "serve: refuse larger files than this (default 1G)", OPT_SIZE, AT(limit), 1, 1ULL << 40},
    {'o', "output", "PATH", "get: write this file, or into this directory (default: here)", OPT_TEXT, AT(output), 0, 0},
    {0, "depth", "N", "get, put: keep up to N requests outstanding (default 16)", OPT_U64, AT(depth), 1,
     HTTP_DEPTH_MAX},
    {0, "timeout", "S", "end a connection when nothing moves for this long (default 60)", OPT_SECONDS, AT(timeout_s), 0,
     0},
    {0, "sync", NULL, "fsync each file before it gets its name", OPT_FLAG, AT(sync), 0, 0},
    {0, "no-option", NULL, "do not offer the TCP RDMA option", OPT_FLAG, AT(no_option), 0, 0},
    {'q', "quiet", NULL, "print failures only", OPT_FLAG, AT(quiet), 0, 0},
    {0},
};

static const struct http_verb {
    const char *name;
    int (*run)(const struct http_options *options, int argc, char **argv);
    int min, max;
} verbs[] = {{"serve", http_serve, 1, 1}, {"get", http_get, 1, 100000}, {"put", http_put, 2, 100000}};

static int http_run(const struct command *command, int argc, char **argv)
{
    static struct http_options options = {
        .port = HTTP_PORT, .clients = HTTP_CLIENTS, .limit = 1 << 30, .depth = 16, .timeout_s = 60};
    int first = opt_parse(command, argc, argv, &options, NULL);
    if (first == argc)
        usage_error("expected serve, get or put");
    const struct http_verb *verb = verbs, *end = verbs + sizeof(verbs) / sizeof(verbs[0]);
    while (verb < end && strcmp(verb->name, argv[first]))
        verb++;
    if (verb == end)
        usage_error("expected serve, get or put, got '%s'", argv[first]);
    int words = argc - ++first;
    if (words < verb->min || words > verb->max)
        usage_error("%s: %s", verb->name, words < verb->min ? "a name is missing" : "too many names");
    if (!packet_options.address)
        usage_error("expected --packet ADDR/BITS: HTTP is spoken over a TCP of our own");
    if (options.timeout_s < 0.1)
        usage_error("--timeout: at least 0.1 s");
    catch_signals();
    return verb->run(&options, words, argv + first);
}

const struct command http_command = {
    .name = "http",
    .summary = "serve, get and put files by HTTP/1.1; bodies land in place",
    .usage = "[options] serve DIR\n[options] get URL...\n[options] put FILE... URL",
    .text =
        "Speaks HTTP/1.1. Where the other end has the TCP RDMA option, as this command does, the octets of\n"
        "files land where they belong as soon as a packet brings them. Clients of serve cannot leave DIR; there is\n"
        "no authentication and no encryption: see --allow.",
    .opts = opts,
    .packet = true,
    .run = http_run,
};
