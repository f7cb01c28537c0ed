/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - the command `rddp`: finds the subcommand and runs it. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tools/lib/tool.h"
#include "tools/xfer/store.h"

static int run_help(const struct command *command, int argc, char **argv);

static const struct command help_command = {
    .name = "help",
    .summary = "explain a subcommand",
    .usage = "[SUBCOMMAND]",
    .run = run_help,
};

#ifdef RDDP_WITHOUT_NFS
#define OF_NFS(entry) NULL
#else
#define OF_NFS(entry) entry
#endif
#ifdef RDDP_WITHOUT_HTTP
#define OF_HTTP(entry) NULL
#else
#define OF_HTTP(entry) entry
#endif
#ifdef RDDP_WITHOUT_VERBS
#define OF_VERBS(entry) NULL
#else
#define OF_VERBS(entry) entry
#endif

/* Each command is defined in its own file and declared in tool.h. NULL: RDDP_WITHOUT has left it out. */
static const struct {
    const char *name;
    const struct command *command;
} commands[] = {
    {"ping", &ping_command},         {"perf", &perf_command},
    {"serve", &serve_command},       {"cp", &cp_command},
    {"nfs", OF_NFS(&nfs_command)},   {"mount", OF_NFS(&mount_command)},
    {"nfsd", OF_NFS(&nfsd_command)}, {"http", OF_HTTP(&http_command)},
    {"run", OF_VERBS(&run_command)}, {"env", OF_VERBS(&env_command)},
    {"doctor", &doctor_command},     {"help", &help_command},
};

/* What mount(8) calls. It knows a mount of this type as fuse.rddp when it is mounted again. */
static int (*const mount_helper)(int argc, char **argv) = OF_NFS(run_mount_helper);

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name))
            continue;
        if (!commands[i].command)
            usage_error("this build has no '%s': it was left out with RDDP_WITHOUT", name);
        return commands[i].command;
    }
    usage_error("unknown subcommand '%s'", name);
}

static void print_help(FILE *out)
{
    fputs("usage: rddp SUBCOMMAND [options]\n\n"
          "Remote direct data placement over plain IP, in user space: no RDMA device, kernel module or privilege.\n\n",
          out);
    for (int i = 0; i < COMMANDS; i++) {
        if (commands[i].command)
            fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].command->summary);
    }
    fputs("\n`rddp help SUBCOMMAND` lists its options; `rddp --version` prints the version.\n"
          "exit code: 0 ok, 1 data mismatch or failed operation, 2 wrong usage, 3 cannot connect, 4 protocol error,\n"
          "128 and its number: a signal\n",
          out);
}

static int run_help(const struct command *command, int argc, char **argv)
{
    int first = opt_parse(command, argc, argv, NULL, NULL);
    if (first == argc) {
        print_help(stdout);
        return EXIT_OK;
    }
    opt_help(find_command(argv[first]), stdout);
    return EXIT_OK;
}

static bool is_called(const char *path, const char *name)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return path && !strcmp(slash ? slash + 1 : path, name);
}

/* Standard output may be a file of a network file system, and may be closed. */
static bool output_is_stored(void)
{
    int error = store_check(STDOUT_FILENO, false);
    return !error || error == -EBADF;
}

int main(int argc, char **argv)
{
    if (mount_helper && (is_called(argv[0], "mount.rddp") || is_called(argv[0], "mount.fuse.rddp"))) {
        tool_name = "mount.rddp";
        return mount_helper(argc, argv);
    }
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_help(stdout);
        return EXIT_OK;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        puts("rddp " RDDP_VERSION);
        return EXIT_OK;
    }
    const struct command *command = find_command(argv[1]);

    char name[SMALL_TEXT];
    snprintf(name, sizeof(name), "rddp %s", command->name);
    tool_name = name;
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the file size limit fails with EFBIG instead of ending the process */
    int code = command->run(command, argc - 1, argv + 1);
    /* A full disk or a closed pipe must not look like success. */
    if ((fflush(stdout) || !output_is_stored()) && code == EXIT_OK)
        code = fail(EXIT_FAILED, "cannot write to standard output");
    return stop_code(code);
}
