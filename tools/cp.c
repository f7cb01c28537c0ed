/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cp.c - `rddp cp`: copies a file or a tree to or from an `rddp serve`. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cp/cp.h"

#define AT(field) offsetof(struct cp_options, field)

static const struct opt opts[] = {
    {'r', "recursive", NULL, "copy directories and their contents", OPT_FLAG, AT(recursive), 0, 0},
    {'p', "port", "PORT", "connect to this port (default 18516)", OPT_U64, AT(port), 1, 65535},
    {'q', "quiet", NULL, "print failures only", OPT_FLAG, AT(quiet), 0, 0},
    {0, "json", NULL, "print the summary as one JSON object, and no progress", OPT_FLAG, AT(json), 0, 0},
    {0, "list", NULL, "list HOST:PATH, with -r everything below it", OPT_FLAG, AT(list), 0, 0},
    {'n', "dry-run", NULL, "print what would be copied, and change nothing", OPT_FLAG, AT(dry), 0, 0},
    {0, "checksum", NULL, "compare the octets of files with the same size and time", OPT_FLAG, AT(checksum), 0, 0},
    {0, "no-resume", NULL, "send every file from its beginning", OPT_UNFLAG, AT(resume), 0, 0},
    {0, "links", "keep|skip|follow", "for symbolic links that lead out: fail, skip, or (push) copy their target",
     OPT_CHOICE, AT(links), 0, 0},
    {0, "sync", NULL, "pull: fsync each file before renaming it to its name", OPT_FLAG, AT(sync), 0, 0},
    {0},
};

struct cp {
    struct cp_options options;
    struct tool_endpoint endpoint;
    struct rddp_qp *qp;
    struct xfer_copy copy;
    struct cp_report report;
    struct cp_remote remote;
    struct cp_list list;
    const char *local;
    bool pull;
    bool many; /* several sources: DST must be a directory, and nothing is copied as DST itself */
    int top;   /* push: a descriptor of the source */
    bool top_is_directory;
};

/* --- the connection ------------------------------------------------------------------------------------------ */

/* Explains why the server refused the connection, or which protocol version it speaks. Returns the exit code. */
static int explain_hello(const struct target *target, const uint8_t reply[XFER_HELLO], int code)
{
    enum xfer_result said = xfer_hello_decode(reply, XFER_HELLO);
    unsigned version = xfer_hello_version(reply, XFER_HELLO);
    if (version && version != XFER_VERSION)
        return fail(EXIT_PROTOCOL,
                    "%s: its rddp speaks version %u of the copying protocol, this one version %d: update the older",
                    target->text, version, XFER_VERSION);
    if (code == EXIT_CONNECT && said != XFER_OTHER_VERSION)
        return fail(code, "the server says: %s", xfer_result_text(said));
    return code ? code : fail(EXIT_PROTOCOL, "%s: %s", target->text, xfer_result_text(said));
}

static int cp_dial(struct cp *cp)
{
    struct target target;
    struct rddp_qp_attr qp_attr;
    struct rddp_conn_attr conn_attr;
    uint8_t hello[XFER_HELLO], reply[XFER_HELLO] = {0};
    uint16_t reply_length = sizeof(reply);
    int code = target_parse(&target, cp->remote.host, (uint16_t)cp->options.port, false);
    if (!code)
        code = endpoint_open(&cp->endpoint, &(struct endpoint_attr){.wire = cp->options.wire.wire});
    if (!code)
        code = xfer_link_open(&cp->copy.link, &cp->endpoint);
    if (code)
        return code;
    rddp_conn_attr_init(&conn_attr);
    conn_attr.wire = cp->options.wire;
    xfer_hello_encode(hello, XFER_VERSION, XFER_OK);
    conn_attr.private_data = hello;
    conn_attr.private_data_length = cp->options.wire.immediate ? 0 : XFER_HELLO;
    xfer_link_qp_attr(&qp_attr);
    code = endpoint_connect(&cp->endpoint, &target, &qp_attr, &conn_attr, xfer_link_prepare, &cp->copy.link, &cp->qp,
                            reply, &reply_length);
    cp->copy.link.qp = cp->qp;
    bool refused = !code && !cp->options.wire.immediate && xfer_hello_decode(reply, sizeof(reply));
    return refused || code == EXIT_CONNECT ? explain_hello(&target, reply, code) : code;
}

