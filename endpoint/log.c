/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log.c - writes one English line for people who investigate what happened. */
#include <stdarg.h>
#include <stdio.h>

#include "endpoint/objects.h"

enum { LINE = 512 };

void context_log(struct rddp_context *context, enum rddp_log_level level, const char *format, ...)
{
    char line[LINE];
    va_list args;

    if (level > context->log_level)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (context->log)
        context->log(context->log_user, level, line);
    else
        fprintf(stderr, "rddp: %s\n", line);
}
