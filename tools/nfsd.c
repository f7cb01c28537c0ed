/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd.c - `rddp nfsd`: an NFS version 3 server for directories, over RDMA and TCP. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nfs/rpcbind.h"
#include "nfs/server/nfsd.h"
#include "tools/lib/packet_options.h"

enum { EXPORTS_MAX = 64, BOUND_MAX = 6 };

struct nfsd_options {
    const char *address, *state;
    uint64_t rdma_port, tcp_port, mount_port, memory;
    bool no_tcp, read_only, async, rpcbind, quiet;
    int squash; /* enum squash, in the order of the option's words */
    uint32_t anon_uid, anon_gid, workers, credits, connections;
    struct opt_list allow;
    struct rddp_wire_attr wire;
};

#define AT(field) offsetof(struct nfsd_options, field)

static const struct opt opts[] = {
    {'a', "address", "ADDR", "listen on this address only", OPT_TEXT, AT(address), 0, 0},
    {'p', "port", "PORT", "listen on this port for NFS over TCP (default 2049); 0 picks a free one", OPT_U64,
     AT(tcp_port), 0, 65535},
    {0, "rdma-port", "PORT", "listen on this port for NFS over RDMA (default 20049)", OPT_U64, AT(rdma_port), 0, 65535},
    {0, "mount-port", "PORT", "listen on this port for MOUNT over TCP (default 20048)", OPT_U64, AT(mount_port), 0,
     65535},
    {0, "no-tcp", NULL, "serve NFS over RDMA only", OPT_FLAG, AT(no_tcp), 0, 0},
    {0, "ro", NULL, "serve read-only", OPT_FLAG, AT(read_only), 0, 0},
    {0, "async", NULL, "answer before changes are on the disk", OPT_FLAG, AT(async), 0, 0},
    {0, "squash", "root|all|none", "map root (default) or all users to the anonymous user", OPT_CHOICE, AT(squash), 0,
     0},
    {0, "anon-uid", "UID", "map to this user (default 65534)", OPT_U32, AT(anon_uid), 0, UINT32_MAX - 1},
    {0, "anon-gid", "GID", "map to this group (default 65534)", OPT_U32, AT(anon_gid), 0, UINT32_MAX - 1},
    {0, "allow", "NET", "serve only these clients: 10.0.0.0/8, fd77::1; may be repeated", OPT_LIST, AT(allow), 0, 0},
    {0, "state", "DIR", "keep the key of file handles here (default /var/lib/rddp)", OPT_TEXT, AT(state), 0, 0},
    {0, "workers", "N", "run N threads for calls of an export that wait for its disk (default 4)", OPT_U32, AT(workers),
     1, 64},
    {0, "credits", "N", "grant N parallel calls to an RDMA connection (default 64)", OPT_U32, AT(credits), 1, 1024},
    {0, "connections", "N", "limit connections, RDMA and TCP each (default 256, half for one address)", OPT_U32,
     AT(connections), 1, 4096},
    {0, "memory", "SIZE", "limit the memory held by calls (default 512M)", OPT_SIZE, AT(memory), 16 << 20, 1ULL << 40},
    {0, "rpcbind", NULL, "register at the local rpcbind", OPT_FLAG, AT(rpcbind), 0, 0},
    {'q', "quiet", NULL, "print nothing", OPT_FLAG, AT(quiet), 0, 0},
    {0},
};

/* --- signals ------------------------------------------------------------------------------------------------- */

static struct nfsd *running;

static void stop_server(int number)
{
    (void)number;
    tool_stopped = 1;
    if (running)
        nfsd_stop(running);
}

static void catch_stop(void)
{
    struct sigaction action = {.sa_handler = stop_server};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* --- the state directory ------------------------------------------------------------------------------------- */

/* Creates each missing directory of the path, accessible to this user only. */
static int nfsd_make_path(const char *path)
{
    char part[4096];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof(part))
        return -ENAMETOOLONG;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i])
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0700) && errno != EEXIST)
            return -errno;
    }
    return 0;
}

/* Creates the state directory. Without one, file handles are valid for this run only; that is an error only if --state
 * was given. */
static int state_directory(struct nfsd_options *options)
{
    static char text[4096];
    const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME");
    bool asked = options->state;
    int error;

    if (!asked && geteuid() == 0)
        options->state = "/var/lib/rddp";
    else if (!asked) {
        snprintf(text, sizeof(text), "%s%s/rddp",
                 state && *state ? state
                 : home          ? home
                                 : "",
                 state && *state ? "" : "/.local/state");
        options->state = text;
    }
    error = nfsd_make_path(options->state);
    if (!error && access(options->state, W_OK))
        error = -errno;
    if (error && asked)
        return fail(EXIT_FAILED, "--state %s: %s", options->state, error_text(error));
    if (error) {
        warn("%s: %s: clients will have to mount again after a restart", options->state, error_text(error));
        options->state = NULL;
    }
    return 0;
}

