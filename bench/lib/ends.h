/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.h - a process with memory that anybody may write to, connections to it, and statistics of many rounds. Functions
 * end the program on failure. */
#ifndef RDDP_BENCH_ENDS_H
#define RDDP_BENCH_ENDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rddp/rddp.h>

enum { ENDS_OCTETS = 1 << 20, ENDS_DEPTH = 4096, ENDS_UNDER_WAY = 256, ENDS_ROUNDS_MAX = 64 };

/* One end, in either process. Its memory is zero at first. */
struct end {
    struct rddp_context *context;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_event_channel *events;
    struct rddp_mr *mr;
    struct rddp_qp *qp;
    uint8_t *memory;   /* ENDS_OCTETS octets */
    uint64_t peer_at;  /* address of the other process's memory */
    uint32_t peer_key; /* key of that memory */
    uint32_t every;    /* one Write of as many is signalled: 1 until it is changed */
    uint64_t posted;   /* Writes */
};

/* The other process. */
struct ends_peer {
    pid_t pid;
    int to, from; /* pipes */
    int port;
    uint64_t at;
    uint32_t key;
};

/* Starts a process that accepts all connections. `answer`, if not NULL, runs in it with its end of the first
 * connection, after ends_tell() has told that end of the caller's memory. */
void ends_start(struct ends_peer *peer, void (*answer)(struct end *end));
void ends_stop(struct ends_peer *peer);

/* Connects. If `context` is NULL, opens one with `loops` event loops; 0: without a thread. */
void ends_open(struct end *end, const struct ends_peer *peer, struct rddp_context *context, uint32_t loops);
void ends_tell(const struct end *end, const struct ends_peer *peer);
void ends_close(struct end *end, bool context_too);

/* Posts `n` Writes of `length` octets as one list; inline up to 64 octets. */
void ends_write(struct end *end, uint32_t n, uint32_t length);
/* Takes up to `n` completions (at most 64) and returns their number. */
int ends_poll(struct end *end, int n);
_Noreturn void ends_poll_always(struct end *end); /* an `answer` of ends_start() */
/* Posts such lists for `seconds`, as long as no more than ENDS_UNDER_WAY Writes are under way, and takes their
 * completions. Returns how many Writes were complete. */
uint64_t ends_write_for(struct end *end, uint32_t list, uint32_t length, double seconds);

/* Parses NAME [ROUNDS [SECONDS]]: 1 to ENDS_ROUNDS_MAX rounds (default 5) of SECONDS (default 1) each. Ends the program
 * if they are invalid. */
void ends_arguments(int argc, char **argv, int *rounds, double *seconds);

uint64_t ends_now_ns(void);
double ends_cpu_s(void);

/* Sorts the n values and returns the quantile `part` (0 to 1). */
double ends_at(double *values, size_t n, double part);
_Noreturn void ends_fail(const char *what, int error);

#endif
