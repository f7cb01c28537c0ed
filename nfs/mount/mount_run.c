/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount_run.c - the life of a mount: mounts, serves the kernel in one thread, and unmounts. */
#ifdef RDDP_FUSE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "tools/lib/packet_options.h"
#include "nfs/mount/mount.h"

enum {
    BUSY_MS = 100, /* how often time-outs are checked while calls are under way */
    IDLE_MS = 1000,
    BATCH = 64,     /* requests of the kernel taken in a row */
    UNMOUNT_S = 10, /* limit from a signal to the end, even if the mount is still in use */
    READAHEAD_KIB = 8192,
    BLOCK_KEPT = 4 << 20, /* malloc() keeps freed memory up to this size */
};

/* --- the client ------------------------------------------------------------------------------------------------ */

static int exit_code_of(int error)
{
    switch (error) {
    case ECONNREFUSED:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNRESET:
    case ECONNABORTED:
        return EXIT_CONNECT;
    case EPROTO:
    case EPROTONOSUPPORT:
        return EXIT_PROTOCOL;
    default:
        return EXIT_FAILED;
    }
}

/* Writes a log line where the user expects it: to syslog in the background, else to stderr. */
static void mount_run_say(void *user, enum rddp_log_level level, const char *line)
{
    const struct mount *m = user;

    if (m->in_background)
        syslog(level == RDDP_LOG_ERROR ? LOG_ERR : LOG_WARNING, "rddp mount: %s: %s", m->options->dir, line);
    else
        warn("%s", line);
}

static int open_client(struct mount *m)
{
    const struct mount_options *o = m->options;
    char error[NFS_CLIENT_TEXT] = "";
    struct nfs_client_attr attr;
    int code;

    nfs_client_attr_init(&attr);
    code = packet_nfs_net(&m->net, &attr.own);
    if (code)
        return code;
    attr.net = m->net;
    attr.host = o->host;
    attr.path = o->path;
    attr.port = o->port ? o->port : packet_options.address ? NFS_PORT : NFS_RDMA_PORT;
    attr.mount_port = o->mount_port;
    attr.credits = o->credits;
    attr.timeout_ms = (int)(o->timeout_s * 1000);
    attr.call_timeout_ms = o->soft ? attr.timeout_ms : -1;
    attr.wire = o->wire;
    attr.log = mount_run_say;
    attr.log_user = m;
    m->client = nfs_client_open(&attr, error);
    if (m->client)
        return 0;
    return fail(exit_code_of(errno), "%s", *error ? error : error_text(errno));
}

/* --- the mount point ------------------------------------------------------------------------------------------- */

/* Builds the options for FUSE; commas and backslashes in the server's path are escaped. */
static char *fuse_options(const struct mount *m)
{
    const struct mount_options *o = m->options;
    size_t size = 2 * (strlen(o->host) + strlen(o->path)) + strlen(o->options) + 128;
    char *text = malloc(size), *at;

    if (!text)
        return NULL;
    at = text + snprintf(text, size, "max_read=%" PRIu32 "%s%s%s,subtype=rddp,fsname=", nfs_read_max(m->client),
                         o->server_permissions ? "" : ",default_permissions", *o->options ? "," : "", o->options);
    for (const char *part = o->host, *colon = ":"; part; part = part == o->host ? colon
                                                                : part == colon ? o->path
                                                                                : NULL) {
        for (const char *p = part; *p; p++) {
            if (*p == ',' || *p == '\\')
                *at++ = '\\';
            *at++ = *p;
        }
    }
    *at = 0;
    return text;
}

/* Decodes the octal escapes of mountinfo, such as \040 for a space. */
static void unescape(char *text)
{
    char *to = text;

    for (unsigned octal; *text; to++) {
        bool escaped = *text == '\\' && sscanf(text + 1, "%3o", &octal) == 1;

        *to = escaped ? (char)octal : *text;
        text += escaped ? 4 : 1;
    }
    *to = 0;
}

/* Reads the mount's device number from lines like "36 35 0:41 / /mnt rw ..." (proc(5)), without accessing the mount.
 * The last matching line is the topmost mount. */
static bool find_device(const char *dir, char device[SMALL_TEXT])
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, text[SMALL_TEXT], at[4096];
    size_t space = 0;
    bool found = false;

    while (f && getline(&line, &space, f) > 0) {
        if (sscanf(line, "%*s %*s %31s %*s %4095s", text, at) != 2)
            continue;
        unescape(at);
        if (!strcmp(at, dir)) {
            snprintf(device, SMALL_TEXT, "%s", text);
            found = true;
        }
    }
    free(line);
    if (f)
        fclose(f);
    return found;
}

static int mount_fuse(struct mount *m)
{
    char *options = fuse_options(m), name[] = "rddp", flag[] = "-o";
    char *argv[] = {name, flag, options, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, argv);
    int fd;

    if (!options)
        return fail(EXIT_FAILED, "out of memory");
    m->session = fuse_session_new(&args, &mount_operations, sizeof(mount_operations), m);
    fuse_opt_free_args(&args);
    free(options);
    if (!m->session)
        return fail(EXIT_FAILED, "libfuse rejects these options");
    if (fuse_session_mount(m->session, m->options->dir))
        return fail(EXIT_FAILED, "cannot mount on %s", m->options->dir);
    find_device(m->options->dir, m->device);
    fd = fuse_session_fd(m->session);
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ? fail(EXIT_FAILED, "fcntl: %s", error_text(errno)) : 0;
}

