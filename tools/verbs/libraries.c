/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libraries.c - finds the libraries for programs made for verbs, from where the command lies. */
#include "tools/verbs/libraries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/lib/tool.h"

static bool is_there(const char *folder)
{
    char path[PATH_MAX + SMALL_TEXT];

    snprintf(path, sizeof(path), "%s/librdmacm.so.1", folder);
    return !access(path, R_OK);
}

/* Joins the folder of the command and `below`, and removes the dots. Returns false if that does not exist. */
static bool beside_command(char path[PATH_MAX], const char *below)
{
    char joined[2 * PATH_MAX], own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

    path[0] = '\0';
    if (n < 0)
        return false;
    own[n] = '\0';
    *strrchr(own, '/') = '\0';
    snprintf(joined, sizeof(joined), "%s/%s", own, below);
    if (realpath(joined, path))
        return true;
    snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, joined);
    return false;
}

bool verbs_folder(char path[PATH_MAX])
{
    return (beside_command(path, "verbs-libraries") && is_there(path)) ||
           (beside_command(path, RDDP_VERBS_FOLDER) && is_there(path));
}

int verbs_search_path(char text[SEARCH_PATH])
{
    const char *now = getenv("LD_LIBRARY_PATH");
    char folder[PATH_MAX];

    if (!verbs_folder(folder))
        return fail(EXIT_FAILED,
                    "there are no libraries for verbs in %s: install libibverbs-dev and librdmacm-dev, and build again",
                    folder);
    if (snprintf(text, SEARCH_PATH, "%s%s%s", folder, now && *now ? ":" : "", now ? now : "") >= SEARCH_PATH)
        return fail(EXIT_FAILED, "LD_LIBRARY_PATH is too long");
    return 0;
}
