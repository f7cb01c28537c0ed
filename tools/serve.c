/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve.c - `rddp serve`: sends and receives the files of one directory, with a thread for each client. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rpc/eviction.h"
#include "tools/serve/serve_inner.h"

struct serve_options {
    struct serve serve;
    const char *address;
    uint64_t port;
    struct opt_list allow;
};

#define AT(field) offsetof(struct serve_options, field)

static const struct opt opts[] = {
    {'a', "address", "ADDR", "listen on this address only", OPT_TEXT, AT(address), 0, 0},
    {'p', "port", "PORT", "listen on this port (default 18516); 0 picks a free one", OPT_U64, AT(port), 0, 65535},
    {0, "allow", "NET", "serve only these clients: 10.0.0.0/8, fd77::1; may be repeated", OPT_LIST, AT(allow), 0, 0},
    {0, "read-only", NULL, "send files, receive none", OPT_FLAG, AT(serve.read_only), 0, 0},
    {0, "sync", NULL, "fsync each file before renaming it to its name", OPT_FLAG, AT(serve.sync), 0, 0},
    {0, "clients", "N", "serve at most N clients at once (default 64)", OPT_U64, AT(serve.clients), 1, SERVE_CLIENTS},
    {0, "buffer", "SIZE", "buffer for each client, at least bandwidth times delay (default 16M)", OPT_SIZE,
     AT(serve.ring), XFER_RING_MIN, XFER_RING_MAX},
    {'1', "once", NULL, "exit when the first client has left", OPT_FLAG, AT(serve.once), 0, 0},
    {'q', "quiet", NULL, "print no line for each client", OPT_FLAG, AT(serve.quiet), 0, 0},
    {0},
};

/* `version` is the protocol version of the peer; 0: it speaks another protocol. */
static void serve_refuse(struct rddp_request *request, unsigned version, enum xfer_result result)
{
    struct sockaddr_storage address = {0};
    char peer[ADDRESS_TEXT];
    uint8_t hello[XFER_HELLO];
    rddp_request_addr(request, &address);
    address_text(peer, &address);
    if (result == XFER_OTHER_VERSION && version)
        warn_seldom("%s: refused: its rddp speaks version %u of the copying protocol, this one version %d", peer,
                    version, XFER_VERSION);
    else
        warn_seldom("%s: refused: %s", peer,
                    result == XFER_OTHER_VERSION ? "not an `rddp cp`"
                    : result == XFER_NO_ACCESS   ? "no --allow has its address"
                                                 : xfer_result_text(result));
    xfer_hello_encode(hello, version ? version : XFER_VERSION, result);
    rddp_reject(request, hello, sizeof(hello));
}

/* Makes way for another client, if all places are taken. Returns false if none gives way. */
static bool serve_make_place(struct serve *serve, const struct sockaddr_storage *peer)
{
    enum { SESSIONS = sizeof(serve->session) / sizeof(serve->session[0]) };
    const struct eviction_limits limits = {(unsigned)serve->clients, (unsigned)serve->clients, SERVE_REST_MS};
    struct rpc_eviction place[SERVE_CLIENTS];
    struct session *session[SERVE_CLIENTS];
    unsigned n = 0;
    for (unsigned i = 0; i < SESSIONS && n < SERVE_CLIENTS; i++) {
        struct session *s = serve->session[i];
        if (!s || s->leaving || atomic_load(&s->over))
            continue;
        uint64_t moved_ns = atomic_load_explicit(&s->copy.moved_ns, memory_order_relaxed), now_ns = clock_ns();
        place[n] = (struct rpc_eviction){.peer = &s->address,
                                         .idle_ms = now_ns > moved_ns ? (now_ns - moved_ns) / 1000000 : 0};
        session[n++] = s;
    }
    int found = eviction_find_fair(place, n, &limits, peer);
    if (found >= 0) {
        warn_seldom("%s: ended, to serve another client", session[found]->peer);
        session[found]->leaving = true;
        rddp_fail_qp(session[found]->qp);
    }
    return found != PLACE_NONE;
}

/* Returns where a session can be kept, or NULL. */
static struct session **serve_find_entry(struct serve *serve)
{
    for (unsigned i = 0; i < sizeof(serve->session) / sizeof(serve->session[0]); i++) {
        if (!serve->session[i])
            return &serve->session[i];
    }
    return NULL;
}

static void serve_take_request(struct serve *serve, const struct rddp_event *event)
{
    enum xfer_result hello = xfer_hello_decode(event->private_data, event->private_data_length);
    struct sockaddr_storage peer = {0};
    rddp_request_addr(event->request, &peer);
    if (!clients_have(&serve->allowed, (const struct sockaddr *)&peer)) {
        serve_refuse(event->request, XFER_VERSION, XFER_NO_ACCESS);
        return;
    }
    if (hello && !serve->wire.immediate) {
        serve_refuse(event->request, xfer_hello_version(event->private_data, event->private_data_length),
                     XFER_OTHER_VERSION);
        return;
    }
    struct session **entry = serve_find_entry(serve);
    if (entry && serve_make_place(serve, &peer))
        *entry = session_start(serve, event->request);
    else
        serve_refuse(event->request, XFER_VERSION, XFER_BUSY);
}

