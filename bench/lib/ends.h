/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.h - a process with memory that anybody may write to, ends of connections to it, and figures of many rounds. */
#ifndef RDDP_BENCH_ENDS_H
#define RDDP_BENCH_ENDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rddp/rddp.h>

enum { ENDS_OCTETS = 1 << 20, ENDS_DEPTH = 4096, ENDS_ROUNDS_MAX = 64 };

/* Of either process: the first octets are 0 in the beginning. */
struct end {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_event_channel *events;
    struct rddp_mr *mr;
    struct rddp_qp *qp;
    uint8_t *memory;   /* ENDS_OCTETS */
    uint64_t peer_at;  /* the other process's memory */
    uint32_t peer_key; /* of it */
};

/* The other process. */
struct ends_peer {
    pid_t pid;
    int to, from; /* pipes */
    int port;
    uint64_t at;
    uint32_t key;
};

/* Starts a process that accepts everybody. `answer`, if not NULL, runs in it with the end of the first connection, once
 * that end has been told of the caller's memory by ends_tell(). Programs end when something fails. */
void ends_start(struct ends_peer *peer, void (*answer)(struct end *end));
void ends_stop(struct ends_peer *peer);

/* Connects. `context` NULL: one of its own, of `loops`. */
void ends_open(struct end *end, const struct ends_peer *peer, struct rddp_context *context, uint32_t loops);
void ends_tell(const struct end *end, const struct ends_peer *peer);
void ends_close(struct end *end, bool context_too);

/* Posts `n` Writes of `length` octets as one list. Up to 64 octets are inline. */
void ends_write(struct end *end, uint32_t n, uint32_t length);
/* Takes up to `n` (64) completions, and returns how many. */
int ends_poll(struct end *end, int n);

/* NAME [ROUNDS [SECONDS]]: 1 to ENDS_ROUNDS_MAX rounds, else 5, of so many seconds, else 1. Ends the program if they
 * are wrong. */
void ends_arguments(int argc, char **argv, int *rounds, double *seconds);

uint64_t ends_now_ns(void);
double ends_cpu_s(void);

/* The value at `part` (0 to 1) of n values, which are sorted; and the median of a few. */
double ends_at(double *values, size_t n, double part);
_Noreturn void ends_fail(const char *what, int error);

#endif
