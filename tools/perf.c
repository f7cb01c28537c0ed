/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* perf.c - `rddp perf`: what its options are; client, server, or both in one command. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/lib/packet_options.h"
#include "tools/perf/perf.h"

#define AT(field) offsetof(struct perf_options, field)

static const struct opt opts[] = {
    {0, "server", NULL, "be the other end, for one client after another", OPT_FLAG, AT(server), 0, 0},
    {0, "loopback", NULL, "start a server on 127.0.0.1 and measure against it", OPT_FLAG, AT(loopback), 0, 0},
    {'a', "address", "ADDR", "server and loopback: use this address only", OPT_TEXT, AT(address), 0, 0},
    {'p', "port", "PORT", "use this port (default 18517); server: 0 picks a free one", OPT_U64, AT(port), 0, 65535},
    {'1', "once", NULL, "server: end when the first client has left", OPT_FLAG, AT(once), 0, 0},
    {0, "bw", NULL, "measure bandwidth (default: both)", OPT_FLAG, AT(bandwidth), 0, 0},
    {0, "lat", NULL, "measure latency (default: both)", OPT_FLAG, AT(latency), 0, 0},
    {'s', "size", "SIZES", "1M, or 8:1M (powers of two), or 8,64K,1M (default: --bw 1M, --lat 8); server: the largest",
     OPT_TEXT, AT(size_text), 0, 0},
    {'n', "count", "N", "send N messages in a run", OPT_U64, AT(count), 1, PERF_COUNT_MAX},
    {'t', "time", "SECONDS", "send as many messages as take this long, found by a trial (default 0.5)", OPT_SECONDS,
     AT(seconds), 0, 0},
    {'w', "window", "W", "bandwidth: keep W requests outstanding (default 256, from 64K on 16)", OPT_U64, AT(window), 1,
     PERF_WINDOW_MAX},
    {'r', "repeat", "R", "repeat each run R times and print medians (default 1, with --tcp-ref 5)", OPT_U64, AT(repeat),
     1, PERF_REPEAT_MAX},
    {0, "tcp-ref", NULL, "measure plain TCP in turn with each run, and print the ratio", OPT_FLAG, AT(tcp_ref), 0, 0},
    {'e', "events", NULL, "sleep until something comes, instead of polling; raw TCP too", OPT_FLAG, AT(events), 0, 0},
    {0, "stable", NULL, "bandwidth: promise not to change what is being sent", OPT_FLAG, AT(stable), 0, 0},
    {0, "walk", "SIZE", "bandwidth: walk through SIZE of memory at both ends; raw TCP too", OPT_TEXT, AT(walk_text), 0,
     0},
    {0, "idle", "N", "do only this: open N idle connections and print their memory; server: keep at most N", OPT_U64,
     AT(idle), 1, 1000000},
    {0, "turn", "SECONDS", "server: let a client keep others waiting for this long (default 600)", OPT_SECONDS,
     AT(turn_s), 0, 0},
    {0, "json", NULL, "print one JSON object (doc/perf-json.md)", OPT_FLAG, AT(json), 0, 0},
    {0},
};

/* --- sizes --------------------------------------------------------------------------------------------------- */

static bool parse_one_size(const char *text, uint64_t *size)
{
    return parse_size(text, size) && *size && *size <= PERF_SIZE_MAX;
}

static bool add_sizes(struct perf_options *options, uint64_t from, uint64_t to)
{
    for (uint64_t size = from; size <= to; size *= 2) {
        for (int kind = 0; kind < KINDS; kind++) {
            if (options->size_count[kind] == PERF_SIZES)
                return false;
            options->sizes[kind][options->size_count[kind]++] = size;
        }
    }
    return true;
}

static void parse_sizes(struct perf_options *options)
{
    char copy[256];
    if (strlen(options->size_text) >= sizeof(copy))
        usage_error("--size: too long");
    strcpy(copy, options->size_text);
    for (char *save, *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        uint64_t from, to;
        char *colon = strchr(item, ':');
        if (colon)
            *colon = 0;
        if (!parse_one_size(item, &from) || !parse_one_size(colon ? colon + 1 : item, &to) || to < from)
            usage_error("--size %s: sizes are from 1 to 256M", options->size_text);
        if (!add_sizes(options, from, to))
            usage_error("--size %s: more than %d sizes", options->size_text, PERF_SIZES);
    }
    if (!options->size_count[0])
        usage_error("--size: expected a size");
    options->size_max = 0;
    for (size_t i = 0; i < options->size_count[0]; i++)
        options->size_max = options->sizes[0][i] > options->size_max ? options->sizes[0][i] : options->size_max;
    options->size_max = options->size_max > HEAD ? options->size_max : HEAD;
}

static void parse_walk(struct perf_options *options)
{
    if (!parse_one_size(options->walk_text, &options->walk))
        usage_error("--walk %s: sizes are from 1 to 256M", options->walk_text);
    for (size_t i = 0; options->bandwidth && i < options->size_count[KIND_BANDWIDTH]; i++)
        if (options->sizes[KIND_BANDWIDTH][i] > options->walk)
            usage_error("--walk %s: messages are longer", options->walk_text);
    options->size_max = options->walk > options->size_max ? options->walk : options->size_max;
}

static void default_sizes(struct perf_options *options)
{
    options->sizes[KIND_BANDWIDTH][0] = 1 << 20;
    options->sizes[KIND_LATENCY][0] = 8;
    options->size_count[KIND_BANDWIDTH] = options->size_count[KIND_LATENCY] = 1;
}

