/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_log.c - log lines with a rate limit. */
#include "rpc/rpc_log.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rpc/clock.h"

enum { LINE = 512 };

void rpc_log_init(struct rpc_log *log, void (*write)(void *user, enum rddp_log_level level, const char *line),
                  void *user)
{
    struct rddp_context_attr context;

    rddp_context_attr_init(&context);
    *log = (struct rpc_log){.level = context.log_level, .write = write, .user = user};
}

static bool may_write(struct rpc_log *log, uint64_t now)
{
    uint64_t earned = (now - log->earned_ms) / RPC_LOG_MS;

    log->earned_ms += earned * RPC_LOG_MS;
    log->lines = earned < log->lines ? log->lines - (unsigned)earned : 0;
    if (log->lines == RPC_LOG_BURST) {
        log->left_out++;
        return false;
    }
    log->lines++;
    return true;
}

void rpc_log_line(void *user, enum rddp_log_level level, const char *text)
{
    struct rpc_log *log = user;
    char line[LINE];

    if (level > log->level || !may_write(log, clock_ms()))
        return;
    if (log->left_out)
        snprintf(line, sizeof(line), "%s (%u lines were left out before this one)", text, log->left_out);
    else
        snprintf(line, sizeof(line), "%s", text);
    log->left_out = 0;
    if (log->write)
        log->write(log->user, level, line);
    else
        fprintf(stderr, "rddp: %s\n", line);
}

void rpc_log(struct rpc_log *log, enum rddp_log_level level, const char *format, ...)
{
    char line[LINE];
    va_list list;

    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    rpc_log_line(log, level, line);
}

char *rpc_address_text(char text[RPC_ADDRESS], const struct sockaddr_storage *addr)
{
    static const char mapped[] = "::ffff:";
    socklen_t length = addr->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

    if (getnameinfo((const struct sockaddr *)addr, length, text, RPC_ADDRESS, NULL, 0, NI_NUMERICHOST))
        snprintf(text, RPC_ADDRESS, "an unknown address");
    if (!strncmp(text, mapped, sizeof(mapped) - 1) && strchr(text, '.'))
        memmove(text, text + sizeof(mapped) - 1, strlen(text) - (sizeof(mapped) - 1) + 1);
    return text;
}