static void hang_up(struct cp *cp)
{
    copy_close(&cp->copy);
    if (cp->qp && cp->copy.link.state == LINK_UP)
        endpoint_disconnect(&cp->endpoint, cp->qp, XFER_BYE_MS);
    if (cp->qp)
        rddp_destroy_qp(cp->qp);
    xfer_link_close(&cp->copy.link);
    endpoint_close(&cp->endpoint);
}

/* --- one copy ------------------------------------------------------------------------------------------------ */

/* Reports in one line why the copy is incomplete. Returns the exit code. */
static int cp_explain(struct cp *cp)
{
    const struct xfer_link *link = &cp->copy.link;
    char name[XFER_TEXT];
    if (tool_stopped)
        return report_failure(&cp->report, stop_code(EXIT_FAILED),
                              "interrupted; the same command again goes on where it ended");
    if (cp->copy.refused) {
        bool broken = cp->copy.refused == XFER_PROTOCOL || cp->copy.refused == XFER_OTHER_VERSION;
        xfer_printable(name, cp->remote.path);
        return report_failure(&cp->report, broken ? EXIT_PROTOCOL : EXIT_FAILED, "%s:%s: %s", cp->remote.host, name,
                              xfer_result_text(cp->copy.refused));
    }
    if (link->state == LINK_BROKEN)
        return report_failure(&cp->report, EXIT_PROTOCOL, "%s: %s", cp->remote.host, link->trouble);
    if (cp->copy.role == COPY_IDLE)
        return report_failure(&cp->report, EXIT_PROTOCOL, "%s: %s before its first message; does it speak %s?",
                              cp->remote.host, link->state == LINK_UP ? "no answer in time" : link->trouble,
                              wire_name(&cp->options.wire));
    return report_failure(&cp->report, EXIT_FAILED, "%s: %s; the same command again goes on where it ended",
                          cp->remote.host, link->state == LINK_UP ? "no answer in time" : link->trouble);
}

/* Whether the directory that is to be pulled does not exist yet. */
static bool cp_is_fresh(const struct cp *cp)
{
    struct stat st;
    char name[XFER_NAME + 1] = "", path[XFER_PATH + XFER_NAME + 3];
    if (cp->options.list || !cp->options.resume)
        return true;
    if (lstat(cp->local, &st))
        return errno == ENOENT;
    if (!cp->remote.contents)
        last_name(name, cp->remote.path);
    int n = snprintf(path, sizeof(path), "%s/%s", cp->local, name);
    return *name && n > 0 && (size_t)n < sizeof(path) && lstat(path, &st) && errno == ENOENT;
}

static int cp_start(struct cp *cp, struct xfer_record *ready)
{
    struct xfer_link *link = &cp->copy.link;
    char name[XFER_NAME + 1] = "";
    bool show = cp->report.terminal && !cp->options.quiet && !cp->options.json;
    if (!cp->pull)
        last_name(name, cp->local);
    unsigned flags = (cp->pull ? XFER_PULL : 0) | (cp->options.recursive ? XFER_RECURSIVE : 0) |
                     (show ? XFER_WANT_TOTAL : 0) | (cp->top_is_directory && !cp->many ? XFER_IS_DIR : 0) |
                     (cp->remote.into ? XFER_INTO : 0) | (cp->options.checksum ? XFER_CHECKSUM : 0) |
                     (cp->options.dry ? XFER_DRY_RUN : 0) | (cp->options.list ? XFER_LIST : 0) |
                     (cp->pull && cp_is_fresh(cp) ? XFER_FRESH : 0);
    xfer_link_put(
        link,
        &(struct xfer_record){
            .type = XFER_START, .key = XFER_MAGIC, .flags = (uint16_t)flags, .path = cp->remote.path, .name = name});
    if (!copy_await(&cp->copy, XFER_READY, ready, XFER_START_MS))
        return cp_explain(cp);
    if (ready->size < XFER_RING_MIN || ready->size > XFER_RING_MAX || ready->size % XFER_ALIGN) {
        xfer_link_blame(link, "invalid size of the ring");
        return cp_explain(cp);
    }
    link->peer_key = ready->key;
    link->peer_ring = ready->address;
    return xfer_link_ring(link, (size_t)ready->size, cp->pull ? LINK_READ : LINK_WRITE);
}

