/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mount.c - `rddp mount`: parses the options, and goes into the background when the mount works. */
#include "tools/lib/tool.h"

#ifdef RDDP_FUSE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/lib/packet_options.h"
#include "nfs/mount/mount.h"

#define AT(field) offsetof(struct mount_options, field)

static const struct opt opts[] = {
    {'f', "foreground", NULL, "stay in the foreground", OPT_FLAG, AT(foreground), 0, 0},
    {'o', "options", "LIST", "set options of the mount: ro,allow_other,nosuid ...", OPT_LIST, AT(words), 0, 0},
    {'p', "port", "PORT", "connect to this port for NFS (default 20049; with --packet 2049)", OPT_U16, AT(port), 1,
     65535},
    {0, "mount-port", "PORT", "connect to this port for MOUNT over TCP (default: ask rpcbind, or 20048)", OPT_U16,
     AT(mount_port), 1, 65535},
    {0, "credits", "N", "keep up to N calls outstanding (default 64)", OPT_U32, AT(credits), 1, 1024},
    {0, "soft", NULL, "let a call that times out fail (default: wait for the server)", OPT_FLAG, AT(soft), 0, 0},
    {0, "timeout", "SECONDS", "limit the time for connecting and, with --soft, for a call (default 10)", OPT_SECONDS,
     AT(timeout_s), 0, 0},
    {0, "attr-timeout", "SECONDS", "cache attributes and names for this long (default 1)", OPT_SECONDS,
     AT(attr_timeout_s), 0, 0},
    {0, "dirty", "SIZE", "limit the memory for data written and not committed (default 64M)", OPT_SIZE, AT(dirty_max),
     1 << 20, UINT64_C(1) << 40},
    {0, "server-permissions", NULL, "leave permission checks to the server", OPT_FLAG, AT(server_permissions), 0, 0},
    {0},
};

/* --- words ----------------------------------------------------------------------------------------------------- */

/* Parses "HOST:/PATH"; an IPv6 address may be in brackets. */
static void split_source(const char *source, struct mount_options *o)
{
    const char *colon = strstr(source, ":/");
    size_t n;

    if (!colon || colon == source)
        usage_error("'%s' is not HOST:/PATH", source);
    n = (size_t)(colon - source);
    if (*source == '[' && n > 2 && source[n - 1] == ']') {
        source++;
        n -= 2;
    }
    o->host = strndup(source, n);
    o->path = strdup(colon + 1);
    if (!o->host || !o->path)
        exit(fail(EXIT_FAILED, "out of memory"));
}

/* Options that libfuse, the kernel and fusermount3 accept and that change nothing this mount relies on. */
static bool is_mount_option(const char *word, size_t n)
{
    static const char *const words[] = {
        "ro",   "rw",      "suid",  "nosuid",  "dev",        "nodev",    "exec",        "noexec",     "async",
        "sync", "dirsync", "atime", "noatime", "nodiratime", "relatime", "allow_other", "allow_root", "auto_unmount",
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i]) == n && !memcmp(words[i], word, n))
            return true;
    }
    return false;
}

static void check_options(const char *list)
{
    while (*list) {
        size_t n = strcspn(list, ",");

        if (!is_mount_option(list, n))
            usage_error("-o: unknown option '%.*s'", (int)n, list);
        list += n + (list[n] == ',');
    }
}

static char *join(const struct opt_list *words)
{
    size_t space = 1;
    char *text;

    for (unsigned i = 0; i < words->count; i++)
        space += strlen(words->word[i]) + 1;
    text = calloc(1, space);
    for (unsigned i = 0; text && i < words->count; i++) {
        check_options(words->word[i]);
        if (i)
            strcat(text, ",");
        strcat(text, words->word[i]);
    }
    if (!text)
        exit(fail(EXIT_FAILED, "out of memory"));
    return text;
}

/* --- the background -------------------------------------------------------------------------------------------- */

static int parent = -1; /* a pipe to the first process, which waits for the exit code */

static void notify_parent(int code)
{
    unsigned char octet = (unsigned char)code;

    if (parent < 0)
        return;
    if (write(parent, &octet, 1) != 1)
        warn("%s", error_text(errno));
    close(parent);
    parent = -1;
}

static void go_background(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (parent < 0)
        return;
    if (chdir("/") || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        warn("%s", error_text(errno));
    notify_parent(EXIT_OK);
    dup2(null, 2);
    if (null > 2)
        close(null);
}

/* Forks before anything is opened: neither sockets nor registered memory survive a fork. Returns only in the child,
 * which does all the work. */
static int split_process(void)
{
    unsigned char code = EXIT_FAILED;
    int pipe_fd[2];
    pid_t pid;

    if (pipe2(pipe_fd, O_CLOEXEC) || (pid = fork()) < 0)
        return fail(EXIT_FAILED, "%s", error_text(errno));
    if (pid) {
        ssize_t n;

        close(pipe_fd[1]);
        do
            n = read(pipe_fd[0], &code, 1);
        while (n < 0 && errno == EINTR);
        _exit(code);
    }
    close(pipe_fd[0]);
    parent = pipe_fd[1];
    setsid();
    return 0;
}

static int find_dir(struct mount_options *o, const char *dir)
{
    struct stat st;

    o->dir = realpath(dir, NULL);
    if (!o->dir || stat(o->dir, &st))
        return fail(EXIT_FAILED, "%s: %s", dir, error_text(errno));
    if (!S_ISDIR(st.st_mode))
        return fail(EXIT_FAILED, "%s: %s", dir, error_text(ENOTDIR));
    if (access("/dev/fuse", F_OK))
        return fail(EXIT_FAILED, "/dev/fuse: %s", error_text(errno));
    return 0;
}

static int mount_main(const struct command *command, int argc, char **argv)
{
    struct mount_options o = {
        .credits = 64,
        .dirty_max = 64 << 20,
        .timeout_s = 10,
        .attr_timeout_s = 1,
    };
    int first, code;

    rddp_wire_attr_init(&o.wire);
    first = opt_parse(command, argc, argv, &o, &o.wire);
    if (argc - first != 2)
        usage_error("expected HOST:/PATH and DIR");
    if (o.timeout_s < 0.001 || o.timeout_s > 86400)
        usage_error("--timeout: must be from 0.001 to 86400 seconds");
    packet_nfs_check(); /* while this process can still say that the usage is wrong */
    split_source(argv[first], &o);
    o.options = join(&o.words);
    code = find_dir(&o, argv[first + 1]);
    if (!code && !o.foreground)
        code = split_process();
    catch_signals();
    if (!code)
        code = mount_run(&o, go_background);
    notify_parent(code);
    free(o.options);
    free(o.host);
    free(o.path);
    free(o.dir);
    return code;
}
#else
static const struct opt opts[] = {{0}};

static int say_what_is_missing(const struct command *command, int argc, char **argv)
{
    opt_parse(command, argc, argv, NULL, NULL);
    return fail(EXIT_FAILED, "this rddp was built without libfuse3 (Debian: libfuse3-dev)");
}
#endif

const struct command mount_command = {
    .name = "mount",
    .summary = "mount a directory of an NFS server, in user space",
    .usage = "[options] HOST:/PATH DIR",
    .text = "Mounts by NFS version 3 over RDMA, or over a TCP in user space with --packet, and FUSE. `fusermount3 -u "
            "DIR` or `umount DIR` ends it.",
    .opts = opts,
#ifdef RDDP_FUSE
    .wire = true,
    .packet = true,
    .run = mount_main,
#else
    .run = say_what_is_missing,
#endif
};