/* Only root may set it; for others this has no effect. */
static void raise_readahead(const struct mount *m)
{
    char path[SMALL_TEXT + 64];
    FILE *f;

    snprintf(path, sizeof(path), "/sys/class/bdi/%s/read_ahead_kb", m->device);
    f = fopen(path, "we");
    if (!f)
        return;
    fprintf(f, "%d\n", READAHEAD_KIB);
    fclose(f);
}

/* Whether our mount is on the directory, and not a later one. */
static bool mount_run_is_ours(const struct mount *m)
{
    char device[SMALL_TEXT];

    return find_device(m->options->dir, device) && !strcmp(device, m->device);
}

/* Unmounts in another process, since this one must serve the kernel's last writes meanwhile. */
static pid_t start_unmount(const struct mount *m)
{
    const char *dir = m->options->dir;
    pid_t pid = mount_run_is_ours(m) ? fork() : -1;

    if (pid)
        return pid;
    if (umount2(dir, MNT_DETACH | UMOUNT_NOFOLLOW))
        execlp("fusermount3", "fusermount3", "-u", "-z", "-q", "--", dir, (char *)NULL);
    _exit(0);
}

/* --- one thread ------------------------------------------------------------------------------------------------ */

static void take_requests(struct mount *m)
{
    for (int i = 0; i < BATCH && !fuse_session_exited(m->session); i++) {
        int n = fuse_session_receive_buf(m->session, &m->receive);

        if (n <= 0)
            return;
        fuse_session_process_buf(m->session, &m->receive);
    }
}

static void mount_run_turn(struct mount *m)
{
    struct pollfd fds[2] = {
        {.fd = fuse_session_exited(m->session) ? -1 : fuse_session_fd(m->session), .events = POLLIN},
        {.fd = nfs_client_fd(m->client), .events = POLLIN},
    };

    poll(fds, 2, m->calls || m->dirty_first ? BUSY_MS : IDLE_MS);
    if (fds[0].revents)
        take_requests(m);
    nfs_wait(m->client, 0);
    sync_resume(m);
    if (m->killed)
        calls_kill(m);
}

static void mount_run_serve(struct mount *m, void (*ready)(void))
{
    uint64_t end_ns = UINT64_MAX;
    pid_t unmounting = 0;

    while (!fuse_session_exited(m->session) && clock_ns() < end_ns) {
        mount_run_turn(m);
        if (ready && m->initialised) {
            raise_readahead(m);
            ready();
            ready = NULL;
            m->in_background = !m->options->foreground;
        }
        if (tool_stopped && !unmounting) {
            unmounting = start_unmount(m);
            end_ns = clock_ns() + UNMOUNT_S * UINT64_C(1000000000);
        }
    }
    if (fuse_session_exited(m->session))
        handles_close(m);
    /* Finish writing data of files that were closed. */
    while ((m->dirty_first || m->owed) && clock_ns() < end_ns) {
        mount_run_turn(m);
        if (tool_stopped && end_ns == UINT64_MAX)
            end_ns = clock_ns() + UNMOUNT_S * UINT64_C(1000000000);
    }
    if (unmounting > 0)
        waitpid(unmounting, NULL, WNOHANG);
}

/* Returns an exit code: not 0 if written data were lost. */
static int close_all(struct mount *m)
{
    int code = EXIT_OK;

    m->closing = true;
    if (m->dirty_first)
        code = fail(EXIT_FAILED, "%" PRIu64 " octets were lost: not written to the server", m->dirty_octets);
    if (m->client)
        nfs_client_disconnect(m->client);
    handles_close(m);
    sync_abandon(m);
    dirs_close(m);
    if (m->session) {
        if (fuse_session_exited(m->session) || mount_run_is_ours(m))
            fuse_session_unmount(m->session);
        fuse_session_destroy(m->session);
    }
    free(m->receive.mem);
    inodes_fini(&m->inodes);
    return code;
}

int mount_run(const struct mount_options *options, void (*ready)(void))
{
    struct mount m = {.options = options};
    int code, lost = 0;

    mallopt(M_MMAP_THRESHOLD, BLOCK_KEPT);
    mallopt(M_TRIM_THRESHOLD, 16 * BLOCK_KEPT);
    code = open_client(&m);
    if (!code && !inodes_init(&m.inodes, nfs_root(m.client)))
        code = fail(EXIT_FAILED, "out of memory");
    if (!code)
        code = mount_fuse(&m);
    if (!code)
        mount_run_serve(&m, ready);
    if (m.client)
        lost = close_all(&m);
    if (m.net) /* before the server is told, so that the address is soon free for another mount */
        rddp_stream_net_close(m.net);
    if (m.client)
        nfs_client_close(m.client);
    return code ? code : lost;
}
#endif