static int become_source(struct cp *cp, unsigned ready_flags)
{
    bool show = cp->report.terminal && !cp->options.quiet && !cp->options.json;
    const struct source_attr attr = {
        .top = cp->top,
        .resume = cp->options.resume && !(cp->top_is_directory && ready_flags & XFER_FRESH),
        .checksum = cp->options.checksum,
        .dry = cp->options.dry,
        .links = cp->options.links,
        .count = show,
    };
    cp->copy.role = COPY_SOURCE;
    return source_open(&cp->copy.source, &cp->copy.link, &cp->copy.tally, &attr);
}

static void open_sink(struct cp *cp, const struct path_place *place, bool is_directory)
{
    struct xfer_sink *sink = &cp->copy.sink;
    sink_open(sink, &cp->copy.link, &cp->copy.tally, place);
    sink->resume = cp->options.resume;
    sink->checksum = cp->options.checksum;
    sink->dry = cp->options.dry;
    sink->list = cp->options.list;
    sink->sync = cp->options.sync;
    sink->skip_links = cp->options.links == LINKS_SKIP;
    sink->order.asked = is_directory ? ORDER_TREE : ORDER_FILE;
    cp->copy.role = COPY_SINK;
}

static int become_sink(struct cp *cp, unsigned ready_flags)
{
    struct path_place place;
    char name[XFER_NAME + 1] = "";
    size_t n = strlen(cp->local);
    unsigned flags =
        (cp->many ? 0 : ready_flags & XFER_IS_DIR) | (cp->many || (n && cp->local[n - 1] == '/') ? XFER_INTO : 0);
    char local[XFER_PATH + 1];
    bool is_directory = ready_flags & XFER_IS_DIR;
    if (is_directory ? !cp->options.recursive : cp->remote.into) {
        xfer_link_blame(&cp->copy.link, "something else than what was asked for");
        return cp_explain(cp);
    }
    if (!cp->remote.contents)
        last_name(name, cp->remote.path);
    while (n > 1 && cp->local[n - 1] == '/')
        n--;
    enum xfer_result result = XFER_TOO_LONG;
    if (n <= XFER_PATH) {
        memcpy(local, cp->local, n);
        local[n] = 0;
        result = path_place(AT_FDCWD, local, name, flags, &place);
    }
    if (result)
        return report_failure(&cp->report, EXIT_FAILED, "%s: %s", cp->local, xfer_result_text(result));
    open_sink(cp, &place, ready_flags & XFER_IS_DIR);
    return 0;
}

static int become_reader(struct cp *cp)
{
    open_sink(cp, &(struct path_place){.base = -1}, true);
    return 0;
}

/* The server's FINISH has its CPU time, and acknowledges our FINISH. */
static int cp_finish(struct cp *cp)
{
    copy_put_finish(&cp->copy, COPY_CPU_UNKNOWN);
    while (copy_runs(&cp->copy)) {
        if (!copy_step(&cp->copy))
            xfer_link_wait(&cp->copy.link, 1000);
    }
    if (!cp->copy.finished || cp->copy.link.state == LINK_BROKEN)
        return cp_explain(cp);
    return cp->copy.tally.failed ? EXIT_FAILED : EXIT_OK;
}

static int cp_copy(struct cp *cp)
{
    struct xfer_record ready;
    int code = cp_start(cp, &ready);
    if (!code)
        code = cp->options.list ? become_reader(cp)
               : cp->pull       ? become_sink(cp, ready.flags)
                                : become_source(cp, ready.flags);
    while (!code && copy_runs(&cp->copy) && !copy_over(&cp->copy)) {
        if (!copy_step(&cp->copy))
            xfer_link_wait(&cp->copy.link, 100);
        report_progress(&cp->report);
    }
    if (code)
        return code;
    return copy_over(&cp->copy) && copy_runs(&cp->copy) ? cp_finish(cp) : cp_explain(cp);
}

/* --- the command --------------------------------------------------------------------------------------------- */

