/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* env.c - `rddp env`: prints what a shell evaluates to run programs made for verbs. */
#include <stdlib.h>
#include <string.h>

#include "tools/lib/tool.h"
#include "tools/verbs/libraries.h"

static int env_run(const struct command *command, int argc, char **argv)
{
    char path[SEARCH_PATH];
    int first = opt_parse(command, argc, argv, NULL, NULL), code;

    if (first < argc)
        usage_error("unexpected argument '%s'", argv[first]);
    code = verbs_search_path(path);
    if (code)
        return code;
    if (strchr(path, '\''))
        return fail(EXIT_FAILED, "a quote in LD_LIBRARY_PATH cannot be printed for a shell");
    printf("LD_LIBRARY_PATH='%s'; export LD_LIBRARY_PATH\n", path);
    return EXIT_OK;
}

const struct command env_command = {
    .name = "env",
    .summary = "print the environment of `rddp run`, for a shell to evaluate",
    .usage = "",
    .text = "eval \"$(rddp env)\" lets every program of the shell that is made for verbs use rddpe0 or rddp0.",
    .run = env_run,
};