/* --- rpcbind ------------------------------------------------------------------------------------------------- */

static struct bound {
    uint32_t program;
    const char *netid;
} bound[BOUND_MAX];
static int bounds;

static int bind_one(uint32_t program, const char *netid, int port)
{
    int error = port < 0 ? 0 : rpcbind_set(program, 3, netid, (uint16_t)port);

    if (error == -EEXIST)
        return fail(EXIT_FAILED, "rpcbind has another %s registered over %s", program == NFS_PROGRAM ? "NFS" : "MOUNT",
                    netid);
    if (error)
        return fail(EXIT_FAILED, "cannot register at rpcbind: %s", error_text(error));
    if (port >= 0)
        bound[bounds++] = (struct bound){program, netid};
    return 0;
}

static void unbind_all(void)
{
    while (bounds) {
        bounds--;
        rpcbind_unset(bound[bounds].program, 3, bound[bounds].netid);
    }
}

static int bind_all(const struct nfsd *d)
{
    const struct {
        uint32_t program;
        const char *netid;
        int port;
    } all[BOUND_MAX] = {
        {NFS_PROGRAM, "tcp", nfsd_tcp_port(d)},     {NFS_PROGRAM, "tcp6", nfsd_tcp_port(d)},
        {NFS_PROGRAM, "rdma", nfsd_rdma_port(d)},   {NFS_PROGRAM, "rdma6", nfsd_rdma_port(d)},
        {MOUNT_PROGRAM, "tcp", nfsd_mount_port(d)}, {MOUNT_PROGRAM, "tcp6", nfsd_mount_port(d)},
    };
    int code = 0;

    for (int i = 0; i < BOUND_MAX && !code; i++)
        code = bind_one(all[i].program, all[i].netid, all[i].port);
    return code;
}

/* --- output -------------------------------------------------------------------------------------------------- */

/* A host as it is written before a colon. */
struct host_text {
    char text[300];
};

static struct host_text host_text(const char *host)
{
    struct host_text t;

    snprintf(t.text, sizeof(t.text), strchr(host, ':') ? "[%.280s]" : "%.280s", host);
    return t;
}

static void print_ports(const char *host, const struct nfsd *d, bool tcp)
{
    printf("listening on ");
    if (tcp)
        printf("%s:%d (TCP), ", host, nfsd_tcp_port(d));
    printf("%s:%d (RDMA), %s:%d (MOUNT)\n", host, nfsd_rdma_port(d), host, nfsd_mount_port(d));
}

static void print_ready(const struct nfsd_options *options, const struct nfsd *d, const struct nfs_server *server)
{
    char name[256] = "localhost";
    struct host_text host;

    if (!options->address && gethostname(name, sizeof(name) - 1))
        strcpy(name, "localhost");
    host = host_text(options->address ? options->address : name);
    print_ports(options->address ? host.text : "*", d, !options->no_tcp);
    for (unsigned i = 0; i < server->exports; i++) {
        const char *path = server->export[i].path;

        printf("mount -t nfs -o vers=3,proto=rdma,port=%d,nolock,mountproto=tcp,mountport=%d %s:%s /mnt\n",
               nfsd_rdma_port(d), nfsd_mount_port(d), host.text, path);
        if (!options->no_tcp)
            printf("mount -t nfs -o vers=3,proto=tcp,port=%d,nolock,mountproto=tcp,mountport=%d %s:%s /mnt\n",
                   nfsd_tcp_port(d), nfsd_mount_port(d), host.text, path);
    }
    fflush(stdout);
}

/* Warns that the server is open to every host, in case that was not intended. */
static void warn_of_open_server(const struct nfsd_options *options)
{
    if (!options->address && !options->allow.count && !options->read_only)
        warn("every host that can reach this machine may read and write here: see --allow, --address and --ro");
}

static void print_end(struct nfsd *d)
{
    struct nfsd_stats stats;

    nfsd_stats(d, &stats);
    printf("%llu calls, %llu octets read, %llu written", (unsigned long long)stats.calls,
           (unsigned long long)stats.read_octets, (unsigned long long)stats.written_octets);
    if (packet_options.address)
        printf(", %llu placed", (unsigned long long)stats.placed_octets);
    putchar('\n');
}

/* --- serving ------------------------------------------------------------------------------------------------- */

static void nfsd_say(void *user, const char *line)
{
    (void)user;
    warn("%s", line);
}

static void nfsd_close_net(struct rddp_stream_net *net)
{
    if (net)
        rddp_stream_net_close(net);
}

