/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log.h - lines for people who have to find out what happened. A peer can bring some about as often as it likes, so
 * there is a limit: a burst, then one line now and then, which says how many were left out. */
#ifndef RDDP_RPC_LOG_H
#define RDDP_RPC_LOG_H

#include <sys/socket.h>

#include <rddp/rddp.h>

enum { RPC_LOG_BURST = 20, RPC_LOG_MS = 10000, RPC_ADDRESS = 64 };

struct rpc_log {
    enum rddp_log_level level;
    void (*write)(void *user, enum rddp_log_level level, const char *line);
    void *user;
    uint64_t earned_ms; /* up to when lines were earned */
    unsigned lines, left_out;
};

/* `write` is NULL: to standard error. The level is that of rddp_context_attr_init(). */
void rpc_log_init(struct rpc_log *log, void (*write)(void *user, enum rddp_log_level level, const char *line),
                  void *user);

void rpc_log(struct rpc_log *log, enum rddp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for rddp_context_attr, with `log` as its user. */
void rpc_log_line(void *log, enum rddp_log_level level, const char *line);

/* Without a port; IPv4 as IPv4. Returns `text`. */
char *rpc_address_text(char text[RPC_ADDRESS], const struct sockaddr_storage *addr);

#endif