static int cp_open_source(struct cp *cp)
{
    struct stat st;
    char name[XFER_TEXT];
    /* A pipe or a device would notice that it is opened. */
    int missing = stat(cp->local, &st);
    if (!missing && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return fail(EXIT_FAILED, "%s: %s", xfer_printable(name, cp->local), xfer_result_text(XFER_NOT_FILE));
    cp->top = missing ? -1 : open(cp->local, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (cp->top < 0 || fstat(cp->top, &st))
        return fail(EXIT_FAILED, "%s: %s", xfer_printable(name, cp->local), error_text(errno));
    cp->top_is_directory = S_ISDIR(st.st_mode);
    if (cp->top_is_directory && !cp->options.recursive)
        return fail(EXIT_FAILED, "%s: %s", xfer_printable(name, cp->local), xfer_result_text(XFER_NOT_RECURSIVE));
    return 0;
}

static int run_cp(struct cp *cp)
{
    int code = cp->pull ? 0 : cp_open_source(cp);
    if (!code)
        code = cp_dial(cp);
    if (!code) {
        report_start(&cp->report);
        if (cp->options.list)
            list_start(&cp->list, &cp->copy.tally);
        code = cp_copy(cp);
        rddp_query_qp(cp->qp, &cp->report.connection);
        if (cp->options.list)
            list_end(&cp->list, code);
        else if (cp->copy.role != COPY_IDLE || cp->options.json)
            report_end(&cp->report, code);
    }
    hang_up(cp);
    if (cp->top >= 0)
        close(cp->top);
    return code;
}

/* Copies one of the sources over its own connection. */
static int run_one(const struct cp_options *options, const char *source, const char *destination, bool many)
{
    struct cp *cp = calloc(1, sizeof(*cp));
    if (!cp)
        return fail(EXIT_FAILED, "out of memory");
    cp->options = *options;
    cp->top = -1;
    cp->pull = is_remote(source);
    cp->list = (struct cp_list){.options = &cp->options, .remote = &cp->remote};
    cp->many = many;
    cp->local = cp->pull ? destination : source;
    cp->report = (struct cp_report){
        .options = &cp->options, .copy = &cp->copy, .pull = cp->pull, .source = source, .destination = destination};
    int code = remote_parse(&cp->remote, cp->pull ? source : destination);
    cp->remote.into |= many && !cp->pull;
    if (!code)
        code = run_cp(cp);
    free(cp);
    return code;
}

static void check_words(const struct cp_options *options, int argc, char **argv, int first)
{
    int last = options->list ? argc : argc - 1;
    if (options->list && last <= first)
        usage_error("expected HOST: or HOST:PATH to list");
    if (!options->list && last <= first)
        usage_error("expected SRC and DST");
    for (int i = first; i < last; i++) {
        if (options->list && !is_remote(argv[i]))
            usage_error("'%s' is not HOST:PATH", argv[i]);
        if (!options->list && is_remote(argv[i]) == is_remote(argv[last]))
            usage_error("expected one of SRC and DST to be HOST:PATH (write ./NAME for a local name with a colon)");
        if (is_remote(argv[i]) && options->links == LINKS_FOLLOW)
            usage_error("--links=follow: the server does not follow links");
    }
    if (options->checksum && !options->resume)
        usage_error("--checksum and --no-resume exclude each other");
}

static int cp_run(const struct command *command, int argc, char **argv)
{
    struct cp_options options = {.port = XFER_PORT, .resume = true};
    rddp_wire_attr_init(&options.wire);
    int first = opt_parse(command, argc, argv, &options, &options.wire), code = EXIT_OK;
    int last = options.list ? argc : argc - 1;
    check_words(&options, argc, argv, first);
    catch_signals();
    for (int i = first; i < last && !tool_stopped && code != EXIT_CONNECT; i++) {
        int one = run_one(&options, argv[i], options.list ? "" : argv[last], last - first > 1);
        code = one ? one : code;
    }
    return code;
}

const struct command cp_command = {
    .name = "cp",
    .summary = "copy files to and from an `rddp serve`, by RDMA, verified",
    .usage = "[options] [-r] SRC... HOST:DST\n[options] [-r] HOST:SRC... DST\n[options] [-r] --list HOST:[PATH]...",
    .text = "Copies a file, or with -r a tree. Mode and modification time are kept, every file that moves is verified\n"
            "by checksum, a file of the same size and time is left alone, and a transfer that broke off goes on when\n"
            "the same command is given again.",
    .opts = opts,
    .wire = true,
    .packet = true,
    .run = cp_run,
};