/* --- usage --------------------------------------------------------------------------------------------------- */

/* "all" leaves out operations that the chosen wire lacks. */
static bool wire_has(const struct perf_options *options, enum op op)
{
    return op == OP_SWAP        ? options->wire.wire == RDDP_WIRE_IWARP
           : op_is_atomic(op)   ? options->wire.wire == RDDP_WIRE_IWARP || options->wire.wire == RDDP_WIRE_ROCE
           : op == OP_WRITE_IMM ? options->wire.wire != RDDP_WIRE_RDMATCP
                                : true;
}

static void take_op(struct perf_options *options, const char *word)
{
    bool all = !strcmp(word, "all"), known = all;
    for (enum op op = 0; op < OPS; op++) {
        if (strcmp(word, op_names[op]) && !(all && wire_has(options, op)))
            continue;
        known = options->op[op] = true;
        if (!wire_has(options, op))
            usage_error("%s: not possible with %s", word, wire_name(&options->wire));
    }
    if (!known)
        usage_error("no test '%s': write, send, read, write-imm, fetch-add, cmp-swap, swap or all", word);
}

static bool has_op(const struct perf_options *options)
{
    bool has = false;
    for (enum op op = 0; op < OPS; op++)
        has |= options->op[op];
    return has;
}

static void perf_complete(struct perf_options *options)
{
    if (!has_op(options))
        options->op[OP_WRITE] = options->op[OP_SEND] = options->op[OP_READ] = true;
    if (!options->bandwidth && !options->latency)
        options->bandwidth = options->latency = true;
    options->size_max = PERF_SERVER_SIZE;
    if (options->size_text)
        parse_sizes(options);
    else
        default_sizes(options);
    if (options->walk_text)
        parse_walk(options);
    if (!options->repeat)
        options->repeat = options->tcp_ref ? 5 : 1;
    if (options->count && options->seconds > 0)
        usage_error("give either --count or --time, not both");
    if (options->seconds <= 0)
        options->seconds = 0.5;
    if (options->idle && options->wire.immediate)
        usage_error("--idle needs start-up frames: use neither --immediate nor --wire rdmatcp");
    if (options->latency && options->count > 1000000)
        usage_error("--count: must be at most 1000000 for latency");
}

/* --- both ends in one ---------------------------------------------------------------------------------------- */

/* Runs the server in a child, which is forked before any thread or context is. Returns its process, and the port it
 * listens on. */
static pid_t start_server(const struct perf_options *options, const struct target *target, uint16_t *port)
{
    int fds[2];
    if (pipe(fds))
        return -1;
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        close(fds[0]);
        /* A signal from the terminal is for the client, which then ends this one. */
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_DFL);
        exit(perf_server(options, target, fds[1]));
    }
    close(fds[1]);
    if (pid > 0 && read(fds[0], port, sizeof(*port)) != sizeof(*port))
        *port = 0;
    close(fds[0]);
    return pid;
}

static int run_loopback(struct perf_options *options)
{
    struct target target;
    uint16_t port = 0;
    const char *address = options->address ? options->address : "127.0.0.1";
    options->once = true;
    int code = target_parse(&target, address, 0, true);
    if (code)
        return code;
    pid_t pid = start_server(options, &target, &port);
    if (pid < 0)
        return fail(EXIT_FAILED, "cannot start a server: %s", error_text(errno));
    int status = 0;
    if (port) {
        code = target_parse(&target, address, port, false);
        if (!code)
            code = perf_client(options, &target);
        /* A client that has failed may never have been there. */
        if (code)
            kill(pid, SIGTERM);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!port)
        return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILED;
    if (!code && (!WIFEXITED(status) || WEXITSTATUS(status)))
        return fail(EXIT_FAILED, "the server it started has failed");
    return code;
}

static int perf_run(const struct command *command, int argc, char **argv)
{
    static struct perf_options options;
    options.port = PERF_PORT;
    options.turn_s = PERF_TURN_S;
    rddp_wire_attr_init(&options.wire);
    int first = opt_parse(command, argc, argv, &options, &options.wire);
    if (options.server && options.loopback)
        usage_error("give either --server or --loopback, not both");
    bool remote = !options.server && !options.loopback;
    if (options.server && first < argc)
        usage_error("--server takes no operand, got '%s'", argv[first]);
    if (remote && first == argc)
        usage_error("expected HOST, --loopback or --server");
    const char *host = remote ? argv[first++] : options.address;
    for (; first < argc; first++)
        take_op(&options, argv[first]);
    perf_complete(&options);
    catch_signals();
    if (options.loopback && packet_options.address)
        usage_error("give either --loopback or --packet, not both");
    if (options.loopback)
        return run_loopback(&options);

    struct target target;
    int code = target_parse(&target, host, (uint16_t)options.port, options.server);
    if (code)
        return code;
    return options.server ? perf_server(&options, &target, -1) : perf_client(&options, &target);
}

const struct command perf_command = {
    .name = "perf",
    .summary = "bandwidth and latency, beside raw TCP if wanted",
    .usage = "[options] HOST[:PORT] [OPERATION...]\n--loopback [options] "
             "[write|send|read|write-imm|fetch-add|cmp-swap|swap|all]\n--server [options]",
    .text =
        "Operations are write, send, read (these three by default), write-imm (Write with immediate data), fetch-add,\n"
        "cmp-swap, swap (atomics, 8 octets), and all. Both sides poll. The last message of each run is compared, so\n"
        "nothing is counted that did not arrive.",
    .opts = opts,
    .wire = true,
    .packet = true,
    .run = perf_run,
};
