/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refuse.c - says why a call was refused: one line for each, if RDDP_LOG asks for warnings. It does so explicitly:
 * programs try out what a device can do, and those that run without a word shall. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "verbs/verbs_object.h"

static bool is_asked_for(void)
{
    static const char *const levels[] = {"warn", "info", "debug"};
    const char *asked = getenv("RDDP_LOG");

    for (unsigned i = 0; asked && i < sizeof(levels) / sizeof(levels[0]); i++)
        if (!strcasecmp(asked, levels[i]))
            return true;
    return false;
}

int verbs_refuse(int error, const char *format, ...)
{
    enum { LINE = 320 };
    char line[LINE];
    va_list args;

    if (error && is_asked_for()) {
        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        fprintf(stderr, "rddp: %s: %s\n", line, strerror(error));
    }
    if (error)
        errno = error;
    return error;
}
