/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - the command `rddp`: finds the subcommand and runs it. */
#include <signal.h>
#include <string.h>

#include "tools/lib/tool.h"

static int run_help(const struct command *command, int argc, char **argv);

static const struct command help_command = {
    .name = "help",
    .summary = "explain a subcommand",
    .usage = "[SUBCOMMAND]",
    .run = run_help,
};

/* Each command is defined in its own file and declared in tool.h. */
static const struct command *const commands[] = {
    &ping_command,  &perf_command, &serve_command, &cp_command,   &nfs_command,
    &mount_command, &nfsd_command, &http_command,  &help_command,
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    }
    usage_error("unknown subcommand '%s'", name);
}

static void print_help(FILE *out)
{
    fputs("usage: rddp SUBCOMMAND [options]\n\n"
          "Remote direct data placement over plain IP, in user space: no RDMA device, kernel module or privilege.\n\n",
          out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
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

int main(int argc, char **argv)
{
    if (is_called(argv[0], "mount.rddp")) {
        tool_name = "mount.rddp";
        return run_mount_helper(argc, argv);
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
    if (fflush(stdout) && code == EXIT_OK)
        code = fail(EXIT_FAILED, "cannot write to standard output");
    return stop_code(code);
}
