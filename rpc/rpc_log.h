/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_log.h - log lines with a rate limit, since a peer can cause some of them at will: a burst of RPC_LOG_BURST, then
 * one line every RPC_LOG_MS. A line after a gap says how many were left out. */
#ifndef RDDP_RPC_RPC_LOG_H
#define RDDP_RPC_RPC_LOG_H

#include <sys/socket.h>

#include <rddp/rddp.h>

enum { RPC_LOG_BURST = 20, RPC_LOG_MS = 10000, RPC_ADDRESS = 64 };

struct rpc_log {
    enum rddp_log_level level;
    void (*write)(void *user, enum rddp_log_level level, const char *line);
    void *user;
    uint64_t earned_ms; /* the time for which lines were last credited */
    unsigned lines, left_out;
};

/* `write` may be NULL: lines go to standard error. The level is the default of rddp_context_attr_init(). */
void rpc_log_init(struct rpc_log *log, void (*write)(void *user, enum rddp_log_level level, const char *line),
                  void *user);

void rpc_log(struct rpc_log *log, enum rddp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, in the form of rddp_context_attr.log; its log_user is the struct rpc_log. */
void rpc_log_line(void *log, enum rddp_log_level level, const char *line);

/* Writes the address without its port, an IPv4-mapped address as IPv4. Returns `text`. */
char *rpc_address_text(char text[RPC_ADDRESS], const struct sockaddr_storage *addr);

#endif
