/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.c - `rddp run`: executes a program made for verbs with our libibverbs.so.1 and librdmacm.so.1. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/lib/tool.h"
#include "tools/verbs/libraries.h"

struct run_options {
    bool stats, sysfs;
};

#define AT(field) offsetof(struct run_options, field)

static const struct opt opts[] = {
    {0, "stats", NULL, "print what the program's connections did when it ends", OPT_FLAG, AT(stats), 0, 0},
    {0, "sysfs", NULL, "show it a /sys/class/infiniband and /dev/infiniband, in namespaces of its own", OPT_FLAG,
     AT(sysfs), 0, 0},
    {0},
};

/* Options of the program are not ours, so ours end at its name. */
static int own_arguments(int argc, char **argv)
{
    int n = 1;

    while (n < argc && argv[n][0] == '-' && strcmp(argv[n], "--"))
        n++;
    return n;
}

static int run_run(const struct command *command, int argc, char **argv)
{
    struct run_options options = {0};
    char path[SEARCH_PATH];
    int own = own_arguments(argc, argv), code;

    opt_parse(command, own, argv, &options, NULL);
    if (own < argc && !strcmp(argv[own], "--"))
        own++;
    if (own == argc)
        usage_error("expected the PROGRAM to run");
    code = verbs_search_path(path);
    if (!code && options.sysfs)
        code = verbs_view();
    if (code)
        return code;
    setenv("LD_LIBRARY_PATH", path, 1);
    if (options.stats)
        setenv("RDDP_VERBS_STATS", "1", 1);
    execvp(argv[own], &argv[own]);
    fail(EXIT_FAILED, "%s: %s", argv[own], error_text(errno));
    return errno == ENOENT ? 127 : 126; /* as shells do */
}

const struct command run_command = {
    .name = "run",
    .summary = "run a program made for libibverbs and librdmacm, without a device",
    .usage = "[--stats] [--sysfs] -- PROGRAM [ARGUMENT ...]",
    .text = "The program finds one device, rddp0: iWARP over TCP, in this user's processes alone.",
    .opts = opts,
    .run = run_run,
};
