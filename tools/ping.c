/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ping.c - `rddp ping`: parses the options and runs the client or the server. */
#include "tools/ping/ping.h"

#define AT(field) offsetof(struct ping_options, field)

static const struct opt opts[] = {
    {0, "server", NULL, "answer the pings of others", OPT_FLAG, AT(server), 0, 0},
    {'a', "address", "ADDR", "server: listen on this address only; client: the same as HOST", OPT_TEXT, AT(address), 0,
     0},
    {'p', "port", "PORT", "use this port (default 18515, with --rping 7174); server: 0 picks a free one", OPT_U64,
     AT(port), 0, 65535},
    {'c', "count", "N", "end after N round trips (default: run until a signal comes)", OPT_U64, AT(count), 1,
     UINT64_MAX},
    {'s', "size", "SIZE", "send messages of SIZE octets, up to 1M (default 64)", OPT_SIZE, AT(size), 0, PING_SIZE_MAX},
    {'S', "size", "SIZE", NULL, OPT_SIZE, AT(size), 0, PING_SIZE_MAX},
    {'i', "interval", "SECONDS", "start a round trip every SECONDS (default 1, with --rping 0)", OPT_SECONDS,
     AT(interval_s), 0, 0},
    {'W', "timeout", "SECONDS", "wait this long for an answer (default 5)", OPT_SECONDS, AT(timeout_s), 0, 0},
    {'1', "once", NULL, "server: end when the first client has left", OPT_FLAG, AT(once), 0, 0},
    {'q', "quiet", NULL, "print no line for each round trip or client", OPT_FLAG, AT(quiet), 0, 0},
    {0, "json", NULL, "client: print the summary as one JSON object, and nothing else", OPT_FLAG, AT(json), 0, 0},
    {0, "rping", NULL, "speak the protocol of rdma-core's rping", OPT_FLAG, AT(rping), 0, 0},
    {'V', "verify", NULL, "rping client: compare what comes back; without --rping this is always done", OPT_FLAG,
     AT(verify), 0, 0},
    {'v', "verbose", NULL, "rping: print the data", OPT_FLAG, AT(verbose), 0, 0},
    {'P', "persistent", NULL, "rping server: serve one client after another", OPT_FLAG, AT(persistent), 0, 0},
    {0},
};

static void check_client(const struct ping_options *options)
{
    if (options->once || options->persistent)
        usage_error("--once and --persistent need --server");
    if (!options->rping && (options->verify || options->verbose))
        usage_error("--verify and --verbose need --rping");
    if (options->rping && (options->size < RPING_SIZE_MIN || options->size > RPING_SIZE_MAX))
        usage_error("--size: must be from %d to %d with --rping", RPING_SIZE_MIN, RPING_SIZE_MAX);
}

static void check_server(struct ping_options *options)
{
    if (options->json)
        usage_error("--json is for a client, not for --server");
    if (options->persistent && options->once)
        usage_error("give either --persistent or --once, not both");
    if (options->persistent && !options->rping)
        usage_error("--persistent needs --rping: other servers run until a signal comes, unless --once is given");
    if (options->rping && options->size > RPING_SIZE_MAX + 1)
        usage_error("--size: must be from %d to %d with --rping", RPING_SIZE_MIN, RPING_SIZE_MAX);
    /* As rping's own server does. */
    if (options->rping)
        options->once = !options->persistent;
}

static int ping_run(const struct command *command, int argc, char **argv)
{
    enum { UNSET = PING_SIZE_MAX + 1 };
    struct ping_options options = {.size = UNSET, .interval_s = -1, .timeout_s = 5, .port = UINT64_MAX};
    rddp_wire_attr_init(&options.wire);
    int first = opt_parse(command, argc, argv, &options, &options.wire);
    const char *host = first < argc ? argv[first] : options.address;
    if (argc - first > 1 || (first < argc && (options.server || options.address)))
        usage_error("expected one HOST, got '%s' as well", argv[argc - 1]);
    if (!options.server && !host)
        usage_error("expected HOST or --server");

    if (options.port == UINT64_MAX)
        options.port = options.rping ? RPING_PORT : PING_PORT;
    if (options.size == UNSET)
        options.size = !options.server ? PING_SIZE : options.rping ? RPING_SIZE_MAX + 1 : PING_SIZE_MAX;
    if (options.interval_s < 0)
        options.interval_s = options.rping ? 0 : 1;
    if (options.server)
        check_server(&options);
    else
        check_client(&options);

    struct target target;
    int code = target_parse(&target, host, (uint16_t)options.port, options.server);
    if (code)
        return code;
    catch_signals();
    return options.server ? ping_server(&options, options.rping ? &rping_service : &echo_service, &target)
                          : ping_client(&options, options.rping ? &rping_trip : &echo_trip, &target);
}

const struct command ping_command = {
    .name = "ping",
    .summary = "round trips to a peer, each verified; rping's protocol too",
    .usage = "[options] HOST[:PORT]\n--server [options]",
    .text = "Sends messages that the server sends back, compares them, and prints how long each took.",
    .opts = opts,
    .wire = true,
    .packet = true,
    .run = ping_run,
};