static int nfsd_serve(const struct nfsd_options *options, struct nfs_server *server)
{
    char message[EXPORT_TEXT];
    struct nfsd_attr attr;
    struct sockaddr_storage own;
    int code, error;

    nfsd_attr_init(&attr);
    attr.address = options->address;
    attr.rdma_port = (int)options->rdma_port;
    attr.tcp_port = options->no_tcp ? -1 : (int)options->tcp_port;
    attr.mount_port = (int)options->mount_port;
    attr.workers = options->workers;
    attr.credits = options->credits;
    attr.connections_max = options->connections;
    attr.memory_max = options->memory;
    attr.wire = options->wire;
    attr.server = server;
    attr.log = nfsd_say;
    code = packet_nfs_net(&attr.net, &own);
    if (code)
        return code;
    running = nfsd_open(&attr, message);
    if (!running) {
        code = fail(EXIT_CONNECT, "%s", message);
        nfsd_close_net(attr.net);
        return code;
    }
    if (options->rpcbind)
        code = bind_all(running);
    if (!code)
        warn_of_open_server(options);
    if (!code && !options->quiet)
        print_ready(options, running, server);
    if (!code) {
        tool_notify("READY=1");
        error = tool_stopped ? 0 : nfsd_run(running);
        code = error ? fail(EXIT_FAILED, "the server failed: %s", error_text(error)) : 0;
        tool_notify("STOPPING=1");
    }
    unbind_all();
    if (!code && !options->quiet)
        print_end(running);
    struct nfsd *d = running;
    running = NULL;
    if (!nfsd_close(d)) {
        warn("calls still wait for the file system of an export; they got no answer");
        fflush(stdout);
        _exit(code);
    }
    nfsd_close_net(attr.net);
    return code;
}

static int with_objects(const struct nfsd_options *options, struct nfs_server *server)
{
    char error[EXPORT_TEXT];
    struct objects_attr attr;

    objects_attr_init(&attr);
    attr.export = server->export;
    attr.exports = server->exports;
    attr.state = options->state;
    server->objects = objects_open(&attr, error);
    if (!server->objects)
        return fail(EXIT_FAILED, "%s", error);
    if (getrandom(server->write_verifier, sizeof(server->write_verifier), 0) != sizeof(server->write_verifier))
        return fail(EXIT_FAILED, "cannot get random octets: %s", error_text(errno));
    int code = nfsd_serve(options, server);
    objects_close(server->objects);
    return code;
}

static int with_exports(const struct nfsd_options *options, char **directory, unsigned n)
{
    static struct export export[EXPORTS_MAX];
    struct nfs_server server = {.export = export};
    char error[EXPORT_TEXT];
    struct export_attr attr;
    int code = 0;

    if (geteuid() == 0 && !identity_can_change() && !identity_is_alone())
        return fail(EXIT_FAILED, "user 0 without CAP_SETUID and CAP_SETGID would execute all calls as root: "
                                 "grant both, or run as another user");
    export_attr_init(&attr);
    attr.read_only = options->read_only;
    attr.async = options->async;
    attr.squash = (enum squash)options->squash;
    attr.anon_uid = options->anon_uid;
    attr.anon_gid = options->anon_gid;
    attr.clients = options->allow.count ? options->allow.word : NULL;
    while (server.exports < n && !code) {
        if (export_open(&export[server.exports], directory[server.exports], &attr, error))
            code = fail(EXIT_FAILED, "%s", error);
        else
            export[server.exports++].attr.clients = attr.clients; /* the procedure EXPORT lists them */
    }
    if (!code)
        code = with_objects(options, &server);
    while (server.exports)
        export_close(&export[--server.exports]);
    return code;
}

static int nfsd_main(const struct command *command, int argc, char **argv)
{
    static struct nfsd_options options = {.rdma_port = NFS_RDMA_PORT,
                                          .tcp_port = NFS_PORT,
                                          .mount_port = MOUNT_PORT,
                                          .memory = 512 << 20,
                                          .anon_uid = 65534,
                                          .anon_gid = 65534,
                                          .workers = 4,
                                          .credits = 64,
                                          .connections = 256};

    rddp_wire_attr_init(&options.wire);
    int first = opt_parse(command, argc, argv, &options, &options.wire);
    if (first == argc)
        usage_error("expected at least one DIR");
    if (argc - first > EXPORTS_MAX)
        usage_error("expected at most %d DIRs", EXPORTS_MAX);
    catch_stop();
    raise_file_limit(); /* each connection and each open file needs a descriptor */
    int code = state_directory(&options);
    return code ? code : with_exports(&options, argv + first, (unsigned)(argc - first));
}

const struct command nfsd_command = {
    .name = "nfsd",
    .summary = "directories as an NFS server, over RDMA and TCP",
    .usage = "[options] DIR...",
    .text = "Clients mount each DIR by its path; the lines to do it with are printed. The user that a client names is\n"
            "believed (AUTH_SYS), and nothing is encrypted: serve trusted networks only, and see --allow.",
    .opts = opts,
    .wire = true,
    .packet = true,
    .run = nfsd_main,
};
