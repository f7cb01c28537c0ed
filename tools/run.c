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
    const char *device;
};

#define AT(field) offsetof(struct run_options, field)

static const struct opt opts[] = {
    {0, "device", "NAME", "show it this device alone: rddpe0 (RoCE version 2) or rddp0 (iWARP)", OPT_TEXT, AT(device),
     0, 0},
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
        n += strcmp(argv[n], "--device") ? 1 : 2;
    return n < argc ? n : argc;
}

static int run_run(const struct command *command, int argc, char **argv)
{
    struct run_options options = {0};
    char path[SEARCH_PATH];
    int own = own_arguments(argc, argv), code;

    opt_parse(command, own, argv, &options, NULL);
    if (own < argc && !strcmp(argv[own], "--"))
        own++;
    if (options.device && strcmp(options.device, "rddpe0") && strcmp(options.device, "rddp0"))
        usage_error("--device %s: expected rddpe0 or rddp0", options.device);
    if (own == argc)
        usage_error("expected the PROGRAM to run");
    code = verbs_search_path(path);
    if (!code && options.sysfs)
        code = verbs_view();
    if (code)
        return code;
    setenv("LD_LIBRARY_PATH", path, 1);
    if (options.device)
        setenv("RDDP_DEVICE", options.device, 1);
    if (options.stats)
        setenv("RDDP_VERBS_STATS", "1", 1);
    execvp(argv[own], &argv[own]);
    fail(EXIT_FAILED, "%s: %s", argv[own], error_text(errno));
    return errno == ENOENT ? 127 : 126; /* as shells do */
}

const struct command run_command = {
    .name = "run",
    .summary = "run a program made for libibverbs and librdmacm, without a device",
    .usage = "[--device NAME] [--stats] [--sysfs] -- PROGRAM [ARGUMENT ...]",
    .text = "The program finds two devices, in this user's processes alone: rddpe0, RoCE version 2 over UDP, and "
            "rddp0, iWARP over TCP.",
    .opts = opts,
    .run = run_run,
};