/* Frees the sessions that are over. Returns whether there was one. */
static bool reap(struct serve *serve)
{
    bool ended = false;
    for (unsigned i = 0; i < sizeof(serve->session) / sizeof(serve->session[0]); i++) {
        struct session *session = serve->session[i];
        if (!session || !atomic_load(&session->over))
            continue;
        session_end(session);
        serve->session[i] = NULL;
        ended = true;
    }
    return ended;
}

static void wait_for_work(struct serve *serve)
{
    uint64_t count;
    struct pollfd fds[] = {
        {.fd = rddp_event_channel_fd(serve->endpoint.events), .events = POLLIN},
        {.fd = serve->wake, .events = POLLIN},
    };
    /* The timeout is for a signal that comes just before poll(). */
    poll(fds, 2, 500);
    if (read(serve->wake, &count, sizeof(count)) < 0)
        return; /* EAGAIN: no session has ended */
}

/* Ends all sessions. One whose thread waits for the file system cannot be ended; then the process goes without it. */
static void end_sessions(struct serve *serve)
{
    uint64_t until_ns = clock_ns() + SERVE_STOP_MS * 1000000ull;
    unsigned left;
    do {
        left = 0;
        for (unsigned i = 0; i < sizeof(serve->session) / sizeof(serve->session[0]); i++) {
            if (serve->session[i])
                rddp_disconnect(serve->session[i]->qp);
            left += serve->session[i] != NULL;
        }
        if (left)
            wait_for_work(serve);
        reap(serve);
    } while (left && clock_ns() < until_ns);
    if (!left)
        return;
    warn("%s: its file system does not answer: %u cop%s given up", serve->directory, left, left == 1 ? "y" : "ies");
    tool_notify("STOPPING=1");
    fflush(NULL);
    _exit(EXIT_FAILED);
}

static void run_server(struct serve *serve)
{
    struct rddp_event *event;
    bool ended = false;
    while (!tool_stopped && !(serve->once && ended)) {
        wait_for_work(serve);
        ended = reap(serve);
        /* Sessions learn of the other events by their completions. */
        while (endpoint_event(&serve->endpoint, &event)) {
            if (event->type == RDDP_EVENT_CONNECT_REQUEST)
                serve_take_request(serve, event);
            rddp_ack_event(event);
        }
    }
    end_sessions(serve);
}

static int serve_directory(struct serve *serve, const struct target *target)
{
    serve->root = open(serve->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (serve->root < 0)
        return fail(EXIT_FAILED, "%s: %s", serve->directory, error_text(errno));
    /* A walk holds a descriptor for each directory that it is in, and each client may run one. */
    raise_file_limit();
    serve->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int code = serve->wake < 0 ? fail(EXIT_FAILED, "cannot start: %s", error_text(errno)) : 0;
    if (!code)
        code = endpoint_open(&serve->endpoint, &(struct endpoint_attr){.wire = serve->wire.wire, .server = true});
    if (!code)
        code = endpoint_listen(&serve->endpoint, target, &serve->wire, NULL);
    if (!code) {
        tool_notify("READY=1");
        run_server(serve);
        tool_notify("STOPPING=1");
    }
    endpoint_close(&serve->endpoint);
    if (serve->wake >= 0)
        close(serve->wake);
    close(serve->root);
    return code;
}

static int serve_run(const struct command *command, int argc, char **argv)
{
    static struct serve_options options = {.serve = {.ring = XFER_RING, .clients = SERVE_CLIENTS}, .port = XFER_PORT};
    struct target target;
    char error[CLIENTS_TEXT];
    rddp_wire_attr_init(&options.serve.wire);
    int first = opt_parse(command, argc, argv, &options, &options.serve.wire);
    if (argc - first != 1)
        usage_error("expected exactly one DIR");
    if (options.serve.ring % XFER_ALIGN)
        usage_error("--buffer: must be a multiple of %d", XFER_ALIGN);
    options.serve.directory = argv[first];
    int code = target_parse(&target, options.address, (uint16_t)options.port, true);
    if (code)
        return code;
    if (clients_parse(&options.serve.allowed, options.allow.count ? options.allow.word : NULL, error))
        usage_error("--allow: %s", error);
    catch_signals();
    if (!options.address && !options.allow.count && !options.serve.read_only)
        warn("every host that can reach this machine may read and write %s: see --allow, --address and --read-only",
             argv[first]);
    code = serve_directory(&options.serve, &target);
    clients_free(&options.serve.allowed);
    return code;
}

const struct command serve_command = {
    .name = "serve",
    .summary = "a directory whose files `rddp cp` gets and puts",
    .usage = "[options] DIR",
    .text =
        "Clients cannot leave DIR. There is no authentication: whoever can connect can read, and unless --read-only\n"
        "write, what this user can. Serve trusted networks only, and see --allow.",
    .opts = opts,
    .wire = true,
    .packet = true,
    .run = serve_run,
};
